"""Which rows are the largest: of quadratic forms and of linear functions."""

from __future__ import annotations

from functools import partial

import numpy as np

from surepick.blocks.map_reduce import Passes
from surepick.blocks.moments import Coordinates
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.linalg.factorisations import row_squares

PIECE = 16_384  # rows whose products stay in the cache


@record
class Largest:
    """The rows with the largest values of a function, largest first; of equal ones the earlier row.

    Args:
        values: shape (n,).
        rows: their numbers, shape (n,).
        most: how many are kept.
    """

    values: FloatArray
    rows: IntArray
    most: int

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
    where: Coordinates,
    factors: tuple[FloatArray, ...],
    slopes: FloatArray,
    most: int,
    floors: tuple[float, ...],
    rows: FloatArray,
    first: int,
) -> tuple[Largest, ...]:
    values = np.empty((len(factors) + len(slopes), len(rows)))
    for top in range(0, len(rows), PIECE):
        piece, place = where.of(rows[top : top + PIECE]), slice(top, top + PIECE)
        for number, factor in enumerate(factors):
            values[number, place] = row_squares(piece @ factor)
        if len(slopes):
            values[len(factors) :, place] = slopes @ piece.T
    return tuple(Largest.of(each, first, most, floor) for each, floor in zip(values, floors, strict=True))


def _both(left: tuple[Largest, ...], right: tuple[Largest, ...]) -> tuple[Largest, ...]:
    return tuple(one.plus(other) for one, other in zip(left, right, strict=True))


def largest(
    passes: Passes,
    where: Coordinates,
    *,
    factors: tuple[FloatArray, ...] = (),
    slopes: FloatArray | None = None,
    most: int = 1,
    floors: tuple[float, ...] | None = None,
    name: str = "search",
) -> tuple[Largest, ...]:
    """The rows with the largest u'M u, M = L L', and those with the largest u't, for u = x V; one pass for all.

    Args:
        where: V.
        factors: L of each quadratic form, shape (r, any).
        slopes: t of each linear function, shape (n, r).
        most: rows kept of each.
        floors: of each form and function; rows with a smaller value are not kept. None: any value will do.

    Returns:
        Those of the forms, then those of the functions.

    Cost: O(K (D r + r^2)) time for each form.
    """
    slopes = np.zeros((0, where.rank)) if slopes is None else slopes
    least = (-np.inf,) * (len(factors) + len(slopes)) if floors is None else floors
    return passes.map_reduce(name, partial(_of_block, where, factors, slopes, most, least), _both)
