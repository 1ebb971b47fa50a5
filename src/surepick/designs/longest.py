"""The longest of many vectors under one design after the other: max ||L^-1 y||^2, A = L L'.

The vectors are sorted by ||y||, so that often the shorter ones need no look. In many directions all of them may be the
longest; then bounds in single precision say which are looked at (docs/design-solver.md, lines 14 and 15).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.linalg.factorisations import row_norms, row_squares, solve_lower, solve_rows
from surepick.linalg.farthest_pairs import Pairs, largest
from surepick.linalg.row_blocks import row_blocks
from surepick.linalg.single_precision import LEAST_DIRECTIONS, SingleRows
from surepick.linalg.whitening import longest_image

FEW = 4096  # vectors that are simply measured
NEAR = 0.9  # of the largest square: what is less is not looked at
SAFETY = 1e-9
HEURISTIC_SOME = 256  # vectors of the largest bounds that are looked at first
HEURISTIC_MANY = 0.125  # of the vectors: where more may be the longest, all are looked at again


@record
class _Reference:
    """What is known of all vectors under an earlier design.

    Args:
        factor: L_0.
        bounds: at least ||L_0^-1 y||^2, shape (n,).
    """

    factor: FloatArray
    bounds: FloatArray


class Longest:
    """The longest of vectors, shape (n, r), longest first, whose lengths are known, shape (n,)."""

    def __init__(self, vectors: FloatArray, lengths: FloatArray) -> None:
        self._vectors, self._lengths = vectors, lengths
        self._reference: _Reference | None = None

    @cached_property
    def single(self) -> SingleRows:
        """The vectors in single precision."""
        return SingleRows(self._vectors, self._lengths)

    def under(self, factor: FloatArray, *, most: int, enough: float) -> Pairs:
        """The longest under A = L L', each as a pair of its own.

        Args:
            factor: L, shape (r, r).
            most: how many; only of the first it is sure that none is longer.
            enough: a square; it suffices to know that all are within it. Infinite: the longest is wanted.
        """
        count, dim = self._vectors.shape
        if count <= FEW or dim < LEAST_DIRECTIONS:
            return self._by_length(factor, most)
        found = self._remembered(factor, most, enough)
        return self._screened(factor, most) if found is None else found

    def _by_length(self, factor: FloatArray, most: int) -> Pairs:
        """As many of the longest vectors as can be among the longest under A; the lengths tell where to stop."""
        vectors, lengths = self._vectors, self._lengths
        stretch = longest_image(factor @ factor.T) if len(vectors) > FEW else np.inf
        squares, size, rest = np.empty(0), FEW, 0.0
        while len(squares) < len(vectors):
            rows = slice(len(squares), min(size, len(vectors)))
            squares = np.concatenate([squares, self._squares(factor, rows)])
            size *= 2
            if len(squares) < len(vectors):
                rest = (stretch * float(lengths[len(squares)])) ** 2 * (1.0 + SAFETY)
                if rest < NEAR * float(squares.max()):
                    break
        else:
            rest = 0.0
        return _listed(np.arange(len(squares)), squares, most, rest)

    def _squares(self, factor: FloatArray, rows: IntArray | slice) -> FloatArray:
        """||L^-1 y||^2 of some rows."""
        if isinstance(rows, slice):
            return row_norms(solve_rows(factor, self._vectors[rows])) ** 2
        found = np.empty(len(rows))
        for some in row_blocks(len(rows)):
            found[some] = row_squares(solve_rows(factor, self._vectors[rows[some]]))
        return found

    def _screened(self, factor: FloatArray, most: int) -> Pairs:
        """Those that may be among the longest, by bounds on all of them, which are remembered."""
        bounds = self.single.squares_at_most(solve_lower(factor, np.eye(len(factor))).T)
        self._reference = _Reference(factor, bounds)
        rows, squares, rest = self._among(factor, bounds, most)
        if rest >= float(squares.max()):
            more = np.setdiff1d(np.flatnonzero(bounds >= float(squares.max())), rows, assume_unique=True)
            rows, squares = np.append(rows, more), np.append(squares, self._squares(factor, more))
            rest = 0.0  # all others are below the largest
        return _listed(rows, squares, most, rest)

    def _remembered(self, factor: FloatArray, most: int, enough: float) -> Pairs | None:
        """What bounds under an earlier design say of this one; None where too many may be the longest.

        ||L^-1 y||^2 <= ||L^-1 L_0||^2 ||L_0^-1 y||^2
        """
        known = self._reference
        if known is None:
            return None
        growth = _growth(factor, known.factor)
        rows, squares, rest = self._among(factor, known.bounds, most)
        longest = float(squares.max())
        if most == 1 and longest > enough:
            return _listed(rows, squares, most, np.inf)
        least = max(longest, enough) if enough < np.inf else longest
        if growth * rest > least:
            more = np.flatnonzero(growth * known.bounds > least)
            if len(more) > HEURISTIC_MANY * len(known.bounds):
                return None
            more = np.setdiff1d(more, rows, assume_unique=True)
            rows, squares = np.append(rows, more), np.append(squares, self._squares(factor, more))
        return _listed(rows, squares, most, least if float(squares.max()) < least else 0.0)

    def _among(self, factor: FloatArray, bounds: FloatArray, most: int) -> tuple[IntArray, FloatArray, float]:
        """(rows with the largest bounds, more than are wanted, their squares, the largest bound of the others)."""
        rows = largest(bounds, max(2 * most, HEURISTIC_SOME))
        rest = np.delete(bounds, rows)
        return rows, self._squares(factor, rows), float(rest.max(initial=0.0))


def _growth(factor: FloatArray, earlier: FloatArray) -> float:
    """||L^-1 L_0||^2, rounded up."""
    return float(np.linalg.norm(solve_lower(factor, earlier), 2)) ** 2 * (1.0 + SAFETY)


def _listed(rows: IntArray, squares: FloatArray, most: int, rest: float) -> Pairs:
    """The longest of some, which stand for pairs of their own; no other square is larger than `rest`."""
    chosen = largest(squares, most)
    chosen = chosen[np.argsort(-squares[chosen], kind="stable")]
    if len(chosen) < len(squares):
        rest = max(rest, float(squares[chosen[-1]]))
    return Pairs(rows[chosen], rows[chosen], squares[chosen], rest)
