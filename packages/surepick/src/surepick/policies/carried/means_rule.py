"""Means and blocks: where to measure, and how to bet, for arms that share nothing.

Bets are functions of the past and of the batch's counts (docs/certified-elimination.md, line 1; of blocks lines 24 and
25): the proofs hold for any. `told` is what results do to the processes (line 11).

The process of arm j holds T_j on its own pulls and F_j(c) on those of candidates; to count against c it needs
F_j(c) = T_j and no flow elsewhere (`MeanProcesses`). A bet on a margin m over pulls with variances
q_j = s_j^2 / n_j and q_c = s_c^2 / n_c is best at

    T = Tbar + tau,   Tbar = (q_j T_j + q_c F_j(c)) / (q_j + q_c),   tau = kappa m / (q_j + q_c)

where it costs q_j (T - T_j)^2 / 2 + q_c (T - F_j(c))^2 / 2, and q_h F_j(h)^2 / 2 for each former candidate h.
"""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.errors import ContractError
from surepick.estimators import Mgf
from surepick.estimators.flows import BatchWeights
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.estimators.running_processes import MeanProcesses
from surepick.linalg.factorisations import weighted_range
from surepick.policies import tuning
from surepick.policies.sequential.state import OpenComparisons, RemainingPulls, anew, nobody, start_weights

HEURISTIC_FORMER = 0.2  # units of evidence that a plan spends on a flow to a former candidate


@record
class Bets:
    """What the processes will hold after a batch."""

    arms: IntArray  # whose processes bet, (m,)
    taken: FloatArray  # their T, (m,)
    given: dict[int, FloatArray]  # candidate -> their flow on its pulls, (m,)
    restarts: IntArray = field(default_factory=nobody)  # arms whose processes start anew before

    def told(self, processes: MeanProcesses, batch: Observations, noise_mgf: Mgf) -> MeanProcesses:
        """The processes after the results."""
        return anew(processes, self.restarts).after(self.arms, self.taken, self.given, batch, noise_mgf)


@record
class _Account:
    """What the processes of the rivals hold, as a goal sees it."""

    needs: FloatArray  # evidence that is still lacking if the flows were matched at T_j for nothing, (m,)
    apart: FloatArray  # T_j - F_j(c), (m,)
    former: dict[int, FloatArray]  # candidate -> flow on its pulls, (m,)


def _account(processes: MeanProcesses, goal: OpenComparisons) -> _Account:
    rivals, scores = goal.rivals, goal.scores
    taken, given = processes.taken[rivals], processes.given_to(goal.candidate)[rivals]
    former = {hub: flow[rivals] for hub, flow in processes.others_than(goal.candidate).items()}
    held = processes.log_values[rivals] + taken * scores[rivals] - given * scores[goal.candidate]
    for hub, flow in former.items():
        held = held - flow * scores[hub]
    lead = scores[goal.candidate] - scores[rivals]
    needs = goal.threshold - held - taken * (goal.epsilon + lead)
    return _Account(needs, taken - given, former)


