"""What the README shows is what happens."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from surepick.cli.app import app

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs_and_certifies():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.S)
    printed: list[object] = []
    exec(example, {"print": lambda *values: printed.extend(values)})
    best_arm, verdict, pulls = printed
    assert verdict == "certified"
    assert 0 <= int(str(best_arm)) < 200
    assert int(str(pulls)) > 0


def test_the_barrel_example_prints_what_the_readme_shows(shared_data: Path):
    command, shown = re.search(r"\$ surepick (run Crossed.*?)\n(600 candidates.*?)```", README, re.S).groups()
    arguments = command.replace("\\\n", " ").split()
    arguments[1] = str(shared_data / "pvlab" / arguments[1])
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [line.rstrip() for line in shown.splitlines()]


@pytest.mark.parametrize("target", ["demo", "test", "prove", "check"])
def test_every_make_target_named_exists(target):
    makefile = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert f"`make {target}`" in README or f"make {target} " in README
    assert re.search(rf"^{target}:", makefile, re.M)
