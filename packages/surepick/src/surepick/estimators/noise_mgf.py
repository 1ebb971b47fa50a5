"""What a batch may assume of the noise: bounds on its moment-generating function from its range and variance."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen
from surepick.core.special_functions import special
from surepick.noise import Bernoulli, Noise, scales

LARGEST_BET = 0.8  # of 1 / R; the empirical allowance grows without bound towards 1
SQUARES_SLACK = 2e-6  # twice the share by which told squares may fall short of what their sums imply
MIDDLING_BET = 0.5
HEURISTIC_PSEUDO = 3.0  # observations of the largest variance, added to those of an arm
ROUNDED_UP = 1.0 + 1e-9


@frozen
class NoiseMgf:
    """What a batch may assume of the noise of each arm, fixed before the batch's first reward.

    For a reward r with mean h and a bet t fixed before it, each of

        E exp(t (r - h) - t^2 sigma^2 / 2) <= 1                            sigma-sub-Gaussian
        E exp(t (r - h) - psi(|t| R) (r - m)^2 / R^2) <= 1,  |t| R < 1     r and m in a range of length R

    holds, psi(x) = -log(1 - x) - x. The second is small where the rewards hardly vary around m.

    Source: Hoeffding's lemma; Fan, Grama & Liu (2015), exp(x s - psi(x) s^2) <= 1 + x s for s >= -1, with
        s = +-(r - m)/R (docs/certified-elimination.md, lines 3a and 3b).
    """

    scales: FloatArray  # sigma of each arm, (K,), in reward units
    spread: float  # R, high - low, rounded up; infinite for rewards without a range
    centres: FloatArray  # m, the mean of each arm's earlier rewards and so inside the range, (K,)
    known: BoolArray  # whether the arm has earlier rewards, (K,); the second bound is used for no other arm
    # a guess of the variance of each arm, (K,): it decides which of the two is used, and where to measure; the bounds
    # hold whatever it is
    variances: FloatArray
    declared: ClassVar[Literal[True]] = True  # scales or a range, and so a cost that repeats need not show

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
        """The bets, none above half of what the range permits weight `steepest`; as they are without a range."""
        if not np.isfinite(self.spread):
            return bets
        limits = np.divide(self.steepest, steepest, out=np.full_like(bets, np.inf), where=steepest > 0)
        return np.minimum(bets, limits)

    def expected(self, bets: FloatArray, arms: IntArray, counts: IntArray) -> FloatArray:
        """The allowance of counts pulls of each of the p arms if its variance is as guessed, shape (..., p)."""
        if not np.isfinite(self.spread):
            return np.asarray(counts * self._by_sigma(bets, arms))
        plain, empirical, usable = self._per_pull(bets, arms)
        each = np.where(usable, empirical * self.variances[arms], plain)
        return np.asarray(counts * each)

    def total(self, bets: FloatArray, arms: IntArray, seen: Observations) -> FloatArray:
        """The allowance of all pulls of p arms, each bet on by |t|, fixed before the rewards; (..., p), rounded up."""
        if not np.isfinite(self.spread):
            return np.asarray(ROUNDED_UP * seen.counts[arms] * self._by_sigma(bets, arms))
        plain, empirical, usable = self._per_pull(bets, arms)
        told = seen.mapped(lambda column: column[arms])
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


def scatter_around(seen: Observations, centres: FloatArray, spread: float) -> FloatArray:
    """sum of (r - m)^2 of each arm, shape (K,), rounded up, also by what passes as rounding of told squares; at most
    n R^2."""
    counts, squares = seen.counts, seen.squares
    if seen.within is not None or squares is None:
        away = ROUNDED_UP * (seen.deviations + 2.0 * seen.rounding + counts * (seen.means - centres) ** 2)
    else:
        away = squares - 2.0 * centres * seen.sums + counts * centres**2 + SQUARES_SLACK * squares
    return np.asarray(np.clip(away, 0.0, counts * spread**2))


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
    """What the next batch may assume, from the declared noise and everything told before it; of many studies, (n, K).

        m = mean of the arm so far,   variance = (sum (r - m)^2 + q R^2/4) / (n + q),   q = HEURISTIC_PSEUDO

    Rewards may be told as declared or negated: only the length of the range is used, and earlier rewards.

    Source: ours; the pseudo-observations keep an arm that was lucky twice from being believed noiseless.
    """
    known = past.counts > 0
    sigma = np.broadcast_to(scales(noise, known.shape[-1]), known.shape)
    if noise.support is None:
        return NoiseMgf(sigma, np.inf, past.means, known, sigma**2)
    spread = (noise.support[1] - noise.support[0]) * ROUNDED_UP
    scatter = scatter_around(with_squares(noise, past), past.means, spread)
    variances = (scatter + HEURISTIC_PSEUDO * sigma**2) / (past.counts + HEURISTIC_PSEUDO)
    return NoiseMgf(sigma, spread, past.means, known, variances)


# --- Normal noise whose scale nobody knows: variances bounded at all times, and bets that the batch's repeats pay for.

LARGEST = 1e100
STEEPEST = 50.0  # a larger w^2 V is paid for by the bound alone
SHAPE, RATE = 0.5, 0.01  # of the Gamma distribution that mixes; fixed before any reward
BISECTIONS = 70
MOST_KEPT = 20_000  # degrees of freedom whose bound is kept
LEAST_LOG = -700.0
HEURISTIC_LEAST_PRIOR, HEURISTIC_MOST_PRIOR = 1.0, 200.0  # repeats that what arms have in common counts for


@frozen
class NormalMgf:
    """What a batch may assume of normal noise of unknown, unequal scales, fixed before the batch's first reward.

    For n rewards of an arm with mean h, one weight w on each, fixed before them, as long as the variance is at most V,
    each of

        E exp(w sum (r - h) - n w^2 V / 2)                           <= 1
        E exp(w sum (r - h) - (e^a - 1)/(2 V) sum (r - rbar)^2)      <= 1,    a = w^2 V n / (n - 1),  n >= 2
        E exp(w sum (r - h) - (e^a - 1)/(2 V) sum (r - m)^2)         <= 1,    a = w^2 V

    holds, rbar the mean of the n rewards and m any number fixed before them. For small a the second costs w^2 / 2 times
    the n rewards' own variance: what it would cost if the variance were known. V matters only through a.

    Source: docs/certified-elimination.md, line 20; ours.
    """

    # V of an arm that is fixed beforehand, (K,), in squared reward units; infinite where there is none
    bounds: FloatArray
    joint_bounds: FloatArray  # V that hold for all arms at once, (K,)
    variances: FloatArray  # a guess of the variances, (K,): it decides which of the three is used, and where to measure
    centres: FloatArray  # m, the mean of each arm's earlier rewards, (K,)
    counts: IntArray  # how many these are, (K,)
    declared: ClassVar[Literal[False]] = False

    @property
    def own(self) -> NormalMgf:
        """What holds of the pulls of one arm that is fixed beforehand."""
        return replace(self, joint_bounds=self.bounds)

    @property
    def bounded(self) -> BoolArray:
        """Which arms have bounds, so that bets may be on their pulls, shape (K,)."""
        return np.asarray(np.isfinite(self.joint_bounds) & np.isfinite(self.bounds))

    def tempered(self, bets: FloatArray, arms: IntArray, counts: FloatArray) -> FloatArray:
        """The share of some bets on pulls of p arms that gains most, where they would be best if variances were known.

            t e^(t^2 a) = 1,    a the mean of w^2 V, each arm with the weight n w^2 v of its share in the cost

        The bets are w of a pull of each arm, (..., p); t is in (0, 1], (...).
        """
        bounds = np.where(np.isfinite(self.joint_bounds[arms]), self.joint_bounds[arms], 100.0 * self.variances[arms])
        costs = counts * bets**2 * self.variances[arms]
        whole = np.sum(costs, axis=-1)
        steep = np.divide(
            np.sum(costs * np.minimum(bets**2 * bounds, LARGEST), axis=-1),
            whole,
            out=np.zeros_like(whole),
            where=whole > 0.0,
        )
        steep = np.maximum(steep, 1e-12)
        return np.asarray(np.sqrt(np.real(special.lambertw(2.0 * steep)) / (2.0 * steep)))

    def typical_scales(self, _epsilon: float) -> FloatArray:
        """How much a reward of each arm varies, as a guess of means should take it, shape (K,)."""
        return np.sqrt(self.variances)

    def noise_scales(self, margin: float | FloatArray) -> FloatArray:
        """The scale s of each arm as a bet on a difference `margin`, one or one an arm, sees it, shape (K,).

            s^2 = v e^y,    2 y e^(2 y) = 2 margin^2 V / v^2

        so that w = margin / s^2 is the bet whose gain w margin - v (e^(w^2 V) - 1) / (2 V) is largest.
        """
        bounds = np.where(np.isfinite(self.joint_bounds), self.joint_bounds, 100.0 * self.variances)
        ratios: FloatArray = np.sqrt(2.0 * bounds) * margin / self.variances
        steep = 0.5 * np.real(special.lambertw(np.minimum(ratios, LARGEST) ** 2))
        return np.asarray(np.sqrt(self.variances) * np.exp(0.5 * steep))

    def usable(self, batch: Observations) -> Observations:
        """The batch without the pulls that no bet may be on: those of arms of whose variance there is no bound yet."""
        known = self.bounded
        if np.all(known | (batch.counts == 0)):
            return batch
        return batch.mapped(lambda column: np.where(known, column, 0))

    def expected(self, bets: FloatArray, arms: IntArray, counts: IntArray) -> FloatArray:
        """The cost of counts pulls of each of the p arms if its variance is as guessed, shape (..., p)."""
        return np.asarray(np.min(self._expected(np.abs(bets), arms, counts), axis=0))

    def total(self, bets: FloatArray, arms: IntArray, seen: Observations) -> FloatArray:
        """The cost of all pulls of p arms, each bet on by |w|, fixed before the rewards; (..., p), rounded up."""
        counts, rounding = seen.counts[arms], seen.rounding[arms]
        means, centres = seen.means[arms], self.centres[arms]
        around = seen.deviations[arms] + rounding
        away = around + counts * (means - centres) ** 2 + rounding
        options = self._expected(bets, arms, counts)
        chosen = np.argmin(options, axis=0)
        bounds = np.where(counts > 0, self.joint_bounds[arms], 1.0)
        plain = 0.5 * counts * bets**2 * bounds
        inside = 0.5 * _rate(bets, bounds, counts / np.maximum(counts - 1, 1)) * around
        outside = 0.5 * _rate(bets, bounds, np.ones_like(bounds)) * away
        return np.asarray(ROUNDED_UP * np.choose(chosen, [plain, inside, outside]))

    def _expected(self, bets: FloatArray, arms: IntArray, counts: IntArray) -> FloatArray:
        """What each of the three is expected to cost, shape (3, ..., p)."""
        bounds, variances = self.joint_bounds[arms], self.variances[arms]
        bounds = np.where(np.isfinite(bounds), bounds, 100.0 * variances)
        plain = 0.5 * counts * bets**2 * bounds
        factor = counts / np.maximum(counts - 1, 1)
        inside = 0.5 * _rate(bets, bounds, factor) * (counts - 1) * variances
        outside = (
            0.5
            * _rate(bets, bounds, np.ones_like(bounds))
            * (counts * (1.0 + 1.0 / np.maximum(self.counts[arms], 1)) * variances)
        )
        steep = bets**2 * bounds
        inside = np.where((counts > 1) & (steep * factor < STEEPEST), inside, np.inf)
        outside = np.where((self.counts[arms] > 0) & (steep < STEEPEST), outside, np.inf)
        return np.stack(np.broadcast_arrays(plain, inside, outside))


Mgf = NoiseMgf | NormalMgf


def _rate(bets: FloatArray, bounds: FloatArray, factor: FloatArray) -> FloatArray:
    """(e^a - 1) / V for a = w^2 V factor."""
    steep = np.minimum(bets**2 * bounds * factor, STEEPEST)
    return np.asarray(np.expm1(steep) / bounds)


def normal_mgf_after(past: Observations, failure: float) -> NormalMgf:
    """What the next batch may assume, from everything told before it.

    Source: docs/certified-elimination.md, lines 19 and 22.
    """
    return NormalMgf(
        variance_bounds(past, 0.5 * failure),
        variance_bounds(past, joint_failure(failure, len(past.counts))),
        likely_variances(past),
        past.means,
        past.counts,
    )


def normal_mgf_of_all(past: Observations, failure: float) -> NormalMgf:
    """The same where no arm is fixed beforehand: the probability is that the bound of some arm is ever too small.

    Source: docs/certified-elimination.md, line 19; docs/questions.md, line 15.
    """
    bounds = variance_bounds(past, failure / len(past.counts))
    return NormalMgf(bounds, bounds, likely_variances(past), past.means, past.counts)


def joint_failure(failure: float, num_arms: int) -> float:
    """The probability that the bound of one arm is too small, where they are to hold for all at once: alpha / (2 K)."""
    return 0.5 * failure / num_arms


def squared_deviations(seen: Observations) -> FloatArray:
    """SS = sum (r - mean)^2 of each arm, rounded up, shape (K,), in squared reward units; 0 of fewer than two pulls."""
    return np.asarray(np.where(seen.counts > 1, seen.deviations + seen.rounding, 0.0))


def variance_bounds(seen: Observations, failure: float) -> FloatArray:
    """Upper bounds V on the variances of normal rewards, each valid at all times at once; shape (K,).

        V = SS / g,    g the smaller root of  g/2 - (k + nu/2) log(b + g/2) = log(1/failure) + c,    nu = pulls - 1

    c = -log Gamma(k + nu/2) + log Gamma(k) - k log b. If rewards of an arm are independent and normal with variance
    s^2, then with probability at least 1 - failure V >= s^2 after each pull, whatever decides how often it is pulled.
    Infinite where repeats are too few for a bound, or equal to within rounding.

    Source: docs/certified-elimination.md, line 19: Ville's inequality for the mixture of
        t^(nu/2) exp((1 - t) S / (2 s^2)) over t ~ Gamma(k, b), S the squared Helmert residuals (Robbins 1970).
    """
    within = squared_deviations(seen)
    freedom, places = np.unique(np.maximum(seen.counts - 1, 0), return_inverse=True)
    least = least_chi_squares(freedom, failure)[places]
    told = (least > 0.0) & (within > 2.0 * seen.rounding)
    return np.asarray(np.divide(within, least, out=np.full(len(within), np.inf), where=told))


def least_chi_squares(freedom: IntArray, failure: float) -> FloatArray:
    """g: how small chi-square sums ever are, all degrees of freedom together, but for that probability; 0: no bound.

    Cost: what was found for a failure is kept, since a study asks for the same degrees of freedom again and again.
    """
    known = _found_so_far(failure)
    asked = freedom.tolist()
    missing = sorted({one for one in asked if one not in known})
    if missing:
        if len(known) > MOST_KEPT:
            known.clear()
            missing = sorted(set(asked))
        found = _least_chi_squares(np.array(missing, np.int64), failure)
        known.update(zip(missing, found.tolist(), strict=True))
    return np.array([known[one] for one in asked])


@lru_cache(maxsize=64)
def _found_so_far(_failure: float) -> dict[int, float]:
    """Degrees of freedom -> g, to be filled; a memo."""
    return {}


def _least_chi_squares(freedom: IntArray, failure: float) -> FloatArray:
    """g by bisection, shape (p,)."""
    half, log_failure = 0.5 * freedom, math.log(failure)
    start = special.gammaln(SHAPE + half) - special.gammaln(SHAPE) + SHAPE * math.log(RATE) + log_failure

    def excess(log_g: FloatArray) -> FloatArray:
        """log of the mixture x failure: above 0 left of the smaller root."""
        g = 0.5 * np.exp(log_g)
        return np.asarray(g - (SHAPE + half) * np.log(RATE + g) + start)

    low, high = np.full(len(half), LEAST_LOG), np.log(2.0 * np.maximum(half + SHAPE - RATE, RATE))  # the minimum
    known = (freedom > 0) & (excess(low) > 0.0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        left = excess(middle) > 0.0
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return np.asarray(np.where(known, np.exp(low), 0.0))


def likely_variances(seen: Observations) -> FloatArray:
    """A guess of each arm's variance, shape (K,), in squared reward units: the repeats, drawn towards the common scale.

        (d0 s0^2 + SS) / (d0 + nu),    d0 from how far log(SS / nu) varies beyond what chance makes it vary

    For steering only.

    Source: Smyth (2004), moderated variances (limma): moments of the logarithm of chi-square variables.
    """
    within, freedom = squared_deviations(seen), np.maximum(seen.counts - 1, 0)
    known = (freedom > 0) & (within > 0.0)
    if not known.any():
        return np.ones(len(within))
    half = 0.5 * freedom[known]
    logs = np.log(within[known] / freedom[known]) - special.digamma(half) + np.log(half)
    spread = float(np.mean((logs - logs.mean()) ** 2) - np.mean(special.zeta(2.0, half))) if len(logs) > 1 else np.inf
    prior = _freedom_of(spread)
    common = math.exp(min(float(logs.mean()) + float(special.digamma(0.5 * prior)) - math.log(0.5 * prior), 690.0))
    return np.asarray((prior * common + within) / (prior + freedom))


def _freedom_of(spread: float) -> float:
    """Degrees of freedom d with trigamma(d / 2) = zeta(2, d / 2) = spread, within limits."""
    low, high = HEURISTIC_LEAST_PRIOR, HEURISTIC_MOST_PRIOR
    if spread <= float(special.zeta(2.0, 0.5 * high)):
        return high
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float(special.zeta(2.0, 0.5 * middle)) > spread else (low, middle)
    return low
