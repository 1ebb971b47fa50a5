"""Where to measure, and how to bet, for arms with vectors.

The process of arm j holds the flow G_j; to count against c it needs G_j = T y, y = z_c - z_j (`VectorProcesses`). A bet
on a margin m over pulls with information A is best at

    T = Tbar + tau,   Tbar = y' M G / y' M y,   tau = kappa m / y' M y,   M = A^-1,   w(x) = z_x' M (T y - G) / s_x^2

where A is that of the batch where the flow is to be matched with it, and that of all planned pulls elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, record
from surepick.core.design import Design
from surepick.core.observations import BlockTotals
from surepick.designs import PosedArms, solve_star_design, solve_target_design
from surepick.estimators import NoiseMgf, NormalMgf
from surepick.estimators.vector_processes import ArmVectors, VectorProcesses
from surepick.linalg.row_blocks import row_blocks
from surepick.policies.carried.rest import Goal, Rest, start_weights
from surepick.policies.certified.sampling_rule import rough_tolerance
from surepick.policies.dimension import best_found

HEURISTIC_KAPPA = 0.7  # of the bet that promises most
HEURISTIC_CLOSING = 0.15  # units of evidence that matching a flow may cost
MOST_STARTS = 40
LEAST_SLACK = 0.1  # of a margin; where bias leaves less, the rival is bias-limited
MATCHED = 1e-6  # of a flow's length: what counts as none
CUT = 1e-10  # of the largest eigenvalue of A
SAME_AIM = 1e-10  # relative; what rounding and a misspecification that is rounding make of the same aims
STEPS = 2  # designs that are solved for a plan, each with what the one before says of A


@record
class Bets:
    """The weights of a batch: arm j weighs a pull of x by v_j' z_x / s_x^2.

    Args:
        arms: whose processes bet, shape (m,).
        directions: v in whitened coordinates, shape (m, r).
    """

    arms: IntArray
    directions: FloatArray


@record
class Pulls:
    """Pulls, made or planned, as whitened coordinates see them.

    Args:
        rows: z of the arms pulled, shape (p, r).
        counts: n, shape (p,).
        noise_scales: s, shape (p,).
        arms: which they are, shape (p,).
    """

    rows: FloatArray
    counts: FloatArray
    noise_scales: FloatArray
    arms: IntArray

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

    @property
    def information(self) -> FloatArray:
        """A = sum n_x z_x z_x' / s_x^2, shape (r, r)."""
        return np.asarray((self.rows.T * (self.counts / self.noise_scales**2)) @ self.rows)


@record
class _Account:
    """What the processes of the rivals hold, as some pulls see it.

    Args:
        towards: y, shape (m, r).
        inverse: A^-1 on its range, shape (r, r).
        sizes: a = y' A^-1 y, positive, shape (m,).
        visible: whether the pulls see anything of y, shape (m,); of a part of a batch they may not.
        left: G - Tbar y with Tbar >= 0, shape (m, r).
        costs: rho = (G - Tbar y)' A^-1 (G - Tbar y), shape (m,).
        needs: evidence that is still lacking if the flows were matched at Tbar for nothing, shape (m,).
        bias: gamma (2 + sqrt(N a) / s) >= gamma (2 + sum n |u|) for u = y' A^-1 z / s^2, shape (m,).
    """

    towards: FloatArray
    inverse: FloatArray
    sizes: FloatArray
    visible: BoolArray
    left: FloatArray
    costs: FloatArray
    needs: FloatArray
    bias: FloatArray


def _slope(vectors: ArmVectors, goal: Goal) -> FloatArray:
    """theta of the guesses, since Z'Z = K I; shape (r,)."""
    return np.asarray(vectors.white.T @ goal.scores / len(vectors.white))


def _account(
    vectors: ArmVectors, processes: VectorProcesses, goal: Goal, pulls: Pulls, slope: FloatArray | None = None
) -> _Account:
    rivals, slope = goal.rivals, _slope(vectors, goal) if slope is None else slope
    towards = vectors.white[goal.candidate] - vectors.white[rivals]
    flow = processes.flows[rivals]
    information = pulls.information
    inverse = np.asarray(np.linalg.pinv(information, rcond=CUT, hermitian=True), np.float64)
    seen = towards @ inverse
    sizes = np.maximum(np.einsum("ij,ij->i", towards, seen), np.finfo(np.float64).tiny)
    visible = sizes * np.linalg.norm(information, 2) > MATCHED**2 * np.einsum("ij,ij->i", towards, towards)
    matched = np.where(visible, np.maximum(np.einsum("ij,ij->i", flow, seen) / sizes, 0.0), 0.0)
    left = flow - matched[:, None] * towards
    costs = np.maximum(np.einsum("ij,ij->i", left @ inverse, left), 0.0)
    held = processes.log_values[rivals] + matched * goal.epsilon - left @ slope
    lengths = np.sqrt(pulls.counts.sum() * sizes) / float(goal.noise_scales.min())
    bias = np.asarray(vectors.embedded.misspecification * (2.0 + lengths))
    return _Account(towards, inverse, sizes, visible, left, costs, goal.threshold - held, bias)


