"""How a certificate comes about: what is asked, what is evidence against each way of being wrong, and when to stop.

A wrong answer means that a null hypothesis was rejected which is true: "arm j is better than c by more than epsilon",
"arm j is not above the threshold". Each null that matters has an e-process: a number that starts at 1 and has a mean of
at most 1 while its null is true, whatever is measured and whenever somebody looks. It is rejected once the process has
reached its threshold: 1/delta where one null at most can do harm, more where several share delta (Ville 1939).

    ask      measure where the processes are predicted to reach their thresholds first
    bets     how each process weighs the results to come, fixed before they come
    update   what the results do to the processes: the proofs are about this
    decide   which nulls are rejected, and whether that answers the question

`bets` is a function of what was known before the batch, of the plan, and of how many results came of each arm and
block; never of the results. `update` takes bets, results, and what may be assumed of the noise.

All else is a guess that steers (`posterior.py`, `batches.py`): the worst that it can do is to cost measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, TypeVar, cast

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Blocking, Deciding, Embedded, IndependentArms, Plan, RoundRecord, Step
from surepick.core.records import IntArray, record
from surepick.designs import DesignInput
from surepick.embeddings import ArmEmbedding
from surepick.embeddings.base import CentredWithinBlocks
from surepick.errors import InvalidInput
from surepick.estimators import Mgf, noise_mgf_after, normal_mgf_after
from surepick.linalg.factorisations import Whitened, whitened
from surepick.noise import failure_probability, known_scale
from surepick.policies import model_checks, options, tuning
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms, delta_for_test, trace_row
from surepick.policies.options import check_options, option
from surepick.policies.preference import Preference, preferred, why_named
from surepick.policies.sequential.state import SequentialState, good_enough
from surepick.questions.protocol import Lists
from surepick.text import did_you_mean, quoted

# --- What is kept so as not to be formed again: a memo, and no part of a policy.

MOST_DIMENSIONS = 2  # a study hardly ever uses more at a time
T = TypeVar("T")


def embedded_in(embedding: ArmEmbedding, dim: int) -> Embedded:
    """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
    if embedding.num_distinct == embedding.num_arms and model_checks.is_saturated(embedding, dim):
        return IndependentArms(embedding.num_arms)
    return embedding.at(dim)


def mgf_after(problem: Problem, seen: Observations) -> Mgf:
    """What the next batch may assume of the noise, from everything told before it."""
    if known_scale(problem.noise):
        return noise_mgf_after(problem.noise, seen)
    return normal_mgf_after(seen, failure_probability(problem.noise, problem.delta))


