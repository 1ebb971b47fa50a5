"""Designs on few arms: where a batch has one pull of each arm, a worse value on fewer arms takes fewer pulls."""

import numpy as np
import pytest

from surepick.designs import on_fewer_arms, solve_star_design, solve_target_design
from surepick.designs.rounding import HEURISTIC_FEWER_ARMS, HEURISTIC_SURELY_ENOUGH

DIM, ARMS = 56, 2100


@pytest.fixture(scope="module", params=[pytest.param("gaussian", marks=pytest.mark.slow), "kernel"])
def features(request) -> np.ndarray:
    rng = np.random.default_rng(5)
    if request.param == "gaussian":
        return rng.standard_normal((ARMS, DIM))
    places, centres = rng.uniform(size=(ARMS, 2)), rng.uniform(size=(DIM, 2))
    return np.exp(-8.0 * np.sum((places[:, None] - centres) ** 2, axis=2))


@pytest.fixture(scope="module")
def usual(features):
    return solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05)


def value_of(features: np.ndarray, weights: np.ndarray) -> float:
    """max ||x_j - x_0||^2 under the weights, in other coordinates and by another factorisation."""
    q, _ = np.linalg.qr(features)
    values, vectors = np.linalg.eigh((q.T * weights) @ q)
    return float(np.max(np.sum(((q - q[0]) @ vectors) ** 2 / values, axis=1)))


def arms_of(design) -> int:
    return int(np.count_nonzero(design.weights))


def test_a_value_that_stands_for_hardly_any_pulls_leaves_few_arms(features, usual):
    unit = 0.02 * DIM / usual.value
    few = solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05, unit=unit)
    assert DIM <= arms_of(few) <= 2 * DIM < arms_of(usual)
    assert few.value * unit <= HEURISTIC_SURELY_ENOUGH * arms_of(few)
    assert few.value == pytest.approx(value_of(features, few.weights), rel=1e-6)
    assert few.lower_bound <= usual.value * (1.0 + 1e-9)


def test_a_value_that_stands_for_many_pulls_is_as_good_as_ever(features, usual):
    whole = solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05, unit=1e3 * DIM / usual.value)
    assert whole.gap <= 0.05
    assert arms_of(whole) >= DIM * HEURISTIC_FEWER_ARMS[-1]


def test_few_arms_that_are_not_accepted_are_followed_by_a_whole_design(features, usual):
    unit, asked = 0.02 * DIM / usual.value, []

    def accept(weights: np.ndarray) -> bool:
        asked.append(weights)
        return False

    whole = solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05, unit=unit, accept=accept)
    assert whole.gap <= 0.05
    assert asked
    assert all(weights.shape == (ARMS,) and weights.sum() == pytest.approx(1.0) for weights in asked)
    taken = solve_star_design(features, 0, np.ones(ARMS), tolerance=0.05, unit=unit, accept=lambda _: True)
    assert arms_of(taken) < arms_of(whole)


def test_the_fewest_arms_that_are_accepted_are_taken(features, usual):
    unit, least = 0.02 * DIM / usual.value, 2.5 * DIM
    few = solve_star_design(
        features, 0, np.ones(ARMS), tolerance=0.05, unit=unit, accept=lambda weights: np.count_nonzero(weights) > least
    )
    assert least < arms_of(few) <= 4 * DIM


@pytest.fixture(scope="module")
def of_some(features):
    some = features[:1000]
    return solve_target_design(some, some[0] - some[1:], tolerance=0.1)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "scale", [1e-150, pytest.param(1e-25, marks=pytest.mark.slow), pytest.param(1e25, marks=pytest.mark.slow), 1e150]
)
def test_features_of_any_scale(features, of_some, scale):
    features, usual = features[:1000], of_some
    design = solve_target_design(scale * features, features[0] - features[1:], tolerance=0.1)
    assert design.gap <= 0.1
    assert design.value * scale**2 == pytest.approx(usual.value, rel=0.1)


def test_targets_and_units_of_their_own(features, usual):
    targets = features[0] - features[1:]
    for factor in (1e3, 1e-3):
        unit = 0.02 * DIM / (usual.value * factor**2)
        few = solve_target_design(features, factor * targets, tolerance=0.05, unit=unit)
        assert few.value == pytest.approx(value_of(features, few.weights) * factor**2, rel=1e-6)
        assert arms_of(few) <= 2 * DIM


def test_a_design_that_is_known_loses_arms_and_keeps_its_bound(features, usual):
    unit = 0.1 * DIM / usual.value
    few = on_fewer_arms(features, 0, np.ones(ARMS), usual, unit=unit)
    assert arms_of(few) < arms_of(usual)
    assert few.value * unit <= HEURISTIC_SURELY_ENOUGH * arms_of(few)
    assert few.value == pytest.approx(value_of(features, few.weights), rel=1e-6)
    assert few.lower_bound == usual.lower_bound


def test_a_design_whose_value_stands_for_many_pulls_stays(features, usual):
    assert on_fewer_arms(features, 0, np.ones(ARMS), usual, unit=1e3 * DIM / usual.value) is usual


def test_few_directions_are_left_alone():
    features = np.random.default_rng(6).standard_normal((5000, 5))
    design = solve_star_design(features, 0, np.ones(5000), tolerance=0.05)
    assert on_fewer_arms(features, 0, np.ones(5000), design, unit=1e-9) is design
