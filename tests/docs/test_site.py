"""The documentation site: it builds without a warning, and says what a code host shows."""

import re
from pathlib import Path

import pytest
from built_site import DOCS, PAGES, ROOT, body, built_pages, plain, read
from markdown_it import MarkdownIt

# --- the build


def test_the_site_has_every_page(site):
    for page in PAGES:
        assert (site / page.relative_to(DOCS).with_suffix(".html")).is_file()


def test_every_page_is_reached_from_the_navigation():
    navigation = read(ROOT / "mkdocs.yml").split("\nnav:\n")[1]
    named = re.findall(r"[\w/.-]+\.md", navigation)
    there = sorted(page.relative_to(DOCS).as_posix() for page in PAGES)
    assert sorted(named) == there, "the pages of docs/ and those under nav in mkdocs.yml differ"


def test_the_navigation_lists_the_scripts_of_the_examples(site):
    scripts = sorted((DOCS / "examples").glob("*.py"))
    for page, path in (("index", "examples/index.html"), ("examples/crossed-barrel", "index.html")):
        sidebar = read(site / f"{page}.html").split("<article")[0]
        listed = re.findall(rf'<a href="{path}#([\w-]+)" class="md-nav__link">', sidebar)
        assert len(listed) == len(scripts) >= 5
        for anchor, section in zip(listed, body(site / "examples/index.html").split("<h2 ")[1:], strict=True):
            assert section.startswith(f'id="{anchor}"')
            assert re.search(r'<a href="\w+\.py">', section)


def test_the_lines_of_a_table_stay_whole_and_others_are_broken(site):
    text = body(site / "examples/crossed-barrel.html")
    outputs = "".join(re.findall(r'<div class="language-text highlight">.*?</div>', text, re.DOTALL))
    whole = re.findall(r'<span class="columns"[^>]*>(.*?)</span>', outputs)
    rows = [line for line in outputs.splitlines() if re.search(r"\d {3,}\d|─", line)]
    assert len(whole) > len(rows) > 10
    assert all(line.startswith('<span class="columns">') for line in rows)
    assert not [line for line in whole if "this statement is wrong" in line]
    assert "this statement is wrong" in outputs
    checked = body(site / "certificates.html")  # what verify prints: a sentence in the last column
    assert '<span class="columns" style="--last: 42">holds  the decisions' in checked


def test_only_the_page_about_installing_speaks_of_folders_of_a_clone():
    files = [*PAGES, *DOCS.rglob("*.py")]
    lines = [(file.name, line) for file in files for line in re.findall(r"pip install [^\n`]*", read(file))]
    assert len(lines) > 20
    assert {name for name, line in lines if "packages/" in line} == {"install.md"}


def test_no_page_names_a_folder_of_the_machine_that_built_it(site):
    for page in built_pages(site):
        assert str(ROOT) not in read(page)


# --- what is built says what a code host shows


def hand_written() -> list[Path]:
    return [page for page in PAGES if page.parent.name != "reference"]


@pytest.mark.parametrize("page", hand_written(), ids=lambda page: page.stem)
def test_a_page_says_the_same_here_and_on_a_code_host(page, site):
    there = MarkdownIt("commonmark").enable("table").render(read(page))
    here = body(site / page.relative_to(DOCS).with_suffix(".html"))
    assert plain(re.sub(r'<a class="headerlink".*?</a>', "", here)) == plain(there)
