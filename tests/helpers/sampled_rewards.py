"""Environments with made-up arms, and statistics of many pulls."""

import math

import numpy as np

from surepick import environments
from surepick.core.arms import Arms
from surepick.noise import Bernoulli

SEEDS = range(3)


def environment(means=(0.2, 0.9, 0.8), noise=Bernoulli(), **options):  # noqa: B008 (frozen)
    return environments.Environment(
        arms=Arms(None, [f"a{k}" for k in range(len(means))]), means=means, noise=noise, **options
    )


def assert_mean(values, expected, variance):
    """The sample mean is within 5.5 standard errors (false alarm 4e-8) of what is expected."""
    error = math.sqrt(variance / len(values))
    assert abs(np.mean(values) - expected) <= 5.5 * error + 1e-12 * abs(expected)
