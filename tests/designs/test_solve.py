"""The design solver against independent oracles: semidefinite programs, known optima and pairs one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from design_oracles import whitened_by_svd
from scipy.optimize import linprog
from together import of_each

from surepick.designs import design_value, solve_design, solve_target_design
from surepick.errors import InvalidInput, NotConverged
from surepick.linalg.farthest_pairs import farthest_pairs


def optimum(features: np.ndarray, active: np.ndarray) -> float:
    """tau by CLARABEL: minimise t with [[A, y], [y', t]] positive semidefinite for the difference y of every pair."""
    import cvxpy as cp

    z = whitened_by_svd(features)
    lam, t = cp.Variable(len(z), nonneg=True), cp.Variable((1, 1))
    information = z.T @ cp.diag(lam) @ z
    differences = {tuple(z[a] - z[b]) for a, b in combinations(active, 2) if (z[a] != z[b]).any()}
    columns = [np.array(y)[:, None] for y in sorted(differences)]
    blocks = [cp.bmat([[information, y], [y.T, t]]) >> 0 for y in columns]
    problem = cp.Problem(cp.Minimize(t[0, 0]), [*blocks, cp.sum(lam) == 1])
    problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


def holds(features: np.ndarray, active: np.ndarray | None = None, tolerance: float = 0.01) -> float:
    """Solve, check what every design promises, return the value."""
    design = solve_design(features, active, tolerance=tolerance)
    assert design.weights.shape == (len(features),)
    assert design.weights.min() >= 0.0
    assert design.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert design.lower_bound <= design.value
    assert design.gap <= tolerance
    assert design.value == design_value(features, design.weights, active)
    return design.value


def clusters(num_arms: int, dim: int, perturbation: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = np.abs(rng.standard_normal((2, dim)))
    centres *= np.sqrt([[0.8], [0.5]] / (centres**2).sum(axis=1, keepdims=True))
    arms = centres[np.arange(num_arms) % 2]
    arms[np.arange(num_arms), rng.integers(0, dim, num_arms)] += perturbation * rng.standard_normal(num_arms)
    return arms


@pytest.mark.cases(7)
@pytest.mark.parametrize("seed", range(14))
def test_the_optimum_of_a_semidefinite_program_lies_between_the_bounds(seed):
    rng = np.random.default_rng(seed)
    num_arms, dim = int(rng.integers(4, 13)), int(rng.integers(2, 5))
    features = rng.standard_normal((num_arms, dim)) if seed % 2 else rng.integers(-2, 3, (num_arms, dim)) * 1.0
    active = np.sort(rng.choice(num_arms, int(rng.integers(3, num_arms + 1)), replace=False))
    tau = optimum(features, active)
    design = solve_design(features, active, tolerance=1e-3)
    assert design.lower_bound <= tau * (1 + 1e-6)
    assert design.value >= tau * (1 - 1e-6)
    assert design.gap <= 1e-3


@of_each("seed", range(10))
def test_one_difference_costs_its_squared_l1_representation(seed):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((20, 4)) if seed % 2 else rng.integers(-3, 4, (20, 4)) * 1.0
    y = features[0] - features[1]
    both = np.hstack([features.T, -features.T])
    tau = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=y).fun ** 2
    design = solve_design(features, [0, 1], tolerance=1e-3)
    assert design.lower_bound <= tau * (1 + 1e-9)
    assert design.value >= tau * (1 - 1e-9)
    assert np.count_nonzero(design.weights) <= 6  # 4 at a vertex of the linear program; optima may form a face


@of_each("num_arms", [2, 3, 7, 40])
def test_orthonormal_arms_have_value_2k_at_equal_weights(num_arms):
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((num_arms, num_arms)))[0]
    design = solve_design(rotation)
    np.testing.assert_allclose(design.weights, 1.0 / num_arms, rtol=1e-12)
    assert design.value == pytest.approx(2.0 * num_arms, rel=1e-10)
    some = solve_design(rotation, [0, num_arms - 1])
    assert some.value == pytest.approx(4.0, rel=1e-10)
    assert np.count_nonzero(some.weights) == 2


@pytest.mark.parametrize("dim", [2, 5, 12])
def test_a_regular_simplex_ties_on_every_pair(dim):
    corners = np.eye(dim + 1) - 1.0 / (dim + 1)  # rank dim; all pairs tie, all arms are alike
    equal = np.full(dim + 1, 1.0 / (dim + 1))
    assert holds(corners) <= design_value(corners, equal) * 1.01
    assert solve_design(corners).lower_bound <= design_value(corners, equal)
    assert solve_design(corners).rank == dim


def test_ties_on_a_cross_polytope():
    assert holds(np.vstack([np.eye(8), -np.eye(8)]), tolerance=1e-3) == pytest.approx(32.0, rel=1e-3)


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_on_a_line_all_weight_goes_to_the_longest_arm(scale):
    features = scale * np.array([[1.0], [-3.0], [0.5], [2.0]])
    design = solve_design(features, [0, 2, 3])
    np.testing.assert_array_equal(design.weights, [0.0, 1.0, 0.0, 0.0])
    assert design.value == pytest.approx((1.5 / 3.0) ** 2, rel=1e-12)
    assert design.lower_bound <= (1.5 / 3.0) ** 2


@of_each("num_arms", [4, 5, 12, 101])
def test_points_on_a_circle(num_arms):
    angles = 2 * np.pi * np.arange(num_arms) / num_arms
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    equal = np.full(num_arms, 1.0 / num_arms)  # optimal by symmetry: A = I/2
    best = design_value(features, equal)
    design = solve_design(features, tolerance=1e-3)
    assert design.lower_bound <= best * (1 + 1e-12)
    assert design.value >= best * (1 - 1e-12)
    assert np.count_nonzero(design.weights) <= 3


def test_one_arm_equal_arms_and_zero_features_cost_nothing():
    for features, active in [
        (np.array([[3.0, 1.0]]), None),
        (np.ones((5, 3)), None),
        (np.zeros((4, 2)), None),
        (np.empty((3, 0)), None),
        (np.random.default_rng(0).standard_normal((6, 2)), [4]),
        (np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), [0, 2]),
    ]:
        design = solve_design(features, active)
        assert (design.value, design.lower_bound, design.gap) == (0.0, 0.0, 0.0)
        assert design.weights.sum() == 1.0
        assert design_value(features, design.weights, active) == 0.0


