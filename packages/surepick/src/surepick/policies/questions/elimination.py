"""Certified lists: every arm is put on a list once evidence against the contrary is strong enough."""

import math
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from surepick.core.observations import BlockTotals, Observations, Quantity
from surepick.core.plans import Blocking, Embedding, Plan
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.embeddings import IndependentEmbedding
from surepick.errors import InvalidInput
from surepick.estimators import Mgf, NormalMgf, noise_mgf_after
from surepick.estimators.e_values import Collected, processes_of, with_processes
from surepick.estimators.pairs import without_pair_effects
from surepick.estimators.posterior import NUMBER, Posterior
from surepick.noise import Noise, failure_probability, known_scale, largest_scale
from surepick.policies import model_checks, options, tuning
from surepick.policies.base import Problem, Traits, delta_for_test
from surepick.policies.carried.block_rule import without_effects, without_effects_on_vectors
from surepick.policies.options import option
from surepick.policies.questions import outlook
from surepick.policies.questions.outlook import Ground, RemainingOfBets
from surepick.policies.sequential import batches, engine as block_options
from surepick.policies.sequential.engine import BatchSizes, EmbeddedTest, Grid, jointly_normal
from surepick.policies.sequential.first_designs import first_dimension
from surepick.policies.sequential.state import SequentialState
from surepick.questions import Constraint, constraints_of, inquiry_of
from surepick.questions.protocol import Aims, Bet, ConstraintEstimate, Inquiry, Lists, View

# --- How each arm stands to the bounds of the constraints, and what is evidence on them.

UNEVEN = "Measurements of a candidate give different values of {}, which was said to have no noise"
EXACT = 1e-9  # of its size, within which repeats of a quantity without noise agree


@record
class ConstraintTest:
    """A constraint with what it takes to judge it: its arms have no structure."""

    problem: Problem  # the question about the reward
    constraint: Constraint  # b, its direction, its tolerance and its noise

    def standing(self, seen: Quantity) -> ConstraintEstimate:
        """What the past suggests."""
        one, known = self.constraint, seen.counts > 0
        if one.noise is None:
            room = np.where(known, self._within(seen.means), 0.0)
            nothing = np.zeros(len(known))
            return ConstraintEstimate(room, nothing, nothing, known, one.tolerance, True, None)
        told = seen.observations
        scales = noise_mgf_after(one.noise, told).noise_scales(one.tolerance)
        if not known.any():
            unknown = np.full(len(known), np.inf)
            posterior = Posterior(np.full(len(known), one.bound), lambda _: unknown, one.bound)
            return ConstraintEstimate(np.zeros(len(known)), unknown, scales, known, one.tolerance, False, posterior)
        posterior = self._ground(one.noise).posterior(told)
        room = posterior.leads(NUMBER, high=not one.at_most)
        return ConstraintEstimate(room, posterior.errors(NUMBER), scales, known, one.tolerance, False, posterior)

    def gains(self, bet: Bet, past: Quantity, seen: Quantity, standing: ConstraintEstimate) -> FloatArray:
        """The log e-values of a batch for one bet on this quantity, shape (K,)."""
        if self.constraint.noise is None or standing.posterior is None or not standing.known.any():
            return np.zeros(len(bet.arms))
        ground = self._ground(self.constraint.noise)
        return ground.gains(bet, past.observations, seen.observations, standing.posterior)

    def contradicted(self, seen: Quantity) -> BoolArray:
        """The arms whose measurements differ although there is no noise, shape (K,)."""
        if self.constraint.noise is not None:
            return np.zeros(len(seen.counts), bool)
        spread = seen.squares * seen.counts - seen.sums**2
        return np.asarray(spread > EXACT * seen.squares * seen.counts)

    def _within(self, values: FloatArray) -> FloatArray:
        room = self.constraint.bound - values
        return room if self.constraint.at_most else -room

    def _ground(self, noise: Noise) -> Ground:
        num_arms = self.problem.num_arms
        asked = replace(self.problem, noise=noise, epsilon=self.constraint.tolerance, question=None)
        return Ground(asked, IndependentEmbedding(num_arms), num_arms, self.constraint.bound, 0.05)


