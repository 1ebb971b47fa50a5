"""A folder with a table of candidates, a study in it, and commands that must be refused."""

import sys

import pytest
from study_commands import Lab

from surepick.cli.app import main


@pytest.fixture
def lab(sqlite_url, tmp_path) -> Lab:
    return Lab(sqlite_url, tmp_path)


@pytest.fixture
def paint(lab) -> Lab:
    lab.create()
    return lab


@pytest.fixture
def refused(monkeypatch, capsys):
    """What the command says on standard error when it ends with this code, as a user meets it."""

    def run(*words, code=2) -> str:
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        assert end.value.code == code, captured
        assert captured.err.count("error: ") == 1
        assert captured.err.rstrip().endswith((".", ")", ']".', "?"))
        assert "Traceback" not in captured.err
        return captured.err.partition("error: ")[2]

    return run
