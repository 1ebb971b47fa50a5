"""What the site builder does besides: text in angle brackets stays text, and nothing is fetched from another host.

The lines of a table in an output are marked, so that they are not broken, and the navigation lists the example scripts.
"""

import logging
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.nav import Link, Navigation, Section
from pymdownx.slugs import slugify

COMMENT = re.compile(r"^<!-- .* -->$", re.MULTILINE)
SCHEMA = Path(__file__).parents[2] / "packages/surepick/src/surepick/certificates/certificate.schema.json"
OUTPUT = re.compile(r'(<div class="language-text highlight"><pre><span></span><code>)(.*?)(</code>)', re.DOTALL)
DRAWN = re.compile("[─═│┌└╞]")
COLUMNS = re.compile(r"^(?=.*(?:\S {2,}\S|[─═│┌└╞])).*$", re.MULTILINE)  # two spaces between words, or a drawn line
SCRIPTS = re.compile(r"^## (.*)\n\n\[The script ", re.MULTILINE)
FETCHED = re.compile(r"https://(?:unpkg\.com|api\.github\.com|bit\.ly)/")


class FormulasStay(Extension):
    """`<z_x, theta>` is a formula, as it is on a code host, and no element of the page; `[A] [B]` is no link."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - the name that the library calls
        md.inlinePatterns.deregister("html")
        md.inlinePatterns.deregister("mkdocs-autorefs", strict=False)
        md.preprocessors.deregister("html_block")


def on_startup(**_: Any) -> None:
    """Only warnings are worth a line."""
    logging.getLogger("mkdocs").setLevel(logging.WARNING)


@event_priority(-100)  # after the plugins have added theirs
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(FormulasStay())  # type: ignore[arg-type] - the library takes names and extensions
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Comments mark tables that a program writes; a reader does not see them."""
    return COMMENT.sub("", markdown)


def whole(found: re.Match[str]) -> str:
    """A line in columns; where the last column is a sentence, that is broken within its column."""
    line, last = found[0], found[0].rfind("  ") + 2
    sentence = " " in line[last:].strip() and not DRAWN.search(line)
    place = f' style="--last: {len(unescape(line[:last]))}"' if sentence else ""
    return f'<span class="columns"{place}>{line}</span>'


def on_page_content(html: str, **_: Any) -> str:
    """The lines of an output that stand in columns are marked: they are scrolled, where others are broken."""
    return OUTPUT.sub(lambda found: found[1] + COLUMNS.sub(whole, found[2]) + found[3], html)


def on_nav(nav: Navigation, config: MkDocsConfig, **_: Any) -> Navigation:
    """The scripts of examples/index.md, which have no pages of their own, stand beside the pages of the examples."""
    (examples,) = (item for item in nav.items if isinstance(item, Section) and item.title == "Examples")
    name = slugify(case="lower")
    for heading in SCRIPTS.findall((Path(config.docs_dir) / "examples/index.md").read_text(encoding="utf-8")):
        link = Link(heading.partition(":")[0], f"examples/index.html#{name(heading, '-')}")
        link.parent = examples
        examples.children.append(link)
    return nav


def on_post_build(config: MkDocsConfig, **_: Any) -> None:
    """The theme's script would fetch what no page here uses (diagrams, stars of a repository): cut these addresses."""
    for script in Path(config.site_dir).glob("assets/javascripts/**/*.js"):
        text = script.read_text(encoding="utf-8")
        if FETCHED.search(text):
            script.write_text(FETCHED.sub("about:blank#", text), encoding="utf-8")
    shutil.copy(SCHEMA, config.site_dir)
    shutil.rmtree(Path(config.site_dir) / "assets/javascripts/lunr", ignore_errors=True)  # the search's other languages
    for sources in Path(config.site_dir).glob("assets/**/*.map"):
        sources.unlink()  # the scripts' sources, five times the size of the site
