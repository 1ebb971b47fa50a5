"""The page on adding a question: the package that it writes, installed, has its name on the command line."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from page_blocks import blocks
from typer.testing import CliRunner

from surepick.cli.app import app
from surepick.questions import question_names

PAGE, DOCS = "docs/examples/add_a_question.md", Path(__file__).parents[2] / "docs"
FILES = {block.file: block.text for block in blocks(PAGE) if block.file}
COMMANDS = [command for block in blocks(PAGE) for command in block.commands if command[0].startswith("surepick")]


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as an installer leaves it."""
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    told = tmp_path / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.3\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{one} = {what}\n" for one, what in named.items()) for group, named in groups]
    (told / "entry_points.txt").write_text("".join(lines))
    (tmp_path / "within.py").write_text(FILES["within.py"])
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("within", None)


def test_a_question_takes_sixty_lines():
    assert 30 < len([line for line in FILES["within.py"].splitlines() if line.strip()]) <= 60


@pytest.mark.usefixtures("installed")
def test_the_command_line_asks_it(monkeypatch):
    assert "within" in question_names()
    monkeypatch.chdir(DOCS / "examples")
    ((command, shown),) = COMMANDS
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, shlex.split(command)[1:])
    assert result.exit_code == 0, result.output
    assert [line.rstrip() for line in result.output.rstrip().splitlines()] == shown.splitlines()
    assert re.search(r"^The truth is known here: no candidate is on a wrong list\.$", result.output, re.MULTILINE)
