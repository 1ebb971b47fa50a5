"""Certified lists: every arm is put on a list once evidence against the contrary is strong enough."""

import math
from dataclasses import field, replace

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Blocking, Embedding, IndependentArms, Plan, Step
from surepick.core.records import FloatArray, IntArray, record
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.estimators import NormalMgf
from surepick.estimators.e_processes import Collected, processes_of, with_processes
from surepick.noise import failure_probability, known_scale
from surepick.policies import blocking as block_options
from surepick.policies import model_checks, options, tuning, uniform
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row
from surepick.policies.certified.conclusion import check_certifying, delta_for_test
from surepick.policies.certified.elimination import first_dimension
from surepick.policies.options import option
from surepick.policies.questions import outlook
from surepick.policies.questions.constraint_tests import UNEVEN, ConstraintTest, assumed_of, told_beside
from surepick.policies.questions.outlook import Ground, QuestionState, RemainingOfBets
from surepick.policies.sequential import batches
from surepick.policies.sequential.batches import BatchSizes, Grid
from surepick.questions import constraints_of, inquiry_of
from surepick.questions.protocol import Aims, Inquiry, Lists, View

# --- How many pulls a batch of a question has. Validity rests on none of it.

HEURISTIC_LAST = 2.5  # of the predicted rest: after the last batch that is allowed nothing can be made up for


def total_of(
    sizes: BatchSizes, problem: Problem, rest: RemainingOfBets, seen: Observations, round_number: int, grid: Grid | None
) -> int:
    """Pulls of the next batch."""
    if sizes.exact is not None:
        return sizes.exact
    if sizes.most is None and sizes.fixed == 0.0:
        return batches.batch_total(rest.pulls, seen.total)
    costs = problem.relative_costs
    price = 1.0 if costs is None else float(seen.counts @ costs) / seen.total
    spent = price * seen.total
    money = rest.pulls if rest.cost is None else rest.cost / problem.cheapest_cost
    if sizes.is_last(round_number):
        return max(1, math.ceil(HEURISTIC_LAST * rest.pulls))
    scaled = Grid(1.0, 1.0) if grid is None else Grid(price * grid.start, price * grid.end)
    wanted = sizes.testing(round_number, spent, money, scaled)
    return max(1, math.ceil(wanted * rest.pulls / money))


def grid_of(ground: Ground, seen: Observations | None) -> Grid | None:
    """How measurements grow where only few batches are allowed; None: nobody knows the scale of the noise yet."""
    problem, embedded = ground.problem, ground.embedded
    if known_scale(problem.noise):
        sigma = problem.sigma
    elif seen is None:
        return None
    else:
        squares = ground.noise_mgf(seen).typical_scales(problem.epsilon) ** 2
        sigma = math.sqrt(float(seen.counts @ squares) / seen.total)
    size = embedded.num_arms if isinstance(embedded, IndependentArms) else embedded.dim
    threshold = math.log(problem.num_arms / delta_for_test(problem))
    return Grid.of(size, max(2 * size, 4), sigma=sigma, epsilon=problem.epsilon, threshold=threshold)


# --- Questions with features where nobody knows the scales: few arms are measured, each often enough for a bound.
#
# Validity rests on none of it: pulls of arms without a bound enter no evidence (docs/questions.md, line 15).


def first_pulls(ground: Ground, embedded: Embedding, weights: FloatArray) -> IntArray:
    """As few arms of a design as see what all of it sees, each with the repeats for a bound, shape (K,)."""
    support = np.flatnonzero(weights)
    rows = np.sqrt(weights[support])[:, None] * embedded.features[support]
    counts = np.zeros(len(weights), np.int64)
    counts[support[batches.spanning_arms(rows)]] = ground.repeats
    return counts


def rest_of_few(ground: Ground, embedded: Embedding, aims: Aims, noise_mgf: NormalMgf) -> RemainingOfBets:
    """What is still to be measured, without the arms that would get too few pulls for a bound."""
    rest = ground.rest(aims, noise_mgf)
    planned, needed = rest.weights * rest.pulls, ground.repeats
    avoided = batches.underreplicated(planned, noise_mgf.bounded, embedded.features, needed)
    if not avoided.any():
        return rest
    factor = np.where(avoided, batches.AVOIDED**2, 1.0)  # so noisy seem these arms that no design wants them
    rest = ground.rest(aims, replace(noise_mgf, variances=factor * noise_mgf.variances))
    weights = np.where(avoided, 0.0, rest.weights)
    kept = float(weights.sum())
    cost = None if rest.cost is None else kept * rest.cost
    return RemainingOfBets(weights / kept, kept * rest.pulls, None, cost)


