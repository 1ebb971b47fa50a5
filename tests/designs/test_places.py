"""Near copies: which rows they are, the farthest pair by place, and designs that are valued over all rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st
from scipy.spatial.distance import cdist

from surepick.designs import design_value, places as module, solve as solver, solve_design, solve_star_design
from surepick.designs.objective import Objective, information
from surepick.designs.places import HEURISTIC_NEAR, LEAST_COPIES, Images, Places, places_of
from surepick.designs.problem import pose
from surepick.linalg.factorisations import cholesky, row_norms
from surepick.linalg.rows import HEURISTIC_LOOKS, near_rows

TOLERANCE = 0.01
JITTERS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-12)
seeds = st.integers(0, 2**32 - 1)


def spots(rng: np.random.Generator, kind: str, number: int, dim: int) -> np.ndarray:
    turns = rng.uniform(0.0, np.pi, (number, 1))
    return {
        "gaussian": rng.standard_normal((number, dim)),
        "cauchy": rng.standard_cauchy((number, dim)),
        "student": rng.standard_t(2, (number, dim)),
        "binary": rng.integers(0, 2, (number, dim)) * 1.0,
        "cosine": np.cos(np.arange(dim) * turns),
    }[kind]


KINDS = ("gaussian", "cauchy", "student", "binary", "cosine")


def near_copies(rng: np.random.Generator, some: np.ndarray, copies: int, jitter: float) -> np.ndarray:
    """Each row several times, in any order, with every entry off by a share of it."""
    rows = np.repeat(some, copies, axis=0)
    return (rows * (1.0 + jitter * rng.standard_normal(rows.shape)))[rng.permutation(len(rows))]


def star(features: np.ndarray):
    return solve_star_design(features, 0, np.ones(len(features)), tolerance=TOLERANCE)


def worst(features: np.ndarray, weights: np.ndarray, vectors: np.ndarray) -> float:
    """max y'A^-1 y, by an explicit inverse."""
    inverse = np.linalg.inv((features.T * weights) @ features)
    return float(np.einsum("ij,jk,ik->i", vectors, inverse, vectors).max())


def all_pairs(features: np.ndarray, weights: np.ndarray) -> float:
    """max ||x_a - x_b||^2 in A^-1 over all pairs, by an explicit inverse."""
    half = np.linalg.cholesky(np.linalg.inv((features.T * weights) @ features))
    return float(cdist(features @ half, features @ half, "sqeuclidean").max())


# ---- which rows are near copies


@settings(max_examples=budget(60))
@given(seeds, st.sampled_from(KINDS), st.sampled_from(JITTERS), st.integers(1, 30))
def test_a_row_is_near_the_first_of_its_class(seed, kind, jitter, copies):
    rng = np.random.default_rng(seed)
    rows = near_copies(rng, spots(rng, kind, 20, int(rng.integers(1, 12))), copies, jitter)
    rows = rows[np.argsort(-row_norms(rows), kind="stable")]
    lengths = row_norms(rows)
    found = near_rows(rows, lengths, HEURISTIC_NEAR, LEAST_COPIES)
    if found is None:
        return
    heads = found.first[found.group]
    assert (found.group[found.first] == np.arange(len(found.first))).all()
    assert (heads <= np.arange(len(rows))).all()
    assert len(rows) >= LEAST_COPIES * len(found.first)
    reach = HEURISTIC_LOOKS * HEURISTIC_NEAR * lengths[0]  # each projection may add a step
    assert (row_norms(rows - rows[heads]) <= reach).all()
    again = near_rows(rows, lengths, HEURISTIC_NEAR, LEAST_COPIES)
    assert (again.group == found.group).all()


@pytest.mark.parametrize("jitter", JITTERS)
def test_near_copies_are_one_place_or_few(jitter):
    rng = np.random.default_rng(1)
    problem = pose(near_copies(rng, spots(rng, "gaussian", 40, 10), 30, jitter), None, rank_tolerance=None)
    arms, points = places_of(problem)
    assert 40 <= len(arms) <= 60
    assert len(points) == len(arms)


@pytest.mark.parametrize(("num_rows", "dim"), [(2, 1), (300, 5), (5000, 8), (20_000, 20)])
def test_rows_that_are_no_copies_are_searched_as_ever(num_rows, dim):
    features = np.random.default_rng(2).standard_normal((num_rows, dim))
    assert places_of(pose(features, None, rank_tolerance=None)) is None


# ---- the farthest pair by place


