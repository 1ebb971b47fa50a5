"""One e-process an arm as a mixture over comparators and margins: nearly equal pulls of few arms, and no guessed bet.

    M_j = sum over parts (a, k) of pi_a q_k exp(sum w (r - h) - sum cost(w))         pi_a = 1 / (K - 1)

The part (a, k) of arm j bets on the margin lambda_k: in each batch it takes the flow T from the pulls of j, gives it to
those of the comparator a, and so is closed after every batch. Its weights are functions of the past and of the batch's
counts; the proof is docs/mixtures.md, lines 44 to 49.

Arrays have a row for each of n studies: one study has n = 1, and many go together (`policies.mixture_rules`).
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.estimators.noise_mgf import ROUNDED_UP, scatter_around, with_squares
from surepick.estimators.running_processes import UNKNOWN
from surepick.noise import Bernoulli, Noise, scales

PSEUDO = 2.0  # pulls of the pooled mean that are added to those of an arm
STEEPEST = 0.7  # of the weight at which a reward at the far end of the range would cost everything
LEAST_REACH = 1e-3  # of the range: the least distance of an end that is allowed for
STEPS = 8  # of Newton's method from above: each gives a bound that holds
LARGEST_EXPONENT = 600.0  # evidence beyond it says no more
ROUNDING = 1e-12  # of the terms of an exact cost
DRAWN, TWO_VALUED, RANGED = "drawn", "0 or 1", "in a range"  # what a pull's cost rests on


def margin_grid(noise: Noise, epsilon: float) -> FloatArray:
    """lambda_k = epsilon 2^k up to twice the largest scale, at least two of them, shape (S,), in reward units."""
    most = max(2.0 * float(np.max(noise.sigma)), 2.0 * epsilon)
    return np.asarray(epsilon * 2.0 ** np.arange(math.floor(math.log2(most / epsilon) + 1e-9) + 1))


def margin_weights(number: int) -> FloatArray:
    """log q_k, shape (S,): q_k proportional to 1 / (2 + how many margins of the grid are larger)."""
    shares = 1.0 / (1.0 + np.arange(number, 0, -1.0))
    return np.asarray(np.log(shares / shares.sum()))


@record
class PullCosts:
    """What a weight on a pull costs, and how much rewards vary: functions of what was told before a batch; (n, K)."""

    kind: str
    variances: FloatArray  # s^2 as bets see it: the declared one, or a guess
    centres: FloatArray  # b, in the range of the rewards
    low: FloatArray  # rewards are at least that, whichever way they are told, (n, 1)
    high: FloatArray  # ... and at most that

    @staticmethod
    def after(noise: Noise, past: Observations) -> PullCosts:
        """Those of the next batch of each study."""
        shape = past.counts.shape
        sigma = np.broadcast_to(scales(noise, shape[-1]), shape)
        if noise.support is None:
            ends = np.full((shape[0], 1), np.inf)
            return PullCosts(DRAWN, sigma**2, np.zeros(shape), -ends, ends)
        (low, high), total = _ends(noise.support, past), past.counts.sum(axis=1, keepdims=True)
        spread, counts = noise.support[1] - noise.support[0], past.counts + PSEUDO
        if isinstance(noise, Bernoulli):
            ones = np.abs(past.sums)
            chance = (ones + PSEUDO * (ones.sum(axis=1, keepdims=True) + 0.5) / (total + 1.0)) / counts
            # the centre is 0 as long as nobody can tell 0 and 1 from 0 and -1
            return PullCosts(TWO_VALUED, chance * (1.0 - chance), (low + high) * chance, low, high)
        middle = (past.sums.sum(axis=1, keepdims=True) + 0.5 * (low + high)) / (total + 1.0)
        scatter = scatter_around(with_squares(noise, past), past.means, spread)
        pooled = (scatter.sum(axis=1, keepdims=True) + sigma**2) / (total + 1.0)
        variances = (scatter + PSEUDO * pooled) / counts
        centres = np.clip((past.sums + PSEUDO * middle) / counts, low, high)
        return PullCosts(RANGED, variances, centres, low, high)

    def reach(self, *, up: bool) -> FloatArray:
        """How far a reward can be on the side where a weight loses, (n, K)."""
        least = LEAST_REACH * (self.high - self.low)
        return np.maximum(self.centres - self.low if up else self.high - self.centres, least)

    def gains(self, weights: FloatArray, seen: Observations, at: tuple[slice | None, ...], *, up: bool) -> FloatArray:
        """sum w r - sum cost(w) of all pulls of an arm, w = `weights` up or down; `at` spreads arms over them.

        Source: docs/mixtures.md, lines 47 and 48; docs/certified-elimination.md, line 3.
        """
        signed, pulls, sums = weights if up else -weights, seen.counts[at], seen.sums[at]
        if self.kind == DRAWN:
            return np.asarray(signed * sums - 0.5 * ROUNDED_UP * pulls * weights**2 * self.variances[at])
        low, high, centres = self.low, self.high, self.centres[at]
        if self.kind == TWO_VALUED:  # these rewards are 0 and 1, or 0 and -1: what they are, not what they might be
            turned = (seen.sums.sum(axis=1, keepdims=True) < 0.0) | (high <= 0.0)
            low, high = np.where(turned, -1.0, 0.0), np.where(turned, 0.0, 1.0)
        above, below = (np.log1p(signed * (end[:, :, None, None] - centres)) for end in (high, low))
        share = np.clip((seen.sums - low * seen.counts) / (high - low), 0.0, seen.counts)[at]
        terms = share * above, (pulls - share) * below, signed * centres * pulls
        found = sum(terms) - ROUNDING * sum(np.abs(term) for term in terms)
        if self.kind == RANGED:
            reach, scatter = self.reach(up=up)[at], scatter_around(seen, self.centres, float((high - low).max()))[at]
            rate = (-np.log1p(-weights * reach) - weights * reach) / reach**2
            chance = ((self.centres - low) / (high - low))[at]
            cheaper = rate * self.variances[at] < -(chance * above + (1.0 - chance) * below)
            found = np.where(cheaper, signed * sums - ROUNDED_UP * rate * scatter, found)
        return np.asarray(found)


def _ends(support: tuple[float, float], past: Observations) -> tuple[FloatArray, FloatArray]:
    """(lowest, highest) reward of each study, (n, 1): rewards may be told with their sign turned, and the ends are
    those of both ranges until the past says which one it is."""
    low, high = support
    slack = 1e-9 * past.counts * max(abs(low), abs(high))

    def fits(least: float, most: float) -> BoolArray:
        inside = (past.sums >= past.counts * least - slack) & (past.sums <= past.counts * most + slack)
        return np.asarray(inside.all(axis=1, keepdims=True))

    plain, turned = fits(low, high), fits(-high, -low)
    plain |= ~turned
    lowest = np.minimum(np.where(plain, low, np.inf), np.where(turned, -high, np.inf))
    return lowest, np.maximum(np.where(plain, high, -np.inf), np.where(turned, -low, -np.inf))


@record
class PairBets:
    """What all parts bet on a batch, before its results."""

    flows: FloatArray  # T of the part (a, k) of arm j, from the pulls of j to those of a, (n, K, K, S)
    counts: IntArray  # results of each arm, (n, K)
    costs: PullCosts

    @staticmethod
    def of(margins: FloatArray, counts: IntArray, costs: PullCosts) -> PairBets:
        """T = lambda P,  P = 1 / (s_j^2 / n_j + s_a^2 / n_a),  cut where a weight would be too steep; lambda (S,), or
        (n, 1, 1, S) where each study has its own."""
        pulled = counts > 0
        each = np.where(pulled, costs.variances / np.maximum(counts, 1), np.inf)
        precision = 1.0 / (each[:, :, None] + each[:, None, :])
        precision[:, np.arange(counts.shape[1]), np.arange(counts.shape[1])] = 0.0
        flows = precision[:, :, :, None] * margins
        if costs.kind != DRAWN:
            down, up = (np.where(pulled, counts * STEEPEST / costs.reach(up=way), 0.0) for way in (False, True))
            flows = np.minimum(flows, np.minimum(down[:, :, None], up[:, None, :])[:, :, :, None])
        return PairBets(flows, counts, costs)

    def gained(self, noise: Noise, seen: Observations) -> FloatArray:
        """sum w r - sum cost(w) of each part, (n, K, K, S)."""
        seen = with_squares(noise, seen) if self.costs.kind == RANGED else seen
        each = np.maximum(self.counts, 1)
        own, theirs = (slice(None), slice(None), None, None), (slice(None), None, slice(None), None)
        taken = self.costs.gains(self.flows / each[own], seen, own, up=False)
        given = self.costs.gains(self.flows / each[theirs], seen, theirs, up=True)
        return np.asarray(np.where(self.flows > 0.0, taken + given, 0.0))


def upper_bounds(
    log_values: FloatArray,  # L of each part, without its weight, (n, K, K, S)
    flows: FloatArray,  # F, (n, K, K, S)
    threshold: float,  # log(1/delta)
    rivals: BoolArray,  # the arms that count as comparators, (n, K)
) -> tuple[FloatArray, BoolArray]:
    """(U_jc, (n, K, K), in reward units; which arms j are beaten, (n, K)).

        U_jc = the m >= 0 with  sum over a, k of pi_a q_k exp(L + [a = c] m F) = 1/delta          UNKNOWN: no flow to c

    The sum is convex in m, so that Newton's method from above stays above: each step is a bound. A beaten arm has the
    m < 0 with m F for every comparator, for all c: by how much it is shown to be worse than some of them.

    Source: docs/mixtures.md, lines 45 and 46.
    """
    number, num_arms, _, width = log_values.shape
    others = rivals[:, None, :] & ~np.eye(num_arms, dtype=bool)
    held = np.minimum(log_values, LARGEST_EXPONENT) + (margin_weights(width) - math.log(max(num_arms - 1, 1)))
    held = np.where(others[..., None], held, -np.inf)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        each = np.exp(held - threshold).sum(axis=3) * (2.0 - ROUNDED_UP)  # of 1/delta, (n, K, K)
        whole = each.sum(axis=2)
        beaten = whole >= 1.0
        need = threshold + np.log(np.clip(1.0 - (whole[:, :, None] - each), 0.0, 1.0))
        bounds = _solved(held, flows, np.where(beaten[:, :, None], np.nan, need))
        bounds = np.where(np.isfinite(bounds), np.minimum(bounds * ROUNDED_UP, UNKNOWN), UNKNOWN)
        if beaten.any():
            at = np.nonzero(beaten)
            whole_held, whole_flows = (each_of.reshape(number, num_arms, -1)[at] for each_of in (held, flows))
            worse = _solved(whole_held, whole_flows, np.full(len(at[0]), threshold), below=True)
            bounds[at] = np.minimum(worse, -np.finfo(np.float64).tiny)[:, None]
    every = np.arange(num_arms)
    bounds[:, every, every] = 0.0
    return bounds, beaten


def averaged(
    log_values: FloatArray, flows: FloatArray, candidate: int, margins: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(F on each arm, (K, K), L, (K,)) of the mean of all parts of each arm's process, weighted for margins m_j, (K,).

        rho proportional to pi_a q_k exp(L + [a = c] m F),    F = sum rho F,    L = sum rho (L + log(pi_a q_k / rho))

    Source: docs/mixtures.md, line 50; of one study: log values and flows of shape (K, K, S).
    """
    num_arms, _, width = log_values.shape
    weights = margin_weights(width) - math.log(max(num_arms - 1, 1))
    moved = np.array(log_values + weights)
    moved[:, candidate] += margins[:, None] * flows[:, candidate]
    moved[np.arange(num_arms), np.arange(num_arms)] = -np.inf
    flat = moved.reshape(num_arms, -1)
    shares = np.exp(flat - flat.max(axis=1, keepdims=True))
    whole = shares.sum(axis=1, keepdims=True)
    shares = (shares / whole).reshape(moved.shape)
    found = (shares * flows).sum(axis=2)
    values = flat.max(axis=1) + np.log(whole[:, 0]) - margins * found[:, candidate]
    found[np.arange(num_arms), np.arange(num_arms)] = -found.sum(axis=1)
    return found, np.asarray(values - ROUNDING * (1.0 + np.abs(values)))


