"""A study of test items in a database, driven by the command line."""

import sys

import pytest

from surepick.cli.app import main


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
        assert "Traceback" not in captured.err
        return captured.err.partition("error: ")[2].strip()

    return run
