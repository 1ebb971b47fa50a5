"""Regularised least squares on pulls that were chosen adaptively, with a width that holds at all times at once."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.core.observations import Observations
from surepick.errors import ContractError
from surepick.estimators.least_squares import LeastSquaresEstimate
from surepick.linalg.factorisations import cholesky, reciprocal_condition, solve_lower

WORST_CONDITION = 1e-14


@record
class RegularisedEstimate:
    """theta-hat = V^-1 b with V = eta I + sum_x n(x) x x', which is never singular.

    Args:
        fitted: scores <x, theta-hat> and coordinates u_x with ||x - z||_{V^-1} = ||u_x - u_z||; all arms comparable.
        log_growth: log det(V) - log det(eta I), not negative.
    """

    fitted: LeastSquaresEstimate
    log_growth: float


def regularised_least_squares(rows: FloatArray, seen: Observations, *, regularization: float) -> RegularisedEstimate:
    """The regularised estimate of everything told so far.

    Args:
        rows: x, shape (K, r), in any orthonormal coordinates of a space that holds the arms: theta keeps its norm.
        seen: counts and sums; a pull may depend on all rewards before it.
        regularization: eta > 0, in squared feature units.

    Raises:
        ContractError: V is singular to rounding.

    Source: Abbasi-Yadkori, Pal & Szepesvari (2011), section 3. Cost: O(K r^2) time.
    """
    counts = seen.counts.astype(np.float64)
    matrix = rows.T @ (rows * counts[:, None])
    matrix[np.diag_indices_from(matrix)] += regularization
    if rows.shape[1] == 0:
        nothing = np.zeros((len(rows), 0))
        return RegularisedEstimate(_estimate(np.zeros(len(rows)), nothing, seen.total, 0.0), 0.0)
    factor = cholesky(matrix)
    condition = 0.0 if factor is None else reciprocal_condition(matrix, factor)
    if factor is None or condition < WORST_CONDITION:
        raise ContractError(
            f"after {seen.total} pulls the regularised information matrix has reciprocal condition {condition:.1g}: "
            f"regularization {regularization:g} is lost in rounding beside features this large, and no width can be "
            "computed. Divide the features by their largest norm (and multiply norm_bound by it)."
        )
    coordinates = solve_lower(factor, rows.T).T
    scores = coordinates @ solve_lower(factor, (rows.T @ seen.sums)[:, None])[:, 0]
    log_growth = 2.0 * float(np.sum(np.log(np.diag(factor)))) - rows.shape[1] * math.log(regularization)
    relative_error = 8.0 * float(np.finfo(np.float64).eps) / math.sqrt(condition)
    return RegularisedEstimate(_estimate(scores, coordinates, seen.total, relative_error), max(log_growth, 0.0))


def _estimate(scores: FloatArray, coordinates: FloatArray, total: int, error: float) -> LeastSquaresEstimate:
    return LeastSquaresEstimate(scores, coordinates, np.ones(len(scores), bool), total, error)


def self_normalised_radius(
    sigma: float, log_growth: float, *, log_inverse_delta: float, regularization: float, norm_bound: float
) -> float:
    """sigma sqrt(2 log(1/delta) + log(det(V)/det(eta I))) + sqrt(eta) C, a bound on ||theta-hat - theta||_V.

    It holds with probability 1 - delta at all times at once, for pulls chosen in any way from the rewards before them:
    so it may be looked at after any batch, and no union over times, arms or pairs is needed.

    Args:
        sigma: sub-Gaussian scale of a reward.
        log_growth: log det(V) - log det(eta I).
        log_inverse_delta: log(1/delta).
        regularization: eta > 0.
        norm_bound: C >= ||theta||.

    Source: Abbasi-Yadkori, Pal & Szepesvari (2011), Theorem 2.
    """
    return sigma * math.sqrt(2.0 * log_inverse_delta + log_growth) + math.sqrt(regularization) * norm_bound
