"""The farthest pair is found without looking at all pairs: in the plane, in single precision, and from memory."""

from __future__ import annotations

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import cdist

from surepick.designs import objective as objectives
from surepick.designs.objective import Objective, information
from surepick.designs.problem import pose
from surepick.designs.solve import solve_design
from surepick.linalg import convex_hull_2d, factorisations
from surepick.linalg.convex_hull_2d import farthest_in_the_plane
from surepick.linalg.factorisations import cholesky
from surepick.linalg.farthest_pairs import farthest_pairs, pairs_from

seeds = st.integers(0, 2**32 - 1)


def all_squares(points: np.ndarray) -> np.ndarray:
    return cdist(points, points, "sqeuclidean")


def shape_in_the_plane(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    angles = rng.uniform(0, 2 * np.pi, count)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    shapes = {
        "gaussian": rng.standard_normal((count, 2)),
        "circle": circle,
        "ellipse": circle * [1.0, 10.0 ** rng.uniform(-9, 0)],
        "line": np.outer(rng.standard_normal(count), [1.0, 2.0]) + np.array([0.3, 0.4]),
        "grid": rng.integers(-3, 4, (count, 2)) * 1.0,
        "clusters": rng.integers(0, 2, (count, 1)) * [[1.0, 3.0]] + 1e-5 * rng.standard_normal((count, 2)),
        "square": rng.uniform(-1, 1, (count, 2)),
        "half circle": np.abs(circle) * [1.0, rng.choice([-1.0, 1.0])],
        "constant width": constant_width(rng, count),
        "regular": np.stack([np.cos(turns := 2 * np.pi * np.arange(count) / count), np.sin(turns)], axis=1),
    }
    return shapes[kind]


def constant_width(rng: np.random.Generator, count: int) -> np.ndarray:
    """Points of arcs about the corners of a triangle, each of which is as far from its corner as any pair is."""
    corner = rng.integers(0, 3, count)
    toward = np.pi / 2 + 2 * np.pi * corner / 3
    angles = toward + np.pi + rng.uniform(-np.pi / 6, np.pi / 6, count)
    centres = np.stack([np.cos(toward), np.sin(toward)], axis=1)
    return centres + np.sqrt(3) * np.stack([np.cos(angles), np.sin(angles)], axis=1)


KINDS = [
    "gaussian",
    "circle",
    "ellipse",
    "line",
    "grid",
    "clusters",
    "square",
    "half circle",
    "constant width",
    "regular",
]


@settings(max_examples=budget(400))
@given(seeds, st.sampled_from(KINDS), st.integers(2, 900), st.sampled_from([np.inf, 1.0, 0.999, 1.001]))
def test_in_the_plane(seed, kind, count, share):
    rng = np.random.default_rng(seed)
    points = shape_in_the_plane(rng, kind, count) * 10.0 ** rng.uniform(-5, 5) + rng.standard_normal(2)
    truth = float(all_squares(points).max())
    enough = np.inf if share == np.inf else share * truth
    pairs = farthest_in_the_plane(points, enough=enough)
    differences = points[pairs.first] - points[pairs.second]
    np.testing.assert_allclose((differences**2).sum(axis=1), pairs.squares, rtol=1e-12)
    assert pairs.bound >= truth * (1 - 1e-12)
    if share == np.inf:
        assert pairs.exact
        assert pairs.squares[0] == pytest.approx(truth, rel=1e-12)
    else:
        assert pairs.exact or pairs.squares[0] > enough or pairs.bound <= enough


def test_angles_that_are_cut_too_close_would_be_noticed(monkeypatch):
    """The saboteur: windows that are a little too narrow lose the farthest of many nearly opposite pairs."""
    monkeypatch.setattr(convex_hull_2d, "FEW", 20)
    rng, lost = np.random.default_rng(4), {}
    shapes = [
        shape_in_the_plane(rng, kind, 300) for kind in ("circle", "half circle", "constant width") for _ in range(20)
    ]
    for margin in (convex_hull_2d.COSINE_MARGIN, -1e-3):
        monkeypatch.setattr(convex_hull_2d, "COSINE_MARGIN", margin)
        lost[margin] = sum(farthest_in_the_plane(each).bound < all_squares(each).max() * (1 - 1e-12) for each in shapes)
    assert next(iter(lost.values())) == 0
    assert lost[-1e-3] > 5


@settings(max_examples=budget(60))
@given(seeds, st.integers(1, 8), st.integers(2, 3000), st.integers(1, 300), st.booleans())
def test_the_farthest_pairs_are_the_farthest_of_all(seed, dim, count, least, grid):
    rng = np.random.default_rng(seed)
    points = rng.integers(-3, 4, (count, dim)) * 1.0 if grid else rng.standard_normal((count, dim))
    pairs = farthest_pairs(points, least=least, most=2 * least, share=0.9)
    squares = all_squares(points)[np.triu_indices(count, 1)]
    expected = np.sort(squares)[::-1]
    assert len(pairs.squares) >= min(least, len(squares))
    np.testing.assert_allclose(pairs.squares, expected[: len(pairs.squares)], rtol=1e-9, atol=1e-12)
    beyond = expected[len(pairs.squares) :]
    assert len(beyond) == 0 or beyond[0] <= pairs.elsewhere * (1 + 1e-12)
    assert len({*zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}) == len(pairs.first)


def test_single_precision_does_not_blur_close_pairs():
    """Pairs that differ by less than single precision resolves; the farthest is still the farthest."""
    rng = np.random.default_rng(0)
    points = rng.standard_normal((2000, 3))
    points /= np.sqrt((points**2).sum(axis=1, keepdims=True))
    ends = np.zeros((40, 3))
    ends[:20, 0], ends[20:, 0] = 1.0, -1.0
    ends[:20, 1] = 1e-5 * np.arange(20)
    ends[20:, 1] = -1e-5 * np.arange(20)
    points = np.concatenate([points, 1.5 * ends]) + 7.0
    pairs = farthest_pairs(points)
    assert {int(pairs.first[0]), int(pairs.second[0])} == {2019, 2039}


@pytest.mark.parametrize("size", [700, 3000])
def test_pairs_with_one_given_end(size):
    points = np.random.default_rng(1).standard_normal((size, 4)) + 3.0
    hot = np.array([3, 50, size - 1])
    pairs = pairs_from(points[hot], (points[:400], points[400:]), most=20, floor=0.0)
    squares = all_squares(points)[hot]
    np.testing.assert_allclose(pairs.squares, np.sort(squares.ravel())[::-1][:20], rtol=1e-9)
    np.testing.assert_allclose(squares[pairs.first, pairs.second], pairs.squares, rtol=1e-9)
    assert pairs.bound == np.inf
    beyond = float(pairs.squares[7])
    few = pairs_from(points[hot], (points[:400], points[400:]), most=20, floor=beyond)
    assert len(few.squares) == 8


@pytest.mark.parametrize("kind", ["sphere", "gaussian"])
def test_what_is_remembered_of_one_design_is_true_of_another(kind, monkeypatch):
    monkeypatch.setattr(objectives, "FEW", 100)
    rng = np.random.default_rng(2)
    features = rng.standard_normal((900, 4))
    if kind == "sphere":
        features /= np.sqrt((features**2).sum(axis=1, keepdims=True))
    problem = pose(features, None, rank_tolerance=None)
    objective = Objective(problem)
    weights = rng.dirichlet(np.ones(len(features)))
    for _ in range(40):
        other = rng.dirichlet(np.full(len(features), 0.3))
        weights = 0.97 * weights + 0.03 * other
        factor = cholesky(information(problem.basis, weights))
        points = np.linalg.solve(factor, problem.points.T).T
        truth = float(all_squares(points).max())
        for enough in (0.9 * truth, 1.001 * truth, 1.3 * truth, np.inf):
            found = objective.far(factor, most=30, enough=enough)
            assert found.squares[0] <= truth * (1 + 1e-9)
            decided = found.squares[0] > enough or truth * (1 - 1e-9) <= found.bound <= enough
            assert found.exact or (enough < np.inf and decided)
            if found.exact:
                assert found.squares[0] == pytest.approx(truth, rel=1e-9)
        assert objective.value(weights) == pytest.approx(truth, rel=1e-9)
        assert objective.at_most(truth * 1.0001, weights)
        assert not objective.at_most(truth * 0.9999, weights)


@pytest.mark.parametrize("kind", ["sphere", "gaussian", "heavy"])
def test_no_pair_that_is_not_noted_exceeds_the_bound(kind, monkeypatch):
    monkeypatch.setattr(objectives, "FEW", 8)
    monkeypatch.setattr(objectives, "NOTED_LEAST", 20)
    noted = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        features = rng.standard_normal((600, 3))
        if kind == "sphere":
            features /= np.sqrt((features**2).sum(axis=1, keepdims=True))
        if kind == "heavy":
            features *= rng.uniform(0.5, 1.5, (600, 1))
        problem = pose(features, None, rank_tolerance=None)
        objective = Objective(problem)
        factor = cholesky(information(problem.basis, rng.dirichlet(np.ones(600))))
        objective.far(factor)
        if objective._noted is None:
            continue
        noted += 1
        squares = all_squares(np.linalg.solve(objective._noted.factor, problem.points.T).T)
        pairs = objective._noted.pairs
        squares[pairs.first, pairs.second] = squares[pairs.second, pairs.first] = 0.0
        assert squares.max() <= pairs.elsewhere * (1 + 1e-12)
    assert noted >= 5


def on_a_sphere(count: int, dim: int) -> np.ndarray:
    points = np.random.default_rng(dim).standard_normal((count, dim))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_one_full_search_is_enough_for_a_sphere(monkeypatch):
    """The far pairs under equal weights of all arms hold those of all designs on the way, and prove the last value."""
    monkeypatch.setattr(objectives, "FEW", 500)
    searched = []
    everything = objectives.farthest_pairs
    monkeypatch.setattr(
        objectives, "farthest_pairs", lambda points, **kw: searched.append(len(points)) or everything(points, **kw)
    )
    features = on_a_sphere(4000, 4)
    design = solve_design(features)
    assert design.gap <= 0.01
    assert searched.count(4000) == 1
    points = np.linalg.solve(cholesky(information(features, design.weights)), features.T).T
    lengths = (points**2).sum(axis=1)
    squares = lengths[:, None] + lengths - 2.0 * points @ points.T
    assert design.value == pytest.approx(squares.max(), rel=1e-9)


def test_a_memory_that_forgets_how_the_design_changed_would_be_noticed(monkeypatch):
    """The saboteur of line 6: taken as they are, bounds under one design are below the far pairs of another."""
    monkeypatch.setattr(objectives, "FEW", 100)
    monkeypatch.setattr(objectives, "NOTED_LEAST", 20)
    monkeypatch.setattr(objectives, "NEAR", 0.999)  # so that few pairs are noted
    problem = pose(on_a_sphere(900, 4), None, rank_tolerance=None)
    rng = np.random.default_rng(3)
    designs = [rng.dirichlet(np.full(900, 0.3)) for _ in range(40)]
    svd, wrong = factorisations.thin_svd, {}
    for honest in (True, False):
        monkeypatch.setattr(factorisations, "thin_svd", svd if honest else lambda matrix: (matrix, np.ones(4), matrix))
        objective, wrong[honest] = Objective(problem), 0
        for weights in designs:
            factor = cholesky(information(problem.basis, weights))
            truth = all_squares(np.linalg.solve(factor, problem.points.T).T).max()
            wrong[honest] += objective.far(factor, enough=1.2 * truth).bound < truth * (1.0 - 1e-9)
    assert wrong[True] == 0
    assert wrong[False] > 5
