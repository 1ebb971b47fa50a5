"""Designs in many directions: pools say where to start, sweeps measure what comes out, few arms have weight."""

from types import SimpleNamespace

import numpy as np
import pytest

from surepick.designs import column_generation, solve_star_design, solve_target_design, working_set
from surepick.designs.objective import Objective
from surepick.designs.problem import DesignInput, pose_star
from surepick.designs.working_set import many_directions
from surepick.linalg import factorisations

DIM, ARMS = 48, 2100  # just beyond what are many directions, arms and vectors


def smooth(rng: np.random.Generator, num_arms: int = ARMS, dim: int = DIM) -> np.ndarray:
    """Features of a Gaussian kernel in the square, most arms nearly alike."""
    places, centres = rng.uniform(size=(num_arms, 2)), rng.uniform(size=(dim, 2))
    return np.exp(-8.0 * np.sum((places[:, None] - centres) ** 2, axis=2))


def posed(features: np.ndarray, scales: np.ndarray):
    return pose_star(DesignInput.of(features), 0, scales)


def bracket(features: np.ndarray, targets: np.ndarray, design) -> float:
    """The largest ||y||^2 under the weights, in other coordinates and by another factorisation."""
    q, _ = np.linalg.qr(features)
    images = targets @ np.linalg.pinv(features) @ q
    values, vectors = np.linalg.eigh((q.T * design.weights) @ q)
    return float(np.max(np.sum((images @ vectors) ** 2 / values, axis=1)))


@pytest.fixture(scope="module", params=[pytest.param("gaussian", marks=pytest.mark.slow), "kernel", "uneven"])
def star(request):
    """(features, accuracies)."""
    rng = np.random.default_rng(3)
    if request.param == "kernel":
        return smooth(rng), np.ones(ARMS)
    features = rng.standard_normal((ARMS, DIM))
    return features, np.exp(rng.standard_normal(ARMS)) if request.param == "uneven" else np.ones(ARMS)


@pytest.fixture(scope="module")
def solved(star):
    features, scales = star
    return solve_star_design(features, 0, scales, tolerance=0.05)


def test_the_gap_is_proved_and_the_value_is_that_of_the_weights(star, solved):
    (features, scales), design = star, solved
    assert many_directions(posed(features, scales))
    assert design.gap <= 0.05
    targets = (features[0] - features[1:]) / scales[1:, None]
    assert bracket(features, targets, design) == pytest.approx(design.value, rel=1e-6)


def test_it_is_as_good_as_without_pools_and_on_fewer_arms(star, solved, monkeypatch):
    (features, scales), design = star, solved
    monkeypatch.setattr(working_set, "many_directions", lambda problem: False)
    usual = solve_star_design(features, 0, scales, tolerance=0.05)
    assert design.lower_bound <= usual.value * (1.0 + 1e-9)
    assert usual.lower_bound <= design.value * (1.0 + 1e-9)
    assert np.count_nonzero(design.weights) < np.count_nonzero(usual.weights)


def test_pools_are_near_the_best_before_any_newton_step(star):
    features, scales = star
    objective = Objective(posed(features, scales))
    working = column_generation.pooled_working_set(objective)
    assert working.gap < 4.0
    swept = column_generation.sweep(objective, working, bound=0.0, goal=0.1)
    assert swept.upper / swept.lower - 1.0 < 1.5 * working.gap + 0.05
    assert len(working.arms) < ARMS // 2
    assert (np.diff(working.arms) > 0).all()


def test_pools_that_lie_cost_time_and_nothing_else(star, monkeypatch):
    """The saboteur of the solver: it starts with the wrong arms and the wrong vectors, and says that all is well."""
    features, scales = star
    honest, rng = column_generation.pooled_working_set, np.random.default_rng(0)

    def lying(objective, enough):
        working = honest(objective, enough)
        weights, multipliers = rng.permutation(working.weights), rng.permutation(working.multipliers)
        return working_set.Working(working.anchors, working.arms, weights, working.pairs[::-1], multipliers, 0.0)

    monkeypatch.setattr(column_generation, "pooled_working_set", lying)
    design = solve_star_design(features, 0, scales, tolerance=0.05)
    assert design.gap <= 0.05
    targets = (features[0] - features[1:]) / scales[1:, None]
    assert bracket(features, targets, design) == pytest.approx(design.value, rel=1e-6)


def test_few_vectors_and_many_arms():
    rng = np.random.default_rng(8)
    features = smooth(rng, 5000, 60)
    design = solve_target_design(features, features[:3] - features[3:6], tolerance=0.05)
    assert design.gap <= 0.05
    assert bracket(features, features[:3] - features[3:6], design) == pytest.approx(design.value, rel=1e-5)


@pytest.mark.parametrize("star", ["kernel"], indirect=True)
def test_the_same_features_give_the_same_design(star, solved):
    features, scales = star
    other = solve_star_design(features, 0, scales, tolerance=0.05)
    assert np.array_equal(solved.weights, other.weights)


def test_a_singular_design_has_no_pools(monkeypatch):
    features = np.random.default_rng(2).standard_normal((ARMS, DIM))
    objective = Objective(posed(features, np.ones(ARMS)))
    singular = SimpleNamespace(**{**vars(factorisations), "inverse_factor": lambda matrix: None})
    monkeypatch.setattr(column_generation, "factorisations", singular)
    assert column_generation.pooled_working_set(objective) is None
    assert solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05).gap <= 0.05


def blocks(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(features, targets) in 40 and in 8 other directions; the latter are worth a thousandth of the weight."""
    features, targets = np.zeros((3000, 48)), np.zeros((2000, 48))
    features[:1500, :40], targets[:1000, :40] = rng.standard_normal((1500, 40)), rng.standard_normal((1000, 40))
    features[1500:, 40:], targets[1000:, 40:] = rng.standard_normal((1500, 8)), 0.02 * rng.standard_normal((1000, 8))
    return features, targets


def test_directions_of_hardly_any_weight_are_measured():
    features, targets = blocks(np.random.default_rng(0))
    design = solve_target_design(features, targets, tolerance=0.05)
    assert design.gap <= 0.05
    assert bracket(features, targets, design) == pytest.approx(design.value, rel=1e-6)


def test_one_direction_of_little_weight_among_many():
    rng = np.random.default_rng(3)
    features, scales = np.zeros((2201, 48)), np.ones(2201)
    features[1:1101, :47], features[1101:, 47:] = rng.standard_normal((1100, 47)), rng.standard_normal((1100, 1))
    scales[1101:] = 100.0
    design = solve_star_design(features, 0, scales, tolerance=0.05)
    assert design.gap <= 0.05
    targets = (features[0] - features[1:]) / scales[1:, None]
    assert bracket(features, targets, design) == pytest.approx(design.value, rel=1e-6)


def test_lengths_that_vanish_in_single_precision_need_no_pools():
    features = np.random.default_rng(2).standard_normal((ARMS, DIM)) * 1e-165
    assert solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05).gap <= 0.05
