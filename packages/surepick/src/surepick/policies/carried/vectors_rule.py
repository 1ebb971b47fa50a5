"""Vectors: how to bet, for arms with vectors, and what bets are predicted to show.

Bets are functions of the past and of the batch's counts (docs/certified-elimination.md, line 1; of blocks line 26): the
proofs hold for any. `told` is what results do to the processes (line 11).

The process of arm j holds the flow G_j; to count against c it needs G_j = T y, y = z_c - z_j (`VectorProcesses`). A bet
on a margin m over pulls with information A is best at

    T = Tbar + tau,   Tbar = y' M G / y' M y,   tau = kappa m / y' M y,   M = A^-1,   w(x) = z_x' M (T y - G) / s_x^2

where A is that of the batch where the flow is to be matched with it, and that of all planned pulls elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial

import numpy as np

from surepick import designs
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Design
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.designs import DesignInput
from surepick.estimators import Mgf
from surepick.estimators.flows import BatchWeights
from surepick.estimators.running_processes import ArmVectors, VectorProcesses
from surepick.linalg.rows import each_row_block
from surepick.policies import tuning
from surepick.policies.dimension import best_found
from surepick.policies.sequential.first_designs import FewArms, is_expensive, star_design, tolerance_of
from surepick.policies.sequential.state import OpenComparisons, RemainingPulls, anew, nobody, start_weights

MATCHED = 1e-6  # of a flow's length: what counts as none
CUT = 1e-10  # of the largest eigenvalue of A


@record
class VectorBets:
    """The weights of a batch: arm j weighs a pull of x by v_j' z_x / s_x^2."""

    arms: IntArray  # whose processes bet, (m,)
    directions: FloatArray  # v in whitened coordinates, (m, r)
    vectors: ArmVectors
    candidate: int  # c
    noise_scales: FloatArray  # s, (K,), in reward units
    restarts: IntArray = field(default_factory=nobody)  # arms whose processes start anew before

    def told(self, processes: VectorProcesses, batch: Observations, noise_mgf: Mgf) -> VectorProcesses:
        """The processes after the results, in blocks where these say so."""
        after, fixed = anew(processes, self.restarts), (self.vectors, self.candidate, self.arms, self.directions)
        if batch.blocks is not None:
            return after.after_blocks(*fixed, batch.blocks, self.noise_scales)
        return after.after(*fixed, batch, self.noise_scales, noise_mgf)

    def weights(self, batch: Observations) -> BatchWeights:
        """Those of the pulls of a batch, as they are told (line 38)."""
        white, scales = self.vectors.white, self.noise_scales
        if batch.blocks is not None:
            pulls = Pulls.within(white, batch.blocks, scales)
        else:
            pulls = Pulls.of(white, batch.counts, scales)
        weights = self.directions @ (pulls.rows.T / pulls.noise_scales**2)
        return BatchWeights(self.arms, pulls.arms, np.asarray(pulls.counts, np.int64), weights)


@record
class Pulls:
    """Pulls, made or planned, as whitened coordinates see them."""

    rows: FloatArray  # z of the arms pulled, (p, r)
    counts: FloatArray  # n, (p,)
    noise_scales: FloatArray  # s, (p,)
    arms: IntArray  # which they are, (p,)

    @staticmethod
    def of(white: FloatArray, counts: FloatArray | IntArray, noise_scales: FloatArray) -> Pulls:
        """Those of all arms, shape (K,)."""
        pulled = np.flatnonzero(counts)
        return Pulls(white[pulled], np.asarray(counts[pulled], np.float64), noise_scales[pulled], pulled)

    @staticmethod
    def within(white: FloatArray, seen: BlockTotals, noise_scales: FloatArray) -> Pulls:
        """Those of blocks, one row an entry: z less the mean of its block, which is what the block tells (line 26)."""
        rows = seen.centred(white[seen.arms], seen.counts / noise_scales[seen.arms] ** 2)
        return Pulls(rows, np.asarray(seen.counts, np.float64), noise_scales[seen.arms], seen.arms)

    def and_later(self, white: FloatArray, counts: FloatArray, noise_scales: FloatArray) -> Pulls:
        """These, and some of all arms, shape (K,), that are in blocks alike."""
        later = Pulls.of(white, counts, noise_scales)
        weights = later.counts / later.noise_scales**2
        rows = later.rows - weights @ later.rows / weights.sum()
        return Pulls(
            np.concatenate([self.rows, rows]),
            np.concatenate([self.counts, later.counts]),
            np.concatenate([self.noise_scales, later.noise_scales]),
            np.concatenate([self.arms, later.arms]),
        )


