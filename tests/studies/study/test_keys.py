"""Each key counts once; what is out of turn is refused."""

import numpy as np
import pytest
from small_studies import IDS, finish, make_study

import surepick as sp

# out of turn


def test_telling_before_asking_is_out_of_turn():
    study = make_study()
    for call in (
        lambda: study.tell(["a"], [1.0]),
        lambda: study.tell_totals(study.ids, [1, 0, 0, 0], [1, 0, 0, 0]),
        lambda: study.abandon("independent-of-value"),
    ):
        with pytest.raises(sp.OutOfTurn, match=r"call ask\(\) first"):
            call()


def test_telling_after_the_stop_is_out_of_turn():
    study = finish(make_study())
    before = study.certificate()
    with pytest.raises(sp.OutOfTurn, match="stopped; no more results are needed"):
        study.tell(["a"], [1.0])
    assert study.certificate() == before


# keys


def test_a_key_counts_once():
    study = make_study("action-elimination")
    study.ask()
    study.tell(["a", "b", "b"], [1.0, 2.0, 2.0], keys=["k1", "k2", "k2"])
    study.tell(["b", "a", "c"], [2.0, 1.0, 3.0], keys=["k2", "k1", "k3"])
    assert study.missing.tolist() == [0, 0, 0, 1]
    study.tell(["d"], [0.0], keys=["k4"])
    assert study.certificate().pulls == 4


def test_a_key_of_an_earlier_plan_is_not_counted_again():
    study = make_study("action-elimination")
    study.ask()
    study.tell(IDS, [1.0] * 4, keys=range(4))
    plan = study.ask()
    study.tell(IDS, [1.0] * 4, keys=range(4))
    assert study.ask() == plan
    np.testing.assert_array_equal(study.missing, plan.counts)


@pytest.mark.parametrize(("arm", "reward"), [("a", 1.5), ("b", 1.0)])
def test_a_key_told_again_with_something_else_is_refused(arm, reward):
    study = make_study("action-elimination")
    study.ask()
    study.tell(["a"], [1.0], keys=["k1"])
    with pytest.raises(sp.InvalidInput, match=r"key 'k1' was reported before.*a key names one result"):
        study.tell(["c", arm], [0.0, reward], keys=["k9", "k1"])
    assert study.missing.tolist() == [0, 1, 1, 1]


def test_keys_are_as_many_as_results():
    study = make_study()
    plan = study.ask()
    with pytest.raises(sp.InvalidInput, match="1 keys for 2 results"):
        study.tell([plan.table()[0][0]] * 2, [1.0, 2.0], keys=["k"])


def test_a_retry_after_the_plan_has_closed_is_welcome():
    """The client tells the last result, loses the answer, and tells it again."""
    study = make_study("action-elimination")
    study.ask()
    study.tell(IDS, [1.0] * 4, keys=range(4))
    study.tell(IDS, [1.0] * 4, keys=range(4))
    assert study.certificate().pulls == 4