def planned(
    vectors: ArmVectors,
    processes: VectorProcesses,
    goal: Goal,
    *,
    weights: FloatArray | None,
    tolerance: float,
    posed: Callable[[float | None], PosedArms],
) -> Rest:
    """The pulls that are predicted to reject all rivals, and the processes that had better start anew.

        V = min over designs of max over rivals of u' A^-1 u / (2 (beta + tau m)),   u = (Tbar + tau) y - G
        tau = (-a beta + sqrt(a^2 beta^2 + a m^2 rho)) / (a m)                       beta = - need

    Where pulls cost unlike amounts, designs are shares of money: A = sum lambda_x z z' / (s^2 cost), V is money.

    Args:
        weights: a design to start from; None: none is known, and the flows are taken for matched.
        tolerance: relative gap of the design.
        posed: gives the arms as designs see them: those of the embedding; or whitened, divided by a noise scale that is
            the same for all.
    """
    embedded, rivals, scales = vectors.embedded, goal.rivals, goal.priced_scales
    gamma = embedded.misspecification
    bias: FloatArray = np.full(len(rivals), 2.0 * gamma)
    fresh: BoolArray = np.zeros(len(rivals), bool)
    matched = not np.any(processes.flows[rivals])
    if matched:
        needs = goal.threshold - processes.log_values[rivals]
        slack = np.maximum(goal.margins - bias, LEAST_SLACK * goal.margins)
        first = rough_tolerance(embedded, tolerance) if gamma > 0.0 else tolerance
        design = _star(vectors, goal, slack, goal.aimed(needs), first, posed)
        if gamma > 0.0:
            bias = _account(vectors, processes, goal, _bought(vectors, goal, design.weights)).bias
            slack = np.maximum(goal.margins - bias, LEAST_SLACK * goal.margins)
            design = _star(vectors, goal, slack, goal.aimed(needs), tolerance, posed)
    else:
        start = np.full(embedded.num_arms, 1.0 / embedded.num_arms) if weights is None else weights
        targets: FloatArray | None = None
        for _ in range(STEPS):
            account = _account(vectors, processes, goal, _bought(vectors, goal, start))
            if not account.visible.all():
                start = 0.5 * start + 0.5 / embedded.num_arms
                account = _account(vectors, processes, goal, _bought(vectors, goal, start))
            bias = account.bias
            slack = np.maximum(goal.margins - bias, LEAST_SLACK * goal.margins)
            before, (fresh, targets) = targets, _targets(processes, goal, account, slack)
            if before is not None and np.abs(targets - before).max() <= SAME_AIM * np.abs(before).max():
                break  # what the design before says of A changes no aim: its design is this one
            design = best_found(
                solve_target_design,
                vectors.white / scales[:, None] if _uneven(scales) else posed(float(scales[0])),
                targets,
                tolerance=tolerance,
                span_tolerance=1.0,
            )
            start = design.weights
    limited = rivals[goal.margins - bias < LEAST_SLACK * goal.margins]
    pulls = goal.pulls_for(max(design.value, 1.0) * design.weights)
    return Rest(goal.candidate, embedded.dim, pulls, design.lower_bound, rivals[fresh], limited, goal.costs)


def _bought(vectors: ArmVectors, goal: Goal, weights: FloatArray) -> Pulls:
    """The pulls of a design whose weights are shares of money."""
    return Pulls.of(vectors.white, goal.pulls_for(weights), goal.noise_scales)


def _uneven(noise_scales: FloatArray) -> bool:
    return bool(np.ptp(noise_scales) > 0.0)


def _star(
    vectors: ArmVectors,
    goal: Goal,
    slack: FloatArray,
    needs: FloatArray,
    tolerance: float,
    posed: Callable[[float | None], PosedArms],
) -> Design:
    noise_scales = goal.priced_scales
    uneven = _uneven(noise_scales)
    accuracies = np.ones(vectors.embedded.num_arms)
    accuracies[goal.rivals] = slack / np.sqrt(2.0 * np.maximum(needs, 1e-3))
    return best_found(  # a worse design costs pulls, not validity
        solve_star_design,
        vectors.embedded.features if uneven else posed(None),
        goal.candidate,
        accuracies if uneven else accuracies / noise_scales[0],
        rivals=goal.rivals,
        noise_scales=noise_scales if uneven else None,
        tolerance=tolerance,
    )


