"""Every factorisation of the library; nothing else calls numpy.linalg or scipy.linalg.

No pseudo-inverse is ever formed: a direction outside the range of a matrix must cost infinity, not zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import scipy
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from surepick.core.arrays import FloatArray, record

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
    """s, V, U'y with rows = U diag(s) V', for rows of shape (n, d) and y = values of shape (n,).

    Not by the Gram matrix, in which a long row drowns the others.

    Returns:
        Shapes (d,), decreasing, (d, d) and (d,); s is 0 for what the rows do not span.
    """
    dim = rows.shape[1]
    triangle = np.zeros((dim, dim + 1))
    found = np.linalg.qr(np.column_stack([rows, values]), mode="r")[:dim]
    triangle[: len(found)] = found
    left, singular, transposed = thin_svd(triangle[:, :dim])
    return singular, transposed.T, left.T @ triangle[:, dim]


def row_squares(rows: FloatArray) -> FloatArray:
    """Squared Euclidean norm of each row of (n, r), shape (n,)."""
    squares: FloatArray = np.einsum("ij,ij->i", rows, rows)
    return squares


def row_norms(rows: FloatArray) -> FloatArray:
    """Euclidean norm of each row of (n, r), shape (n,)."""
    norms: FloatArray = np.sqrt(row_squares(rows))
    return norms


def column_means(rows: FloatArray) -> FloatArray:
    """The mean of the rows of (n, d), shape (d,)."""
    narrow = rows.shape[1] <= NARROW  # columns in a row are then ten times faster to go through
    means: FloatArray = np.ascontiguousarray(rows.T).mean(axis=1) if narrow else rows.mean(axis=0)
    return means


def power_of_two_scaled(matrix: FloatArray) -> FloatArray:
    """(K, d) with each column scaled by a power of two so that its largest entry lies in [1, 2); exact."""
    narrow = matrix.shape[1] <= NARROW  # columns in a row are then ten times faster to go through
    columns = np.ascontiguousarray(matrix.T) if narrow else matrix.T
    largest = np.max(np.abs(columns), axis=1, initial=0.0)
    _, exponents = np.frexp(largest)
    shifts = np.where(largest > 0, 1 - exponents, 0)
    if np.abs(shifts).max(initial=0) < LARGEST_SHIFT:
        products: FloatArray = matrix * np.ldexp(1.0, shifts)  # as exact, and faster
        return products
    scaled: FloatArray = np.ldexp(matrix, shifts)
    return scaled


def product(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """matrix @ right with sums in extended precision (where the platform has it), for a `right` with huge entries."""
    wide = right.astype(np.longdouble)
    blocks = [matrix[top : top + ROW_BLOCK].astype(np.longdouble) @ wide for top in range(0, len(matrix), ROW_BLOCK)]
    result: FloatArray = np.concatenate([block.astype(np.float64) for block in blocks])
    return result


def cholesky(matrix: FloatArray) -> FloatArray | None:
    """Lower triangular L (n, n) with L L' = matrix; None where the matrix is not positive definite to rounding."""
    factor, failure = lapack.dpotrf(matrix, lower=1, clean=1)
    return None if failure else factor


def reciprocal_condition(matrix: FloatArray, factor: FloatArray) -> float:
    """Estimate of 1 / (|A| |A^-1|) in the 1-norm for a positive definite A and its lower factor; O(r^2)."""
    estimate, _ = lapack.dpocon(factor, float(np.abs(matrix).sum(axis=0).max()), uplo="L")
    return float(estimate)


def solve_lower(factor: FloatArray, right: FloatArray, *, transposed: bool = False) -> FloatArray:
    """L^-1 right (n, m), or L'^-1 right when transposed, for a lower triangular L (n, n) without 0 on its diagonal."""
    solution, _ = lapack.dtrtrs(factor, right, lower=1, trans=int(transposed))
    result: FloatArray = solution
    return result


def inverse_factor(matrix: FloatArray) -> FloatArray | None:
    """F with F F' = matrix^-1, shape (r, r); None where the matrix is not positive definite to rounding."""
    factor = cholesky(matrix)
    return None if factor is None else np.asarray(solve_lower(factor, np.eye(len(matrix))).T)


def solve_rows(factor: FloatArray, rows: FloatArray) -> FloatArray:
    """L^-1 z for each row z of (n, r), shape (n, r)."""
    return solve_lower(factor, rows.T).T


def solve_positive_definite(matrix: Numbers, right: FloatArray) -> FloatArray | None:
    """matrix^-1 right (n,) by one Cholesky factorisation in the precision of the matrix; None where rounding hides that
    it is positive definite."""
    if matrix.dtype == np.float32:
        _, solution, failure = lapack.sposv(matrix, right.astype(np.float32), lower=1)
        return None if failure else solution.astype(np.float64)
    _, solution, failure = lapack.dposv(matrix, right, lower=1)
    return None if failure else solution


