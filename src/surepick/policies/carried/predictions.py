"""What is still to be measured: for whom, through which vectors, and what that takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.estimators import NoiseMgf
from surepick.estimators.mean_processes import MeanProcesses
from surepick.estimators.vector_processes import VectorProcesses
from surepick.policies.carried import means_rule, repeats, vectors_plan
from surepick.policies.carried.batch_sizes import BatchSizes
from surepick.policies.carried.guesses import (
    HEURISTIC_CAUTION,
    HEURISTIC_LEAST_MARGIN,
    HEURISTIC_LEAST_WHEN_SWITCHING,
    HEURISTIC_OPENING_CAUTION,
    Guess,
)
from surepick.policies.carried.rest import Goal, Rest
from surepick.policies.carried.situation import Situation, begun
from surepick.policies.carried.state import CarriedState
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.dear_designs import is_dear

HEURISTIC_MISSED = 0.1  # how often the last batch that is allowed may fall short
HEURISTIC_SWITCH = 0.8  # another candidate must be predicted to cost less than this share; a dimension too
HEURISTIC_DESIGNED = 8.0  # pulls in the proportions so far for one by a design, of those that certify a candidate


@record
class Predictions:
    """What the past suggests of the pulls to come. Nothing here can make a certificate wrong.

    Args:
        situation: the question and the arms.
        dim, tolerance: as in `CarriedElimination`.
        sizes: of the batches.
    """

    situation: Situation
    dim: int | None
    tolerance: float
    sizes: BatchSizes

    def enough_for_opening(self, state: CarriedState, goal: Goal, share: float) -> float:
        """What the opening takes in all: a share of what certifying the leader is predicted to cost; where designs take
        long, by a guess that asks for none."""
        processes = begun(state)
        if isinstance(processes, VectorProcesses) and is_dear(self.situation.vectors(processes.dim).embedded):
            vectors = self.situation.vectors(processes.dim)
            return share * vectors_plan.pulls_by(vectors, processes, goal, self.shares(state)) / HEURISTIC_DESIGNED
        return share * self.rest_of(state, goal).total

    def rest(self, state: CarriedState, guess: Guess) -> Rest:
        """The candidate to go on with, and the pulls that are predicted to certify it for the least money."""
        best = guess.best_of(state.away)
        candidate = best if state.candidate < 0 else state.candidate
        if best != candidate:
            doubted = self._goal_for(state, guess, candidate, least=HEURISTIC_LEAST_WHEN_SWITCHING)
            worth = HEURISTIC_SWITCH * self._effort(state, doubted)
            if self._effort(state, self._goal_for(state, guess, best), worth) < worth:
                candidate = best
        rest = self._rest_for(state, guess, candidate)
        if self.dim is None and isinstance(state.processes, VectorProcesses):
            rest = self._in_another_dimension(state, guess, rest)
        return rest

    def _rest_for(self, state: CarriedState, guess: Guess, candidate: int) -> Rest:
        return self.rest_of(state, self._goal_for(state, guess, candidate))

    def _goal_for(
        self, state: CarriedState, guess: Guess, candidate: int, *, least: float = HEURISTIC_LEAST_MARGIN
    ) -> Goal:
        epsilon = self.situation.problem.epsilon
        margins = partial(guess.margins_of, candidate, epsilon=epsilon, caution=HEURISTIC_CAUTION, least=least)
        return self.situation.goal(state, candidate, guess, margins)

    def _effort(self, state: CarriedState, goal: Goal, limit: float = math.inf) -> float:
        """What a plan for a goal takes, to compare candidates by; where designs take long, one in the proportions of
        what was measured so far. Beyond the limit it need not be known."""
        processes = begun(state)
        if isinstance(processes, MeanProcesses):
            return self.rest_of(state, goal).total
        vectors = self.situation.vectors(processes.dim)
        if goal.costs is None and vectors_plan.least_effort(vectors, goal) >= limit:
            return math.inf
        if is_dear(vectors.embedded):
            return vectors_plan.effort_by(vectors, processes, goal, self.shares(state), direct=self._direct(state))
        return self.rest_of(state, goal).effort

    def shares(self, state: CarriedState) -> FloatArray:
        """The pulls so far, as shares of what they cost, shape (K,)."""
        costs = self.situation.problem.relative_costs
        return state.seen.counts / state.pulls if costs is None else state.seen.counts * costs / self.spent(state)

    def surely(self, state: CarriedState, guess: Guess, rest: Rest) -> Rest:
        """What certifies the candidate with one more batch, most of the time."""
        epsilon, moved = self.situation.problem.epsilon, self.situation.moved(state, rest.dim)
        margins = partial(guess.margins_of, rest.candidate, epsilon=epsilon, caution=HEURISTIC_OPENING_CAUTION)
        goal = self.situation.goal(moved, rest.candidate, guess, margins)
        quantile = NormalDist().inv_cdf(1.0 - HEURISTIC_MISSED / (1 + len(goal.rivals)))
        return self.rest_of(moved, replace(goal, quantile=quantile))

    def rest_of(self, state: CarriedState, goal: Goal) -> Rest:
        """The pulls that are predicted to reach a goal."""
        processes = begun(state)
        if isinstance(processes, MeanProcesses):
            return means_rule.planned(processes, goal)
        if goal.away is not None:
            goal = replace(goal, noise_scales=np.where(goal.away, repeats.AVOIDED, 1.0) * goal.noise_scales)
        vectors = self.situation.vectors(processes.dim)
        planned = partial(
            vectors_plan.planned,
            vectors,
            processes,
            weights=self.shares(state),
            tolerance=self.tolerance,
            posed=partial(self.situation.posed, processes.dim),
        )
        noise_mgf = self.situation.noise_mgf(state.seen)
        if isinstance(noise_mgf, NoiseMgf):
            return self._cheaper(processes, goal, lambda: planned(goal), direct=self._direct(state))
        rest = planned(goal)
        avoided = repeats.unworthy(rest.pulls, noise_mgf.bounded, vectors.white, repeats.least(self.situation.problem))
        if not avoided.any():
            return rest
        scales = np.where(avoided, repeats.AVOIDED, 1.0) * goal.noise_scales
        rest = planned(replace(goal, noise_scales=scales))
        return replace(rest, pulls=np.where(avoided, 0.0, rest.pulls))

    def _direct(self, state: CarriedState) -> bool:
        """Whether the rivals themselves may be a batch: not where blocks or a given size say what it has, or arms need
        repeats before they tell anything."""
        known = isinstance(self.situation.noise_mgf(state.seen), NoiseMgf)
        return known and self.situation.blocks is None and self.sizes.exact is None

    def _cheaper(self, processes: VectorProcesses, goal: Goal, planned: Callable[[], Rest], *, direct: bool) -> Rest:
        """Through the vectors, or rival by rival where that takes fewer pulls, at least one of each arm."""
        vectors = self.situation.vectors(processes.dim)
        alone = vectors_plan.one_by_one(vectors, processes, goal) if direct else None
        if alone is not None and goal.costs is None and alone.effort <= vectors.white.shape[1]:
            return alone  # a design, which sees all directions, has no fewer arms
        rest = planned()
        if goal.away is not None:
            rest = replace(rest, pulls=np.where(goal.away, 0.0, rest.pulls))
        return rest if alone is None or rest.effort <= alone.effort else alone

    def _in_another_dimension(self, state: CarriedState, guess: Guess, rest: Rest) -> Rest:
        """A larger dimension, if misspecification costs more than its extra directions would."""
        best, dim, gamma = rest, rest.dim, self.situation.embedding.misspecification
        begun_already = state.vectors is not None and state.vectors.begun
        if begun_already and len(rest.bias_limited) == 0:
            return rest
        while gamma(dim) > 0.0 and dim < self.situation.embedding.max_dim:
            if 2.0 * gamma(dim) < sampling_rule.NEGLIGIBLE_BIAS * self.situation.problem.epsilon / 2.0:
                break
            dim = min(self.situation.embedding.max_dim, math.ceil(1.25 * dim))
            if not self._worth_a_design(state, guess, best, dim):
                break
            other = self._rest_for(self.situation.moved(state, dim), guess, rest.candidate)
            if other.effort >= best.effort:
                break
            best = other
        return best

    def _worth_a_design(self, state: CarriedState, guess: Guess, best: Rest, dim: int) -> bool:
        """Whether a larger dimension may take far less; where designs take long, by what the pulls so far would take
        with its misspecification and no more directions."""
        here = self.situation.moved(state, best.dim)
        vectors, processes = self.situation.vectors(best.dim), here.vectors
        if processes is None or not is_dear(vectors.embedded):
            return True
        goal, shares = self._goal_for(here, guess, best.candidate), self.shares(state)
        less = replace(vectors.embedded, misspecification=self.situation.embedding.misspecification(dim))
        now, then = (
            vectors_plan.pulls_by(one, processes, goal, shares) for one in (vectors, replace(vectors, embedded=less))
        )
        return then < HEURISTIC_SWITCH * now

    def spent(self, state: CarriedState) -> float:
        """What the pulls so far cost, in pulls of the cheapest arm."""
        costs = self.situation.problem.relative_costs
        return float(state.pulls) if costs is None else float(state.seen.counts @ costs)
