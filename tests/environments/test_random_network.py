"""The environment of a random network, and a study on it without the network."""

from __future__ import annotations

import math

import numpy as np
import pytest
from together import of_each

import surepick as sp


def test_a_random_network_is_on_the_unit_interval_and_a_function_of_its_seed():
    world = sp.bench.datasets.random_network(num_arms=50, dim=4, hidden=8, sigma=0.3, seed=3)
    assert world.arms.features.shape == (50, 4)
    assert world.means.shape == (50,)
    assert (world.means.min(), world.means.max()) == (0.0, 1.0)
    assert world.noise == sp.SubGaussian(0.3)
    again = sp.bench.datasets.random_network(num_arms=50, dim=4, hidden=8, sigma=0.3, seed=3)
    assert np.array_equal(again.means, world.means)
    assert np.array_equal(again.arms.features, world.arms.features)
    other = sp.bench.datasets.random_network(num_arms=50, dim=4, hidden=8, sigma=0.3, seed=4)
    assert not np.array_equal(other.means, world.means)
    default = sp.bench.datasets.random_network()
    assert default.arms.features.shape == (500, 10)
    assert default.arms.features.std(axis=0)[[0, 9]] == pytest.approx([1.0, 0.1], rel=0.15)
    flat = sp.bench.datasets.random_network(decay=0.0)
    assert flat.arms.features.std(axis=0) == pytest.approx(np.ones(10), rel=0.15)


@of_each(
    ("changes", "message"),
    [
        ({"num_arms": 1}, "num_arms is 1"),
        ({"dim": 1}, "dim is 1"),
        ({"hidden": 0}, "hidden is 0"),
        ({"decay": -1.0}, "decay is -1.0"),
        ({"sigma": 0.0}, "sigma is 0.0"),
        ({"sigma": math.nan}, "sigma is nan"),
    ],
)
def test_a_random_network_without_meaning_is_refused(changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        sp.bench.datasets.random_network(**changes)
