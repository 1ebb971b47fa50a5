"""Intervals for means of normal rewards whose variances nobody knows, valid at all times at once.

    |mean - h| < sqrt((q - 1) SS / (n (1 - q r))),    q = (1 / (alpha sqrt(r)))^(2/n),    r = c^2 / (n + c^2)

n results of an arm with the sum SS of their squared deviations: h is outside after no n, but with probability alpha.
docs/budget.md has the proof (lines 52 and 53); arrays have a row for each of n studies.
"""

from __future__ import annotations

import numpy as np

from surepick.core.observations import ROUNDING, Observations
from surepick.core.records import BoolArray, FloatArray, record
from surepick.estimators.noise_mgf import ROUNDED_UP, squared_deviations
from surepick.estimators.running_processes import UNKNOWN

ASSUMED = (
    "Given what was measured before, each measurement is an independent draw around the mean of its candidate, "
    "normally distributed with a standard deviation of the candidate's own."
)
SHARES = (0.8, 0.19, 0.01)  # of alpha, for c as planned, for a tenth of that, and for one that serves two results


@record
class StudentIntervals:
    """What is fixed beforehand.

    Args:
        delta: the probability that one of the bounds that matter ever fails.
        num_arms: K, at least 2.
        planned: results of an arm for which bounds are to be tightest.
    """

    delta: float
    num_arms: int
    planned: float

    def half_widths(self, seen: Observations, alpha: float, levels: FloatArray | float = 0.0) -> FloatArray:
        """By how much a mean may be off on either side, (n, K), in reward units; infinite: unknown."""
        counts, found = np.maximum(seen.counts, 1).astype(np.float64), np.full(seen.counts.shape, np.inf)
        spread = squared_deviations(seen) * ROUNDED_UP
        lost = 0.0 if seen.within is not None else ROUNDING * seen.counts * np.asarray(levels)[..., None] ** 2
        told = (seen.counts > 1) & (spread > 4.0 * (seen.rounding + lost))  # equal results do not say how results vary
        aimed = self.planned / (2.0 * np.log(2.0 * self.num_arms / self.delta))
        for share, squared in zip(SHARES, (aimed, 0.01 * aimed, 0.5 * (SHARES[2] * alpha) ** 2), strict=True):
            least = squared / (counts + squared)
            steep = (-2.0 * np.log(share * alpha) - np.log(least)) / counts
            grown = np.exp(steep)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                width = np.sqrt(np.expm1(steep) * spread / (counts * (1.0 - grown * least)))
            fits = told & (grown * least < 1.0)
            found = np.where(fits, np.minimum(found, width * ROUNDED_UP), found)
        return np.asarray(found)

    def upper_bounds(
        self, seen: Observations, rivals: BoolArray, levels: FloatArray | float = 0.0
    ) -> tuple[FloatArray, BoolArray]:
        """(U_jc, by how much j is better than c at most, (n, K, K); which arms j are not the best, (n, K)).

        Args:
            rivals: the arms that count as c, (n, K).
            levels: what was taken from every reward of a study, (n,).
        """
        above = seen.means + self.half_widths(seen, 0.5 * self.delta, levels)
        below = seen.means - self.half_widths(seen, 0.5 * self.delta / (self.num_arms - 1), levels)
        bounds = above[:, :, None] - below[:, None, :]
        bounds = np.where(np.isfinite(bounds) & rivals[:, None, :], np.minimum(bounds, UNKNOWN), UNKNOWN)
        every = np.arange(self.num_arms)
        bounds[:, every, every] = 0.0
        return bounds, np.asarray((bounds < 0.0).any(axis=2))