@record
class Information:
    """What pulls see of all directions."""

    pulls: Pulls  # made or planned
    information: FloatArray  # A = sum n_x z_x z_x' / s_x^2, (r, r)
    inverse: FloatArray  # A^-1 on its range, (r, r)
    largest: float  # the largest eigenvalue of A
    whole: bool  # whether A is regular

    @staticmethod
    def of(pulls: Pulls) -> Information:
        """That of some pulls. Cost: O(p r^2 + r^3)."""
        information = np.asarray((pulls.rows.T * (pulls.counts / pulls.noise_scales**2)) @ pulls.rows)
        inverse = np.asarray(np.linalg.pinv(information, rcond=CUT, hermitian=True), np.float64)
        largest = float(np.linalg.norm(information, 2))
        rank = np.linalg.matrix_rank(information, tol=CUT * largest, hermitian=True)
        return Information(pulls, information, inverse, largest, bool(rank == len(information)))

    def misses(self, rows: FloatArray) -> BoolArray:
        """Which of some vectors, shape (m, r), these pulls do not see as a whole, shape (m,)."""
        if self.whole:
            return np.zeros(len(rows), bool)
        missed, size = rows - rows @ self.inverse @ self.information, np.einsum("ij,ij->i", rows, rows)
        return np.asarray(np.einsum("ij,ij->i", missed, missed) > MATCHED**2 * size)


@record
class Balance:
    """What the processes of the rivals hold, as some pulls see it."""

    towards: FloatArray  # y, (m, r)
    inverse: FloatArray  # A^-1 on its range, (r, r)
    sizes: FloatArray  # a = y' A^-1 y, positive, (m,)
    visible: BoolArray  # whether the pulls see anything of y, (m,); of a part of a batch they may not
    left: FloatArray  # G - Tbar y with Tbar >= 0, (m, r)
    costs: FloatArray  # rho = (G - Tbar y)' A^-1 (G - Tbar y), (m,)
    # evidence that is still lacking if the flows were matched at Tbar for nothing but what misspecification takes of
    # it, (m,)
    needs: FloatArray
    bias: FloatArray  # gamma (2 + sqrt(N a) / s) >= gamma (2 + sum n |u|) for u = y' A^-1 z / s^2, (m,)


def slope_of(vectors: ArmVectors, goal: OpenComparisons) -> FloatArray:
    """theta of the guesses, since Z'Z = K I; shape (r,)."""
    return np.asarray(vectors.white.T @ goal.scores / len(vectors.white))


