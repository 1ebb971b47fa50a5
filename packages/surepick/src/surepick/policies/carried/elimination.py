"""Certified elimination whose evidence is carried on: one e-process an arm, whatever candidates were tried."""

from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Blocking, Deciding, Plan, Step
from surepick.core.records import BoolArray, IntArray, record, set_fields
from surepick.errors import InvalidInput
from surepick.estimators import Mgf, with_squares
from surepick.estimators.flows import Weighed
from surepick.estimators.posterior import Posterior
from surepick.estimators.running_processes import Processes
from surepick.noise import known_scale
from surepick.policies import model_checks, options
from surepick.policies.base import Traits
from surepick.policies.carried import block_rule, lockstep, means_rule, vectors_rule
from surepick.policies.carried.planning import Planner
from surepick.policies.carried.situation import DecisionContext, carried_intervals, checked_later, without_arms
from surepick.policies.options import option
from surepick.policies.preference import Preference, checked_preference, preferred
from surepick.policies.sequential import engine, state as states
from surepick.policies.sequential.state import SequentialState

# --- What a batch bets. Weights are functions of the past and of the batch's counts (line 1).


BatchBets = means_rule.Bets | block_rule.BlockBets | vectors_rule.VectorBets


def bets_of(planner: Planner, state: SequentialState, plan: Plan, seen: Observations) -> BatchBets | None:
    """The bets of a batch; None: there are none, as in an opening through vectors or in blocks."""
    situation, epsilon = planner.situation, planner.situation.problem.epsilon
    apart = situation.blocks is not None and state.vectors is None
    if seen.total == 0 or (apart and (plan.candidate is None or state.means is None)):
        return None
    before = situation.moved(state, plan.dim)
    processes = situation.processes_for(state, plan.dim)
    noise_mgf = situation.noise_mgf(state.seen)
    batch = noise_mgf.usable(seen)
    if not state.begun:
        if processes.structured:
            return None
        margins = np.full(situation.problem.num_arms, 2.0 * epsilon)  # each as if epsilon worse
        return means_rule.opening_bets(processes, margins, batch.counts, noise_mgf.noise_scales(margins))
    guess = situation.guess(processes, state.seen)
    if plan.candidate is not None:
        return _tested(planner, before, processes, plan, guess, batch)
    if processes.structured:
        return None
    margins = np.maximum(guess.margins(int(np.argmax(guess.scores)), epsilon), 2.0 * epsilon)
    return means_rule.opening_bets(processes, margins, batch.counts, noise_mgf.noise_scales(margins))


def processes_after(
    planner: Planner, state: SequentialState, plan: Plan, bets: BatchBets | None, seen: Observations
) -> Processes:
    """The processes after the results of a batch."""
    situation = planner.situation
    processes = situation.processes_for(state, plan.dim)
    if bets is None:
        return processes
    noise_mgf = situation.noise_mgf(state.seen)
    batch = noise_mgf.usable(with_squares(situation.problem.noise, seen))
    batch = batch if situation.blocks is None else replace(batch, blocks=seen.in_blocks)
    found: Processes = bets.told(processes, batch, noise_mgf)  # type: ignore[arg-type] # of the same kind
    return found


def _tested(
    planner: Planner, before: SequentialState, processes: Processes, plan: Plan, guess: Posterior, batch: Observations
) -> BatchBets:
    """The bets of a batch for a candidate."""
    situation, last, counts = planner.situation, planner.sizes.is_last(before.round), batch.counts
    candidate, epsilon, noise_mgf = plan.candidate or 0, situation.problem.epsilon, situation.noise_mgf(before.seen)
    asked, outstanding = plan.counts.sum(), np.maximum(plan.counts - counts, 0)
    if not processes.structured:
        goal, rest = planner.planned_for(before, guess, candidate)
        margins = guess.margins(candidate, epsilon, goal.rivals)
        processes = states.anew(processes, rest.restarts)
        if situation.blocks is not None:
            later = 0.0 if last else max(rest.num_pulls - plan.total, 0.0) + float(outstanding.sum())
            share, seen = batch.total / (batch.total + later), batch.in_blocks
            placed = block_rule.block_bets(processes, goal, margins, seen, share, situation.blocks.control)
            return replace(placed, restarts=rest.restarts)
        future = 0.0 * outstanding if last else rest.pulls * max(1.0 - asked / rest.num_pulls, 0.0) + outstanding
        patient = planner.sizes.exact is not None
        found = means_rule.place_bets(processes, goal, margins, counts, future, noise_mgf, patient=patient)
        return replace(found, restarts=rest.restarts)
    goal = planner.goal_for(before, guess, candidate)
    margins = guess.margins(candidate, epsilon, goal.rivals)
    vectors = situation.vectors(processes.dim)
    whole = planner.sizes.exact is None
    anew = vectors_rule.restarts(vectors, processes, goal, plan.counts.astype(np.float64), whole=whole)
    processes = states.anew(processes, anew)
    future = plan.counts * max((plan.predicted_pulls or 0.0) / asked - 1.0, 0.0) + outstanding
    if last:
        future = np.zeros(len(plan.counts))
    elif planner.sizes.exact is not None and np.count_nonzero(plan.counts) < vectors.white.shape[1]:
        design = planner.rest_of(before, goal).pulls  # the batch sees some of its directions only
        future = np.maximum(design - plan.counts, 0.0) + outstanding
    blocks = None if situation.blocks is None else batch.in_blocks
    directed = vectors_rule.place_vector_bets(vectors, processes, goal, margins, counts, future, noise_mgf, blocks)
    return replace(directed, restarts=anew)


