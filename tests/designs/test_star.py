"""Designs for given vectors and for one arm against the others, against independent oracles."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog
from together import of_each

from surepick.designs import independent_star_design, solve_design, solve_star_design, solve_target_design
from surepick.errors import InvalidInput, NotConverged


def optimum(features: np.ndarray, targets: np.ndarray) -> float:
    """By CLARABEL: minimise t with [[A, y], [y', t]] positive semidefinite for every target y."""
    import cvxpy as cp

    lam, t = cp.Variable(len(features), nonneg=True), cp.Variable((1, 1))
    information = features.T @ cp.diag(lam) @ features
    blocks = [cp.bmat([[information, y[:, None]], [y[None, :], t]]) >> 0 for y in targets]
    problem = cp.Problem(cp.Minimize(t[0, 0]), [*blocks, cp.sum(lam) == 1])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def longest(features: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
    inverse = np.linalg.inv(features.T @ (weights[:, None] * features))
    return float(np.max(np.einsum("ij,jk,ik->i", targets, inverse, targets)))


@of_each("seed", range(10))
def test_the_optimum_of_a_semidefinite_program_lies_between_the_bounds(seed):
    rng = np.random.default_rng(seed)
    num_arms, dim, count = int(rng.integers(4, 12)), int(rng.integers(2, 5)), int(rng.integers(2, 9))
    features = rng.standard_normal((num_arms, dim))
    targets = rng.standard_normal((count, dim)) * 10.0 ** rng.uniform(-1, 1, (count, 1))
    tau = optimum(features, targets)
    design = solve_target_design(features, targets, tolerance=1e-3)
    assert design.lower_bound <= tau * (1 + 1e-6)
    assert design.value >= tau * (1 - 1e-6)
    assert design.gap <= 1e-3
    mixed = 0.999 * design.weights + 0.001 / num_arms  # regular, and hardly worse
    assert longest(features, targets, mixed) <= design.value * 1.0011


@of_each("seed", range(8))
def test_one_target_is_a_linear_program(seed):
    """min over lambda of ||y||^2 in A^-1 is (min ||c||_1 with X'c = y)^2 (Elfving)."""
    rng = np.random.default_rng(seed)
    num_arms, dim = int(rng.integers(3, 20)), int(rng.integers(1, 6))
    features = rng.standard_normal((num_arms, dim))
    target = features.T @ rng.standard_normal(num_arms)
    columns = np.hstack([features.T, -features.T])
    shortest = linprog(np.ones(2 * num_arms), A_eq=columns, b_eq=target, bounds=(0, None)).fun
    design = solve_target_design(features, target[None], tolerance=1e-3)
    assert design.lower_bound <= shortest**2 * (1 + 1e-7)
    assert design.value >= shortest**2 * (1 - 1e-7)


@of_each("seed", range(6))
def test_pairs_given_as_targets_are_the_transductive_design(seed):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((30, 4)) * [1.0, 1e3, 1e-5, 1.0]
    active = rng.choice(30, 8, replace=False)
    ends = np.array(list(combinations(active, 2)))
    pairs = solve_design(features, active)
    targets = solve_target_design(features, features[ends[:, 0]] - features[ends[:, 1]])
    assert pairs.lower_bound <= targets.value * (1 + 1e-9)
    assert targets.lower_bound <= pairs.value * (1 + 1e-9)


@of_each("seed", range(6))
def test_a_star_is_its_targets(seed):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((20, 5))
    features[3] = features[7]
    if seed % 2:
        features = np.hstack([features, features[:, :2] @ [[1.0], [2.0]]])  # rank 5 in 6 columns
    scales = rng.uniform(0.1, 2.0, 20)
    star = solve_star_design(features, 7, scales)
    targets = solve_target_design(features, (features[7] - features) / scales[:, None])
    assert star.rank == targets.rank == 5
    assert star.lower_bound <= targets.value * (1 + 1e-9)
    assert targets.lower_bound <= star.value * (1 + 1e-9)


@pytest.mark.parametrize("num_arms", [2, 3, 8])
def test_arms_without_structure_have_the_design_of_unit_vectors(num_arms):
    rng = np.random.default_rng(num_arms)
    scales = rng.uniform(0.1, 2.0, num_arms)
    scales[0] = np.nan  # not used
    design = independent_star_design(0, scales)
    assert design.weights.sum() == pytest.approx(1.0)
    assert design.lower_bound <= design.value <= design.lower_bound * (1 + 1e-9)
    own = np.max((1 / design.weights[0] + 1 / design.weights[1:]) / scales[1:] ** 2)
    assert design.value == pytest.approx(own)
    axes = np.eye(num_arms)
    general = solve_target_design(axes, (axes[0] - axes[1:]) / scales[1:, None], tolerance=1e-4)
    assert general.lower_bound <= design.value * (1 + 1e-9)
    assert design.lower_bound <= general.value * (1 + 1e-9)
    rotated = solve_star_design(axes @ rng.standard_normal((num_arms, num_arms)), 0, scales)
    assert rotated.value == pytest.approx(design.value)


def test_two_equal_arms_without_structure_are_pulled_alike():
    design = independent_star_design(1, np.array([0.5, 9.0]))
    np.testing.assert_allclose(design.weights, [0.5, 0.5])
    assert design.value == pytest.approx(4.0 / 0.25)


def test_small_cases():
    line = np.array([[1.0], [-2.0], [0.5]])
    design = solve_target_design(line, [[3.0], [-4.0]])
    assert design.value == pytest.approx(4.0)  # (4 / 2)^2
    np.testing.assert_allclose(design.weights, [0, 1, 0])
    nothing = solve_target_design(np.eye(3), np.zeros((2, 3)))
    assert nothing.value == nothing.lower_bound == 0.0
    assert solve_target_design(np.zeros((2, 3)), np.zeros((1, 3))).value == 0.0
    assert solve_star_design([[1.0, 2.0]], 0, [1.0]).value == 0.0
    assert solve_star_design([[0.0, 0.0]], 0, [1.0]).value == 0.0
    axes = solve_target_design(np.eye(2), np.eye(2))
    assert axes.value == pytest.approx(2.0, rel=0.01)


def test_scaling_the_targets_scales_the_value():
    rng = np.random.default_rng(3)
    features, targets = rng.standard_normal((15, 3)), rng.standard_normal((6, 3))
    one, two = solve_target_design(features, targets), solve_target_design(features, 4.0 * targets)
    assert two.value == pytest.approx(16.0 * one.value, rel=1e-9)


def test_what_cannot_be_measured_is_refused():
    flat = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0]])
    with pytest.raises(InvalidInput, match=r"1 of 2 targets lie outside the span .*target 1 .*infinite"):
        solve_target_design(flat, [[5.0, 0.0], [1.0, 1e-3]])
    with pytest.raises(InvalidInput, match="outside the span"):
        solve_target_design(np.zeros((2, 2)), [[1.0, 0.0]])
    assert solve_target_design(flat, [[4.0, 1e-3]], span_tolerance=1e-2).value == pytest.approx(4.0)


