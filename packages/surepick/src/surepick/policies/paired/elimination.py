"""Certified elimination from differences within blocks, of normal noise whose scale nobody knows."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Blocking, Deciding, Plan, Step
from surepick.core.records import FloatArray, IntArray, frozen, record, set_fields
from surepick.errors import ContractError, InvalidInput
from surepick.estimators import NormalMgf
from surepick.estimators.noise_mgf import likely_variances
from surepick.estimators.pairs import ArmPairs, alone, pairs_with, pooled, without_pair_effects
from surepick.estimators.posterior import HEURISTIC_LEAST_WHEN_SWITCHING, Posterior, posterior_of_means
from surepick.estimators.running_processes import UNKNOWN, MeanProcesses
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks, options, tuning
from surepick.policies.base import Traits, check_arms, delta_for_test, threshold_of
from surepick.policies.carried.means_rule import integer_pulls
from surepick.policies.carried.planning import steadied_weights
from surepick.policies.carried.situation import carried_intervals
from surepick.policies.options import check_options, option
from surepick.policies.paired import rule
from surepick.policies.paired.rule import PairSpread
from surepick.policies.preference import Preference, checked_preference
from surepick.policies.sequential import state as states
from surepick.policies.sequential.engine import BatchSizes, EmbeddedTest, Grid, jointly_normal
from surepick.policies.sequential.state import SequentialState

# --- What a study of differences within blocks has come to.


@frozen
class PairedState(SequentialState):
    """Where the study stands; what it has seen is without the effects of blocks."""

    opening: BlockTotals | None = None  # what the blocks of the first batch with results had; None before it
    pairs: tuple[ArmPairs, ...] = ()  # those with each arm that was a candidate

    def less_typical(self, blocks: BlockTotals) -> BlockTotals:
        """Blocks less the typical reward of the first batch: only differences are used, and so they lose no digit."""
        return blocks.less((blocks if self.opening is None else self.opening).typical)

    def pairs_of(self, centre: int) -> ArmPairs:
        """Those with an arm while it was a candidate, and in the opening."""
        known = next((one for one in self.pairs if one.centre == centre), None)
        if known is not None:
            return known
        if self.opening is None:
            raise ContractError("nothing was told yet.")
        return pairs_with(self.less_typical(self.opening), centre, len(self.beaten))


def _means(state: PairedState) -> MeanProcesses:
    """The processes after the first batch."""
    if state.means is None:
        raise ContractError("nothing was told yet.")
    return state.means


@record
class PairedElimination(EmbeddedTest):
    """Certify one candidate c by differences within blocks, for each arm j, against "j is the best arm, and better than
    c by epsilon".

        log M_j grows by  sum y - cost  in a batch for c,    y = w (beta r_c - r_j) in blocks that have both
        U_j = (log(1/delta) - log M_j) / F_j(c),    F_j(c): the bets so far while c was the candidate
        recommend c when every U_j has once been at most epsilon

    Blocks are streams of random numbers that several systems share, or days and plates on which every candidate is
    measured at most once. The rewards of a block may go together as they like: what is assumed is that they are jointly
    normal, alike in all blocks, and independent from block to block. So only the variance of a difference matters, and
    it is bounded from the differences themselves. Bets against former candidates are kept: that j is the best arm is
    false of all but one, and of that one they say nothing wrong (docs/certified-elimination.md, lines 27 and 28).

    The noise is `Normal`, the embedding that of arms without features. The first batch measures each arm in five
    blocks, which show how much differences vary. Each later one is for the
    leader, which is in each of its blocks.

    Source: ours; common random numbers in ranking and selection: Nelson & Matejcik (1995).
    """

    # what measurements that may all be off by one amount are called ("day"): the column of results that names the block
    # of each
    blocks: str | None = option(None, options.block_name)
    # in its place, what measurements that share random numbers are called ("stream"): nothing is added to all of them,
    # so that arms that do not go together are compared as if they had been measured apart
    streams: str | None = option(None, options.block_name)
    # most pulls in a batch after the first, but for those that put the candidate in each block; None: no limit
    largest_batch: int | None = option(None, options.largest_batch)
    prefer: Preference = None  # a number of each arm: of those that are certified the one with the smallest is named
    evidence: str = field(default="paired", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_arms(self.problem, self.embedding.num_arms)
        check_options(self)
        if (self.blocks is None) == (self.streams is None):
            both = "blocks and streams are both given" if self.blocks is not None else "nothing says what goes together"
            raise InvalidInput(
                f"{both}; name one: streams of random numbers that candidates share, or blocks (days, plates) that may "
                "be off by any amount beside."
            )
        if known_scale(self.problem.noise) or self.embedding.traits.family != "independent":
            raise InvalidInput(
                f"how much differences within a {self.blocks or self.streams} vary is measured, not declared, and "
                "features are not used: take --noise normal (Normal()) and certified-independent. With a declared "
                "noise take --blocks."
            )
        delta_for_test(self.problem)
        set_fields(self, prefer=checked_preference(self.problem, self.prefer))

    @property
    def traits(self) -> Traits:
        return Traits(
            eliminates=True,
            certifies="candidate",
            corrects=True,
            checks=(model_checks.SPREAD,),
            embedding=self.embedding,
            misspecification=self.embedding.misspecification,
            blocks=self.blocking,
        )

    @property
    def blocking(self) -> Blocking:
        """What is said of blocks: an arm is in each at most once, and none goes on in a later plan."""
        return Blocking(self.blocks or self.streams or "", once=True, anew=True, again=self.streams is not None)

    def init(self) -> PairedState:
        start = EmbeddedTest.init(self)
        return PairedState(start.round, start.seen, start.lists, start.beaten, start.finished, start.leader)

    def ask(self, state: PairedState) -> Plan:
        num_arms = self.problem.num_arms
        if state.means is None:
            counts = np.full(num_arms, tuning.HEURISTIC_REPEATS)
            return Plan(round=state.round, counts=counts, dim=num_arms, lower_bound=0.0)
        rest = self._rest(state, self._guess(state))
        total = BatchSizes(None, None, None).testing(state.round, state.pulls, rest.total, Grid(1.0, 1.0))
        limit = np.inf if self.largest_batch is None else self.largest_batch
        wanted = int(max(min(np.ceil(total), limit), 2))
        counts = integer_pulls(steadied_weights(rest.pulls / rest.pulls.sum()), wanted, of=rest.candidate)
        counts[rest.candidate] = max(1, int(counts.max()))
        return Plan(
            round=state.round,
            counts=counts,
            dim=num_arms,
            predicted_pulls=rest.num_pulls,
            lower_bound=0.0,
            candidate=rest.candidate,
        )

    def tell(self, state: PairedState, plan: Plan, seen: Observations) -> Step[PairedState]:
        if seen.blocks is None or seen.total == 0:
            return self._step(state, plan, seen)
        if np.any(seen.blocks.counts > 1):
            raise InvalidInput(f"a candidate has two results in one {self.blocking.name}; one each can be compared.")
        if state.begun and plan.candidate is None:
            raise InvalidInput("a plan after the first one names the candidate that it is for.")
        return EmbeddedTest.tell(self, state, plan, seen)

    def bets(self, state: PairedState, plan: Plan, seen: Observations) -> Any:
        """Functions of the past and of which pairs came (line 1); None in the first batch."""
        candidate = plan.candidate
        if not state.begun or candidate is None or seen.blocks is None:
            return None
        guess, spread = self._guess(state), self._spread(state, candidate)
        planning = guess.margins(candidate, self.problem.epsilon, caution=tuning.HEURISTIC_CAUTION)
        goal = self._goal(state, guess, candidate, planning, spread)
        restarts = rule.pairs_remaining(_means(state), goal, spread).restarts
        margins = guess.margins(candidate, self.problem.epsilon)
        goal = self._goal(state, guess, candidate, margins, spread)
        number, _, _ = alone(seen.blocks, candidate)
        counts = pairs_with(seen.blocks, candidate, self.problem.num_arms).counts
        return rule.pair_bets(goal, margins[goal.rivals], counts, number, spread, restarts)

    def update(self, state: PairedState, plan: Plan, bets: Any, seen: Observations) -> dict[str, Any]:
        if bets is None or seen.blocks is None or plan.candidate is None:
            first = MeanProcesses.started(self.problem.num_arms, math.log(states.HEURISTIC_FIRST_START))
            return {"means": first, "opening": seen.blocks}
        blocks = state.less_typical(seen.blocks)
        known, news = state.pairs_of(plan.candidate), pairs_with(blocks, plan.candidate, self.problem.num_arms)
        # none is forgotten: a list that began anew would have a bound, and a chance to fail, of its own
        pairs = (*(one for one in state.pairs if one.centre != plan.candidate), known.plus(news))
        return {"means": bets.told(_means(state), blocks, news), "pairs": pairs}

    def decide(self, state: PairedState, after: PairedState, _: Plan) -> PairedState:
        """Who leads, what is known of the candidate, and whether that is enough."""
        leader, threshold = self._guess(after).likeliest(self.problem.epsilon), threshold_of(self.problem)
        tested = state.tested
        for one in sorted({leader, leader if after.candidate < 0 else after.candidate}):
            tested = states.intersected(tested, one, rule.upper_bounds(_means(after), one, threshold))
        beaten = state.beaten | np.any([one.bounds < 0.0 for one in tested], axis=0)
        after = replace(after, leader=leader, tested=tested, beaten=beaten)
        return states.stop_if_decided(after, self.problem.epsilon, self.prefer, lambda: self._guess(after).looks)

    def failed_checks(self, state: PairedState, plan: Plan, seen: Observations) -> tuple[str, ...]:
        if not state.begun or plan.candidate is None or seen.blocks is None:
            return ()
        known = state.pairs_of(plan.candidate)
        news = pairs_with(state.less_typical(seen.blocks), plan.candidate, self.problem.num_arms)
        bounds = rule.spread_of_differences(known, self._failure)
        nothing = np.zeros_like(bounds.variances)
        mgf = NormalMgf(bounds.difference_bounds, bounds.difference_bounds, bounds.variances, nothing, known.counts)
        far = model_checks.spread_of_repeats(self.problem, mgf, known.differences, news.differences)
        return (far,) if far else ()

    def _without_effects(self, state: PairedState, _: Plan, seen: Observations) -> Observations:
        if seen.blocks is None:
            return seen
        blocks = state.less_typical(seen.blocks)
        if self.blocks is None:
            return pooled(blocks, np.zeros(blocks.number), self.problem.num_arms)
        return without_pair_effects(blocks, state.seen)

    def _endless(self, state: PairedState) -> bool:
        return bool((~state.beaten[self._equal(state, model_checks.ENDLESS)]).any())

    def _equal(self, state: PairedState, least: int = model_checks.FEWEST) -> IntArray:
        """The arms whose differences to the candidate are all equal."""
        if state.means is None or state.candidate < 0:
            return np.empty(0, np.int64)
        return model_checks.equal_repeats(self.problem, state.pairs_of(state.candidate).differences, least)

    def _answer(self, state: PairedState) -> dict[str, Any]:
        why = model_checks.why_not_certified(self.embedding, state.alarms, False)
        assumptions = jointly_normal(self.blocking.name, self._failure, shifts=self.streams is None)
        return {"assumptions": assumptions, "why_heuristic": why, "of_draws": False}

    def _gap(self, state: PairedState) -> float | None:
        """By how much the leader is worse than the best arm at most; None if nothing can be said."""
        if state.finished == "single":
            return 0.0
        if state.means is None:
            return None
        found = states.gap_of(state, state.leader)
        return None if found >= UNKNOWN else found

    def _deciding(self, after: PairedState) -> Deciding | None:
        if after.means is None:  # nothing can be guessed of a mean before the first result
            return None
        return lambda _: carried_intervals(after, self._guess(after), self.problem.epsilon)

    def _guess(self, state: PairedState) -> Posterior:
        """What the past suggests of the means, without the effects of blocks."""

        def form() -> Posterior:
            seen, scales = state.seen, np.sqrt(likely_variances(state.seen))
            if self.streams is not None:
                candidate = state.candidate
                centre = int(np.argmax(seen.means)) if candidate < 0 else candidate
                seen, scales = rule.controlled(seen, scales, self._spread(state, centre))
            return posterior_of_means(seen, scales, self.problem.epsilon)

        return self._cache.of("guess", state, None, form)

    @property
    def _failure(self) -> float:
        """What the bounds on variances may fail with."""
        return failure_probability(self.problem.noise, self.problem.delta)

    def _spread(self, state: PairedState, candidate: int) -> PairSpread:
        def form() -> PairSpread:
            pairs = state.pairs_of(candidate)
            if self.streams is None:
                return rule.spread_of_differences(pairs, self._failure)
            return rule.spread_of_streams(pairs, state.seen, self._failure)

        return self._cache.of("spread", state, candidate, form)

    def _rest(self, state: PairedState, guess: Posterior) -> states.RemainingPulls:
        """The candidate to go on with, and what it is predicted to take."""
        best, former = int(np.argmax(guess.scores)), state.candidate
        candidate = best if former < 0 else former
        wanted = states.sought(state, self.problem.epsilon, self.prefer, lambda: guess.looks)
        if wanted is not None:
            return self._rest_for(state, guess, wanted)
        rest = self._rest_for(state, guess, candidate)
        if best == candidate:
            return rest
        other = self._rest_for(state, guess, best)
        doubted = self._rest_for(state, guess, candidate, least=HEURISTIC_LEAST_WHEN_SWITCHING)
        return other if other.total < tuning.HEURISTIC_SWITCH * doubted.total else rest

    def _rest_for(
        self, state: PairedState, guess: Posterior, candidate: int, *, least: float = tuning.HEURISTIC_LEAST_MARGIN
    ) -> states.RemainingPulls:
        margins = guess.margins(candidate, self.problem.epsilon, caution=tuning.HEURISTIC_CAUTION, least=least)
        spread = self._spread(state, candidate)
        return rule.pairs_remaining(_means(state), self._goal(state, guess, candidate, margins, spread), spread)

    def _goal(
        self, state: PairedState, guess: Posterior, candidate: int, margins: FloatArray, spread: PairSpread
    ) -> states.OpenComparisons:
        """The rivals of a candidate that are neither rejected nor beaten; one of them where there is none."""
        threshold, scales = threshold_of(self.problem), spread.noise_scales(margins)
        bounds = rule.upper_bounds(_means(state), candidate, threshold)
        rivals = states.open_rivals(state, candidate, bounds, self.problem.epsilon)
        return states.OpenComparisons(
            candidate, rivals, margins[rivals], self.problem.epsilon, threshold, guess.scores, scales
        )
