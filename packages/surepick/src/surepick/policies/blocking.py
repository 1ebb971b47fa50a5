"""What a study says of its blocks, and plans that fill them. Validity rests on none of the latter."""

from typing import Any

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Blocking
from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.linalg.factorisations import weighted_range
from surepick.policies.base import Problem
from surepick.text import did_you_mean, quoted


def blocking_of(
    problem: Problem, name: str | None, size: int | None, control: str | None, once: bool
) -> Blocking | None:
    """What is said of blocks; None where measurements are independent."""
    if name is None:
        return None
    if control is None:
        return Blocking(name, size, None, once)
    ids = () if problem.arms is None else problem.arms.ids
    if control not in ids:
        meant = did_you_mean(control, ids)
        raise InvalidInput(f"control is {quoted(control)}, which is not the id of a candidate of this study.{meant}")
    return Blocking(name, size, ids.index(control), once)


def check_idle(policy: Any, *names: str) -> None:
    """Refuse options of blocks where there are none."""
    for name in (each for each in names if policy.blocks is None and getattr(policy, each) is not None):
        raise InvalidInput(f"{name} has a meaning only with blocks; say what a block is called, e.g. blocks='day'.")


def shared_effect(name: str) -> str:
    """The assumption, as a sentence."""
    return (
        f"Measurements of the same {name} may all be off by the same amount, whatever it is; it is fixed before their "
        f"own noise. Which results a {name} has does not depend on their values."
    )


def price_of_blocks(name: str) -> str:
    """What a user should know before the first pull, as a sentence."""
    return (
        f"Measurements are compared within a {name} only. Where no {name} has an effect of its own, this may take more "
        "of them: a forecast says how many."
    )


def filled_blocks(counts: IntArray, blocking: Blocking | None, centre: int | None, *, exact: bool) -> IntArray:
    """The pulls of a plan, with those that give each of its blocks the centre and the control."""
    if blocking is None:
        return counts
    shared = list({arm: None for arm in (centre, blocking.control) if arm is not None})
    if not shared:
        return counts
    found, number = np.array(counts), 0
    while number < blocking.number_for(found):
        number = blocking.number_for(found)
        if number > 1 or blocking.control is not None:
            found[shared] = np.maximum(found[shared], number)
        surplus = int(found.sum() - counts.sum()) if exact else 0
        for _ in range(surplus):
            loses = np.array(found)
            loses[shared] -= number
            found[int(np.argmax(loses))] -= 1
    return found


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
