"""What to measure next: the opening, the candidate, the dimension, the batch; and what that is predicted to take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Design, Embedding, Plan
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs import DesignInput
from surepick.estimators.posterior import HEURISTIC_LEAST_WHEN_SWITCHING, NUMBER, Posterior
from surepick.estimators.running_processes import VectorProcesses
from surepick.noise import known_scale
from surepick.policies import tuning
from surepick.policies.base import designed, threshold_of
from surepick.policies.carried import means_rule, vectors_rule
from surepick.policies.carried.situation import DecisionContext
from surepick.policies.dimension import DesignOf, best_found, larger_dimensions
from surepick.policies.preference import Preference
from surepick.policies.sequential import batches, first_designs
from surepick.policies.sequential.engine import BatchSizes, Grid
from surepick.policies.sequential.first_designs import first_dimension, is_expensive, on_few_first_arms
from surepick.policies.sequential.state import OpenComparisons, RemainingPulls, SequentialState, sought

HEURISTIC_SHORT = 0.1  # how often the last batch that is allowed may fall short
HEURISTIC_DESIGNED = 8.0  # pulls in the proportions so far for one by a design, of those that certify a candidate
HEURISTIC_OPENING_OF_VECTORS = 0.03  # the opening ends at this share of what certifying the leader is predicted to cost
HEURISTIC_OPENING_OF_MEANS = 0.05  # ... where its pulls are evidence too
HEURISTIC_LEAST_LEAD = 0.5  # ... and what they are at least: one close rival does not keep the opening going
HEURISTIC_LEAST_TOLD = 0.5  # standard errors that an opening batch is asked to tell apart, if epsilon is smaller


@record
class Planner:
    """Where the next batch measures. Nothing here can make a certificate wrong."""

    situation: DecisionContext  # the question and the arms
    dim: int | None  # as in `CarriedElimination`
    tolerance: float
    sizes: BatchSizes  # of the batches
    prefer: Preference = None

    def next_batch(self, state: SequentialState) -> Plan:
        """A function of what was told."""
        if not state.begun:
            return self._first_batch(state.round)
        unmeasured = None
        if not state.processes.structured:  # with batches of a given size the next arms, until each had its turn
            unmeasured = batches.next_of_list(self.sizes, len(state.beaten), self._repeats_alone, state.round)
        unmeasured = unmeasured or self._unrepeated_arms(state)
        if unmeasured is not None:
            return unmeasured
        guess = self.situation.guess(state.processes, state.seen)
        opening = None
        if state.candidate < 0 and self.sizes.opens(state.round):
            opening = self._opening_batch(state, guess)
        if opening is not None:
            return opening
        rest = self.rest(state, guess)
        if self.sizes.is_last(state.round):
            rest = self.surely(state, guess, rest)
        total = self.sizes.testing(state.round, self.spent(state), rest.total, self._grid(rest.dim, state))
        return self._plan(state, guess, rest, total, candidate=rest.candidate)

    def _first_batch(self, round_number: int) -> Plan:
        """All differences alike; without structure a pull of each arm, or as many each where batches are few."""
        dim, design = first_dimension(
            self.situation.problem,
            self.situation.embedding,
            dim=self.dim,
            tolerance=self.tolerance,
            design_of=self._opening_design,
        )
        embedded, problem = self.situation.embedded(dim), self.situation.problem
        costs, grid = problem.relative_costs, None
        if known_scale(problem.noise):
            grid = self._grid_at(dim, problem.sigma)
        if not embedded.structured:
            total = self.sizes.first(
                self._repeats_alone * embedded.num_arms, grid, 1.0 if costs is None else float(costs.mean())
            )
            counts = batches.listed_sizes(embedded.num_arms, total, 1)
        else:
            weights = self._first_weights(embedded, design)
            usual = max(2 * embedded.dim, 4, self.situation.repeats * int(np.count_nonzero(weights)))
            price = 1.0 if costs is None else float(weights @ costs / weights.sum())
            counts = self._rounded(dim, weights, self.sizes.first(usual, grid, price), round_number, None)
        return designed(round_number, counts, design, embedded)

    def _first_weights(self, embedded: Embedding, design: Design) -> FloatArray:
        """Shares of the first pulls: the design's; where costs differ, for differences from a central arm in money.

        Where scales are unknown, equal ones of few of its arms.
        """
        costs, weights = self.situation.problem.relative_costs, design.weights
        if costs is not None:
            priced = best_found(first_designs.opening_from_middle, embedded, self.tolerance, np.sqrt(costs))
            weights = np.asarray(priced.weights / costs)
        if known_scale(self.situation.problem.noise):
            if costs is not None:
                return weights
            posed = partial(self.situation.posed, embedded.dim, None)
            return on_few_first_arms(self.situation.problem, embedded, design, posed=posed).weights
        support = np.flatnonzero(weights)
        white = self.situation.vectors(embedded.dim).white[support]
        few = np.zeros_like(weights)
        few[support[batches.spanning_arms(np.sqrt(weights[support])[:, None] * white)]] = 1.0
        return few

    def _unrepeated_arms(self, state: SequentialState) -> Plan | None:
        """With features and scales that are unknown: the arms of the first batch, until their scales have bounds."""
        processes = state.processes
        noise_mgf = self.situation.noise_mgf(state.seen)
        if noise_mgf.declared or not processes.structured:
            return None
        vectors, counts = self.situation.vectors(processes.dim), state.seen.counts
        if batches.spans(vectors.white[noise_mgf.bounded]):
            return None
        left = batches.shortfall(counts, vectors.white, self.situation.repeats)
        if not batches.spans(vectors.white[counts > 0]):
            embedded = vectors.embedded
            design = best_found(self._opening_design, embedded, self.tolerance)
            left = np.maximum(
                left, np.where(counts > 0, 0, self.situation.repeats * self._first_weights(embedded, design))
            )
        if not left.any():  # repeats that are all equal show no scale
            return None
        limit = self.sizes.exact or min(int(left.sum()), self.sizes.largest or int(left.sum()))
        planned = batches.rounded_batch(left.astype(np.float64), max(limit, 1), state.round)
        gamma = vectors.embedded.misspecification
        return Plan(round=state.round, counts=planned, dim=processes.dim, lower_bound=0.0, misspecification=gamma)

    @property
    def _repeats_alone(self) -> int:
        """Pulls of each arm with which a study without structure begins: several where they must show its scale."""
        if known_scale(self.situation.problem.noise):
            return 1
        few = self.sizes.most is not None or self.sizes.fixed > 0.0
        return self.situation.repeats if few else tuning.HEURISTIC_REPEATS

    @property
    def _opening_design(self) -> DesignOf:
        """`first_designs.opening_design`, for arms that are posed once."""

        def posed(embedded: Embedding) -> DesignInput:
            return self.situation.posed(embedded.dim, None)

        return partial(first_designs.opening_design, posed=posed)

    def _opening_batch(self, state: SequentialState, guess: Posterior) -> Plan | None:
        """The next batch that serves no candidate; None once the leader is worth testing.

        The leads that a prediction rests on are lowered by their errors: of many arms that were hardly measured the
        leader looks far better than it is.
        """
        processes, epsilon = state.processes, self.situation.problem.epsilon
        leader = guess.best_of(state.away)
        errors = np.nan_to_num(guess.errors(leader), posinf=0.0)  # an arm of which nothing is known is not told yet
        likely = guess.margins(leader, epsilon, caution=tuning.HEURISTIC_OPENING_CAUTION)
        margins = np.maximum(likely, HEURISTIC_LEAST_LEAD * errors)
        means = not processes.structured and self.situation.blocks is None
        share = HEURISTIC_OPENING_OF_MEANS if means else HEURISTIC_OPENING_OF_VECTORS
        spent, goal = self.spent(state), self.situation.goal(state, leader, guess, margins.__getitem__)
        enough = self.enough_for_opening(state, goal, share)
        if self.sizes.opened(spent, enough):
            return None
        told = np.maximum(epsilon, HEURISTIC_LEAST_TOLD * errors)
        asked = np.maximum(told, likely - epsilon + told)
        rest = self.rest_of(state, self.situation.goal(state, leader, guess, asked.__getitem__))
        total = min(self.sizes.opening(state.round, spent, self._grid(rest.dim, state)), enough - spent)
        return self._plan(state, guess, rest, total, candidate=None)

    def _plan(
        self, state: SequentialState, guess: Posterior, rest: RemainingPulls, total: float, *, candidate: int | None
    ) -> Plan:
        """A batch of about that much money in the proportions of what is still to be measured."""
        weights, problem = steadied_weights(rest.pulls / rest.pulls.sum()), self.situation.problem
        costs, lower = rest.costs, rest.lower_bound
        if costs is not None:  # a batch of less than the dearest pull would wait for it; all may go to the dearest arm
            dearest = min(float(costs[rest.pulls > 0.0].max(initial=1.0)), rest.total)
            total, lower = max(total, dearest) * rest.num_pulls / rest.total, lower / float(costs.max())
        embedded = self.situation.embedded(rest.dim)
        if not embedded.structured and self.sizes.free:
            squared_errors = guess.errors(NUMBER) ** 2
            seen = state.seen.counts[None], guess.scores[None], squared_errors[None]
            known = means_rule.Known(*seen, 1.0 if costs is None else costs)
            (weights,), (total,) = known.fair_shares(weights[None], np.array([total]))
        wanted = self.sizes.exact or max(1, math.ceil(total))
        if not embedded.structured:
            limit = wanted if self.sizes.largest is None else min(wanted, self.sizes.largest)
            counts = means_rule.integer_pulls(weights, max(limit, min(2, len(weights))), of=candidate)
        else:
            counts = self._rounded(rest.dim, weights, wanted, state.round, state.seen)
        return Plan(
            round=state.round,
            counts=counts,
            dim=rest.dim,
            predicted_pulls=None if candidate is None else rest.num_pulls,
            lower_bound=lower,
            misspecification=embedded.misspecification,
            candidate=candidate,
            predicted_cost=None if candidate is None or costs is None else rest.total * problem.cheapest_cost,
        )

    def _rounded(
        self, dim: int, weights: FloatArray, total: int, round_number: int, seen: Observations | None
    ) -> IntArray:
        """About so many pulls of arms with vectors, the reserved ones added; exactly so many where that is asked."""
        few = 0 if seen is None else self.situation.vectors(dim).white.shape[1]
        embedded = self.situation.embedded(dim)
        return batches.whole_batch(self.situation, embedded, weights, total, round_number, self.sizes, seen, few)

    def _grid(self, dim: int, state: SequentialState) -> Grid:
        """How pulls, or what they cost, grow where only few batches are allowed, as the scales look so far."""
        if self.sizes.most is None and self.sizes.fixed == 0.0:
            return Grid(1.0, 1.0)
        grid, problem = self._grid_at(dim, self._usual_scale(state)), self.situation.problem
        if problem.relative_costs is None:
            return grid
        price = self.spent(state) / state.pulls
        return Grid(price * grid.start, price * grid.end)

    def _grid_at(self, dim: int, sigma: float) -> Grid:
        """How pulls grow where only few batches are allowed, for that noise scale."""
        embedded, problem = self.situation.embedded(dim), self.situation.problem
        size, least = embedded.dim, max(2 * embedded.dim, 4)
        if not embedded.structured:
            size = least = embedded.num_arms
        return Grid.of(size, least, sigma=sigma, epsilon=problem.epsilon, threshold=threshold_of(problem))

    def _usual_scale(self, state: SequentialState) -> float:
        """The largest scale that is declared; where none is, the root mean square of what the pulls so far suggest."""
        if known_scale(self.situation.problem.noise):
            return self.situation.problem.sigma
        squares = self.situation.noise_mgf(state.seen).typical_scales(self.situation.problem.epsilon) ** 2
        return math.sqrt(float(state.seen.counts @ squares) / state.pulls)

    # --- What is still to be measured: for whom, through which vectors, and what that takes.

    def enough_for_opening(self, state: SequentialState, goal: OpenComparisons, share: float) -> float:
        """A share of what certifying the leader is predicted to cost; by a guess where a design takes long."""
        processes = state.processes
        if processes.structured and is_expensive(self.situation.vectors(processes.dim).embedded):
            vectors = self.situation.vectors(processes.dim)
            pulls = vectors_rule.pulls_by_direction(vectors, processes, goal, self.shares(state))
            return share * pulls / HEURISTIC_DESIGNED
        return share * self.rest_of(state, goal).total

    def rest(self, state: SequentialState, guess: Posterior) -> RemainingPulls:
        """The candidate to go on with, and the pulls that are predicted to certify it for the least money."""
        best = guess.best_of(state.away)
        candidate = best if state.candidate < 0 else state.candidate
        wanted = sought(state, self.situation.problem.epsilon, self.prefer, lambda: guess.looks)
        if wanted is not None:
            candidate = wanted
        elif best != candidate:
            doubted = self.goal_for(state, guess, candidate, least=HEURISTIC_LEAST_WHEN_SWITCHING)
            worth = tuning.HEURISTIC_SWITCH * self._effort(state, doubted)
            if self._effort(state, self.goal_for(state, guess, best), worth) < worth:
                candidate = best
        _, rest = self.planned_for(state, guess, candidate)
        if self.dim is None and state.processes.structured:
            rest = self._in_another_dimension(state, guess, rest)
        return rest

    def planned_for(
        self, state: SequentialState, guess: Posterior, candidate: int
    ) -> tuple[OpenComparisons, RemainingPulls]:
        """(what a plan for the candidate is to reach, what that is predicted to take); `guess` is that of the state."""

        def form() -> tuple[OpenComparisons, RemainingPulls]:
            goal = self.goal_for(state, guess, candidate)
            return goal, self.rest_of(state, goal)

        if state.processes.structured:
            return form()
        return self.situation.cache.of("planned", state, candidate, form)  # the bets of the batch ask for the same

    def goal_for(
        self, state: SequentialState, guess: Posterior, candidate: int, *, least: float = tuning.HEURISTIC_LEAST_MARGIN
    ) -> OpenComparisons:
        epsilon = self.situation.problem.epsilon
        margins = partial(guess.margins, candidate, epsilon, caution=tuning.HEURISTIC_CAUTION, least=least)
        return self.situation.goal(state, candidate, guess, margins)

    def _effort(self, state: SequentialState, goal: OpenComparisons, limit: float = math.inf) -> float:
        """What a plan for a goal takes, unless beyond the limit; in proportions so far where designs take long."""
        processes = state.processes
        if not processes.structured:
            return self.rest_of(state, goal).total
        vectors = self.situation.vectors(processes.dim)
        if goal.costs is None and min(len(goal.rivals), vectors.white.shape[1]) >= limit:
            return math.inf  # a design, which sees all directions, has no fewer arms
        if is_expensive(vectors.embedded):
            return vectors_rule.effort_by(vectors, processes, goal, self.shares(state), direct=self._direct(state))
        return self.rest_of(state, goal).effort

    def shares(self, state: SequentialState) -> FloatArray:
        """The pulls so far, as shares of what they cost, shape (K,)."""
        costs = self.situation.problem.relative_costs
        return state.seen.counts / state.pulls if costs is None else state.seen.counts * costs / self.spent(state)

    def surely(self, state: SequentialState, guess: Posterior, rest: RemainingPulls) -> RemainingPulls:
        """What certifies the candidate with one more batch, most of the time."""
        epsilon, moved = self.situation.problem.epsilon, self.situation.moved(state, rest.dim)
        margins = partial(guess.margins, rest.candidate, epsilon, caution=tuning.HEURISTIC_OPENING_CAUTION)
        goal = self.situation.goal(moved, rest.candidate, guess, margins)
        quantile = NormalDist().inv_cdf(1.0 - HEURISTIC_SHORT / (1 + len(goal.rivals)))
        return self.rest_of(moved, replace(goal, quantile=quantile))

    def rest_of(self, state: SequentialState, goal: OpenComparisons) -> RemainingPulls:
        """The pulls that are predicted to reach a goal."""
        processes = state.processes
        if not processes.structured:
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
        if noise_mgf.declared:
            return self._cheaper(processes, goal, lambda: planned(goal), direct=self._direct(state))
        rest = planned(goal)
        avoided = batches.underreplicated(rest.pulls, noise_mgf.bounded, vectors.white, self.situation.repeats)
        if not avoided.any():
            return rest
        scales = np.where(avoided, batches.AVOIDED, 1.0) * goal.noise_scales
        rest = planned(replace(goal, noise_scales=scales))
        return replace(rest, pulls=np.where(avoided, 0.0, rest.pulls))

    def _direct(self, state: SequentialState) -> bool:
        """Whether rivals themselves may be a batch: not with blocks, a given size, or repeats that are needed first."""
        known = self.situation.noise_mgf(state.seen).declared
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

    def _in_another_dimension(self, state: SequentialState, guess: Posterior, rest: RemainingPulls) -> RemainingPulls:
        """A larger dimension, if misspecification costs more than its extra directions would."""
        begun_already = state.vectors is not None and state.vectors.begun
        if begun_already and len(rest.bias_limited) == 0:
            return rest
        best, epsilon = rest, self.situation.problem.epsilon
        for dim in larger_dimensions(self.situation.embedding, rest.dim, epsilon):
            if not self._worth_a_design(state, guess, best, dim):
                break
            _, other = self.planned_for(self.situation.moved(state, dim), guess, rest.candidate)
            if other.effort >= best.effort:
                break
            best = other
        return best

    def _worth_a_design(self, state: SequentialState, guess: Posterior, best: RemainingPulls, dim: int) -> bool:
        """Whether a larger dimension may take far less, by its bias and the pulls so far where designs take long."""
        here = self.situation.moved(state, best.dim)
        vectors, processes = self.situation.vectors(best.dim), here.vectors
        if processes is None or not is_expensive(vectors.embedded):
            return True
        goal, shares = self.goal_for(here, guess, best.candidate), self.shares(state)
        less = replace(vectors.embedded, misspecification=self.situation.embedding.misspecification(dim))
        now, then = (
            vectors_rule.pulls_by_direction(one, processes, goal, shares)
            for one in (vectors, replace(vectors, embedded=less))
        )
        return then < tuning.HEURISTIC_DIMENSION * now

    def spent(self, state: SequentialState) -> float:
        """What the pulls so far cost, in pulls of the cheapest arm."""
        costs = self.situation.problem.relative_costs
        return float(state.pulls) if costs is None else float(state.seen.counts @ costs)


def steadied_weights(weights: FloatArray) -> FloatArray:
    """The weights to nine digits: what processors disagree on decides no tie between arms that want equally much."""
    known = weights > 0.0
    units = 10.0 ** (np.floor(np.log10(weights, out=np.zeros_like(weights), where=known)) - 8.0)
    return np.asarray(np.where(known, np.round(weights / units) * units, 0.0))