def drawn_images(seed: int) -> tuple[Images, np.ndarray]:
    """Active points by place under some A, and all squared distances of theirs."""
    rng = np.random.default_rng(seed)
    dim = int(rng.integers(1, 7))
    jitter = 10.0 ** rng.uniform(-13, 0)
    rows = near_copies(rng, spots(rng, str(rng.choice(KINDS)), int(rng.integers(1, 9)), dim), 12, jitter)
    problem = pose(np.vstack([rows, rng.standard_normal((2, dim))]), None, rank_tolerance=None)
    group = rng.integers(0, max(1, len(problem.basis) // 6), len(problem.basis))  # any classes will do
    active = np.flatnonzero(rng.random(len(problem.basis)) < 0.8)
    active = active if len(active) > 1 else np.arange(len(problem.basis))
    found = places_of(problem)
    if found is not None and rng.random() < 0.7:
        group = found[0].group
    factor = cholesky(information(problem.basis, rng.dirichlet(np.ones(len(problem.basis)))))
    images = Images.under(problem, Places.among(group, active), np.eye(problem.rank) if factor is None else factor)
    return images, cdist(images.points, images.points, "sqeuclidean")


def wrong_farthest(images: Images, squares: np.ndarray, share: float) -> bool:
    """Whether what is said of the farthest pair, with and without a ceiling, is not so."""
    longest, close = float(squares.max()), 1.0 + 1e-9
    found = images.farthest(most=1, enough=np.inf)
    position = {row: at for at, row in enumerate(images.places.rows.tolist())}
    first, second = (position[int(one[0])] for one in (found.first, found.second))
    if abs(found.squares[0] - longest) > 1e-9 * longest or squares[first, second] * close < longest:
        return True
    enough = share * longest
    quick = images.farthest(most=1, enough=enough)
    if len(quick.squares) and quick.squares[0] > longest * close:
        return True
    if quick.bound < np.inf:
        return quick.bound * close < longest
    return not quick.squares[0] > enough


@settings(max_examples=budget(200))
@given(seeds, st.floats(0.5, 1.5))
def test_the_farthest_pair_by_place_is_the_farthest_of_all(seed, share):
    images, squares = drawn_images(seed)
    if len(squares) > 1 and squares.any():
        assert not wrong_farthest(images, squares, share)


def noticed(images: Images, squares: np.ndarray) -> bool:
    try:
        return wrong_farthest(images, squares, 0.9)
    except ZeroDivisionError:  # no place is left
        return True


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_radii_that_are_too_small_are_noticed(kept):
    drawn = [drawn_images(seed) for seed in range(200)]
    drawn = [one for one in drawn if len(one[1]) > 1 and one[1].any()]
    assert not any(noticed(*one) for one in drawn)
    assert any(noticed(replace(images, radii=kept * images.radii), squares) for images, squares in drawn)


# ---- designs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("jitter", JITTERS)
def test_a_design_of_near_copies_is_certified_and_valued_over_all_rows(kind, jitter):
    rng = np.random.default_rng(3)
    some = spots(rng, kind, 36, 7)
    features = near_copies(rng, some, 15, jitter)
    design = solve_design(features, tolerance=TOLERANCE)
    assert design.gap <= TOLERANCE
    assert np.isclose(design.value, all_pairs(features, design.weights), rtol=1e-6)
    assert np.isclose(design.value, design_value(features, design.weights), rtol=1e-9)
    one = star(features)
    assert one.gap <= TOLERANCE
    assert np.isclose(one.value, worst(features, one.weights, features[0] - features), rtol=1e-6)
    if jitter <= 1e-4:  # as exact copies; the brackets meet
        exact = solve_design(some, tolerance=TOLERANCE)
        assert design.lower_bound <= exact.value * (1.0 + 100 * jitter)
        assert exact.lower_bound <= design.value * (1.0 + 100 * jitter)
        assert np.count_nonzero(design.weights) <= 1.3 * np.count_nonzero(exact.weights)


def test_near_copies_of_some_active_arms_and_given_rivals():
    rng = np.random.default_rng(4)
    features = near_copies(rng, spots(rng, "gaussian", 30, 6), 20, 1e-5)
    active = np.flatnonzero(rng.random(len(features)) < 0.3)
    design = solve_design(features, active, tolerance=TOLERANCE)
    inverse = np.linalg.inv((features.T * design.weights) @ features)
    half = np.linalg.cholesky(inverse)
    assert np.isclose(design.value, cdist(features[active] @ half, features[active] @ half, "sqeuclidean").max())
    widths = 10.0 ** rng.uniform(-2, 0, len(features))
    design = solve_star_design(features, 5, widths, rivals=active, tolerance=TOLERANCE)
    away = (features[5] - features[active]) / widths[active, None]
    assert design.gap <= TOLERANCE
    assert np.isclose(design.value, worst(features, design.weights, away), rtol=1e-6)


def test_where_looks_do_not_suffice_the_search_goes_on_without_places(monkeypatch):
    monkeypatch.setattr(solver, "MOST_LOOKS", 1)
    rng = np.random.default_rng(5)
    features = near_copies(rng, spots(rng, "gaussian", 30, 5), 6, 3e-2)
    for design in (solve_design(features, tolerance=TOLERANCE), star(features)):
        assert design.gap <= TOLERANCE


def test_the_bracket_of_places_meets_that_of_all_rows(monkeypatch):
    rng = np.random.default_rng(6)
    features = near_copies(rng, spots(rng, "gaussian", 40, 8), 20, 1e-2)
    honest = solve_design(features, tolerance=TOLERANCE)
    monkeypatch.setattr(module, "near_rows", lambda *_: None)
    fine = solve_design(features, tolerance=TOLERANCE)
    assert honest.lower_bound <= fine.value * (1 + 1e-9)
    assert fine.lower_bound <= honest.value * (1 + 1e-9)


def test_more_places_than_are_compared_change_the_search_and_no_certificate(monkeypatch):
    monkeypatch.setattr(solver, "PLACES_COMPARED", 3)
    rng = np.random.default_rng(7)
    features = near_copies(rng, spots(rng, "gaussian", 25, 4), 12, 1e-3)
    design = solve_design(features, tolerance=TOLERANCE)
    assert design.gap <= TOLERANCE
    problem = pose(features, None, rank_tolerance=None)
    assert np.isclose(design.value, Objective(problem).value(problem.merged(design.weights)), rtol=1e-9)
