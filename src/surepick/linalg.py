"""Every factorisation of the library; nothing else calls numpy.linalg or scipy.linalg.

No pseudo-inverse is ever formed: a direction outside the range of a matrix must cost infinity, not zero.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from surepick.records import FloatArray, record


@record
class Whitened:
    """An orthonormal description of the rows of a matrix.

    Args:
        basis: Z, shape (K, r), with Z'Z = K I; row differences of the matrix are linear images of those of Z.
        rank: r, the numerical rank that was used.
        dropped: largest norm of a row of the scaled matrix outside the kept directions (0 when the rank is exact).
    """

    basis: FloatArray
    rank: int
    dropped: float


def thin_svd(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """U, s, V' with matrix = U diag(s) V', singular values in decreasing order."""
    u, s, vt = scipy.linalg.svd(matrix, full_matrices=False, check_finite=False)
    return u, s, vt


def power_of_two_scaled(matrix: FloatArray) -> FloatArray:
    """The matrix with each column scaled by a power of two so that its largest entry lies in [1, 2); exact."""
    largest = np.max(np.abs(matrix), axis=0, initial=0.0)
    _, exponents = np.frexp(largest)
    scaled: FloatArray = np.ldexp(matrix, np.where(largest > 0, 1 - exponents, 0))
    return scaled