HEURISTIC_FIRST_PULLS = 2  # of each arm without structure, in the first batch
HEURISTIC_FIRST_BOUNDED = 1  # ... where constraints have to be kept: what breaks an exact one is out after it


@record
class CertifiedLists:
    """Answer a question by lists: collect evidence, for each arm, against what would make its place on a list false.

        E = product over batches of exp(t (m - beta - xhat) - allowance)        against "a difference is above m"

    The differences, their margins m, and how many nulls share delta are in the question's file; estimates, biases and
    allowances are those of `batch_evidence`, t is fixed before the batch. Each batch is the design that is predicted to
    decide the comparisons that look true with the fewest pulls.

    Args:
        problem: what is asked; its question is not None.
        embedding, dim, tolerance, reserve, largest_batch, batch_size, max_batches, batch_cost: as in
            `CarriedElimination`.
        blocks, block_size, once_a_block: as in `CarriedElimination`; every block is to measure the question's control.

    Source: ours (docs/questions.md), after Ville (1939); Vovk & Wang (2021) for e-values, Wang & Ramdas
    (2022) for e-BH.
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
    once_a_block: bool | None = option(None, options.yes)
    evidence: str = field(default="lists", init=False, compare=False, repr=False)
    _inquiry: Inquiry = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_certifying(self)
        BatchSizes.of(self)
        if self._repeats_few and (self.batch_size is not None or self._limits):
            raise InvalidInput(
                "with features, noise of unknown scale takes no batch_size and no constraints where the question is "
                "another than 'best', so far: leave them out, take certified-independent, or declare subgaussian:SIGMA."
            )
        block_options.check_idle(self, "block_size", "once_a_block")
        outlook.check_blocks(self.problem, self.blocking, features=self.embedding.traits.family != "independent")
        object.__setattr__(self, "_inquiry", inquiry_of(self.problem))

    @property
    def blocking(self) -> Blocking | None:
        """What is said of blocks; None where measurements are independent."""
        control = getattr(self.problem.question, "control", None)
        return block_options.blocking_of(self.problem, self.blocks, self.block_size, control, bool(self.once_a_block))

    @property
    def traits(self) -> Traits:
        own = self.embedding.traits
        return Traits(
            uses_features=own.family != "independent",
            certifies="lists",
            assumptions=own.assumptions
            if self.blocks is None
            else (*own.assumptions, block_options.shared_effect(self.blocks)),
            checks=(
                *model_checks.checks_of(self.embedding),
                *(() if known_scale(self.problem.noise) else (model_checks.SPREAD,)),
                *self._exactness,
            ),
            caveats=own.caveats if self.blocks is None else (*own.caveats, block_options.price_of_blocks(self.blocks)),
            embedding=self.embedding,
            misspecification=self.embedding.misspecification,
            uses_costs=True,
            batch_cost=self.batch_cost,
            blocks=self.blocking,
        )

    def init(self) -> QuestionState:
        num_arms = self.problem.num_arms
        asked = np.flatnonzero(self._inquiry.asked(self.problem))
        return QuestionState(1, Observations.nothing(num_arms), (), Lists.empty(num_arms), 0, asked, 0, "")

    def ask(self, state: QuestionState) -> Plan:
        if state.seen.total == 0:
            return self._opening(state.round)
        unmeasured = self._unmeasured(state)
        if unmeasured is not None:
            return unmeasured
        ground = self._ground(state.dim)
        aims = self._inquiry.aims(self._view(ground, state.evidence, state.lists, state.seen))
        rest, noise_mgf = None, ground.noise_mgf(state.seen)
        if isinstance(noise_mgf, NormalMgf) and isinstance(ground.embedded, Embedding):
            rest = rest_of_few(ground, ground.embedded, aims, noise_mgf)
        rest = ground.rest(aims, noise_mgf) if rest is None else rest
        total = total_of(
            self._sizes, self.problem, rest, state.seen, state.round, grid_of(self._ground(state.dim), state.seen)
        )
        blocking = self.blocking
        centre = None if blocking is None or blocking.control is not None else state.leader
        counts = block_options.filled_blocks(
            self._whole(state.dim, rest.weights, total, state.round, state.seen),
            blocking,
            centre,
            exact=self.batch_size is not None,
        )
        return Plan(
            round=state.round,
            counts=counts,
            dim=ground.embedded.dim,
            predicted_pulls=rest.pulls,
            lower_bound=rest.least,
            misspecification=ground.embedded.misspecification,
            predicted_cost=rest.cost,
        )

    def tell(self, state: QuestionState, plan: Plan, seen: Observations) -> Step[QuestionState]:
        dim = plan.dim
        ground, evidence = self._ground(dim), state.evidence
        pooled = state.seen.plus(self._without_effects(state.seen, seen))
        if state.seen.total > 0 and seen.total > 0:
            evidence = self._bet(state, ground, seen)
        lists, leader = state.lists, state.leader
        if pooled.total > 0:
            view = self._view(ground, evidence, lists, pooled)
            lists = self._inquiry.decided(view)
            leader = self._leader(replace(view, lists=lists))
        next_round = state.round + (seen.total > 0)
        left = np.flatnonzero(self._inquiry.asked(self.problem) & ~lists.decided)
        after = QuestionState(
            round=next_round,
            seen=pooled,
            evidence=evidence,
            lists=lists,
            dim=dim,
            active=left,
            leader=leader,
            finished="certified" if len(left) == 0 else "budget" if self._sizes.over(next_round) else "",
            compressed=state.compressed or not isinstance(ground.embedded, IndependentArms),
            alarms=model_checks.with_failed_checks(state.alarms, self._failed_checks(ground, plan, state.seen, seen)),
        )
        asked = np.isin(np.arange(self.problem.num_arms), left)
        if not after.finished and uniform.endless(self.problem, pooled, asked, features=self._repeats_few):
            after = replace(after, finished="equal")
        equal = uniform.equal_repeats(self.problem, pooled)
        return Step(after, trace_row(plan, after, pulls=seen.total, gap=None, alarms=after.alarms, equal=equal))

    def claim(self, state: QuestionState) -> Claim:
        return Claim(
            leader=state.leader,
            finished=state.finished,
            pulls=state.pulls,
            spent=failure_probability(self.problem.noise, self.problem.delta) + delta_for_test(self.problem),
            assumptions=(
                *model_checks.active_assumptions(self.embedding, state.seen.total, state.compressed),
                *assumed_of(constraints_of(self.problem.question), state.seen),
                *([] if self.blocks is None else [block_options.shared_effect(self.blocks)]),
            ),
            why_heuristic=" ".join(self._uneven(state.alarms))
            or model_checks.why_not_certified(self.embedding, state.alarms, state.compressed),
            remark=lambda: self._remark(state),
            lists=(np.flatnonzero(state.lists.inside), np.flatnonzero(state.lists.outside)),
        )

    def _remark(self, state: QuestionState) -> str:
        """Why more pulls would not help, if there is a reason."""
        if state.finished not in ("", "equal"):
            return ""
        return uniform.equal_words(self.problem, uniform.equal_repeats(self.problem, state.seen))

    def _opening(self, round_number: int) -> Plan:
        """The first batch: all arms alike. It shows where to look, and is evidence for nothing."""
        dim, design = first_dimension(self.problem, self.embedding, dim=self.dim, tolerance=self.tolerance)
        embedded = self._ground(dim).embedded
        if isinstance(embedded, IndependentArms):
            weights, usual = np.full(embedded.num_arms, 1.0 / embedded.num_arms), self._first_pulls * dim
        else:
            weights, usual = design.weights, max(2 * embedded.dim, 4)
        costs = self.problem.relative_costs
        price = 1.0 if costs is None else float(weights @ costs / weights.sum())
        total = self._sizes.first(usual, grid_of(self._ground(dim), None), price)
        counts = self._whole(dim, weights, total, round_number, None)
        if not known_scale(self.problem.noise) and isinstance(embedded, Embedding):
            counts = first_pulls(self._ground(dim), embedded, weights)
        if self.batch_size is not None and isinstance(embedded, IndependentArms):
            counts = batches.listed_sizes(embedded.num_arms, total, round_number)
        value, bound = design.value, design.lower_bound
        return Plan(round_number, counts, dim=dim, design_value=value, lower_bound=bound,
                    misspecification=embedded.misspecification)  # fmt: skip

    @property
    def _repeats_few(self) -> bool:
        """Whether few arms are measured, so that each has a bound on its variance."""
        return not known_scale(self.problem.noise) and self.embedding.traits.family != "independent"

    @property
    def _first_pulls(self) -> int:
        """Of each arm without structure, before anything is planned by what was seen."""
        if not known_scale(self.problem.noise):
            return tuning.HEURISTIC_REPEATS
        return HEURISTIC_FIRST_BOUNDED if self._limits else HEURISTIC_FIRST_PULLS

    @property
    def _sizes(self) -> BatchSizes:
        return BatchSizes.of(self)

    def _unmeasured(self, state: QuestionState) -> Plan | None:
        """Without structure, and with batches of a given size: the next arms, until each had its turn."""
        embedded = self._ground(state.dim).embedded
        if not isinstance(embedded, IndependentArms):
            return None
        return batches.next_of_list(self._sizes, embedded.num_arms, self._first_pulls, state.round)

    def _whole(
        self, dim: int, weights: FloatArray, total: int, round_number: int, seen: Observations | None
    ) -> IntArray:
        ground = self._ground(dim)
        return batches.whole_batch(ground, ground.embedded, weights, total, round_number, self._sizes, seen)

    def _bet(self, state: QuestionState, ground: Ground, seen: Observations) -> Collected:
        """The evidence after a batch; all bets are functions of what was told before it."""
        evidence = state.evidence
        view = self._view(ground, evidence, state.lists, state.seen)
        past, came = (told_beside(one, len(self._limits)) for one in (state.seen, seen))
        for bet in self._inquiry.bets(view):
            if bet.quantity:
                at = bet.quantity - 1
                gains = self._limits[at].gains(bet, past[at], came[at], view.standings[at])
            else:
                gains = ground.gains(bet, state.seen, seen, view.posterior)
            own = processes_of(evidence, bet.name, self.problem.num_arms, bet.start)
            evidence = with_processes(evidence, own.after(gains))
        return evidence

    def _without_effects(self, past: Observations, seen: Observations) -> Observations:
        """What guesses are made of: where measurements have blocks, without the effects of these."""
        return seen if self.blocks is None else block_options.without_effects(seen, past, self.problem.scales)

    def _view(self, ground: Ground, evidence: Collected, lists: Lists, seen: Observations) -> View:
        told = told_beside(seen, len(self._limits))
        standings = tuple(one.standing(own) for one, own in zip(self._limits, told, strict=True))
        held = (self.problem, delta_for_test(self.problem), evidence, lists, ground.posterior(seen), standings)
        return View(*held, ground.noise_mgf(seen).noise_scales(self.problem.epsilon)) if standings else View(*held)

    def _leader(self, view: View) -> int:
        """The arm that looks like the answer, of those inside if there are any."""
        inside, named = view.lists.inside, self._inquiry.named(view)
        if named is not None and not inside.any():
            return named
        allowed = inside if inside.any() else np.ones(self.problem.num_arms, bool)
        return int(np.argmax(np.where(allowed, view.posterior.scores, -np.inf)))

    def _ground(self, dim: int) -> Ground:
        return Ground(
            self.problem,
            self.embedding,
            dim,
            self._inquiry.number(self.problem),
            self.tolerance,
            self.blocks is not None,
        )

    @property
    def _limits(self) -> tuple[ConstraintTest, ...]:
        return tuple(ConstraintTest(self.problem, one) for one in constraints_of(self.problem.question))

    def _uneven(self, alarms: tuple[str, ...]) -> list[str]:
        """What is said of quantities that have noise against what was declared."""
        return [
            f"{UNEVEN.format(one.name)}: declare it, e.g. {one.name}{one.sign}{one.bound:g},tolerance=...,"
            "noise=subgaussian:SIGMA, and start anew."
            for one in constraints_of(self.problem.question)
            if UNEVEN.format(one.name) in alarms
        ]

    @property
    def _exactness(self) -> tuple[str, ...]:
        """What is looked for in quantities that are said to have no noise."""
        names = [one.constraint.name for one in self._limits if one.constraint.noise is None]
        return tuple(f"All measurements of a candidate give the same {name}." for name in names)

    def _failed_checks(self, ground: Ground, plan: Plan, past: Observations, seen: Observations) -> tuple[str, ...]:
        """What a batch says against the noise and the embedding."""
        told = told_beside(past.plus(seen), len(self._limits))
        uneven = tuple(
            UNEVEN.format(one.constraint.name)
            for one, own in zip(self._limits, told, strict=True)
            if one.contradicted(own).any()
        )
        if not known_scale(self.problem.noise):
            far = model_checks.spread_of_repeats(self.problem, ground.noise_mgf(past), past, seen)
            uneven = (*uneven, far) if far else uneven
            after = ground.noise_mgf(past.plus(seen))
            if not isinstance(after, NormalMgf):
                return uneven
            seen, bounds = after.usable(seen), after.joint_bounds
            return uneven + model_checks.misfits(
                self.embedding, ground.embedded, plan, seen, self.problem, bounds=bounds
            )
        return uneven + model_checks.misfits(self.embedding, ground.embedded, plan, seen, self.problem)
