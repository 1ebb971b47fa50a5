"""What the README says is so; test_examples.py compares what its command prints."""

import re
from pathlib import Path

import pytest
from fresh_modules import run_fresh

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs_and_prints_what_it_says():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.S)
    printed: list[object] = []
    run_fresh(example, {"print": lambda *values: printed.extend(values)})
    assert " ".join(map(str, printed)) == re.search(r"^print\(.*\)  # (.*)$", example, re.M)[1]
    assert printed[1] == "certified"


def test_it_fits_on_one_screen():
    assert len(README.splitlines()) <= 70
    assert len(README) <= 3_500  # of which the picture of the candidates has 800


@pytest.mark.parametrize(
    ("target", "document"),
    [("demo", "README.md"), ("test", "README.md"), ("prove", "CONTRIBUTING.md"), ("check", "CONTRIBUTING.md")],
)
def test_every_make_target_named_exists(target, document):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"make {target} " in (ROOT / document).read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.M)