@of_each(
    ("targets", "words"),
    [([1.0, 2.0], "shape"), ([[1.0, 2.0, 3.0]], "shape"), (np.empty((0, 2)), "no target"), ([[1.0, np.nan]], "NaN")],
)
def test_bad_targets_are_refused(targets, words):
    with pytest.raises(InvalidInput, match=words):
        solve_target_design(np.eye(2), targets)
    with pytest.raises(InvalidInput, match="numeric"):
        solve_target_design(np.eye(2), [["a", "b"]])


def test_bad_stars_and_tolerances_are_refused():
    with pytest.raises(InvalidInput, match="arm 2 does not exist"):
        solve_star_design(np.eye(2), 2, [1.0, 1.0])
    for scales in ([1.0], [1.0, 0.0], [1.0, np.inf]):
        with pytest.raises(InvalidInput, match="scales"):
            solve_star_design(np.eye(2), 0, scales)
    with pytest.raises(InvalidInput, match="tolerance"):
        solve_target_design(np.eye(2), np.eye(2), tolerance=0.0)
    rng = np.random.default_rng(0)
    with pytest.raises(NotConverged) as caught:
        solve_target_design(rng.standard_normal((50, 6)), rng.standard_normal((40, 6)), max_steps=1, tolerance=1e-4)
    assert caught.value.best.lower_bound <= caught.value.best.value


@of_each("seed", [5, 309, 432, 40, 95])
def test_rivals_of_very_different_accuracies_leave_the_solver_something_to_work_with(seed):
    """All pairs in use and a gap above ten made every pair look idle: the first three ended in a traceback, the others
    dropped and took up the same pairs 200 times."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(3, 60))
    num_arms = int(rng.integers(dim + 1, 150))
    count = int(rng.integers(1, num_arms))
    features = rng.standard_normal((num_arms, dim)) * 10.0 ** -rng.uniform(0, rng.uniform(0, 4), dim)
    widths = 10.0 ** rng.uniform(-rng.uniform(0, 3), 0, num_arms)
    rivals = np.sort(rng.choice(np.arange(1, num_arms), count, replace=False))
    design = solve_star_design(features, 0, widths, rivals=rivals)
    assert design.gap <= 0.01
    away = (features[0] - features[rivals]) / widths[rivals, None]
    mixed = 0.999 * design.weights + 0.001 / num_arms
    assert longest(features, away, mixed) <= design.value * 1.0011


def test_a_star_without_rivals_costs_nothing():
    features = np.vstack([np.eye(3), np.eye(3), np.zeros(3)])
    nobody = np.empty(0, np.int64)
    assert solve_star_design(features, 0, np.ones(7), rivals=nobody).value == 0.0
    assert solve_star_design(features, 0, np.ones(7), rivals=np.array([3])).value == 0.0  # an equal arm


@pytest.mark.parametrize("num_arms", [3, 8])
def test_accuracies_beyond_the_range_of_squares_scale_the_value(num_arms):
    features = np.random.default_rng(1).standard_normal((num_arms, 4))
    usual = solve_star_design(features, 0, np.ones(num_arms))
    fine = solve_star_design(features, 0, np.full(num_arms, 2.0**-600))
    coarse = solve_star_design(features, 0, np.full(num_arms, 2.0**300))
    assert fine.value == np.inf
    assert coarse.value == np.ldexp(usual.value, -600)
    np.testing.assert_array_equal(fine.weights, usual.weights)
    np.testing.assert_array_equal(coarse.weights, usual.weights)
