"""Whole pulls from weights: sums, floors, Adams' divisor method by its definition, and the promise of `allocate`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from together import of_each

from surepick.core.plans import Design
from surepick.designs import allocate, design_value, round_design, solve_design
from surepick.errors import InvalidInput


def adams(weights: np.ndarray, total: int) -> float:
    """min n_i / w_i after handing out single pulls where n_i / w_i is smallest: the efficient apportionment."""
    support = weights[weights > 0]
    counts = np.ones(len(support))
    for _ in range(total - len(support)):
        counts[np.argmin(counts / support)] += 1
    return float(np.min(counts / support))


@of_each("seed", range(30))
def test_the_smallest_ratio_is_that_of_adams_divisor_method(seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(int(rng.integers(1, 15)), 0.4)) + 1e-9
    weights[rng.random(len(weights)) < 0.3] = 0.0
    weights[0] = max(weights[0], 0.1)
    weights /= weights.sum()
    for total in np.count_nonzero(weights) + rng.integers(0, 200, 5):
        counts = round_design(weights, int(total))
        assert counts.sum() == total
        np.testing.assert_array_equal(counts > 0, weights > 0)
        support = weights > 0
        assert np.min(counts[support] / weights[support]) == pytest.approx(adams(weights, int(total)), rel=1e-12)


@pytest.mark.parametrize("total", [30, 31, 40, 100, 352, 1000])
def test_many_tiny_weights_take_their_pulls_from_the_largest(total):
    weights = np.r_[0.6, 0.25, 0.1, 0.05 - 27e-5, np.full(26, 1e-5), 1e-5]
    weights = weights[: min(total, 31)] / weights[: min(total, 31)].sum()
    counts = round_design(weights, total)
    assert counts.sum() == total
    assert np.min(counts / weights) == pytest.approx(adams(weights, total), rel=1e-12)
    assert np.min(counts / weights) >= (total - len(weights)) * (1 - 1e-12)


def test_a_known_apportionment():
    np.testing.assert_array_equal(round_design([0.5, 0.0, 0.3, 0.2], 10), [5, 0, 3, 2])
    np.testing.assert_array_equal(round_design([0.98, 0.01, 0.01], 3), [1, 1, 1])
    np.testing.assert_array_equal(round_design([1.0], 7), [7])
    assert round_design([0.5, 0.5], 4).dtype == np.int64


def test_equal_weights_differ_by_one_pull_at_most():
    counts = round_design(np.full(7, 1 / 7), 24)
    assert counts.sum() == 24
    assert np.ptp(counts) == 1


def test_weights_need_not_be_normalised():
    np.testing.assert_array_equal(round_design([2.0, 6.0], 8), [2, 6])


def test_a_hundred_thousand_arms():
    weights = np.random.default_rng(0).exponential(size=100_000)
    counts = round_design(weights, 150_000)
    assert counts.sum() == 150_000
    assert counts.min() == 1


def test_no_information_falls_below_the_efficient_share():
    rng = np.random.default_rng(1)
    for _ in range(50):
        weights = rng.dirichlet(np.ones(9))
        total = int(rng.integers(9, 60))
        assert np.all(round_design(weights, total) >= (total - 9) * weights * (1 - 1e-12))


def test_fewer_pulls_than_supported_arms_are_refused_with_the_numbers():
    with pytest.raises(InvalidInput, match=r"2 pulls cannot be spread over 3 supported arms.*at least 3"):
        round_design([0.2, 0.0, 0.3, 0.5], 2)


@pytest.mark.parametrize("weights", [[0.0, 0.0], [-0.1, 1.1], [np.nan, 1.0], [[0.5, 0.5]], []])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(InvalidInput, match="weight"):
        round_design(weights, 10)


@pytest.mark.parametrize("slack", [0.02, 0.1, 0.25])
@pytest.mark.parametrize("seed", range(4))
def test_the_realised_value_keeps_the_promise(seed, slack):
    features = np.random.default_rng(seed).standard_normal((60, 5))
    design = solve_design(features)
    support = np.count_nonzero(design.weights)
    allocation = allocate(design, features, 1, slack=slack)
    assert allocation.value <= (1 + slack) * design.value
    assert allocation.value == pytest.approx(allocation.total * design_value(features, allocation.counts), rel=1e-12)
    assert allocation.counts.sum() == allocation.total
    assert support <= allocation.total <= math.ceil(support * (1 + slack) / slack)


def test_enough_pulls_are_left_as_they_are():
    features = np.random.default_rng(0).standard_normal((40, 4))
    design = solve_design(features)
    assert allocate(design, features, 5000).total == 5000


def test_a_design_of_some_arms_is_judged_on_these_arms():
    features = np.eye(6)
    design = solve_design(features, [1, 4])
    allocation = allocate(design, features, 10, active=[1, 4])
    np.testing.assert_array_equal(allocation.counts, [0, 5, 0, 0, 5, 0])
    assert allocation.value == pytest.approx(4.0, rel=1e-12)


def test_a_design_of_value_zero_needs_one_pull():
    features = np.ones((3, 2))
    allocation = allocate(solve_design(features), features, 0)
    assert (allocation.total, allocation.value) == (1, 0.0)


def test_the_design_of_other_features_is_noticed():
    with pytest.raises(InvalidInput, match="features and active arms that the design was solved for"):
        allocate(Design(np.array([1.0, 0.0]), 0.5, 0.5, 2), np.eye(2), 10)


def test_weights_of_another_number_of_arms_are_refused():
    with pytest.raises(InvalidInput, match=r"must be \(3,\)"):
        allocate(solve_design(np.eye(2)), np.eye(3), 10)


@pytest.mark.parametrize("slack", [0.0, -0.1, np.nan])
def test_a_slack_must_be_positive(slack):
    with pytest.raises(InvalidInput, match="slack"):
        allocate(solve_design(np.eye(2)), np.eye(2), 10, slack=slack)


@pytest.mark.cases(12)
@pytest.mark.parametrize("seed", range(25))
def test_the_promise_holds_on_smooth_curves_that_hardly_span(seed):
    rng = np.random.default_rng(seed)
    features = np.vander(rng.uniform(-1, 1, int(rng.integers(20, 150))), 12)
    design = solve_design(features, [0, 1], tolerance=2e-4)
    allocation = allocate(design, features, 1, active=[0, 1])
    assert allocation.value <= 1.1 * design.value