def test_equal_arms_share_one_weight_and_leave_the_value_alone():
    features = np.random.default_rng(3).standard_normal((15, 4))
    repeated = np.repeat(features, 20, axis=0)
    once, often = solve_design(features, tolerance=1e-3), solve_design(repeated, tolerance=1e-3)
    assert often.value == pytest.approx(once.value, rel=1e-3)
    assert np.count_nonzero(often.weights) <= len(features)


def test_the_scale_of_the_columns_does_not_matter():
    features = np.random.default_rng(4).standard_normal((40, 5))
    scales = np.array([1e-8, 1e8, 1.0, 1e-4, 1e4])
    assert holds(features * scales, tolerance=1e-3) == pytest.approx(holds(features, tolerance=1e-3), rel=1e-3)


@of_each("perturbation", [1e-3, 1e-6, 1e-9, 1e-12])
def test_tight_clusters_are_valued_in_exact_coordinates(perturbation):
    features = clusters(40, 3, perturbation)
    design = solve_design(features, tolerance=1e-3, rank_tolerance=1e-14)
    normal = np.linalg.qr(np.stack([features[0], features[1], np.ones(3)], axis=1))[0][:, 2].astype(np.longdouble)
    exact = features.astype(np.longdouble)  # an invertible map leaves tau alone: blow up what is orthogonal to both
    stretched = exact + (1 / np.longdouble(perturbation) - 1) * (exact @ normal)[:, None] * normal
    stretched = stretched.astype(np.float64)
    again = solve_design(stretched, tolerance=1e-3)
    close = 1e-6 if np.finfo(np.longdouble).eps < 1e-18 else 1e-3  # where long doubles are doubles
    assert design.rank == again.rank == 3
    assert design.lower_bound <= again.value * (1 + close)
    assert again.lower_bound <= design.value * (1 + close)
    regular = 0.5 * design.weights + 0.5 / len(features)
    assert design_value(features, regular, rank_tolerance=1e-14) == pytest.approx(
        design_value(stretched, regular), rel=close
    )