@record
class CarriedElimination(engine.BatchedTest):
    """Certify one candidate c by evidence, for each arm j, against "j is the best arm, and better than c by epsilon".

        M_j = exp(sum w (r - h_x) - cost)          one process an arm, from the first pull to the last
        U_j = min over T of (log(1/delta) - (sum w r - cost) + penalty_jc(T)) / T
        recommend c when every U_j has once been at most epsilon

    A wrong recommendation needs the process of one single arm, the best one, to reach 1/delta, whatever candidates were
    tried: so there is no union over arms, no weight of a candidate, and a new candidate goes on with what is there.
    With probability at least 1 - delta the answer is epsilon-best, for any rule that chooses arms, batch sizes,
    dimensions, candidates and weights from earlier batches (docs/certified-elimination.md, lines 11 to 16, has the
    proof). An arm with U_j < 0 for some c is not the best: `active` loses it for good.

    The opening finds a candidate: batches that double, until its pulls are a share of what certifying the leader is
    predicted to take. Then each batch is the design that is predicted to reject the candidate's rivals first; where few
    are left, they and the candidate themselves are measured, if a design has more arms than that takes pulls.

    Args:
        problem: what is asked. Scales per arm, and the variance of rewards that have a range, are used.
        embedding: the family psi_d with its misspecification bound.
        dim: fixes d; None: chosen, and chosen anew where misspecification leaves no room for a candidate.
        tolerance: relative gap of the designs; at least .3 where they take long (48 directions, 3,000 arms).
        reserve: the share of a batch's pulls, in [0, 1), that is added on arms spread over the set, so that a lack of
            fit can show; none where every list of means is representable, or in a batch of rivals themselves.
        largest_batch: most pulls in a batch, or the arms that a design needs if these are more; None: no limit.
        batch_size: pulls of every batch, also if a design needs more arms; None: chosen.
        batch_cost: what each batch costs beside its measurements, in the currency of the arms' costs, a measurement
            costing 1 where they have none: the more, the fewer and the larger the batches. `batch_size` overrules it.
        max_batches: after so many batches with results the study ends, certified or not; None: no limit.
        blocks: what measurements that share an unknown effect are called ("plate", "day"): weights sum to 0 within each
            block, so that the effect drops out. None: measurements are independent.
        block_size: most measurements in a block, so that plans can give every block the candidate; None: not known.
        control: id of an arm that every block is to measure; None: no arm is.
        once_a_block: an arm is measured at most once in a block; None: as often as one likes.
        later: ids of arms that are not there when the study begins, and may come; None: all are there.
        later_share: the share of delta for those that come, in (0, 1); None: the share of all arms that may come, at
            least a tenth and at most half.
        prefer: a number of each arm: of those that are certified at the end the one with the smallest is named; None:
            the one that was tested. The study goes on for one with a smaller number that looks good enough.

    Raises:
        InvalidInput: a setting has no meaning, or the embedding declares no norm bound.

    Source: ours, after Robbins (1970), Howard et al. (2020, 2021) and Ramdas et al. (2023) for e-processes, Fiez et al.
    (2019) for designs aimed at differences.
    """

    control: str | None = option(None, options.arm_id)
    once_a_block: bool | None = option(None, options.yes)
    later: tuple[str, ...] | None = option(None, options.arm_ids)
    later_share: float | None = option(None, options.share_of_delta)
    prefer: Preference = None
    evidence: str = field(default="carried", init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        engine.BatchedTest.__post_init__(self)
        _ = self._sizes
        engine.check_idle(self, "block_size", "control", "once_a_block")
        blocking = self.blocking
        if blocking is not None and not known_scale(self.problem.noise):
            raise InvalidInput(
                "blocks of noise whose scale nobody knows are compared without features: take certified-independent "
                "(--policy certified-independent), or declare subgaussian:SIGMA."
            )
        if blocking is not None and blocking.size is not None and blocking.control is not None and blocking.size < 3:
            raise InvalidInput("a block of two has no room for a control beside a candidate and a rival.")
        later, share = checked_later(self.problem, self.later, self.later_share, blocks=self.blocks is not None)
        set_fields(self, later=later, later_share=share, prefer=checked_preference(self.problem, self.prefer))

    @property
    def traits(self) -> Traits:
        changes = self.blocks is None and (known_scale(self.problem.noise) or not self._uses_features)
        return self._traits(
            eliminates=True,
            certifies="candidate",
            embedding=self._levelled,
            judges_parts=True,
            uses_costs=True,
            batch_cost=self.batch_cost,
            withdraw=self.withdraw if changes else None,
            add=self.add if self._waiting else None,
            later=self._waiting,
            together=lockstep.together(self) if type(self) is CarriedElimination and self.prefer is None else None,
            weigh=self.weigh,
        )

    @property
    def _waiting(self) -> tuple[int, ...]:
        """The arms that are not there at first."""
        arms = self.problem.arms
        return () if self.later is None or arms is None else tuple(map(arms.ids.index, self.later))

    @property
    def blocking(self) -> Blocking | None:
        return engine.blocking_of(self.problem, self.blocks, self.block_size, self.control, bool(self.once_a_block))

    def init(self) -> SequentialState:
        state: SequentialState = engine.BatchedTest.init(self)
        waiting = self._waiting
        if not waiting:
            return state
        away = np.isin(np.arange(self.problem.num_arms), waiting)
        roster = states.Availability(away, away, -away.astype(np.int64))
        leader = preferred(np.flatnonzero(~away).tolist(), self.prefer) if state.finished else int(np.argmin(away))
        return replace(state, leader=leader, roster=roster)

    def ask(self, state: SequentialState) -> Plan:
        plan, blocking = self._planner.next_batch(state), self.blocking
        if state.roster is not None:
            counts = np.where(state.away, 0, plan.counts)
            if state.begun or self.batch_size is not None:  # pulls of arms that are away are given to another one
                counts[state.leader if plan.candidate is None else plan.candidate] += plan.total - int(counts.sum())
            return replace(plan, counts=counts)
        if blocking is None:
            return plan
        usual = state.leader if blocking.control is None else blocking.control
        centre: int | None = usual if plan.candidate is None else plan.candidate
        if self.embedded(plan.dim).structured:
            centre = blocking.control  # with features every pair of a block tells of the candidate
        centres = () if centre is None else (centre,)
        counts = engine.filled_blocks(plan.counts, blocking, centres, exact=self.batch_size is not None)
        return replace(plan, counts=counts)

    def bets(self, state: SequentialState, plan: Plan, seen: Observations) -> Any:
        return bets_of(self._planner, state, plan, seen)

    def update(self, state: SequentialState, plan: Plan, bets: Any, seen: Observations) -> dict[str, Any]:
        processes = processes_after(self._planner, state, plan, bets, seen)
        structured = processes.structured
        return {"means": None if structured else processes, "vectors": processes if structured else None}

    def decide(self, state: SequentialState, after: SequentialState, _: Plan) -> SequentialState:
        situation = self._situation
        leader, tested = situation.leader(after.processes, after.seen, state.away), state.tested
        for one in {leader} if after.candidate < 0 else {leader, after.candidate}:
            tested = situation.tightened_by(replace(state, tested=tested), after.processes, one)
        beaten = state.beaten | np.any([one.bounds < 0.0 for one in tested], axis=0)
        return self._stopped(replace(after, leader=leader, tested=tested, beaten=beaten))

    def _stopped(self, after: SequentialState) -> SequentialState:
        """The state, over if a candidate is certified and none is sought that is liked better."""
        guess = self._situation.guess
        sought = self.problem.epsilon, self.prefer
        return states.stop_if_decided(after, *sought, lambda: guess(after.processes, after.seen).looks)

    def weigh(self, state: SequentialState, plan: Plan, seen: Observations) -> Weighed | None:
        """What `tell` makes of a batch, with the weights of its pulls; None where it has none.

        Source: docs/certified-elimination.md, line 38.
        """
        seen, level = self._less_level(state, seen)
        bets = self.bets(state, plan, seen)
        if bets is None:
            return None
        after = processes_after(self._planner, state, plan, bets, seen)
        if isinstance(bets, vectors_rule.VectorBets):
            batch = self._situation.noise_mgf(state.seen).usable(seen)
            batch = batch if self.blocks is None else replace(batch, blocks=seen.in_blocks)
            weights = bets.weights(batch)
        else:
            held: Any = after  # of the same kind as the bets
            weights = means_rule.weights_between(state.means, held, seen.counts, plain=self.blocks is None)
        threshold = self._situation.thresholds(state.roster)
        return Weighed(weights, after.starts, after.log_values, threshold, level or 0.0)

    def withdraw(self, step: Step[SequentialState], arms: IntArray, independent: BoolArray) -> Step[SequentialState]:
        """The step, when some arms are neither measured nor recommended any more.

        What the batch of the step says was worked out before, as if nobody had gone: so the bets know nothing of it.

        Args:
            step: of a batch that was told.
            arms: which go, shape (n,).
            independent: whether their going has nothing to do with results, shape (n,): then the others need not be
                compared with them. Otherwise they have to be ruled out like all arms.

        Raises:
            InvalidInput: no arm is left.

        Source: docs/changing-candidates.md, lines 29 to 31.
        """
        if step.state.finished == "given":
            return step
        return self._relisted(step, *without_arms(step.state, arms, independent))

    def add(self, step: Step[SequentialState], arms: IntArray) -> Step[SequentialState]:
        """The step, when some of the arms that may come later are there. Their processes begin with the next batch.

        Args:
            step: of a batch that was told.
            arms: which come, shape (n,).

        Raises:
            InvalidInput: they are there, or were not declared to come.

        Source: docs/changing-candidates.md, line 33.
        """
        return self._relisted(step, *self._situation.with_added(step.state, arms))

    def _relisted(
        self, step: Step[SequentialState], state: SequentialState, roster: states.Availability
    ) -> Step[SequentialState]:
        after = self._stopped(self._situation.relisted(state, roster, over=self._sizes.over(state.round)))
        row = replace(step.record, active=after.active, leader=after.leader, certified_gap=self._gap(after))
        return Step(after, engine.listed_row(row, after), self._deciding(after))

    def _less_level(self, state: SequentialState, seen: Observations) -> tuple[Observations, float | None]:
        if self._uses_features or self.problem.noise.support is not None:
            return seen, state.level
        return state.levelled(seen, self.problem.epsilon)

    def _without_effects(self, state: SequentialState, plan: Plan, seen: Observations) -> Observations:
        return self._situation.without_effects(seen, state.seen, plan.dim)

    def _endless(self, state: SequentialState) -> bool:
        undecided = ~(state.beaten | state.away)
        return model_checks.endless(self.problem, state.seen, undecided, features=self._uses_features)

    def _gap(self, state: SequentialState) -> float | None:
        return states.certified_gap(self.problem, state)

    def _deciding(self, after: SequentialState) -> Deciding | None:
        if not after.begun:
            return None
        guess = self._situation.guess
        return lambda _: carried_intervals(after, guess(after.processes, after.seen), self.problem.epsilon)

    @property
    def _situation(self) -> DecisionContext:
        return DecisionContext(
            self.problem, self._levelled, self._cache, self.blocking, self.later_share, len(self.later or ())
        )

    @property
    def _planner(self) -> Planner:
        dim = None if self.dim is None else self.dim + self._levelled.max_dim - self.embedding.max_dim
        return Planner(self._situation, dim, self.tolerance, self._sizes, self.prefer)

    def _noise_mgf(self, seen: Observations) -> Mgf:
        return self._situation.noise_mgf(seen)

    def _obstacle(self, state: SequentialState) -> str:
        rest = self._planner.rest(state, self._situation.guess(state.processes, state.seen))
        return model_checks.no_room(rest.dim, len(rest.bias_limited))
