"""Means and vectors: one e-process an arm, carried on, whatever candidates were tried.

For a fixed arm j and weights w fixed before each reward

    M_j = exp(sum w (r - h_x) - sum cost(w))

is a non-negative supermartingale (docs/certified-elimination.md, line 11), new starts included (line 13), and if
h_j - h_c > m then, for every c and every T >= 0 chosen afterwards (line 12),

    log M_j >= sum w r - sum cost(w) + T m - penalty_jc(T)

So h_j - h_c <= U_jc, or M_j has reached 1/delta (line 14); the process of the best arm alone can do harm (line 15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.linalg import norm

from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Embedding
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.estimators.contrast_weights import BLOCK_ENTRIES, rows_at_once
from surepick.estimators.noise_mgf import ROUNDED_UP, Mgf
from surepick.linalg.factorisations import row_norms
from surepick.linalg.rows import FEW_THREADS, MOST_THREADS, copied, each_row_block, evenly, row_blocks

UNKNOWN = 1e300  # a bound where nothing is known: finite, so that a state can be stored
LEAST_FLOW = 1e-200
VECTOR_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


@record
class ArmVectors:
    """The vectors of an embedding, and whitened coordinates in which flows are kept."""

    embedded: Embedding  # psi_d, X, (K, d), and gamma
    white: FloatArray  # Z, (K, r), Z'Z = K I
    back: FloatArray  # B = Z'X / K with X = Z B up to `missed`, (r, d)
    missed: float  # largest ||x - z B|| of an arm, rounded up
    norm_bound: float  # C
    longest: float  # largest ||x|| of an arm
    lengths: FloatArray  # ||z||, (K,)

    @property
    def widest(self) -> float:
        """The largest ||z|| of an arm."""
        return float(self.lengths.max(initial=0.0))

    @staticmethod
    def of(embedded: Embedding, white: FloatArray, norm_bound: float) -> ArmVectors:
        """Those of an embedding. Cost: O(K d r)."""
        back = white.T @ embedded.features / len(white)
        lengths = row_norms(white)
        longest, widest = (float(each.max(initial=0.0)) for each in (row_norms(embedded.features), lengths))
        rounding = VECTOR_ROUNDING * (len(back) + embedded.dim) * (longest + widest * float(norm(back)))
        missed = max(
            (float(row_norms(embedded.features[rows] - white[rows] @ back).max()) for rows in row_blocks(len(white))),
            default=0.0,
        )
        return ArmVectors(embedded, white, back, missed + rounding, norm_bound, longest, lengths)


@frozen
class Flow:
    """What the processes hold on the pulls of an arm that was a candidate."""

    arm: int  # the candidate
    flows: FloatArray  # F_j(candidate), (K,)


def given_to(given: tuple[Flow, ...], candidate: int, num_arms: int) -> FloatArray:
    """F_j(candidate), shape (K,)."""
    return next((one.flows for one in given if one.arm == candidate), np.zeros(num_arms))


@frozen
class VectorProcesses:
    """The processes of arms with vectors: F_j(x) is the sum of the weights of the pulls of x, G_j = sum_x F_j(x) x.

    penalty = C ||G_j - T (x_c - x_j)|| + gamma sum_x |F_j(x) - T 1{x = c} + T 1{x = j}|
    """

    dim: int  # of the embedding in whose coordinates the flows are kept; 0 before there are any
    log_values: FloatArray  # (K,)
    starts: IntArray  # (K,)
    flows: FloatArray  # sum_x F_j(x) z_x in whitened coordinates, (K, r)
    lengths: FloatArray  # sum over the batches of sum_x |F_j(x)|, (K,)
    own: FloatArray  # F_j(j), (K,)
    given: tuple[Flow, ...]  # F_j(c) of the batches since c became a candidate, for each candidate
    terms: int = 0  # summands behind a flow, for the bound on its rounding
    structured: ClassVar[Literal[True]] = True

    @staticmethod
    def started(vectors: ArmVectors, log_weight: float) -> VectorProcesses:
        """No evidence yet."""
        num_arms, rank = vectors.white.shape
        nothing, starts = np.zeros(num_arms), np.ones(num_arms, np.int64)
        values = np.full(num_arms, log_weight)
        flows = np.zeros((num_arms, rank))
        flows.flags.writeable = False  # and so it is not copied
        return VectorProcesses(vectors.embedded.dim, values, starts, flows, nothing, nothing, ())

    @property
    def begun(self) -> bool:
        """Whether some process holds a flow."""
        return bool(self.lengths.any())

    def restarted(self, arms: IntArray, log_weights: FloatArray) -> VectorProcesses:
        """The processes with a new start of some arms, each with its weight; what they held counts no more."""
        return _restarted(self, arms, log_weights, "flows", "lengths", "own")

    def after(
        self,
        vectors: ArmVectors,
        candidate: int,
        arms: IntArray,  # the m arms whose processes bet, ascending, (m,)
        directions: FloatArray,  # v in whitened coordinates, from before the batch's first reward, (m, r)
        seen: Observations,
        noise_scales: FloatArray,  # s, (K,), from before the batch
        noise_mgf: Mgf,
    ) -> VectorProcesses:
        """The processes after a batch in which arm j weighs a pull of x by w = v_j' z_x / s_x^2."""
        pulled = np.flatnonzero(seen.counts)
        if len(pulled) == 0 or len(arms) == 0:
            return self
        counts, towards = seen.counts[pulled], vectors.white[pulled].T / noise_scales[pulled] ** 2

        def told(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
            cost = np.sum(noise_mgf.total(np.abs(weights), pulled, seen), axis=1)
            return weights * counts, weights @ seen.sums[pulled] - cost

        return self._with(vectors, candidate, arms, directions, towards, pulled, told)

    def after_blocks(
        self,
        vectors: ArmVectors,
        candidate: int,
        arms: IntArray,
        directions: FloatArray,
        seen: BlockTotals,
        scales: FloatArray,  # s, sub-Gaussian, (K,), in reward units; the other arguments are those of `after`
    ) -> VectorProcesses:
        """The processes after a batch in blocks: a pull of x in B has the weight w = v_j' (z_x - zbar_B) / s_x^2, whose
        sum over B is 0 with zbar_B the mean of the pulls in B with the weights 1 / s^2.

        Source: docs/certified-elimination.md, lines 24 and 26.
        """
        order = np.argsort(seen.arms, kind="stable")
        entries, counts = seen.arms[order], seen.counts[order]
        if len(entries) == 0 or len(arms) == 0:
            return self
        precisions = 1.0 / scales[seen.arms] ** 2
        towards = (seen.centred(vectors.white[seen.arms], seen.counts * precisions) * precisions[:, None])[order].T
        sums, spent = counts * seen.centred_means[order], 0.5 * ROUNDED_UP * counts * scales[entries] ** 2
        starts = np.flatnonzero(np.diff(entries, prepend=-1))

        def told(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
            flows = np.asarray(np.add.reduceat(weights * counts, starts, axis=1))
            return flows, weights @ sums - weights**2 @ spent

        return self._with(vectors, candidate, arms, directions, towards, entries[starts], told)

    def _with(
        self,
        vectors: ArmVectors,
        candidate: int,
        arms: IntArray,
        directions: FloatArray,
        towards: FloatArray,
        pulled: IntArray,
        told: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    ) -> VectorProcesses:
        """The processes of m arms after a batch."""
        white, flows = vectors.white[pulled], copied(self.flows)
        log_values, lengths, own = (np.array(column) for column in (self.log_values, self.lengths, self.own))
        named = dict.fromkeys([*(one.arm for one in self.given), candidate])
        given = {arm: np.array(given_to(self.given, arm, len(own))) for arm in named}
        place = np.minimum(np.searchsorted(pulled, arms), len(pulled) - 1)
        few, width = len(arms) * towards.shape[1] <= BLOCK_ENTRIES, towards.shape[1]
        step = len(arms) if few else rows_at_once(width)

        def tell(block: slice) -> None:
            rows = arms[block]
            flow, gained = told(directions[block] @ towards)
            log_values[rows] += gained
            flows[rows] += flow @ white
            lengths[rows] += np.sum(np.abs(flow), axis=1)
            at = place[block]
            own[rows] += np.where(pulled[at] == rows, flow[np.arange(len(rows)), at], 0.0)
            for arm, column in given.items():
                column[rows] += np.sum(flow[:, pulled == arm], axis=1)

        each_row_block(tell, len(arms), step, most=FEW_THREADS if few else MOST_THREADS)
        for made_here in (log_values, flows, lengths, own, *given.values()):
            made_here.flags.writeable = False  # and so it is not copied
        return replace(
            self,
            log_values=log_values,
            flows=flows,
            lengths=lengths,
            own=own,
            given=tuple(Flow(arm, column) for arm, column in given.items()),
            terms=self.terms + towards.shape[1] + 1,
        )

    def upper_bounds(
        self, vectors: ArmVectors, candidate: int, threshold: FloatArray | float, arms: IntArray | None = None
    ) -> FloatArray:
        """U_j = min over T of (threshold - log value + penalty(T)) / T, and its limit for large T; shape (K,).

        The T of the smallest value without gamma is known in closed form; any T is valid, so that gamma and rounding
        are added there, and at the T that balances the flow best. What is infinite is UNKNOWN, and what is not asked
        for: all but `arms`, where these are given.

        Cost: O(K d r) time; memory for a block of arms.
        """
        bounds = np.full(len(self.lengths), UNKNOWN)

        def bound(block: slice) -> None:
            rows = block if arms is None else evenly(arms[block])
            each = threshold if isinstance(threshold, float) else threshold[rows]
            bounds[rows] = self._bounds_of(vectors, candidate, each, rows)

        each_row_block(bound, len(bounds) if arms is None else len(arms))
        bounds[candidate] = 0.0
        return np.asarray(np.clip(bounds, -UNKNOWN, UNKNOWN))

    def changed_since(self, before: VectorProcesses) -> IntArray:
        """The arms whose processes hold something else than before, ascending; all after another dimension."""
        if self is before:
            return np.empty(0, np.int64)
        if self.dim != before.dim:
            return np.arange(len(self.lengths))
        changed = (self.log_values != before.log_values) | (self.starts != before.starts)
        changed |= (self.lengths != before.lengths) | (self.own != before.own)
        for one in self.given:
            changed |= one.flows != given_to(before.given, one.arm, len(changed))
        return np.flatnonzero(changed)

    def _bounds_of(
        self, vectors: ArmVectors, candidate: int, threshold: FloatArray | float, rows: slice | IntArray
    ) -> FloatArray:
        """U of a block of arms, the candidate's own apart."""
        features, norm_bound = vectors.embedded.features, vectors.norm_bound
        towards, through = features[candidate] - features[rows], self.flows[rows] @ vectors.back
        reach = row_norms(towards)
        sizes = np.where(reach > 0.0, reach, 1.0)
        along = np.einsum("ij,ij->i", through, towards) / sizes
        across = row_norms(through - (along / sizes)[:, None] * towards)
        lack = threshold - self.log_values[rows]
        bounds = norm_bound * reach * ROUNDED_UP + 2.0 * vectors.embedded.misspecification
        balanced = np.divide(sizes, along, out=np.zeros_like(along), where=along > LEAST_FLOW)
        for inverse in (_best_inverse(lack / norm_bound, along, across, sizes), balanced):
            usable = (inverse > 0.0) & (inverse < 1.0 / LEAST_FLOW)
            amount = np.divide(1.0, inverse, out=np.zeros_like(inverse), where=usable)
            penalty = self._penalty(vectors, candidate, through - amount[:, None] * towards, amount, rows)
            found = np.divide(lack + penalty, amount, out=np.full_like(bounds, UNKNOWN), where=usable)
            bounds = np.minimum(bounds, found)
        return bounds

    def _penalty(
        self, vectors: ArmVectors, candidate: int, missed: FloatArray, amount: FloatArray, rows: slice | IntArray
    ) -> FloatArray:
        """What T towards the candidate may be off the truth by, for each arm of a block, rounded up."""
        rank, dim = vectors.back.shape
        rounding = VECTOR_ROUNDING * (self.terms + 2 * (rank + dim) + 8) * vectors.longest + vectors.missed
        rounding += VECTOR_ROUNDING * (self.terms + rank + dim + 8) * (vectors.widest * float(norm(vectors.back)))
        penalty = vectors.norm_bound * (row_norms(missed) + rounding * (self.lengths[rows] + 2.0 * amount))
        if vectors.embedded.misspecification > 0.0:
            penalty += vectors.embedded.misspecification * self.unmatched(candidate, amount, rows)
        return np.asarray(ROUNDED_UP * penalty)

    def unmatched(self, candidate: int, amount: FloatArray, rows: slice | IntArray) -> FloatArray:
        """An upper bound of sum_x |F(x) - T 1{x = c} + T 1{x = j}|: that of the other pulls is at most their length."""
        there = given_to(self.given, candidate, len(self.lengths))[rows]
        own, lengths = self.own[rows], self.lengths[rows]
        rest = np.maximum(lengths - np.abs(there) - np.abs(own), 0.0)
        return np.asarray(rest + np.abs(there - amount) + np.abs(own + amount) + 1e-9 * lengths)


def _best_inverse(lack: FloatArray, along: FloatArray, across: FloatArray, sizes: FloatArray) -> FloatArray:
    """1/T that minimises (lack + ||G - T y||) / T, where G has parts `along` and `across` y, and y that size.

    With u = 1/T it is lack u + ||u G - y||, convex in u; 0 where the limit for large T is the smallest.
    """
    square = along**2 + across**2
    room = square - lack**2
    sound: BoolArray = (square > 0.0) & (room > 0.0)
    turn = np.divide(lack * sizes * across, np.sqrt(np.where(sound, room, 1.0)))
    inverse = np.divide(along * sizes - turn, square, out=np.zeros_like(square), where=sound)
    return np.asarray(np.maximum(inverse, 0.0))


FLOW_ROUNDING = 1e-9  # of the flows: what their sums may be off by


@frozen
class MeanProcesses:
    """The processes of arms without vectors: F_j(j) = -T_j, and flows on the pulls of arms that were candidates.

    What an unmatched flow could hide is bounded only by the range of the rewards; without one U_jc is known only while
    F_j(c) = T_j and no other candidate's flow is left.
    """

    log_values: FloatArray  # (K,)
    starts: IntArray  # (K,)
    taken: FloatArray  # T, at least 0, in 1 / reward units, (K,)
    given: tuple[Flow, ...]  # F_j(c), for each arm c that was a candidate and where something is left
    structured: ClassVar[Literal[False]] = False

    @staticmethod
    def started(num_arms: int, log_weight: float) -> MeanProcesses:
        """No evidence yet."""
        starts = np.ones(num_arms, np.int64)
        return MeanProcesses(np.full(num_arms, log_weight), starts, np.zeros(num_arms), ())

    def given_to(self, candidate: int) -> FloatArray:
        """F_j(candidate), shape (K,)."""
        return given_to(self.given, candidate, len(self.taken))

    def others_than(self, candidate: int) -> dict[int, FloatArray]:
        """F_j of the other arms that were candidates, where some flow is left."""
        return {one.arm: one.flows for one in self.given if one.arm != candidate and one.flows.any()}

    def restarted(self, arms: IntArray, log_weights: FloatArray) -> MeanProcesses:
        """The processes with a new start of some arms, each with its weight; what they held counts no more."""
        return _restarted(self, arms, log_weights, "taken")

    def after(
        self,
        arms: IntArray,  # the m arms whose processes bet, (m,)
        taken: FloatArray,  # their T after the batch, (m,); as it was for arms without a pull in the batch
        given: dict[int, FloatArray],  # candidate with a pull -> their flow on its pulls after the batch, (m,)
        seen: Observations,
        noise_mgf: Mgf,
    ) -> MeanProcesses:
        """The processes after a batch: T_j and F_j(c) become what was decided before its first reward."""
        values = self.log_values[arms]
        values = values + flow_gains(taken - self.taken[arms], -1.0, arms, seen, noise_mgf.own)
        for arm, flow in given.items():
            change = flow - self.given_to(arm)[arms]
            values = values + flow_gains(change, 1.0, np.full(len(arms), arm), seen, noise_mgf)
        return self.with_flows(arms, taken, given, values)

    def with_flows(
        self, arms: IntArray, taken: FloatArray, given: dict[int, FloatArray], values: FloatArray
    ) -> MeanProcesses:
        """The processes with these flows of some arms, and these log values."""
        log_values, whole = np.array(self.log_values), np.array(self.taken)
        log_values[arms], whole[arms] = values, taken
        flows = {arm: np.array(self.given_to(arm)) for arm in dict.fromkeys([*(one.arm for one in self.given), *given])}
        for arm, flow in given.items():
            flows[arm][arms] = flow
        left = tuple(Flow(arm, flow) for arm, flow in flows.items() if flow.any())
        return MeanProcesses(log_values, self.starts, whole, left)

    def upper_bounds(
        self, candidate: int, threshold: FloatArray | float, span: tuple[float, float] | None = None
    ) -> FloatArray:
        """U_j = min over T of (threshold - log value + B(T)) / T, and its limit for large T; shape (K,).

            B(T) = max of sum_x D_x h_x over the means that are possible,   D_x = F_j(x) - T 1{x = c} + T 1{x = j}

        With a range of the rewards B is a sum over the arms, linear in T but at T_j and F_j(c), so that one of these,
        a T near 0 or the limit is best. Without one it is 0 where the flow is matched and infinite elsewhere, and U is
        UNKNOWN there.

        Cost: O(h K).
        """
        others = list(self.others_than(candidate).values())
        lack, there = threshold - self.log_values, self.given_to(candidate)
        bounds = bounds_of_means(lack, self.taken, there, others, span)
        bounds[candidate] = 0.0
        return bounds


def bounds_of_means(
    lack: FloatArray,  # threshold - log value
    taken: FloatArray,  # T_j
    there: FloatArray,  # F_j(c)
    others: list[FloatArray],  # flows on other arms
    span: tuple[float, float] | None,
) -> FloatArray:
    """U of `MeanProcesses.upper_bounds`, entry by entry, of any shape."""
    if span is None:
        matched = (taken > 0.0) & (there == taken)
        for flow in others:
            matched &= flow == 0.0
        bounds = np.divide(lack, taken, out=np.full_like(lack, UNKNOWN), where=matched)
        return np.asarray(np.clip(bounds, -UNKNOWN, UNKNOWN))
    flows = np.array(others).reshape(len(others), *lack.shape)
    above, below = np.maximum(flows, 0.0).sum(axis=0), np.maximum(-flows, 0.0).sum(axis=0)
    low, high = span
    bounds = np.full_like(lack, high - low)
    for amount in (np.zeros_like(lack), taken, there):
        moved, left = amount - taken, there - amount
        gained = above + np.maximum(moved, 0.0) + np.maximum(left, 0.0)
        lost = below + np.maximum(-moved, 0.0) + np.maximum(-left, 0.0)
        # the largest sum_x D_x h_x for means in [low, high] or in [-high, -low]: rewards may have their sign turned
        rounding = FLOW_ROUNDING * (gained + lost) * max(abs(low), abs(high))
        missed = np.maximum(gained * high - lost * low, lost * high - gained * low) + rounding
        limit = np.where((lack + missed < 0.0) & (amount == 0.0), -UNKNOWN, UNKNOWN)
        bounds = np.minimum(bounds, np.divide(lack + missed, amount, out=limit, where=amount > 0.0))
    return np.asarray(np.clip(bounds, -UNKNOWN, UNKNOWN))


Processes = MeanProcesses | VectorProcesses
P = TypeVar("P", MeanProcesses, VectorProcesses)


def _restarted(processes: P, arms: IntArray, log_weights: FloatArray, *names: str) -> P:
    """The processes with a new start of some arms; the columns of these names are 0 there."""
    if len(arms) == 0:
        return processes
    columns: dict[str, Any] = {name: np.array(getattr(processes, name)) for name in ("log_values", "starts", *names)}
    columns["log_values"][arms] = log_weights
    columns["starts"][arms] += 1
    for name in names:
        columns[name][arms] = 0.0
    for made_here in columns.values():
        made_here.flags.writeable = False  # and so it is not copied
    gone = np.isin(np.arange(len(processes.starts)), arms)
    given = tuple(Flow(one.arm, np.where(gone, 0.0, one.flows)) for one in processes.given)
    return replace(processes, **columns, given=given)


def flow_gains(change: FloatArray, sign: float, arms: IntArray, seen: Observations, noise_mgf: Mgf) -> FloatArray:
    """sum w r - sum cost(w) of the pulls of each arm, all with the weight that makes its flow change by that much."""
    counts = seen.counts[arms]
    moved = change != 0.0
    if np.any(moved & (counts == 0)):
        raise ValueError("a flow changes on an arm that was not pulled.")
    each = np.divide(np.abs(change), counts, out=np.zeros_like(change), where=moved)
    cost = noise_mgf.total(each, arms, seen)
    return np.asarray(np.where(moved, sign * change * seen.means[arms] - cost, 0.0))
