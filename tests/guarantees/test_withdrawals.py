"""Candidates that come and go keep delta: who goes by chance for each list, for any reason while they still count.

Whoever goes because of results and is said not to breaks it: then data choose the best of those that are left.
`docs/changing-candidates.md` has the proof; 5,000 groups of each at both delta take ten minutes.
"""

import pytest
from bounds import failures_allowed
from budgets import STUDIES
from changing_lists import (
    added_wrongly,
    answers,
    at_random,
    keeps_the_unlucky,
    out_of_stock,
    settled_by_group,
    settled_wrongly,
    whom_the_bad_arm_comes_nearest,
    world_of,
    wrongly_certified,
)

from surepick.policies.base import threshold_of
from surepick.policies.carried.situation import DecisionContext

FEW_AND_MANY = [(0.3, 160), *[pytest.param(delta, STUDIES, marks=pytest.mark.slow) for delta in (0.05, 0.3)]]
both = pytest.mark.parametrize(("delta", "runs"), FEW_AND_MANY)
lists = pytest.mark.parametrize(  # after 30 looks somebody goes; in 100 the saboteur is noticed
    ("delta", "runs", "looks"),
    [(0.3, 160, 100), *[pytest.param(delta, STUDIES, 200, marks=pytest.mark.slow) for delta in (0.05, 0.3)]],
)


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    print(f"\n{what} at delta {delta}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@lists
def test_chance_says_who_stays(delta, runs, looks):
    assert_kept("by chance", settled_wrongly(at_random, runs, delta=delta, looks=looks), runs, delta)


@lists
def test_results_say_who_stays_and_all_still_count(delta, runs, looks):
    wrong = settled_wrongly(whom_the_bad_arm_comes_nearest, runs, delta=delta, independent=False, looks=looks)
    assert_kept("because of results", wrong, runs, delta)


@lists
def test_results_that_say_who_stays_are_noticed_if_they_are_denied(delta, runs, looks):
    """The saboteur."""
    wrong = settled_wrongly(whom_the_bad_arm_comes_nearest, runs, delta=delta, looks=looks)
    print(f"\ndenied at delta {delta}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong > failures_allowed(runs, delta)


WORLDS = {
    "the unlucky one stays, and all still count": keeps_the_unlucky(6, honest=True),
    "out of stock": out_of_stock(0.05),
}


@pytest.mark.parametrize("runs", [14, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WORLDS)
def test_the_policy_steers_itself(name, runs):
    found = answers(world_of(6, 2), WORLDS[name], runs, delta=0.3)
    assert_kept(name, wrongly_certified(found), runs, 0.3)
    assert all(finished in ("certified", "single", "withdrawn") for finished, _, _ in found)
    assert any(gone for _, _, gone in found)


# --- candidates that come

GROUPS = 4


@both
def test_each_group_that_comes_keeps_its_share(delta, runs):
    settled = settled_by_group(runs, delta=delta, groups=GROUPS, share=0.9)
    shares = [0.1, *[0.9 / GROUPS] * GROUPS]
    for group, share in enumerate(shares):
        assert_kept(f"group {group}", int(settled[group].sum()), runs, delta * share)
    assert_kept("any group", int(settled.any(axis=0).sum()), runs, delta)


@both
def test_groups_that_all_have_the_whole_of_delta_are_noticed(delta, runs, monkeypatch):
    """The saboteur: somebody adds candidates until one of them is believed to be no better."""
    monkeypatch.setattr(DecisionContext, "thresholds", lambda self, _: threshold_of(self.problem))
    wrong = int(settled_by_group(runs, delta=delta, groups=GROUPS).any(axis=0).sum())
    print(f"\nall of delta {delta} for each group: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong > failures_allowed(runs, delta)


@pytest.mark.parametrize("runs", [20, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("good", [True, False])
def test_somebody_adds_when_a_bad_arm_looks_good_or_bad(runs, good):
    """The best arm comes when the leader of three bad ones is ahead of the others, or behind what it was."""
    wrong = added_wrongly(runs, delta=0.3, when_good=good)
    assert_kept(f"added when it looks {'good' if good else 'bad'}", wrong, runs, 0.3)
