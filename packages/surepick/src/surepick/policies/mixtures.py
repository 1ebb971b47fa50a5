"""Certified elimination of few candidates: each arm's evidence is a mixture over comparators and margins."""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Deciding, Plan, Step
from surepick.core.records import BoolArray, FloatArray, IntArray, record, set_fields
from surepick.errors import InvalidInput
from surepick.estimators import student_intervals
from surepick.estimators.flows import BatchWeights, Weighed
from surepick.estimators.margin_mixtures import PairBets, averaged
from surepick.estimators.posterior import Posterior, posterior_of_means
from surepick.estimators.running_processes import UNKNOWN
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks, options
from surepick.policies.base import Traits, threshold_of
from surepick.policies.carried.means_rule import whole_shares
from surepick.policies.carried.situation import carried_intervals, without_arms
from surepick.policies.mixture_rules import (
    MixtureRules,
    MixtureState,
    Rows,
    of_least_gap,
    one_row,
    ranked_alone,
    tested_in_order,
)
from surepick.policies.options import option
from surepick.policies.preference import Preference, checked_preference
from surepick.policies.sequential import batches, engine, state as states

READ_AFTER = 1.25  # times the pulls at the last one: when a reading looks at the evidence again


@record
class MixtureElimination(engine.EmbeddedTest):
    """Certify one of few candidates by evidence, for each arm j, against "j is the best arm".

        E_jc(m) = sum over arms a, margins k of pi_a q_k exp(L_jak + [a = c] m F_jak)
        U_jc = the m at which E_jc is 1/delta
        recommend c when every other j has once had E_j(0) >= 1/delta or U_jc <= epsilon

    The part (a, k) of j bets, in every batch, that a is better than j by lambda_k = epsilon 2^k. Nothing is guessed of
    gaps, and no candidate is tested more than another. With probability at least 1 - delta the answer is epsilon-best,
    for any rule that chooses arms and batch sizes from earlier batches (docs/mixtures.md has the proof).

    The first batch has two pulls of each arm. A later one is of the leader and of the rivals that are not settled
    against it. Of at most five candidates it has 5 % of the pulls that are still to come, as they are guessed, but at
    least 3 % of those so far and at most 25 %; of at most ten, 3 % of those to come, at least 3 % of those so far and
    at most 12 %; of more, 3 % of those so far. Batches of a size, few of them, and those that cost something are sized
    as with other evidence.

    Args:
        problem: what is asked: an epsilon-best arm of 2 or more, at equal costs; without a budget the noise has a
            known scale.
        embedding: that of arms that share nothing.
        largest_batch: most pulls in a batch, at least K; None: no limit.
        batch_size: pulls of every batch, at least K; None: chosen.
        batch_cost: what each batch costs beside its measurements, a measurement costing 1: the more, the fewer.
        max_batches: after so many batches with results the study ends, certified or not; None: no limit.
        budget: pulls in all, at least K, after which the study ends with the gap that they certify. If a uniform plan
            of them would not reach epsilon, all bets are on the margin that it would reach, and each batch is of those
            rivals that matter most to the largest bound at the end; None: no limit. With it K may be up to 1,000, and
            the scale of the noise unknown: then bounds are Student's intervals (docs/budget.md).
        any_gap: with a budget: no tolerance was asked for, and whatever gap it certifies is what the answer promises.
        prefer: a number of each arm: of those that are certified at the end the one with the smallest is named; None:
            the one that looks best.

    Raises:
        InvalidInput: a setting has no meaning, or other evidence answers the question.

    Source: ours, after Robbins (1970) and Kaufmann & Koolen (2021) for mixtures; docs/decisions/0050.
    """

    largest_batch: int | None = option(None, options.largest_batch)
    batch_size: int | None = option(None, options.batch_size)
    max_batches: int | None = option(None, options.max_batches)
    batch_cost: float = option(0.0, options.batch_cost)
    budget: int | None = option(None, options.budget)
    any_gap: bool | None = option(None, options.yes)
    prefer: Preference = None
    evidence: str = field(default="mixtures", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        engine.EmbeddedTest.__post_init__(self)
        given = {name: getattr(self, name) for name in ("batch_size", "largest_batch", "budget")}
        unfit = options.unfit_for_mixtures(self.problem, given)
        if self.any_gap and self.budget is None:
            raise InvalidInput("any_gap is for a study with a budget: give one, or leave any_gap out.")
        if self.any_gap and self.prefer is not None:
            raise InvalidInput("prefer chooses among those that are good enough: give epsilon, or leave prefer out.")
        set_fields(self, prefer=checked_preference(self.problem, self.prefer))
        if unfit or self._uses_features:
            unfit = unfit or "features are used"
            raise InvalidInput(f"evidence='mixtures' is for few candidates, and {unfit}: leave evidence out.")

    @property
    def traits(self) -> Traits:
        return self._traits(
            eliminates=True,
            certifies="candidate",
            judges_parts=True,
            uses_costs=True,
            batch_cost=self.batch_cost,
            withdraw=self.withdraw,
            together=self._rules if self._plain and self.prefer is None and self._rules.intervals is None else None,
            weigh=self.weigh,
            budget=self.budget,
            any_gap=bool(self.any_gap),
            gap_at=self.gap_at,
        )

    @property
    def _plain(self) -> bool:
        """Whether batches are chosen, so that many studies can be played at once."""
        sizes = self._sizes
        begins = not self.problem.answer_without_pulls()[0]
        return begins and sizes.exact is None and sizes.most is None and sizes.fixed == 0.0

    @property
    def _rules(self) -> MixtureRules:
        return MixtureRules(self.problem, self.largest_batch, self.budget, self._over)

    @property
    def _over(self) -> str:
        """Why a study is finished whose budget is spent: where no tolerance was asked for, its gap is the answer."""
        return "certified" if self.any_gap else "budget"

    @property
    def _sizes(self) -> engine.BatchSizes:
        fixed = self.batch_cost / self.problem.cheapest_cost
        return engine.BatchSizes(self.largest_batch, self.batch_size, self.max_batches, fixed)

    def init(self) -> MixtureState:
        start = engine.EmbeddedTest.init(self)
        return MixtureState(start.round, start.seen, start.lists, start.beaten, start.finished, start.leader)

    def ask(self, state: MixtureState) -> Plan:
        num_arms, sizes = self.problem.num_arms, self._sizes
        wanted = states.sought(state, self.problem.epsilon, self.prefer, lambda: self._posterior(state).looks)
        state = state if wanted is None else replace(state, leader=wanted)
        if not state.begun:
            total = sizes.first(self._rules.usual_first, self._grid)
            total = total if self.budget is None else min(total, self.budget)
            counts = batches.listed_sizes(num_arms, total, 1)
            return Plan(round=state.round, counts=self._there(state, counts), dim=num_arms, lower_bound=0.0)
        row = self._row(state)
        rest = float(self._rules.rest(row, self._rules.shares(row, state.away[None]))[0])
        usual = self._plain and state.roster is None
        counts = self._rules.ask(row).counts[0] if usual else self._sized(state, rest)
        return Plan(
            round=state.round,
            counts=counts,
            dim=num_arms,
            predicted_pulls=rest,
            lower_bound=0.0,
            candidate=state.leader,
        )

    def bets(self, state: MixtureState, plan: Plan, seen: Observations) -> PairBets | None:
        """Functions of the past and of how many results came (line 1)."""
        if plan.dim != self.problem.num_arms:
            raise InvalidInput(f"the plan is of {plan.dim} dimensions, and {self.problem.num_arms} arms have as many.")
        if seen.total == 0 or self._rules.intervals is not None:
            return None
        return self._rules.bets(one_row(state.seen), seen.counts[None])

    def update(self, state: MixtureState, plan: Plan, bets: Any, seen: Observations) -> dict[str, Any]:  # noqa: ARG002
        shape = (*[self.problem.num_arms] * 2, self._rules.num_margins)
        log_values, flows = state.parts if state.begun else (np.zeros(shape), np.zeros(shape))
        if bets is None:
            return {"log_values": log_values, "flows": flows}
        gained = bets.gained(self.problem.noise, one_row(seen))[0]
        return {"log_values": log_values + gained, "flows": flows + bets.flows[0]}

    def decide(self, state: MixtureState, after: MixtureState, _: Plan) -> MixtureState:
        after = self._concluded(after, self._known(state), state.beaten)
        if after.finished or not self._spent(after):
            return after
        if self.prefer is not None and (why := states.good_enough(after, self.problem.epsilon)[0]):
            return replace(after, finished=why)
        gone = (
            after.seen.means[None],
            self._known(after)[None],
            (after.beaten | after.dropped)[None],
            after.away[None],
        )
        after = replace(after, leader=int(of_least_gap(*gone)[0]))
        return replace(after, finished="budget" if self._gap(after) is None else self._over)

    def _spent(self, state: MixtureState) -> bool:
        """Whether nothing is left of the budget."""
        return bool(self._rules.spent(np.array([state.pulls]))[0])

    def weigh(self, state: MixtureState, plan: Plan, seen: Observations) -> Weighed | None:
        """One process an arm, in place of the parts: their weighted mean, with the weights that say most of the leader.

        At the end of a study, and each time that there are a quarter more pulls: a reading looks at each of these.

        Source: docs/mixtures.md, line 50.
        """
        if self._rules.intervals is not None:
            return None
        after = self.tell(state, plan, seen).state
        number = math.floor(math.log(max(after.pulls, 1)) / math.log(READ_AFTER))
        if seen.total == 0 or (not after.finished and state.pulls >= READ_AFTER**number):
            return None
        pulled = np.flatnonzero(after.seen.counts)
        now, values = self._averaged(after)
        counts, arms = after.seen.counts[pulled], np.arange(self.problem.num_arms)
        # each time the whole flow: its lengths add up to more than it can be off by
        batch = BatchWeights(arms, pulled, counts, now[:, pulled] / counts, now[:, pulled], plain=False)
        return Weighed(batch, np.ones_like(arms), values, self._threshold)

    def _averaged(self, state: MixtureState) -> tuple[FloatArray, FloatArray]:
        """(F, (K, K), and L, (K,), of the mean of the parts of each arm's process, weighted for the leader)."""
        num_arms = self.problem.num_arms
        if not state.begun:
            return np.zeros((num_arms, num_arms)), np.zeros(num_arms)
        bounds = np.where(state.beaten, 0.0, np.clip(state.bounds_of(state.leader), 0.0, UNKNOWN))
        return averaged(*state.parts, state.leader, np.where(bounds < UNKNOWN, bounds, 0.0))

    def withdraw(self, step: Step[MixtureState], arms: IntArray, independent: BoolArray) -> Step[MixtureState]:
        """The step, when some arms are neither measured nor recommended any more; as `CarriedElimination.withdraw`.

        What parts that compare with an arm that is dropped have shown is forgotten.

        Source: docs/changing-candidates.md, lines 29 to 31; docs/mixtures.md, line 49.
        """
        state = step.state
        if state.finished == "given":
            return step
        after, roster = without_arms(state, arms, independent)
        forgets = (roster.excluded & ~state.dropped).any()
        known = self._known(state) if not forgets else np.full((len(state.beaten),) * 2, UNKNOWN)
        why = self._over if self._spent(state) else "budget" if self._sizes.over(state.round) else ""
        after = replace(after, roster=roster, finished=why)
        if after.begun:
            after = self._concluded(after, known, after.beaten)
        else:
            leader = int(np.argmin(roster.unavailable)) if roster.unavailable[state.leader] else state.leader
            alone = np.count_nonzero(~roster.unavailable) == 1 and not why
            only = "single" if np.count_nonzero(~roster.excluded) == 1 else "withdrawn"
            after = replace(after, leader=leader, finished=only if alone else why)
        row = replace(step.record, active=after.active, leader=after.leader, certified_gap=self._gap(after))
        return Step(after, engine.listed_row(row, after), self._deciding(after))

    def failed_checks(self, state: MixtureState, plan: Plan, seen: Observations) -> tuple[str, ...]:  # noqa: ARG002
        if self._rules.intervals is None:
            return ()
        bounds = engine.mgf_after(self.problem, state.seen)
        found = model_checks.spread_of_repeats(self.problem, bounds, state.seen, seen)
        return (found,) if found else ()

    def _concluded(self, after: MixtureState, known: FloatArray, beaten: BoolArray) -> MixtureState:
        """The state with what its processes say, beside the bounds and the beaten arms that are known."""
        now, shown = self._rules.upper_bounds(self._row(after), ~after.dropped[None])
        bounds, beaten = np.minimum(known, now[0]), beaten | shown[0]
        order = ranked_alone(after.seen, beaten, after.away)
        after = replace(after, beaten=beaten, leader=int(order[0]), tested=tested_in_order(bounds, order, after.away))
        if after.candidate >= 0 and after.away[after.candidate]:
            after = replace(after, candidate=after.leader)
        return states.stop_if_decided(after, self.problem.epsilon, self.prefer, lambda: self._posterior(after).looks)

    def _posterior(self, state: MixtureState) -> Posterior:
        """What the results suggest of the means."""
        scales = engine.mgf_after(self.problem, state.seen).typical_scales(self.problem.epsilon)
        return posterior_of_means(state.seen, scales, self.problem.epsilon)

    def _known(self, state: MixtureState) -> FloatArray:
        """The smallest bounds so far, (K, K)."""
        return np.stack([state.bounds_of(arm) for arm in range(len(state.beaten))], axis=1)

    def _row(self, state: MixtureState) -> Rows:
        """Where the study stands, as one of many."""
        log_values, flows = state.parts
        return Rows(
            one_row(state.seen),
            log_values[None],
            flows[None],
            self._known(state)[None],
            state.beaten[None],
            np.array([state.leader]),
            np.array([state.candidate]),
            np.array([state.finished != ""]),
            np.array([state.level or 0.0]),
        )

    @property
    def _threshold(self) -> float:
        return threshold_of(self.problem)

    @property
    def _grid(self) -> engine.Grid:
        """How pulls grow where only few batches are allowed."""
        problem, number = self.problem, self.problem.num_arms
        sigma = problem.sigma if known_scale(problem.noise) else problem.epsilon
        scales = {"sigma": sigma, "epsilon": problem.epsilon}
        found = engine.Grid.of(number, number, **scales, threshold=self._threshold)
        return found if self.budget is None else replace(found, end=min(found.end, max(found.start, self.budget)))

    def _less_level(self, state: MixtureState, seen: Observations) -> tuple[Observations, float | None]:
        if self.problem.noise.support is not None:
            return seen, state.level
        return state.levelled(seen, self.problem.epsilon)

    # --- what is predicted, and batches of other sizes

    def _there(self, state: MixtureState, counts: IntArray) -> IntArray:
        """The pulls of a plan without those of arms that are away."""
        return counts if state.roster is None else np.where(state.away, 0, counts)

    def _sized(self, state: MixtureState, rest: float) -> IntArray:
        """A batch of the size that is asked for, or that few batches and their costs ask for."""
        shares, sizes = self._rules.shares(self._row(state), state.away[None])[0], self._sizes
        pulls = np.array([state.pulls])
        usual = float(self._rules.usual(pulls, np.array([rest]))[0])
        if sizes.most is not None or sizes.fixed > 0.0:
            usual = max(usual, sizes.testing(state.round, float(state.pulls), rest, self._grid))
        total = sizes.exact or max(math.ceil(usual), int(np.count_nonzero(shares)))
        left, number = int(self._rules.left(pulls)[0]), int(np.count_nonzero(shares))
        if sizes.exact is None and left - total < number:  # the last batch has all that is left
            total = left
        total = min(total if sizes.largest is None else min(total, sizes.largest), left)
        return np.asarray(whole_shares(shares[None], np.array([total]), np.array([state.leader]))[0])

    # --- what it says

    def _answer(self, state: MixtureState) -> dict[str, Any]:
        found: dict[str, Any] = {"assumptions": self.embedding.traits.assumptions}
        found["why_heuristic"] = model_checks.why_heuristic(state.alarms, "")
        if self._rules.intervals is not None:
            found |= {"assumptions": (*found["assumptions"], student_intervals.ASSUMED), "of_draws": False}
        return {**found, "epsilon": self._gap(state)} if self.any_gap else found

    def _gap(self, state: MixtureState) -> float | None:
        return states.certified_gap(self.problem, state)

    def gap_at(self, state: MixtureState, delta: float) -> float | None:
        """By how much the leader is worse at most, had that been delta from the start: from what the evidence says now.

        Source: docs/budget.md, line 54.
        """
        failure = 0.0 if self._rules.intervals else failure_probability(self.problem.noise, self.problem.delta)
        if not state.begun or delta <= failure:
            return None
        rules = replace(self._rules, problem=replace(self.problem, delta=delta))
        bounds, beaten = rules.upper_bounds(self._row(state), ~state.dropped[None])
        others = ~(beaten[0] | state.dropped)
        others[state.leader] = False
        found = max(0.0, float(bounds[0][others, state.leader].max(initial=0.0)))
        return None if found >= UNKNOWN else found

    def _deciding(self, after: MixtureState) -> Deciding | None:
        if not after.begun:
            return None

        return lambda _: carried_intervals(after, self._posterior(after), self.problem.epsilon)
