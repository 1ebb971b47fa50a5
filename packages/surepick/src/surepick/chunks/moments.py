"""The first pass: sums, products and lengths of all rows, and so the directions that they span."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from surepick.chunks.merkle import Tree, leaves_of
from surepick.chunks.passes import Passes
from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import row_squares, symmetric_spectrum

EPS = float(np.finfo(np.float64).eps)
SUMMED = 4096  # rows that are summed up at once
LEAST_SHARE = 1e-12  # of the largest eigenvalue of X'X (columns scaled): what is below may be rounding


@record
class Moments:
    """Sums over rows."""

    rows: int  # K
    total: FloatArray  # sum of the rows, (D,)
    gram: FloatArray  # X'X, (D, D)
    longest: float  # the largest ||x||^2

    def plus(self, other: Moments) -> Moments:
        """Those of both."""
        longest = max(self.longest, other.longest)
        return Moments(self.rows + other.rows, self.total + other.total, self.gram + other.gram, longest)

    @property
    def mean(self) -> FloatArray:
        """Of the rows, shape (D,)."""
        return np.asarray(self.total / self.rows)


def _moments(rows: FloatArray, _: int) -> Moments:
    dim = rows.shape[1]
    total, gram, longest, ones = np.zeros(dim), np.zeros((dim, dim)), 0.0, np.ones(SUMMED)
    held = np.empty((min(SUMMED, len(rows)), dim))  # stays in the cache
    for top in range(0, len(rows), SUMMED):
        piece = held[: len(rows) - top]
        piece[:] = rows[top : top + SUMMED]
        total += ones[: len(piece)] @ piece
        gram += piece.T @ piece
        longest = max(longest, float(row_squares(piece).max()))
    return Moments(len(rows), total, gram, longest)


def moments(passes: Passes) -> Moments:
    """Those of all rows, in one pass."""
    return passes.map_reduce("moments", _moments, Moments.plus)


def tree_of(passes: Passes) -> Tree:
    """The tree of hashes of all rows alone, in one pass."""
    return Tree(passes.rows, passes.map_reduce("first look", leaves_of, bytes.__add__))


def _first_look(rows: FloatArray, first: int) -> tuple[Moments, bytes]:
    return _moments(rows, first), leaves_of(rows, first)


def _both(left: tuple[Moments, bytes], right: tuple[Moments, bytes]) -> tuple[Moments, bytes]:
    return left[0].plus(right[0]), left[1] + right[1]


def first_look(passes: Passes) -> tuple[Moments, Tree]:
    """The moments and the tree of hashes of all rows, in one pass."""
    found, leaves = passes.map_reduce("first look", _first_look, _both)
    return found, Tree(passes.rows, leaves)


class Coordinates(Protocol):
    """Rows as few numbers of which a mean reward is nearly linear: |h(x) - <u(x), theta>| <= C left, ||theta|| <= C."""

    @property
    def rank(self) -> int:
        """r, how many numbers."""

    @property
    def left(self) -> float:
        """What they leave of a row, at most."""

    @property
    def information(self) -> FloatArray:
        """sum_x u u' / K, shape (r, r)."""

    @property
    def longest(self) -> float:
        """At least the largest ||u||."""

    def of(self, rows: FloatArray) -> FloatArray:
        """u of rows, shape (n, D), as float64 of shape (n, r)."""


@record
class Directions:
    """An orthonormal basis of what the rows span, and what it leaves: gamma-tilde = C max_x ||x - V_r V_r' x||."""

    basis: FloatArray | None  # V_r, (D, r); None: the rows themselves are taken, r = D, and nothing is left
    left: float  # at least max ||x - V_r V_r'x||, rounded up
    information: FloatArray  # sum_x (x V_r)(x V_r)' / K, (r, r)
    longest: float  # at least the largest ||x||

    @property
    def rank(self) -> int:
        """r."""
        return len(self.information)

    def of(self, rows: FloatArray) -> FloatArray:
        """Rows, shape (n, D), in these directions, shape (n, r), float64."""
        block = np.asarray(rows, np.float64)
        return block if self.basis is None else np.asarray(block @ self.basis)


def _left(basis: FloatArray, rows: FloatArray, _: int) -> float:
    block = np.asarray(rows, np.float64)
    return float(row_squares(block - (block @ basis) @ basis.T).max())


