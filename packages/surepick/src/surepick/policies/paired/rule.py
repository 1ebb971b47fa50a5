"""Pairs within blocks: where they are measured, how bets are placed, and what results do to the processes.

docs/certified-elimination.md: what may be assumed of them is bounded (lines 19 and 20), a batch's factor has mean at
most 1 (line 27), and bets against former candidates stay (line 28).

In a batch for the candidate c let arm j be in n_j of its n_c blocks. A bet of T >= 0 has the weights

    w = T / n_j on each r_j, with the sign turned,    beta w + (1 - beta) T / n_c on r_c beside it,
    (1 - beta) T / n_c on r_c elsewhere

so that c gives T in all, and r_j - beta r_c varies least. With beta = 1 only differences within blocks count. What was
bet against former candidates stays as it is: it says that j is not the best arm, and needs no matching.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.observations import ROUNDING, BlockTotals, Observations
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.errors import ContractError
from surepick.estimators import NormalMgf
from surepick.estimators.noise_mgf import likely_variances, variance_bounds
from surepick.estimators.pairs import ArmPairs, alone
from surepick.estimators.running_processes import UNKNOWN, MeanProcesses
from surepick.policies import tuning
from surepick.policies.sequential.state import OpenComparisons, RemainingPulls, anew, start_weights

# --- How much rewards vary beside those of a candidate in the same block: bounds that hold, and guesses that steer.

HEURISTIC_PRIOR = 10.0  # blocks that the correlation which arms have in common counts for


@frozen
class PairSpread:
    """What may be assumed of the blocks of the next batch for a candidate c, fixed before their first reward."""

    difference_bounds: FloatArray  # V of d = r_j - r_c, (K,), in squared reward units; infinite where there is none
    bounds: FloatArray  # V of r_j, (K,); infinite where blocks may be off by any amount
    centre_bound: float  # V of r_c; infinite likewise
    slopes: FloatArray  # beta, by how much r_j moves with r_c, (K,), in [0, 1]; 1 where blocks may be off by any amount
    variances: FloatArray  # guesses of the variance of r_j - beta r_c, (K,)
    centre_variance: float  # guess of that of r_c
    before: ArmPairs  # the pairs on which all this rests

    def bounds_for(self, own: FloatArray, centre: FloatArray) -> FloatArray:
        """Bounds on the variance of own r_j + centre r_c, shape (K,): Minkowski's inequality, in both forms.

        sd(u r_j + v r_c) <= |u| sd(d) + |u + v| sd(r_c),    |u| sd(r_j) + |v| sd(r_c)
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


def spread_of_differences(before: ArmPairs, failure: float) -> PairSpread:
    """Where blocks may be off by any amount: differences alone count.

    Source: docs/certified-elimination.md, lines 19 and 27.
    """
    seen, num_arms = before.differences, len(before.counts)
    bounds = variance_bounds(seen, failure / num_arms)
    nothing, ones = np.full(num_arms, np.inf), np.ones(num_arms)
    return PairSpread(bounds, nothing, np.inf, ones, likely_variances(seen), 0.0, before)


