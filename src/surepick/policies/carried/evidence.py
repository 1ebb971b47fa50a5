"""What a batch says: the processes after it. Weights are functions of the past and of the batch's counts (line 1)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plan import Blocking, Plan
from surepick.errors import ContractError
from surepick.estimators import NoiseMgf, NormalMgf, with_squares
from surepick.estimators.mean_processes import MeanProcesses
from surepick.policies.carried import blocks_rule, means_rule, vectors_rule
from surepick.policies.carried.guesses import HEURISTIC_CAUTION, Guess
from surepick.policies.carried.planning import Planner
from surepick.policies.carried.rest import Goal, Rest, start_weights
from surepick.policies.carried.situation import begun
from surepick.policies.carried.state import CarriedState, Processes


def processes_after(planner: Planner, state: CarriedState, plan: Plan, seen: Observations) -> Processes:
    """The processes after a batch. Weights are functions of the past and of the batch's counts (line 1)."""
    situation = planner.situation
    if situation.blocks is not None and state.vectors is None:
        if state.means is None:
            return situation.first_processes(plan.dim)
        return _in_blocks(planner, state, plan, seen, situation.blocks)
    noise_mgf = situation.noise_mgf(state.seen)
    batch = noise_mgf.usable(with_squares(situation.problem.noise, seen))
    if state.processes is None:
        processes = situation.first_processes(plan.dim)
        if isinstance(processes, MeanProcesses) and seen.total > 0:
            margins = means_rule.margins_unseen(situation.problem.epsilon, situation.problem.num_arms)
            return _opened(processes, margins, batch, noise_mgf)
        return processes
    before = situation.moved(state, plan.dim)
    processes = begun(before)
    if seen.total == 0:
        return processes
    guess = situation.guess(processes, state.seen)
    if plan.candidate is not None:
        batch = batch if situation.blocks is None else replace(batch, blocks=in_blocks(seen))
        processes = _tested(planner, before, plan, guess, batch, noise_mgf)
    elif isinstance(processes, MeanProcesses):
        leader, epsilon = int(np.argmax(guess.scores)), situation.problem.epsilon
        margins = np.maximum(guess.margins(leader, epsilon), 2.0 * epsilon)
        processes = _opened(processes, margins, batch, noise_mgf)
    return processes


def _in_blocks(
    planner: Planner, state: CarriedState, plan: Plan, seen: Observations, blocking: Blocking
) -> MeanProcesses:
    """The processes after a batch in blocks, without structure (lines 24 and 25); in the opening none bets."""
    situation = planner.situation
    if state.means is None:
        raise ContractError("nothing was told yet.")
    if seen.total == 0 or plan.candidate is None:
        return state.means
    goal, margins, processes, rest = _aimed(planner, state, plan.candidate, situation.guess(state.means, state.seen))
    asked, outstanding = plan.total, float(np.maximum(plan.counts - seen.counts, 0).sum())
    later = 0.0 if planner.sizes.is_last(state.round) else max(rest.num_pulls - asked, 0.0) + outstanding
    return blocks_rule.told(
        processes, goal, margins, in_blocks(seen), seen.total / (seen.total + later), blocking.control
    )


def in_blocks(seen: Observations) -> BlockTotals:
    """What each block had; without names of blocks the whole batch is one."""
    return BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks


def _aimed(
    planner: Planner, before: CarriedState, candidate: int, guess: Guess
) -> tuple[Goal, FloatArray, MeanProcesses, Rest]:
    """(what a batch for a candidate is to reach, guesses of the margins, the processes with new starts, the rest)."""
    epsilon, processes = planner.situation.problem.epsilon, before.means
    if processes is None:
        raise ContractError("nothing was told yet.")
    planning = partial(guess.margins_of, candidate, epsilon=epsilon, caution=HEURISTIC_CAUTION)
    goal = planner.situation.goal(before, candidate, guess, planning)
    rest = means_rule.planned(processes, goal)
    processes = processes.restarted(rest.restarts, start_weights(processes.starts[rest.restarts] + 1))
    return goal, guess.margins_of(candidate, goal.rivals, epsilon), processes, rest


def _opened(
    processes: MeanProcesses, margins: FloatArray, batch: Observations, noise_mgf: NoiseMgf | NormalMgf
) -> MeanProcesses:
    bets = means_rule.opening_bets(processes, margins, batch.counts, noise_mgf.noise_scales(margins))
    return processes.after(bets.arms, bets.taken, bets.given, batch, noise_mgf)


def _tested(
    planner: Planner,
    before: CarriedState,
    plan: Plan,
    guess: Guess,
    batch: Observations,
    noise_mgf: NoiseMgf | NormalMgf,
) -> Processes:
    """The processes after a batch for a candidate."""
    situation, last = planner.situation, planner.sizes.is_last(before.round)
    processes, candidate, epsilon = begun(before), plan.candidate or 0, situation.problem.epsilon
    planning = partial(guess.margins_of, candidate, epsilon=epsilon, caution=HEURISTIC_CAUTION)
    goal = situation.goal(before, candidate, guess, planning)
    margins = guess.margins_of(candidate, goal.rivals, epsilon)
    asked, outstanding = plan.counts.sum(), np.maximum(plan.counts - batch.counts, 0)
    if isinstance(processes, MeanProcesses):
        rest = means_rule.planned(processes, goal)
        processes = processes.restarted(rest.restarts, start_weights(processes.starts[rest.restarts] + 1))
        future = rest.pulls * max(1.0 - asked / rest.num_pulls, 0.0) + outstanding
        patient = planner.sizes.exact is not None
        placed = means_rule.placed(
            processes, goal, margins, batch.counts, 0.0 * future if last else future, noise_mgf, patient=patient
        )
        return processes.after(placed.arms, placed.taken, placed.given, batch, noise_mgf)
    vectors = situation.vectors(processes.dim)
    whole = planner.sizes.exact is None
    anew = vectors_rule.restarts(vectors, processes, goal, plan.counts.astype(np.float64), whole=whole)
    processes = processes.restarted(anew, start_weights(processes.starts[anew] + 1))
    future = plan.counts * max((plan.predicted_pulls or 0.0) / asked - 1.0, 0.0) + outstanding
    if last:
        future = np.zeros(len(plan.counts))
    elif planner.sizes.exact is not None and np.count_nonzero(plan.counts) < vectors.white.shape[1]:
        design = planner.predictions.rest_of(before, goal).pulls  # the batch sees some of its directions only
        future = np.maximum(design - plan.counts, 0.0) + outstanding
    bets = vectors_rule.placed(vectors, processes, goal, margins, batch.counts, future, noise_mgf, batch.blocks)
    if batch.blocks is not None:
        scales = situation.problem.scales
        return processes.after_blocks(vectors, candidate, bets.arms, bets.directions, batch.blocks, scales)
    return processes.after(vectors, candidate, bets.arms, bets.directions, batch, goal.noise_scales, noise_mgf)