class Memo:
    """What was worked out last, by name.

    Each answer is, bit by bit, that of the function behind it: what is kept belongs to equal keys, or to the very same
    objects, and is read-only. So a policy that holds one is as pure as without it. Copied and pickled as empty.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[Any, Any], ...]] = {}

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()

    def last(self, name: str, key: Any, form: Callable[[], T], most: int = 1) -> T:
        """What goes by that name, formed by `form` unless the key is one of the last; so many are kept."""
        kept = self._kept.get(name, ())  # looked at once: another thread may change what is kept
        found = next((each for each in reversed(kept) if each[0] is key or each[0] == key), None)
        if found is not None:
            return cast(T, found[1])
        self._kept[name] = kept[max(len(kept) + 1 - most, 0) :]
        del kept  # what has to go goes first: of one, two are never held at a time
        return self._formed(name, key, form)

    def of(self, name: str, owner: object, key: Any, form: Callable[[], T]) -> T:
        """The same of what belongs to that very object; what belongs to another one goes."""
        found, value = self.known(name, owner, key)
        if found:
            return cast(T, value)
        self._kept[name] = tuple(each for each in self._kept.get(name, ()) if each[0][0] is owner)
        return self._formed(name, (owner, key), form)

    def known(self, name: str, owner: object, key: Any = None) -> tuple[bool, Any]:
        """(whether it is kept, what is kept) of that very object."""
        for (of, known), value in self._kept.get(name, ()):
            if of is owner and known == key:
                return True, value
        return False, None

    def embedded(self, embedding: ArmEmbedding, dim: int) -> Embedded:
        """`embedded_in`."""
        return self.last("embedded", dim, lambda: embedded_in(embedding, dim), most=MOST_DIMENSIONS)

    def posed(self, embedding: ArmEmbedding, dim: int) -> DesignInput:
        """The arms in psi_d as designs see them."""

        def form() -> DesignInput:
            return DesignInput.of(embedding.at(dim).features, white=lambda: self.white(embedding, dim))

        return self.last("posed", dim, form)

    def white(self, embedding: ArmEmbedding, dim: int) -> Whitened | None:
        """`whitened` of the features of psi_d; None without structure."""

        def form() -> Whitened | None:
            embedded = embedding.at(dim)
            if not embedded.structured:
                return None
            found = whitened(embedded.features)
            found.basis.flags.writeable = False
            return found

        return self.last("white", dim, form, most=MOST_DIMENSIONS)

    def _formed(self, name: str, key: Any, form: Callable[[], T]) -> T:
        found = form()
        if isinstance(found, np.ndarray):
            found.flags.writeable = False
        self._kept[name] = (*self._kept[name], (key, found))  # one assignment: a thread sees the old or the new
        return found


# --- What a user says of batches, and how many pulls one has. Validity rests on none of it.

HEURISTIC_EARLY = 3.0  # where few batches are left, each has so many times its share of the predicted rest
HEURISTIC_OPENING_BATCHES = 0.5  # of the batches that are allowed may go by before a candidate is tested
HEURISTIC_OPENING_SHARE = 0.5  # of the pulls that an opening should have: enough where another batch is dear
HEURISTIC_FIRST_FOR_COST = 0.5  # of what a batch costs beside its pulls: what the pulls of the first one cost
HEURISTIC_BALANCE = 1.0  # times sqrt(fixed cost of a batch times the rest): what the pulls of a batch cost
HEURISTIC_LARGEST_BATCH = 1.5  # of the predicted rest: no batch is larger, however dear another one is


@record
class Grid:
    """Pulls so far after each batch, where only few are allowed: a geometric sequence.

    Nothing is known of the gaps beforehand. If each batch multiplies the pulls by the same factor, then whatever the
    gaps are, the pulls after some batch are within that factor of what they ask for.

    Source: Perchet et al. (2016), Gao et al. (2019).
    """

    start: float  # with how many pulls a study usually begins
    end: float  # what arms that are all equal are predicted to take

    @staticmethod
    def of(dim: int, least: int, *, sigma: float, epsilon: float, threshold: float) -> Grid:
        """The one for d directions; K for arms without structure.

        end = 2 s^2 log(1/delta) 2 d / epsilon^2,     2 d: what the design value of all differences is about
        """
        return Grid(float(least), max(float(least), 4.0 * dim * threshold * (sigma / epsilon) ** 2))

    def after(self, share: float) -> float:
        """Pulls after that share of the batches."""
        return float(self.start ** (1.0 - share) * self.end**share)


@record
class BatchSizes:
    """What a user says of batches."""

    largest: int | None  # most pulls in a batch, or the arms that a design needs if these are more; None: no limit
    exact: int | None  # the pulls of every batch; None: they are chosen
    most: int | None  # after so many batches the study ends; None: no limit
    fixed: float = 0.0  # what a batch costs beside its pulls, in pulls of the cheapest arm
    reserve: float = 0.0  # share of its pulls that is added, so that a lack of fit can show

    def __post_init__(self) -> None:
        if self.largest is not None and self.exact is not None:
            raise InvalidInput(
                f"largest_batch is {self.largest} and batch_size {self.exact}; a batch of exactly that size has no "
                "other limit: give one of the two."
            )

    @property
    def free(self) -> bool:
        """Whether batches may have any size, and be as many as one likes."""
        return self.exact is None and self.most is None and self.fixed == 0.0

    def over(self, round_number: int) -> bool:
        """Whether no further batch is allowed, the next of which would be that one."""
        return self.most is not None and round_number > self.most

    def is_last(self, round_number: int) -> bool:
        """Whether nothing can be measured after that batch."""
        return self.most is not None and round_number >= self.most

    def opens(self, round_number: int) -> bool:
        """Whether that batch may still serve no candidate."""
        return self.most is None or round_number <= HEURISTIC_OPENING_BATCHES * self.most

    def opened(self, pulls: float, enough: float) -> bool:
        """Whether the opening has had what it should have, or so much that no batch is spent on the rest."""
        return pulls + self.fixed >= (enough if self.most is None else HEURISTIC_OPENING_SHARE * enough)

    def first(self, usual: int, grid: Grid | None, price: float = 1.0) -> int:
        """Pulls of the first batch."""
        if self.exact is not None:
            return self.exact
        if self.most is None and self.fixed == 0.0:
            return usual
        aims = [HEURISTIC_FIRST_FOR_COST * self.fixed / price]
        if grid is not None:
            aims = [min(aims[0], grid.end), *([] if self.most is None else [grid.after(1.0 / self.most)])]
        total = max(usual, math.ceil(max(aims)))
        return total if self.largest is None else max(usual, min(total, self.largest))

    def opening(self, round_number: int, pulls: float, grid: Grid) -> float:
        """Pulls, or money, of a further batch that serves no candidate: as before, or up to the next of the grid."""
        doubled = max(float(pulls), self.fixed)
        return doubled if self.most is None else max(doubled, grid.after(round_number / self.most) - pulls)

    def testing(self, round_number: int, pulls: float, rest: float, grid: Grid) -> float:
        """Pulls, or money, of a batch for a candidate.

            usual = min(max(.2 rest, .02 pulls, min(sqrt(fixed rest), 1.5 rest)), max(pulls, fixed))
            max(usual, min(rest min(1, 3 / (batches left)), up to the next point of the grid)),     at last all the rest

        A batch of money B has a fixed cost of its own, rest / B of them are to come, and the last one measures about
        B / 2 too much: fixed rest / B + B / 2 is least at a multiple of sqrt(fixed rest).

        What is predicted takes more about every other time, so that as much as possible is done before the last batch.
        But early predictions are often ten times too high, since what is not told apart yet counts as equal; the grid
        keeps the first batches from paying for that. `rest` is predicted; before the last batch it suffices mostly.
        """
        balanced = min(HEURISTIC_BALANCE * math.sqrt(self.fixed * rest), HEURISTIC_LARGEST_BATCH * rest)
        most = max(float(pulls), self.fixed)
        usual = min(max(tuning.HEURISTIC_BATCH * rest, tuning.HEURISTIC_LEAST_BATCH * pulls, balanced), most)
        if self.most is None:
            return usual
        left = self.most - round_number + 1
        if left <= 1:
            return rest
        share = rest * min(1.0, HEURISTIC_EARLY / left)
        return max(usual, min(share, grid.after(round_number / self.most) - pulls))


# --- The test.

ONLY_WITHDRAWN = (
    "Of the candidates that are left none can be better by more than epsilon; but one that was withdrawn is not ruled "
    "out, and it was withdrawn for a reason that may depend on the results."
)


GOES_ON = "One that is preferred may be good enough, too: so it is measured on."


@record
class SequentialTest:
    """A question with the evidence that answers it: the file's first lines say how."""

    problem: Problem
    _cache: Memo = field(default_factory=Memo, init=False, compare=False, repr=False, kw_only=True)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def bets(self, state: Any, plan: Plan, seen: Observations) -> Any:
        """What the processes bet on a batch: a function of what was told before, and of how many results came."""
        raise NotImplementedError

    def update(self, state: Any, plan: Plan, bets: Any, seen: Observations) -> dict[str, Any]:
        """What the processes hold after the results, as fields of the state."""
        raise NotImplementedError

    def decide(self, state: Any, after: Any, plan: Plan) -> Any:
        """The state with its leader, and with "certified" where the question is answered."""
        raise NotImplementedError

    def failed_checks(self, state: Any, plan: Plan, seen: Observations) -> tuple[str, ...]:
        """What a batch says against what is assumed, in words."""
        raise NotImplementedError

    def init(self) -> Any:
        finished, _ = self.problem.answer_without_pulls()
        num_arms = self.problem.num_arms
        nobody, nothing = np.zeros(num_arms, bool), Observations.nothing(num_arms)
        leader = preferred(range(num_arms), self._preference) if finished == "given" else 0
        return SequentialState(1, nothing, Lists.empty(num_arms), nobody, finished, leader)

    def tell(self, state: Any, plan: Plan, seen: Observations) -> Step[Any]:
        seen, level = self._less_level(state, seen)
        pooled = state.seen.plus(self._without_effects(state, plan, seen))
        if pooled.total == 0:
            return self._step(state, plan, seen)
        held = self.update(state, plan, self.bets(state, plan, seen), seen)
        after = replace(
            state,
            **held,
            round=state.round + (seen.total > 0),
            seen=pooled,
            candidate=-1 if plan.candidate is None else plan.candidate,
            dim=plan.dim,
            compressed=state.compressed or self._compresses(plan),
            alarms=model_checks.with_failed_checks(state.alarms, self.failed_checks(state, plan, seen)),
            level=level,
        )
        after = self.decide(state, after, plan)
        if not after.finished:
            why = "budget" if self._sizes.over(after.round) else "equal" if self._endless(after) else ""
            if why and self._preference is not None:
                why = good_enough(after, self.problem.epsilon)[0] or why
            after = replace(after, finished=why)
        return self._step(after, plan, seen)

    def claim(self, state: Any) -> Claim:
        return Claim(
            leader=state.leader,
            finished=state.finished,
            reason=ONLY_WITHDRAWN if state.finished == "withdrawn" else "",
            pulls=state.pulls,
            gap=self._gap(state),
            spent=failure_probability(self.problem.noise, self.problem.delta) + delta_for_test(self.problem),
            remark=lambda: self._remark(state),
            **self._answer(state),
        )

    @property
    def blocking(self) -> Blocking | None:
        """What is said of blocks; None where measurements are independent."""
        return None

    @property
    def _sizes(self) -> BatchSizes:
        return BatchSizes(None, None, None)

    def _less_level(self, state: Any, seen: Observations) -> tuple[Observations, float | None]:
        """(a batch less a level near the rewards, the level)."""
        return seen, state.level

    def _without_effects(self, state: Any, plan: Plan, seen: Observations) -> Observations:  # noqa: ARG002
        """What guesses are made of: where measurements have blocks, without the effects of these."""
        return seen

    def _compresses(self, _: Plan) -> bool:
        """Whether the batch used the features."""
        return False

    def _endless(self, _: Any) -> bool:
        """Whether no end is in sight, because repeats are all equal."""
        return False

    def _equal(self, state: Any, least: int = model_checks.FEWEST) -> IntArray:
        """The arms whose repeats are all equal, where repeats alone show a scale."""
        return model_checks.equal_repeats(self.problem, state.seen, least)

    def _answer(self, state: Any) -> dict[str, Any]:
        """Further fields of the claim: `assumptions` and `why_heuristic`, and what this question alone says."""
        raise NotImplementedError

    def _gap(self, _: Any) -> float | None:
        """By how much the leader is worse than the best arm at most; None if nothing can be said."""
        return None

    def _deciding(self, _: Any) -> Deciding | None:
        """The intervals; None where nothing can be guessed of a mean."""
        return None

    def _obstacle(self, _: Any) -> str:
        """Why more pulls would not help, if they are asked for and misspecification leaves no room."""
        return ""

    def _remark(self, state: Any) -> str:
        """Why more pulls would not help, if there is a reason; or why this one of several candidates is named."""
        if state.finished in ("certified", "given"):
            return self._why_named(state)
        if state.finished not in ("", "equal"):
            return ""
        if self._preference is not None and self._good_enough(state):
            return GOES_ON
        names, equal = self.problem.arms, self._equal(state).tolist()
        if equal:
            return model_checks.all_equal([str(arm) if names is None else names.ids[arm] for arm in equal])
        return "" if state.finished or state.seen.total == 0 else self._obstacle(state)

    @property
    def _preference(self) -> Preference:
        """What is liked of each arm beside its mean."""
        return getattr(self, "prefer", None)

    def _why_named(self, state: Any) -> str:
        """Why this one of those that are good enough is named, if there is a preference."""
        prefer = self._preference
        return "" if prefer is None else why_named(state.leader, len(self._good_enough(state)), prefer)

    def _good_enough(self, state: Any) -> Sequence[int]:
        """The arms that may be named at the end."""
        if state.finished == "given":
            return range(self.problem.num_arms)
        return good_enough(state, self.problem.epsilon)[1]

    def _step(self, after: Any, plan: Plan, seen: Observations) -> Step[Any]:
        gap, alarms, equal = self._gap(after), after.alarms, self._equal(after)
        row = trace_row(plan, after, pulls=seen.total, gap=gap, alarms=alarms, equal=equal)
        return Step(after, listed_row(row, after), self._deciding(after))


