"""Points in the plane, the common case after an embedding: few directions tell which of them matter."""

import math

import numpy as np

from surepick.core.records import FloatArray, IntArray
from surepick.linalg.factorisations import row_squares
from surepick.linalg.farthest_pairs import Pairs, ordered

DIRECTIONS = 32
MARGIN = 1e-12
COSINE_MARGIN = 1e-12
SIDES = 8
MANY = 512
FEW = 256
NARROWER = 0.7
PARTNERS = 64  # for each point: where more are possible, the directions leave fewer pairs
BLOCK_ENTRIES = 1_000_000


def hull_directions(count: int) -> FloatArray:
    """Unit vectors spread evenly over a half circle, shape (count, 2)."""
    angles = np.arange(count) * (math.pi / count)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def outline(points: FloatArray, count: int) -> IntArray:
    """The rows that lie farthest in some of `count` directions and in their opposites, shape (count, 2)."""
    own = points - points.mean(axis=0)
    own /= max(float(np.abs(own).max()), np.finfo(np.float64).tiny)
    reached = hull_directions(count).astype(np.float32) @ own.T.astype(np.float32)
    return np.stack([np.argmax(reached, axis=1), np.argmin(reached, axis=1)], axis=1)


def farthest_in_the_plane(points: FloatArray, *, enough: float = np.inf) -> Pairs:
    """Far pairs of points in the plane (docs/design-solver.md, line 8), the first of which is the farthest, or beyond
    `enough`, or whose bound is within `enough`. Cost: O(s) and the pairs near the extremes."""
    columns = _centred(points)
    outer = _outer(columns) if len(points) > FEW else np.arange(len(points))
    if len(outer) < NARROWER * len(points):
        found = farthest_in_the_plane(points[outer], enough=enough)
        return Pairs(outer[found.first], outer[found.second], found.squares, found.elsewhere)
    reached = hull_directions(DIRECTIONS) @ columns
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
        farther = _by_angle(points, columns, best) or _by_direction(points, reached, best)
        first, second = np.append(first, farther.first), np.append(second, farther.second)
        squares = np.append(squares, farther.squares)
        ceiling = float(squares.max())
    elif best > enough:
        ceiling = np.inf  # there may be better; nobody needs to know
    return ordered(first, second, squares, ceiling)


def farthest_of_few(points: FloatArray) -> Pairs:
    """The farthest pair of some points in the plane, shape (s, 2), from all pairs."""
    everyone = np.arange(len(points))
    first, second = _farthest_between(points, everyone, everyone)
    squares = _squares(points, first, second)
    return Pairs(first, second, squares, float(squares[0]))


def _centred(points: FloatArray) -> FloatArray:
    """Points in the plane, shape (s, 2), less the middle of their extent, as columns of (2, s)."""
    columns = np.ascontiguousarray(points.T)  # a hundred times faster to find the largest of
    return np.asarray(columns - 0.5 * (columns.max(axis=1) + columns.min(axis=1))[:, None])


def _outer(columns: FloatArray) -> IntArray:
    """The points that can belong to a farthest pair: with the distances r from any centre, R the largest, and D that of
    some pair, r >= D - R. Of (2, s) columns, ascending."""
    radii = np.sqrt(columns[0] * columns[0] + columns[1] * columns[1])
    end = int(np.argmax(radii))
    across, along = columns[0] - columns[0, end], columns[1] - columns[1, end]
    reach = math.sqrt(float((across * across + along * along).max()))
    return np.flatnonzero(radii >= reach * (1.0 - MARGIN) - float(radii[end]))


def _by_angle(points: FloatArray, columns: FloatArray, known: float) -> Pairs | None:
    """The farthest of pairs as far apart as a known one (docs/design-solver.md, line 8); None: too many are left."""
    radii = np.sqrt(columns[0] * columns[0] + columns[1] * columns[1])
    largest = float(radii.max())
    near = np.flatnonzero(radii >= math.sqrt(known) * (1.0 - MARGIN) - largest)
    angles = np.arctan2(columns[1, near], columns[0, near])
    order = np.argsort(angles)
    near, angles = near[order], angles[order]
    own = radii[near]
    if known == 0.0 or own.min() == 0.0:
        return None
    least = (known * (1.0 - MARGIN) - own * own - largest * largest) / (2.0 * largest * own) - COSINE_MARGIN
    window = np.where(least > 0.0, np.arccos(np.clip(least, 0.0, 1.0)), math.pi)
    opposite = np.where(angles > 0.0, angles - math.pi, angles + math.pi)
    around = np.concatenate([angles - 2.0 * math.pi, angles, angles + 2.0 * math.pi])
    start = np.searchsorted(around, opposite - window)
    counts = np.searchsorted(around, opposite + window, side="right") - start
    total = int(counts.sum())
    if total > PARTNERS * len(near):
        return None
    first = np.repeat(np.arange(len(near)), counts)
    second = (np.arange(total) + np.repeat(start - np.cumsum(counts) + counts, counts)) % len(near)
    first, second = near[first], near[second]
    squares = _squares(points, first, second)
    best = np.atleast_1d(np.argmax(squares)) if total else np.empty(0, np.int64)
    return Pairs(first[best], second[best], squares[best], known)


def _by_direction(points: FloatArray, reached: FloatArray, known: float) -> Pairs:
    """The farthest of the pairs that are farther apart than a known one, if any, from those near two extremes."""
    highest, lowest = reached.max(axis=1), reached.min(axis=1)
    cosine = math.cos(math.pi / (2 * len(reached))) * (1.0 - MARGIN)
    best, nothing = known, np.empty(0, np.int64)
    found = Pairs(nothing, nothing, np.empty(0), known)
    for way in np.argsort(lowest - highest, kind="stable"):
        needed = math.sqrt(best) * cosine
        if highest[way] - lowest[way] < needed:
            break
        upper = np.flatnonzero(reached[way] >= lowest[way] + needed)
        lower = np.flatnonzero(reached[way] <= highest[way] - needed)
        a, b = _farthest_between(points, _vertices(points, upper), _vertices(points, lower))
        squares = _squares(points, a, b)
        if float(squares[0]) > best:
            best, found = float(squares[0]), Pairs(a, b, squares, known)
    return found


def _squares(points: FloatArray, first: IntArray, second: IntArray) -> FloatArray:
    """Squared distances of pairs of points, shape (n,)."""
    return row_squares(points[first] - points[second])


def _vertices(points: FloatArray, rows: IntArray) -> IntArray:
    """The rows, but for those surely inside the hull of them all, of which no point of the plane is farthest."""
    if len(rows) < MANY:
        return rows
    own = points[rows] - points[rows].mean(axis=0)
    own /= np.maximum(np.abs(own).max(axis=0), np.finfo(np.float64).tiny)
    reached = hull_directions(SIDES) @ own.T
    corners = own[np.concatenate([np.argmax(reached, axis=1), np.argmin(reached, axis=1)])]  # counter-clockwise
    sides = np.roll(corners, -1, axis=0) - corners
    outwards = np.stack([sides[:, 1], -sides[:, 0]], axis=1)[sides.any(axis=1)]
    if len(outwards) < 3:
        return rows
    limits = np.einsum("ij,ij->i", outwards, corners[sides.any(axis=1)]) - MARGIN
    inside = (outwards @ own.T < limits[:, None]).all(axis=0)
    return np.asarray(rows[~inside])


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
            best, ends = float(squares.flat[place]), (top + place // len(lower), place % len(lower))
    return upper[[ends[0]]], lower[[ends[1]]]
