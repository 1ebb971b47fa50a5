"""The longest vectors under one design after the other: none that was not looked at is longer."""

import numpy as np
import pytest

from surepick.designs import pricing
from surepick.designs.pricing import Longest
from surepick.linalg.factorisations import cholesky, row_norms, solve_rows

DIM, COUNT = 50, 9000


def vectors(rng: np.random.Generator, kind: str) -> np.ndarray:
    found = rng.standard_normal((COUNT, DIM))
    if kind == "sphere":
        found /= row_norms(found)[:, None]
    if kind == "heavy":
        found *= rng.standard_cauchy((COUNT, 1))
    return found[np.argsort(-row_norms(found))]


def factors(rng: np.random.Generator, number: int, change: float):
    """L of designs that differ a little from one to the next."""
    shape = rng.standard_normal((4 * DIM, DIM)) * 10.0 ** rng.uniform(-1, 1, DIM)
    for _ in range(number):
        yield cholesky(shape.T @ shape / len(shape))
        shape = shape + change * rng.standard_normal(shape.shape)


@pytest.mark.cases(6)
@pytest.mark.parametrize("change", [0.0, 0.001, 0.03, 1.0])
@pytest.mark.parametrize("kind", ["gaussian", "sphere", "heavy"])
def test_the_longest_is_found_under_each_design(kind, change):
    rng = np.random.default_rng(int(1000 * change))
    known = vectors(rng, kind)
    search = Longest(known, row_norms(known))
    for step, factor in enumerate(factors(rng, 8, change)):
        squares = row_norms(solve_rows(factor, known)) ** 2
        most = (1, 40)[step % 2]
        found = search.under(factor, most=most, enough=np.inf)
        assert found.exact
        np.testing.assert_allclose(found.squares, np.sort(squares)[::-1][:most], rtol=1e-9)
        for enough in squares.max() * np.array([0.99, 1.0 + 1e-6, 1.1, 3.0]):
            found = search.under(factor, most=1, enough=enough)
            if squares.max() > enough:
                assert found.squares[0] > enough
            else:
                assert found.exact or found.bound <= enough
                assert found.bound >= squares.max() * (1.0 - 1e-9)


def test_similar_designs_take_no_look_at_all(monkeypatch):
    rng = np.random.default_rng(5)
    known, looks = vectors(rng, "gaussian"), []
    search = Longest(known, row_norms(known))
    screened = search._screened
    monkeypatch.setattr(search, "_screened", lambda *asked: looks.append(1) or screened(*asked))
    for factor in factors(rng, 20, 0.001):
        search.under(factor, most=1, enough=np.inf)
    assert len(looks) < 5


def missed() -> int:
    """How often another vector than the longest was taken for the longest."""
    rng = np.random.default_rng(7)
    known = vectors(rng, "sphere")
    search, wrong = Longest(known, row_norms(known)), 0
    for factor in factors(rng, 30, 0.1):
        found = search.under(factor, most=1, enough=np.inf)
        wrong += found.squares[0] < (row_norms(solve_rows(factor, known)) ** 2).max() * (1.0 - 1e-9)
    return wrong


def test_too_small_a_growth_would_be_noticed(monkeypatch):
    """The saboteur: with a growth below the true one, vectors that became the longest are not looked at."""
    assert missed() == 0
    monkeypatch.setattr(pricing, "_growth", lambda factor, earlier: 0.25)
    monkeypatch.setattr(pricing, "HEURISTIC_SOME", 1)
    assert missed() > 3
