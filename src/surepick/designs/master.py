"""The design problem restricted to few arms and few pairs, by a primal-dual interior point method.

    minimise sum_i lambda_i   subject to   f_j(lambda) = y_j'A(lambda)^-1 y_j <= 1,   lambda >= 0

The optimal sum is tau; the multipliers pi of the constraints are the weights of the pairs in the lower bound.
"""

from __future__ import annotations

import numpy as np

from surepick.designs.objective import information
from surepick.linalg import cholesky, solve_lower, solve_positive_definite
from surepick.records import FloatArray, record

CENTRING = 0.15
TO_BOUNDARY = 0.95
WORST_VALUE = 3.0


@record
class Master:
    """Weights and multipliers of the restricted problem.

    Args:
        weights: lambda, shape (m,), sum 1.
        multipliers: pi, shape (n,), sum 1.
    """

    weights: FloatArray
    multipliers: FloatArray


@record
class _Point:
    """Everything that a Newton step needs at one lambda.

    Args:
        arms: L^-1 z_i as columns, shape (r, m).
        pairs: L^-1 y_j as columns, shape (r, n).
        products: z_i'A^-1 y_j, shape (m, n).
        values: f_j, shape (n,).
    """

    arms: FloatArray
    pairs: FloatArray
    products: FloatArray
    values: FloatArray


def _at(arms: FloatArray, pairs: FloatArray, lam: FloatArray) -> _Point | None:
    factor = cholesky(information(arms, lam))
    if factor is None:
        return None
    u, v = solve_lower(factor, arms.T), solve_lower(factor, pairs.T)
    return _Point(u, v, u.T @ v, np.einsum("ij,ij->j", v, v))


def _longest(value: FloatArray, change: FloatArray) -> float:
    """Longest step in (0, 1] that keeps a positive vector positive, with a margin."""
    shrinking = change < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, TO_BOUNDARY * float(np.min(-value[shrinking] / change[shrinking])))


def solve_master(
    arms: FloatArray, pairs: FloatArray, start: Master, *, gap: float, target: float, max_steps: int = 40
) -> Master:
    """Weights and multipliers whose bounds on the restricted problem agree to a relative `target`.

    With C = [z_i'A^-1 y_j], M = C o C, slacks s = 1 - f and barrier mu, the Newton step solves

        (H + M diag(pi/s) M' + diag(z/lambda)) d = -1 + M (mu/s) + mu/lambda,   H = 2 (ZA^-1Z') o (C diag(pi) C')

    Args:
        arms: z_i, shape (m, r), spanning.
        pairs: y_j, shape (n, r).
        start: positive weights and multipliers to start from.
        gap: relative gap to expect at the start; sets the first barrier.
        target: relative gap at which to stop; also stops when no step makes progress.
        max_steps: Newton steps at most.

    Source: ours.
    Cost: a step takes O(m^2 (m + n)) time.
    """
    lam = start.weights.copy()
    here = _at(arms, pairs, lam)
    if here is None:
        return start
    scale = float(here.values.max())
    pairs = pairs / np.sqrt(scale)
    lam *= 1.0 + min(0.5 * gap, 0.5)
    here = _at(arms, pairs, lam)
    if here is None:
        return start
    size = len(lam) + len(pairs)
    slack = 1.0 - here.values
    mu = 0.5 * min(gap, 1.0) / size
    pi = np.maximum(start.multipliers, mu / slack)
    z = np.maximum(1.0 - here.products**2 @ pi, mu / lam)
    for _ in range(max_steps):
        squares = here.products**2
        price = squares @ pi
        mean = float(pi @ here.values)
        if float(lam.sum()) * float(here.values.max()) * float(price.max()) * float(pi.sum()) <= mean**2 * (1 + target):
            break
        mu = CENTRING * (float(pi @ slack) + float(z @ lam)) / size
        inner = here.pairs * np.sqrt(pi)
        half = inner.T @ here.arms
        hessian = 2.0 * (here.arms.T @ here.arms) * (half.T @ half)
        hessian += (squares * (pi / slack)) @ squares.T
        hessian[np.diag_indices_from(hessian)] += z / lam
        push = (mu - pi * (1.0 - here.values)) / slack
        d_lam = solve_positive_definite(hessian, squares @ (pi + push) + mu / lam - 1.0)
        if d_lam is None:
            break
        gain = squares.T @ d_lam
        d_pi = push - pi * gain / slack
        d_slack = 1.0 - here.values - slack + gain
        d_z = (mu - z * d_lam) / lam - z
        step = min(_longest(lam, d_lam), _longest(slack, d_slack))
        dual = min(_longest(pi, d_pi), _longest(z, d_z))
        while (there := _at(arms, pairs, lam + step * d_lam)) is None or there.values.max() > WORST_VALUE:
            step *= 0.5
        lam, slack, pi, z, here = lam + step * d_lam, slack + step * d_slack, pi + dual * d_pi, z + dual * d_z, there
    return Master(lam / lam.sum(), pi / pi.sum())
