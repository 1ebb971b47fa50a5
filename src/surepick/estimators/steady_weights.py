"""Weights of rewards that misspecification can move less than those of least squares."""

from __future__ import annotations

import numpy as np

from surepick.linalg import solve_each
from surepick.records import FloatArray, IntArray

STEPS = 4
LEAST_FLOW = 1e-3
LARGEST_CONDITION = 1e-12


def steady_flows(
    flows: FloatArray,
    targets: FloatArray,
    points: FloatArray,
    counts: IntArray,
    noise_scales: FloatArray,
    rooms: FloatArray,
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
        rooms: what the bias leaves of the margins, positive, shape (m,), in reward units.
        misspecification: gamma, positive.

    Returns:
        Flows, shape (m, p); any choice is valid, since the bias is bounded from the flows as they are.

    Source: ours; iteratively reweighted least squares (Daubechies et al. 2010). Cost: O(m p r^2) a step.
    """
    variances = noise_scales**2 / counts
    current = flows
    for _ in range(STEPS):
        spread = np.maximum((current**2) @ variances, 1e-300)
        price = rooms / spread
        resistance = misspecification / np.maximum(np.abs(current - targets), LEAST_FLOW)
        resistance += price[:, None] * variances
        ease = 1.0 / resistance
        rest = targets * (1.0 - price[:, None] * variances * ease)
        matrices = np.matmul(points.T[None, :, :] * ease[:, None, :], points)
        matrices += LARGEST_CONDITION * np.trace(matrices, axis1=1, axis2=2)[:, None, None] * np.eye(points.shape[1])
        wanted = (flows - rest) @ points
        current = rest + ease * (solve_each(matrices, wanted) @ points.T)
    return current
