"""Certified elimination whose evidence is carried on: one e-process an arm, whatever candidates were tried."""

from collections.abc import Callable
from dataclasses import field, replace
from functools import partial

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Blocking, Deciding, Embedding, IndependentArms, Intervals, Plan, RoundRecord, Step
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.embeddings import ArmEmbedding
from surepick.embeddings.base import CentredWithinBlocks
from surepick.errors import ContractError, InvalidInput
from surepick.estimators import NoiseMgf, NormalMgf, with_squares
from surepick.estimators.flows import BatchWeights, Weighed
from surepick.estimators.posterior import Posterior
from surepick.estimators.running_processes import UNKNOWN, MeanProcesses
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks, options, tuning, uniform
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row
from surepick.policies.blocking import blocking_of, check_idle, filled_blocks, price_of_blocks, shared_effect
from surepick.policies.carried import means_rule, vectors_rule
from surepick.policies.carried import means_rule as blocks_rule
from surepick.policies.carried import state as states
from surepick.policies.carried.planning import Planner
from surepick.policies.carried.situation import DecisionContext, carried_intervals, checked_later, started
from surepick.policies.certified.conclusion import check_certifying, delta_for_test
from surepick.policies.options import option
from surepick.policies.sequential.batches import BatchSizes, moved_off
from surepick.policies.sequential.memo import Memo

# --- What a batch says: the processes after it. Weights are functions of the past and of the batch's counts (line 1).

Watch = Callable[[BatchWeights], None]


def processes_after(
    planner: Planner, state: states.CarriedState, plan: Plan, seen: Observations, *, watch: Watch | None = None
) -> states.Processes:
    """The processes after a batch. Weights are functions of the past and of the batch's counts (line 1).

    Args:
        watch: is told the weights of vectors; those of means are in their flows.
    """
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
            margins = np.full(situation.problem.num_arms, 2.0 * situation.problem.epsilon)  # each as if epsilon worse
            return _opened(processes, margins, batch, noise_mgf)
        return processes
    before = situation.moved(state, plan.dim)
    processes = started(before)
    if seen.total == 0:
        return processes
    guess = situation.guess(processes, state.seen)
    if plan.candidate is not None:
        batch = batch if situation.blocks is None else replace(batch, blocks=in_blocks(seen))
        processes = _tested(planner, before, plan, guess, batch, noise_mgf, watch)
    elif isinstance(processes, MeanProcesses):
        leader, epsilon = int(np.argmax(guess.scores)), situation.problem.epsilon
        margins = np.maximum(guess.margins(leader, epsilon), 2.0 * epsilon)
        processes = _opened(processes, margins, batch, noise_mgf)
    return processes


