"""Answers told by item, in any order, late, or before they were asked."""

from __future__ import annotations

import pytest

import surepick as sp

RIGHT = {"a": "uvwx", "b": "uvy"}
LOST = [("a", "v"), ("a", "w")]  # without them either arm may be the best


def score(arm: str, item: str) -> float:
    return float(item in RIGHT[arm])


@pytest.fixture
def study(stored_at):
    """A study of 6 items; all answers are in but two of the best arm."""
    asked = {"epsilon": 0.05, "delta": 0.05, "noise": "bernoulli", "items": list("uvwxyz"), "first_batch": 6, "seed": 0}
    made = sp.create_study(stored_at, "short", sp.make_policy("certified-items", sp.Arms(ids=["a", "b"]), **asked))
    batch = made.ask()
    rows = zip(batch.pulls(), batch.item_ids, strict=True)
    for arm, item in sorted(set(rows) - set(LOST), reverse=True):
        assert made.tell([arm], [score(arm, item)], items=[item]).counted == 1
    return made


def test_an_answer_that_was_given_up_is_asked_at_the_end_though_it_came_late(study):
    study.abandon("independent-of-value")
    late = [study.tell(["a"], [1.0], items=["v"], plan=1) for _ in range(2)]
    assert [(receipt.late, receipt.repeated) for receipt in late] == [(1, 0), (0, 1)]
    with pytest.raises(sp.InvalidInput, match="with another value"):
        study.tell(["a"], [0.0], items=["v"], plan=1)
    asked = []
    while not study.stopped:
        batch = study.lease(worker="one")
        asked += zip(batch.pulls(), batch.item_ids, strict=True)
        assert study.tell(batch, [1.0] * batch.total).counted == batch.total > 0
    assert asked == LOST[:1]  # then "b" cannot be better
    assert study.recommend() == "a"
    assert study.certificate().pulls == 11


def test_a_prior_answer_leaves_its_item_to_be_asked(study):
    key = study.ask().keys()[0][1]
    assert [study.tell_prior(["a"], [1.0], [key]).prior for _ in range(2)] == [1, 0]
    assert sorted(study.ask().item_ids) == ["v", "w"]
    assert study.tell(["a", "a"], [1.0, 1.0], items=["v", "w"]).closed
    assert study.recommend() == "a"


def test_items_are_refused_where_they_say_nothing(study):
    with pytest.raises(sp.InvalidInput, match="without keys or batch"):
        study.tell(["a"], [1.0], ["mine"], items=["v"])
    with pytest.raises(sp.InvalidInput, match="without keys or batch"):
        study.tell(study.ask(), [1.0, 1.0], items=["v", "w"])
    draws = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), epsilon=0.1, delta=0.1, noise="bernoulli")
    )
    with pytest.raises(sp.InvalidInput, match="no test items"):
        draws.tell(["a"], [1.0], items=["v"])
