"""The documentation site: it builds without a warning, fetches nothing, loses no text, and its links hold."""

import contextlib
import fcntl
import importlib.util
import inspect
import io
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from html import unescape
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import numpy as np
import pytest
from fresh_modules import run_fresh
from markdown_it import MarkdownIt

import surepick as sp
from surepick.policies.registry import ENTRIES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PICTURES = DOCS / "pictures"

# --- the build


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once, whichever process of the tests comes first; with a network that does not answer."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder, said = shared / "site", shared / "site.txt"
    with (shared / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not said.exists():
            nowhere = {"http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
            built = subprocess.run(
                [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
                cwd=ROOT,
                env=os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"},
                capture_output=True,
                text=True,
                check=False,
            )
            said.write_text(f"{built.returncode}{built.stdout}{built.stderr}", encoding="utf-8")
    assert said.read_text(encoding="utf-8") == "0", "the site does not build without a word"
    return folder


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


def test_nothing_is_installed_by_a_name_that_no_index_knows():
    files = [ROOT / "README.md", *PAGES, *DOCS.rglob("*.py")]
    assert [file.name for file in files if re.search(r"pip install [^\n]*\bsurepick\b", read(file))] == []
    assert "pip install '.[studies,tables,reports]'" in read(DOCS / "install.md")


def test_no_page_names_a_folder_of_the_machine_that_built_it(site):
    for page in built_pages(site):
        assert str(ROOT) not in read(page)


# --- nothing is fetched from another host

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


# --- what is built says what a code host shows


def plain(html: str) -> str:
    """The text of a page without its white space."""
    text = re.sub(r"<!--.*?-->", "", html, flags=re.DOTALL)
    return re.sub(r"\s+", "", unescape(re.sub(r"<[^>]*>", "", text)))


def hand_written() -> list[Path]:
    return [page for page in PAGES if page.parent.name != "reference"]


@pytest.mark.parametrize("page", hand_written(), ids=lambda page: page.stem)
def test_a_page_says_the_same_here_and_on_a_code_host(page, site):
    there = MarkdownIt("commonmark").enable("table").render(read(page))
    here = body(site / page.relative_to(DOCS).with_suffix(".html"))
    assert plain(re.sub(r'<a class="headerlink".*?</a>', "", here)) == plain(there)


# --- the reference


def public_names() -> Iterator[str]:
    yield from (name for name in sp.__all__ if not inspect.ismodule(getattr(sp, name)))
    yield from sp.environments.__all__
    yield from sp.bench.datasets.__all__


def named_elsewhere() -> Iterator[tuple[str, str]]:
    """(name, where) of the second table of the reference: what is not at the top."""
    for row in re.findall(r"^\| \[.*?\| (.*?) \| `(s[\w.]+)` \|$", read(DOCS / "reference" / "index.md"), re.MULTILINE):
        yield from ((name, row[1]) for name in re.findall(r"`(\w+)`", row[0]))


def references(site: Path) -> dict[str, str]:
    """Public name -> its entry in the reference."""
    found = {}
    for page in (site / "reference").glob("*.html"):
        parts = re.split(r'<h2 id="(surepick[\w.]*)"', body(page))
        found |= {path.rpartition(".")[2]: text for path, text in zip(parts[1::2], parts[2::2], strict=True)}
    return found


def test_every_public_name_has_an_entry_in_the_reference(site):
    entries = references(site)
    classes = {entry.record().__name__ for entry in ENTRIES.values()}
    rules = {entry.rule.__name__ for entry in ENTRIES.values() if entry.rule}
    assert {*public_names(), *classes, *rules, *(name for name, _ in named_elsewhere())} == set(entries)
    for name, entry in entries.items():
        assert len(plain(entry)) > 2 * len(name), f"{name} has no text"


def test_the_reference_lists_every_public_name():
    listed = set(re.findall(r"`(\w+)`", read(DOCS / "reference" / "index.md")))
    assert set(public_names()) <= listed
    assert {name for name in vars(sp.errors) if name[0].isupper()} <= {*listed, "Any"}


def test_the_reference_says_where_a_name_is():
    elsewhere = list(named_elsewhere())
    assert len(elsewhere) > 40
    for name, where in elsewhere:
        assert hasattr(import_module(re.sub(r"^sp\.", "surepick.", where)), name), f"{where}.{name}"


def test_docstrings_are_rendered_section_by_section(site):
    entries = references(site)
    elimination = entries["CertifiedElimination"]
    assert "largest_batch:int|None=None" in plain(elimination)  # `@record` is known to make a dataclass
    assert re.search(r"<pre><span></span><code>.*?recommend c when every E_j", elimination, re.DOTALL)  # a formula
    assert "<strong>Source:</strong> ours, after Robbins" in elimination
    assert "<strong>Cost:</strong>" in entries["forecast"]
    assert "G=[LR^(1/2)][LR^(1/2)]'," in plain(entries["KernelEmbedding"])  # no link
    assert "h(x)-<psi_d(x),theta>=" in plain(entries["KernelEmbedding"])  # no element of the page


# --- links

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
        "[a](../src/surepick/noise.py)",
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


# --- pictures


def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw", PICTURES / "draw.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


DRAWING = drawing()
READABLE = {"#222222", "#8a8a8a", "#fdfdfb"}  # ink, faint ink, ground
OKABE_ITO = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"}


def test_the_script_draws_these_pictures():
    assert {f"{name}.svg" for name in DRAWING.PICTURES} == {file.name for file in PICTURES.glob("*.svg")}
    for name in DRAWING.PICTURES:
        assert DRAWING.svg(name) == read(PICTURES / f"{name}.svg")


@pytest.mark.parametrize("name", list(DRAWING.PICTURES))
def test_a_picture_has_a_ground_of_its_own_and_colours_that_all_can_tell_apart(name):
    text = read(PICTURES / f"{name}.svg")
    width, height = re.search(r'viewBox="0 0 (\d+) (\d+)"', text).groups()
    first = text.splitlines()[1]
    assert first.startswith(f'<rect x="0" y="0" width="{width}" height="{height}" fill="#fdfdfb"')
    assert {colour.lower() for colour in re.findall(r"#[0-9A-Fa-f]{6}", text)} <= OKABE_ITO | READABLE
    assert all(0 <= float(x) <= int(width) for x in re.findall(r'\bc?x\d?="([-\d.]+)"', text))
    assert all(0 <= float(y) <= int(height) for y in re.findall(r'\bc?y\d?="([-\d.]+)"', text))


def test_every_picture_is_shown_and_every_image_is_described():
    shown = [image for page in PAGES for image in re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", read(page))]
    assert {f"pictures/{name}.svg" for name in DRAWING.PICTURES} <= {file for _, file in shown}
    assert [file for words, file in shown if len(words.split()) < 4] == []


def test_the_picture_of_the_house_has_the_layers_that_imports_keep():
    (layers,) = (
        contract["layers"]
        for contract in tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    kept = [{name.strip().removeprefix("surepick.") for name in layer.split("|")} for layer in layers]
    assert [{name for name, _ in floor} for floor in DRAWING.FLOORS] == kept


def test_the_picture_of_the_rounds_shows_the_small_example():
    rounds = re.findall(r"^round \d+: (\d+) tastings, .* still possible: (\d+)$", read(DOCS / "concepts.md"), re.M)
    assert tuple(int(tasted) for tasted, _ in rounds) == DRAWING.BREADS_TASTED
    assert tuple(int(left) for _, left in rounds) == DRAWING.BREADS_LEFT


def test_the_picture_of_peeking_passes_the_limit_and_comes_back():
    scores = DRAWING.peeking_walk()
    assert max(scores) > DRAWING.LIMIT > scores[-1]


# --- the pages that answer a question

QUESTIONS = ["noise", "which-policy", "cost", "looking", "resume", "verdict", "certificates"]
PROGRAM = re.compile(r"^```python\n(((?!^```).)*?)^```\n\nIt prints:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["noise", "verdict", "looking", "resume"])
def test_a_program_prints_what_its_page_shows(name, tmp_path, monkeypatch, sqlite_url):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    text = read(DOCS / f"{name}.md")
    programs = PROGRAM.findall(text)
    assert len(programs) == text.count("\nIt prints:\n") > 0
    for program, _, shown in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run_fresh(program)
        assert printed.getvalue() == shown


FITS = 94  # characters in a line of code, on a screen of 1280 pixels


@pytest.mark.parametrize("name", ["index", *QUESTIONS, "concepts"])
def test_the_lines_of_a_program_fit_on_a_page(name):
    programs = re.findall(r"^```python\n(.*?)^```$", read(DOCS / f"{name}.md"), re.MULTILINE | re.DOTALL)
    assert programs
    assert [line for program in programs for line in program.splitlines() if len(line) > FITS] == []


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose heading starts with a word."""
    table = re.search(rf"^\| {re.escape(first)}.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()]


def cost(
    name: str, arms: sp.Arms, means: np.ndarray, *, sigma: float = 0.5, epsilon: float = 0.1, **more: float
) -> float:
    """The forecast of the page: sigma .5, epsilon .1, delta .05 unless said."""
    options = {"delta": 0.05, "epsilon": epsilon, **more}
    policy = sp.make_policy(name, arms, noise=sp.SubGaussian(sigma), **options)
    return sp.forecast(policy, means=means, rehearsals=20 if arms.features.size else 200).total


def told(cell: str) -> float:
    return pytest.approx(float(cell.replace(",", "")), rel=0.2)  # two forecasts of 6 % each, twice


@pytest.mark.slow
def test_costs_are_what_the_page_says():
    text = read(DOCS / "cost.md")
    named = sp.Arms(ids=[str(number) for number in range(20)])
    first = sp.Arms(ids=named.ids[:10])
    for sigma, epsilon, delta, pulls in rows(text, "sigma"):
        settings = {"sigma": float(sigma), "epsilon": float(epsilon), "delta": float(delta)}
        assert cost("certified-independent", first, np.linspace(1, 0, 10), **settings) == told(pulls)
    sizes = re.search(r"^\| candidates, all with the same mean \|(.*)\|$", text, re.MULTILINE)[1].split("|")
    for size, pulls in zip(sizes, rows(text, "candidates, all")[0][1:], strict=True):
        some = sp.Arms(ids=named.ids[: int(size)])
        assert cost("certified-independent", some, np.zeros(int(size))) == told(pulls)


@pytest.mark.slow
def test_features_and_batches_cost_what_the_page_says():
    text = read(DOCS / "cost.md")
    sizes = re.search(r"^\| candidates \|(.*)\|$", text, re.MULTILINE)[1].split("|")
    plain_costs, linear_costs = rows(text, "candidates |")
    for size, plain_cost, linear_cost in zip(sizes, plain_costs[1:], linear_costs[1:], strict=True):
        features = np.random.default_rng(0).uniform(-1, 1, (int(size), 3))
        means = features @ [0.5, -0.3, 0.2]
        assert cost("certified-independent", sp.Arms(features), means) == told(plain_cost)
        for norm_bound in (1.0, 4.0) if int(size) == 40 else (1.0,):
            linear = cost("certified-linear", sp.Arms(features), means, norm_bound=norm_bound)
            assert linear == pytest.approx(float(linear_cost), rel=0.3)
        if int(size) == 40:
            said = re.search(r"at most 10, 40, 100 and 400 take ([\d,]+),\s+([\d,]+), ([\d,]+) and ([\d,]+),", text)
            for batch, pulls in zip((10, 40, 100, 400), said.groups(), strict=True):
                assert cost("certified-independent", sp.Arms(features), means, largest_batch=batch) == told(pulls)


@pytest.mark.slow
def test_a_wrong_noise_does_what_the_page_says():
    arms = sp.Arms(ids=list("ABCDE"))
    world = sp.environments.Environment(arms=arms, means=[0.11, 0, 0, 0, 0], noise=sp.SubGaussian(0.5))
    for declared, pulls, wrong, verdict in rows(read(DOCS / "noise.md"), "declared sigma"):
        sigma = float(declared.partition(",")[0])
        policy = sp.make_policy("certified-independent", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(sigma))
        runs = [sp.simulate(policy, world, seed=seed) for seed in range(300)]
        assert np.mean([run.pulls for run in runs]) == pytest.approx(float(pulls.replace(",", "")), rel=0.05)
        assert sum(not run.success for run in runs) == pytest.approx(int(wrong.split()[0]), abs=6)
        assert (verdict, {run.verdict for run in runs}) == ("always `certified", {"certified"})
