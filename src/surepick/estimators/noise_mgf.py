"""What a batch may assume of the noise: bounds on its moment-generating function from its range and variance."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.noise import Bernoulli, Noise, scales

LARGEST_BET = 0.8  # of 1 / R; the empirical allowance grows without bound towards 1
SQUARES_SLACK = 2e-6  # twice the share by which told squares may fall short of what their sums imply
MIDDLING_BET = 0.5
HEURISTIC_PSEUDO = 3.0  # observations of the largest variance, added to those of an arm
ROUNDED_UP = 1.0 + 1e-9


@record
class NoiseMgf:
    """What a batch may assume of the noise of each arm, fixed before the batch's first reward.

    For a reward r with mean h and a bet t fixed before it, each of

        E exp(t (r - h) - t^2 sigma^2 / 2) <= 1                            sigma-sub-Gaussian
        E exp(t (r - h) - psi(|t| R) (r - m)^2 / R^2) <= 1,  |t| R < 1     r and m in a range of length R

    holds, psi(x) = -log(1 - x) - x. The second is small where the rewards hardly vary around m.

    Args:
        scales: sigma of each arm, shape (K,), in reward units.
        spread: R, high - low, rounded up; infinite for rewards without a range.
        centres: m, the mean of each arm's earlier rewards and so inside the range, shape (K,).
        known: whether the arm has earlier rewards, shape (K,); the second bound is used for no other arm.
        variances: a guess of the variance of each arm, shape (K,): it decides which of the two is used, and where to
            measure; the bounds hold whatever it is.

    Source: Hoeffding's lemma; Fan, Grama & Liu (2015), exp(x s - psi(x) s^2) <= 1 + x s for s >= -1, with
        s = +-(r - m)/R (docs/certified-elimination.md, lines 3a and 3b).
    """

    scales: FloatArray
    spread: float
    centres: FloatArray
    known: BoolArray
    variances: FloatArray

    def __post_init__(self) -> None:
        freeze(self, scales=np.float64, centres=np.float64, known=np.bool_, variances=np.float64)

    @property
    def own(self) -> NoiseMgf:
        """What holds of the pulls of one arm that is fixed beforehand: the same."""
        return self

    @property
    def quadratic(self) -> bool:
        """Whether each pull costs t^2 sigma^2 / 2, whatever the rewards."""
        return not np.isfinite(self.spread)

    @property
    def steepest(self) -> float:
        """The weight of a pull above which the range of the rewards permits no cheap bet; infinite without one."""
        return MIDDLING_BET / self.spread if np.isfinite(self.spread) else np.inf

    def usable(self, batch: Observations) -> Observations:
        """The pulls of a batch that bets may be on: all of them."""
        return batch

    def typical_scales(self, epsilon: float) -> FloatArray:
        """How much a reward of each arm varies, as a guess of means should take it, shape (K,)."""
        return self.noise_scales(epsilon)

    def noise_scales(self, margin: float | FloatArray) -> FloatArray:
        """The scale s of each arm as a bet on a difference `margin`, one or one an arm, sees it, at most sigma; (K,).

            margin^2 / (2 s^2) = max(margin^2 / (2 sigma^2), t margin - psi(t R) v / R^2),   t = min(margin/v, .5/R)

        The left-hand side is what the best bet on normal noise of scale s gains a pull.
        """
        if not np.isfinite(self.spread):
            return self.scales
        bet = np.minimum(margin / self.variances, MIDDLING_BET / self.spread)
        rate = bet * margin - _psi(bet * self.spread) * self.variances / self.spread**2
        return np.asarray(margin / np.sqrt(2.0 * np.maximum(rate, margin**2 / (2.0 * self.scales**2))))

    def middling(self, bets: FloatArray, steepest: FloatArray) -> FloatArray:
        """The bets, none so large that a pull of weight `steepest` is bet on by more than half of what the range
        permits; as they are without a range."""
        if not np.isfinite(self.spread):
            return bets
        limit = MIDDLING_BET / self.spread
        return np.minimum(bets, np.divide(limit, steepest, out=np.full_like(bets, np.inf), where=steepest > 0))

    def expected(self, bets: FloatArray, arms: IntArray, counts: IntArray) -> FloatArray:
        """The allowance of counts pulls of each of the p arms if its variance is as guessed, shape (..., p)."""
        if not np.isfinite(self.spread):
            return np.asarray(counts * self._by_sigma(bets, arms))
        plain, empirical, usable = self._per_pull(bets, arms)
        each = np.where(usable, empirical * self.variances[arms], plain)
        return np.asarray(counts * each)

    def total(self, bets: FloatArray, arms: IntArray, seen: Observations) -> FloatArray:
        """The allowance of all pulls of the given arms, each bet on by |t|.

        Args:
            bets: |t| of a pull of each arm, shape (..., p), fixed before the rewards.
            arms: the p arms.
            seen: the batch.

        Returns:
            shape (..., p), rounded up.
        """
        if not np.isfinite(self.spread):
            return np.asarray(ROUNDED_UP * seen.counts[arms] * self._by_sigma(bets, arms))
        plain, empirical, usable = self._per_pull(bets, arms)
        told = _of_arms(seen, arms)
        scatter = scatter_around(told, self.centres[arms], self.spread)
        return np.asarray(ROUNDED_UP * np.where(usable, empirical * scatter, told.counts * plain))

    def _by_sigma(self, bets: FloatArray, arms: IntArray) -> FloatArray:
        each: FloatArray = 0.5 * bets**2 * self.scales[arms] ** 2
        return each

    def _per_pull(self, bets: FloatArray, arms: IntArray) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Allowance by sigma, allowance for each unit of scatter, and where the second is to be used."""
        plain = self._by_sigma(bets, arms)
        share = bets * self.spread
        empirical = _psi(np.minimum(share, LARGEST_BET)) / self.spread**2
        usable = self.known[arms] & (share <= LARGEST_BET) & (empirical * self.variances[arms] < plain)
        return plain, empirical, usable


