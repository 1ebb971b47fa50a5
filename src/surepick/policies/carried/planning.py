"""What to measure next: the opening, the candidate, the dimension, the batch."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from statistics import NormalDist

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.design import Design, Embedding, IndependentArms
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.designs import round_design
from surepick.errors import ContractError
from surepick.estimators import NoiseMgf, NormalMgf
from surepick.estimators.mean_processes import MeanProcesses
from surepick.estimators.normal_mgf import joint_failure
from surepick.estimators.vector_processes import VectorProcesses
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks
from surepick.policies.base import designed
from surepick.policies.carried import batch_sizes, means_rule, repeats, vectors_rule
from surepick.policies.carried.batch_sizes import BatchSizes, Grid
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
from surepick.policies.certified.conclusion import capped, threshold_of
from surepick.policies.dimension import best_found, cheapest_dimension

HEURISTIC_OPENING_OF_VECTORS = 0.03  # the opening ends at this share of what certifying the leader is predicted to cost
HEURISTIC_OPENING_OF_MEANS = 0.05  # ... where its pulls are evidence too
HEURISTIC_LEAST_LEAD = 0.5  # ... and what they are at least: one close rival does not keep the opening going
HEURISTIC_LEAST_TOLD = 0.5  # standard errors that an opening batch is asked to tell apart, if epsilon is smaller
HEURISTIC_MISSED = 0.1  # how often the last batch that is allowed may fall short
HEURISTIC_REPEATS = 5  # of each arm where scales are unknown: the least that give a useful bound
HEURISTIC_SWITCH = 0.8  # another candidate must be predicted to cost less than this share


@record
class Planner:
    """Where the next batch measures. Nothing here can make a certificate wrong.

    Args:
        situation: the question and the arms.
        dim, tolerance, reserve: as in `CarriedElimination`.
        sizes: of the batches.
    """

    situation: Situation
    dim: int | None
    tolerance: float
    reserve: float
    sizes: BatchSizes

    def next_batch(self, state: CarriedState) -> Plan:
        """A function of what was told."""
        if state.processes is None:
            return self._first_batch(state.round)
        unmeasured = self._unmeasured_arms(state) or self._unrepeated_arms(state)
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
            rest = self._surely(state, guess, rest)
        total = self.sizes.testing(state.round, self._spent(state), rest.total, self._grid(rest.dim, state))
        return self._plan(state, rest, total, candidate=rest.candidate)

    def _first_batch(self, round_number: int) -> Plan:
        """All differences alike; without structure a pull of each arm, or as many each where batches are few."""
        dim, design = self._first_dimension()
        embedded, problem = self.situation.embedded(dim), self.situation.problem
        costs, grid = problem.relative_costs, None
        if known_scale(problem.noise):
            grid = self._grid_at(dim, problem.sigma)
        if isinstance(embedded, IndependentArms):
            total = self.sizes.first(
                self._repeats_alone * embedded.num_arms, grid, 1.0 if costs is None else float(costs.mean())
            )
            counts = batch_sizes.listed(embedded.num_arms, total, 1)
        else:
            weights = self._first_weights(embedded, design)
            usual = max(2 * embedded.dim, 4, self._repeats * int(np.count_nonzero(weights)))
            price = 1.0 if costs is None else float(weights @ costs / weights.sum())
            counts = self._rounded(dim, weights, self.sizes.first(usual, grid, price), round_number, None)
        return designed(round_number, counts, design, embedded)

    def _first_weights(self, embedded: Embedding, design: Design) -> FloatArray:
        """Shares of the first pulls: the design's; where costs differ, for differences from a central arm in money.

        Where scales are unknown, equal ones of few of its arms.
        """
        costs, weights = self.situation.problem.relative_costs, design.weights
        if costs is not None:
            priced = best_found(sampling_rule.opening_from_middle, embedded, self.tolerance, np.sqrt(costs))
            weights = np.asarray(priced.weights / costs)
        if known_scale(self.situation.problem.noise):
            return weights
        support = np.flatnonzero(weights)
        white = self.situation.vectors(embedded.dim).white[support]
        few = np.zeros_like(weights)
        few[support[repeats.spanning(np.sqrt(weights[support])[:, None] * white)]] = 1.0
        return few

    def _unmeasured_arms(self, state: CarriedState) -> Plan | None:
        """Without structure, and with batches of a given size: the next arms, until each had its turn."""
        if self.sizes.exact is None or not isinstance(state.processes, MeanProcesses):
            return None
        num_arms, size = len(state.beaten), self.sizes.exact
        if state.round > batch_sizes.batches_of_a_list(self._repeats_alone * num_arms, size):
            return None
        counts = batch_sizes.listed(num_arms, size, state.round)
        return Plan(round=state.round, counts=counts, dim=state.dim, lower_bound=0.0)

    def _unrepeated_arms(self, state: CarriedState) -> Plan | None:
        """With features and scales that are unknown: the arms of the first batch, until their scales have bounds."""
        processes = state.processes
        noise_mgf = self.situation.noise_mgf(state.seen)
        if isinstance(noise_mgf, NoiseMgf) or not isinstance(processes, VectorProcesses):
            return None
        vectors, counts = self.situation.vectors(processes.dim), state.seen.counts
        if repeats.spans(vectors.white[noise_mgf.bounded]):
            return None
        left = repeats.lacking(counts, vectors.white, self._repeats)
        if not repeats.spans(vectors.white[counts > 0]):
            embedded = vectors.embedded
            design = best_found(self._opening_design, embedded, self.tolerance)
            left = np.maximum(left, np.where(counts > 0, 0, self._repeats * self._first_weights(embedded, design)))
        if not left.any():  # repeats that are all equal show no scale
            return None
        limit = self.sizes.exact or min(int(left.sum()), self.sizes.largest or int(left.sum()))
        planned = batch_sizes.rounded(left.astype(np.float64), max(limit, 1), state.round)
        gamma = vectors.embedded.misspecification
        return Plan(round=state.round, counts=planned, dim=processes.dim, lower_bound=0.0, misspecification=gamma)

    @property
    def _repeats_alone(self) -> int:
        """Pulls of each arm with which a study without structure begins: several where they must show its scale."""
        if known_scale(self.situation.problem.noise):
            return 1
        few = self.sizes.most is not None or self.sizes.fixed > 0.0
        return self._repeats if few else HEURISTIC_REPEATS

    @property
    def _repeats(self) -> int:
        """Pulls of an arm after which its pulls may enter the processes of others."""
        problem = self.situation.problem
        if known_scale(problem.noise):
            return 1
        return repeats.repeats_for(joint_failure(failure_probability(problem.noise, problem.delta), problem.num_arms))

    def _first_dimension(self) -> tuple[int, Design]:
        """The dimension that tells all differences to within epsilon for the fewest pulls, and its design."""
        everybody = np.arange(self.situation.problem.num_arms)
        if self.dim is not None or model_checks.norm_bound_uninformative(
            self.situation.embedding, self.situation.problem.epsilon
        ):
            dim = self.situation.embedding.max_dim if self.dim is None else self.dim
        else:
            distinct = self.situation.embedding.num_distinct > 2
            try:
                choice = cheapest_dimension(
                    self.situation.embedding,
                    everybody,
                    self.situation.problem.epsilon,
                    tolerance=self.tolerance,
                    least_dim=2 if distinct else 1,
                    least_value=1.0 if distinct else 0.0,
                    design_of=self._opening_design,
                )
            except ContractError:  # no room for equal arms anywhere; arms that differ by more may still be rejected
                dim = self.situation.embedding.max_dim
            else:
                return choice.dim, choice.design
        return dim, best_found(self._opening_design, self.situation.embedded(dim), self.tolerance)

    def _opening_design(self, embedded: Embedding | IndependentArms, tolerance: float) -> Design:
        """`sampling_rule.opening_design`, for arms that are posed once.

        Raises:
            NotConverged: from the solver; carries a design that is good enough for a start.
        """
        if isinstance(embedded, IndependentArms) or embedded.num_arms <= sampling_rule.HEURISTIC_MANY:
            return sampling_rule.opening_design(embedded, tolerance)
        return sampling_rule.opening_from_middle(embedded, tolerance, posed=self.situation.posed(embedded.dim, None))

    def _opening_batch(self, state: CarriedState, guess: Guess) -> Plan | None:
        """The next batch that serves no candidate; None once the leader is worth testing.

        The leads that a prediction rests on are lowered by their errors: of many arms that were hardly measured the
        leader looks far better than it is.
        """
        processes, epsilon = begun(state), self.situation.problem.epsilon
        leader = guess.best_of(state.away)
        errors = np.nan_to_num(guess.errors(leader), posinf=0.0)  # an arm of which nothing is known is not told yet
        likely = guess.margins(leader, epsilon, caution=HEURISTIC_OPENING_CAUTION)
        margins = np.maximum(likely, HEURISTIC_LEAST_LEAD * errors)
        means = isinstance(processes, MeanProcesses) and self.situation.blocks is None
        share = HEURISTIC_OPENING_OF_MEANS if means else HEURISTIC_OPENING_OF_VECTORS
        enough = share * self.rest_of(state, self.situation.goal(state, leader, guess, margins.__getitem__)).total
        spent = self._spent(state)
        if self.sizes.opened(spent, enough):
            return None
        told = np.maximum(epsilon, HEURISTIC_LEAST_TOLD * errors)
        asked = np.maximum(told, likely - epsilon + told)
        rest = self.rest_of(state, self.situation.goal(state, leader, guess, asked.__getitem__))
        total = min(self.sizes.opening(state.round, spent, self._grid(rest.dim, state)), enough - spent)
        return self._plan(state, rest, total, candidate=None)

    def rest(self, state: CarriedState, guess: Guess) -> Rest:
        """The candidate to go on with, and the pulls that are predicted to certify it for the least money."""
        best = guess.best_of(state.away)
        candidate = best if state.candidate < 0 else state.candidate
        rest = self._rest_for(state, guess, candidate)
        if best != candidate:
            other = self._rest_for(state, guess, best)
            doubted = self._rest_for(state, guess, candidate, least=HEURISTIC_LEAST_WHEN_SWITCHING)
            if other.total < HEURISTIC_SWITCH * doubted.total:
                rest = other
        if self.dim is None and isinstance(state.processes, VectorProcesses):
            rest = self._in_another_dimension(state, guess, rest)
        return rest

    def _rest_for(
        self, state: CarriedState, guess: Guess, candidate: int, *, least: float = HEURISTIC_LEAST_MARGIN
    ) -> Rest:
        epsilon = self.situation.problem.epsilon
        margins = partial(guess.margins_of, candidate, epsilon=epsilon, caution=HEURISTIC_CAUTION, least=least)
        return self.rest_of(state, self.situation.goal(state, candidate, guess, margins))

    def _surely(self, state: CarriedState, guess: Guess, rest: Rest) -> Rest:
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
        vectors, costs = self.situation.vectors(processes.dim), self.situation.problem.relative_costs
        weights = state.seen.counts / state.pulls if costs is None else state.seen.counts * costs / self._spent(state)
        planned = partial(
            vectors_rule.planned,
            vectors,
            processes,
            weights=weights,
            tolerance=self.tolerance,
            posed=partial(self.situation.posed, processes.dim),
        )
        rest, noise_mgf = planned(goal), self.situation.noise_mgf(state.seen)
        if isinstance(noise_mgf, NoiseMgf):
            return rest if goal.away is None else replace(rest, pulls=np.where(goal.away, 0.0, rest.pulls))
        avoided = repeats.unworthy(rest.pulls, noise_mgf.bounded, vectors.white, self._repeats)
        if not avoided.any():
            return rest
        scales = np.where(avoided, repeats.AVOIDED, 1.0) * goal.noise_scales
        rest = planned(replace(goal, noise_scales=scales))
        return replace(rest, pulls=np.where(avoided, 0.0, rest.pulls))

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
            other = self._rest_for(self.situation.moved(state, dim), guess, rest.candidate)
            if other.total >= best.total:
                break
            best = other
        return best

    def _plan(self, state: CarriedState, rest: Rest, total: float, *, candidate: int | None) -> Plan:
        """A batch of about that much money in the proportions of what is still to be measured."""
        weights = steadied(rest.pulls / rest.pulls.sum())
        if rest.costs is not None:
            total = max(total, rest.dearest_pull) * rest.num_pulls / rest.total
        wanted = self.sizes.exact or max(1, math.ceil(total))
        embedded = self.situation.embedded(rest.dim)
        if isinstance(embedded, IndependentArms):
            limit = wanted if self.sizes.largest is None else min(wanted, self.sizes.largest)
            counts = means_rule.whole(weights, max(limit, min(2, len(weights))), of=candidate)
        else:
            counts = self._rounded(rest.dim, weights, wanted, state.round, state.seen)
        return Plan(
            round=state.round,
            counts=counts,
            dim=rest.dim,
            predicted_pulls=None if candidate is None else rest.num_pulls,
            lower_bound=rest.least_pulls,
            misspecification=embedded.misspecification,
            candidate=candidate,
            predicted_cost=None
            if candidate is None or rest.costs is None
            else rest.total * self.situation.problem.cheapest_cost,
        )

    def _spent(self, state: CarriedState) -> float:
        """What the pulls so far cost, in pulls of the cheapest arm."""
        costs = self.situation.problem.relative_costs
        return float(state.pulls) if costs is None else float(state.seen.counts @ costs)

    def _rounded(
        self, dim: int, weights: FloatArray, total: int, round_number: int, seen: Observations | None
    ) -> IntArray:
        """About so many pulls of arms with vectors, the reserved ones added; exactly so many where that is asked.

        Args:
            seen: everything told so far; None: nothing.
        """
        embedding, exact, costs = self.situation.embedding, self.sizes.exact, self.situation.problem.relative_costs
        noise_mgf = None if seen is None else self.situation.noise_mgf(seen)
        if exact is None:
            total = capped(total, weights, largest_batch=self.sizes.largest, reserve=self.reserve)
            counts = round_design(weights, total)
            if known_scale(self.situation.problem.noise):
                return model_checks.with_check_pulls(embedding, dim, counts, share=self.reserve, costs=costs)
            if seen is None or not isinstance(noise_mgf, NormalMgf):
                return counts
            counts = repeats.completed(counts, seen.counts, noise_mgf.bounded, self._repeats, self.sizes.largest)
            return counts + self._check_repeats(dim, counts, seen, noise_mgf)

        def spread(pulls: int) -> IntArray:
            return model_checks.spread_over_equals(embedding, batch_sizes.rounded(weights, pulls, round_number), costs)

        if not known_scale(self.situation.problem.noise):
            return batch_sizes.rounded(weights, exact, round_number)
        extra = model_checks.check_pulls(
            embedding, dim, spread(max(1, int(exact / (1.0 + self.reserve)))), self.reserve, costs
        )
        return spread(exact - int(extra.sum())) + extra

    def _check_repeats(self, dim: int, counts: IntArray, seen: Observations, noise_mgf: NormalMgf) -> IntArray:
        """Pulls of other arms, so that a lack of fit can show."""
        embedding, costs = self.situation.embedding, self.situation.problem.relative_costs
        if model_checks.is_saturated(embedding, dim) and embedding.num_distinct == embedding.num_arms:
            return np.zeros_like(counts)
        features = embedding.at(embedding.max_dim).features
        return repeats.check_repeats(
            features, counts, seen.counts, noise_mgf.bounded, self._repeats, self.reserve, costs
        )

    def _grid(self, dim: int, state: CarriedState) -> Grid:
        """How pulls, or what they cost, grow where only few batches are allowed, as the scales look so far."""
        if self.sizes.most is None and self.sizes.fixed == 0.0:
            return Grid(1.0, 1.0)
        grid, problem = self._grid_at(dim, self._usual_scale(state)), self.situation.problem
        if problem.relative_costs is None:
            return grid
        price = self._spent(state) / state.pulls
        return Grid(price * grid.start, price * grid.end)

    def _grid_at(self, dim: int, sigma: float) -> Grid:
        """How pulls grow where only few batches are allowed, for that noise scale."""
        embedded, problem = self.situation.embedded(dim), self.situation.problem
        size, least = embedded.dim, max(2 * embedded.dim, 4)
        if isinstance(embedded, IndependentArms):
            size = least = embedded.num_arms
        return Grid.of(size, least, sigma=sigma, epsilon=problem.epsilon, threshold=threshold_of(problem))

    def _usual_scale(self, state: CarriedState) -> float:
        """The largest scale that is declared; where none is, the root mean square of what the pulls so far suggest."""
        if known_scale(self.situation.problem.noise):
            return self.situation.problem.sigma
        squares = self.situation.noise_mgf(state.seen).typical_scales(self.situation.problem.epsilon) ** 2
        return math.sqrt(float(state.seen.counts @ squares) / state.pulls)


def steadied(weights: FloatArray) -> FloatArray:
    """The weights to nine digits: what processors disagree on decides no tie between arms that want equally much."""
    known = weights > 0.0
    units = 10.0 ** (np.floor(np.log10(weights, out=np.zeros_like(weights), where=known)) - 8.0)
    return np.asarray(np.where(known, np.round(weights / units) * units, 0.0))