def account_of(
    vectors: ArmVectors,
    processes: VectorProcesses,
    goal: OpenComparisons,
    sight: Information,
    slope: FloatArray | None = None,
    *,
    closely: bool | None = None,
) -> Balance:
    """What the processes of the rivals hold, as some pulls see it."""
    rivals, slope = goal.rivals, slope_of(vectors, goal) if slope is None else slope
    inverse, pulls, dim = sight.inverse, sight.pulls, len(sight.inverse)
    gamma = vectors.embedded.misspecification
    towards, left = (np.empty((len(rivals), dim)) for _ in range(2))
    sizes, costs, held = (np.empty(len(rivals)) for _ in range(3))
    visible = np.empty(len(rivals), bool)

    def account(some: slice) -> None:
        rows = rivals[some]
        towards[some] = vectors.white[goal.candidate] - vectors.white[rows]
        seen = towards[some] @ inverse
        sizes[some] = np.maximum(np.einsum("ij,ij->i", towards[some], seen), np.finfo(np.float64).tiny)
        squares = np.einsum("ij,ij->i", towards[some], towards[some])
        visible[some] = sizes[some] * sight.largest > MATCHED**2 * squares
        held[some] = processes.log_values[rows]
        if not processes.lengths[rows].any():
            left[some], costs[some] = 0.0, 0.0
            return
        flow = processes.flows[rows]
        along = np.maximum(np.einsum("ij,ij->i", flow, seen) / sizes[some], 0.0)
        matched = np.where(visible[some], along, 0.0)
        left[some] = flow - matched[:, None] * towards[some]
        costs[some] = np.maximum(np.einsum("ij,ij->i", left[some] @ inverse, left[some]), 0.0)
        held[some] += matched * goal.epsilon - left[some] @ slope
        if gamma > 0.0:
            held[some] -= gamma * processes.unmatched(goal.candidate, matched, rows)

    each_row_block(account, len(rivals))
    lengths = np.sqrt(pulls.counts.sum() * sizes) / float(goal.noise_scales.min())
    bias = np.asarray(gamma * (2.0 + lengths))
    if gamma > 0.0 and (len(rivals) < dim if closely is None else closely):
        bias = np.minimum(bias, gamma * _unmatched(goal, pulls, towards @ inverse))
    return Balance(towards, inverse, sizes, visible, left, costs, goal.threshold - held, bias)


def _unmatched(goal: OpenComparisons, pulls: Pulls, seen: FloatArray) -> FloatArray:
    """sum_x |n u_x - 1{x = c} + 1{x = j}| for y' A^-1 = `seen` of each rival, (m, r): 0 where c and j alone tell."""
    flows = seen @ (pulls.rows.T * (pulls.counts / pulls.noise_scales**2))
    there, own = pulls.arms == goal.candidate, goal.rivals[:, None] == pulls.arms
    apart = np.abs(flows - there + own).sum(axis=1)
    return np.asarray(apart + (not there.any()) + ~own.any(axis=1))


def fresh_starts(
    processes: VectorProcesses, goal: OpenComparisons, account: Balance, slack: FloatArray
) -> tuple[BoolArray, FloatArray, FloatArray, FloatArray]:
    """(which had better start anew, tau, evidence that it buys beyond the need, what a new start needs)."""
    lack = goal.aimed(account.needs)
    root = np.sqrt((account.sizes * lack) ** 2 + account.sizes * slack**2 * account.costs)
    tau = np.maximum((account.sizes * lack + root) / (account.sizes * slack), 0.0)
    gain = np.maximum(tau * slack - lack, 1e-3)
    spent = (tau**2 * account.sizes + account.costs) / (2.0 * gain)
    starts = processes.starts[goal.rivals]
    needed = goal.aimed(goal.threshold - start_weights(starts + 1))
    anew = 2.0 * account.sizes * needed / slack**2
    return (anew < spent) & (starts < tuning.MOST_STARTS), tau, gain, needed


def restarts(
    vectors: ArmVectors, processes: VectorProcesses, goal: OpenComparisons, pulls: FloatArray, *, whole: bool = True
) -> IntArray:
    """The rivals whose processes had better start anew if pulls are planned in these proportions, shape (K,)."""
    if not processes.lengths[goal.rivals].any():
        return goal.rivals[:0]
    sight = Information.of(Pulls.of(vectors.white, pulls / pulls.sum(), goal.noise_scales))
    account = account_of(vectors, processes, goal, sight)
    slack = np.maximum(goal.margins - account.bias, tuning.LEAST_SLACK * goal.margins)
    fresh, *_ = fresh_starts(processes, goal, account, slack)
    if whole and not sight.whole:
        beyond = np.linalg.norm(account.left - account.left @ account.inverse @ sight.information, axis=1)
        flows = np.linalg.norm(processes.flows[goal.rivals], axis=1)
        fresh = fresh | ((beyond > MATCHED * flows) & (processes.starts[goal.rivals] < tuning.MOST_STARTS))
    return goal.rivals[fresh]


