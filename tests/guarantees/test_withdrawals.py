"""Candidates that are withdrawn keep delta: by chance for each list, and for any reason while they still count.

Whoever goes because of results and is said not to breaks it: then data choose the best of those that are left.
`docs/changing-candidates.md` has the proof; 5,000 groups of each at both delta take ten minutes.
"""

import pytest
from bounds import failures_allowed
from changing_lists import (
    answers,
    at_random,
    keeps_the_unlucky,
    out_of_stock,
    settled_wrongly,
    whom_the_bad_arm_comes_nearest,
    world_of,
    wrongly_certified,
)

FEW_AND_MANY = [(0.3, 200), *[pytest.param(delta, 5_000, marks=pytest.mark.slow) for delta in (0.05, 0.3)]]
both = pytest.mark.parametrize(("delta", "runs"), FEW_AND_MANY)


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    print(f"\n{what} at delta {delta}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@both
def test_chance_says_who_stays(delta, runs):
    assert_kept("by chance", settled_wrongly(at_random, runs, delta=delta), runs, delta)


@both
def test_results_say_who_stays_and_all_still_count(delta, runs):
    wrong = settled_wrongly(whom_the_bad_arm_comes_nearest, runs, delta=delta, independent=False)
    assert_kept("because of results", wrong, runs, delta)


@both
def test_results_that_say_who_stays_are_noticed_if_they_are_denied(delta, runs):
    """The saboteur."""
    wrong = settled_wrongly(whom_the_bad_arm_comes_nearest, runs, delta=delta)
    print(f"\ndenied at delta {delta}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong > failures_allowed(runs, delta)


WORLDS = {
    "the unlucky one stays, and all still count": keeps_the_unlucky(6, honest=True),
    "out of stock": out_of_stock(0.05),
}


@pytest.mark.parametrize("runs", [20, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WORLDS)
def test_the_policy_steers_itself(name, runs):
    found = answers(world_of(6, 2), WORLDS[name], runs, delta=0.3)
    assert_kept(name, wrongly_certified(found), runs, 0.3)
    assert all(finished in ("certified", "single", "withdrawn") for finished, _, _ in found)
    assert any(gone for _, _, gone in found)
