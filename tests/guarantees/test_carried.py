"""Evidence that is carried on keeps delta: on hard instances, under hostile steering, with lost results.

Counts of wrong certificates are held against exact binomial bounds at delta = .1; `test_carried_saboteurs.py` shows
that they would notice, at the same numbers of trials. docs/prove.md has the figures of 10,000.
"""

import pytest
from bounds import failures_allowed
from carried_studies import (
    BIASED,
    CANDIDATES,
    DELTA,
    FEW_IN_THE_PLANE,
    LOOKS,
    PAIRS,
    RIVALS,
    STUDIES,
    fooled_by_bias,
    fooled_in_the_plane,
    fooled_without_features,
    lost_at_random,
    settled_wrongly,
    slippage,
    wrong_answers,
)


def some_and_all(runs: int) -> pytest.MarkDecorator:
    """So many in `make test`, 10,000 in `make prove`."""
    return pytest.mark.parametrize("runs", [runs, pytest.param(10_000, marks=pytest.mark.slow)])


pairs = pytest.mark.parametrize(("runs", "looks"), [(PAIRS, LOOKS), pytest.param(10_000, 200, marks=pytest.mark.slow)])


def assert_kept(what: str, wrong: int, runs: int) -> None:
    print(f"\n{what}: {wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong <= failures_allowed(runs, DELTA)


@some_and_all(STUDIES)
@pytest.mark.parametrize(("num_arms", "sigma"), [(5, 0.5), (50, 0.3)])
def test_the_best_arm_hidden_among_equals(num_arms, sigma, runs):
    assert_kept(f"one of {num_arms} arms", wrong_answers(slippage(num_arms, sigma), runs), runs)


@some_and_all(STUDIES)
@pytest.mark.parametrize("best", [1.0, 100.0])
def test_the_best_arm_hidden_among_equals_at_another_price(best, runs):
    """Plans avoid a dear best arm, and a dear candidate against a cheap one."""
    costs = [best, 10.0, 1.0, 100.0, 30.0]
    wrong = wrong_answers(slippage(5, 0.5, costs=costs), runs)
    assert_kept(f"one of 5 arms, the best one at {best:g}", wrong, runs)


@some_and_all(STUDIES)
def test_two_arms_looked_at_after_every_pull_of_each(runs):
    assert_kept("two arms, pull by pull", wrong_answers(slippage(2, 1.0), runs, largest_batch=1), runs)


@some_and_all(CANDIDATES)
def test_bad_candidates_only_another_after_each_batch(runs):
    assert_kept("bad candidates in turn", fooled_without_features(runs), runs)


@some_and_all(CANDIDATES)
def test_bad_candidates_only_and_new_starts_without_end(runs):
    wrong = fooled_without_features(runs, batches=40, hopeless=-1.0)
    assert_kept("bad candidates in turn, new starts", wrong, runs)


@some_and_all(FEW_IN_THE_PLANE)
def test_bad_candidates_only_in_the_plane(runs):
    assert_kept("bad candidates in turn, in the plane", fooled_in_the_plane(runs), runs)


@some_and_all(BIASED)
@pytest.mark.parametrize("gamma", [0.4, 0.75])
def test_the_best_arm_hidden_by_misspecification_at_its_bound(gamma, runs):
    """The candidate looks better than the best arm, which is never pulled."""
    assert_kept(f"hidden by a bias of {gamma}", fooled_by_bias(runs, gamma=gamma), runs)


@pytest.mark.cases(3)
@pairs
@pytest.mark.parametrize("name", RIVALS)
def test_pairs_looked_at_after_every_pull(name, runs, looks):
    """Every rival is better than the candidate by just over epsilon, so each is a trial of its own."""
    assert_kept(f"pairs, {name}", settled_wrongly(RIVALS[name], runs, looks=looks), runs)


@pairs
@pytest.mark.parametrize("name", ["normal", "rare bernoulli"])
def test_pairs_of_which_a_fifth_of_the_results_is_lost_at_random(name, runs, looks):
    wrong = settled_wrongly(RIVALS[name], runs, looks=looks, lost=lost_at_random)
    assert_kept(f"pairs, {name}, lost results", wrong, runs)
