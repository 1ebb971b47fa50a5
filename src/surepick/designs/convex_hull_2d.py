"""Points in the plane, the common case after an embedding: few directions tell which of them matter."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.designs.farthest_pairs import Pairs, ordered
from surepick.linalg.factorisations import row_squares

DIRECTIONS = 32
MARGIN = 1e-12
SIDES = 8
MANY = 512
FEW = 256
BLOCK_ENTRIES = 1_000_000


def directions(count: int) -> FloatArray:
    """Unit vectors spread evenly over a half circle, shape (count, 2)."""
    angles = np.arange(count) * (math.pi / count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def outline(points: FloatArray, count: int) -> IntArray:
    """The rows that lie farthest in some of `count` directions or their opposites, ascending.

    Args:
        points: shape (s, 2).
        count: m; of a smooth convex set they miss about pi^2 / (8 m^2) of the extent.
    """
    own = points - points.mean(axis=0)
    own /= max(float(np.abs(own).max()), np.finfo(np.float64).tiny)
    reached = directions(count).astype(np.float32) @ own.T.astype(np.float32)
    return np.union1d(np.argmax(reached, axis=1), np.argmin(reached, axis=1))


def farthest_in_the_plane(points: FloatArray, *, enough: float = np.inf) -> Pairs:
    """Far pairs of points in the plane, one for each direction, and the squared diameter.

    With m directions every difference y is within pi/(2m) of one of them, g: ||y|| cos(pi/(2m)) <= |<y, g>| <= width.
    So no pair is farther apart than the largest width over the cosine, and a pair as far as D has ends within
    width - D cos(pi/(2m)) of the two extremes of some direction.

    Args:
        points: shape (s, 2).
        enough: a squared distance; it suffices to know on which side of it the squared diameter is.

    Returns:
        Pairs, the first of which is the farthest, or beyond `enough`, or whose bound is within `enough`.

    Source: ours. Cost: O(s) and the pairs near the extremes, in blocks of bounded memory.
    """
    centred = points - 0.5 * (points.max(axis=0) + points.min(axis=0))
    reached = directions(DIRECTIONS) @ centred.T
    upper, lower = np.argmax(reached, axis=1), np.argmin(reached, axis=1)
    everyone = np.arange(DIRECTIONS)
    highest, lowest = reached[everyone, upper], reached[everyone, lower]
    ends = np.unique(np.minimum(upper, lower) * len(points) + np.maximum(upper, lower))
    first, second = np.divmod(ends, len(points))
    squares = _squares(points, first, second)
    cosine = math.cos(math.pi / (2 * DIRECTIONS)) * (1.0 - MARGIN)
    ceiling = (float((highest - lowest).max()) / cosine) ** 2
    best = float(squares.max())
    if len(points) <= FEW:
        pair = farthest_of_few(points)
        first, second = np.append(first, pair.first), np.append(second, pair.second)
        squares, ceiling = np.append(squares, pair.squares), pair.bound
    elif enough == np.inf or best <= enough < ceiling:
        for way in np.argsort(lowest - highest, kind="stable"):
            needed = math.sqrt(best) * cosine
            if highest[way] - lowest[way] < needed:
                break
            upper = np.flatnonzero(reached[way] >= lowest[way] + needed)
            lower = np.flatnonzero(reached[way] <= highest[way] - needed)
            a, b = _farthest_between(points, _vertices(points, upper), _vertices(points, lower))
            reach = float(_squares(points, a, b)[0])
            if reach > best:
                first, second = np.append(first, a), np.append(second, b)
                squares, best = np.append(squares, reach), reach
        ceiling = best
    elif best > enough:
        ceiling = np.inf  # there may be better; nobody needs to know
    return ordered(first, second, squares, ceiling)


def farthest_of_few(points: FloatArray) -> Pairs:
    """The farthest pair of some points in the plane, shape (s, 2), from all pairs."""
    everyone = np.arange(len(points))
    first, second = _farthest_between(points, everyone, everyone)
    squares = _squares(points, first, second)
    return Pairs(first, second, squares, float(squares[0]))


def _squares(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Squared distances of pairs of points, shape (n,)."""
    return row_squares(points[first] - points[second])


def _vertices(points: FloatArray, rows: IntArray) -> IntArray:
    """The rows, but for those surely inside the hull of them all, of which no point of the plane is farthest.

    The polygon of a few extreme points is convex, and so is its image under the scaling of the axes that is used here.
    """
    if len(rows) < MANY:
        return rows
    own = points[rows] - points[rows].mean(axis=0)
    own /= np.maximum(np.abs(own).max(axis=0), np.finfo(np.float64).tiny)
    reached = directions(SIDES) @ own.T
    corners = own[np.concatenate([np.argmax(reached, axis=1), np.argmin(reached, axis=1)])]  # counter-clockwise
    sides = np.roll(corners, -1, axis=0) - corners
    outwards = np.stack([sides[:, 1], -sides[:, 0]], axis=1)[sides.any(axis=1)]
    if len(outwards) < 3:
        return rows
    limits = np.einsum("ij,ij->i", outwards, corners[sides.any(axis=1)]) - MARGIN
    inside = (outwards @ own.T < limits[:, None]).all(axis=0)
    kept: IntArray = rows[~inside]
    return kept


def _farthest_between(points: FloatArray, upper: IntArray, lower: IntArray) -> tuple[IntArray, IntArray]:
    """The farthest pair with one end in each set, as arrays of one row."""
    best, ends = -1.0, (0, 0)
    step = max(1, BLOCK_ENTRIES // len(lower))
    for top in range(0, len(upper), step):
        rows = upper[top : top + step]
        squares, other = (points[rows, axis][:, None] - points[lower, axis] for axis in (0, 1))
        squares *= squares
        other *= other
        squares += other
        place = int(np.argmax(squares))
        if squares.flat[place] > best:
            best, ends = float(squares.flat[place]), (place // len(lower), place % len(lower))
            ends = (top + ends[0], ends[1])
    return upper[[ends[0]]], lower[[ends[1]]]
