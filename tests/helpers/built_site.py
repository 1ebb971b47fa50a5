"""The pages of the documents, as they are written and as they are built."""

import re
from functools import cache
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parents[2]


DOCS = ROOT / "docs"


PAGES = sorted(DOCS.rglob("*.md"))


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def built_pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def body(page: Path) -> str:
    """What a page says, without the frame around it."""
    found = re.search(r'<article class="md-content__inner[^>]*>(.*?)</article>', read(page), re.DOTALL)
    assert found, page
    return found[1]


def plain(html: str) -> str:
    """The text of a page without its white space."""
    text = re.sub(r"<!--.*?-->", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", "", unescape(re.sub(r"<[^>]*>", "", text)))
