"""How many directions hold nearly all of a neural tangent kernel: its gram matrix, spectrum and effective dimension."""

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.records import FloatArray
from surepick.core.values import as_number, check_choice
from surepick.embeddings.base import tail_sums
from surepick.embeddings.tangent_kernel import NeuralTangentKernel, unit_rows_with_norm
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.text import quoted

INPUTS = ("raw", "normalized")
EPS = float(np.finfo(np.float64).eps)
NEGATIVE_SHARE = 64.0
ASYMMETRY = 1e-10


def neural_gram(features: ArrayLike, *, depth: int = 3, form: str = "H", inputs: str = "raw") -> FloatArray:
    """The neural tangent kernel's gram matrix of the arms, (K, K) (appendix F); O(K^2 (D + L)) time. The paper also
    doubles each coordinate (x becomes (x, x) / sqrt(2)); that leaves this matrix as it is."""
    check_choice("inputs", inputs, INPUTS)
    rows = np.asarray(Arms(features).features, dtype=np.float64)
    if inputs == "normalized":
        rows = unit_rows_with_norm(rows)
    return NeuralTangentKernel(depth, form).gram(rows, rows)


def spectrum_effective_dimension(spectrum: ArrayLike, tolerance: float, *, rounding: float | None = None) -> int:
    """min {d >= 1 : sum_{i > d} (s_i + e) <= tolerance}: d_eff, and never too small where e bounds the rounding. Of
    eigenvalues, (K,), in any order, or of a gram matrix, (K, K), in O(K^3). Source: section 5, neural version."""
    return first_within(spectrum_tails(*checked_spectrum(spectrum, rounding)), tolerance)


def checked_spectrum(spectrum: ArrayLike, rounding: float | None, *, columns: int = 0) -> tuple[FloatArray, float]:
    """Eigenvalues, decreasing and not negative, shape (K,), and by how much each may be too small. As
    `spectrum_effective_dimension`, which says what is refused; a sum over `columns` features may be rounded."""
    given = finite_numbers(spectrum)
    if given.ndim == 1 and given.size > 0:
        if not np.isfinite(given).all():
            raise InvalidInput(f"eigenvalue {int(np.flatnonzero(~np.isfinite(given))[0])} is not finite.")
        return clipped_spectrum(np.sort(given)[::-1], rounding, computed=False, columns=columns)
    values = symmetric_spectrum(checked_gram(given).copy()).values
    return clipped_spectrum(values, rounding, computed=True, columns=columns)


def finite_numbers(values: ArrayLike) -> FloatArray:
    """An array of numbers, of any shape; InvalidInput where it holds something else."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the gram matrix or spectrum is not an array of numbers: {error}.") from error


def checked_gram(gram: FloatArray) -> FloatArray:
    """A gram matrix (K, K) as it is given; InvalidInput where it is not square, finite and symmetric."""
    if gram.ndim != 2 or gram.shape[0] != gram.shape[1] or gram.size == 0:
        raise InvalidInput(
            f"the array has shape {gram.shape}; give a gram matrix (K, K), or, for a dimension, K eigenvalues."
        )
    if not np.isfinite(gram).all():
        raise InvalidInput("the gram matrix has entries that are not finite.")
    asymmetry = float(np.abs(gram - gram.T).max())
    if asymmetry > ASYMMETRY * float(np.abs(gram).max()):
        raise InvalidInput(
            f"the gram matrix is not symmetric: two entries differ by {asymmetry:g}. Is it a gram matrix?"
        )
    return gram


def clipped_spectrum(
    values: FloatArray, rounding: float | None, *, computed: bool, columns: int
) -> tuple[FloatArray, float]:
    """Decreasing eigenvalues (K,), negative ones as 0, and by how much each may be too small. InvalidInput where
    rounding, of exact eigenvalues or computed ones, does not explain how far one is below 0."""
    usual = EPS * (len(values) * abs(float(values[0])) + (columns + 16) * float(np.abs(values).sum()))
    if rounding is None:
        allowance = usual if computed else 0.0
    else:
        allowance = as_number("rounding", rounding)
        if not 0.0 <= allowance < math.inf:
            raise InvalidInput(
                f"rounding is {quoted(rounding)}; it must be finite and at least 0, in units of the gram matrix."
            )
    lowest = float(values[-1])
    if lowest < -NEGATIVE_SHARE * max(usual, allowance):
        raise InvalidInput(
            f"the smallest eigenvalue is {lowest:g}, far below what rounding explains ({usual:.1g}): this is no gram "
            "matrix of a kernel, and no dimension or norm belongs to it."
        )
    return np.maximum(values, 0.0), allowance


def spectrum_tails(values: FloatArray, allowance: float) -> FloatArray:
    """sum_{i > d} (s_i + e) for d = 0, ..., K."""
    return tail_sums(values + allowance)


def first_within(tails: FloatArray, tolerance: float) -> int:
    """The least d >= 1 whose tail, of those (K + 1,) for d = 0 .. K, is within a tolerance; InvalidInput below 0."""
    limit = as_number("tolerance", tolerance)
    if not limit >= 0.0:
        raise InvalidInput(f"tolerance is {quoted(tolerance)}; it must be 0 or more, in units of the gram matrix.")
    return 1 + int(np.argmax(tails[1:] <= limit))
