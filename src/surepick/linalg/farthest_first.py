"""Arms spread over a set: each time the one that is farthest from all that were chosen before."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.linalg.factorisations import row_norms, row_squares

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
    arms that would then be as far as the farthest of the pool.

    Args:
        vectors: shape (K, d).
        chosen: indices, at least one.
        free: which arms may be taken, shape (K,).
        number: most arms to take.

    Returns:
        At most `number` arms, fewer where no more are free; in the order in which they were taken.

    Source: Gonzalez (1985). Cost: one matrix product (K, d) x (d, 16) and O(K), where few arms are equally
        far; O(K d len(chosen)) at worst. Memory: O(K) and small blocks.
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
            best = _first_of_farthest(nearest, pool)
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


def _first_of_farthest(nearest: FloatArray, pool: IntArray) -> int:
    """The place of the first arm that is as far as any, up to what processors that round otherwise may disagree on."""
    farthest = float(nearest.max())
    as_far = np.flatnonzero(nearest >= farthest * (1.0 - SAME_DISTANCE if farthest > 0.0 else 1.0))
    return int(as_far[np.argmin(pool[as_far])])
