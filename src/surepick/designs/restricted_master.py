"""The design problem restricted to few arms and few pairs, by a primal-dual interior point method.

    minimise sum_i lambda_i   subject to   f_j(lambda) = y_j'A(lambda)^-1 y_j <= 1,   lambda >= 0

The optimal sum is tau; the multipliers pi of the constraints are the weights of the pairs in the lower bound.
"""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.designs.objective import information
from surepick.designs.problem import normalised
from surepick.linalg.factorisations import (
    Numbers,
    cholesky,
    gram_of_rows,
    inverse_factor,
    solve_lower,
    solve_positive_definite,
)
from surepick.linalg.single_precision import Single

CENTRING = 0.15
TO_BOUNDARY = 0.95
TARGET_SHARE = 0.3
WORST_VALUE = 3.0
SHORTEST_STEP = 1e-6
LEAST_DIRECTIONS = 48  # from so many directions ...
LEAST_ARMS = 256  # ... and arms on a step in single precision takes less than half the time
LEAST_TARGET = 0.005  # a smaller relative gap needs double precision


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
        squares: (z_i'A^-1 y_j)^2, shape (m, n). These three in single precision where that is enough.
        values: f_j, shape (n,).
    """

    arms: FloatArray | Single
    pairs: FloatArray | Single
    squares: FloatArray | Single
    values: FloatArray


@record
class _State:
    """The unknowns of the optimality conditions, or a step in them.

    Args:
        lam: lambda, shape (m,).
        slack: s, shape (n,), to become 1 - f.
        pi: multipliers of f <= 1, shape (n,).
        z: multipliers of lambda >= 0, shape (m,).
    """

    lam: FloatArray
    slack: FloatArray
    pi: FloatArray
    z: FloatArray


@record
class _Rows:
    """Arms (m, r) and pairs (n, r) of a restricted problem."""

    arms: FloatArray
    pairs: FloatArray

    def at(self, lam: FloatArray) -> _Point | None:
        """The point at lambda; None where A is singular."""
        factor = cholesky(information(self.arms, lam))
        if factor is None:
            return None
        u, v = solve_lower(factor, self.arms.T), solve_lower(factor, self.pairs.T)
        return _Point(u, v, _squared(u.T @ v), np.einsum("ij,ij->j", v, v))


@record
class _SingleRows:
    """The same in single precision; A and its factor stay in double precision, from `exact` arms."""

    exact: FloatArray
    arms: Single
    pairs: Single

    @staticmethod
    def of(rows: _Rows) -> _SingleRows:
        return _SingleRows(rows.arms, rows.arms.astype(np.float32), rows.pairs.astype(np.float32))

    def at(self, lam: FloatArray) -> _Point | None:
        """The point at lambda; None where A is singular."""
        factor = inverse_factor(information(self.exact, lam))
        if factor is None:
            return None
        unit = factor.astype(np.float32)
        u, v = (self.arms @ unit).T, (self.pairs @ unit).T
        return _Point(u, v, _squared(u.T @ v), np.einsum("ij,ij->j", v, v).astype(np.float64))


def _squared(products: Numbers) -> Numbers:
    products *= products
    return products


def _longest(value: FloatArray, change: FloatArray) -> float:
    """Longest step in (0, 1] that keeps a positive vector positive, with a margin."""
    shrinking = change < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, TO_BOUNDARY * float(np.min(-value[shrinking] / change[shrinking])))


def _started(here: _Point, lam: FloatArray, multipliers: FloatArray, gap: float) -> _State:
    """A strictly positive state near the centre, for a lambda with all f < 1 and the multipliers of an earlier one."""
    slack = 1.0 - here.values
    mu = 0.5 * min(gap, 1.0) / (len(lam) + len(slack))
    pi = np.maximum(multipliers, mu / slack)
    return _State(lam, slack, pi, np.maximum(1.0 - here.squares @ pi, mu / lam))


def _solved(here: _Point, state: _State, target: float) -> bool:
    """Whether sum(lambda) max f and the Cauchy-Schwarz bound of the multipliers agree to the relative target."""
    upper = float(state.lam.sum()) * float(here.values.max())
    price = float((here.squares @ state.pi).max()) * float(state.pi.sum())
    return upper * price <= float(state.pi @ here.values) ** 2 * (1.0 + target)


def _newton(here: _Point, state: _State, target: float) -> _State | None:
    """The step towards the point of the central path whose barrier is a fixed share of the present one.

    On the path the gap is the number of unknowns times the barrier, relative to pi'f. Below a share of the target
    the barrier stays: arms that leave a singular optimum then cannot shrink so fast that the multipliers lose the path.
    """
    lam, slack, pi, z = state.lam, state.slack, state.pi, state.z
    kept = TARGET_SHARE * target * float(pi @ here.values)
    mu = max(CENTRING * (float(pi @ slack) + float(z @ lam)), kept) / (len(lam) + len(pi))
    squares, kind = here.squares, here.squares.dtype.type
    spread = (here.pairs * pi.astype(kind)) @ here.pairs.T  # C diag(pi) C' = U' V diag(pi) V' U, two thin products
    hessian = gram_of_rows(squares * np.sqrt(pi / slack).astype(kind))
    hessian += 2.0 * (here.arms.T @ here.arms) * (here.arms.T @ spread @ here.arms)
    hessian[np.diag_indices_from(hessian)] += (z / lam).astype(kind)
    push = (mu - pi * (1.0 - here.values)) / slack
    d_lam = solve_positive_definite(hessian, squares @ (pi + push).astype(kind) + mu / lam - 1.0)
    if d_lam is None:
        return None
    gain = squares.T @ d_lam.astype(kind)
    return _State(d_lam, 1.0 - here.values - slack + gain, push - pi * gain / slack, (mu - z * d_lam) / lam - z)


def solve_master(
    arms: FloatArray, pairs: FloatArray, start: Master, *, gap: float, target: float, max_steps: int = 40
) -> Master:
    """Weights and multipliers whose bounds on the restricted problem agree to a relative `target`.

    With C = [z_i'A^-1 y_j], M = C o C, slacks s (to become 1 - f) and barrier mu, the Newton step d solves

        (H + M diag(pi/s) M' + diag(z/lambda)) d = M (pi + (mu - pi (1 - f))/s) + mu/lambda - 1
        H = 2 (Z A^-1 Z') o (C diag(pi) C')

    The slacks are unknowns of their own, so that a step need not stay inside the curved set f < 1: the objective is
    homogeneous, and any lambda becomes feasible when it is scaled.

    Args:
        arms: z_i, shape (m, r), spanning.
        pairs: y_j, shape (n, r).
        start: positive weights, and multipliers (0 for pairs without one), to start from.
        gap: relative gap to expect at the start; sets the first barrier.
        target: relative gap at which to stop; also stops when rounding allows no further step.
        max_steps: Newton steps at most.

    Returns:
        Master: not certified here; the outer sweep measures it on all arms and all pairs. So steps may be rough: where
        they take long they are in single precision.

    Source: ours.
    Cost: a step takes about m^2 n + m^3 / 3 operations.
    """
    exact = _Rows(arms, pairs)
    first = exact.at(start.weights)
    if first is None:
        return start
    exact = _Rows(arms, pairs / np.sqrt(float(first.values.max())))  # of a length that single precision can hold
    large = arms.shape[1] >= LEAST_DIRECTIONS and len(arms) >= LEAST_ARMS
    rows = _SingleRows.of(exact) if large and target >= LEAST_TARGET else exact
    lam = start.weights * (1.0 + 0.5 * min(gap, 1.0))
    here = rows.at(lam)
    if here is None:
        return start
    state = _started(here, lam, start.multipliers, gap)
    for _ in range(max_steps):
        step = None if _solved(here, state, target) else _newton(here, state, target)
        if step is None:
            break
        primal = min(_longest(state.lam, step.lam), _longest(state.slack, step.slack))
        dual = min(_longest(state.pi, step.pi), _longest(state.z, step.z))
        there = rows.at(state.lam + primal * step.lam)
        while primal > SHORTEST_STEP and (there is None or there.values.max() > WORST_VALUE):
            primal *= 0.5
            there = rows.at(state.lam + primal * step.lam)
        if there is None:
            break
        here = there
        state = _State(
            state.lam + primal * step.lam,
            state.slack + primal * step.slack,
            state.pi + dual * step.pi,
            state.z + dual * step.z,
        )
    return Master(normalised(state.lam), normalised(state.pi))
