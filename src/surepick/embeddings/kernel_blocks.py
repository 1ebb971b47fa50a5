"""A kernel on rows too many for memory: coordinates from few landmarks, and what they leave of every row."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from surepick.blocks.map_reduce import Passes
from surepick.blocks.search import Largest
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.validation import positive_number, whole_number
from surepick.embeddings.kernel_functions import Kernel
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import cholesky, pivoted_cholesky, solve_lower, thin_svd

EPS = float(np.finfo(np.float64).eps)
SAMPLE = 2048  # rows among which the first landmarks are looked for
LEAST_RESIDUAL = 1e-8  # of the largest k(x, x): beyond it rounding takes over
HEURISTIC_ADDED = 512  # rows that a pass adds to those among which landmarks are looked for
PIECE = 4096  # rows whose kernel with all landmarks is in memory at once


@record
class KernelDirections:
    """The function space of a kernel, as few landmarks see it.

        G_mm = L L' of the landmarks,   u(x) = L^-1 (k(l_1, x), ..., k(l_m, x)),   |h(x) - <u(x), theta>| <= C left

    for every h of norm at most C in the space, with ||theta|| <= C.

    *Why it holds.* u(x) are the coordinates of the projection of k(x, .) on the span of the landmarks, in an
    orthonormal basis of it, so <u(x), theta> = (Ph)(x) with ||theta|| = ||Ph|| <= C, and |h(x) - (Ph)(x)| <=
    C sqrt(k(x, x) - ||u(x)||^2) by Cauchy-Schwarz. The first d landmarks alone have the first d coordinates. Rounding
    moves u by at most e = 8 eps (m + D + 16) cond(L) sqrt(k(x, x)), once in h and, squared, in what is left: both are
    added.

    Args:
        kernel: k.
        landmarks: l, shape (d, D).
        factor: L, shape (d, d).
        left: as above, over all rows, rounded up.
        information: sum_x u u' / K, shape (d, d).
        longest: at least the largest sqrt(k(x, x)).

    Source: ours; the bound is that of the Nystrom method with pivots (docs/large.md, line 5).
    """

    kernel: Kernel
    landmarks: FloatArray
    factor: FloatArray
    left: float
    information: FloatArray
    longest: float

    @property
    def rank(self) -> int:
        """d."""
        return len(self.landmarks)

    def of(self, rows: FloatArray) -> FloatArray:
        """Rows, shape (n, D), in these directions, shape (n, d)."""
        return _coordinates(self.kernel, self.landmarks, self.factor, rows)


def _coordinates(kernel: Kernel, landmarks: FloatArray, factor: FloatArray, rows: FloatArray) -> FloatArray:
    found = np.empty((len(rows), len(landmarks)))
    for top in range(0, len(rows), PIECE):
        piece = np.asarray(rows[top : top + PIECE], np.float64)
        found[top : top + PIECE] = solve_lower(factor, kernel.gram(landmarks, piece)).T
    return found


@record
class _Seen:
    """What a pass says of landmarks.

    Args:
        largest: max over the rows of k(x, x) - ||u_d(x)||^2 for d = 0 .. m, shape (m + 1,).
        worst: the rows of which the landmarks leave most.
        information: sum of u u', shape (m, m).
    """

    largest: FloatArray
    worst: Largest
    information: FloatArray

    def plus(self, other: _Seen) -> _Seen:
        """Of both."""
        return _Seen(
            np.maximum(self.largest, other.largest),
            self.worst.plus(other.worst),
            self.information + other.information,
        )


def _seen(kernel: Kernel, landmarks: FloatArray, factor: FloatArray, rows: FloatArray, first: int) -> _Seen:
    found, left = None, np.empty(len(rows))
    for top in range(0, len(rows), PIECE):
        piece = np.asarray(rows[top : top + PIECE], np.float64)
        seen = _coordinates(kernel, landmarks, factor, piece)
        residuals = np.empty((len(piece), len(landmarks) + 1))
        residuals[:, 0] = kernel.diagonal(piece)
        np.subtract(residuals[:, :1], np.cumsum(seen**2, axis=1), out=residuals[:, 1:])
        left[top : top + PIECE] = residuals[:, -1]
        part = _Seen(residuals.max(axis=0), Largest.of(left[:0], 0, HEURISTIC_ADDED), seen.T @ seen)
        found = part if found is None else found.plus(part)
    if found is None:
        raise InvalidInput("a block has no rows.")
    return _Seen(found.largest, Largest.of(left, first, HEURISTIC_ADDED), found.information)


def kernel_directions(
    passes: Passes, kernel: Kernel, *, norm_bound: float, epsilon: float, max_rank: int = 200
) -> KernelDirections:
    """Landmarks, and as many of them as are predicted to cost the fewest pulls.

        d minimises 4 d / (epsilon - 2 C left_d (1 + sqrt(d)))^2,     left_d of all d from one pass

    Landmarks are the pivots of a partial Cholesky factorisation of some rows: of a sample spread over the list, then of
    that and the rows of which the first ones leave most.

    Args:
        passes: over the rows.
        kernel: k, with a name, so that other processes and certificates know it.
        norm_bound: C.
        epsilon: the shortfall that matters, in reward units.
        max_rank: most landmarks.

    Raises:
        InvalidInput: a setting has no meaning, or the kernel is 0 on the sample.

    Cost: two passes of O(K m (m + D)) time each.
    """
    positive_number("norm_bound", norm_bound, "the norm that the reward function can have in the kernel's space.")
    whole_number("max_rank", max_rank, least=1, meaning="the most landmarks.")
    number = passes.rows.num_rows
    pool = np.unique(np.linspace(0, number - 1, min(number, SAMPLE)).astype(np.int64))
    landmarks, factor = _landmarks(kernel, passes.rows.take(pool), max_rank)
    found = passes.map_reduce("landmarks", partial(_seen, kernel, landmarks, factor), _Seen.plus)
    if number > len(pool):
        pool = np.union1d(pool, found.worst.rows)
        landmarks, factor = _landmarks(kernel, passes.rows.take(pool), max_rank)
        found = passes.map_reduce("landmarks", partial(_seen, kernel, landmarks, factor), _Seen.plus)
    top = float(found.largest[0])
    spread = thin_svd(factor)[1]
    rounding = 8.0 * EPS * (len(factor) + landmarks.shape[1] + 16) * float(spread[0] / spread[-1])
    left = np.sqrt(np.maximum(found.largest, 0.0) + rounding * top) + rounding * math.sqrt(top)
    dim = _cheapest(norm_bound * left, epsilon)
    return KernelDirections(
        kernel,
        landmarks[:dim],
        np.ascontiguousarray(factor[:dim, :dim]),
        float(left[dim]),
        found.information[:dim, :dim] / number,
        math.sqrt(top) * (1.0 + 8.0 * EPS),
    )


def _landmarks(kernel: Kernel, rows: FloatArray, max_rank: int) -> tuple[FloatArray, FloatArray]:
    """(landmarks in the order of pivots, L with L L' = their gram matrix)."""
    diagonal, pivots = kernel.diagonal(rows), list[int]()

    def column(pivot: int) -> FloatArray:
        pivots.append(pivot)
        return np.asarray(kernel.gram(rows, rows[pivot : pivot + 1])[:, 0])

    if not diagonal.max() > 0.0:
        raise InvalidInput("the kernel is zero on these rows; every candidate would look the same.")
    pivoted_cholesky(diagonal, column, max_rank=max_rank, tolerance=LEAST_RESIDUAL * float(diagonal.max()))
    chosen: IntArray = np.array(pivots, np.int64)
    while True:
        landmarks = rows[chosen]
        factor = cholesky(kernel.gram(landmarks, landmarks))
        if factor is not None:
            return landmarks, factor
        chosen = chosen[:-1]  # the last pivots are the nearest to what the others span


def _cheapest(bias: FloatArray, epsilon: float) -> int:
    """d from 1; the largest where bias leaves no room in any."""
    dims = np.arange(1, len(bias))
    room = epsilon - 2.0 * bias[1:] * (1.0 + np.sqrt(dims))
    costs = np.divide(4.0 * dims, room**2, out=np.full(len(dims), np.inf), where=room > 0.0)
    return int(dims[np.argmin(costs)]) if np.isfinite(costs).any() else int(dims[-1])