def told_beside(seen: Observations, number: int) -> tuple[Quantity, ...]:
    """The totals of each quantity; zeros where nothing was told."""
    return seen.quantities or tuple(Quantity.nothing(len(seen.counts)) for _ in range(number))


def assumed_of(constraints: tuple[Constraint, ...], seen: Observations) -> tuple[str, ...]:
    """What the evidence on the constraints rests on, as sentences."""
    found = []
    for one, told in zip(constraints, told_beside(seen, len(constraints)), strict=True):
        if one.noise is None:
            found.append(f"A measurement of {one.name} has no noise.")
        elif one.noise.support is not None:
            low, high = one.noise.support
            found.append(
                f"The measurements of {one.name} are such draws around its mean, between {low:g} and {high:g}."
            )
        else:
            scale = largest_scale(one.noise)
            found.append(
                f"The measurements of {one.name} are such draws around its mean, with sub-Gaussian noise of scale at "
                f"most {scale:g}."
            )
        if (told.counts < seen.counts).any():
            found.append(f"Whether {one.name} was measured does not depend on its value, nor on the reward.")
    return tuple(found)


# --- How many pulls a batch of a question has. Validity rests on none of it.

HEURISTIC_LAST = 2.5  # of the predicted rest: after the last batch that is allowed nothing can be made up for


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
    size = embedded.num_arms if not embedded.structured else embedded.dim
    threshold = math.log(problem.num_arms / delta_for_test(problem))
    return Grid.of(size, max(2 * size, 4), sigma=sigma, epsilon=problem.epsilon, threshold=threshold)


# --- Questions with features where nobody knows the scales: few arms are measured, each often enough for a bound.
#
# Validity rests on none of it: pulls of arms without a bound enter no evidence (docs/questions.md, line 15).


def first_pulls(
    ground: Ground, embedded: Embedding, weights: FloatArray, exact: int | None, round_number: int
) -> IntArray | None:
    """As few arms of a design as see what all of it sees, each with the repeats for a bound, shape (K,).

    With batches of a given size those of one of the batches that they take; None after these.
    """
    support = np.flatnonzero(weights)
    rows = np.sqrt(weights[support])[:, None] * embedded.features[support]
    pulls = np.tile(support[batches.spanning_arms(rows)], ground.repeats)
    size = len(pulls) if exact is None else exact
    if round_number > batches.batches_of_a_list(len(pulls), size):
        return None
    places = np.arange((round_number - 1) * size, round_number * size) % len(pulls)
    return np.bincount(pulls[places], minlength=len(weights)).astype(np.int64)


