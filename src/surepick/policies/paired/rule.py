"""Where pairs within blocks are measured, and how bets on them are placed.

In a batch for the candidate c let arm j be in n_j of its n_c blocks. A bet of T >= 0 has the weights

    w = T / n_j on each r_j, with the sign turned,    beta w + (1 - beta) T / n_c on r_c beside it,
    (1 - beta) T / n_c on r_c elsewhere

so that c gives T in all, and r_j - beta r_c varies least. With beta = 1 only differences within blocks count. What was
bet against former candidates stays as it is: it says that j is not the best arm, and needs no matching.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.observations import ROUNDING, BlockTotals, Observations
from surepick.errors import ContractError
from surepick.estimators import NormalMgf
from surepick.estimators.mean_processes import MeanProcesses
from surepick.estimators.vector_processes import UNKNOWN
from surepick.policies.carried.rest import Goal, Rest, start_weights
from surepick.policies.paired.pairs import Pairs
from surepick.policies.paired.spread import Spread

HEURISTIC_KAPPA = 0.7  # of the bet that promises most
HEURISTIC_GRID = 40  # shares of the candidate that are tried
MOST_AT_ONCE = 1_000_000  # entries of what the grid gives the rivals
HEURISTIC_OF_CENTRE = 0.3  # of its variance: as much as comparisons within blocks leave of a candidate's luck
MOST_STARTS = 40
LEAST = 1e-300  # below 0: what evidence that exactly reaches the threshold says


def upper_bounds(processes: MeanProcesses, candidate: int, threshold: float) -> FloatArray:
    """U_j = (threshold - log value) / F_j(c), shape (K,); UNKNOWN without a flow.

    Where the log value has reached the threshold j is not the best arm, and the difference is divided by all that j
    took: by so much at least it is worse than the candidates on average, and U_j < 0 says that it is out.

    Args:
        candidate: c.
        threshold: log(1/delta).

    Source: docs/certified-elimination.md, line 28.
    """
    lack, flows = threshold - processes.log_values, processes.given_to(candidate)
    bounds = np.divide(lack, flows, out=np.full_like(lack, UNKNOWN), where=flows > 0.0)
    out = (lack <= 0.0) & (processes.taken > 0.0)
    bounds[out] = np.minimum(lack[out] / processes.taken[out], -LEAST)
    bounds[candidate] = 0.0
    return np.asarray(np.minimum(bounds, UNKNOWN))


def planned(processes: MeanProcesses, goal: Goal, spread: Spread) -> Rest:
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
    fresh = (held < anew) & (starts < MOST_STARTS)
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
        grid = np.exp(np.linspace(math.log(least), math.log(least) + span, HEURISTIC_GRID))
        step = max(MOST_AT_ONCE // len(rivals), 1)
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
    return Rest(goal.candidate, len(counts), counts, 0.0, rivals[fresh], np.empty(0, np.int64))


def told(
    processes: MeanProcesses,
    goal: Goal,
    margins: FloatArray,
    pairs: Pairs,
    centre: Observations,
    spread: Spread,
) -> MeanProcesses:
    """The processes after a batch for a candidate.

    Args:
        margins: guesses of the margins of the rivals, shape (m,).
        pairs: those of the batch; bets are functions of their numbers, never of their values.
        centre: the candidate's measurements in the batch, with squares, shape (1,).
        spread: what may be assumed, from before the batch.

    Source: docs/certified-elimination.md, line 27.
    """
    told_of = np.flatnonzero(pairs.counts[goal.rivals] > 0)
    rivals = goal.rivals[told_of]
    number, whole = pairs.counts[rivals], float(centre.counts[0])
    slopes = spread.slopes[rivals]
    varies = goal.noise_scales[rivals] ** 2 / number + (1.0 - slopes) ** 2 * spread.centre_variance / max(whole, 1.0)
    flows = HEURISTIC_KAPPA * margins[told_of] / varies
    own, everywhere = np.zeros(len(spread.slopes)), np.zeros(len(spread.slopes))
    own[rivals], everywhere[rivals] = flows / number, (1.0 - slopes) * flows / max(whole, 1.0)
    beside = spread.slopes * own + everywhere
    able = np.isfinite(spread.bounds_for(-own, beside)[rivals]) & (
        (everywhere[rivals] == 0.0) | math.isfinite(spread.centre_bound)
    )
    rivals, flows = rivals[able], flows[able]
    if len(rivals) == 0:
        return processes
    gained = _within_blocks(rivals, own[rivals], beside[rivals], pairs, spread)
    gained += _elsewhere(rivals, everywhere[rivals], pairs.at(rivals), centre, spread)
    given = processes.given_to(goal.candidate)[rivals] + flows
    return processes.with_flows(rivals, processes.taken[rivals] + flows, {goal.candidate: given}, gained)


def _within_blocks(rivals: IntArray, own: FloatArray, beside: FloatArray, pairs: Pairs, spread: Spread) -> FloatArray:
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


def _elsewhere(rivals: IntArray, weights: FloatArray, pairs: Pairs, centre: Observations, spread: Spread) -> FloatArray:
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


def _at(values: FloatArray, rivals: IntArray, spread: Spread) -> FloatArray:
    """The values of some arms as an array of all, shape (K,)."""
    found = np.zeros(len(spread.slopes))
    found[rivals] = values
    return found


def _squares(seen: Observations) -> FloatArray:
    if seen.squares is None:
        raise ContractError("rewards of blocks have squares.")
    return seen.squares


def controlled(past: Observations, scales: FloatArray, spread: Spread) -> tuple[Observations, FloatArray]:
    """(what arms would have got in blocks as good as all of the centre's, scales of that). For steering only.

        mean_j - beta_j (n / n_j) (mean of r_c beside j - mean of r_c),    n: blocks with both

    Args:
        past: everything told, shape (K,).
        scales: guesses of the standard deviations of the arms, shape (K,).
        spread: with the centre.

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


def without_effects(seen: BlockTotals, past: Observations) -> Observations:
    """A batch as it would have been if no block had an effect, as far as this can be told. For steering only.

    The effect of a block is how far its rewards lie above the earlier means of their arms, on average.

    Args:
        seen: the batch.
        past: everything told before, without effects.

    Returns:
        Counts, sums and sums of squares, shape (K,).
    """
    num_arms = len(past.counts)
    known = past.counts[seen.arms] > 0
    away = seen.sums / seen.counts - past.means[seen.arms]
    use = known if known.any() else np.ones(len(known), bool)
    number = seen.per_block(use.astype(np.float64))
    effects = np.divide(seen.per_block(np.where(use, away, 0.0)), number, out=np.zeros(seen.number), where=number > 0.0)
    if not known.any():
        effects -= effects.mean() if len(effects) else 0.0
    return pooled(seen, effects, num_arms)


def pooled(seen: BlockTotals, effects: FloatArray, num_arms: int) -> Observations:
    """What the arms of a batch got, less the effects of their blocks, shape (K,)."""
    left = seen.sums / seen.counts - effects[seen.blocks]
    return Observations(
        np.bincount(seen.arms, seen.counts, minlength=num_arms).astype(np.int64),
        np.asarray(np.bincount(seen.arms, seen.counts * left, minlength=num_arms), np.float64),
        np.asarray(np.bincount(seen.arms, seen.counts * left**2, minlength=num_arms), np.float64),
    )
