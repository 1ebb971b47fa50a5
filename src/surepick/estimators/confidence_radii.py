"""How far an estimate may stray: the log terms and widths of the certificates."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray


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


def mixture_radius(counts: IntArray, sigma: FloatArray, *, delta: float, num_arms: int, accuracy: float) -> FloatArray:
    """c(n) = sigma sqrt((n + r) log((n + r) / (r a^2))) / n with a = delta / K: Robbins' normal mixture, for each arm.

    For a sum S of n sub-Gaussian deviations of unit scale, exp(lS - n l^2 / 2), averaged over l ~ N(0, 1/r), is a
    nonnegative supermartingale that starts at 1; by Ville's inequality P(some n: |S| > n c(n) / sigma) <= a. So all
    arms and all n together fail with probability at most delta. No n pays for the others as in a union over n: c(n)
    grows like sqrt(log n / n) with a factor one half in front of log n, where `anytime_radius` has two.

    Args:
        counts, sigma, delta, num_arms: as in `anytime_radius`.
        accuracy: the width, in reward units, at which it is to be tightest (r is fixed by it in advance): there it is
            within a few per cent of the best of all r.

    Source: Robbins (1970); Howard, Ramdas, McAuliffe & Sekhon (2021), eq. (14) and the choice of r in section 3.5.
    """
    log_term = 2.0 * np.log(num_arms / delta)  # log(1 / a^2)
    tightest = np.maximum(sigma**2 * log_term / accuracy**2, 1.0)  # n at which c(n) is about the accuracy
    r = tightest / (log_term + np.log1p(log_term))
    safe = np.maximum(counts, 1).astype(np.float64)
    radius = sigma * np.sqrt((safe + r) * (np.log1p(safe / r) + log_term)) / safe
    return np.where(counts > 0, radius, np.inf)