@record
class EmbeddedTest(SequentialTest):
    """One whose arms are seen through an embedding that is fixed, or as arms that share nothing."""

    embedding: ArmEmbedding

    def __post_init__(self) -> None:
        """Refuse settings without meaning, and an embedding of which nothing bounds what an inexact weight misses."""
        check_arms(self.problem, self.embedding.num_arms)
        check_options(self)
        dim = getattr(self, "dim", None)
        if dim is not None:
            self.embedding.at(dim)
        if self.embedding.norm_bound is None and self._uses_features:
            raise InvalidInput(
                "the embedding declares no norm bound, so what an inexact weight misses cannot be bounded. Give "
                "norm_bound, or IndependentEmbedding."
            )
        delta_for_test(self.problem)

    @property
    def _uses_features(self) -> bool:
        return self._cache.last("features", 0, lambda: self.embedding.traits.family != "independent")

    def _traits(self, **more: Any) -> Traits:
        own, blocking, embedding = self.embedding.traits, self.blocking, more.pop("embedding", self.embedding)
        price = () if blocking is None else (PRICE_OF_BLOCKS.format(blocking.name),)
        spread = () if known_scale(self.problem.noise) else (model_checks.SPREAD,)
        return Traits(
            corrects=True,
            uses_features=self._uses_features,
            assumptions=(*own.assumptions, *self._shared_effect),
            checks=(*model_checks.checks_of(self.embedding), *spread, *more.pop("checks", ())),
            caveats=(*own.caveats, *price),
            embedding=embedding,
            misspecification=embedding.misspecification,
            blocks=blocking,
            **more,
        )

    @property
    def _shared_effect(self) -> tuple[str, ...]:
        return () if self.blocking is None else (shared_effect(self.blocking.name),)

    def embedded(self, dim: int) -> Embedded:
        """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
        return self._cache.embedded(self._levelled, dim)

    @property
    def _levelled(self) -> ArmEmbedding:
        """The family psi_d; in blocks with a coordinate for their level."""
        if getattr(self, "blocks", None) is None or not self._uses_features:
            return self.embedding
        return self._cache.last("levelled", 0, lambda: CentredWithinBlocks(self.embedding))

    def _compresses(self, plan: Plan) -> bool:
        return self._uses_features and self.embedded(plan.dim).structured

    def _noise_mgf(self, seen: Observations) -> Mgf:
        """What may be assumed of the noise after these results."""
        raise NotImplementedError

    def failed_checks(self, state: Any, plan: Plan, seen: Observations) -> tuple[str, ...]:
        past, bounds, found = state.seen, None, ""
        if not known_scale(self.problem.noise):
            found = model_checks.spread_of_repeats(self.problem, self._noise_mgf(past), past, seen)
            after = self._noise_mgf(past.plus(seen))
            seen, bounds = after.usable(seen), None if after.declared else after.joint_bounds
        embedded = self.embedded(plan.dim)
        if self.blocking is not None and embedded.structured and seen.total > 0:
            misfits = model_checks.failed_checks_in_blocks(self._levelled, plan, seen.in_blocks, self.problem)
        else:
            white = self._cache.white(self._levelled, plan.dim) if embedded.structured else None
            used: dict[str, Any] = {"bounds": bounds, "white": white}
            misfits = model_checks.misfits(self.embedding, embedded, plan, seen, self.problem, **used)
        return (found, *misfits) if found else misfits

    def _answer(self, state: Any) -> dict[str, Any]:
        active = model_checks.active_assumptions(self.embedding, state.seen.total, state.compressed)
        why = model_checks.why_not_certified(self.embedding, state.alarms, state.compressed)
        return {"assumptions": (*active, *self._shared_effect), "why_heuristic": why}


@record
class BatchedTest(EmbeddedTest):
    """One that plans designs, in batches of which a user says something; `CarriedElimination` explains the options."""

    dim: int | None = None
    tolerance: float = option(0.05, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    largest_batch: int | None = option(None, options.largest_batch)
    batch_size: int | None = option(None, options.batch_size)
    max_batches: int | None = option(None, options.max_batches)
    batch_cost: float = option(0.0, options.batch_cost)
    blocks: str | None = option(None, options.block_name)
    block_size: int | None = option(None, options.block_size)

    @property
    def _sizes(self) -> BatchSizes:
        fixed = self.batch_cost / self.problem.cheapest_cost
        return BatchSizes(self.largest_batch, self.batch_size, self.max_batches, fixed, self.reserve)


def listed_row(row: RoundRecord, after: SequentialState) -> RoundRecord:
    """The row, with who went and how many may still come."""
    roster = after.roster
    if roster is None:
        return row
    gone = roster.withdrawn
    waiting = None if roster.cohorts is None else roster.waiting
    return replace(row, withdrawn=gone if len(gone) else None, waiting=waiting)


# --- What a study says of its blocks, and plans that fill them. Validity rests on none of the latter.

PRICE_OF_BLOCKS = (  # what a user should know before the first pull
    "Measurements are compared within a {0} only. Where no {0} has an effect of its own, this may take more of them: a "
    "forecast says how many."
)


def blocking_of(
    problem: Problem, name: str | None, size: int | None, control: str | None, once: bool
) -> Blocking | None:
    """What is said of blocks; None where measurements are independent."""
    if name is None:
        return None
    if control is None:
        return Blocking(name, size, None, once)
    ids = () if problem.arms is None else problem.arms.ids
    if control not in ids:
        meant = did_you_mean(control, ids)
        raise InvalidInput(f"control is {quoted(control)}, which is not the id of a candidate of this study.{meant}")
    return Blocking(name, size, ids.index(control), once)


def check_idle(policy: Any, *names: str) -> None:
    """Refuse options of blocks where there are none."""
    for name in (each for each in names if policy.blocks is None and getattr(policy, each) is not None):
        raise InvalidInput(f"{name} has a meaning only with blocks; say what a block is called, e.g. blocks='day'.")


def shared_effect(name: str) -> str:
    """The assumption, as a sentence."""
    return (
        f"Measurements of the same {name} may all be off by the same amount, whatever it is; it is fixed before their "
        f"own noise. Which results a {name} has does not depend on their values."
    )


def jointly_normal(name: str, failure: float, *, shifts: bool) -> tuple[str, str]:
    """The assumptions where nobody knows how much differences vary, as sentences."""
    off = " and may all be off by the same amount" if shifts else ""
    together = f"go together, as those of every other{',' if shifts else ''}{off}"
    return (
        f"The measurements of one {name} are jointly normal around the means of their candidates and {together}; "
        f"those of different ones are independent. Which of them a {name} has does not depend on their values.",
        "Standard deviations are bounded by repeats; all bounds that matter hold at all times, except with "
        f"probability {failure:g}, which is part of delta.",
    )


def filled_blocks(counts: IntArray, blocking: Blocking | None, centres: tuple[int, ...], *, exact: bool) -> IntArray:
    """The pulls of a plan, with those that give each of its blocks the centres and the control."""
    if blocking is None:
        return counts
    shared = list({arm: None for arm in (*centres, blocking.control) if arm is not None})
    if not shared:
        return counts
    found, number = np.array(counts), 0
    while number < blocking.number_for(found):
        number = blocking.number_for(found)
        if number > 1 or blocking.control is not None:
            found[shared] = np.maximum(found[shared], number)
        surplus = int(found.sum() - counts.sum()) if exact else 0
        for _ in range(surplus):
            loses = np.array(found)
            loses[shared] -= number
            found[int(np.argmax(loses))] -= 1
    return found
