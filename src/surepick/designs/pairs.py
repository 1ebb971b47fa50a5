"""Optimal designs for given pairs of arms that share nothing, and for arms beside a number that is known."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.design import Design

MOST_STEPS = 400
LEAST_SHARE = 1e-200  # so that no arm of a pair is without weight


def independent_pairs_design(
    first: IntArray,
    second: IntArray,
    accuracies: FloatArray,
    noise_scales: FloatArray,
    *,
    tolerance: float = 0.05,
) -> Design:
    """min over lambda of max over pairs p = (i, c) of (v_i/lambda_i + v_c/lambda_c) / a_p^2, with a certificate.

        for weights q of the pairs, sum 1:   s_x = sum of q_p / a_p^2 over the pairs with x
        lambda_x in proportion to sqrt(v_x s_x),   tau >= (sum_x sqrt(v_x s_x))^2     (Cauchy and Schwarz)
        q_p <- q_p times the pair's value, until the largest value is near the bound

    Args:
        first: i, shape (m,), at least one pair.
        second: c, shape (m,); -1: the arm is compared with a number that is known, and v_c = 0.
        accuracies: a, positive, shape (m,), in reward units.
        noise_scales: sqrt(v), positive, shape (K,), in reward units.
        tolerance: relative gap at which to stop.

    Returns:
        A design, its value in pulls at which the worst pair is known to within its accuracy, and a lower bound of it;
        after MOST_STEPS perhaps with a larger gap.

    Source: the multiplicative update of Silvey, Titterington & Torsney (1978), whose objective is concave and
    homogeneous here. Cost: O(m + K) a step.
    """
    num_arms = len(noise_scales)
    inverse = (accuracies.min() / accuracies) ** 2
    paired = second >= 0
    ends = np.where(paired, second, first)
    shares, best, bound = np.full(len(first), 1.0 / len(first)), (np.inf, np.zeros(num_arms)), 0.0
    for _ in range(MOST_STEPS):
        load = shares * inverse
        totals = np.bincount(first, load, minlength=num_arms)
        totals += np.bincount(ends[paired], load[paired], minlength=num_arms)
        roots = noise_scales * np.sqrt(totals)
        weights = roots / roots.sum()
        spread = np.divide(noise_scales**2, weights, out=np.zeros(num_arms), where=weights > 0)
        values = inverse * (spread[first] + np.where(paired, spread[ends], 0.0))
        bound = max(bound, float(roots.sum()) ** 2)
        if values.max() < best[0]:
            best = (float(values.max()), weights)
        if best[0] <= (1.0 + tolerance) * bound:
            break
        shares = np.maximum(shares * values / values.max(), LEAST_SHARE)
        shares /= shares.sum()
    unit = float(accuracies.min()) ** 2
    return Design(best[1], best[0] / unit, min(bound, best[0]) / unit, num_arms)
