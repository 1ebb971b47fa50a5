"""The gains of arms from step to step: what is not looked at again could not have had the largest."""

import numpy as np
import pytest

from surepick.designs import pricing
from surepick.designs.pricing import ReducedCosts
from surepick.designs.problem import pose
from surepick.linalg.factorisations import cholesky, solve_rows


def all_gains(basis: np.ndarray, factor: np.ndarray, spread: np.ndarray) -> np.ndarray:
    return np.einsum("ij,jk,ik->i", (rows := solve_rows(factor, basis)), spread, rows)


def steps(rng: np.random.Generator, dim: int, number: int, change: float):
    """(A, W) of a few steps, each a little off the one before; W of low rank, as few pairs have multipliers."""
    shape, sides = rng.standard_normal((4 * dim, dim)), rng.standard_normal((max(dim // 3, 1), dim))
    for _ in range(number):
        yield shape.T @ shape / len(shape), sides.T @ sides
        shape = shape + change * rng.standard_normal(shape.shape)
        sides = sides + change * rng.standard_normal(sides.shape)


@pytest.mark.cases(6)
@pytest.mark.parametrize("kind", ["gaussian", "sphere", "heavy"])
@pytest.mark.parametrize(("dim", "change"), [(2, 0.1), (7, 0.01), (7, 0.3), (20, 0.03)])
def test_the_bound_and_the_gains_that_count_are_those_of_all_arms(monkeypatch, kind, dim, change):
    monkeypatch.setattr(pricing, "FEW", 200)
    rng = np.random.default_rng(dim)
    features = rng.standard_normal((4000, dim))
    if kind == "sphere":
        features /= np.linalg.norm(features, axis=1, keepdims=True)
    if kind == "heavy":
        features *= rng.standard_cauchy((4000, 1))
    problem = pose(features, None, rank_tolerance=None)
    prices, looked = ReducedCosts(problem), []
    gains_of, nearly = prices._gains, prices._nearly
    monkeypatch.setattr(prices, "_gains", lambda *asked: looked.append(len(asked[2])) or gains_of(*asked))
    monkeypatch.setattr(prices, "_nearly", lambda *asked: looked.append(len(features)) or nearly(*asked))
    for matrix, spread in steps(rng, dim, 12, change):
        factor = cholesky(matrix)
        used = rng.choice(len(features), 3 * dim, replace=False)
        found = prices.priced(factor, solve_rows(factor, problem.basis[used]), spread)
        gains = all_gains(problem.basis, factor, spread)
        largest = gains[used].max()
        assert found.lower == pytest.approx(np.trace(spread) ** 2 / gains.max(), rel=1e-9)
        shown = np.zeros(len(gains))
        shown[: len(found.gains)] = found.gains * largest
        better = gains > largest * (1.0 + 1e-9)
        np.testing.assert_allclose(shown[better], gains[better], rtol=1e-8)
        assert (shown <= gains * (1.0 + 1e-8)).all()
    if change < 0.1 and kind == "gaussian":
        assert looked[0] == len(features)
        assert looked.count(len(features)) <= 10  # the other steps looked at few


def test_a_bound_that_forgets_how_much_m_changed_would_be_noticed(monkeypatch):
    """The saboteur: with the gains of an earlier M taken as they are, arms that became better are lost."""
    monkeypatch.setattr(pricing, "FEW", 200)
    rng = np.random.default_rng(1)
    problem = pose(rng.standard_normal((4000, 6)), None, rank_tolerance=None)
    prices, wrong = ReducedCosts(problem), 0
    kept = pricing._Reference
    for matrix, spread in steps(rng, 6, 12, 0.3):
        factor = cholesky(matrix)
        used = rng.choice(4000, 40, replace=False)
        if prices._reference is not None:
            known = prices._reference
            now = solve_rows(factor, np.eye(6))
            prices._reference = kept(now @ spread @ now.T, known.largest, known.gains, known.rounding)
        found = prices.priced(factor, solve_rows(factor, problem.basis[used]), spread)
        gains = all_gains(problem.basis, factor, spread)
        wrong += found.lower > np.trace(spread) ** 2 / gains.max() * (1.0 + 1e-9)
    assert wrong
