"""What is still to be measured: for whom, through which vectors, and what that takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np

from surepick.core.records import FloatArray, record
from surepick.estimators import NoiseMgf
from surepick.estimators.posterior import HEURISTIC_LEAST_WHEN_SWITCHING, Posterior
from surepick.estimators.running_processes import MeanProcesses, VectorProcesses
from surepick.policies import tuning
from surepick.policies.carried import means_rule, vectors_rule
from surepick.policies.carried.situation import DecisionContext, started
from surepick.policies.carried.state import CarriedState, OpenComparisons, RemainingPulls
from surepick.policies.certified.sampling_rule import is_expensive
from surepick.policies.dimension import larger_dimensions
from surepick.policies.sequential import batches
from surepick.policies.sequential.batches import BatchSizes

HEURISTIC_SHORT = 0.1  # how often the last batch that is allowed may fall short
HEURISTIC_DESIGNED = 8.0  # pulls in the proportions so far for one by a design, of those that certify a candidate


@record
class Predictions:
    """What the past suggests of the pulls to come. Nothing here can make a certificate wrong."""

    situation: DecisionContext  # the question and the arms
    dim: int | None  # as in `CarriedElimination`
    tolerance: float
    sizes: BatchSizes  # of the batches

    def enough_for_opening(self, state: CarriedState, goal: OpenComparisons, share: float) -> float:
        """A share of what certifying the leader is predicted to cost; by a guess where a design takes long."""
        processes = started(state)
        if isinstance(processes, VectorProcesses) and is_expensive(self.situation.vectors(processes.dim).embedded):
            vectors = self.situation.vectors(processes.dim)
            return (
                share
                * vectors_rule.pulls_by_direction(vectors, processes, goal, self.shares(state))
                / HEURISTIC_DESIGNED
            )
        return share * self.rest_of(state, goal).total

    def rest(self, state: CarriedState, guess: Posterior) -> RemainingPulls:
        """The candidate to go on with, and the pulls that are predicted to certify it for the least money."""
        best = guess.best_of(state.away)
        candidate = best if state.candidate < 0 else state.candidate
        if best != candidate:
            doubted = self._goal_for(state, guess, candidate, least=HEURISTIC_LEAST_WHEN_SWITCHING)
            worth = tuning.HEURISTIC_SWITCH * self._effort(state, doubted)
            if self._effort(state, self._goal_for(state, guess, best), worth) < worth:
                candidate = best
        rest = self._rest_for(state, guess, candidate)
        if self.dim is None and isinstance(state.processes, VectorProcesses):
            rest = self._in_another_dimension(state, guess, rest)
        return rest

    def _rest_for(self, state: CarriedState, guess: Posterior, candidate: int) -> RemainingPulls:
        return self.rest_of(state, self._goal_for(state, guess, candidate))

    def _goal_for(
        self, state: CarriedState, guess: Posterior, candidate: int, *, least: float = tuning.HEURISTIC_LEAST_MARGIN
    ) -> OpenComparisons:
        epsilon = self.situation.problem.epsilon
        margins = partial(guess.margins, candidate, epsilon, caution=tuning.HEURISTIC_CAUTION, least=least)
        return self.situation.goal(state, candidate, guess, margins)

    def _effort(self, state: CarriedState, goal: OpenComparisons, limit: float = math.inf) -> float:
        """What a plan for a goal takes, unless beyond the limit; in proportions so far where designs take long."""
        processes = started(state)
        if isinstance(processes, MeanProcesses):
            return self.rest_of(state, goal).total
        vectors = self.situation.vectors(processes.dim)
        if goal.costs is None and vectors_rule.least_effort(vectors, goal) >= limit:
            return math.inf
        if is_expensive(vectors.embedded):
            return vectors_rule.effort_by(vectors, processes, goal, self.shares(state), direct=self._direct(state))
        return self.rest_of(state, goal).effort

    def shares(self, state: CarriedState) -> FloatArray:
        """The pulls so far, as shares of what they cost, shape (K,)."""
        costs = self.situation.problem.relative_costs
        return state.seen.counts / state.pulls if costs is None else state.seen.counts * costs / self.spent(state)

    def surely(self, state: CarriedState, guess: Posterior, rest: RemainingPulls) -> RemainingPulls:
        """What certifies the candidate with one more batch, most of the time."""
        epsilon, moved = self.situation.problem.epsilon, self.situation.moved(state, rest.dim)
        margins = partial(guess.margins, rest.candidate, epsilon, caution=tuning.HEURISTIC_OPENING_CAUTION)
        goal = self.situation.goal(moved, rest.candidate, guess, margins)
        quantile = NormalDist().inv_cdf(1.0 - HEURISTIC_SHORT / (1 + len(goal.rivals)))
        return self.rest_of(moved, replace(goal, quantile=quantile))

    def rest_of(self, state: CarriedState, goal: OpenComparisons) -> RemainingPulls:
        """The pulls that are predicted to reach a goal."""
        processes = started(state)
        if isinstance(processes, MeanProcesses):
            return means_rule.means_remaining(processes, goal)
        if goal.away is not None:
            goal = replace(goal, noise_scales=np.where(goal.away, batches.AVOIDED, 1.0) * goal.noise_scales)
        vectors = self.situation.vectors(processes.dim)
        planned = partial(
            vectors_rule.vectors_remaining,
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
        avoided = batches.underreplicated(rest.pulls, noise_mgf.bounded, vectors.white, self.situation.repeats)
        if not avoided.any():
            return rest
        scales = np.where(avoided, batches.AVOIDED, 1.0) * goal.noise_scales
        rest = planned(replace(goal, noise_scales=scales))
        return replace(rest, pulls=np.where(avoided, 0.0, rest.pulls))

    def _direct(self, state: CarriedState) -> bool:
        """Whether rivals themselves may be a batch: not with blocks, a given size, or repeats that are needed first."""
        known = isinstance(self.situation.noise_mgf(state.seen), NoiseMgf)
        return known and self.situation.blocks is None and self.sizes.exact is None

    def _cheaper(
        self, processes: VectorProcesses, goal: OpenComparisons, planned: Callable[[], RemainingPulls], *, direct: bool
    ) -> RemainingPulls:
        """Through the vectors, or rival by rival where that takes fewer pulls, at least one of each arm."""
        vectors = self.situation.vectors(processes.dim)
        alone = vectors_rule.rivals_only(vectors, processes, goal) if direct else None
        if alone is not None and goal.costs is None and alone.effort <= vectors.white.shape[1]:
            return alone  # a design, which sees all directions, has no fewer arms
        rest = planned()
        if goal.away is not None:
            rest = replace(rest, pulls=np.where(goal.away, 0.0, rest.pulls))
        return rest if alone is None or rest.effort <= alone.effort else alone

    def _in_another_dimension(self, state: CarriedState, guess: Posterior, rest: RemainingPulls) -> RemainingPulls:
        """A larger dimension, if misspecification costs more than its extra directions would."""
        begun_already = state.vectors is not None and state.vectors.begun
        if begun_already and len(rest.bias_limited) == 0:
            return rest
        best, epsilon = rest, self.situation.problem.epsilon
        for dim in larger_dimensions(self.situation.embedding, rest.dim, epsilon):
            if not self._worth_a_design(state, guess, best, dim):
                break
            other = self._rest_for(self.situation.moved(state, dim), guess, rest.candidate)
            if other.effort >= best.effort:
                break
            best = other
        return best

    def _worth_a_design(self, state: CarriedState, guess: Posterior, best: RemainingPulls, dim: int) -> bool:
        """Whether a larger dimension may take far less, by its bias and the pulls so far where designs take long."""
        here = self.situation.moved(state, best.dim)
        vectors, processes = self.situation.vectors(best.dim), here.vectors
        if processes is None or not is_expensive(vectors.embedded):
            return True
        goal, shares = self._goal_for(here, guess, best.candidate), self.shares(state)
        less = replace(vectors.embedded, misspecification=self.situation.embedding.misspecification(dim))
        now, then = (
            vectors_rule.pulls_by_direction(one, processes, goal, shares)
            for one in (vectors, replace(vectors, embedded=less))
        )
        return then < tuning.HEURISTIC_DIMENSION * now

    def spent(self, state: CarriedState) -> float:
        """What the pulls so far cost, in pulls of the cheapest arm."""
        costs = self.situation.problem.relative_costs
        return float(state.pulls) if costs is None else float(state.seen.counts @ costs)
