"""The sessions of the operating manual are what the commands do; only times and registration codes differ."""

import csv
import os
import re
import shlex
import sys
from pathlib import Path

import pytest
from fresh_modules import run_fresh
from typer.testing import CliRunner

from surepick.cli.app import app

ROOT = Path(__file__).parents[2]
MANUAL = (ROOT / "docs/studies.md").read_text(encoding="utf-8")
TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d [^;\s]+")
CODE = re.compile(r"\bsp1(-[a-z2-7]{4}){7}\b")
CLICK = "import sys\nfor _ in range(int(sys.argv[2])):\n    print(int(sys.argv[1] == 'B'))\n"


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder to work in, with the candidates of the manual."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "headlines.csv").write_text(tables()[0])
    (tmp_path / "click.py").write_text(CLICK)
    return tmp_path


def tables() -> list[str]:
    return re.findall(r"^```csv\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)


def sessions() -> list[tuple[str, str]]:
    """(command, what it prints) of the manual, in order."""
    blocks = re.findall(r"^```text\n(\$ surepick .*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
    return [
        (command, shown)
        for block in blocks
        for command, shown in re.findall(r"^\$ (surepick [^\n]*)\n(.*?)(?=^\$ |\Z)", block, re.MULTILINE | re.DOTALL)
    ]


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def run(command: str, expected: int = 0) -> str:
    words = [sys.executable if word == "python" else word for word in shlex.split(command, comments=True)[1:]]
    words = [word.replace("python click.py", f"{sys.executable} click.py") for word in words]
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    assert result.exit_code == expected, result.output
    return "".join(f"{line.rstrip()}\n" for line in result.stdout.rstrip().splitlines())


def without_times(text: str) -> list[str]:
    """The lines, but for what differs each time: times, and the code of the study."""
    return [line.rstrip() for line in CODE.sub("CODE", TIME.sub("TIME", text)).splitlines() if line.strip()]


def test_the_session_of_the_manual(folder):
    filled = False
    assert len(sessions()) >= 4
    for command, shown in sessions():
        if " tell " in command and not filled:
            asked = [(row["id"], row["key"]) for row in rows_of(folder / "todo.csv")]
            (folder / "todo.csv").write_text(tables()[1])
            told = [(row["id"], row["key"]) for row in rows_of(folder / "todo.csv")]
            assert told == asked
            filled = True
        printed = run(command)
        if shown.strip():
            assert without_times(printed) == without_times(shown)


def test_the_session_of_results_as_they_come(folder):
    (begin,) = re.findall(r"^```sh\n(surepick create [^`]*--judge as-they-come\n[^`]*)^```$", MANUAL, re.MULTILINE)
    (folder / "ovens.csv").write_text("id\n" + "".join(f"oven-{letter}\n" for letter in "ABCD"))
    for command in begin.replace("\\\n", "").splitlines():
        run(command)
    for file in (folder / "ann.csv", folder / "bob.csv"):
        rewards = {"oven-A": "7.5", "oven-B": "5.0", "oven-C": "4.5", "oven-D": "5.5"}
        rows = [f"{row['id']},{row['key']},{rewards[row['id']]}" for row in rows_of(file)]
        file.write_text("\n".join(["id,key,reward", *rows]) + "\n")
    for block in re.findall(r"^```console\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL):
        for command, shown in re.findall(r"^\$ (surepick [^\n]*)\n(.*?)(?=^\$ |\Z)", block, re.MULTILINE | re.DOTALL):
            assert set(without_times(shown)) <= set(without_times(run(command)))


def test_the_program_of_the_manual(folder):
    (command,) = re.findall(r"^```sh\n(surepick run-study sqlite[^\n]*)\n```$", MANUAL, re.MULTILINE)
    run(sessions()[0][0])
    assert "Recommended: B   certified" in run(command)


def test_the_python_of_the_manual(folder):
    (program,) = re.findall(r"^```python\n(.*?)^```$", MANUAL, re.MULTILINE | re.DOTALL)
    printed: list[object] = []
    run_fresh(program, {"print": lambda *values: printed.extend(values)})
    counted, closed, progress, verdict = printed
    assert (counted, closed, verdict) == (8, True, "not-yet")
    assert "round 2" in str(progress)


def test_every_command_that_the_manual_names_exists():
    named = set(re.findall(r"`surepick ([a-z-]+)", MANUAL))
    assert named >= {"ask", "status", "certificate", "run-study", "migrate", "abandon", "close", "export"}
    help_text = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["--help"]).output
    assert all(f" {name} " in help_text for name in named)


def test_the_files_that_the_manual_names_exist():
    for path in re.findall(r"\]\(([^)#]+)\)", MANUAL):
        assert (ROOT / "docs" / path).exists()
    assert (ROOT / "tests/guarantees/test_peeking.py").exists()
    assert os.access(ROOT / ".ci/run", os.X_OK)
