"""The effective dimension and the norm that the paper's neural theory speaks of."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.embeddings.neural.effective_dimension import (
    checked_gram,
    checked_spectrum,
    clipped_spectrum,
    finite_numbers,
    first_within,
    neural_gram,
    spectrum_tails,
)
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.theory.means import checked_means


def neural_effective_dimension(
    features: ArrayLike,
    tolerance: float,
    *,
    depth: int = 3,
    form: str = "H",
    inputs: str = "raw",
    rounding: float | None = None,
) -> int:
    """d_eff(tolerance) of the arms: how many directions of an infinitely wide network matter.

    Args:
        features, depth, form, inputs: as `neural_gram`.
        tolerance, rounding: as `spectrum_effective_dimension`; None also allows for the sums over D features.

    Source: section 5, definition of the effective dimension, neural version.
    Cost: O(K^3 + K^2 (D + L)) time.
    """
    gram = neural_gram(features, depth=depth, form=form, inputs=inputs)
    return first_within(spectrum_tails(*checked_spectrum(gram, rounding, columns=np.shape(features)[1])), tolerance)


def reward_norm(
    gram: ArrayLike, means: ArrayLike, *, range_tolerance: float = 1e-9, rounding: float | None = None
) -> float:
    """sqrt(h' H^-1 h), the smallest S that the theorem admits; infinite where h is not in the range of H.

    Args:
        gram: H, shape (K, K).
        means: h, shape (K,), in reward units.
        range_tolerance: share of ||h|| that may lie in directions whose eigenvalue is at most `rounding`; what lies
            there is left out, because its price cannot be told from infinity.
        rounding: as `spectrum_effective_dimension`.

    Returns:
        S, in reward units per square root of a unit of H; 0 where the means are 0.

    Raises:
        InvalidInput: not a gram matrix, or means that are not K finite numbers.

    Source: Theorem 7.
    Cost: O(K^3) time.
    """
    matrix = checked_gram(finite_numbers(gram))
    values = checked_means(means, len(matrix))
    spectrum = symmetric_spectrum(matrix.copy())
    clipped, allowance = clipped_spectrum(spectrum.values, rounding, computed=True, columns=0)
    shares = spectrum.vectors.T @ values
    kept = clipped > allowance
    if math.sqrt(float(np.sum(shares[~kept] ** 2))) > range_tolerance * math.sqrt(float(np.sum(values**2))):
        return math.inf
    return math.sqrt(float(np.sum(shares[kept] ** 2 / clipped[kept])))
