"""Where to measure for a candidate, for arms with vectors.

The design that is predicted to reject all rivals first, given what their processes hold (`vectors_rule` has the bets
behind the prediction); or, where rivals are few, the candidate and they themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.design import Design
from surepick.designs import PosedArms, independent_star_design, solve_star_design, solve_target_design
from surepick.estimators.vector_processes import ArmVectors, VectorProcesses
from surepick.linalg.row_blocks import each_row_block
from surepick.policies.carried.rest import Goal, Rest, start_weights
from surepick.policies.carried.vectors_rule import (
    LEAST_SLACK,
    MATCHED,
    MOST_STARTS,
    Account,
    Pulls,
    Sight,
    account_of,
    fresh_starts,
    slope_of,
)
from surepick.policies.certified.dear_designs import FewArms, is_dear, tolerance_of
from surepick.policies.dimension import best_found

SAME_AIM = 1e-10  # relative; what rounding and a misspecification that is rounding make of the same aims
STEPS = 2  # designs that are solved for a plan, each with what the one before says of A; one where that takes long


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
    gamma, tolerance = embedded.misspecification, tolerance_of(embedded, tolerance)
    bias: FloatArray = np.full(len(rivals), 2.0 * gamma)
    fresh: BoolArray = np.zeros(len(rivals), bool)

    few = FewArms.of(partial(pulls_by, vectors, processes, goal) if goal.costs is None else None, embedded)

    def star() -> Design:
        slack = np.maximum(goal.margins - bias, LEAST_SLACK * goal.margins)
        needs = goal.aimed(goal.threshold - processes.log_values[rivals])
        return _star(vectors, goal, slack, needs, tolerance, posed, few)

    if not processes.lengths[rivals].any():
        if gamma > 0.0:  # where designs take long, what was measured so far stands for the one before
            before = weights if weights is not None and is_dear(embedded) else star().weights
            bias = account_of(vectors, processes, goal, _bought(vectors, goal, before)).bias
        design = star()
    else:
        start = np.full(embedded.num_arms, 1.0 / embedded.num_arms) if weights is None else weights
        aims: FloatArray | None = None
        for _ in range(1 if is_dear(embedded) else STEPS):
            account = account_of(vectors, processes, goal, _bought(vectors, goal, start))
            if not account.visible.all():
                start = 0.5 * start + 0.5 / embedded.num_arms
                account = account_of(vectors, processes, goal, _bought(vectors, goal, start))
            bias = account.bias
            slack = np.maximum(goal.margins - bias, LEAST_SLACK * goal.margins)
            known, (fresh, aims) = aims, _targets(processes, goal, account, slack)
            if known is not None and np.abs(aims - known).max() <= SAME_AIM * np.abs(known).max():
                break  # what the design before says of A changes no aim: its design is this one
            arms = vectors.white / scales[:, None] if _uneven(scales) else posed(float(scales[0]))
            design = _aimed(arms, aims, tolerance, few)
            start = design.weights
    limited = rivals[goal.margins - bias < LEAST_SLACK * goal.margins]
    pulls = goal.pulls_for(max(design.value, 1.0) * design.weights)
    return Rest(goal.candidate, embedded.dim, pulls, design.lower_bound, rivals[fresh], limited, goal.costs)


def _aimed(arms: FloatArray | PosedArms, aims: FloatArray, tolerance: float, few: FewArms) -> Design:
    return best_found(
        solve_target_design,
        arms,
        aims,
        tolerance=tolerance,
        span_tolerance=1.0,
        unit=few.unit,
        accept=few.accept,
    )


def one_by_one(vectors: ArmVectors, processes: VectorProcesses, goal: Goal) -> Rest | None:
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
    if (fresh & (starts >= MOST_STARTS)).any():
        return None
    lack = goal.aimed(np.where(fresh, goal.threshold - start_weights(starts + 1), account.needs))
    accuracies = np.ones(len(scales))
    accuracies[rivals] = goal.margins / np.sqrt(2.0 * np.maximum(lack, 1e-3))
    design = independent_star_design(goal.candidate, accuracies, rivals=rivals, noise_scales=scales)
    pulls = goal.pulls_for(max(design.value, 1.0) * design.weights)
    return Rest(goal.candidate, vectors.embedded.dim, pulls, 0.0, rivals[fresh], rivals[:0], goal.costs)


def pulls_by(vectors: ArmVectors, processes: VectorProcesses, goal: Goal, weights: FloatArray) -> float:
    """The pulls, or money, in the proportions of a given design that are predicted to reject all rivals; infinite where
    it does not tell all of them.

    Args:
        weights: shape (K,), sum 1.
    """
    sight, slope = _bought(vectors, goal, weights), slope_of(vectors, goal)
    squares, closely = np.empty(len(goal.rivals)), len(goal.rivals) < vectors.white.shape[1]

    def measure(rows: slice) -> None:
        some = goal.among(rows)
        account = account_of(vectors, processes, some, sight, slope, closely=closely)
        if not account.visible.all():
            squares[rows] = np.inf
            return
        slack = np.maximum(some.margins - account.bias, LEAST_SLACK * some.margins)
        _, aims = _targets(processes, some, account, slack)
        np.einsum("ij,ij->i", aims @ account.inverse, aims, out=squares[rows])
        squares[rows][sight.misses(aims)] = np.inf

    each_row_block(measure, len(squares))
    return float(squares.max())


def effort_by(
    vectors: ArmVectors, processes: VectorProcesses, goal: Goal, weights: FloatArray, *, direct: bool
) -> float:
    """What a plan in the proportions of a given design takes, with as many more pulls as there are directions.

    Args:
        weights: shape (K,), sum 1.
        direct: rival by rival counts too, if that is less.
    """
    price = 1.0 if goal.costs is None else float(goal.costs.mean())
    through = pulls_by(vectors, processes, goal, weights) + price * vectors.white.shape[1]
    alone = one_by_one(vectors, processes, goal) if direct else None
    return through if alone is None else float(min(through, alone.effort))


def least_effort(vectors: ArmVectors, goal: Goal) -> float:
    """The arms that a plan for a goal has at least: a design, which sees all directions, or each rival itself."""
    return float(min(len(goal.rivals), vectors.white.shape[1]))


def _bought(vectors: ArmVectors, goal: Goal, weights: FloatArray) -> Sight:
    """What the pulls of a design see whose weights are shares of money."""
    return Sight.of(Pulls.of(vectors.white, goal.pulls_for(weights), goal.noise_scales))


def _uneven(noise_scales: FloatArray) -> bool:
    return bool(np.ptp(noise_scales) > 0.0)


def _star(
    vectors: ArmVectors,
    goal: Goal,
    slack: FloatArray,
    needs: FloatArray,
    tolerance: float,
    posed: Callable[[float | None], PosedArms],
    few: FewArms,
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
        unit=few.unit,
        accept=few.accept,
    )


def _targets(
    processes: VectorProcesses, goal: Goal, account: Account, slack: FloatArray
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
