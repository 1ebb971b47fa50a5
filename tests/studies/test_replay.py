"""A log is folded once for each answer, and a state that was computed is not read back."""

import json
import sqlite3

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app
from surepick.policies.mixtures import MixtureElimination
from surepick.studies import replay

MEANS = {"a": 0.9, "b": 0.2, "c": 0.5}


@pytest.fixture
def url(sqlite_url) -> str:
    """A study that was carried out to its end."""
    arms = sp.Arms([[0.0], [1.0], [2.0]], tuple(MEANS))
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.05, noise=sp.Bounded(0, 1))
    measure(sp.create_study(sqlite_url, "paint", arms, policy))
    return sqlite_url


def measure(study: sp.Study) -> int:
    """Until it stops; how many plans that took."""
    plans = 0
    while (plan := study.ask()) is not None:
        ids = [name for name, pulls in plan.table() for _ in range(pulls)]
        study.tell(ids, [MEANS[name] for name in ids])
        plans += 1
    return plans


def counted(monkeypatch) -> list[int]:
    """The rounds of the plans that certified-independent is told from now on."""
    told: list[int] = []
    tell = MixtureElimination.tell

    def counting(self, state, plan, seen):
        told.append(plan.round)
        return tell(self, state, plan, seen)

    monkeypatch.setattr(MixtureElimination, "tell", counting)
    return told


def certificate(url, *words):
    return CliRunner().invoke(app, ["certificate", url, "paint", *map(str, words)])


@pytest.mark.cases(2)
@pytest.mark.parametrize("words", [(), ("--format", "json"), ("--out", "answer.json")], ids=["text", "json", "file"])
def test_a_certificate_folds_the_log_once(url, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    plans = len(sp.open_study(url, "paint").trace)
    told = counted(monkeypatch)
    result = certificate(url, *words)
    assert result.exit_code == 0, result.output
    last = [] if "--format" in words else [plans]  # the picture asks what decided in the last plan
    assert told == [*range(1, plans + 1), *last]


def test_both_folds_give_the_same_document(url, tmp_path):
    certificate(url, "--out", tmp_path / "answer.json")
    sp.write_certificate(sp.open_study(url, "paint"), tmp_path / "other.json", name="paint")
    assert (tmp_path / "answer.json").read_text() == (tmp_path / "other.json").read_text()
    assert json.loads((tmp_path / "answer.json").read_text())["verdict"] == "certified"


def test_the_one_replay_finds_what_does_not_follow(url, tmp_path):
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute("UPDATE observation SET sum = sum + 0.001 WHERE plan = 1 AND arm = 0")
    connection.close()
    result = certificate(url, "--out", tmp_path / "answer.json")
    assert isinstance(result.exception, sp.StorageError)
    assert not (tmp_path / "answer.json").exists()


def test_a_state_that_was_computed_here_is_not_read_back(sqlite_url, monkeypatch):
    read: list[type] = []
    decode = replay.from_json

    def reading(kind, text):
        read.append(kind)
        return decode(kind, text)

    monkeypatch.setattr(replay, "from_json", reading)
    arms = sp.Arms([[0.0], [1.0], [2.0]], tuple(MEANS))
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.05, noise=sp.Bounded(0, 1))
    study = sp.create_study(sqlite_url, "paint", arms, policy)
    assert measure(study) > 2
    assert read == []
    assert sp.open_study(sqlite_url, "paint").certificate() == study.certificate()
    assert len(read) == 1  # another process, as it were: it reads the last state