def gram_of_rows(matrix: Numbers) -> Numbers:
    """M M' of (n, m) in the lower triangle of (n, n), zeros above it; half the work of the product."""
    # The transpose of a C-ordered matrix is in the order that BLAS wants, and the other triangle of the result, too.
    rank_update: Callable[..., Any] = blas.ssyrk if matrix.dtype == np.float32 else blas.dsyrk
    lower: Numbers = rank_update(1.0, matrix.T, trans=1, lower=0).T
    return lower


def solve_each(matrices: FloatArray, right: FloatArray) -> FloatArray:
    """x_b with matrices_b x_b = right_b, shapes (m, r, r) and (m, r), by one LU factorisation each."""
    solutions: FloatArray = np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0], dtype=np.float64)
    return solutions


@record
class Spectrum:
    """Eigenvalues and eigenvectors of a symmetric matrix.

    Args:
        values: s, shape (n,), decreasing.
        vectors: U, shape (n, n), orthonormal columns in the same order: matrix = U diag(s) U'.
    """

    values: FloatArray
    vectors: FloatArray


def symmetric_spectrum(matrix: FloatArray) -> Spectrum:
    """The spectrum of a symmetric matrix, whose memory may be overwritten; only the lower triangle is read.

    Cost: O(n^3) time, about four n x n arrays.
    """
    values, vectors = scipy.linalg.eigh(matrix, overwrite_a=True, check_finite=False, driver="evd")
    return Spectrum(values[::-1], vectors[:, ::-1])


def largest_eigenvalue(matrix: FloatArray) -> float:
    """Of a symmetric matrix (n, n), of which only the lower triangle is read."""
    last = len(matrix) - 1
    values = scipy.linalg.eigvalsh(matrix, check_finite=False, subset_by_index=(last, last), driver="evr")
    return float(values[0])


@record
class PartialCholesky:
    """G = L L' + R for a positive semi-definite G of which only a few columns were computed.

    Args:
        factor: L, shape (n, m).
        residual: R_xx as computed, shape (n,), not negative; 0 at the pivots.
        lowest: the smallest R_xx before it was raised to 0; below rounding, G is not positive semi-definite.
    """

    factor: FloatArray
    residual: FloatArray
    lowest: float


def pivoted_cholesky(
    diagonal: FloatArray, column: Callable[[int], FloatArray], *, max_rank: int, tolerance: float
) -> PartialCholesky:
    """Greedy partial Cholesky factorisation: each step takes the column of the largest remaining diagonal entry.

    Args:
        diagonal: G_xx, shape (n,).
        column: gives G[:, p], shape (n,); called once for each pivot.
        max_rank: most columns to take.
        tolerance: stop once every R_xx is at most this, in units of G.

    Returns:
        L with as many columns as steps were taken; R_xx carries the rounding of that many subtractions.

    Source: Harbrecht, Peters and Schneider, On the low-rank approximation by the pivoted Cholesky decomposition (2012).
    Cost: O(n m^2) time, O(n m) memory, m columns of G.
    """
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
    """R with X'X = R'R: the triangular factor of X by Householder reflections, a block of rows after the other.

        R_0 = nothing,    [R_b; X_b] = Q R_{b+1}

    The singular values and right singular vectors of X are those of R; each step is backward stable, so that they are
    found as well as from X itself, and X'X is never formed.

    Args:
        matrix: X, shape (K, D), finite, float32 or float64; may be memory-mapped: it is read once, in blocks.

    Returns:
        R, shape (min(K, D), D), float64; its rows may have either sign.

    Source: Demmel, Grigori, Hoemmen and Langou, Communication-optimal parallel and sequential QR and LU factorizations
        (2012), the sequential form.
    Cost: O(K D^2) time; 2048 + D, or 5 D, rows of float64 beyond the matrix.
    """
    num_rows, num_columns = matrix.shape
    step = max(TRIANGLE_ROWS, 4 * num_columns)
    factor = np.zeros((0, num_columns))
    for top in range(0, num_rows, step):
        block = matrix[top : top + step]
        stacked = np.empty((len(factor) + len(block), num_columns), order="F")
        stacked[: len(factor)] = factor
        stacked[len(factor) :] = block
        reflected, _, _, _ = lapack.dgeqrf(stacked, lwork=LAPACK_BLOCK * num_columns, overwrite_a=1)
        factor = np.triu(reflected[:num_columns])
    return factor
