"""Bounds by products in single precision hold for every row, and are near what they bound."""

import numpy as np
import pytest
from budgets import few_and_all
from hypothesis import given, strategies as st

from surepick.linalg import rows as single_precision
from surepick.linalg.factorisations import row_norms
from surepick.linalg.rows import SingleRows


def exactly(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """||z'R||^2 in extended precision."""
    return np.sum((rows.astype(np.longdouble) @ right.astype(np.longdouble)) ** 2, axis=1)


def drawn(seed: int, shape: tuple[int, int], rank: int, spread: float, size: float):
    """(rows whose lengths differ by orders of magnitude, R with nearly dependent columns)."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal(shape) * 10.0 ** (spread * rng.standard_normal((shape[0], 1)) + size)
    rows[rng.integers(shape[0])] = 0.0
    basis = rng.standard_normal((shape[1], rank))
    return rows, (basis @ np.diag(10.0 ** -rng.uniform(0, 6, rank))) * 10.0 ** (-0.5 * size)


@given(st.integers(0, 10**6), st.integers(1, 90), st.integers(1, 40), st.floats(0.0, 8.0), st.floats(-60.0, 60.0))
def test_no_row_is_longer_than_its_bound(seed, dim, rank, spread, size):
    rows, right = drawn(seed, (50, dim), rank, spread, size)
    bounds = SingleRows(rows, row_norms(rows)).squares_at_most(right)
    assert (bounds >= exactly(rows, right)).all()


@few_and_all("number", 2_000, 20_000)
@pytest.mark.parametrize("dim", [48, 200])
def test_the_bounds_of_usual_rows_are_near(dim, number):
    rng = np.random.default_rng(dim)
    rows, right = rng.standard_normal((number, dim)), rng.standard_normal((dim, dim))
    bounds, squares = SingleRows(rows, row_norms(rows)).squares_at_most(right), exactly(rows, right)
    assert (bounds / squares).max() < 1.002


def test_bounds_without_what_rounding_may_be_would_be_noticed(monkeypatch):
    """The saboteur: products in single precision are too small for about every other row."""
    monkeypatch.setattr(single_precision, "UNIT", 0.0)
    rows, right = drawn(1, (500, 60), 60, 0.0, 0.0)
    bounds = SingleRows(rows, row_norms(rows)).squares_at_most(right)
    assert np.count_nonzero(bounds < exactly(rows, right)) > 100


def test_rows_of_zeros_have_no_length():
    assert SingleRows(np.zeros((3, 4)), np.zeros(3)).squares_at_most(np.eye(4)).max() < 1e-25
