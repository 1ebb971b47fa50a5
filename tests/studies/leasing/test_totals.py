"""Totals answer leases too; results of before the study change nothing."""

import pytest
from leased_studies import SECRET, finish, make_study, tell_rest

import surepick as sp


def test_totals_answer_leases_too(study):
    study.lease(worker="ann")
    receipt = study.tell_totals(["a", "b", "a"], [2, 3, 1], [3.0, 0.75, 1.5], keys=["m1", "m2", "m3"], worker="ann")
    assert (receipt.counted, receipt.closed) == (3, False)
    assert study.lease(worker="ann").counts.tolist() == [0, 0, 3]
    assert study.tell_totals(["b"], [3], [0.75], keys=["m2"]).repeated == 1
    with pytest.raises(sp.InvalidInput, match="key 'm2' was reported before with another value"):
        study.tell_totals(["b"], [2], [0.75], keys=["m2"])
    assert study.tell_totals(["c", "a"], [3, 0], [0.0, 0.0]).closed


def test_totals_of_a_closed_plan_are_late(study):
    study.lease(max_pulls=3, worker="ann")
    tell_rest(study)
    study.ask()
    assert study.tell_totals(["a"], [3], [SECRET], worker="ann").late == 1


def test_results_of_before_change_nothing(clock):
    """Told at any time, of any arm, they are kept apart: not one bit of what follows depends on them."""

    def told(rewards) -> sp.Study:
        study = make_study(clock)
        for _ in range(2):
            if rewards:
                receipt = study.tell_prior(["a", "c"], rewards, worker="old lab")
                assert (receipt.prior, receipt.counted) == (2, 0)
            study.lease(worker="ann")
            tell_rest(study)
        finish(study)
        return study

    without, low, high = told(None), told([-SECRET, SECRET]), told([SECRET, -SECRET])
    assert without.certificate() == low.certificate() == high.certificate()
    assert without.trace == low.trace == high.trace
    assert low.progress().set_aside == (0, 4)
