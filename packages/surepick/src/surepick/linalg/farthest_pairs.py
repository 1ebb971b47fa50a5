"""The farthest of many points without an array of all pairs.

Points are centred and sorted by radius, ||u_a - u_b|| <= r_a + r_b, so that pairs of small radii are never looked at.
The others are compared tile by tile, in single precision with its rounding bound; every pair that may matter is then
computed again from the difference of its points.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.linalg.factorisations import row_norms, row_squares

FIRST_TILE = 128
TILE = 512
OUTER = 1024
DOUBLE_PRECISION_BELOW = 1024
CHUNK = 100_000
ROUNDED = 1.0 - 1e-12
SEVERAL = 4


@record
class Pairs:
    """Far pairs of points, the farthest first."""

    first: IntArray  # positions of the two points, (n,)
    second: IntArray
    squares: FloatArray  # their squared distances, (n,)
    elsewhere: float  # no pair that is not listed has a larger squared distance

    @property
    def exact(self) -> bool:
        """The first pair is the farthest of all."""
        return len(self.squares) > 0 and float(self.squares[0]) >= self.elsewhere

    @property
    def bound(self) -> float:
        """No pair has a larger squared distance: that of the first pair where it is the farthest."""
        return max(self.elsewhere, float(self.squares[0])) if len(self.squares) else self.elsewhere

    def head(self, most: int) -> Pairs:
        """The first `most` pairs."""
        if len(self.squares) <= most:
            return self
        elsewhere = max(self.elsewhere, float(self.squares[most]))
        return Pairs(self.first[:most], self.second[:most], self.squares[:most], elsewhere)


def ordered(first: IntArray, second: IntArray, squares: FloatArray, elsewhere: float) -> Pairs:
    """The pairs, each array of shape (n,), the farthest first and ties in the order given."""
    order = np.argsort(-squares, kind="stable")
    return Pairs(first[order], second[order], squares[order], elsewhere)


def _of_rank(values: NDArray[Any], count: int) -> float:
    """The `count`-th largest value."""
    return float(np.partition(values, len(values) - count)[len(values) - count])


def largest(squares: FloatArray, most: int) -> IntArray:
    """Positions of the `most` largest of n entries, shape (most,) or (n,), spread evenly over exact ties at the cut."""
    if len(squares) <= most:
        return np.arange(len(squares), dtype=np.int64)
    cut = _of_rank(squares, most)
    above, ties = np.flatnonzero(squares > cut), np.flatnonzero(squares == cut)
    room = most - len(above)
    return np.concatenate([above, ties[np.arange(room) * len(ties) // room]])


class _Kept:
    """The farthest pairs so far: at most `most` of them; beyond the first `least` none below `share` of the farthest,
    and none whose squared distance is below `floor`."""

    def __init__(self, points: FloatArray, *, most: int, least: int, share: float, floor: float) -> None:
        self._points, self.floor = points, floor
        self.most, self.least, self.share = most, least, share
        self._parts: list[tuple[IntArray, IntArray, FloatArray]] = []
        self._count, self._full = 0, 2 * least

    def add(self, first: IntArray, second: IntArray) -> None:
        """Look at the pairs of these positions, shape (n,) each."""
        for start in range(0, len(first), CHUNK):
            a, b = first[start : start + CHUNK], second[start : start + CHUNK]
            squares = row_squares(self._points[a] - self._points[b])
            mattering = np.flatnonzero(squares >= self.floor * ROUNDED)
            self._parts.append((a[mattering], b[mattering], squares[mattering]))
            self._count += len(mattering)
            if self._count > self._full:
                self._trim()

    def _trim(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Raise the floor as far as what is kept allows, drop what is below it, and give the rest."""
        first, second, squares = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        for count, share in ((self.least, self.share), (self.most, 1.0)):
            if len(squares) >= count:
                self.floor = max(self.floor, min(_of_rank(squares, count), share * float(squares.max())))
        keep = np.flatnonzero(squares >= self.floor * ROUNDED)
        keep = keep[largest(squares[keep], self.most)]
        self._parts, self._count = [(first[keep], second[keep], squares[keep])], len(keep)
        self._full = 2 * max(len(keep), self.least)
        return self._parts[0]

    def pairs(self) -> Pairs:
        if not self._parts:
            nothing = np.empty(0, np.int64)
            return Pairs(nothing, nothing, np.empty(0), self.floor * ROUNDED)
        return ordered(*self._trim(), self.floor * ROUNDED)


