"""The documentation site fetches nothing from another host."""

import re

import pytest
from built_site import PAGES, read

ELSEWHERE = r"(?:https?:)?//[^\s\"'`)>]+"


FETCHING_TAG = re.compile(
    rf"<(?!a\b)[a-z][\w-]*\b[^>]*?\b(?:src|srcset|data|poster|action|xlink:href|href)\s*=\s*[\"']?({ELSEWHERE})",
    re.IGNORECASE,
)


FETCHING_STYLE = re.compile(rf"(?:url\(\s*[\"']?|@import\s+[\"'])({ELSEWHERE})", re.IGNORECASE)


NAMED_IN_SCRIPT = re.compile(r"(?:https?:|(?<=[\"'`]))//[a-z0-9-]+(?:\.[a-z0-9-]+)+[^\s\"'`)]*", re.IGNORECASE)


SCRIPT = re.compile(r"<script\b[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)


NAMESPACES = ("http://www.w3.org/",)  # names of formats, which nobody fetches


def fetched(name: str, text: str) -> list[str]:
    """The addresses of other hosts that a browser would fetch for a file of the site."""
    scripts: list[str] = []
    found: list[str] = []
    if name.endswith((".html", ".svg")):
        scripts = SCRIPT.findall(text)
        found += FETCHING_TAG.findall(text)
    if name.endswith((".html", ".svg", ".css")):
        found += FETCHING_STYLE.findall(text)
    if name.endswith(".js") and not name.endswith("search_index.js"):  # the index is text to be searched
        scripts = [text]
    for script in scripts:
        found += NAMED_IN_SCRIPT.findall(re.sub(r"/\*.*?\*/", "", script, flags=re.DOTALL))
    return [address for address in found if not address.startswith(NAMESPACES)]


def test_a_browser_fetches_nothing_from_another_host(site):
    files = [file for kind in ("html", "css", "js", "svg") for file in site.rglob(f"*.{kind}")]
    assert len(files) > len(PAGES)
    assert {file.relative_to(site): found for file in files if (found := fetched(file.name, read(file)))} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<img alt="" src="https://example.org/a.png">'),
        ("a.html", "<img src=//example.org/a.png>"),
        ("a.html", '<link rel="stylesheet" href="https://fonts.googleapis.com/css?family=Roboto">'),
        ("a.html", '<link rel="preconnect" href="https://fonts.gstatic.com" crossorigin>'),
        ("a.html", '<script src="https://unpkg.com/iframe-worker/shim"></script>'),
        ("a.html", '<script>import("https://cdn.example.org/mermaid.mjs")</script>'),
        ("a.html", '<div style="background: url(https://example.org/a.png)">'),
        ("a.svg", '<image xlink:href="https://example.org/a.png"/>'),
        ("a.css", '@import "https://example.org/a.css";'),
        ("a.css", "src: url('//example.org/a.woff2')"),
        ("a.js", 'load("https://unpkg.com/mermaid@11/dist/mermaid.min.js")'),
        ("a.js", "get(`https://api.github.com/repos/${name}`)"),
    ],
)
def test_what_would_be_fetched_is_noticed(name, text):
    assert len(fetched(name, text)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<a href="https://example.org/paper.pdf">the paper</a>'),
        ("a.html", '<svg xmlns="http://www.w3.org/2000/svg"></svg>'),
        ("a.html", '<script src="assets/javascripts/bundle.js"></script>'),
        ("a.css", "src: url(../a.woff2)"),
        ("a.js", "/*! https://example.org/licence */ a = b"),
    ],
)
def test_links_to_read_are_no_fault(name, text):
    assert fetched(name, text) == []


def test_the_site_can_be_searched_from_a_disk(site):
    page = read(site / "index.html")
    assert 'src="assets/iframe-worker.js"' in page
    assert "What do I need to know about my noise" in read(site / "search" / "search_index.js")
