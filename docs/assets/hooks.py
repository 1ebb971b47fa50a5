"""What the site builder does besides: text in angle brackets stays text, and nothing is fetched from another host."""

import logging
import re
import shutil
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority

COMMENT = re.compile(r"^<!-- .* -->$", re.MULTILINE)
SCHEMA = Path(__file__).parents[2] / "src/surepick/studies/certificate.schema.json"
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
