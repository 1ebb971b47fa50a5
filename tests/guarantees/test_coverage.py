"""The widths cover: the best arm is underestimated against another arm beyond the width as seldom as promised."""

import math

import numpy as np
import pytest
from bounds import failures_allowed

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding
from surepick.estimators import anytime_radius, estimate, least_squares

DELTA, TRIALS = 0.05, 1000


def gaussian_sums(counts, means, sigma, rng):
    return counts * means + sigma * np.sqrt(counts) * rng.normal(size=len(counts))


def count_misses(width_factor: float, *, trials: int = TRIALS, delta: float = DELTA, seed: int = 0) -> int:
    """Batches in which some pair of the best arm errs, in the harmful direction, beyond width_factor * width."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 3))
    means = features @ np.array([0.3, -0.2, 0.5])
    best = int(np.argmax(means))
    others = np.delete(np.arange(6), best)
    design = sp.solve_design(features)
    counts = sp.allocate(design, features, 200).counts
    spread = math.sqrt(2.0 * math.log(len(others) / delta))
    misses = 0
    for _ in range(trials):
        seen = Observations(counts, gaussian_sums(counts, means, 1.0, rng))
        fitted = least_squares(Embedding(features, 0.0), seen)
        error = fitted.scores[others] - fitted.scores[best] - (means[others] - means[best])
        misses += bool(np.any(error > width_factor * spread * fitted.distances(others, np.array([best]))[:, 0]))
    return misses


def test_the_widths_cover():
    assert count_misses(1.0) <= failures_allowed(TRIALS, DELTA)


def test_the_coverage_test_would_notice_half_the_width():
    assert count_misses(0.5) > failures_allowed(TRIALS, DELTA)


def anytime_misses(width_factor: float, *, trials: int = 1000, horizon: int = 400, delta: float = 0.3) -> int:
    """Runs in which the mean of some arm leaves its anytime interval at some number of pulls."""
    rng = np.random.default_rng(1)
    counts = np.arange(1, horizon + 1)
    radius = anytime_radius(counts, np.ones(horizon), delta=delta, num_arms=2)
    misses = 0
    for _ in range(trials):
        means = np.cumsum(rng.normal(size=(2, horizon)), axis=1) / counts
        misses += bool(np.any(np.abs(means) > width_factor * radius))
    return misses


def test_the_anytime_intervals_cover():
    assert anytime_misses(1.0) <= failures_allowed(1000, 0.3)


def test_the_anytime_test_would_notice_half_the_width():
    assert anytime_misses(0.5) > failures_allowed(1000, 0.3)


@pytest.mark.parametrize("seed", range(5))
def test_the_bias_allowance_is_reached_and_never_passed(seed):
    """Rewards that deviate from linearity by exactly gamma, with the worst signs, and no noise."""
    rng = np.random.default_rng(seed)
    gamma, features = 0.1, rng.normal(size=(8, 2))
    counts = rng.integers(1, 6, 8)
    exact = counts[:, None] * features
    weights = np.linalg.solve(features.T @ exact, (features[1] - features[0])) @ features.T
    deviation = gamma * np.sign(weights)
    deviation[1], deviation[0] = -gamma, gamma
    means = features @ np.array([1.0, 2.0]) + deviation
    fitted = estimate(Embedding(features, gamma), Observations(counts, counts * means))
    error = (fitted.scores[1] - fitted.scores[0]) - (means[1] - means[0])
    distance = fitted.distances(np.array([1]), np.array([0]))[0, 0]
    allowance = gamma * (2.0 + math.sqrt(counts.sum()) * distance)
    assert 0.3 * allowance < error <= allowance