def evidence_for(log_values: FloatArray, flows: FloatArray, leader: IntArray, margin: float) -> FloatArray:
    """log E_jc(m) for the leader c of each study and one margin, (n, K), all comparators counted."""
    number, num_arms, _, width = log_values.shape
    moved = log_values + (margin_weights(width) - math.log(max(num_arms - 1, 1)))
    every, arms = np.arange(number), np.arange(num_arms)
    moved[every, :, leader] += margin * flows[every, :, leader]
    moved[:, arms, arms] = -np.inf
    flat = moved.reshape(number, num_arms, num_arms * width)
    top = flat.max(axis=2, keepdims=True)
    return np.asarray(top[..., 0] + np.log(np.exp(flat - top).sum(axis=2)))


def _solved(held: FloatArray, flows: FloatArray, need: FloatArray, *, below: bool = False) -> FloatArray:
    """The m at which log sum exp(held + m F), over the last axis, is what is needed, from above."""
    if below:
        found = np.zeros_like(need)
    else:
        steps = np.where(flows > 0.0, (need[..., None] - held) / np.where(flows > 0.0, flows, 1.0), np.inf)
        found = np.maximum(steps.min(axis=-1), 0.0)
    for _ in range(4 * STEPS if below else STEPS):
        moved = held + found[..., None] * flows
        top = moved.max(axis=-1, keepdims=True)
        parts = np.exp(moved - top)
        total = parts.sum(axis=-1)
        excess = top[..., 0] + np.log(total) - need
        step = excess * total / (parts * flows).sum(axis=-1)
        found = np.where(np.isfinite(step), found - np.maximum(step, 0.0), found)
    return found
