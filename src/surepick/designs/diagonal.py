"""Designs of arms without structure: all differences in closed form, those from one arm by bisection."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.design import Design

BISECTIONS = 100
BOUND_SAFETY = 1e-12


def independent_design(num_arms: int, active: IntArray | None = None) -> Design:
    """min over lambda of max over pairs a != b of S of 1/lambda_a + 1/lambda_b = 2 |S|, at equal weights on S.

    Proof: averaging 1/lambda_a + 1/lambda_b over all pairs of S gives (2/|S|) sum 1/lambda_a >= 2 |S|.

    Args:
        num_arms: K.
        active: S, indices; None = all arms.

    Returns:
        A design whose value equals its lower bound; value 0 when S has one arm.

    Source: ours. Cost: O(K).
    """
    arms = np.arange(num_arms) if active is None else active
    weights = np.zeros(num_arms)
    weights[arms] = 1.0 / len(arms)
    value = 2.0 * len(arms) if len(arms) > 1 else 0.0
    return Design(weights, value, value, num_arms)


def independent_star_design(
    centre: int, scales: FloatArray, *, rivals: IntArray | None = None, noise_scales: FloatArray | None = None
) -> Design:
    """min over lambda of max over rivals j of (v_c/lambda_c + v_j/lambda_j) / w_j^2: one arm against each rival.

        tau = min over s in (0, min w^2) of v_c/s + sum_j v_j/(w_j^2 - s),   lambda_c = v_c/(s tau),
        lambda_j = v_j/((w_j^2 - s) tau)

    At the optimum all constraints are tight; the function of s is convex, and its derivative changes sign between
    m/(1 + sqrt(sum_j v_j/v_c)) and m/(1 + sqrt(v_i/v_c)) for m = min w^2, reached at i.

    Args:
        centre: c.
        scales: w, positive, shape (K,), in reward units; the entry of c is not used.
        rivals: indices of the arms j that c is compared with; None = all others.
        noise_scales: sqrt(v), positive, shape (K,); None = 1 for all.

    Returns:
        A design and its value in units of v/w^2; the lower bound is the tangent of the convex function, and agrees
        with the value to rounding. Value 0, all weight on c, without a rival.

    Source: ours. Cost: O(K) a bisection step.
    """
    num_arms = len(scales)
    others = np.delete(np.arange(num_arms), centre) if rivals is None else rivals[rivals != centre]
    noises = np.ones(num_arms) if noise_scales is None else noise_scales
    weights = np.zeros(num_arms)
    if len(others) == 0:
        weights[centre] = 1.0
        return Design(weights, 0.0, 0.0, num_arms)
    unit, closest = float(scales[others].min()), int(np.argmin(scales[others]))
    squares = (scales[others] / unit) ** 2
    variances = (noises[others] / noises[centre]) ** 2
    low = 1.0 / (1.0 + np.sqrt(float(variances.sum())))
    high = 1.0 / (1.0 + np.sqrt(float(variances[closest])))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if float(np.sum(variances * (squares - middle) ** -2.0)) < middle**-2.0:
            low = middle
        else:
            high = middle
    weights[centre], weights[others] = 1.0 / low, variances / (squares - low)
    tau = float(weights.sum())
    slope = float(np.sum(variances * (squares - low) ** -2.0)) - low**-2.0
    weights /= tau
    value = float(np.max((1.0 / weights[centre] + variances / weights[others]) / squares))
    lower = (tau + min(slope, 0.0) * (high - low)) * (1.0 - BOUND_SAFETY)
    with np.errstate(over="ignore"):  # beyond the largest number: infinite
        size = np.square(np.float64(noises[centre]) / unit)
        return Design(weights, float(value * size), float(min(lower, value) * size), num_arms)