class _Tiles:
    """Squared distances of blocks of points near the origin, (m, r) and (n, r), as products of augmented vectors, each
    within `slack` of the truth (docs/design-solver.md, line 5); `unit` is at least every norm."""

    def __init__(self, left: FloatArray, right: FloatArray, unit: float) -> None:
        kind = np.float32 if len(right) > DOUBLE_PRECISION_BELOW else np.float64
        self._left = np.ones((len(left), left.shape[1] + 2), kind)
        np.multiply(left, 1.0 / unit, out=self._left[:, :-2], casting="same_kind")
        self._left[:, -2] = row_squares(left) / unit**2
        self._right = np.ones((right.shape[1] + 2, len(right)), kind)
        np.multiply(right.T, -2.0 / unit, out=self._right[:-2], casting="same_kind")
        self._right[-1] = row_squares(right) / unit**2
        self._scale = unit**2
        self._slack = 2.0 * (left.shape[1] + 8) * float(np.finfo(kind).eps)

    def far(self, rows: slice, columns: slice, floor: float, most: int) -> tuple[IntArray, IntArray]:
        """Positions within the block of the pairs that may be at least `floor` apart (squared), or of the farthest of
        them: never fewer than `most` if there are more, and every one that is as far as those to within rounding."""
        tile = self._left[rows] @ self._right[:, columns]
        if columns is rows:  # of a block with itself each pair once
            tile[_lower_triangle(len(tile))] = -np.inf
        least = floor / self._scale - self._slack
        if float(tile.max()) < least:
            nothing = np.empty(0, np.int64)
            return nothing, nothing
        if most < len(tile):  # the k-th largest row maximum never exceeds the k-th largest entry
            least = max(least, _of_rank(tile.max(axis=1), most) - 2.0 * self._slack)
        flat = tile.ravel()
        places = np.flatnonzero(flat >= least)
        if len(places) > most:
            values = flat[places]
            places = places[values >= _of_rank(values, most) - 2.0 * self._slack]
        first, second = np.divmod(places, tile.shape[1])
        return first, second


@functools.cache
def _lower_triangle(size: int) -> BoolArray:
    mask = np.tri(size, dtype=bool)
    mask.flags.writeable = False
    return mask


def _edges(count: int) -> list[slice]:
    """Consecutive blocks of positions: small ones first, whose far pairs often make the others superfluous."""
    if count <= TILE:
        return [slice(0, count)]
    edges, size = [0], FIRST_TILE
    while edges[-1] < count:
        edges.append(min(edges[-1] + size, count))
        size = min(2 * size, TILE)
    return [slice(*ends) for ends in pairwise(edges)]


def farthest_pairs(
    points: FloatArray, *, least: int = 1, most: int = 0, share: float = 1.0, floor: float = 0.0
) -> Pairs:
    """The squared diameter of points, (s, r), s >= 2, exactly, and other far pairs. Cost: O(s r) and O(m^2 r) for the m
    points whose radius does not exclude them."""
    centred = points - 0.5 * (points.max(axis=0) + points.min(axis=0))
    radii = row_norms(centred)
    least, most = max(least, SEVERAL), max(least, most, SEVERAL)
    kept = _Kept(points, least=least, most=most, share=share, floor=floor)
    if not radii.any():
        kept.add(np.zeros(1, np.int64), np.ones(1, np.int64))
        return kept.pairs()
    order = _by_radius(points, radii, kept)
    ordered, sizes, edges = centred[order], radii[order], _edges(len(order))
    tiles = _Tiles(ordered, ordered, float(sizes[0]))
    for number, rows in enumerate(edges):
        if (2.0 * sizes[rows.start]) ** 2 < kept.floor * ROUNDED:
            break
        for columns in edges[number:]:
            if (sizes[rows.start] + sizes[columns.start]) ** 2 < kept.floor * ROUNDED:
                break
            a, b = tiles.far(rows, columns, kept.floor, most)
            if len(a):
                kept.add(order[a + rows.start], order[b + columns.start])
    return kept.pairs()


def _by_radius(points: FloatArray, radii: FloatArray, kept: _Kept) -> IntArray:
    """Positions in order of decreasing radius; of many points only those that can belong to one of the wanted pairs."""
    if len(radii) <= 4 * OUTER:
        return np.argsort(-radii, kind="stable")
    outer = np.argpartition(-radii, OUTER)[:OUTER]
    known = farthest_pairs(points[outer], least=kept.least, most=kept.most, share=kept.share, floor=kept.floor)
    kept.floor = max(kept.floor, known.elsewhere)
    reach = float(np.sqrt(kept.floor * ROUNDED)) * ROUNDED - float(radii.max())
    rows = np.flatnonzero(radii >= reach)
    return rows[np.argsort(-radii[rows], kind="stable")]


def pairs_from(ends: FloatArray, blocks: Iterable[FloatArray], *, most: int, floor: float) -> Pairs:
    """The farthest pairs of an end, (h, r), and another point, in blocks (., r); of other pairs nothing is said."""
    centre = ends.mean(axis=0)
    left, top = ends - centre, 0
    reach = float(row_norms(left).max())
    parts = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    for block in blocks:
        right = block - centre
        unit = max(reach, float(row_norms(right).max()))
        if unit > 0.0:
            a, b = _Tiles(left, right, unit).far(slice(len(left)), slice(len(right)), floor, most)
            parts.append((a, top + b, row_squares(left[a] - right[b])))
        top += len(block)
        if sum(len(part[0]) for part in parts) > 8 * most:
            parts = [_head(parts, most, floor)]
            if len(parts[0][2]) == most:
                floor = float(parts[0][2][-1])
    first, second, squares = _head(parts, most, floor)
    return Pairs(first, second, squares, np.inf)


