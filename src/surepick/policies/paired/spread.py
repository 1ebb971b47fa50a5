"""How much rewards vary beside those of a candidate in the same block: bounds that hold, and guesses that steer."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, freeze, record
from surepick.core.observations import Observations
from surepick.estimators import NormalMgf
from surepick.estimators.normal_mgf import likely_variances, variance_bounds
from surepick.policies.paired.pairs import Pairs

HEURISTIC_PRIOR = 10.0  # blocks that the correlation which arms have in common counts for


@record
class Spread:
    """What may be assumed of the blocks of the next batch for a candidate c, fixed before their first reward.

    Args:
        difference_bounds: V of d = r_j - r_c, shape (K,), in squared reward units; infinite where there is none.
        bounds: V of r_j, shape (K,); infinite where blocks may be off by any amount.
        centre_bound: V of r_c; infinite likewise.
        slopes: beta, by how much r_j moves with r_c, shape (K,), in [0, 1]; 1 where blocks may be off by any amount.
        variances: guesses of the variance of r_j - beta r_c, shape (K,).
        centre_variance: guess of that of r_c.
        before: the pairs on which all this rests.
    """

    difference_bounds: FloatArray
    bounds: FloatArray
    centre_bound: float
    slopes: FloatArray
    variances: FloatArray
    centre_variance: float
    before: Pairs

    def __post_init__(self) -> None:
        freeze(self, difference_bounds=np.float64, bounds=np.float64, slopes=np.float64, variances=np.float64)

    def bounds_for(self, own: FloatArray, centre: FloatArray) -> FloatArray:
        """Bounds on the variance of own r_j + centre r_c, shape (K,): Minkowski's inequality, in both forms.

            sd(u r_j + v r_c) <= |u| sd(d) + |u + v| sd(r_c),    |u| sd(r_j) + |v| sd(r_c)

        Args:
            own: u, shape (K,).
            centre: v, shape (K,).
        """
        hub = math.sqrt(self.centre_bound)
        by_difference = _times(own, np.sqrt(self.difference_bounds)) + _times(own + centre, hub)
        apart = _times(own, np.sqrt(self.bounds)) + _times(centre, hub)
        return np.asarray(np.minimum(by_difference, apart) ** 2)

    def noise_scales(self, margins: FloatArray) -> FloatArray:
        """The scale of r_j - beta r_c as a bet on a difference sees it, shape (K,)."""
        bounds = self.bounds_for(-np.ones_like(self.slopes), self.slopes)
        centres = np.zeros_like(self.slopes)
        return NormalMgf(bounds, bounds, self.variances, centres, self.before.counts).noise_scales(margins)


def _times(weights: FloatArray, scales: FloatArray | float) -> FloatArray:
    """|weight| scale, 0 for no weight on what may vary by any amount."""
    used = weights != 0.0
    return np.asarray(np.where(used, np.abs(weights) * np.where(used, scales, 0.0), 0.0))


def spread_of_differences(before: Pairs, failure: float) -> Spread:
    """Where blocks may be off by any amount: differences alone count.

    Args:
        before: all earlier pairs with the candidate.
        failure: the probability that, for an arm that is fixed beforehand, some bound is too small.

    Source: docs/certified-elimination.md, lines 19 and 27.
    """
    seen, num_arms = before.differences, len(before.counts)
    bounds = variance_bounds(seen, failure / num_arms)
    nothing, ones = np.full(num_arms, np.inf), np.ones(num_arms)
    return Spread(bounds, nothing, np.inf, ones, likely_variances(seen), 0.0, before)


def spread_of_streams(before: Pairs, past: Observations, failure: float) -> Spread:
    """Where blocks share random numbers, and nothing else: rewards count by themselves too.

    The slope of an arm is drawn towards rho s_j / s_c, rho being the correlation that arms have in common.

    Args:
        before: all earlier pairs with the candidate.
        past: everything told before.
        failure: as in `spread_of_differences`: half of it for differences, a quarter for the rewards of the arm, a
            quarter for those of candidates.
    """
    num_arms, centre = len(before.counts), before.centre
    seen = before.differences
    own = likely_variances(past)
    hub = float(own[centre])
    number = np.maximum(before.counts - 1, 0)
    moves = np.maximum(before.centre_squares - before.centre_sums**2 / np.maximum(before.counts, 1), 0.0)
    apart = before.products - before.sums * before.centre_sums / np.maximum(before.counts, 1)
    covariances = apart + moves  # of r_j with r_c, times n - 1
    likely = np.sqrt(own * hub)
    common = float(np.clip(covariances.sum() / max(float(np.sum(number * likely)), 1e-300), 0.0, 1.0))
    shared = (HEURISTIC_PRIOR * common * likely + covariances) / (HEURISTIC_PRIOR + number)
    slopes = np.clip(shared / hub, 0.0, 1.0)
    left = np.maximum(own - 2.0 * slopes * shared + slopes**2 * hub, 0.05 * own)
    slopes[centre] = 0.0
    return Spread(
        variance_bounds(seen, 0.5 * failure / num_arms),
        variance_bounds(past, 0.25 * failure),
        float(variance_bounds(past, 0.25 * failure / num_arms)[centre]),
        slopes,
        left,
        hub,
        before,
    )
