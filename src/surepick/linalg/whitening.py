"""Whitened coordinates: vectors in which a seminorm is the plain norm."""

from __future__ import annotations

import numpy as np
import scipy
import scipy.linalg

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.linalg.factorisations import (
    HARMLESS_CONDITION,
    cholesky,
    power_of_two_scaled,
    product,
    row_norms,
    solve_lower,
    solve_rows,
    thin_svd,
)
from surepick.linalg.row_blocks import MANY, product_of_rows


@record
class Whitened:
    """An orthonormal description of the rows of a matrix.

    Args:
        basis: Z, shape (K, r), with Z'Z = K I; row differences of the matrix are linear images of those of Z.
        rank: r, the numerical rank that was used.
        dropped: largest norm of a row of the scaled matrix outside the kept directions (0 when the rank is exact).
        condition: largest over smallest kept singular value of the scaled matrix, 1 when the rank is 0; a relative
            error e in the matrix is one of about condition * e in the basis.
    """

    basis: FloatArray
    rank: int
    dropped: float
    condition: float

    @property
    def rounding(self) -> float:
        """What rounding may add to an entry of the basis, as a share of the largest: where the condition is harmful
        the products were formed in extended precision, where the platform has it."""
        double, extended = (float(np.finfo(kind).eps) for kind in (np.float64, np.longdouble))
        return self.condition * double if self.condition < HARMLESS_CONDITION else double + self.condition * extended


@record
class Imaged:
    """Vectors in the coordinates of `Whitened.basis`.

    Args:
        rows: the same linear images of the vectors as those of the arms, shape (m, r).
        outside: share of each vector (of its norm after column scaling) that is outside the kept directions, shape
            (m,); 0 for a zero vector.
    """

    rows: FloatArray
    outside: FloatArray


@record
class ImageMap:
    """The map that takes the rows of a matrix to its whitened coordinates, for other vectors.

        X = Z B,  B = Z'X / K       image B = y

    A combination of arms has the same combination of their coordinates as its image.

    Args:
        shifts: powers of two by which columns are scaled, shape (d,).
        kept: orthonormal rows that span those of X, columns scaled, shape (r, d).
        back: shape (r, r).
        multiple: the image of y is this times y, and the map an identity times it; None: it is no such map.

    Source: ours.
    """

    shifts: IntArray
    kept: FloatArray
    back: FloatArray
    multiple: float | None = None

    @staticmethod
    def of(matrix: FloatArray, white: Whitened) -> ImageMap:
        """That of a matrix X, shape (K, d), as it was whitened. Cost: O(K d r + d r^2) time."""
        _, exponents = np.frexp(np.max(np.abs(matrix), axis=0, initial=0.0))
        shifts = np.where(matrix.any(axis=0), 1 - exponents, 0)
        if white.rank == 0:
            return ImageMap(shifts, np.zeros((0, matrix.shape[1])), np.zeros((0, 0)))
        u, s, vt = thin_svd(white.basis.T @ np.ldexp(matrix, shifts) / len(matrix))
        return ImageMap(shifts, vt, u / s)

    @staticmethod
    def of_multiples(rank: int, divisor: float) -> ImageMap:
        """That of a matrix Z / divisor, whose whitened coordinates are Z, shape (K, r)."""
        return ImageMap(np.zeros(rank, np.int64), np.eye(rank), divisor * np.eye(rank), divisor)

    def images(self, vectors: FloatArray) -> Imaged:
        """The coordinates of vectors y, shape (m, d)."""
        if self.multiple is not None:
            return Imaged(self.multiple * vectors, np.zeros(len(vectors)))
        wanted = np.ldexp(vectors, self.shifts)
        lengths = row_norms(wanted)
        safe = np.where(lengths > 0, lengths, 1.0)
        if len(self.kept) == 0:
            return Imaged(np.zeros((len(vectors), 0)), lengths / safe)
        kept = product_of_rows(wanted, self.kept.T)
        rest = wanted - product_of_rows(kept, self.kept)
        return Imaged(self._moved_back(kept), row_norms(rest) / safe)

    def _moved_back(self, kept: FloatArray) -> FloatArray:
        """Rows times the transpose of `back`; in extended precision, but for many of them where that hardly matters."""
        if len(kept) >= MANY and np.linalg.cond(self.back) < HARMLESS_CONDITION:
            return product_of_rows(kept, self.back.T)
        return product(kept, self.back.T)