def _head(
    parts: list[tuple[IntArray, IntArray, FloatArray]], most: int, floor: float
) -> tuple[IntArray, IntArray, FloatArray]:
    """The `most` farthest of the pairs that reach the floor, the farthest first."""
    first, second, squares = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(-squares, kind="stable")[:most]
    order = order[squares[order] >= floor]
    return first[order], second[order], squares[order]


# --- Arms spread over a set: each time the one that is farthest from all that were chosen before.

POOL = 1024
GROWTH = 4
ROWS = 2048
SOME = 16  # of the chosen arms: distances to these show that most others are near

SAME_DISTANCE = 1e-9  # relative


def farthest_first(vectors: FloatArray, chosen: IntArray, free: BoolArray, number: int) -> IntArray:
    """Free arms one after the other, each with the largest distance to the nearest arm chosen before it.

    Distances are those computed from differences, and the first of equally far arms is taken: what is skipped is only
    the work for arms that cannot be next. |x|^2 - 2 x's + |s|^2 with a bound on its rounding is at least any of them;
    the arms of the largest bounds are a pool whose distances are computed, and the pool grows when the farthest of it
    might be beaten from outside. At first the bounds are those of a few of the chosen arms; the others count for the
    arms that would then be as far as the farthest of the pool. Fewer than `number` are taken where no more are free.

    Source: Gonzalez (1985). Cost: a product (K, d) x (d, 16) where few arms are equally far; else O(K d len(chosen)).
    """
    bounds, members = np.full(len(vectors), np.inf), chosen
    _lower_bounds(bounds, vectors, vectors[members[:SOME]])
    bounds[~free] = -np.inf
    loose = bounds > -np.inf if len(members) > SOME else np.zeros(len(bounds), bool)
    taken: list[int] = []
    size = POOL
    while len(taken) < number:
        pool, beyond = _largest(bounds, size)
        if len(pool) == 0:
            break
        nearest = _nearest(vectors, pool, members)
        fresh: list[int] = []
        while len(taken) < number:
            farthest = float(nearest.max())  # the first as far as any, up to what other processors may disagree on
            as_far = np.flatnonzero(nearest >= farthest * (1.0 - SAME_DISTANCE if farthest > 0.0 else 1.0))
            best = int(as_far[np.argmin(pool[as_far])])
            if not nearest[best] > beyond:
                break
            fresh.append(int(pool[best]))
            taken.append(fresh[-1])
            nearest = np.minimum(nearest, row_squares(vectors[pool] - vectors[fresh[-1]]))
            nearest[best] = -np.inf
        if fresh:
            members = np.append(members, fresh)
            _lower_bounds(bounds, vectors, vectors[fresh])
            bounds[fresh] = -np.inf
        hidden = np.flatnonzero(loose & (bounds >= float(nearest.max())))  # only some distances say that they are far
        if len(hidden):
            tight = np.full(len(hidden), np.inf)
            _lower_bounds(tight, vectors[hidden], vectors[members])
            bounds[hidden], loose[hidden] = np.minimum(bounds[hidden], tight), False
        else:
            size *= GROWTH
    return np.array(taken, np.int64)


def _lower_bounds(bounds: FloatArray, vectors: FloatArray, others: FloatArray) -> None:
    """Lower the bounds on squared distances to the nearest arm by those to others, shape (m, d)."""
    lengths = row_norms(others)
    longest = float(lengths.max())
    share = 4.0 * (vectors.shape[1] + 8) * np.finfo(np.float64).eps
    for top in range(0, len(vectors), ROWS):
        rows = vectors[top : top + ROWS]
        squares = row_squares(rows)
        products = others @ rows.T
        products *= -2.0
        products += (lengths**2)[:, None]
        near = products.min(axis=0) + squares
        near += share * (np.sqrt(squares) + longest) ** 2
        part = bounds[top : top + ROWS]
        np.minimum(part, near, out=part)


def _largest(bounds: FloatArray, size: int) -> tuple[IntArray, float]:
    """(the arms of the largest bounds, ascending; the largest bound of the others), those at -inf left out."""
    if size >= len(bounds):
        return np.flatnonzero(bounds > -np.inf), -np.inf
    order = np.argpartition(-bounds, size)
    pool = np.sort(order[:size])
    return pool[bounds[pool] > -np.inf], float(bounds[order[size]])


def _nearest(vectors: FloatArray, arms: IntArray, others: IntArray) -> FloatArray:
    """Squared distance of each arm to the nearest of the others."""
    nearest = np.full(len(arms), np.inf)
    for top in range(0, len(arms), ROWS):
        rows, part = vectors[arms[top : top + ROWS]], nearest[top : top + ROWS]
        for other in others:
            np.minimum(part, row_squares(rows - vectors[other]), out=part)
    return nearest