def place_vector_bets(
    vectors: ArmVectors,
    processes: VectorProcesses,
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the rivals' margins, (m,)
    counts: IntArray,  # n, the pulls of the batch, (K,)
    future: FloatArray,  # pulls that are planned after it, (K,)
    noise_mgf: Mgf,
    blocks: BlockTotals | None = None,
) -> VectorBets:
    """The bets of a batch for a candidate.

    A flow is matched where that costs little, is predicted to settle the rival, or nothing more is planned.
    """
    batch, whole = Pulls.of(vectors.white, counts, goal.noise_scales), None
    if blocks is not None:
        batch = Pulls.within(vectors.white, blocks, goal.noise_scales)
        whole = batch.and_later(vectors.white, future, goal.noise_scales) if future.sum() > 0.0 else None
    elif future.sum() > 0.0:
        whole = Pulls.of(vectors.white, counts + future, goal.noise_scales)
    slope, directions = slope_of(vectors, goal), np.empty((len(goal.rivals), vectors.white.shape[1]))
    now, later = Information.of(batch), None if whole is None else Information.of(whole)

    def place(rows: slice) -> None:
        some = goal.among(rows)
        account = account_of(vectors, processes, some, now, slope)
        tau, matched = _directions(account, margins[rows], batch, noise_mgf)
        aims = tau[:, None] * account.towards - account.left
        missed, size = (np.einsum("ij,ij->i", each, each) for each in (aims - matched @ now.information, aims))
        possible, spread = missed <= MATCHED**2 * size, np.zeros_like(matched)
        if later is not None:
            settled = account.needs <= tau * margins[rows] - 0.5 * (tau**2 * account.sizes + account.costs)
            possible &= (0.5 * account.costs <= tuning.HEURISTIC_CLOSING) | settled
            planned = account_of(vectors, processes, some, later, slope)
            _, spread = _directions(planned, margins[rows], later.pulls, noise_mgf)
        directions[rows] = np.where(possible[:, None], matched, spread)

    each_row_block(place, len(directions))
    return VectorBets(goal.rivals, directions, vectors, goal.candidate, goal.noise_scales)


def _directions(account: Balance, margins: FloatArray, pulls: Pulls, noise_mgf: Mgf) -> tuple[FloatArray, FloatArray]:
    """(tau, v = M (T y - G)); tau alone gives no pull a weight at which bets are expensive."""
    room = np.where(account.visible, np.maximum(margins - account.bias, 0.0), 0.0)
    tau = tuning.HEURISTIC_KAPPA * room / account.sizes
    steps = account.towards @ account.inverse
    if not noise_mgf.declared:
        weights = tau[:, None] * (steps @ (pulls.rows / pulls.noise_scales[:, None] ** 2).T)
        tau = tau * noise_mgf.tempered(weights, pulls.arms, pulls.counts)
    elif np.isfinite(noise_mgf.steepest):
        steepest = np.abs(steps @ (pulls.rows / pulls.noise_scales[:, None] ** 2).T).max(axis=1, initial=0.0)
        largest = noise_mgf.steepest
        tau = np.minimum(tau, np.divide(largest, steepest, out=np.full_like(tau, np.inf), where=steepest > 0.0))
    directions = tau[:, None] * steps
    return tau, directions - account.left @ account.inverse if account.left.any() else directions


# --- Where to measure for a candidate, for arms with vectors.
#
# The design that is predicted to reject all rivals first, given what their processes hold (`vectors_rule` has the bets
# behind the prediction); or, where rivals are few, the candidate and they themselves.