def _of_arms(seen: Observations, arms: IntArray) -> Observations:
    """What was told of the p arms; `seen` may be of more arms than the bets are made for."""
    squares, within = (None if one is None else one[arms] for one in (seen.squares, seen.within))
    return Observations(seen.counts[arms], seen.sums[arms], squares, within=within)


def scatter_around(seen: Observations, centres: FloatArray, spread: float) -> FloatArray:
    """sum of (r - m)^2 of each arm, shape (K,), rounded up; at most n R^2."""
    if seen.within is None:
        return scatter_of(seen.counts, seen.sums, np.asarray(seen.squares), centres, spread)
    away = seen.deviations + 2.0 * seen.rounding + seen.counts * (seen.means - centres) ** 2
    return np.asarray(np.clip(ROUNDED_UP * away, 0.0, seen.counts * spread**2))


def scatter_of(
    counts: IntArray, sums: FloatArray, squares: FloatArray, centres: FloatArray, spread: float
) -> FloatArray:
    """sum of (r - m)^2, rounded up by what the border lets pass as rounding of told squares; at most n R^2.

    All arguments but R have the same shape, and so has the result.
    """
    exact = squares - 2.0 * centres * sums + counts * centres**2
    return np.asarray(np.clip(exact + SQUARES_SLACK * squares, 0.0, counts * spread**2))


def _psi(share: FloatArray) -> FloatArray:
    return np.asarray(-np.log1p(-share) - share)


def with_squares(noise: Noise, seen: Observations) -> Observations:
    """The batch with its sums of squares; where they were not reported, the most that the range allows.

        sum r^2 <= |low + high| |sum r| - n low high

    for rewards in [low, high] and for their negatives (a study that minimises tells those); with equality for rewards
    that are low or high in a range that starts or ends at 0. Unbounded rewards without squares are left alone.
    """
    if noise.support is None:
        return seen
    low, high = noise.support
    if seen.squares is not None and not isinstance(noise, Bernoulli):
        return seen
    most = abs(low + high) * np.abs(seen.sums) - seen.counts * low * high
    means = np.clip(np.abs(seen.means) * (-1.0 if low + high < 0.0 else 1.0), low, high)
    return Observations(seen.counts, seen.sums, most, within=seen.counts * (means - low) * (high - means))


def noise_mgf_after(noise: Noise, past: Observations) -> NoiseMgf:
    """What the next batch may assume, from the declared noise and everything told before it.

        m = mean of the arm so far,   variance = (sum (r - m)^2 + q R^2/4) / (n + q),   q = HEURISTIC_PSEUDO

    Rewards may be told as declared or negated: only the length of the range is used, and earlier rewards.

    Args:
        noise: what is declared.
        past: everything told before the batch.

    Source: ours; the pseudo-observations keep an arm that was lucky twice from being believed noiseless.
    """
    num_arms = len(past.counts)
    sigma = scales(noise, num_arms)
    known = past.counts > 0
    if noise.support is None:
        return NoiseMgf(sigma, np.inf, past.means, known, sigma**2)
    spread = (noise.support[1] - noise.support[0]) * ROUNDED_UP
    scatter = scatter_around(with_squares(noise, past), past.means, spread)
    variances = (scatter + HEURISTIC_PSEUDO * sigma**2) / (past.counts + HEURISTIC_PSEUDO)
    return NoiseMgf(sigma, spread, past.means, known, variances)
