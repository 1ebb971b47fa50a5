"""The value of a design, and the pair that is farthest apart under it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from design_oracles import whitened_by_svd
from together import of_each

from surepick.designs import design_value
from surepick.linalg.farthest_pairs import farthest_pairs


def all_pairs(features: np.ndarray, weights: np.ndarray, active: np.ndarray) -> float:
    """The objective by an explicit inverse and every pair; for designs with a regular A."""
    z = whitened_by_svd(features)
    inverse = np.linalg.inv(z.T @ (weights[:, None] * z))
    return max(float((z[a] - z[b]) @ inverse @ (z[a] - z[b])) for a, b in combinations(active, 2))


def spanning_weights(features: np.ndarray, seed: int) -> np.ndarray:
    weights = np.random.default_rng(seed).uniform(0.5, 1.0, len(features))
    return weights / weights.sum()


@of_each("dim", [1, 2, 3, 5])
def test_the_value_is_that_of_every_pair_and_an_explicit_inverse(dim):
    for seed in range(20):
        features = np.random.default_rng(seed).standard_normal((30, dim))
        weights, active = spanning_weights(features, seed), np.arange(seed % 7, 30)
        assert design_value(features, weights, active) == pytest.approx(all_pairs(features, weights, active), rel=1e-9)


def squared_diameter(points: np.ndarray) -> float:
    return max(float(((points - point) ** 2).sum(axis=1).max()) for point in points)


@pytest.mark.cases(6)
@pytest.mark.parametrize("seed", range(12))
def test_the_farthest_pair_is_found_without_looking_at_all(seed):
    rng = np.random.default_rng(seed)
    num_points, dim = int(rng.integers(2, 6000)) if seed % 4 == 0 else int(rng.integers(2, 900)), seed % 5 + 1
    points = rng.standard_normal((num_points, dim)) * 10.0 ** rng.integers(-6, 6) + rng.standard_normal(dim)
    pairs = farthest_pairs(points, least=1 + seed * seed)
    assert pairs.squares[0] == pytest.approx(squared_diameter(points), rel=1e-12)
    differences = points[pairs.first] - points[pairs.second]
    np.testing.assert_allclose((differences**2).sum(axis=1), pairs.squares, rtol=1e-12)
    assert np.all(np.diff(pairs.squares) <= 0)


@pytest.mark.parametrize("num_points", [600, 2500])
def test_the_farthest_pair_need_not_have_the_largest_radii(num_points):
    rng = np.random.default_rng(0)
    corners = np.array([[1, 1, 1, 1], [1, 1, -0.9, 0], [-1, -1, 0.9, 0], [0, 0, 0, -1]])  # radii 2, 1.7, 1.7, 1
    chosen = np.r_[np.zeros(num_points - 21, int), np.repeat([1, 2], 10), 3]
    points = corners[chosen] + 0.005 * rng.standard_normal((num_points, 4))
    pair = farthest_pairs(points)
    assert pair.squares[0] == pytest.approx(squared_diameter(points), rel=1e-12)
    assert {int(chosen[pair.first[0]]), int(chosen[pair.second[0]])} == {1, 2}


def test_twice_the_weights_have_half_the_value():
    features = np.random.default_rng(1).standard_normal((12, 3))
    weights = spanning_weights(features, 1)
    assert design_value(features, 2 * weights) == pytest.approx(0.5 * design_value(features, weights), rel=1e-12)


def test_a_difference_outside_the_range_costs_infinity_and_one_inside_does_not():
    features = np.eye(4)
    weights = np.array([0.5, 0.5, 0.0, 0.0])
    assert design_value(features, weights, [0, 1]) == pytest.approx(4.0, rel=1e-12)
    assert design_value(features, weights) == np.inf
    assert design_value(features, weights, [0, 2]) == np.inf
    assert design_value(features, np.array([1.0, 0.0, 0.0, 0.0]), [2]) == 0.0
