"""Lists keep delta where nobody knows the scales: variances from 1 to 100, means just beyond what may be said.

Counts are held against exact binomial bounds, mean shares against the bound of Hoeffding and Chernoff for numbers in
[0, 1]; the saboteurs show that they would notice.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed, shares_allowed, until_clear
from budgets import STUDIES
from normal_lists import wrong_shares

from surepick import estimators
from surepick.policies import tuning


def few_and_all(few: int) -> pytest.MarkDecorator:
    """(runs, delta): few at .05, which notice who is always wrong; as few at .3 would notice nobody."""
    every = [pytest.param(STUDIES, delta, marks=pytest.mark.slow) for delta in (0.05, 0.3)]
    return pytest.mark.parametrize(("runs", "delta"), [(few, 0.05), *every])


def wrong_lists(kind: str, runs: int, delta: float, **options) -> int:
    """Studies with some arm on a wrong list, `until_clear`."""
    return until_clear((share > 0.0 for share in wrong_shares(kind, runs, delta, **options)), runs, delta)


@pytest.mark.cases(4)
@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@pytest.mark.parametrize("kind", ["number", "control", "top", "good"])
@few_and_all(8)
def test_no_arm_is_on_a_wrong_list(kind, best, delta, runs):
    wrong = wrong_lists(kind, runs, delta, best=best)
    print(f"\n{kind}, {best}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@pytest.mark.cases(1)
@few_and_all(8)
def test_the_wrong_share_of_a_list_is_small_on_average(best, delta, runs):
    share = float(np.mean(list(wrong_shares("shares", runs, delta, best=best))))
    print(f"\nshares, {best}, delta {delta:g}: {share:.4f} of {runs}, {shares_allowed(runs, delta):.4f} allowed")
    assert share <= shares_allowed(runs, delta)


@pytest.mark.cases(4)
@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@pytest.mark.parametrize("kind", ["number", "control", "top", "good"])
@few_and_all(5)
def test_no_arm_is_on_a_wrong_list_with_features(kind, best, delta, runs):
    wrong = wrong_lists(kind, runs, delta, best=best, features=True)
    print(f"\n{kind}, {best}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", ["number", "control", "top", "good"])
@few_and_all(5)
def test_no_arm_is_on_a_wrong_list_with_features_and_batches_of_a_size(kind, delta, runs):
    wrong = wrong_lists(kind, runs, delta, best="noisiest", features=True, batch_size=9)
    print(f"\n{kind}, batches of 9, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


# --- saboteurs


def plug_in(past, failure, usual=estimators.normal_mgf_of_all):
    """The arms' own variances, taken for the truth."""
    own = np.maximum(past.squares - past.sums**2 / np.maximum(past.counts, 1), 1e-12) / np.maximum(past.counts - 1, 1)
    return replace(usual(past, failure), bounds=own, joint_bounds=own, variances=own)


@pytest.mark.parametrize("kind", ["number", pytest.param("shares", marks=pytest.mark.slow)])
def test_a_plug_in_scale_taken_for_the_truth_is_noticed(kind, monkeypatch):
    monkeypatch.setattr(estimators, "normal_mgf_of_all", plug_in)
    monkeypatch.setattr(tuning, "HEURISTIC_REPEATS", 2)
    runs, delta = 100, 0.01
    if kind == "number":
        assert wrong_lists(kind, runs, delta, best="quietest") > failures_allowed(runs, delta)
        return
    sums = itertools.accumulate(wrong_shares(kind, runs, delta, best="quietest"))
    assert any(found > runs * shares_allowed(runs, delta) for found in sums)  # no later share makes the sum smaller
