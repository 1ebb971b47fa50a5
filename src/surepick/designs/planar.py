"""Points in the plane, the common case after an embedding: few of them matter, and few directions tell which.

A convex function is largest at a vertex of the hull. So arms inside the hull of plus and minus all arms never have the
largest gain, points inside the hull of the compared ones belong to no farthest pair, whatever the design.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.designs.pairs import Pairs
from surepick.records import BoolArray, FloatArray, IntArray

SIDES = 8
DIRECTIONS = 32
MARGIN = 1e-12
MANY = 256
BLOCK_ENTRIES = 1_000_000


def directions(count: int) -> FloatArray:
    """Unit vectors spread evenly over a half circle, shape (count, 2)."""
    angles = np.arange(count) * (math.pi / count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def outer_rows(points: FloatArray) -> IntArray:
    """Rows among which all vertices of the convex hull are, ascending: those outside a polygon of extreme points.

    Args:
        points: shape (s, 2).

    Cost: O(s).
    """
    ways = directions(SIDES)
    reached = ways @ points.T
    corners = np.concatenate([np.argmax(reached, axis=1), np.argmin(reached, axis=1)])  # counter-clockwise
    return np.flatnonzero(~_inside(points, points[corners]))


def outer_arms(points: FloatArray) -> IntArray:
    """The same for the hull of the points and their opposites."""
    ways = directions(SIDES)
    reached = ways @ points.T
    ends = np.argmax(np.abs(reached), axis=1)
    signs = np.sign(reached[np.arange(SIDES), ends])
    corners = signs[:, None] * points[ends]
    return np.flatnonzero(~_inside(points, np.concatenate([corners, -corners])))


def _inside(points: FloatArray, corners: FloatArray) -> BoolArray:
    """Which points are inside a convex polygon, by more than rounding; its corners in counter-clockwise order."""
    sides = np.roll(corners, -1, axis=0) - corners
    sides = sides[sides.any(axis=1)]
    corners = corners[(np.roll(corners, -1, axis=0) - corners).any(axis=1)]
    if len(corners) < 3:
        return np.zeros(len(points), bool)
    outwards = np.stack([sides[:, 1], -sides[:, 0]], axis=1)
    limits = np.einsum("ij,ij->i", outwards, corners)
    margin = MARGIN * float(np.abs(points).max()) * np.abs(outwards).max(axis=1)
    heights = outwards @ points.T
    heights -= (limits - margin)[:, None]
    inside: BoolArray = heights.max(axis=0) < 0.0
    return inside


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
    if enough == np.inf or best <= enough < ceiling:
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
    order = np.argsort(-squares, kind="stable")
    return Pairs(first[order], second[order], squares[order], ceiling)


def _squares(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    differences = points[first] - points[second]
    squares: FloatArray = np.einsum("ij,ij->i", differences, differences)
    return squares


def _vertices(points: FloatArray, rows: IntArray) -> IntArray:
    """The rows without those that are surely inside their hull."""
    return rows if len(rows) < MANY else rows[outer_rows(points[rows])]


def _farthest_between(points: FloatArray, upper: IntArray, lower: IntArray) -> tuple[IntArray, IntArray]:
    """The farthest pair with one end in each set, as arrays of one row."""
    best, ends = -1.0, (0, 0)
    step = max(1, BLOCK_ENTRIES // len(lower))
    for top in range(0, len(upper), step):
        rows = upper[top : top + step]
        squares = (points[rows, :1] - points[lower, 0]) ** 2 + (points[rows, 1:] - points[lower, 1]) ** 2
        place = int(np.argmax(squares))
        if squares.flat[place] > best:
            best, ends = float(squares.flat[place]), (place // len(lower), place % len(lower))
            ends = (top + ends[0], ends[1])
    return upper[[ends[0]]], lower[[ends[1]]]