def means_remaining(processes: MeanProcesses, goal: OpenComparisons) -> RemainingPulls:
    """The pulls that are predicted to reject all rivals, and the processes that had better start anew.

    With q = s_c^2 / n_c a rival needs n_j = s_j^2 / (b^2 / (2 a) - q) pulls, a = need + q D^2 / 2 + what former
    candidates cost, b = m - q D, D = T_j - F_j(c). The sum over j is a function of n_c alone: searched on a grid.

    An arm that needs a pull needs a whole one: shares of less would be rounded to none, again and again.

    Where pulls cost unlike amounts, n is money, s^2 is s^2 cost, and the sum is what all of it costs.

    Cost: O(K) for each of the grid's entries.
    """
    account = _account(processes, goal)
    variances = goal.priced_scales**2
    pull = np.ones(len(variances)) if goal.costs is None else goal.costs  # what a pull of each arm costs
    own, centre, margins = variances[goal.rivals], float(variances[goal.candidate]), goal.margins
    starts = processes.starts[goal.rivals]
    fresh_needs = goal.aimed(goal.threshold - start_weights(starts + 1))
    saved = 2.0 * own * (fresh_needs - np.maximum(account.needs, 0.0)) / margins**2
    fresh: BoolArray = (saved < 0.0) & (starts < tuning.MOST_STARTS)
    hubs: dict[int, float] = {}
    gone = () if goal.away is None else [hub for hub in account.former if goal.away[hub]]
    for hub in gone:  # its pulls are over: what is bet on them stays open for ever
        fresh |= (account.former[hub] != 0.0) & (starts < tuning.MOST_STARTS)
    for hub, flow in account.former.items():
        if hub in gone:
            continue
        loads = variances[hub] * flow**2 / (2.0 * HEURISTIC_FORMER)
        hubs[hub] = _former_pulls(fresh, loads, saved, starts, float(pull[hub]))
    needs = np.where(fresh, fresh_needs, goal.aimed(account.needs))
    apart = np.where(fresh, 0.0, account.apart)
    extra = np.zeros(len(needs))
    for hub, pulls in hubs.items():
        if pulls > 0.0:
            extra += np.where(fresh, 0.0, 0.5 * variances[hub] * account.former[hub] ** 2 / pulls)

    def rival_pulls(share: FloatArray) -> FloatArray:
        """Of each rival, for each entry of the grid: shape (n, m)."""
        lacking, room = needs + 0.5 * share * apart**2 + extra, margins - share * apart
        rate = room**2 / (2.0 * np.maximum(lacking, 1e-6)) - share
        able = (room > 0.0) & (rate > 0.0)
        found = np.divide(own, rate, out=np.full(rate.shape, np.inf), where=able)
        return np.asarray(np.where(lacking <= 0.0, 0.0, found))

    least = centre * float(np.max(2.0 * np.maximum(needs, 1e-3) / margins**2))
    low = math.log(max(least, 1e-3))
    uneven = 1.0 if goal.costs is None else max(float(own.mean()) / centre, 1.0)
    step = max(tuning.MOST_AT_ONCE // len(needs), 1)
    for span in (math.log(4.0 * math.sqrt(len(needs) * uneven) + 50.0), 30.0):
        grid = np.exp(np.linspace(low, low + span, tuning.HEURISTIC_GRID))
        shares = np.split((centre / grid)[:, None], range(step, len(grid), step))
        totals = grid + np.concatenate([rival_pulls(some).sum(axis=1) for some in shares])
        if np.isfinite(totals.min()):
            break
    best = float(grid[int(np.argmin(totals))])
    counts = np.zeros(len(variances))
    wanted = rival_pulls(np.array([[centre / best]]))[0]
    least_each = pull[goal.rivals]
    counts[goal.rivals] = np.where(np.isfinite(wanted) & (wanted > 0.0), np.maximum(wanted, least_each), 0.0)
    counts[goal.candidate] = max(best, float(pull[goal.candidate]))
    for hub, pulls in hubs.items():
        counts[hub] = max(counts[hub], pulls)
    nobody = np.empty(0, np.int64)
    return RemainingPulls(
        goal.candidate, len(variances), goal.pulls_for(counts), 0.0, goal.rivals[fresh], nobody, goal.costs
    )


def _former_pulls(fresh: BoolArray, loads: FloatArray, saved: FloatArray, starts: IntArray, pull: float) -> float:
    """Pulls of a former candidate that free the flows on it; `fresh` gets the rivals whose new start costs less."""
    loads = np.where(fresh, 0.0, loads)
    order = np.argsort(-loads)
    able = np.cumprod(starts[order] < tuning.MOST_STARTS).astype(bool)
    spent = np.where(fresh[order], 0.0, np.maximum(saved[order], 0.0))
    totals = np.append(loads[order], 0.0) + np.concatenate([[0.0], np.cumsum(np.where(able, spent, np.inf))])
    number = int(np.argmin(totals))
    fresh[order[:number]] = True
    load = float(np.append(loads[order], 0.0)[number])
    return max(load, pull) if load > 0.0 else 0.0  # without a pull the least flow stays for ever


def opening_bets(processes: MeanProcesses, margins: FloatArray, counts: IntArray, noise_scales: FloatArray) -> Bets:
    """The bets of a batch that serves no candidate: each arm's own pulls, w = -kappa margin / s^2."""
    arms = np.flatnonzero(counts)
    added = tuning.HEURISTIC_KAPPA * margins[arms] * counts[arms] / noise_scales[arms] ** 2
    return Bets(arms, processes.taken[arms] + added, {})


def place_bets(
    processes: MeanProcesses,
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the rivals' margins, (m,)
    counts: IntArray,  # n, the pulls of the batch, (K,)
    future: FloatArray,  # pulls that are planned after it, (K,)
    noise_mgf: Mgf,
    *,
    patient: bool = False,
) -> Bets:
    """The bets of a batch for a candidate.

    A flow is matched where that costs little, is predicted to settle the rival, or nothing more is planned; elsewhere,
    and in a part of a batch that has no pull of the candidate, it is spread over this batch and the planned ones in
    proportion to the pulls.
    """
    rivals, centre = goal.rivals, goal.candidate
    account, variances = _account(processes, goal), goal.noise_scales**2
    taken, given = processes.taken[rivals], processes.taken[rivals] - account.apart
    seen, later = counts[rivals] > 0, counts + future

    def best(pulls: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """(T, q_j, q_c) with that many pulls."""
        own = np.divide(variances[rivals], pulls[rivals], out=np.full(len(rivals), np.inf), where=pulls[rivals] > 0)
        hub = float(variances[centre] / pulls[centre])
        finite = np.where(np.isfinite(own), own, 1.0)
        target = (finite * taken + hub * given + tuning.HEURISTIC_KAPPA * margins) / (finite + hub)
        return np.where(np.isfinite(own), np.maximum(target, 0.0), taken), own, hub

    former = {one: flow for one, flow in account.former.items() if flow.any()}
    spread = best(later)[0] if later[centre] > 0 else taken
    own_share = np.divide(counts[rivals], later[rivals], out=np.zeros(len(rivals)), where=seen)
    if counts[centre] == 0:
        rest: dict[int, FloatArray] = {}
        for one in (hub for hub in former if counts[hub] > 0):
            cheap = 0.5 * variances[one] / counts[one] * former[one] ** 2 <= tuning.HEURISTIC_CLOSING
            rest[one] = np.where(cheap, 0.0, former[one] * (1.0 - float(counts[one] / later[one])))
        return Bets(rivals, taken + own_share * np.where(seen, spread - taken, 0.0), rest)
    now, _, hub = best(counts.astype(np.float64))
    unseen = [one for one in former if counts[one] == 0]
    stuck = np.zeros(len(rivals), bool)
    for one in unseen:
        stuck |= former[one] != 0.0
    matching = _matching_cost(account, former, counts, variances, rivals, hub)
    cost = expected_cost(now - taken, rivals, counts, noise_mgf) + expected_cost(
        now - given, np.full(len(rivals), centre), counts, noise_mgf
    )
    for one, flow in former.items():
        if counts[one] > 0:
            cost += expected_cost(flow, np.full(len(rivals), one), counts, noise_mgf)
    gain = (now - taken) * (goal.epsilon + goal.scores[centre] - goal.scores[rivals]) - cost
    settled = account.needs <= gain
    closing = ~stuck & ((matching <= tuning.HEURISTIC_CLOSING) | settled | (future.sum() <= 0.0))
    if patient and future.sum() > 0.0:
        closing &= seen
    centre_share = float(counts[centre] / later[centre])
    after = np.where(closing, np.where(seen, now, taken), taken + own_share * np.where(seen, spread - taken, 0.0))
    flows = {centre: np.where(closing, after, given + centre_share * (spread - given))}
    for one, flow in former.items():
        if counts[one] > 0:
            flows[one] = np.where(closing, 0.0, flow * (1.0 - float(counts[one] / later[one])))
    return Bets(rivals, after, flows)


def _matching_cost(
    account: _Account,
    former: dict[int, FloatArray],
    counts: IntArray,
    variances: FloatArray,
    rivals: IntArray,
    hub: float,
) -> FloatArray:
    """What it costs to match each rival's flow with this batch, betting nothing new."""
    own = np.divide(variances[rivals], counts[rivals], out=np.full(len(rivals), np.inf), where=counts[rivals] > 0)
    both = np.where(np.isfinite(own), own * hub / (np.where(np.isfinite(own), own, 1.0) + hub), hub)
    cost = 0.5 * account.apart**2 * both
    for one, flow in former.items():
        if counts[one] > 0:
            cost = cost + 0.5 * variances[one] / counts[one] * flow**2
    return np.asarray(cost)


def expected_cost(change: FloatArray, arms: IntArray, counts: IntArray, noise_mgf: Mgf) -> FloatArray:
    """What changing a flow by that much with the pulls of an arm is expected to cost."""
    pulls = counts[arms]
    each = np.divide(np.abs(change), pulls, out=np.zeros(pulls.shape), where=pulls > 0)
    return np.asarray(noise_mgf.expected(each, arms, pulls))


def weights_between(
    before: MeanProcesses | None, after: MeanProcesses, counts: IntArray, *, plain: bool
) -> BatchWeights:
    """The weights of a batch, from the flows before and after it: all pulls of an arm have the same, or `plain` is not.

    What a process that started anew held before counts no more.
    """
    pulled = np.flatnonzero(counts)
    kept = np.zeros(len(counts)) if before is None else np.where(before.starts == after.starts, 1.0, 0.0)

    def held(processes: MeanProcesses) -> FloatArray:
        flows = np.array([processes.given_to(arm) for arm in pulled.tolist()]).reshape(len(pulled), len(counts)).T
        flows[pulled, np.arange(len(pulled))] -= processes.taken[pulled]
        return flows

    now = held(after)
    change = now if before is None else now - kept[:, None] * held(before)
    arms = np.flatnonzero(change.any(axis=1))
    return BatchWeights(arms, pulled, counts[pulled], change[arms] / counts[pulled], now[arms], plain)


def integer_pulls(pulls: FloatArray, total: int, *, of: int | None = None) -> IntArray:
    """That many pulls in these proportions: the whole part of each share, and the largest rests one more."""
    shares = pulls / pulls.sum() * total
    counts: IntArray = np.floor(shares).astype(np.int64)
    rest = total - int(counts.sum())
    if rest > 0:
        counts[np.argsort(counts - shares, kind="stable")[:rest]] += 1
    if of is None or counts[of] > 0 or total < 2:
        return counts
    without = integer_pulls(pulls, total - 1)
    without[of] += 1
    return without


# --- How to bet where blocks share an effect: weights sum to 0 within each block, so that it cancels.
#
# The process of arm j holds T_j on its own pulls, and its flows F_j(c) on those of candidates sum to T_j at any time. A
# batch for c moves the flows on former candidates to c, and adds a bet. With the levels l of `BlockEquations`
#
#     l_j = -kappa m,   flows on former candidates as wanted,   T = T_j - (L l)_j
#
# is the best bet on a margin m: it gains T m and costs l' L l / 2. A control that blocks share takes part with flow 0:
# it tells the effects of blocks apart in which the candidate or the arm is missing.


@record
class BlockBet:
    """What the processes of some rivals bet, all beside the same other arms."""

    rivals: IntArray  # (m,)
    others: list[int]  # the p - 1 other arms
    levels: FloatArray  # l, (m, p)
    taken: FloatArray  # T after the batch, (m,)
    left: dict[int, FloatArray]  # other arm -> the flow that is left on it, (m,)


@record
class BlockBets:
    """What the processes bet on the blocks of a batch for a candidate."""

    candidate: int  # c
    scales: FloatArray  # s, (K,), in reward units
    parts: tuple[BlockBet, ...]  # each of other rivals
    restarts: IntArray = field(default_factory=nobody)  # arms whose processes start anew before

    def told(self, processes: MeanProcesses, batch: Observations, noise_mgf: Mgf) -> MeanProcesses:  # noqa: ARG002
        """The processes after the results."""
        after = anew(processes, self.restarts)
        for one in self.parts:
            if batch.blocks is None:
                raise ContractError("the results do not say of which blocks they are.")
            found = equations(batch.blocks, self.scales, self.candidate, one.rivals, one.others)
            gained = np.einsum("mp,mp->m", one.levels, found.totals) - found.cost(one.levels)
            after = _with(after, self.candidate, one.rivals, one.taken, one.left, gained)
        return after


def block_bets(
    processes: MeanProcesses,
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the rivals' margins, (m,)
    seen: BlockTotals,  # of which only the counts are looked at
    share: float,
    control: int | None,
) -> BlockBets:
    """The bets on a batch for a candidate."""
    others = _sharing(seen, goal.candidate, [*processes.others_than(goal.candidate), control])
    plain = ~np.isin(goal.rivals, others)
    sets = [(plain, others)]
    for place in np.flatnonzero(~plain).tolist():  # the process of an arm that is among the others: without it there
        sets.append((np.arange(len(plain)) == place, [arm for arm in others if arm != goal.rivals[place]]))
    parts = (_placed(processes, goal, chosen, margins, seen, share, rest) for chosen, rest in sets if chosen.any())
    return BlockBets(goal.candidate, goal.noise_scales, tuple(parts))


def _sharing(seen: BlockTotals, candidate: int, arms: list[int | None]) -> list[int]:
    """Those of the arms, each once, that are in a block with the candidate."""
    there = np.isin(seen.blocks, seen.blocks[seen.arms == candidate])
    beside = set(seen.arms[there].tolist()) - {candidate}
    return [arm for arm in dict.fromkeys(arms) if arm in beside and arm is not None]


def _placed(
    processes: MeanProcesses,
    goal: OpenComparisons,
    chosen: BoolArray,
    margins: FloatArray,
    seen: BlockTotals,
    share: float,
    others: list[int],
) -> BlockBet:
    """What the processes of the chosen rivals bet, all with the same other arms."""
    rivals, margins = goal.rivals[chosen], margins[chosen]
    found = equations(seen, goal.noise_scales, goal.candidate, rivals, others)
    taken, given = processes.taken[rivals], [processes.given_to(arm)[rivals] for arm in others]
    flows = np.array(given).reshape(len(others), len(rivals)).T  # F_j of the other arms, shape (m, p - 1)
    bets = tuning.HEURISTIC_KAPPA * margins
    closing = _levels(found, bets, -flows)
    ends = taken - found.flows(closing)[:, 0]
    lead = goal.epsilon + goal.scores[goal.candidate] - goal.scores[rivals]
    promised = _held(processes, goal, rivals) + ends * lead - found.cost(closing)
    cheap = found.cost(_levels(found, 0.0 * bets, -flows)) <= tuning.HEURISTIC_CLOSING
    closes = cheap | (promised >= goal.threshold) | (share >= 1.0)
    levels = np.where(closes[:, None], closing, _levels(found, bets, -share * flows))
    after = taken - found.flows(levels)[:, 0]
    sure = after >= 0.0
    levels = np.where(sure[:, None], levels, 0.0)
    kept = np.where(sure, np.where(closes, 0.0, 1.0 - share), 1.0)
    left = dict(zip(others, (kept[:, None] * flows).T, strict=True))
    return BlockBet(rivals, others, levels, np.where(sure, after, taken), left)


def _held(processes: MeanProcesses, goal: OpenComparisons, rivals: IntArray) -> FloatArray:
    """The evidence of each rival as the guesses have it, but for what T is worth, shape (m,)."""
    centre = goal.candidate
    held = processes.log_values[rivals] - processes.given_to(centre)[rivals] * goal.scores[centre]
    for arm, flow in processes.others_than(centre).items():
        held = held - flow[rivals] * goal.scores[arm]
    return np.asarray(held + processes.taken[rivals] * goal.scores[rivals])


def _with(
    processes: MeanProcesses,
    candidate: int,
    rivals: IntArray,
    taken: FloatArray,
    left: dict[int, FloatArray],
    gained: FloatArray,
) -> MeanProcesses:
    """The processes with these T, these flows on other arms, and the rest of T on the candidate."""
    others = {arm: np.array(flow[rivals]) for arm, flow in processes.others_than(candidate).items()} | left
    rest = sum((flow for flow in others.values() if flow.any()), np.zeros(len(rivals)))
    given = {**others, candidate: np.where(rest == 0.0, taken, taken - rest)}
    return processes.with_flows(rivals, taken, given, gained)


def _levels(found: BlockEquations, bets: FloatArray, wanted: FloatArray) -> FloatArray:
    """l with l_j = -bet and with the wanted changes of the flows on the other arms, shape (m, p)."""
    own = -bets[:, None]
    if wanted.shape[1] == 0:
        return own
    short = wanted - found.matrix[:, 1:, 0] * own
    rest = np.linalg.solve(found.matrix[:, 1:, 1:], short[:, :, None])[:, :, 0]
    return np.concatenate([own, rest], axis=1)


# --- Differences of arms as blocks see them, and rewards without what their blocks share.
#
# In block B an entry for arm x has n pulls with the mean y and the weight w = n / s_x^2. What all of a block's rewards
# share drops out of y - ybar, ybar the mean of the block's arms with their weights.
#
# Source: the intra-block analysis of incomplete blocks (Yates 1936; Rao 1947).

HEURISTIC_RIDGE_OF_EFFECT = 1e-6  # of its own information: blocks with no arm in common with others count as average
CUT = 1e-7  # singular values of the weighted rows below this share of the largest: what nobody has told


@record
class BlockEquations:
    """What the blocks of a batch say of some arms apart from a centre, for each of m processes.

        L = sum_B diag(w) - w w' / sum(w),     Q_x = sum_B w_x (y_x - ybar)        over the process's arms in B

    Weights u_x(B) = w_x (l_x - lbar_B) on the arms' pulls, for numbers l with l = 0 at the centre, have the sum 0 in
    each block. They make the flows L l, cost l' L l / 2, and their sum over the rewards is l' Q.
    """

    matrix: FloatArray  # L without the centre, (m, p, p): the process's own arm first, then its other arms
    totals: FloatArray  # Q, (m, p)

    def cost(self, levels: FloatArray) -> FloatArray:
        """l' L l / 2, shape (m,), rounded up."""
        return np.asarray(0.5 * ROUNDED_UP * np.einsum("mp,mpq,mq->m", levels, self.matrix, levels))

    def flows(self, levels: FloatArray) -> FloatArray:
        """L l, shape (m, p)."""
        return np.asarray(np.einsum("mpq,mq->mp", self.matrix, levels))


def equations(seen: BlockTotals, scales: FloatArray, centre: int, arms: IntArray, others: list[int]) -> BlockEquations:
    """The equations of processes that weigh their own arm, the centre and the same other arms.

    Args:
        arms: of the processes, shape (m,); neither the centre nor among the others.

    Cost: O(entries p^2).
    """
    num_arms, number, size = len(scales), seen.number, 1 + len(others)
    weights, means = seen.counts / scales[seen.arms] ** 2, seen.centred_means
    shared, said = np.zeros((number, 1 + len(others))), np.zeros((number, 1 + len(others)))
    for place, arm in enumerate((centre, *others)):
        at = seen.arms == arm
        shared[seen.blocks[at], place], said[seen.blocks[at], place] = weights[at], means[at]
    whole = shared.sum(axis=1)
    usual = np.divide((shared * said).sum(axis=1), whole, out=np.zeros(number), where=whole > 0.0)
    hubs, hub_means = shared[:, 1:], said[:, 1:]
    inverse = np.divide(1.0, whole, out=np.zeros(number), where=whole > 0.0)
    base = np.diag(hubs.sum(axis=0)) - (hubs * inverse[:, None]).T @ hubs
    matrix = np.zeros((len(arms), size, size))
    totals = np.zeros((len(arms), size))
    matrix[:, 1:, 1:], totals[:, 1:] = base, (hubs * (hub_means - usual[:, None])).sum(axis=0)
    place_of = np.full(num_arms, -1)
    place_of[arms] = np.arange(len(arms))
    own = np.flatnonzero((place_of[seen.arms] >= 0) & (whole[seen.blocks] > 0.0))
    row, block, weight = place_of[seen.arms[own]], seen.blocks[own], weights[own]
    joint, beside = weight / (whole[block] + weight), hubs[block]
    apart = means[own] - usual[block]
    np.add.at(matrix[:, 0, 0], row, joint * whole[block])
    np.add.at(totals[:, 0], row, joint * whole[block] * apart)
    np.add.at(matrix[:, 0, 1:], row, -joint[:, None] * beside)
    np.add.at(totals[:, 1:], row, -(joint * apart)[:, None] * beside)
    more = (joint * inverse[block])[:, None, None] * beside[:, :, None] * beside[:, None, :]
    np.add.at(matrix[:, 1:, 1:], row, more)
    matrix[:, 1:, 0] = matrix[:, 0, 1:]
    return BlockEquations(matrix, totals)


def without_effects(seen: Observations, past: Observations, scales: FloatArray) -> Observations:
    """A batch as it would have been if no block had an effect, as far as this can be told. For steering only.

    The effects are those of the least squares of the batch, in which each arm's earlier mean counts as a measurement.

    Cost: O(entries B + B^3) for B blocks.
    """
    blocks = BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks
    if len(blocks.arms) == 0:
        return Observations(seen.counts, seen.sums, seen.squares)
    names, place = np.unique(blocks.arms, return_inverse=True)
    number, weights, means = blocks.number, blocks.counts / scales[blocks.arms] ** 2, blocks.centred_means
    known = past.counts[names] / scales[names] ** 2
    whole = np.bincount(place, weights) + known
    centre = (np.bincount(place, weights * means) + known * past.means[names]) / whole
    table = np.zeros((number, len(names)))
    table[blocks.blocks, place] = weights
    information = blocks.per_block(weights)
    system = np.diag((1.0 + HEURISTIC_RIDGE_OF_EFFECT) * information) - (table / whole) @ table.T
    rest = np.linalg.solve(system, blocks.per_block(weights * (means - centre[place])))
    return _adjusted(seen, blocks, np.asarray(rest, np.float64))


def without_effects_on_vectors(
    seen: Observations, past: Observations, scales: FloatArray, white: FloatArray
) -> Observations:
    """`without_effects` for arms with vectors: the effects of the least squares of the batch and of all before it.

        minimise   sum_past n (mean_x - z_x'theta)^2 / s_x^2 + sum_batch n (y_x(B) - z_x'theta - e_B)^2 / s_x^2

    Args:
        white: z, with a coordinate that is the same for every arm, shape (K, r).

    Cost: O(entries r + (entries + arms pulled) r^2).
    """
    blocks = BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks
    if len(blocks.arms) == 0:
        return Observations(seen.counts, seen.sums, seen.squares)
    rows, weights, means = white[blocks.arms], blocks.counts / scales[blocks.arms] ** 2, blocks.centred_means
    known = np.flatnonzero(past.counts)
    inside = blocks.centred(np.column_stack([rows, means]), weights)
    joint = np.concatenate([inside, np.column_stack([white[known], past.means[known]])])
    shares = np.concatenate([weights, past.counts[known] / scales[known] ** 2])
    span = weighted_range(joint[:, :-1], shares, cut=CUT)
    slope = span.to_unit @ (span.to_unit.T @ (joint[:, :-1].T @ (shares * joint[:, -1])))
    return _adjusted(seen, blocks, blocks.per_block(weights * (means - rows @ slope)) / blocks.per_block(weights))


def _adjusted(seen: Observations, blocks: BlockTotals, rest: FloatArray) -> Observations:
    """The batch less its effects, which are the mean of each block's rewards and `rest`, shape (B,)."""
    means, num_arms = blocks.centred_means, len(seen.counts)
    effects = blocks.sums / blocks.counts - means + rest[blocks.blocks]
    adjusted = blocks.counts * (means - rest[blocks.blocks])
    sums: FloatArray = np.asarray(np.bincount(blocks.arms, adjusted, minlength=num_arms), np.float64)
    if seen.squares is None:
        return Observations(seen.counts, sums)
    moved = np.bincount(blocks.arms, effects * (blocks.counts * effects - 2.0 * blocks.sums), minlength=num_arms)
    least = np.divide(sums**2, seen.counts, out=np.zeros(num_arms), where=seen.counts > 0)
    return Observations(seen.counts, sums, np.maximum(seen.squares + moved, least))