def directions(passes: Passes, found: Moments, *, most: int | None = None) -> Directions:
    """All directions, where no fewer are wanted and X'X shows that the rows span them; else the leading ones, and what
    they leave, in one more pass. Rounding moves that, and the length of V'theta, by less than rho ||x||, which is added
    (docs/large.md, line 5)."""
    scale = np.sqrt(np.diag(found.gram))
    if not scale.any():
        raise InvalidInput("all features are zero; every candidate would look the same. Give informative columns.")
    longest, dim = float(np.sqrt(found.longest)) * (1.0 + 8.0 * EPS), len(scale)
    safe = np.where(scale > 0.0, scale, 1.0)
    values = symmetric_spectrum(found.gram / np.outer(safe, safe)).values
    if (most is None or most >= dim) and values[-1] > LEAST_SHARE * values[0]:
        return Directions(None, 0.0, found.gram / found.rows, longest)
    spectrum = symmetric_spectrum(found.gram)
    kept = spectrum.values > LEAST_SHARE * spectrum.values[0]
    rank = min(int(np.count_nonzero(kept)), dim if most is None else most)
    basis = np.ascontiguousarray(spectrum.vectors[:, :rank])
    squares = passes.map_reduce("residuals", partial(_left, basis), max)
    overlap = basis.T @ basis - np.eye(rank)
    rho = 8.0 * EPS * (dim + rank + 8) * (1.0 + np.sqrt(rank)) + float(np.sqrt(np.sum(overlap**2)))
    left = float(np.sqrt(squares)) + rho * longest
    return Directions(basis, left, basis.T @ found.gram @ basis / found.rows, longest)


# --- Which rows are the largest, of quadratic forms.

PIECE = 16_384  # rows whose products stay in the cache


@record
class Largest:
    """The rows with the largest values of a function, largest first; of equal ones the earlier row."""

    values: FloatArray  # (n,)
    rows: IntArray  # their numbers, (n,)
    most: int  # how many are kept

    @staticmethod
    def of(values: FloatArray, first: int, most: int, floor: float = -np.inf) -> Largest:
        """Those of a block whose first row has that number, that are not below the floor."""
        among = np.flatnonzero(values >= floor) if floor > -np.inf else np.arange(len(values))
        if len(among) > most:
            cut = np.partition(values[among], len(among) - most)[len(among) - most]
            among = np.flatnonzero(values >= cut)
        return Largest._sorted(values[among], first + among, most)

    @staticmethod
    def _sorted(values: FloatArray, rows: IntArray, most: int) -> Largest:
        order = np.lexsort((rows, -values))[:most]
        return Largest(values[order], rows[order], most)

    def plus(self, other: Largest) -> Largest:
        """Those of both."""
        values, rows = np.concatenate([self.values, other.values]), np.concatenate([self.rows, other.rows])
        return Largest._sorted(values, rows, self.most)


def _of_block(
    coordinates: Callable[[FloatArray], FloatArray],
    factors: tuple[FloatArray, ...],
    most: int,
    floors: tuple[float, ...],
    rows: FloatArray,
    first: int,
) -> tuple[Largest, ...]:
    values = np.empty((len(factors), len(rows)))
    for top in range(0, len(rows), PIECE):
        piece, place = coordinates(rows[top : top + PIECE]), slice(top, top + PIECE)
        for number, factor in enumerate(factors):
            values[number, place] = row_squares(piece @ factor)
    return tuple(Largest.of(each, first, most, floor) for each, floor in zip(values, floors, strict=True))


def _largest_of_both(left: tuple[Largest, ...], right: tuple[Largest, ...]) -> tuple[Largest, ...]:
    return tuple(one.plus(other) for one, other in zip(left, right, strict=True))


def largest_rows(
    passes: Passes,
    coordinates: Callable[[FloatArray], FloatArray],  # u of rows, (n, D) -> (n, r), as `Coordinates.of`
    *,
    factors: tuple[FloatArray, ...],  # L of each quadratic form, (r, any)
    most: int = 1,
    floors: tuple[float, ...] | None = None,
    name: str = "search",
) -> tuple[Largest, ...]:
    """The rows with the largest u'M u, M = L L', for u = x V; one pass for all forms."""
    least = (-np.inf,) * len(factors) if floors is None else floors
    return passes.map_reduce(name, partial(_of_block, coordinates, factors, most, least), _largest_of_both)