def spread_of_streams(before: ArmPairs, past: Observations, failure: float) -> PairSpread:
    """Where blocks share random numbers, and nothing else: rewards count by themselves too.

    The slope of an arm is drawn towards rho s_j / s_c, rho being the correlation that arms have in common.
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
    return PairSpread(
        variance_bounds(seen, 0.5 * failure / num_arms),
        variance_bounds(past, 0.25 * failure),
        float(variance_bounds(past, 0.25 * failure / num_arms)[centre]),
        slopes,
        left,
        hub,
        before,
    )


HEURISTIC_OF_CENTRE = 0.3  # of its variance: as much as comparisons within blocks leave of a candidate's luck
LEAST = 1e-300  # below 0: what evidence that exactly reaches the threshold says


def upper_bounds(processes: MeanProcesses, candidate: int, threshold: float) -> FloatArray:
    """U_j = (threshold - log value) / F_j(c), shape (K,); UNKNOWN without a flow.

    Where the log value has reached the threshold j is not the best arm, and the difference is divided by all that j
    took: by so much at least it is worse than the candidates on average, and U_j < 0 says that it is out.

    Source: docs/certified-elimination.md, line 28.
    """
    lack, flows = threshold - processes.log_values, processes.given_to(candidate)
    bounds = np.divide(lack, flows, out=np.full_like(lack, UNKNOWN), where=flows > 0.0)
    out = (lack <= 0.0) & (processes.taken > 0.0)
    bounds[out] = np.minimum(lack[out] / processes.taken[out], -LEAST)
    bounds[candidate] = 0.0
    return np.asarray(np.minimum(bounds, UNKNOWN))


def pairs_remaining(processes: MeanProcesses, goal: OpenComparisons, spread: PairSpread) -> RemainingPulls:
    """The pulls that are predicted to reject all rivals, and the processes that had better start anew.

        need_j = log(1/delta) - log value - epsilon F_j(c)
        n_j = v_j / (m_j^2 / (2 need_j) - (1 - beta_j)^2 s_c^2 / n_c)

    v_j is the variance of r_j - beta_j r_c. The candidate is in at least as many blocks as any rival; the sum is a
    function of n_c, searched on a grid.

    Cost: O(K) for each of the grid's entries.
    """
    rivals, margins = goal.rivals, goal.margins
    held = processes.log_values[rivals] + goal.epsilon * processes.given_to(goal.candidate)[rivals]
    starts = processes.starts[rivals]
    anew = start_weights(starts + 1)
    fresh = (held < anew) & (starts < tuning.MOST_STARTS)
    needs = np.maximum(goal.aimed(goal.threshold - np.where(fresh, anew, held)), 1e-6)
    own = goal.noise_scales[rivals] ** 2
    hub = (1.0 - spread.slopes[rivals]) ** 2 * spread.centre_variance
    rates = margins**2 / (2.0 * needs)

    def rival_pulls(centres: FloatArray) -> FloatArray:
        left = rates - hub / centres[:, None]
        pulls = np.divide(own, left, out=np.full_like(left, np.inf), where=left > 0.0)
        return np.asarray(np.maximum(pulls, 1.0))

    least = max(float(np.max(hub / rates)), float(np.max(own / rates)), 1.0)
    best, total = least, math.inf
    for span in (math.log(4.0 * math.sqrt(len(rivals)) + 50.0), 30.0):
        grid = np.exp(np.linspace(math.log(least), math.log(least) + span, tuning.HEURISTIC_GRID))
        step = max(tuning.MOST_AT_ONCE // len(rivals), 1)
        for centres in (grid[first : first + step] for first in range(0, len(grid), step)):
            each = rival_pulls(centres)
            most = np.maximum(centres, each.max(axis=1))
            totals = most + each.sum(axis=1)
            place = int(np.argmin(totals))
            if totals[place] < total:
                best, total = float(most[place]), float(totals[place])
        if math.isfinite(total):
            break
    counts = np.zeros(len(goal.scores))
    counts[rivals] = rival_pulls(np.array([best]))[0]
    counts[goal.candidate] = max(best, float(counts.max()))
    return RemainingPulls(goal.candidate, len(counts), counts, 0.0, rivals[fresh], np.empty(0, np.int64))


@record
class PairBets:
    """What the processes bet on the blocks of a batch for a candidate.

    Source: docs/certified-elimination.md, line 27.
    """

    candidate: int  # c
    rivals: IntArray  # whose processes bet, (m,)
    flows: FloatArray  # T of the batch, (m,)
    own: FloatArray  # T / n, (m,)
    everywhere: FloatArray  # the weight on each of the candidate's pulls, beside the rival or not, (m,)
    beside: FloatArray  # that on those beside the rival, (m,)
    spread: PairSpread
    restarts: IntArray  # arms whose processes start anew before

    def told(self, processes: MeanProcesses, blocks: BlockTotals, pairs: ArmPairs) -> MeanProcesses:
        """The processes after the results."""
        processes, rivals = anew(processes, self.restarts), self.rivals
        if len(rivals) == 0:
            return processes
        number, total, squares = alone(blocks, self.candidate)
        centre = Observations(np.array([number]), np.array([total]), np.array([squares]))
        gained = _within_blocks(rivals, self.own, self.beside, pairs, self.spread)
        gained += _elsewhere(rivals, self.everywhere, pairs.at(rivals), centre, self.spread)
        given = processes.given_to(self.candidate)[rivals] + self.flows
        taken, values = processes.taken[rivals] + self.flows, processes.log_values[rivals] + gained
        return processes.with_flows(rivals, taken, {self.candidate: given}, values)


def pair_bets(
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the margins of the rivals, (m,)
    counts: IntArray,  # blocks of the batch that have both, (K,)
    whole: int,  # those that have the candidate
    spread: PairSpread,
    restarts: IntArray,
) -> PairBets:
    """The bets on a batch for a candidate."""
    told_of = np.flatnonzero(counts[goal.rivals] > 0)
    rivals = goal.rivals[told_of]
    number, most = counts[rivals], max(float(whole), 1.0)
    slopes = spread.slopes[rivals]
    varies = goal.noise_scales[rivals] ** 2 / number + (1.0 - slopes) ** 2 * spread.centre_variance / most
    flows = tuning.HEURISTIC_KAPPA * margins[told_of] / varies
    own, everywhere = np.zeros(len(spread.slopes)), np.zeros(len(spread.slopes))
    own[rivals], everywhere[rivals] = flows / number, (1.0 - slopes) * flows / most
    beside = spread.slopes * own + everywhere
    able = np.isfinite(spread.bounds_for(-own, beside)[rivals]) & (
        (everywhere[rivals] == 0.0) | math.isfinite(spread.centre_bound)
    )
    rivals, flows = rivals[able], flows[able]
    weights = (own[rivals], everywhere[rivals], beside[rivals])
    return PairBets(goal.candidate, rivals, flows, *weights, spread, restarts)


def _within_blocks(
    rivals: IntArray, own: FloatArray, beside: FloatArray, pairs: ArmPairs, spread: PairSpread
) -> FloatArray:
    """sum y - cost, y = beside r_c - own r_j, over the blocks that have both; shape (m,)."""
    here, before = pairs.at(rivals), spread.before.at(rivals)
    sums, within, size = here.totals(-own, beside - own)
    earlier = np.maximum(before.counts, 1)
    centres = (-own * before.sums + (beside - own) * before.centre_sums) / earlier
    bounds = spread.bounds_for(-_at(own, rivals, spread), _at(beside, rivals, spread))[rivals]
    everywhere = beside - spread.slopes[rivals] * own
    variances = own**2 * spread.variances[rivals] + everywhere**2 * spread.centre_variance
    squares = within + ROUNDING * size + sums**2 / here.counts
    seen = Observations(here.counts, sums, squares)
    return sums - _cost(NormalMgf(bounds, bounds, variances, centres, before.counts), seen)


def _elsewhere(
    rivals: IntArray, weights: FloatArray, pairs: ArmPairs, centre: Observations, spread: PairSpread
) -> FloatArray:
    """sum y - cost, y = weight r_c, over the candidate's blocks without the arm; shape (m,), 0 where there are none."""
    rest = Observations(
        centre.counts[0] - pairs.counts, centre.sums[0] - pairs.centre_sums, _squares(centre)[0] - pairs.centre_squares
    )
    used = (rest.counts > 0) & (weights > 0.0)
    if not used.any():
        return np.zeros(len(rivals))
    before = spread.before.at(rivals)
    bounds = weights**2 * (spread.centre_bound if math.isfinite(spread.centre_bound) else 0.0)
    centres = weights * before.centre_sums / np.maximum(before.counts, 1)
    squares = weights**2 * (np.maximum(_squares(rest), 0.0) + ROUNDING * _squares(centre)[0])
    seen = Observations(np.where(used, rest.counts, 0), np.where(used, weights * rest.sums, 0.0), squares)
    bounds = np.where(used, bounds, 1.0)
    variances = np.where(used, weights**2 * spread.centre_variance, 1.0)
    gained = seen.sums - _cost(NormalMgf(bounds, bounds, variances, centres, before.counts), seen)
    return np.asarray(np.where(used, gained, 0.0))


