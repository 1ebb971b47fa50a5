"""Sums, directions and the largest rows, by blocks as in memory."""

import numpy as np
import pytest
from block_functions import written

from surepick.chunks.moments import Directions, Largest, directions, first_look, largest_rows, moments
from surepick.chunks.passes import Passes
from surepick.chunks.sources import rows_of
from surepick.errors import InvalidInput

RNG = np.random.default_rng(8)
FEATURES = RNG.standard_normal((2000, 5)).astype(np.float32)


@pytest.fixture
def passes(tmp_path):
    return Passes(written(tmp_path, FEATURES, [700, 1300]))


def test_moments(passes):
    found, exact = moments(passes), FEATURES.astype(np.float64)
    assert found.rows == 2000
    assert np.allclose(found.mean, exact.mean(axis=0), atol=1e-15)
    assert np.allclose(found.gram, exact.T @ exact, rtol=1e-13)
    assert found.longest == pytest.approx((exact**2).sum(axis=1).max(), rel=1e-14)
    assert np.array_equal(first_look(passes)[0].gram, found.gram)


def test_all_directions_leave_nothing(passes):
    found = directions(passes, moments(passes))
    assert found.basis is None
    assert found.left == 0.0
    assert found.rank == 5
    assert found.longest >= np.linalg.norm(FEATURES.astype(np.float64), axis=1).max()
    assert len(passes.meter.passes) == 1


@pytest.mark.parametrize("most", [1, 3, 4])
def test_what_directions_leave_is_bounded_and_nearly_met(passes, most):
    found = directions(passes, moments(passes), most=most)
    exact = FEATURES.astype(np.float64)
    left = np.linalg.norm(exact - (exact @ found.basis) @ found.basis.T, axis=1).max()
    assert left <= found.left <= left * (1.0 + 1e-9)
    spectrum = np.linalg.svd(exact)[2]
    assert np.allclose(np.abs(spectrum[:most] @ found.basis), np.eye(most), atol=1e-6)
    assert np.allclose(found.information, (exact @ found.basis).T @ (exact @ found.basis) / 2000)


def test_dependent_columns_are_found():
    dependent = np.column_stack([FEATURES, FEATURES @ np.ones(5)])
    found = directions(Passes(rows_of(dependent)), moments(Passes(rows_of(dependent))))
    assert found.rank == 5
    assert 0.0 < found.left < 1e-5 * found.longest  # a float32 sum is not exact, and that counts


def test_nothing_but_zeros_is_refused():
    passes = Passes(rows_of(np.zeros((10, 2))))
    with pytest.raises(InvalidInput, match="all features are zero"):
        directions(passes, moments(passes))


def test_columns_of_any_scale():
    scaled = FEATURES * np.array([1e-18, 1.0, 1e12, 1.0, 1.0], np.float32)
    passes = Passes(rows_of(scaled))
    assert directions(passes, moments(passes)).rank == 5


def test_the_largest_of_forms(passes):
    where = directions(passes, moments(passes))
    factors = RNG.standard_normal((5, 3)), RNG.standard_normal((5, 1))
    found = largest_rows(passes, where.of, factors=factors, most=20)
    exact = FEATURES.astype(np.float64)
    for one, values in zip(found, [((exact @ factor) ** 2).sum(axis=1) for factor in factors], strict=True):
        order = np.argsort(-values, kind="stable")[:20]
        assert np.array_equal(one.rows, order)
        assert np.allclose(one.values, values[order])


def test_of_equal_rows_the_first_ones_are_kept(tmp_path):
    same = np.ones((300, 2), np.float32)
    (found,) = largest_rows(
        Passes(written(tmp_path, same, [300])),
        Directions(None, 0.0, np.eye(2), 2.0).of,
        factors=(np.ones((2, 1)),),
        most=70,
    )
    assert np.array_equal(found.rows, np.arange(70))


def test_the_largest_of_a_block():
    found = Largest.of(np.array([1.0, 3.0, 3.0, 2.0]), 10, 2)
    assert found.rows.tolist() == [11, 12]
    assert found.plus(Largest.of(np.array([5.0]), 3, 2)).rows.tolist() == [3, 11]


def test_directions_see_rows_of_other_kinds():
    basis = np.linalg.qr(RNG.standard_normal((5, 2)))[0]
    seen = Directions(basis, 0.0, np.eye(2), 1.0).of(FEATURES[:4])
    assert seen.dtype == np.float64
    assert np.allclose(seen, FEATURES[:4].astype(np.float64) @ basis)
