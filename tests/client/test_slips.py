"""A study on a server asks about results that stand out, and lets its clients take results back, as one here does."""

import pytest

import surepick as sp
from surepick.errors import UnusualResult


@pytest.fixture
def study(server):
    arms = sp.Arms(ids=["a", "b", "c"])
    goal = {"epsilon": 0.5, "delta": 0.1, "noise": "subgaussian:1", "evidence": "carried"}
    policy = sp.make_policy("certified-independent", arms, **goal)  # one slip is no answer: another round is open
    return sp.create_study(str(server.base_url), "paint", policy, surplus="count")  # repeats within a round


def test_results_that_stand_out_are_asked_about(study):
    study.ask()
    with pytest.raises(UnusualResult, match="of 'a' stands out") as asked:
        study.tell(["a", "b", "a"], [1.0, 2.0, -999.0], ["k1", "k2", "k3"])
    assert asked.value.rows == (0, 2)
    assert study.tell(["a", "a"], [1.0, -999.0], ["k1", "k3"], accept_unusual=True).counted == 2
    with pytest.raises(UnusualResult):
        study.tell_totals(["b", "b"], [1, 1], [1.0, 500.0], [1.0, 250000.0], ["k4", "k5"])


def test_results_are_taken_back(study):
    study.ask()
    study.tell(["a"], [1.0], ["k1"])
    assert study.undo(["k1"], reason="wrong line") == ["a"]
    assert study.tell(["a"], [2.0], ["k1"]).counted == 1
    assert study.undo() == ["a"]
    with pytest.raises(sp.OutOfTurn, match="left to undo"):
        study.undo()


def test_what_was_read_takes_the_place_of_what_was_typed(study):
    batch = study.ask()
    study.tell(batch, [1.0, 20.0, 3.0], ["k1", "k2", "k3"], accept_unusual=True)
    assert study.recommend() == "b"
    done = study.correct("k2", 2.0, reason="wrong line")
    assert (done.id, done.typed, done.read, done.waits) == ("b", 20.0, 2.0, 2)
    study.abandon("independent-of-value")
    assert study.recommend() == "c"
    assert study.correct("b", 2.5, typed=2.0).typed == 2.0
    with pytest.raises(sp.InvalidInput, match="no result has the key"):
        study.correct("k9", 2.0)
