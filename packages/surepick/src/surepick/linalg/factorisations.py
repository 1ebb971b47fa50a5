"""Every factorisation of the library; nothing else calls numpy.linalg or scipy.linalg.

No pseudo-inverse is ever formed: a direction outside the range of a matrix must cost infinity, not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surepick.core.records import FloatArray, IntArray, record
from surepick.core.special_functions import scipy
from surepick.linalg.rows import MANY, product_of_rows

HARMLESS_CONDITION = 1e4
LARGEST_SHIFT = 500
NARROW = 4
ROW_BLOCK = 65_536
TRIANGLE_ROWS = 2048
LAPACK_BLOCK = 64

Numbers = TypeVar("Numbers", NDArray[np.float64], NDArray[np.float32])


def thin_svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U, s, V' with matrix = U diag(s) V', singular values in decreasing order."""
    u, s, vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False)
    return u, s, vt


def regression_svd(rows: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """s, V, U'y with rows = U diag(s) V', (n, d), y = values (n,); in a Gram matrix a long row would drown others."""
    dim = rows.shape[1]
    triangle = np.zeros((dim, dim + 1))
    found = np.linalg.qr(np.column_stack([rows, values]), mode="r")[:dim]
    triangle[: len(found)] = found
    left, singular, transposed = thin_svd(triangle[:, :dim])
    return singular, transposed.T, left.T @ triangle[:, dim]


def row_squares(rows: FloatArray) -> FloatArray:
    """Squared Euclidean norm of each row of (n, r), shape (n,)."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norm of each row of (n, r), shape (n,)."""
    return np.sqrt(row_squares(rows))


def column_means(rows: FloatArray) -> FloatArray:
    """The mean of the rows of (n, d), shape (d,)."""
    narrow = rows.shape[1] <= NARROW  # columns in a row are then ten times faster to go through
    return np.asarray(np.ascontiguousarray(rows.T).mean(axis=1) if narrow else rows.mean(axis=0))


def _shifts(columns: FloatArray) -> IntArray:
    """Powers of two that bring the largest entry of each row of (d, K) into [1, 2); 0 for a row of zeros."""
    largest = np.max(np.abs(columns), axis=1, initial=0.0)
    return np.where(largest > 0, 1 - np.frexp(largest)[1], 0)


def power_of_two_scaled(matrix: FloatArray) -> FloatArray:
    """(K, d) with each column scaled by a power of two so that its largest entry lies in [1, 2); exact."""
    narrow = matrix.shape[1] <= NARROW  # columns in a row are then ten times faster to go through
    shifts = _shifts(np.ascontiguousarray(matrix.T) if narrow else matrix.T)
    if np.abs(shifts).max(initial=0) < LARGEST_SHIFT:
        return matrix * np.ldexp(1.0, shifts)  # as exact, and faster
    return np.ldexp(matrix, shifts)


def product(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """matrix @ right with sums in extended precision (where the platform has it), for a `right` with huge entries."""
    wide = right.astype(np.longdouble)
    blocks = [matrix[top : top + ROW_BLOCK].astype(np.longdouble) @ wide for top in range(0, len(matrix), ROW_BLOCK)]
    return np.concatenate([block.astype(np.float64) for block in blocks])


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """Lower triangular L (n, n) with L L' = matrix; None where the matrix is not positive definite to rounding."""
    factor, failure = scipy.linalg.lapack.dpotrf(matrix, lower=1, clean=1)
    return None if failure else factor


def reciprocal_condition(matrix: FloatArray, factor: FloatArray) -> float:
    """Estimate of 1 / (|A| |A^-1|) in the 1-norm for a positive definite A and its lower factor; O(r^2)."""
    estimate, _ = scipy.linalg.lapack.dpocon(factor, float(np.abs(matrix).sum(axis=0).max()), uplo="L")
    return float(estimate)


def solve_lower(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """L^-1 right (n, m), or L'^-1 right when transposed, for a lower triangular L (n, n) without 0 on its diagonal."""
    solution, _ = scipy.linalg.lapack.dtrtrs(factor, right, lower=1, trans=int(transposed))
    return np.asarray(solution)


def inverse_factor(matrix: FloatArray) -> FloatArray | None:
    """F with F F' = matrix^-1, shape (r, r); None where the matrix is not positive definite to rounding."""
    factor = cholesky(matrix)
    return None if factor is None else np.asarray(solve_lower(factor, np.eye(len(matrix))).T)


def solve_rows(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """L^-1 z for each row z of (n, r), shape (n, r)."""
    return solve_lower(factor, rows.T).T


def solve_positive_definite(matrix: Numbers, right: FloatArray) -> FloatArray | None:
    """matrix^-1 right (n,) by Cholesky in the precision of the matrix; None where that is not positive definite."""
    if matrix.dtype == np.float32:
        _, solution, failure = scipy.linalg.lapack.sposv(matrix, right.astype(np.float32), lower=1)
        return None if failure else solution.astype(np.float64)
    _, solution, failure = scipy.linalg.lapack.dposv(matrix, right, lower=1)
    return None if failure else solution


def gram_of_rows(matrix: Numbers) -> Numbers:
    """M M' of (n, m) in the lower triangle of (n, n), zeros above it; half the work of the product."""
    # The transpose of a C-ordered matrix is in the order that BLAS wants, and the other triangle of the result, too.
    rank_update: Callable[..., Any] = scipy.linalg.blas.ssyrk if matrix.dtype == np.float32 else scipy.linalg.blas.dsyrk
    lower: Numbers = rank_update(1.0, matrix.T, trans=1, lower=0).T
    return lower


@record
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix."""

    values: FloatArray  # s, (n,), decreasing
    vectors: FloatArray  # U, (n, n), orthonormal columns in the same order: matrix = U diag(s) U'


def symmetric_spectrum(matrix: FloatArray) -> Spectrum:
    """The spectrum of a symmetric matrix, whose memory may be overwritten; only the lower triangle is read."""
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
    return Spectrum(values[::-1], vectors[:, ::-1])


def largest_eigenvalue(matrix: FloatArray) -> float:
    """Of a symmetric matrix (n, n), of which only the lower triangle is read."""
    last = len(matrix) - 1
    values = scipy.linalg.eigvalsh(matrix, check_finite=False, subset_by_index=(last, last), driver="evr")
    return float(values[0])


@record
class PartialCholesky:
    """G = L L' + R for a positive semi-definite G of which only a few columns were computed."""

    factor: FloatArray  # L, (n, m)
    residual: FloatArray  # R_xx as computed, (n,), not negative; 0 at the pivots
    lowest: float  # the smallest R_xx before it was raised to 0; below rounding, G is not positive semi-definite


def pivoted_cholesky(
    diagonal: FloatArray, column: Callable[[int], FloatArray], *, max_rank: int, tolerance: float
) -> PartialCholesky:
    """Partial Cholesky factorisation from G_xx, (n,), and m columns G[:, p], each time the one of the largest remaining
    diagonal entry (Harbrecht, Peters and Schneider 2012). Cost: O(n m^2) time, O(n m) memory."""
    residual = diagonal.astype(np.float64, copy=True)
    factor = np.zeros((len(residual), min(max_rank, len(residual))), order="F")
    lowest, taken = float(residual.min()), 0
    for step in range(factor.shape[1]):
        pivot = int(np.argmax(residual))
        if residual[pivot] <= tolerance:
            break
        remaining = column(pivot) - factor[:, :step] @ factor[pivot, :step]
        remaining /= np.sqrt(residual[pivot])
        factor[:, step] = remaining
        residual -= remaining**2
        residual[pivot] = 0.0
        lowest = min(lowest, float(residual.min()))
        np.maximum(residual, 0.0, out=residual)
        taken = step + 1
    return PartialCholesky(factor[:, :taken], residual, lowest)


def triangular_factor(matrix: FloatArray) -> FloatArray:
    """R with X'X = R'R, shape (min(K, D), D), by Householder reflections of one block of rows after the other. The
    singular values and right singular vectors of X are those of R, found as well as from X itself; X'X is never formed.
    X is read once (Demmel, Grigori, Hoemmen and Langou 2012, the sequential form). Cost: O(K D^2) time."""
    num_rows, num_columns = matrix.shape
    step = max(TRIANGLE_ROWS, 4 * num_columns)
    factor = np.zeros((0, num_columns))
    for top in range(0, num_rows, step):
        block = matrix[top : top + step]
        stacked = np.empty((len(factor) + len(block), num_columns), order="F")
        stacked[: len(factor)] = factor
        stacked[len(factor) :] = block
        reflected, _, _, _ = scipy.linalg.lapack.dgeqrf(stacked, lwork=LAPACK_BLOCK * num_columns, overwrite_a=1)
        factor = np.triu(reflected[:num_columns])
    return factor


# --- Whitened coordinates: vectors in which a seminorm is the plain norm.


@record
class Whitened:
    """An orthonormal description of the rows of a matrix."""

    basis: FloatArray  # Z, (K, r), with Z'Z = K I; row differences of the matrix are linear images of those of Z
    rank: int  # r, the numerical rank that was used
    dropped: float  # largest norm of a row of the scaled matrix outside the kept directions (0 when the rank is exact)
    # largest over smallest kept singular value of the scaled matrix, 1 when the rank is 0; a relative error e in the
    # matrix is one of about condition * e in the basis
    condition: float

    @property
    def rounding(self) -> float:
        """What rounding may add to an entry of the basis, as a share of the largest: where the condition is harmful
        the products were formed in extended precision, where the platform has it."""
        double, extended = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))
        return self.condition * double if self.condition < HARMLESS_CONDITION else double + self.condition * extended


@record
class ImageMap:
    """The map that takes rows of a matrix to its whitened coordinates, for other vectors y: X = Z B, image B = y."""

    shifts: IntArray  # powers of two by which columns are scaled, (d,)
    kept: FloatArray  # orthonormal rows that span those of X, columns scaled, (r, d)
    back: FloatArray  # (r, r)
    # the image of y is this times y, and the map an identity times it; None: it is no such map
    multiple: float | None = None

    @staticmethod
    def of(matrix: FloatArray, white: Whitened) -> ImageMap:
        """That of a matrix X, shape (K, d), as it was whitened. Cost: O(K d r + d r^2) time."""
        shifts = _shifts(matrix.T)
        if white.rank == 0:
            return ImageMap(shifts, np.zeros((0, matrix.shape[1])), np.zeros((0, 0)))
        u, s, vt = thin_svd(white.basis.T @ np.ldexp(matrix, shifts) / len(matrix))
        return ImageMap(shifts, vt, u / s)

    @staticmethod
    def of_multiples(rank: int, divisor: float) -> ImageMap:
        """That of a matrix Z / divisor, whose whitened coordinates are Z, shape (K, r)."""
        return ImageMap(np.zeros(rank, np.int64), np.eye(rank), divisor * np.eye(rank), divisor)

    def images(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(coordinates of vectors y, shape (m, d), the share of each, columns scaled, outside the kept directions)."""
        if self.multiple is not None:
            return self.multiple * vectors, np.zeros(len(vectors))
        wanted = np.ldexp(vectors, self.shifts)
        lengths = row_norms(wanted)
        safe = np.where(lengths > 0, lengths, 1.0)
        if len(self.kept) == 0:
            return np.zeros((len(vectors), 0)), lengths / safe
        kept = product_of_rows(wanted, self.kept.T)
        rest = wanted - product_of_rows(kept, self.kept)
        harmless = len(kept) >= MANY and np.linalg.cond(self.back) < HARMLESS_CONDITION  # else in extended precision
        return (product_of_rows if harmless else product)(kept, self.back.T), row_norms(rest) / safe


def whitened(matrix: FloatArray, *, rank_tolerance: float | None = None) -> Whitened:
    """Coordinates Z = X T in which the arms are isotropic, the rank decided on X itself, never on X'X.

        X = Q R,   R = W diag(s) V',   T_1 = V_r diag(s_r)^-1,   Z = sqrt(K) X T_1 C'^-1,   C C' = T_1'X'X T_1

    Any invertible T leaves the value of a design alone as long as every row meets the same T. Q W_r is X T_1 up to a
    rounding error of each row, which tiny s magnify; where they do, the product is formed again in extended precision.
    Where X'X proves the column-scaled X to be far from singular, no QR is needed (`_whitened_by_gram`). A singular
    value below a share `rank_tolerance` of the largest is rounding noise; None: max(K, d) * machine epsilon.
    """
    num_rows, num_columns = matrix.shape
    if num_rows == 0 or num_columns == 0 or not matrix.any():
        return Whitened(np.zeros((num_rows, 0)), 0, 0.0, 1.0)
    scaled = power_of_two_scaled(matrix)
    share = max(num_rows, num_columns) * np.finfo(np.float64).eps if rank_tolerance is None else rank_tolerance
    quick = _whitened_by_gram(scaled) if num_rows > num_columns and share * HARMLESS_CONDITION < 0.1 else None
    if quick is not None:
        return quick
    q, r = scipy.linalg.qr(scaled, mode="economic", check_finite=False)
    w, s, vt = thin_svd(np.asarray(r, dtype=np.float64))
    rank = max(int(np.count_nonzero(s > share * s[0])), 1)
    condition = float(s[0] / s[rank - 1])
    outside = q @ (w[:, rank:] * s[rank:])
    dropped = float(row_norms(outside).max(initial=0.0))
    once = q @ w[:, :rank] if condition < HARMLESS_CONDITION else product(scaled, vt[:rank].T / s[:rank])
    factor = cholesky(once.T @ once)
    basis = np.sqrt(num_rows) * (once if factor is None else solve_rows(factor, once))
    return Whitened(np.ascontiguousarray(basis), rank, dropped, condition)


def _whitened_by_gram(scaled: FloatArray) -> Whitened | None:
    """Z = sqrt(K) X C_1'^-1 C_2'^-1 by two Cholesky factorisations, which leave Z'Z = I to about eps cond(X)^2, then
    eps; None where X'X does not prove cond(X) < 1e4."""
    values = scipy.linalg.eigvalsh(scaled.T @ scaled, check_finite=False)
    if not values[0] * HARMLESS_CONDITION**2 > values[-1]:
        return None
    rows, unit = scaled, np.eye(scaled.shape[1])
    for size in (1.0, float(len(scaled))):
        factor = cholesky(rows.T @ rows)
        if factor is None:
            return None
        rows = product_of_rows(rows, np.sqrt(size) * solve_lower(factor, unit).T)
    return Whitened(rows, scaled.shape[1], 0.0, float(np.sqrt(values[-1] / values[0])))


@record
class Spanning:
    """Rows of a matrix that span what all its rows span."""

    rows: IntArray  # min(K, d) indices, the most independent ones first
    clearance: float  # smallest over largest distance of one of them from the span of those before it


def spanning_rows(matrix: FloatArray) -> Spanning:
    """Rows by QR with column pivoting. Cost: O(K d min(K, d)) time."""
    r, pivots = scipy.linalg.qr(matrix.T, mode="r", pivoting=True, check_finite=False)
    distances = np.abs(np.diag(np.asarray(r)))
    rows: IntArray = np.asarray(pivots[: min(matrix.shape)], dtype=np.int64)
    return Spanning(rows, float(distances[-1] / distances[0]) if distances.any() else 0.0)


def longest_image(matrix: FloatArray) -> float:
    """s with ||L^-1 z|| <= s ||z|| for every z, matrix = L L', rounded up; infinite where rounding hides it."""
    values = scipy.linalg.eigvalsh(matrix, check_finite=False)
    least = float(values[0]) - 8.0 * len(values) * np.finfo(np.float64).eps * float(values[-1])
    return float(1.0 / np.sqrt(least)) if least > 0.0 else np.inf


def null_space(matrix: FloatArray) -> FloatArray:
    """Orthonormal columns N with matrix N = 0 to rounding, shape (columns, columns - rows) for full row rank."""
    q, r, _ = scipy.linalg.qr(matrix.T, mode="full", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(np.asarray(r)))
    cut = 8.0 * max(matrix.shape) * np.finfo(np.float64).eps * float(diagonal.max(initial=0.0))
    return np.asarray(q, dtype=np.float64)[:, int(np.count_nonzero(diagonal > cut)) :]


@record
class WeightedRange:
    """The range of A = sum_i w_i z_i z_i', and coordinates in which A is the identity there."""

    directions: FloatArray  # V, (d, r), orthonormal columns that span the range of A
    # V diag(s)^-1, (d, r): u = z to_unit gives ||u_a - u_b|| = ||z_a - z_b|| in A^-1 inside the range
    to_unit: FloatArray


def weighted_range(rows: FloatArray, weights: FloatArray | IntArray, *, cut: float = 1e-9) -> WeightedRange:
    """Range and unit coordinates of A = sum_i w_i z_i z_i', from whitened rows, (p, d), with w > 0, (p,)."""
    if rows.size == 0:
        nothing = np.zeros((rows.shape[1], 0))
        return WeightedRange(nothing, nothing)
    _, singular, directions = thin_svd(rows * np.sqrt(weights)[:, None])
    kept = singular > cut * singular[0]
    basis = directions[kept].T
    return WeightedRange(basis, basis / singular[kept])
