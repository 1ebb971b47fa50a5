"""The design for given pairs of arms without structure, against other programs and the closed form of a star."""

from __future__ import annotations

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

from surepick.designs import independent_star_design
from surepick.designs.problem import independent_pairs_design

NUMBER = -1  # in the second place: the arm is compared with a number that is known


def worst(weights: np.ndarray, first, second, accuracies, noises) -> float:
    """Pulls after which the last pair is known to within its accuracy."""
    spread = noises**2 / np.maximum(weights, 1e-300)
    return float(np.max((spread[first] + np.where(second >= 0, spread[second], 0.0)) / accuracies**2))


def optimum(first, second, accuracies, noises) -> float:
    """By CLARABEL: the fewest pulls n in all with v_i / n_i + v_c / n_c <= a^2 for every pair."""
    import cvxpy as cp

    unit, pulls = float(accuracies.min()), cp.Variable(len(noises))
    pairs = []
    for i, c, accuracy in zip(first, second, accuracies / unit, strict=True):
        spread = noises[i] ** 2 * cp.inv_pos(pulls[i]) + (noises[c] ** 2 * cp.inv_pos(pulls[c]) if c >= 0 else 0.0)
        pairs.append(spread <= accuracy**2)
    problem = cp.Problem(cp.Minimize(cp.sum(pulls)), [*pairs, pulls >= 0])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value) / unit**2


def some_pairs(rng: np.random.Generator, num_arms: int, count: int):
    """Pairs of different arms, and of arms and the number; with their accuracies."""
    first = rng.integers(0, num_arms, count)
    second = (first + rng.integers(1, num_arms, count)) % num_arms
    second[rng.random(count) < 0.3] = NUMBER
    return first, second, 10.0 ** rng.uniform(-1.0, 1.0, count), 10.0 ** rng.uniform(-0.5, 0.5, num_arms)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_of_a_convex_program_lies_between_the_bounds(seed):
    rng = np.random.default_rng([seed, 60])
    first, second, accuracies, noises = some_pairs(rng, int(rng.integers(3, 7)), int(rng.integers(1, 10)))
    design = independent_pairs_design(first, second, accuracies, noises, tolerance=0.01)
    tau = optimum(first, second, accuracies, noises)
    assert design.lower_bound <= tau * (1.0 + 1e-5)
    assert design.value >= tau * (1.0 - 1e-5)
    assert design.gap <= 0.01


def test_a_bound_that_is_no_bound_would_be_noticed():
    """Otherwise the inequality above could not fail: the value itself is above the optimum in half of the cases."""
    above = 0
    for seed in range(12):
        rng = np.random.default_rng([seed, 60])
        first, second, accuracies, noises = some_pairs(rng, int(rng.integers(3, 7)), int(rng.integers(1, 10)))
        design = independent_pairs_design(first, second, accuracies, noises, tolerance=0.05)
        above += design.value > optimum(first, second, accuracies, noises) * (1.0 + 1e-5)
    assert above >= 6


@settings(max_examples=budget(100))
@given(st.integers(0, 10**6))
def test_the_value_is_that_of_the_weights_and_never_below_the_bound(seed):
    rng = np.random.default_rng(seed)
    given_to = some_pairs(rng, int(rng.integers(2, 12)), int(rng.integers(1, 40)))
    design = independent_pairs_design(*given_to)
    assert design.weights.sum() == pytest.approx(1.0)
    assert np.all(design.weights >= 0.0)
    assert design.value == pytest.approx(worst(design.weights, *given_to), rel=1e-9)
    assert 0.0 < design.lower_bound <= design.value
    equal = np.full(len(design.weights), 1.0 / len(design.weights))
    assert design.lower_bound <= worst(equal, *given_to) * (1.0 + 1e-9)


@pytest.mark.parametrize("num_arms", [2, 3, 8, 100])
def test_pairs_with_one_centre_are_a_star(num_arms):
    rng = np.random.default_rng([num_arms, 61])
    centre, scales = num_arms // 2, rng.uniform(0.1, 2.0, num_arms)
    noises = rng.uniform(0.3, 3.0, num_arms)
    first = np.delete(np.arange(num_arms), centre)
    pairs = independent_pairs_design(first, np.full(len(first), centre), scales[first], noises, tolerance=1e-3)
    star = independent_star_design(centre, scales, noise_scales=noises)
    assert pairs.lower_bound <= star.value * (1.0 + 1e-9)
    assert star.lower_bound <= pairs.value * (1.0 + 1e-9)
    assert pairs.value == pytest.approx(star.value, rel=2e-3)


def test_arms_beside_a_number_share_nothing():
    """Each needs v / a^2 pulls, whatever the others need."""
    accuracies, noises = np.array([0.5, 1.0, 2.0]), np.array([1.0, 2.0, 0.5])
    design = independent_pairs_design(np.arange(3), np.full(3, NUMBER), accuracies, noises, tolerance=1e-6)
    needed = (noises / accuracies) ** 2
    assert design.value == pytest.approx(needed.sum(), rel=1e-5)
    assert design.weights == pytest.approx(needed / needed.sum(), rel=1e-3)


def test_the_order_of_a_pair_and_arms_in_none_change_nothing():
    noises = np.array([1.0, 2.0, 5.0, 1.0])
    pair, turned = (
        independent_pairs_design(np.array([a]), np.array([b]), np.array([0.5]), noises) for a, b in ((0, 1), (1, 0))
    )
    assert pair.value == pytest.approx(turned.value)
    assert pair.weights == pytest.approx([1 / 3, 2 / 3, 0.0, 0.0])
    assert pair.value == pytest.approx((1.0 + 2.0) ** 2 / 0.25)


@pytest.mark.parametrize("unit", [1e-60, 1.0, 1e60])
def test_units_change_nothing_but_the_value(unit):
    rng = np.random.default_rng(62)
    first, second, accuracies, noises = some_pairs(rng, 5, 8)
    usual = independent_pairs_design(first, second, accuracies, noises)
    scaled = independent_pairs_design(first, second, unit * accuracies, noises)
    assert scaled.weights == pytest.approx(usual.weights, rel=1e-9)
    assert scaled.value == pytest.approx(usual.value / unit**2)
