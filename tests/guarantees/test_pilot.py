"""The pilot's bound is below the true standard deviation as seldom as promised, and the promise is not wasted."""

import math

import numpy as np
import pytest
from bounds import failures_allowed
from scipy.stats import binom, chi2

import surepick as sp
from surepick.environments.rewards import NormalRewards

TRIALS, FAILURE, SIGMA = 2000, 0.05, 3.0
SHAPES = {
    "pairs": np.full(20, 2),
    "one pair": np.array([2]),
    "few arms, many repeats": np.array([20, 20]),
    "unequal": np.array([7, 1, 2, 0, 4]),
}


def pilots(counts, *, seed=0):
    """(counts, sums, squares) of seeded pilots on arms of very different means."""
    rng = np.random.default_rng(seed)
    law = NormalRewards(np.linspace(-5.0, 5.0, len(counts)), np.full(len(counts), SIGMA))
    for _ in range(TRIALS):
        seen = law.draw(counts, rng)
        yield seen.counts, seen.sums, seen.squares


def bound(counts, sums, squares):
    return sp.pilot_noise(counts, sums, squares, failure=FAILURE).sigma


def plain_deviation(counts, sums, squares):
    """The saboteur: the usual estimate, too small about every other time."""
    repeated = counts > 1
    spread = np.sum((squares - sums**2 / np.maximum(counts, 1))[repeated])
    return math.sqrt(spread / (counts[repeated] - 1).sum())


def freedom_of_all_pulls(counts, sums, squares):
    """The saboteur who forgets that each arm's mean is estimated: n instead of n - 1."""
    noise = sp.pilot_noise(counts, sums, squares, failure=FAILURE)
    return noise.sigma * math.sqrt(chi2.ppf(FAILURE, noise.repeats) / chi2.ppf(FAILURE, counts.sum()))


def misses(estimate, counts, **options) -> int:
    return sum(estimate(*seen) < SIGMA for seen in pilots(counts, **options))


@pytest.mark.cases(2)
@pytest.mark.parametrize("counts", SHAPES.values(), ids=SHAPES)
def test_the_bound_covers(counts):
    assert misses(bound, counts) <= failures_allowed(TRIALS, FAILURE)


@pytest.mark.cases(2)
@pytest.mark.parametrize("counts", SHAPES.values(), ids=SHAPES)
def test_the_bound_is_no_larger_than_it_must_be(counts):
    """It fails with exactly the promised probability, so it fails nearly as often as it may."""
    assert misses(bound, counts, seed=1) >= int(binom.ppf(1e-6, TRIALS, FAILURE))


@pytest.mark.parametrize("saboteur", [plain_deviation, freedom_of_all_pulls])
def test_the_coverage_test_would_notice(saboteur):
    assert misses(saboteur, SHAPES["pairs"]) > failures_allowed(TRIALS, FAILURE)