def _cost(mgf: NormalMgf, seen: Observations) -> FloatArray:
    """What weights of 1 on these numbers cost, shape (m,)."""
    places = np.arange(len(seen.counts))
    return mgf.total(np.ones(len(places)), places, seen)


def _at(values: FloatArray, rivals: IntArray, spread: PairSpread) -> FloatArray:
    """The values of some arms as an array of all, shape (K,)."""
    found = np.zeros(len(spread.slopes))
    found[rivals] = values
    return found


def _squares(seen: Observations) -> FloatArray:
    if seen.squares is None:
        raise ContractError("rewards of blocks have squares.")
    return seen.squares


def controlled(past: Observations, scales: FloatArray, spread: PairSpread) -> tuple[Observations, FloatArray]:
    """(what arms would have got in blocks as good as all of the centre's, scales of that). For steering only.

        mean_j - beta_j (n / n_j) (mean of r_c beside j - mean of r_c),    n: blocks with both

    Source: control variates with an estimated mean.
    """
    pairs, centre = spread.before, spread.before.centre
    share = np.divide(pairs.counts, past.counts, out=np.zeros(len(scales)), where=past.counts > 0)
    beside = np.divide(pairs.centre_sums, pairs.counts, out=np.zeros(len(scales)), where=pairs.counts > 0)
    luck = np.where(pairs.counts > 0, beside - past.means[centre], 0.0)
    means = past.means - spread.slopes * share * luck
    variances = share * spread.variances + (1.0 - share) * scales**2
    variances[centre] = HEURISTIC_OF_CENTRE * scales[centre] ** 2
    return Observations(past.counts, past.counts * means), np.sqrt(variances)
