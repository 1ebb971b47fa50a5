"""A long computation says so before it goes on: on the command line always, in a program where somebody listens."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from together import of_each
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app
from surepick.cli.output import noted
from surepick.core import arms


@pytest.fixture
def hasty(monkeypatch):
    """Everything takes long."""
    monkeypatch.setattr(arms, "LONG", 0.0)


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    numbers = rng.standard_normal((40, 6))
    path = tmp_path / "table.csv"
    lines = [",".join(f"{x:.6f}" for x in row) for row in numbers]
    path.write_text("a,b,c,d,e,y\n" + "\n".join(lines) + "\n")
    return path


def heard(*words: object) -> str:
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, list(map(str, words)))
    assert result.exit_code in (0, 3), result.output
    return result.stderr


def test_a_program_hears_the_seconds(hasty, caplog):
    with caplog.at_level(logging.INFO, logger="surepick"):
        sp.solve_design(np.random.default_rng(0).standard_normal((40, 5)))
    (said,) = caplog.records
    assert "40 distinct candidates in 5 directions" in said.getMessage()
    assert said.seconds > 0.0


def test_short_computations_are_not_announced(caplog):
    with caplog.at_level(logging.INFO, logger="surepick"):
        sp.solve_design(np.random.default_rng(0).standard_normal((40, 5)))
    assert not caplog.records


def test_a_program_that_does_not_listen_hears_nothing(hasty, capfd):
    sp.solve_design(np.random.default_rng(0).standard_normal((40, 5)))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--reward", "y", "--noise", "subgaussian:0.5", "--norm-bound", 3, "--epsilon", 0.5),
        ("design", "--features", "a,b,c,d,e"),
    ],
)
def test_every_command_that_designs_says_so_before_it_answers(hasty, table, words):
    said = heard(words[0], table, *words[1:])
    assert "note: Designing a batch for 40 distinct candidates in 5 directions takes long" in said
    assert "About 0 s to go." in said


def test_commands_in_a_hurry_say_nothing(table):
    assert "takes long" not in heard("design", table, "--features", "a,b,c,d,e")


def test_only_a_much_longer_wait_is_announced_again(capsys):
    with noted():
        for seconds in (10.0, 30.0, 40.0, 59.0, 61.0, 500.0):
            arms.announce(seconds, "Long.")
    assert capsys.readouterr().err == (
        "note: Long. About 30 s to go.\nnote: Long. About 60 s to go.\nnote: Long. About 8 min to go.\n"
    )


@of_each(("seconds", "words"), [(31.0, "30 s"), (99.0, "100 s"), (290.0, "5 min"), (7200.0, "2 h")])
def test_durations_are_spoken(seconds, words):
    assert arms.spoken(seconds) == words