SAME_AIM = 1e-10  # relative; what rounding and a misspecification that is rounding make of the same aims
STEPS = 2  # designs that are solved for a plan, each with what the one before says of A; one where that takes long


def vectors_remaining(
    vectors: ArmVectors,
    processes: VectorProcesses,
    goal: OpenComparisons,
    *,
    weights: FloatArray | None,
    tolerance: float,
    posed: Callable[[float | None], DesignInput],
) -> RemainingPulls:
    """The pulls that are predicted to reject all rivals, and the processes that had better start anew.

        V = min over designs of max over rivals of u' A^-1 u / (2 (beta + tau m)),   u = (Tbar + tau) y - G
        tau = (-a beta + sqrt(a^2 beta^2 + a m^2 rho)) / (a m)                       beta = - need

    Where pulls cost unlike amounts, designs are shares of money: A = sum lambda_x z z' / (s^2 cost), V is money.
    """
    embedded, rivals, scales = vectors.embedded, goal.rivals, goal.priced_scales
    gamma, tolerance = embedded.misspecification, tolerance_of(embedded, tolerance)
    bias: FloatArray = np.full(len(rivals), 2.0 * gamma)
    fresh: BoolArray = np.zeros(len(rivals), bool)

    few = FewArms.of(partial(pulls_by_direction, vectors, processes, goal) if goal.costs is None else None, embedded)

    def star() -> Design:
        slack = np.maximum(goal.margins - bias, tuning.LEAST_SLACK * goal.margins)
        needs = goal.aimed(goal.threshold - processes.log_values[rivals])
        accuracies = np.ones(embedded.num_arms)
        accuracies[rivals] = slack / np.sqrt(2.0 * np.maximum(needs, 1e-3))
        return star_design(embedded, goal.candidate, accuracies, rivals, scales, tolerance, partial(posed, None), few)

    if not processes.lengths[rivals].any():
        if gamma > 0.0:  # where designs take long, what was measured so far stands for the one before
            before = weights if weights is not None and is_expensive(embedded) else star().weights
            bias = account_of(vectors, processes, goal, _bought(vectors, goal, before)).bias
        design = star()
    else:
        start = np.full(embedded.num_arms, 1.0 / embedded.num_arms) if weights is None else weights
        aims: FloatArray | None = None
        for _ in range(1 if is_expensive(embedded) else STEPS):
            account = account_of(vectors, processes, goal, _bought(vectors, goal, start))
            if not account.visible.all():
                start = 0.5 * start + 0.5 / embedded.num_arms
                account = account_of(vectors, processes, goal, _bought(vectors, goal, start))
            bias = account.bias
            slack = np.maximum(goal.margins - bias, tuning.LEAST_SLACK * goal.margins)
            known, (fresh, aims) = aims, _targets(processes, goal, account, slack)
            if known is not None and np.abs(aims - known).max() <= SAME_AIM * np.abs(known).max():
                break  # what the design before says of A changes no aim: its design is this one
            arms = vectors.white / scales[:, None] if np.ptp(scales) > 0.0 else posed(float(scales[0]))
            solve = partial(designs.solve_target_design, tolerance=tolerance, span_tolerance=1.0)
            design = best_found(solve, arms, aims, unit=few.unit, accept=few.accept)
            start = design.weights
    limited = rivals[goal.margins - bias < tuning.LEAST_SLACK * goal.margins]
    pulls = goal.pulls_for(max(design.value, 1.0) * design.weights)
    return RemainingPulls(goal.candidate, embedded.dim, pulls, design.lower_bound, rivals[fresh], limited, goal.costs)


