"""Blocks: how to bet where measurements share an effect, so that weights sum to 0 within each block and it cancels.

Bets are functions of the past and of the batch's counts; the proofs (docs/certified-elimination.md, lines 24 and 25)
hold for any.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.errors import ContractError
from surepick.estimators import Mgf
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.estimators.running_processes import MeanProcesses
from surepick.linalg.factorisations import weighted_range
from surepick.policies import tuning
from surepick.policies.sequential.state import OpenComparisons, anew, nobody

# --- How to bet.
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
            beside = {arm: np.array(flow[one.rivals]) for arm, flow in after.others_than(self.candidate).items()}
            beside |= one.left
            rest = sum((flow for flow in beside.values() if flow.any()), np.zeros(len(one.rivals)))
            beside[self.candidate] = np.where(rest == 0.0, one.taken, one.taken - rest)  # what is left of T
            after = after.with_flows(one.rivals, one.taken, beside, after.log_values[one.rivals] + gained)
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
    there = np.isin(seen.blocks, seen.blocks[seen.arms == goal.candidate])
    beside, arms = {*seen.arms[there].tolist()} - {goal.candidate}, [*processes.others_than(goal.candidate), control]
    others = [arm for arm in dict.fromkeys(arms) if arm in beside and arm is not None]
    plain = ~np.isin(goal.rivals, others)
    sets = [(plain, others)]
    for place in np.flatnonzero(~plain).tolist():  # the process of an arm that is among the others: without it there
        sets.append((np.arange(len(plain)) == place, [arm for arm in others if arm != goal.rivals[place]]))

    def placed(chosen: BoolArray, others: list[int]) -> BlockBet:
        """What the processes of the chosen rivals bet, all with the same other arms."""
        rivals, bets = goal.rivals[chosen], tuning.HEURISTIC_KAPPA * margins[chosen]
        found = equations(seen, goal.noise_scales, goal.candidate, rivals, others)
        taken, given = processes.taken[rivals], [processes.given_to(arm)[rivals] for arm in others]
        flows = np.array(given).reshape(len(others), len(rivals)).T  # F_j of the other arms, shape (m, p - 1)
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

    parts = tuple(placed(chosen, rest) for chosen, rest in sets if chosen.any())
    return BlockBets(goal.candidate, goal.noise_scales, parts)


def _held(processes: MeanProcesses, goal: OpenComparisons, rivals: IntArray) -> FloatArray:
    """The evidence of each rival as the guesses have it, but for what T is worth, shape (m,)."""
    centre = goal.candidate
    held = processes.log_values[rivals] - processes.given_to(centre)[rivals] * goal.scores[centre]
    for arm, flow in processes.others_than(centre).items():
        held = held - flow[rivals] * goal.scores[arm]
    return np.asarray(held + processes.taken[rivals] * goal.scores[rivals])


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
    """The equations of processes that weigh their own arm, neither the centre nor among the others, the centre and the
    same other arms.

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
    blocks = seen.in_blocks
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

    z, `white`, has a coordinate that is the same for every arm. Cost: O(entries r + (entries + arms pulled) r^2).
    """
    blocks = seen.in_blocks
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