def rest_of_few(ground: Ground, embedded: Embedding, aims: Aims, noise_mgf: NormalMgf) -> RemainingOfBets:
    """What is still to be measured, without the arms that would get too few pulls for a bound."""
    rest = ground.rest(aims, noise_mgf)
    planned, needed = rest.weights * rest.pulls, ground.repeats
    avoided = batches.underreplicated(planned, noise_mgf.bounded, embedded.features, needed)
    if aims.alone is not None:
        avoided &= aims.alone == 0.0
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
class CertifiedLists(EmbeddedTest):
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
            Where nobody knows the scale of the noise, a candidate is in a block once, and no block goes on later.
        streams: as in `PairedElimination`.

    Source: ours (docs/questions.md), after Ville (1939); Vovk & Wang (2021) for e-values, Wang & Ramdas
    (2022) for e-BH.
    """

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
    streams: str | None = option(None, options.block_name)
    evidence: str = field(default="lists", init=False, compare=False, repr=False)
    _inquiry: Inquiry = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        EmbeddedTest.__post_init__(self)
        BatchSizes.of(self)
        block_options.check_idle(self, "block_size", "once_a_block")
        if self.blocks is not None and self.streams is not None:
            raise InvalidInput("blocks and streams are both given; name one.")
        outlook.check_blocks(self.problem, self.blocking, features=self._uses_features)
        object.__setattr__(self, "_inquiry", inquiry_of(self.problem))

    @property
    def blocking(self) -> Blocking | None:
        """What is said of blocks; None where measurements are independent."""
        control = getattr(self.problem.question, "control", None)
        name, normal = self.blocks or self.streams, not known_scale(self.problem.noise)
        once = normal or bool(self.once_a_block)
        found = block_options.blocking_of(self.problem, name, self.block_size, control, once)
        return None if found is None else replace(found, anew=normal, again=self.streams is not None)

    @property
    def traits(self) -> Traits:
        return self._traits(
            certifies="lists",
            embedding=self._levelled,
            checks=tuple(
                f"All measurements of a candidate give the same {one.constraint.name}."
                for one in self._limits
                if one.constraint.noise is None
            ),
            uses_costs=True,
            batch_cost=self.batch_cost,
        )

    def init(self) -> SequentialState:
        start: SequentialState = EmbeddedTest.init(self)
        return replace(start, beaten=~self._inquiry.asked(self.problem), finished="")

    def ask(self, state: SequentialState) -> Plan:
        opening = self._opening(state.round) if state.seen.total == 0 else self._unmeasured(state)
        if opening is not None:
            return opening
        ground = self._ground(state.dim)
        aims = self._inquiry.aims(self._view(ground, state.collected, state.lists, state.seen))
        rest, noise_mgf = None, ground.noise_mgf(state.seen)
        if not noise_mgf.declared and ground.embedded.structured:
            rest = rest_of_few(ground, ground.embedded, aims, noise_mgf)
        rest = ground.rest(aims, noise_mgf) if rest is None else rest
        total = self._total(state, rest, ground)
        centres: tuple[int, ...] = (state.leader,)
        if self._in_pairs:
            wanted = np.unique(aims.second[aims.second != NUMBER])  # of small blocks some, others in the next batch
            most = len(wanted) if self.block_size is None else self.block_size // 2
            centres = tuple(np.roll(wanted, state.round * most)[:most].tolist())
        elif getattr(self.problem.question, "control", None) is not None or ground.embedded.structured:
            centres = ()  # with features every pair of a block tells of all
        counts = block_options.filled_blocks(
            self._whole(state.dim, rest.weights, total, state.round, state.seen),
            self.blocking,
            centres,
            exact=self.batch_size is not None,
        )
        return Plan(
            round=state.round,
            counts=counts,
            dim=state.dim,
            predicted_pulls=rest.pulls,
            lower_bound=rest.least,
            misspecification=ground.embedded.misspecification,
            predicted_cost=rest.cost,
        )

    def bets(self, state: SequentialState, plan: Plan, seen: Observations) -> Any:
        """(bet, what it makes of the batch) of each comparison; the first batch only shows where to look."""
        if state.seen.total == 0 or seen.total == 0:
            return ()
        ground = self._ground(plan.dim)
        view = self._view(ground, state.collected, state.lists, state.seen)
        found: list[tuple[Bet, Any]] = []
        for bet in self._inquiry.bets(view):
            if bet.quantity:
                judged = partial(self._limits[bet.quantity - 1].gains, bet, standing=view.standings[bet.quantity - 1])
                found.append((bet, judged))
            else:
                found.append((bet, ground.wager(bet, state.seen, view.posterior, state.blocks)))
        return found

    def update(self, state: SequentialState, _: Plan, bets: Any, seen: Observations) -> dict[str, Any]:
        collected = state.collected
        past, came = (told_beside(one, len(self._limits)) for one in (state.seen, seen))
        for bet, judged in bets:
            at = bet.quantity - 1
            gains = judged(past[at], came[at]) if bet.quantity else judged(seen)
            own = processes_of(collected, bet.name, self.problem.num_arms, bet.start)
            collected = with_processes(collected, own.after(gains))
        if not self._in_pairs or seen.blocks is None:
            return {"collected": collected}
        blocks = seen.blocks if state.blocks is None else state.blocks.plus(seen.blocks)
        return {"collected": collected, "blocks": blocks}

    def decide(self, _: SequentialState, after: SequentialState, plan: Plan) -> SequentialState:
        view = self._view(self._ground(plan.dim), after.collected, after.lists, after.seen)
        lists = self._inquiry.decided(view)
        left = self._inquiry.asked(self.problem) & ~lists.decided
        leader, finished = self._leader(replace(view, lists=lists)), "" if left.any() else "certified"
        return replace(after, lists=lists, leader=leader, beaten=~left, finished=finished)

    def _equal(self, state: SequentialState, least: int = model_checks.FEWEST) -> IntArray:
        if not self._in_pairs:
            return EmbeddedTest._equal(self, state, least)
        return model_checks.equal_repeats(self.problem, self._apart(state, state.blocks), least)

    def _endless(self, state: SequentialState) -> bool:
        if self._in_pairs:
            return bool((~state.beaten[self._equal(state, model_checks.ENDLESS)]).any())
        return model_checks.endless(self.problem, state.seen, ~state.beaten, features=self._repeats_few)

    def _answer(self, state: SequentialState) -> dict[str, Any]:
        active = model_checks.active_assumptions(self.embedding, state.seen.total, state.compressed)
        others = assumed_of(constraints_of(self.problem.question), state.seen)
        answer = EmbeddedTest._answer(self, state) | {"assumptions": (*active, *others, *self._shared_effect)}
        answer |= {"of_draws": False} if self._in_pairs else {}
        uneven = " ".join(
            f"{UNEVEN.format(one.name)}: declare it, e.g. {one.name}{one.sign}{one.bound:g},tolerance=...,"
            "noise=subgaussian:SIGMA, and start anew."
            for one in constraints_of(self.problem.question)
            if UNEVEN.format(one.name) in state.alarms
        )
        lists = (np.flatnonzero(state.lists.inside), np.flatnonzero(state.lists.outside))
        return answer | {"lists": lists} | ({"why_heuristic": uneven} if uneven else {})

    def _opening(self, round_number: int) -> Plan | None:
        """The first batch: all arms alike. It shows where to look, and is evidence for nothing.

        Of the few arms whose scales are shown by repeats the next batch, where batches have a size; None after it.
        """
        more = self._levelled.max_dim - self.embedding.max_dim
        dim = None if self.dim is None else self.dim + more
        dim, design = first_dimension(self.problem, self._levelled, dim=dim, tolerance=self.tolerance)
        embedded = self._ground(dim).embedded
        if not embedded.structured:
            weights, usual = np.full(embedded.num_arms, 1.0 / embedded.num_arms), self._first_pulls * dim
        else:
            weights, usual = design.weights, max(2 * embedded.dim, 4)
        costs = self.problem.relative_costs
        price = 1.0 if costs is None else float(weights @ costs / weights.sum())
        total = self._sizes.first(usual, grid_of(self._ground(dim), None), price)
        if not known_scale(self.problem.noise) and embedded.structured:
            counts = first_pulls(self._ground(dim), embedded, weights, self.batch_size, round_number)
        else:
            counts = self._whole(dim, weights, total, round_number, None)
        if counts is None:
            return None
        if self.batch_size is not None and not embedded.structured:
            counts = batches.listed_sizes(embedded.num_arms, total, round_number)
        value, bound = design.value, design.lower_bound
        return Plan(round_number, counts, dim=dim, design_value=value, lower_bound=bound,
                    misspecification=embedded.misspecification)  # fmt: skip

    def _total(self, state: SequentialState, rest: RemainingOfBets, ground: Ground) -> int:
        """Pulls of the next batch."""
        sizes, seen, costs = self._sizes, state.seen, self.problem.relative_costs
        if sizes.exact is not None:
            return sizes.exact
        if sizes.most is None and sizes.fixed == 0.0:
            return batches.batch_total(rest.pulls, seen.total)
        if sizes.is_last(state.round):
            return max(1, math.ceil(HEURISTIC_LAST * rest.pulls))
        price = 1.0 if costs is None else float(seen.counts @ costs) / seen.total
        money = rest.pulls if rest.cost is None else rest.cost / self.problem.cheapest_cost
        grid = grid_of(ground, seen) or Grid(1.0, 1.0)
        wanted = sizes.testing(state.round, price * seen.total, money, Grid(price * grid.start, price * grid.end))
        return max(1, math.ceil(wanted * rest.pulls / money))

    @property
    def _repeats_few(self) -> bool:
        """Whether few arms are measured, so that each has a bound on its variance."""
        return not known_scale(self.problem.noise) and self._uses_features

    @property
    def _first_pulls(self) -> int:
        """Of each arm without structure, before anything is planned by what was seen."""
        if not known_scale(self.problem.noise):
            return tuning.HEURISTIC_REPEATS
        return HEURISTIC_FIRST_BOUNDED if self._limits else HEURISTIC_FIRST_PULLS

    @property
    def _sizes(self) -> BatchSizes:
        return BatchSizes.of(self)

    def _unmeasured(self, state: SequentialState) -> Plan | None:
        """With batches of a given size: the next arms, until each had its turn."""
        embedded = self._ground(state.dim).embedded
        if embedded.structured:
            return self._opening(state.round) if self._repeats_few and self.batch_size is not None else None
        plan = batches.next_of_list(self._sizes, embedded.num_arms, self._first_pulls, state.round)
        return None if plan is None else replace(plan, dim=state.dim)

    def _whole(
        self, dim: int, weights: FloatArray, total: int, round_number: int, seen: Observations | None
    ) -> IntArray:
        ground = self._ground(dim)
        return batches.whole_batch(ground, ground.embedded, weights, total, round_number, self._sizes, seen)

    def _without_effects(self, state: SequentialState, plan: Plan, seen: Observations) -> Observations:
        if self.blocks is None:
            return seen
        if self._in_pairs:
            found = seen if seen.blocks is None else without_pair_effects(seen.blocks, state.seen)
        elif self.embedded(plan.dim).structured and (white := self._cache.white(self._levelled, plan.dim)):
            found = without_effects_on_vectors(seen, state.seen, self.problem.scales, white.basis)
        else:
            found = without_effects(seen, state.seen, self.problem.scales)
        return replace(found, quantities=seen.quantities)

    @property
    def _in_pairs(self) -> bool:
        """Whether differences within blocks are compared, of which nobody knows how much they vary."""
        return (self.blocks or self.streams) is not None and not known_scale(self.problem.noise)

    def _apart(self, state: SequentialState, blocks: BlockTotals | None) -> Observations:
        """Differences within blocks to the control, or to the arm that leads."""
        control = None if self.blocking is None else self.blocking.control
        return outlook.apart_in_blocks(blocks, state.leader if control is None else control, self.problem.num_arms)

    @property
    def _shared_effect(self) -> tuple[str, ...]:
        if not self._in_pairs:
            return () if self.blocking is None else (block_options.shared_effect(self.blocking.name),)
        failure = failure_probability(self.problem.noise, self.problem.delta)
        return jointly_normal(self.blocks or self.streams or "", failure, shifts=self.streams is None)

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
        number = self._inquiry.number(self.problem)
        shared = self.blocks is not None and not self._in_pairs
        return Ground(self.problem, self._levelled, dim, number, self.tolerance, shared, self._in_pairs)

    def _noise_mgf(self, seen: Observations) -> Mgf:
        return self._ground(self.embedding.max_dim).noise_mgf(seen)

    @property
    def _limits(self) -> tuple[ConstraintTest, ...]:
        return tuple(ConstraintTest(self.problem, one) for one in constraints_of(self.problem.question))

    def failed_checks(self, state: SequentialState, plan: Plan, seen: Observations) -> tuple[str, ...]:
        told = told_beside(state.seen.plus(seen), len(self._limits))
        uneven = tuple(
            UNEVEN.format(one.constraint.name)
            for one, own in zip(self._limits, told, strict=True)
            if one.contradicted(own).any()
        )
        if self._in_pairs:
            known, news = self._apart(state, state.blocks), self._apart(state, seen.blocks)
            mgf = outlook.mgf_of_differences(known, failure_probability(self.problem.noise, self.problem.delta))
            far = model_checks.spread_of_repeats(self.problem, mgf, known, news)
            return (*uneven, far) if far else uneven
        return uneven + EmbeddedTest.failed_checks(self, state, plan, seen)
