"""Widths that hold at all times at once, for pulls that are chosen adaptively, as the field's algorithms use them."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import ContractError
from surepick.estimators import LeastSquaresEstimate
from surepick.linalg import factorisations


def mixture_radius(counts: IntArray, sigma: FloatArray, *, delta: float, num_arms: int, accuracy: float) -> FloatArray:
    """c(n) = sigma sqrt((n + r) log((n + r) / (r a^2))) / n with a = delta / K: Robbins' normal mixture, for each arm.

    For a sum S of n sub-Gaussian deviations of unit scale, exp(lS - n l^2 / 2), averaged over l ~ N(0, 1/r), is a
    nonnegative supermartingale that starts at 1; by Ville's inequality P(some n: |S| > n c(n) / sigma) <= a. So all
    arms and all n together fail with probability at most delta. No n pays for the others as in a union over n: c(n)
    grows like sqrt(log n / n) with a factor one half in front of log n, where `anytime_radius` has two.

    Source: Robbins (1970); Howard, Ramdas, McAuliffe & Sekhon (2021), eq. (14) and the choice of r in section 3.5.
    """
    log_term = 2.0 * np.log(num_arms / delta)  # log(1 / a^2)
    tightest = np.maximum(sigma**2 * log_term / accuracy**2, 1.0)  # n at which c(n) is about the accuracy
    r = tightest / (log_term + np.log1p(log_term))
    safe = np.maximum(counts, 1).astype(np.float64)
    radius = sigma * np.sqrt((safe + r) * (np.log1p(safe / r) + log_term)) / safe
    return np.where(counts > 0, radius, np.inf)


# --- Regularised least squares on pulls that were chosen adaptively, with a width that holds at all times at once.

WORST_CONDITION = 1e-14


@record
class RegularisedEstimate:
    """theta-hat = V^-1 b with V = eta I + sum_x n(x) x x', which is never singular."""

    # scores <x, theta-hat> and coordinates u_x with ||x - z||_{V^-1} = ||u_x - u_z||; all arms comparable
    fitted: LeastSquaresEstimate
    log_growth: float  # log det(V) - log det(eta I), not negative


def regularised_least_squares(rows: FloatArray, seen: Observations, *, regularization: float) -> RegularisedEstimate:
    """The regularised estimate of everything told so far.

    Args:
        rows: x, shape (K, r), in any orthonormal coordinates of a space that holds the arms: theta keeps its norm.

    Source: Abbasi-Yadkori, Pal & Szepesvari (2011), section 3. Cost: O(K r^2) time.
    """
    counts = seen.counts.astype(np.float64)
    matrix = rows.T @ (rows * counts[:, None])
    matrix[np.diag_indices_from(matrix)] += regularization
    if rows.shape[1] == 0:
        nothing = np.zeros((len(rows), 0))
        return RegularisedEstimate(_estimate(np.zeros(len(rows)), nothing, seen.total, 0.0), 0.0)
    factor = factorisations.cholesky(matrix)
    condition = 0.0 if factor is None else factorisations.reciprocal_condition(matrix, factor)
    if factor is None or condition < WORST_CONDITION:
        raise ContractError(
            f"after {seen.total} pulls the regularised information matrix has reciprocal condition {condition:.1g}: "
            f"regularization {regularization:g} is lost in rounding beside features this large, and no width can be "
            "computed. Divide the features by their largest norm (and multiply norm_bound by it)."
        )
    coordinates = factorisations.solve_lower(factor, rows.T).T
    scores = coordinates @ factorisations.solve_lower(factor, (rows.T @ seen.sums)[:, None])[:, 0]
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

    Source: Abbasi-Yadkori, Pal & Szepesvari (2011), Theorem 2.
    """
    return sigma * math.sqrt(2.0 * log_inverse_delta + log_growth) + math.sqrt(regularization) * norm_bound
