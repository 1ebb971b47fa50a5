"""The best arm that keeps a bound: wrong answers at most delta, whatever candidates are tested.

Counts are held against exact binomial bounds; the saboteurs show that they would notice.
"""

import pytest
from bounds import failures_allowed
from budgets import STUDIES
from constrained_studies import INSTANCES, Careless, Hostile, Nobody, ShiftedHostile, ShiftedNobody, wrong_studies

RUNS = [
    (20, 0.05),
    *(pytest.param(*each, marks=pytest.mark.slow) for each in [(20, 0.3), (STUDIES, 0.05), (STUDIES, 0.3)]),
]


@pytest.mark.cases(3)
@pytest.mark.parametrize(("runs", "delta"), RUNS)
@pytest.mark.parametrize("instance", INSTANCES)
def test_bad_candidates_only(instance, delta, runs):
    player = Nobody if instance == "none_but_one" else Hostile
    wrong, allowed = wrong_studies(instance, runs, delta, player), failures_allowed(runs, delta)
    print(f"\n{instance}, delta {delta:g}: {wrong} wrong of {runs}, {allowed} allowed")
    assert wrong <= allowed


@pytest.mark.cases(3)
@pytest.mark.parametrize("instance", INSTANCES)
def test_bets_against_more_than_is_said_are_caught(instance):
    player = ShiftedNobody if instance == "none_but_one" else ShiftedHostile
    assert wrong_studies(instance, 60, 0.05, player) > failures_allowed(60, 0.05)


def test_arms_that_do_not_share_delta_are_caught():
    """Any arm may be the answer, so any may be wrongly believed to keep its bound."""
    assert wrong_studies("tempting", 60, 0.3, Careless, num_arms=20) > failures_allowed(60, 0.3)
