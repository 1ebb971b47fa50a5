"""The leading singular directions of features too large to decompose at once, with the residual of every row."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.embeddings.base import tail_sums
from surepick.linalg.factorisations import thin_svd, triangular_factor
from surepick.linalg.unique_rows import EqualRows

STREAM_ABOVE = 4_000_000
KEPT_ENTRIES = 128_000_000
PASS_ENTRIES = 1_000_000
EPS = float(np.finfo(np.float64).eps)


@record
class Directions:
    """The arms in the leading singular directions of their features.

    Args:
        scores: psi, shape (K, r), as computed from V_r'x; equal rows of the features have equal ones, bit by bit.
        singular: all singular values, shape (min(K, D),), decreasing.
        residuals: at least max_x ||x - V_d psi_d(x)|| for d = 0 .. r, shape (r + 1,); 0 where d reaches D or the
            number of distinct arms.
        sums: sum_{i > d} s_i for d = 0 .. r, never below the residuals, shape (r + 1,).
    """

    scores: FloatArray
    singular: FloatArray
    residuals: FloatArray
    sums: FloatArray


NOTHING = np.zeros(1)


def numerical_rank(singular: FloatArray, shape: tuple[int, ...]) -> int:
    """How many singular values of a (K, D) matrix are above the rounding of the decomposition, max(K, D) eps s_1."""
    return int(np.sum(singular > max(shape) * EPS * singular[0]))


def leading_directions(matrix: FloatArray, classes: EqualRows, *, most: int) -> Directions:
    """The leading singular directions, and what each number of them leaves of the rows, in two passes over the rows.

        X'X = R'R,   R = W diag(s) V'        first pass: R, and from it s and V, the rank decided on R
        psi(x) = V_r'x,   e(x) = x - V_r psi(x)        second pass

    *Why the residuals hold.* Let s and e be psi(x) and e(x) as computed, and V_r as stored, neither exact. For every
    coefficient vector theta, h(x) = <x, theta> differs from <s_d, V_d' theta> by <x - V_d s_d, theta>, whatever V and s
    are. With w >= |V_r'V_r - I| (computed, and raised by its own rounding), u = eps / 2, and the usual bound for inner
    products of length n, n u <|a|, |b|> (1 + small):

        |x - V_r s|           <= |e| + 1.1 (r + 1) u (1 + sqrt(r)) |x|;  (w + 1.01 D u sqrt(r)) |x| for a square V
        |V_r'(x - V_r s)|     <= 1.01 (D u sqrt(r) + w) |x|                     what should be orthogonal nearly is
        |x - V_d s_d|^2        = |x - V_r s|^2 + |V_{>d} s_{>d}|^2 + 2 <x - V_r s, V_{>d} s_{>d}>

    so that |x - V_d s_d| <= sqrt(|e|^2 + sum_{d<j<=r} s_j^2) + rho |x|, rho = eps (D + r + 8)(sqrt(r) + 2) + 3.2 w,
    which also covers the rounding of the sum. The largest root over the arms, plus 1.02 rho times the largest root at
    d = 0, is what is returned.

    Where r reaches D or the number of distinct rows, the directions are an orthonormal basis of all that the rows span:
    nothing is left out of V'x, and the residual is 0. That V'x is stored in double precision is then no more of an
    error than that x is.

    Args:
        matrix: X, shape (K, D), finite, not all zero, float32 or float64, may be memory-mapped; read in blocks.
        classes: its classes of equal rows.
        most: most directions to keep, r <= most.

    Source: ours. Cost: O(K D (D + r)) time; K x r float64 and a few blocks beyond the matrix.
    """
    _, singular, right = thin_svd(triangular_factor(matrix))
    if singular[0] == 0:
        return Directions(np.zeros((len(matrix), 0)), singular, NOTHING, NOTHING)
    kept = min(most, numerical_rank(singular, matrix.shape))
    basis = np.ascontiguousarray(right[:kept].T)
    scores = np.empty((len(matrix), kept))
    squares = np.zeros(kept + 1)
    step = max(1, PASS_ENTRIES // matrix.shape[1])
    for top in range(0, len(matrix), step):
        rows = slice(top, top + step)
        np.maximum(squares, _project(matrix[rows], basis, singular[0], scores[rows]), out=squares)
    residuals = singular[0] * np.sqrt(squares[::-1])
    residuals += 1.02 * rounding_share(basis) * residuals[0]
    residuals[min(len(classes.first), matrix.shape[1]) :] = 0.0
    if not classes.none:
        _copy_to_equals(scores, classes, step)
    scores.flags.writeable = False
    return Directions(scores, singular, residuals, np.maximum(tail_sums(singular)[: kept + 1], residuals))


def rounding_share(basis: FloatArray) -> float:
    """rho of `leading_directions` for V, shape (D, r): what rounding may add to a residual, as a share of ||x||."""
    length, kept = basis.shape
    overlap = basis.T @ basis - np.eye(kept)
    skew = 1.01 * (math.sqrt(float(np.einsum("ij,ij->", overlap, overlap))) + EPS * length * kept)
    return float(EPS * (length + kept + 8) * (math.sqrt(kept) + 2.0) + 3.2 * skew)


def _project(rows: FloatArray, basis: FloatArray, unit: float, scores: FloatArray) -> FloatArray:
    """Write the scores of the rows; the largest squares, in units of `unit`, of what r, r - 1, ..., 0 directions leave.

    A square V leaves nothing but rounding, and no residual is formed.
    """
    block = np.asarray(rows, dtype=np.float64)
    np.matmul(block, basis, out=scores)
    squares = np.empty((len(block), basis.shape[1] + 1))
    np.square(scores[:, ::-1] / unit, out=squares[:, 1:])
    squares[:, 0] = 0.0
    if basis.shape[0] > basis.shape[1]:
        left = block - scores @ basis.T
        left /= unit
        np.einsum("ij,ij->i", left, left, out=squares[:, 0])
    np.cumsum(squares, axis=1, out=squares)
    largest: FloatArray = squares.max(axis=0)
    return largest


def _copy_to_equals(scores: FloatArray, classes: EqualRows, step: int) -> None:
    """Give every row the scores of the first row equal to it: where a row stands in a block may decide the last bit."""
    first = classes.first[classes.group]
    others = np.flatnonzero(first != np.arange(len(scores)))
    for top in range(0, len(others), step):
        rows = others[top : top + step]
        scores[rows] = scores[first[rows]]