def _fresh(
    processes: VectorProcesses, goal: Goal, account: _Account, slack: FloatArray
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
    return (anew < spent) & (starts < MOST_STARTS), tau, gain, needed


def _targets(
    processes: VectorProcesses, goal: Goal, account: _Account, slack: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """(which had better start anew, u / sqrt(2 (beta + tau m)) of each rival)."""
    fresh, tau, gain, needed = _fresh(processes, goal, account, slack)
    aims = np.where(
        fresh[:, None], (2.0 * needed / slack)[:, None] * account.towards, tau[:, None] * account.towards - account.left
    )
    return fresh, aims / np.sqrt(2.0 * np.where(fresh, needed, gain))[:, None]


def restarts(vectors: ArmVectors, processes: VectorProcesses, goal: Goal, pulls: FloatArray) -> IntArray:
    """The rivals whose processes had better start anew if pulls are planned in these proportions, shape (K,)."""
    if not np.any(processes.flows[goal.rivals]):
        return goal.rivals[:0]
    account = _account(vectors, processes, goal, Pulls.of(vectors.white, pulls / pulls.sum(), goal.noise_scales))
    slack = np.maximum(goal.margins - account.bias, LEAST_SLACK * goal.margins)
    fresh, *_ = _fresh(processes, goal, account, slack)
    return goal.rivals[fresh]


def placed(
    vectors: ArmVectors,
    processes: VectorProcesses,
    goal: Goal,
    margins: FloatArray,
    counts: IntArray,
    future: FloatArray,
    noise_mgf: NoiseMgf | NormalMgf,
    blocks: BlockTotals | None = None,
) -> Bets:
    """The bets of a batch for a candidate.

    A flow is matched where that costs little, is predicted to settle the rival, or nothing more is planned.

    Args:
        margins: guesses of the rivals' margins, shape (m,).
        counts: n, the pulls of the batch, shape (K,).
        future: pulls that are planned after it, shape (K,).
        noise_mgf: what may be assumed of the noise.
        blocks: the pulls of each block of the batch, of which weights have the sum 0; None: there are no blocks.
    """
    batch, whole = Pulls.of(vectors.white, counts, goal.noise_scales), None
    if blocks is not None:
        batch = Pulls.within(vectors.white, blocks, goal.noise_scales)
        whole = batch.and_later(vectors.white, future, goal.noise_scales) if future.sum() > 0.0 else None
    elif future.sum() > 0.0:
        whole = Pulls.of(vectors.white, counts + future, goal.noise_scales)
    slope, directions = _slope(vectors, goal), np.empty((len(goal.rivals), vectors.white.shape[1]))
    for rows in row_blocks(len(directions)):
        threshold = goal.threshold if isinstance(goal.threshold, float) else goal.threshold[rows]
        some = replace(goal, rivals=goal.rivals[rows], margins=goal.margins[rows], threshold=threshold)
        directions[rows] = _placed(vectors, processes, some, margins[rows], batch, whole, noise_mgf, slope)
    return Bets(goal.rivals, directions)


def _placed(
    vectors: ArmVectors,
    processes: VectorProcesses,
    goal: Goal,
    margins: FloatArray,
    batch: Pulls,
    whole: Pulls | None,
    noise_mgf: NoiseMgf | NormalMgf,
    slope: FloatArray,
) -> FloatArray:
    """The directions of the bets of some rivals, shape (m, r)."""
    account = _account(vectors, processes, goal, batch, slope)
    tau, now = _directions(account, margins, batch, noise_mgf)
    aims = tau[:, None] * account.towards - account.left
    missed, size = (np.einsum("ij,ij->i", rows, rows) for rows in (aims - now @ batch.information, aims))
    possible = missed <= MATCHED**2 * size
    settled = account.needs <= tau * margins - 0.5 * (tau**2 * account.sizes + account.costs)
    worth = (0.5 * account.costs <= HEURISTIC_CLOSING) | settled
    if whole is None:
        return np.where(possible[:, None], now, 0.0)
    _, spread = _directions(_account(vectors, processes, goal, whole, slope), margins, whole, noise_mgf)
    return np.where((worth & possible)[:, None], now, spread)


def _directions(
    account: _Account, margins: FloatArray, pulls: Pulls, noise_mgf: NoiseMgf | NormalMgf
) -> tuple[FloatArray, FloatArray]:
    """(tau, v = M (T y - G)); tau alone gives no pull a weight at which bets are expensive."""
    room = np.where(account.visible, np.maximum(margins - account.bias, 0.0), 0.0)
    tau = HEURISTIC_KAPPA * room / account.sizes
    steps = account.towards @ account.inverse
    if isinstance(noise_mgf, NormalMgf):
        weights = tau[:, None] * (steps @ (pulls.rows / pulls.noise_scales[:, None] ** 2).T)
        tau = tau * noise_mgf.tempered(weights, pulls.arms, pulls.counts)
    elif np.isfinite(noise_mgf.steepest):
        steepest = np.abs(steps @ (pulls.rows / pulls.noise_scales[:, None] ** 2).T).max(axis=1, initial=0.0)
        largest = noise_mgf.steepest
        tau = np.minimum(tau, np.divide(largest, steepest, out=np.full_like(tau, np.inf), where=steepest > 0.0))
    return tau, np.asarray(tau[:, None] * steps - account.left @ account.inverse)
