"""Lists keep delta where nobody knows the scales: variances from 1 to 100, means just beyond what may be said.

Counts are held against exact binomial bounds, mean shares against the bound of Hoeffding and Chernoff for numbers in
[0, 1]; the saboteurs show that they would notice.
"""

from dataclasses import replace

import numpy as np
import pytest
from bounds import failures_allowed, shares_allowed
from normal_lists import wrong_shares

from surepick import estimators
from surepick.policies.questions import elimination


def few_and_all(few: int) -> pytest.MarkDecorator:
    """(runs, delta): few at .05, which notice who is always wrong; as few at .3 would notice nobody."""
    every = [pytest.param(5_000, delta, marks=pytest.mark.slow) for delta in (0.05, 0.3)]
    return pytest.mark.parametrize(("runs", "delta"), [(few, 0.05), *every])


@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@pytest.mark.parametrize("kind", ["number", "control", "top", "good"])
@few_and_all(8)
def test_no_arm_is_on_a_wrong_list(kind, best, delta, runs):
    wrong = int(np.count_nonzero(wrong_shares(kind, runs, delta, best=best)))
    print(f"\n{kind}, {best}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@few_and_all(8)
def test_the_wrong_share_of_a_list_is_small_on_average(best, delta, runs):
    share = float(wrong_shares("shares", runs, delta, best=best).mean())
    print(f"\nshares, {best}, delta {delta:g}: {share:.4f} of {runs}, {shares_allowed(runs, delta):.4f} allowed")
    assert share <= shares_allowed(runs, delta)


@pytest.mark.parametrize("best", ["noisiest", "quietest"])
@pytest.mark.parametrize("kind", ["number", "control", "top", "good"])
@few_and_all(5)
def test_no_arm_is_on_a_wrong_list_with_features(kind, best, delta, runs):
    wrong = int(np.count_nonzero(wrong_shares(kind, runs, delta, best=best, features=True)))
    print(f"\n{kind}, {best}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


# --- saboteurs


def plug_in(past, failure, usual=estimators.normal_mgf_of_all):
    """The arms' own variances, taken for the truth."""
    own = np.maximum(past.squares - past.sums**2 / np.maximum(past.counts, 1), 1e-12) / np.maximum(past.counts - 1, 1)
    return replace(usual(past, failure), bounds=own, joint_bounds=own, variances=own)


@pytest.mark.parametrize("kind", ["number", "shares"])
def test_a_plug_in_scale_taken_for_the_truth_is_noticed(kind, monkeypatch):
    monkeypatch.setattr(estimators, "normal_mgf_of_all", plug_in)
    monkeypatch.setattr(elimination, "HEURISTIC_REPEATS", 2)
    runs, delta = 100, 0.01
    shares = wrong_shares(kind, runs, delta, best="quietest")
    print(f"\n{kind}: {np.count_nonzero(shares)} of {runs}, mean share {shares.mean():.3f}")
    if kind == "shares":
        assert shares.mean() > shares_allowed(runs, delta)
    else:
        assert np.count_nonzero(shares) > failures_allowed(runs, delta)
