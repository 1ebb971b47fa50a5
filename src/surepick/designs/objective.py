"""The exact objective: the farthest pair of active arms, and what a design is worth.

    value(lambda) = max over active a, b of ||z_a - z_b||^2 in A(lambda)^-1,   A(lambda) = sum_i lambda_i z_i z_i'

With A = L L' this is the squared diameter of the points L^-1 z_a, found without an array of all pairs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from surepick.designs.problem import Problem, checked_weights, pose
from surepick.linalg import cholesky, reciprocal_condition, solve_lower, thin_svd
from surepick.records import FloatArray, IntArray, record

FIRST_TILE = 128
TILE = 1024
SAFE_RECIPROCAL_CONDITION = 1e-10
RANGE_CUT = 1e-7
RANGE_TOLERANCE = 1e-10
RANGE_TOLERANCE_MOST = 1e-4


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norm of each row."""
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


@record
class Pairs:
    """Far pairs of points, the farthest first.

    Args:
        first, second: positions of the two points, shape (n,).
        squares: their squared distances, shape (n,); the first is the squared diameter.
    """

    first: IntArray
    second: IntArray
    squares: FloatArray


def _largest(squares: FloatArray, most: int) -> IntArray:
    """Positions of the entries to look at: the `most` largest, spread evenly over exact ties at the cut."""
    if len(squares) <= most:
        return np.arange(len(squares), dtype=np.int64)
    cut = np.partition(squares, len(squares) - most)[len(squares) - most]
    above, ties = np.flatnonzero(squares > cut), np.flatnonzero(squares == cut)
    room = most - len(above)
    return np.concatenate([above, ties[np.arange(room) * len(ties) // room]])


def _far_entries(tile: FloatArray, floor: float, most: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Rows, columns and values of the `most` largest entries of a tile, of those not below the floor."""
    highest = tile.max(axis=1)
    if most < len(tile):  # the k-th largest row maximum never exceeds the k-th largest entry
        floor = max(floor, float(np.partition(highest, len(tile) - most)[len(tile) - most]))
    promising = np.flatnonzero(highest >= max(floor, 0.0))
    rows, columns = np.nonzero(tile[promising] >= max(floor, 0.0))
    rows = promising[rows]
    squares = tile[rows, columns]
    keep = _largest(squares, most)
    return rows[keep], columns[keep], squares[keep]


def _tiles(count: int) -> list[slice]:
    """Consecutive blocks of positions: small ones first, whose far pairs often make the others superfluous."""
    edges, size = [0], FIRST_TILE
    while edges[-1] < count:
        edges.append(min(edges[-1] + size, count))
        size = min(2 * size, TILE)
    return [slice(*ends) for ends in pairwise(edges)]


def _candidates(ordered: FloatArray, radii: FloatArray, most: int) -> Pairs:
    """Far pairs of centred points in order of decreasing radius, by tiles, stopping where no pair can still matter."""
    first, second, squares = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    norms, floor = (radii * radii)[:, None], 0.0
    left = np.hstack([ordered, norms, np.ones_like(norms)])
    right = np.hstack([-2.0 * ordered, np.ones_like(norms), norms])  # left . right = squared distance
    tiles = _tiles(len(ordered))
    for number, rows in enumerate(tiles):
        if (2.0 * radii[rows.start]) ** 2 < floor:
            break
        for columns in tiles[number:]:
            if (radii[rows.start] + radii[columns.start]) ** 2 < floor:
                break
            tile = left[rows] @ right[columns].T
            if columns is rows:
                tile[np.tri(len(tile), dtype=bool)] = -1.0
            a, b, values = _far_entries(tile, floor, most)
            squares = np.concatenate([squares, values])
            keep = _largest(squares, most)
            first = np.concatenate([first, a + rows.start])[keep]
            second = np.concatenate([second, b + columns.start])[keep]
            squares = squares[keep]
            if len(squares) >= most:
                floor = float(squares.min())
    return Pairs(first, second, squares)


def _by_radius(centred: FloatArray, radii: FloatArray, most: int) -> IntArray:
    """Positions in order of decreasing radius; of many points only those that can belong to one of the far pairs."""
    if len(radii) <= 4 * TILE:
        return np.argsort(-radii, kind="stable")
    outer = np.sort(np.argpartition(-radii, TILE)[:TILE])
    outer = outer[np.argsort(-radii[outer], kind="stable")]
    known = _candidates(centred[outer], radii[outer], most).squares
    reach = float(np.sqrt(known.min())) * (1.0 - 1e-9) - float(radii.max()) if len(known) >= most else 0.0
    kept = np.flatnonzero(radii >= reach)
    return kept[np.argsort(-radii[kept], kind="stable")]


def farthest_pairs(points: FloatArray, *, most: int = 1) -> Pairs:
    """The squared diameter of a set of points, exactly, and other far pairs.

        ||u_a - u_b|| <= r_a + r_b,   r_i = ||u_i - centre||

    so pairs of small radii need not be looked at. Distances come from products of centred points; those of the pairs
    returned are computed again from their differences.

    Args:
        points: u, shape (s, r), s >= 2.
        most: how many pairs to return at most.

    Source: ours.
    Cost: O(s r) and O(m^2 r) for the m points whose radius does not exclude them; blocks of at most 1024 x 1024.
    """
    centred = points - 0.5 * (points.max(axis=0) + points.min(axis=0))
    radii = row_norms(centred)
    order = _by_radius(centred, radii, max(most, 4))
    found = _candidates(centred[order], radii[order], max(most, 4))
    first, second = order[found.first], order[found.second]
    difference = points[first] - points[second]
    squares = np.einsum("ij,ij->i", difference, difference)
    best = np.argsort(-squares, kind="stable")[:most]
    return Pairs(first[best], second[best], squares[best])


def opposite_pairs(points: FloatArray, *, most: int = 1) -> Pairs:
    """As `farthest_pairs` for points p_1, ..., p_m, -p_1, ..., -p_m in coordinates of any origin: no pair is farther
    apart than a longest p and its opposite, since ||p - q|| <= ||p|| + ||q||. Only opposite pairs are returned.

    Source: ours. Cost: O(s r).
    """
    half = len(points) // 2
    apart = points[:half] - points[half:]
    squares = np.einsum("ij,ij->i", apart, apart)
    chosen = _largest(squares, most)
    chosen = chosen[np.argsort(-squares[chosen], kind="stable")]
    return Pairs(chosen, chosen + half, squares[chosen])


def far_pairs(problem: Problem, points: FloatArray, *, most: int = 1) -> Pairs:
    """The farthest pairs of the problem's active points, given in any coordinates."""
    search = opposite_pairs if problem.opposite else farthest_pairs
    return search(points, most=most)


def information(basis: FloatArray, weights: FloatArray) -> FloatArray:
    """A(lambda) = sum_i lambda_i z_i z_i', shape (r, r)."""
    support = np.flatnonzero(weights)
    rows = basis[support]
    matrix: FloatArray = rows.T @ (weights[support, None] * rows)
    return matrix


def whitened_active(problem: Problem, weights: FloatArray, *, range_cut: float) -> FloatArray | None:
    """Points u_a, a active, with ||u_a - u_b||^2 = ||z_a - z_b||^2 in A(weights)^-1; None when one is infinite.

    A regular A is factored. Where that is not clearly safe, the singular vectors of sqrt(lambda) Z decide what lies in
    the range: a difference that leaves it by more than rounding can explain makes the value infinite.

    Args:
        weights: lambda of the distinct arms, shape (k,).
        range_cut: singular values below this share of the largest count as directions that are not measured; at least
            RANGE_CUT.
    """
    matrix = information(problem.basis, weights)
    factor = cholesky(matrix)
    if factor is not None and reciprocal_condition(matrix, factor) > SAFE_RECIPROCAL_CONDITION:
        return solve_lower(factor, problem.points[problem.active].T).T
    support = np.flatnonzero(weights)
    _, s, vt = thin_svd(np.sqrt(weights[support])[:, None] * problem.basis[support])
    offsets = problem.points[problem.active] - problem.points[problem.active[0]]
    coordinates = offsets @ vt.T
    strong, seen = (int(np.count_nonzero(s > cut * s[0])) for cut in (range_cut, RANGE_CUT))
    leak = row_norms(offsets - coordinates[:, :strong] @ vt[:strong])
    lengths = row_norms(offsets)
    noise = 64.0 * float(np.finfo(np.float64).eps) * problem.condition * float(np.abs(problem.points).max())
    allowed = np.maximum(RANGE_TOLERANCE * lengths, np.minimum(noise, RANGE_TOLERANCE_MOST * lengths))
    if (leak > allowed).any():
        return None
    points: FloatArray = coordinates[:, :seen] / s[:seen]
    return points


def worth(problem: Problem, weights: FloatArray, *, range_cut: float = RANGE_CUT) -> float:
    """The exact objective of weights, of any sum, on the distinct arms; infinity when a difference is not measured."""
    if len(problem.active) == 1 or problem.rank == 0:
        return 0.0
    total = float(weights.sum())
    points = whitened_active(problem, weights / total, range_cut=range_cut)
    return np.inf if points is None else float(far_pairs(problem, points).squares[0]) / total


def design_value(
    features: ArrayLike, weights: ArrayLike, active: ArrayLike | None = None, *, rank_tolerance: float | None = None
) -> float:
    """How well a design measures the differences of the active arms: the exact objective.

        max over a, b in active of ||x_a - x_b||^2 in A^-1,   A = sum_i weights_i x_i x_i'

    Args:
        features: x, shape (K, d), finite, any scale and rank.
        weights: shape (K,), non-negative; they are not normalised: twice the weights have half the value, and counts
            of pulls are welcome.
        active: arms that are compared, as indices or a mask of length K; None means all.
        rank_tolerance: see `solve_design`.

    Returns:
        The maximum; 0 when the active arms coincide, infinity when some difference is outside the range of A.

    Raises:
        InvalidInput: non-finite features or weights, wrong shapes, an empty or wrong active set.

    Source: Algorithm 1, line 5; appendix "Matrix inversion and rounding" for the range.
    Cost: O(K d^2) and the pair search of `farthest_pairs`.
    """
    problem = pose(features, active, rank_tolerance=rank_tolerance)
    return worth(problem, problem.merged(checked_weights(weights, len(problem.group))))