def rivals_only(vectors: ArmVectors, processes: VectorProcesses, goal: OpenComparisons) -> RemainingPulls | None:
    """The pulls of the candidate and its rivals themselves that are predicted to reject these: few arms where rivals
    are few, and no bias, however poor the vectors.

    A process whose flow is not along its difference is counted as if it started anew. None where the rivals are more
    than a design for all directions has arms, cannot be measured, or have started too often.
    """
    rivals, scales = goal.rivals, goal.priced_scales
    few = len(rivals) + 1 < vectors.white.shape[1]
    if not few or (goal.away is not None and goal.away[[goal.candidate, *rivals]].any()):
        return None
    evenly = np.zeros(len(scales))
    evenly[[goal.candidate, *rivals]] = 1.0
    account = account_of(vectors, processes, goal, _bought(vectors, goal, evenly / evenly.sum()))
    flows, starts = np.linalg.norm(processes.flows[rivals], axis=1), processes.starts[rivals]
    fresh = np.linalg.norm(account.left, axis=1) > MATCHED * flows
    if (fresh & (starts >= tuning.MOST_STARTS)).any():
        return None
    lack = goal.aimed(np.where(fresh, goal.threshold - start_weights(starts + 1), account.needs))
    accuracies = np.ones(len(scales))
    accuracies[rivals] = goal.margins / np.sqrt(2.0 * np.maximum(lack, 1e-3))
    design = designs.independent_star_design(goal.candidate, accuracies, rivals=rivals, noise_scales=scales)
    pulls = goal.pulls_for(max(design.value, 1.0) * design.weights)
    return RemainingPulls(goal.candidate, vectors.embedded.dim, pulls, 0.0, rivals[fresh], rivals[:0], goal.costs)


def pulls_by_direction(
    vectors: ArmVectors, processes: VectorProcesses, goal: OpenComparisons, weights: FloatArray
) -> float:
    """Pulls, or money, in given proportions, predicted to reject all rivals; infinite where one is not told."""
    sight, slope = _bought(vectors, goal, weights), slope_of(vectors, goal)
    squares, closely = np.empty(len(goal.rivals)), len(goal.rivals) < vectors.white.shape[1]

    def measure(rows: slice) -> None:
        some = goal.among(rows)
        account = account_of(vectors, processes, some, sight, slope, closely=closely)
        if not account.visible.all():
            squares[rows] = np.inf
            return
        slack = np.maximum(some.margins - account.bias, tuning.LEAST_SLACK * some.margins)
        _, aims = _targets(processes, some, account, slack)
        np.einsum("ij,ij->i", aims @ account.inverse, aims, out=squares[rows])
        squares[rows][sight.misses(aims)] = np.inf

    each_row_block(measure, len(squares))
    return float(squares.max())


def effort_by(
    vectors: ArmVectors, processes: VectorProcesses, goal: OpenComparisons, weights: FloatArray, *, direct: bool
) -> float:
    """What a plan in the proportions of a given design takes, with as many more pulls as there are directions."""
    price = 1.0 if goal.costs is None else float(goal.costs.mean())
    through = pulls_by_direction(vectors, processes, goal, weights) + price * vectors.white.shape[1]
    alone = rivals_only(vectors, processes, goal) if direct else None
    return through if alone is None else float(min(through, alone.effort))


def _bought(vectors: ArmVectors, goal: OpenComparisons, weights: FloatArray) -> Information:
    """What the pulls of a design see whose weights are shares of money."""
    return Information.of(Pulls.of(vectors.white, goal.pulls_for(weights), goal.noise_scales))


def _targets(
    processes: VectorProcesses, goal: OpenComparisons, account: Balance, slack: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """(which had better start anew, u / sqrt(2 (beta + tau m)) of each rival)."""
    fresh, tau, gain, needed = fresh_starts(processes, goal, account, slack)
    ahead, length = np.where(fresh, 2.0 * needed / slack, tau), np.sqrt(2.0 * np.where(fresh, needed, gain))
    aims = np.empty_like(account.towards)

    def aim(rows: slice) -> None:
        towards = ahead[rows, None] * account.towards[rows]
        np.subtract(towards, account.left[rows], out=towards, where=~fresh[rows, None])
        np.divide(towards, length[rows, None], out=aims[rows])

    each_row_block(aim, len(aims))
    return fresh, aims
