"""How far an estimate may stray: the log terms and widths of the certificates."""

from __future__ import annotations

import numpy as np

from surepick.records import FloatArray, IntArray


def noise_multiplier(sigma: float, log_term: float) -> float:
    """sigma sqrt(2 L): one-sided deviation of a sub-Gaussian sum of unit scale, exceeded with probability exp(-L).

    Source: Algorithm 1, line 10 (there sigma = 1).
    """
    return sigma * float(np.sqrt(2.0 * log_term))


def anytime_radius(counts: IntArray, sigma: FloatArray, *, delta: float, num_arms: int) -> FloatArray:
    """c(n) = sigma sqrt(2 log(4 K n^2 / delta) / n) for each arm, valid at every n and for every arm at once.

    P(some arm, some n: |mean - h| > c(n)) <= sum_{arms} sum_n 2 exp(-log(4 K n^2 / delta)) = delta pi^2 / 12 < delta.

    Args:
        counts: n, shape (K,); 0 gives infinity.
        sigma: sub-Gaussian scale of each arm, shape (K,), in reward units.
        delta: error probability, all arms and all n together.
        num_arms: K of the whole study.

    Source: action elimination as in Even-Dar et al. (2006) and Jamieson & Nowak (2014).
    """
    safe = np.maximum(counts, 1)
    radius = sigma * np.sqrt(2.0 * np.log(4.0 * num_arms * safe.astype(np.float64) ** 2 / delta) / safe)
    return np.where(counts > 0, radius, np.inf)
