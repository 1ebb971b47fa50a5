"""Weights of rewards that misspecification can move less than those of least squares."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.linalg.factorisations import solve_each

STEPS = 4
LEAST_FLOW = 1e-3
LEAST_SPREAD = 1e-12
LARGEST_CONDITION = 1e-12


def bias_robust_weights(
    flows: FloatArray,
    targets: FloatArray,
    points: FloatArray,
    counts: IntArray,
    noise_scales: FloatArray,
    slack: FloatArray,
    *,
    misspecification: float,
) -> FloatArray:
    """Flows f = n u with the same estimate for every linear function of the vectors, and less bias plus noise.

        minimise gamma sum_x |f_x - target_x| + room/(2 D) sum_x f_x^2 s_x^2 / n(x)
        subject to sum_x f_x z_x as for the given flows

    by a few weighted least squares, |a| replaced by a^2/(2 |a_0|) + |a_0|/2 at the last a_0. D = sum f^2 s^2/n of the
    last flows: then a lower value means a larger room^2 / D, the evidence that a bet on the room can gain.

    Args:
        flows: of least squares, shape (m, p), for m pairs and p arms pulled.
        targets: 1 at the rival, -1 at the candidate, where they were pulled, shape (m, p).
        points: the pulled arms' vectors in coordinates of their span, shape (p, r).
        counts: n, positive, shape (p,).
        noise_scales: s, shape (p,), in reward units.
        slack: what the bias leaves of the margins, positive, shape (m,), in reward units.
        misspecification: gamma, positive.

    Returns:
        Flows, shape (m, p), those given in rows where the steps break down; any choice is valid, since the bias is
        bounded from the flows as they are.

    Source: ours; iteratively reweighted least squares (Daubechies et al. 2010). Cost: O(m p r^2) a step.
    """
    unit = float(noise_scales.max())
    variances = (noise_scales / unit) ** 2 / counts
    asked = np.flatnonzero(flows.any(axis=1))
    goals, rest_of = targets[asked], flows[asked]
    current = rest_of
    for _ in range(STEPS):
        spread = np.maximum((current**2) @ variances, LEAST_SPREAD)
        price = (slack[asked] / unit / spread)[:, None] * variances
        resistance = misspecification / unit / np.maximum(np.abs(current - goals), LEAST_FLOW)
        ease = 1.0 / (resistance + price)
        rest = goals * resistance * ease
        matrices = np.matmul(points.T[None, :, :] * ease[:, None, :], points)
        ridge = LARGEST_CONDITION * np.trace(matrices, axis1=1, axis2=2) + np.finfo(np.float64).tiny
        matrices += ridge[:, None, None] * np.eye(points.shape[1])
        current = rest + ease * (solve_each(matrices, (rest_of - rest) @ points) @ points.T)
    steadied = flows.copy()
    sound = np.isfinite(current).all(axis=1)
    steadied[asked[sound]] = current[sound]
    return steadied