def _in_blocks(
    planner: Planner, state: states.CarriedState, plan: Plan, seen: Observations, blocking: Blocking
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
    return blocks_rule.update_blocks(
        processes, goal, margins, in_blocks(seen), seen.total / (seen.total + later), blocking.control
    )


def in_blocks(seen: Observations) -> BlockTotals:
    """What each block had; without names of blocks the whole batch is one."""
    return BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks


def _aimed(
    planner: Planner, before: states.CarriedState, candidate: int, guess: Posterior
) -> tuple[states.OpenComparisons, FloatArray, MeanProcesses, states.RemainingPulls]:
    """(what a batch for a candidate is to reach, guesses of the margins, the processes with new starts, the rest)."""
    epsilon, processes = planner.situation.problem.epsilon, before.means
    if processes is None:
        raise ContractError("nothing was told yet.")
    planning = partial(guess.margins, candidate, epsilon, caution=tuning.HEURISTIC_CAUTION)
    goal = planner.situation.goal(before, candidate, guess, planning)
    rest = means_rule.means_remaining(processes, goal)
    processes = processes.restarted(rest.restarts, states.start_weights(processes.starts[rest.restarts] + 1))
    return goal, guess.margins(candidate, epsilon, goal.rivals), processes, rest


def _opened(
    processes: MeanProcesses, margins: FloatArray, batch: Observations, noise_mgf: NoiseMgf | NormalMgf
) -> MeanProcesses:
    bets = means_rule.opening_bets(processes, margins, batch.counts, noise_mgf.noise_scales(margins))
    return processes.after(bets.arms, bets.taken, bets.given, batch, noise_mgf)


def _tested(
    planner: Planner,
    before: states.CarriedState,
    plan: Plan,
    guess: Posterior,
    batch: Observations,
    noise_mgf: NoiseMgf | NormalMgf,
    watch: Watch | None,
) -> states.Processes:
    """The processes after a batch for a candidate."""
    situation, last = planner.situation, planner.sizes.is_last(before.round)
    processes, candidate, epsilon = started(before), plan.candidate or 0, situation.problem.epsilon
    planning = partial(guess.margins, candidate, epsilon, caution=tuning.HEURISTIC_CAUTION)
    goal = situation.goal(before, candidate, guess, planning)
    margins = guess.margins(candidate, epsilon, goal.rivals)
    asked, outstanding = plan.counts.sum(), np.maximum(plan.counts - batch.counts, 0)
    if isinstance(processes, MeanProcesses):
        rest = means_rule.means_remaining(processes, goal)
        processes = processes.restarted(rest.restarts, states.start_weights(processes.starts[rest.restarts] + 1))
        future = rest.pulls * max(1.0 - asked / rest.num_pulls, 0.0) + outstanding
        patient = planner.sizes.exact is not None
        placed = means_rule.place_bets(
            processes, goal, margins, batch.counts, 0.0 * future if last else future, noise_mgf, patient=patient
        )
        return processes.after(placed.arms, placed.taken, placed.given, batch, noise_mgf)
    vectors = situation.vectors(processes.dim)
    whole = planner.sizes.exact is None
    anew = vectors_rule.restarts(vectors, processes, goal, plan.counts.astype(np.float64), whole=whole)
    processes = processes.restarted(anew, states.start_weights(processes.starts[anew] + 1))
    future = plan.counts * max((plan.predicted_pulls or 0.0) / asked - 1.0, 0.0) + outstanding
    if last:
        future = np.zeros(len(plan.counts))
    elif planner.sizes.exact is not None and np.count_nonzero(plan.counts) < vectors.white.shape[1]:
        design = planner.predictions.rest_of(before, goal).pulls  # the batch sees some of its directions only
        future = np.maximum(design - plan.counts, 0.0) + outstanding
    bets = vectors_rule.place_vector_bets(
        vectors, processes, goal, margins, batch.counts, future, noise_mgf, batch.blocks
    )
    scales = goal.noise_scales if batch.blocks is None else situation.problem.scales
    if watch is not None:
        watch(vectors_rule.weights_of(vectors, bets, batch, scales))
    if batch.blocks is not None:
        return processes.after_blocks(vectors, candidate, bets.arms, bets.directions, batch.blocks, scales)
    return processes.after(vectors, candidate, bets.arms, bets.directions, batch, scales, noise_mgf)


ONLY_WITHDRAWN = (
    "Of the candidates that are left none can be better by more than epsilon; but one that was withdrawn is not ruled "
    "out, and it was withdrawn for a reason that may depend on the results."
)


@record
class CarriedElimination:
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
        later_share: the share of delta for those that come, in (0, 1); None: a tenth where some may.

    Raises:
        InvalidInput: a setting has no meaning, or the embedding declares no norm bound.

    Source: ours, after Robbins (1970), Howard et al. (2020, 2021) and Ramdas et al. (2023) for e-processes, Fiez et al.
    (2019) for designs aimed at differences.
    """

    problem: Problem
    embedding: ArmEmbedding
    dim: int | None = None
    tolerance: float = option(0.05, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    largest_batch: int | None = option(None, options.largest_batch)
    batch_size: int | None = option(None, options.batch_size)
    max_batches: int | None = option(None, options.max_batches)
    batch_cost: float = option(0.0, options.batch_cost)
    blocks: str | None = option(None, options.block_name)
    block_size: int | None = option(None, options.block_size)
    control: str | None = option(None, options.arm_id)
    once_a_block: bool | None = option(None, options.yes)
    later: tuple[str, ...] | None = option(None, options.arm_ids)
    later_share: float | None = option(None, options.share_of_delta)
    evidence: str = field(default="carried", init=False, compare=False, repr=False)
    _levelled: ArmEmbedding = field(init=False, compare=False, repr=False)
    _cache: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_certifying(self)
        BatchSizes.of(self)
        self._check_blocks()
        later, share = checked_later(self.problem, self.later, self.later_share, blocks=self.blocks is not None)
        object.__setattr__(self, "later", later)
        object.__setattr__(self, "later_share", share)
        features = self.embedding.traits.family != "independent"
        levelled = CentredWithinBlocks(self.embedding) if features and self.blocks is not None else self.embedding
        object.__setattr__(self, "_levelled", levelled)

    @property
    def traits(self) -> Traits:
        own, known = self.embedding.traits, known_scale(self.problem.noise)
        return Traits(
            eliminates=True,
            uses_features=self._uses_features,
            certifies="candidate",
            assumptions=own.assumptions if self.blocks is None else (*own.assumptions, shared_effect(self.blocks)),
            checks=(*model_checks.checks_of(self.embedding), *(() if known else (model_checks.SPREAD,))),
            caveats=own.caveats if self.blocks is None else (*own.caveats, price_of_blocks(self.blocks)),
            embedding=self._levelled,
            misspecification=self._levelled.misspecification,
            judges_parts=True,
            uses_costs=True,
            batch_cost=self.batch_cost,
            blocks=self.blocking,
            withdraw=self.withdraw if self._changes else None,
            add=self.add if self._waiting else None,
            later=self._waiting,
            weigh=self.weigh,
        )

    @property
    def _changes(self) -> bool:
        """Whether arms may go, or come later."""
        return self.blocks is None and (known_scale(self.problem.noise) or not self._uses_features)

    @property
    def _waiting(self) -> tuple[int, ...]:
        """The arms that are not there at first."""
        arms = self.problem.arms
        return () if self.later is None or arms is None else tuple(map(arms.ids.index, self.later))

    @property
    def _uses_features(self) -> bool:
        return self.embedding.traits.family != "independent"

    @property
    def blocking(self) -> Blocking | None:
        """What is said of blocks; None where measurements are independent."""
        return blocking_of(self.problem, self.blocks, self.block_size, self.control, bool(self.once_a_block))

    def init(self) -> states.CarriedState:
        finished, _ = self.problem.answer_without_pulls()
        num_arms = self.problem.num_arms
        nobody, nothing = np.zeros(num_arms, bool), Observations.nothing(num_arms)
        state, waiting = states.CarriedState(1, nothing, None, None, (), nobody, -1, 0, 0, finished), self._waiting
        if not waiting:
            return state
        away = np.isin(np.arange(num_arms), waiting)
        return replace(
            state, leader=int(np.argmin(away)), roster=states.Availability(away, away, -away.astype(np.int64))
        )

    def ask(self, state: states.CarriedState) -> Plan:
        plan, blocking = self._planner.next_batch(state), self.blocking
        if state.roster is not None:
            usual = state.leader if plan.candidate is None else plan.candidate
            first = state.processes is None and self.batch_size is None
            counts = np.where(state.away, 0, plan.counts) if first else moved_off(plan.counts, state.away, usual)
            return replace(plan, counts=counts)
        if blocking is None:
            return plan
        usual = state.leader if blocking.control is None else blocking.control
        centre: int | None = usual if plan.candidate is None else plan.candidate
        if not isinstance(self.embedded(plan.dim), IndependentArms):
            centre = blocking.control  # with features every pair of a block tells of the candidate
        return replace(plan, counts=filled_blocks(plan.counts, blocking, centre, exact=self.batch_size is not None))

    def tell(self, state: states.CarriedState, plan: Plan, seen: Observations) -> Step[states.CarriedState]:
        level = state.level
        if not self._uses_features and self.problem.noise.support is None:
            seen, level = state.levelled(seen, self.problem.epsilon)
        pooled = state.seen.plus(self._situation.without_effects(seen, state.seen, plan.dim))
        if pooled.total == 0:
            return self._step(state, plan, seen)
        processes = processes_after(self._planner, state, plan, seen)
        candidate = -1 if plan.candidate is None else plan.candidate
        leader = self._situation.leader(processes, pooled, state.away)
        tested = state.tested
        for one in {leader} if candidate < 0 else {leader, candidate}:
            tested = self._situation.tightened_by(replace(state, tested=tested), processes, one)
        beaten = state.beaten | np.any([one.bounds < 0.0 for one in tested], axis=0)
        next_round, sizes = state.round + (seen.total > 0), self._planner.sizes
        after = states.CarriedState(
            round=next_round,
            seen=pooled,
            means=processes if isinstance(processes, MeanProcesses) else None,
            vectors=None if isinstance(processes, MeanProcesses) else processes,
            tested=tested,
            beaten=beaten,
            candidate=candidate,
            dim=plan.dim,
            leader=leader,
            finished="budget" if sizes.over(next_round) else "",
            compressed=state.compressed or not isinstance(processes, MeanProcesses),
            alarms=model_checks.with_failed_checks(state.alarms, self._failed_checks(state, plan, seen, pooled)),
            roster=state.roster,
            level=level,
        )
        after = states.stop_if_decided(after, self.problem.epsilon)
        undecided = ~(after.beaten | after.away)
        if not after.finished and uniform.endless(self.problem, pooled, undecided, features=self._uses_features):
            after = replace(after, finished="equal")
        return self._step(after, plan, seen)

    def weigh(self, state: states.CarriedState, plan: Plan, seen: Observations) -> Weighed | None:
        """What `tell` makes of a batch, with the weights of its pulls; None where it has none.

        Source: docs/certified-elimination.md, line 37.
        """
        level, found = state.level, list[BatchWeights]()
        if not self._uses_features and self.problem.noise.support is None:
            seen, level = state.levelled(seen, self.problem.epsilon)
        if seen.total == 0:
            return None
        after = processes_after(self._planner, state, plan, seen, watch=found.append)
        if isinstance(after, MeanProcesses):
            plain = self.blocks is None
            found.append(means_rule.weights_between(state.means, after, seen.counts, plain=plain))
        if not found:
            return None
        threshold = self._situation.thresholds(state.roster)
        return Weighed(found[0], after.starts, after.log_values, threshold, level or 0.0)

    def withdraw(
        self, step: Step[states.CarriedState], arms: IntArray, independent: BoolArray
    ) -> Step[states.CarriedState]:
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
        return self._relisted(step, *self._situation.without(step.state, arms, independent))

    def add(self, step: Step[states.CarriedState], arms: IntArray) -> Step[states.CarriedState]:
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
        self, step: Step[states.CarriedState], state: states.CarriedState, roster: states.Availability
    ) -> Step[states.CarriedState]:
        after = self._situation.relisted(state, roster, over=self._planner.sizes.over(state.round))
        row = replace(step.record, active=after.active, leader=after.leader, certified_gap=self._gap(after))
        return Step(after, _listing(row, after), self._deciding(after))

    def claim(self, state: states.CarriedState) -> Claim:
        return Claim(
            leader=state.leader,
            finished=state.finished,
            reason=ONLY_WITHDRAWN if state.finished == "withdrawn" else "",
            pulls=state.pulls,
            gap=self._gap(state),
            spent=failure_probability(self.problem.noise, self.problem.delta) + delta_for_test(self.problem),
            assumptions=(
                *model_checks.active_assumptions(self.embedding, state.seen.total, state.compressed),
                *([] if self.blocks is None else [shared_effect(self.blocks)]),
            ),
            why_heuristic=model_checks.why_not_certified(self.embedding, state.alarms, state.compressed),
            remark=lambda: self._remark(state),
        )

    def _remark(self, state: states.CarriedState) -> str:
        """Why more pulls would not help, if there is a reason."""
        if state.finished in ("", "equal"):
            equal = uniform.equal_repeats(self.problem, state.seen)
            if len(equal):
                return uniform.equal_words(self.problem, equal)
        return self._obstacle(state)

    def embedded(self, dim: int) -> Embedding | IndependentArms:
        """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
        return self._situation.embedded(dim)

    def _gap(self, state: states.CarriedState) -> float | None:
        """By how much the leader is worse than the best arm at most; None if nothing can be said."""
        _, given = self.problem.answer_without_pulls()
        if state.finished == "single" or state.processes is None:
            return 0.0 if state.finished == "single" else given
        found = min(states.gap_of(state, state.leader), UNKNOWN if given is None else given)
        return None if found >= UNKNOWN else found

    def _step(self, after: states.CarriedState, plan: Plan, seen: Observations) -> Step[states.CarriedState]:
        equal = uniform.equal_repeats(self.problem, after.seen)
        row = trace_row(plan, after, pulls=seen.total, gap=self._gap(after), alarms=after.alarms, equal=equal)
        return Step(after, _listing(row, after), self._deciding(after))

    def _deciding(self, after: states.CarriedState) -> Deciding | None:
        """The intervals; None before the first result, when nothing can be guessed of a mean."""
        if after.processes is None:
            return None

        def deciding(_: Intervals | None) -> Intervals:
            return carried_intervals(after, self._situation.guess(after.processes, after.seen), self.problem.epsilon)

        return deciding

    @property
    def _situation(self) -> DecisionContext:
        return DecisionContext(self.problem, self._levelled, self._cache, self.blocking, self.later_share)

    @property
    def _planner(self) -> Planner:
        dim = None if self.dim is None else self.dim + self._levelled.max_dim - self.embedding.max_dim
        return Planner(self._situation, dim, self.tolerance, BatchSizes.of(self))

    def _check_blocks(self) -> None:
        """Refuse options of blocks where there are none, and a block without room for a control."""
        check_idle(self, "block_size", "control", "once_a_block")
        if self.blocks is not None and not known_scale(self.problem.noise):
            raise InvalidInput(
                "blocks of noise whose scale nobody knows are compared without features: take certified-independent "
                "(--policy certified-independent), or declare subgaussian:SIGMA."
            )
        blocking = self.blocking
        if blocking is not None and blocking.size is not None and blocking.control is not None and blocking.size < 3:
            raise InvalidInput("a block of two has no room for a control beside a candidate and a rival.")

    def _failed_checks(
        self, state: states.CarriedState, plan: Plan, seen: Observations, pooled: Observations
    ) -> tuple[str, ...]:
        """What a batch says against the noise and the embedding; `pooled` is everything told, the batch included."""
        if known_scale(self.problem.noise):
            return self._misfits(plan, seen, None)
        far = model_checks.spread_of_repeats(self.problem, self._situation.noise_mgf(state.seen), state.seen, seen)
        after = self._situation.noise_mgf(pooled)
        bounds = after.joint_bounds if isinstance(after, NormalMgf) else None
        return (*([far] if far else []), *self._misfits(plan, after.usable(seen), bounds))

    def _misfits(self, plan: Plan, seen: Observations, bounds: FloatArray | None) -> tuple[str, ...]:
        """What a batch says against the embedding."""
        embedded = self.embedded(plan.dim)
        if self.blocks is not None and not isinstance(embedded, IndependentArms) and seen.total > 0:
            totals = BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks
            return model_checks.failed_checks_in_blocks(self._levelled, plan, totals, self.problem)
        white = self._cache.white(self._levelled, plan.dim)
        return model_checks.misfits(self.embedding, embedded, plan, seen, self.problem, bounds=bounds, white=white)

    def _obstacle(self, state: states.CarriedState) -> str:
        """Why more pulls would not help, if they are asked for and misspecification leaves no room."""
        if state.finished or state.processes is None:
            return ""
        rest = self._planner.predictions.rest(state, self._situation.guess(state.processes, state.seen))
        return model_checks.no_room(rest.dim, len(rest.bias_limited))


def _listing(row: RoundRecord, after: states.CarriedState) -> RoundRecord:
    """The row, with who went and how many may still come."""
    roster = after.roster
    if roster is None:
        return row
    gone = roster.withdrawn
    return replace(
        row, withdrawn=gone if len(gone) else None, waiting=None if roster.cohorts is None else roster.waiting
    )
