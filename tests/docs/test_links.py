"""The links of the documents and of the built site hold."""

import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from built_site import DOCS, PAGES, ROOT, built_pages, read

LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")


HEADING = re.compile(r"^#{1,6} +(.*?)(?: +#+)? *$", re.MULTILINE)


def prose(text: str) -> str:
    """A page without what is code."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]+`", "", text)


def anchors(text: str) -> set[str]:
    """The anchors that a code host gives the headings of a page."""
    names: set[str] = set()
    for heading in HEADING.findall(re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        repeat = next(
            number for number in range(len(names) + 1) if (f"{name}-{number}" if number else name) not in names
        )
        names.add(f"{name}-{repeat}" if repeat else name)
    return names


def broken(page: Path, text: str) -> list[str]:
    """The relative links of a page that lead nowhere, or, from the documents, out of them: the site ends there."""
    found = []
    for target in LINK.findall(prose(text)):
        if re.match(r"[a-z][a-z+.-]*:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (page.parent / path).resolve() if path else page
        inside = DOCS in file.parents or DOCS not in page.parents
        names = (
            anchors(text) if file == page else anchors(read(file)) if file.suffix == ".md" and file.is_file() else ()
        )
        known = not anchor or anchor in names
        if not ((file.exists() or file == page) and inside and known and not target.startswith("/")):
            found.append(target)
    return found


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.stem)
def test_every_relative_link_holds(page):
    assert broken(page, read(page)) == []


@pytest.mark.parametrize(
    "link",
    [
        "[a](absent.md)",
        "[a](concepts.md#absent)",
        "[a](#absent)",
        "[a](../README.md)",
        "[a](../packages/surepick/src/surepick/noise.py)",
        "![a](figures/absent.png)",
        "[a](/docs/concepts.md)",
        "[`a` [b]](absent.md)",
    ],
)
def test_a_broken_link_is_noticed(link):
    good = "# Top\n\n[a](concepts.md#a-small-example) [b](#top) [c](https://example.org) `[d](absent.md)`"
    assert broken(DOCS / "page.md", good) == []
    assert len(broken(DOCS / "page.md", f"{good}\n{link}")) == 1


def test_every_link_of_the_built_site_holds(site):
    targets = {
        (page.parent / unquote(unescape(target))).resolve()
        for page in built_pages(site)
        if page.name != "404.html"  # its addresses are those of a server
        for target in re.findall(r"<(?:a|link|img|script)\b[^>]*?\b(?:href|src)=\"?([^\"#?\s>]+)", read(page))
        if not re.match(r"[a-z][a-z+.-]*:", target)
    }
    assert len(targets) > len(PAGES)
    assert [target for target in targets if not target.is_file()] == []
