"""The pictures of the documents are what their script draws, and all can read them."""

import importlib.util
import re
import tomllib
from types import ModuleType

import pytest
from built_site import DOCS, PAGES, ROOT, read

PICTURES = DOCS / "pictures"


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
    contracts = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    stacks = {contract["name"]: contract["layers"] for contract in contracts if contract["type"] == "layers"}
    others, library = stacks["the library does without the server and the experiments"]
    assert library == "surepick"
    layers = [others, *stacks["the direction of dependence"]]
    kept = [{name.strip().removeprefix("surepick.") for name in layer.split("|")} for layer in layers]
    assert [{name for name, _ in floor} for floor in DRAWING.FLOORS] == kept


def test_the_picture_of_the_rounds_shows_the_small_example():
    rounds = re.findall(r"^round \d+: (\d+) tastings, .* off by at most ([\d.]+)$", read(DOCS / "concepts.md"), re.M)
    assert tuple(int(tasted) for tasted, _ in rounds) == DRAWING.BREADS_TASTED
    assert tuple(float(gap) for _, gap in rounds) == DRAWING.BREADS_GAPS


@pytest.mark.parametrize("page", ["concepts.md", "index.md"])
def test_the_picture_of_the_rounds_is_described_in_its_numbers(page):
    (told,) = re.findall(r"!\[([^]]*)\]\(pictures/rounds\.svg\)", read(DOCS / page))
    assert f"{len(DRAWING.BREADS_GAPS)} rounds" in told
    assert f"{DRAWING.BREADS_GAPS[-1]:.2f}, after {sum(DRAWING.BREADS_TASTED)} tastings" in told


def test_the_picture_of_peeking_passes_the_limit_and_comes_back():
    scores = DRAWING.peeking_walk()
    assert max(scores) > DRAWING.LIMIT > scores[-1]
