"""A table of candidates, and the process of the command line."""

import sys
from pathlib import Path

import pytest

from surepick.cli.app import main


@pytest.fixture(autouse=True)
def one_study_of_equals(monkeypatch):
    """What the worst case costs is asked in tests/forecasts: here one study of equal candidates says it, not eight."""
    monkeypatch.setattr("surepick.forecasts.simulated_studies.EQUAL_STUDIES", 1)


@pytest.fixture
def table(tmp_path) -> Path:
    """Three candidates with two repeats each; c is best, a smallest."""
    path = tmp_path / "paint.csv"
    path.write_text("colour,red,blue,gloss\na,1,0,0.1\na,1,0,0.2\nb,0,1,0.5\nb,0,1,0.4\nc,1,1,0.9\nc,1,1,1.0\n")
    return path


@pytest.fixture
def run_main(monkeypatch, capsys):
    """`main` with these words: (exit code, standard output, standard error)."""

    def run(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    return run