def test_clusters_in_the_plane_need_two_to_four_arms():
    for seed in range(10):
        features = clusters(250, 2, 1e-5, seed)
        holds(features)
        assert 2 <= np.count_nonzero(solve_design(features).weights) <= 4


def test_features_rounded_to_decimals_need_a_coarser_rank_cut():
    rng = np.random.default_rng(5)
    flat = rng.uniform(size=(60, 3)) @ rng.uniform(size=(3, 6))
    rounded = np.round(flat, 6)
    assert solve_design(flat).rank == 3
    assert solve_design(rounded).rank == 6
    coarse = solve_design(rounded, rank_tolerance=1e-5)
    assert coarse.rank == 3
    assert coarse.value == pytest.approx(solve_design(flat).value, rel=0.02)


@of_each(("num_arms", "dim"), [(200, 20), (60, 59), (30, 30), (100, 100), (120, 110), (7, 20)])
def test_gaussian_arms_of_many_shapes(num_arms, dim):
    features = np.random.default_rng(0).standard_normal((num_arms, dim))
    value = holds(features)
    if num_arms <= dim:
        assert value == pytest.approx(2.0 * num_arms, rel=1e-9)


@pytest.mark.cases(4)
@pytest.mark.parametrize("seed", range(6))
def test_sphere_grid_and_binary_arms(seed):
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((150, 8))
    holds(directions / np.linalg.norm(directions, axis=1)[:, None], tolerance=1e-3)
    holds(rng.integers(-1, 2, (150, 4)) * 1.0, tolerance=1e-3)
    holds(rng.integers(0, 2, (60, 6)) * 1.0, rng.choice(60, 9, replace=False))
    holds(np.vander(rng.uniform(-1, 1, 50), 9))
    holds(rng.standard_cauchy((80, 5)), rng.choice(80, 3, replace=False), tolerance=1e-3)


def test_as_many_dimensions_as_arms_like_small_image_sets():
    pixels = np.random.default_rng(0).uniform(size=(200, 784)) ** 4
    design = solve_design(pixels)
    assert design.rank == 200
    assert design.value == pytest.approx(400.0, rel=1e-9)


def test_a_singular_optimum_is_certified():
    features = np.vstack([np.eye(12), np.zeros((1, 12)), np.random.default_rng(0).standard_normal((3, 12))])
    design = solve_design(features, range(9), tolerance=1e-3)
    assert design.gap <= 1e-3
    assert design.value == pytest.approx(18.0, rel=2e-3)


def test_the_same_call_gives_the_same_bits():
    features = np.random.default_rng(6).standard_normal((90, 7))
    assert solve_design(features) == solve_design(features.copy())


def test_indices_in_any_order_and_a_mask_mean_the_same():
    features = np.random.default_rng(7).standard_normal((12, 3))
    mask = np.zeros(12, dtype=bool)
    mask[[2, 5, 9]] = True
    assert solve_design(features, [9, 2, 5]) == solve_design(features, mask)


def test_too_few_steps_are_admitted_with_the_best_design():
    features = np.random.default_rng(8).standard_normal((100, 10))
    with pytest.raises(NotConverged, match=r"gap .*% > tolerance 0\.10% after 1 steps \(d=10, 100") as caught:
        solve_design(features, tolerance=1e-3, max_steps=1)
    best = caught.value.best
    assert best.gap == caught.value.gap > 1e-3
    assert best.lower_bound <= solve_design(features).value
    assert best.value == design_value(features, best.weights)


