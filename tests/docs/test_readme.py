"""What the README says is so; test_examples.py compares what its commands print."""

import re
from pathlib import Path

import pytest
from fresh_modules import run_fresh

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs_and_certifies():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.S)
    printed: list[object] = []
    run_fresh(example, {"print": lambda *values: printed.extend(values)})
    best_arm, verdict, pulls = printed
    assert verdict == "certified"
    assert 0 <= int(str(best_arm)) < 200
    assert int(str(pulls)) > 0


@pytest.mark.parametrize("target", ["demo", "test", "prove", "check"])
def test_every_make_target_named_exists(target):
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert f"`make {target}`" in README or f"make {target} " in README
    assert re.search(rf"^{target}:", makefile, re.M)