def whitened(matrix: FloatArray, *, rank_tolerance: float | None = None) -> Whitened:
    """Coordinates Z = X T in which the arms are isotropic, the rank decided on X itself, never on X'X.

        X = Q R,   R = W diag(s) V',   T_1 = V_r diag(s_r)^-1,   Z = sqrt(K) X T_1 C'^-1,   C C' = T_1'X'X T_1

    Any invertible T leaves the value of a design alone as long as every row meets the same T. Q W_r is X T_1 up to a
    rounding error of each row, which tiny s magnify; where they do, the product is formed again in extended precision.
    Where X'X proves the column-scaled X to be far from singular, no QR is needed (`_whitened_by_gram`).

    Args:
        matrix: X, shape (K, d), finite; columns of any scale.
        rank_tolerance: singular values of the column-scaled X below this share of the largest one are taken for
            rounding noise; None means max(K, d) * machine epsilon, right for exact data. Features rounded to six
            decimals need about 1e-6.

    Returns:
        Z with Z'Z = K I to rounding, the rank, and the largest norm of what was dropped of a (scaled) row.

    Source: ours.
    Cost: O(K d min(K, d)) time; two arrays like the matrix where no QR is needed, else four.
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
    """Z = sqrt(K) X C_1'^-1 C_2'^-1 by two Cholesky factorisations; None where X'X does not prove cond(X) < 1e4.

    The eigenvalues of X'X are exact to a few eps of the largest, and 1e-8 of it is far above that: full column rank is
    certain. The first product leaves Z'Z = I to about eps cond(X)^2, the second to about eps.
    """
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
    """Rows of a matrix that span what all its rows span.

    Args:
        rows: min(K, d) indices, the most independent ones first.
        clearance: smallest over largest distance of one of them from the span of those before it.
    """

    rows: IntArray
    clearance: float


def spanning_rows(matrix: FloatArray) -> Spanning:
    """Rows by QR with column pivoting. Cost: O(K d min(K, d)) time."""
    r, pivots = scipy.linalg.qr(matrix.T, mode="r", pivoting=True, check_finite=False)
    distances = np.abs(np.diag(np.asarray(r)))
    rows: IntArray = np.asarray(pivots[: min(matrix.shape)], dtype=np.int64)
    return Spanning(rows, float(distances[-1] / distances[0]) if distances.any() else 0.0)


def longest_image(matrix: FloatArray) -> float:
    """s with ||L^-1 z|| <= s ||z|| for every z, for matrix = L L': 1 / sqrt(smallest eigenvalue), rounded up.

    Infinite where rounding hides the smallest eigenvalue.
    """
    values = scipy.linalg.eigvalsh(matrix, check_finite=False)
    least = float(values[0]) - 8.0 * len(values) * np.finfo(np.float64).eps * float(values[-1])
    return float(1.0 / np.sqrt(least)) if least > 0.0 else np.inf


def null_space(matrix: FloatArray) -> FloatArray:
    """Orthonormal columns N with matrix N = 0 to rounding, shape (columns, columns - rows) for full row rank.

    Source: QR of the transpose with column pivoting; the rank is where its diagonal falls to rounding.
    """
    q, r, _ = scipy.linalg.qr(matrix.T, mode="full", pivoting=True, check_finite=False)
    diagonal = np.abs(np.diag(np.asarray(r)))
    cut = 8.0 * max(matrix.shape) * np.finfo(np.float64).eps * float(diagonal.max(initial=0.0))
    kernel: FloatArray = np.asarray(q, dtype=np.float64)[:, int(np.count_nonzero(diagonal > cut)) :]
    return kernel


@record
class WeightedRange:
    """The range of A = sum_i w_i z_i z_i', and coordinates in which A is the identity there.

    Args:
        directions: V, shape (d, r), orthonormal columns that span the range of A.
        to_unit: V diag(s)^-1, shape (d, r): u = z to_unit gives ||u_a - u_b|| = ||z_a - z_b|| in A^-1 inside the range.
    """

    directions: FloatArray
    to_unit: FloatArray


def weighted_range(rows: FloatArray, weights: FloatArray | IntArray, *, cut: float = 1e-9) -> WeightedRange:
    """Range and unit coordinates of A = sum_i w_i z_i z_i', from the weighted rows and never from A.

    Args:
        rows: z, shape (p, d); of comparable scale in every direction (whitened).
        weights: w, shape (p,), positive.
        cut: singular values of the weighted rows below this share of the largest count as zero.
    """
    if rows.size == 0:
        nothing = np.zeros((rows.shape[1], 0))
        return WeightedRange(nothing, nothing)
    _, singular, directions = thin_svd(rows * np.sqrt(weights)[:, None])
    kept = singular > cut * singular[0]
    basis = directions[kept].T
    return WeightedRange(basis, basis / singular[kept])