@of_each(
    ("features", "active", "message"),
    [
        ([[1.0, np.nan], [0.0, 1.0]], None, "1 of 2 rows have NaN or infinite features: rows 0"),
        ([[1.0, 0.0], [0.0, np.inf]], None, "rows 1"),
        ([1.0, 2.0], None, r"shape \(2,\)"),
        (np.empty((0, 2)), None, "no arm"),
        ([["a"]], None, "not a numeric"),
        (np.eye(3), [], "no arm is active"),
        (np.eye(3), [False] * 3, "no arm is active"),
        (np.eye(3), [True, False], "mask has 2 entries for 3 arms"),
        (np.eye(3), [0, 3], "active arm 3 does not exist"),
        (np.eye(3), [-1, 0], "active arm -1 does not exist"),
        (np.eye(3), [1, 1], "more than once"),
        (np.eye(3), [0.5, 1.0], "integer indices or a boolean mask"),
        (np.eye(3), [[0, 1]], "list of indices"),
    ],
)
def test_wrong_input_is_refused_with_the_reason(features, active, message):
    with pytest.raises(InvalidInput, match=message):
        solve_design(features, active)


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan])
def test_a_tolerance_must_be_positive(tolerance):
    with pytest.raises(InvalidInput, match="tolerance"):
        solve_design(np.eye(2), tolerance=tolerance)


@of_each("weights", [[1.0], [1.0, -1.0], [np.nan, 1.0], [0.0, 0.0]])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(InvalidInput, match="weight"):
        design_value(np.eye(2), weights)


@of_each("spread", [1e-6, 1e-9, 1e-12])
@of_each("seed", range(4))
def test_active_arms_close_together_in_the_plane(seed, spread):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((200, 2))
    features[:6] = features[0] + spread * rng.standard_normal((6, 2))
    design = solve_design(features, range(6))
    assert design.gap <= 0.01


@pytest.mark.parametrize("angle", [0.5, 1.1, 2.7])
def test_long_and_thin_sets_in_the_plane(angle):
    along, across = np.array([np.cos(angle), np.sin(angle)]), np.array([-np.sin(angle), np.cos(angle)])
    features = np.vstack([100 * along, -100.1 * along, np.outer(np.linspace(-1, 1, 1998), across)])
    assert solve_design(features).gap <= 0.01


@pytest.mark.parametrize("num_arms", [300, 2000])
def test_a_circle_is_solved_to_a_small_gap(num_arms):
    angles = np.random.default_rng(1).uniform(0, 2 * np.pi, num_arms)
    design = solve_design(np.stack([np.cos(angles), np.sin(angles)], axis=1), tolerance=1e-4)
    assert design.gap <= 1e-4


def test_tiny_and_huge_vectors_neither_vanish_nor_overflow():
    features = [[1, 0], [0, 1], [1, 1], [1e-100, 0], [0, 1e-100]]
    assert 0.0 < solve_design(features, [3, 4]).value < 1e-190
    for size in (1e-90, 1e150):
        targets = np.eye(3) * size
        assert solve_target_design(np.eye(3), targets).value == pytest.approx(3.0 * size**2, rel=0.01)


def test_tied_corners_have_a_farthest_pair():
    corners = np.unique(np.random.default_rng(0).choice([-1.0, 1.0], size=(4500, 24)), axis=0)
    pairs = farthest_pairs(np.unique(np.vstack([corners, -corners]), axis=0))
    assert pairs.exact
    assert pairs.squares[0] == 96.0


@pytest.mark.parametrize("rank_tolerance", [-1.0, 1.0, np.nan])
def test_a_cut_that_is_no_share_is_refused(rank_tolerance):
    with pytest.raises(InvalidInput, match="rank_tolerance"):
        solve_design(np.eye(3), rank_tolerance=rank_tolerance)


def test_an_infinite_tolerance_is_refused():
    with pytest.raises(InvalidInput, match="tolerance is inf"):
        solve_design(np.eye(3), tolerance=np.inf)


def test_blocks_of_one_thread_may_overlap():
    from threadpoolctl import threadpool_info, threadpool_limits

    from surepick.linalg.rows import one_blas_thread

    def threads() -> set[int]:
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert threads() == {1}
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == before
