"""What the peers for questions share: intervals of all arms that hold at all times, and the lists that follow."""

import math
from dataclasses import field
from typing import ClassVar

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.errors import InvalidInput
from surepick.estimators import anytime_radius
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row
from surepick.policies.options import check_options, one_of, option
from surepick.questions import NAMES, Above, AllGood, TopM, inquiry_of, question_name
from surepick_bench.policies.widths import mixture_radius

BOUNDARIES = ("union", "mixture")


@frozen
class ListingState:
    """Where a study stands."""

    round: int  # the next batch, from 1
    seen: Observations  # everything told so far
    inside: BoolArray  # inside, outside: the arms that are on the first list, and on the second, shape (K,)
    outside: BoolArray
    active: IntArray  # the arms that are asked about and on no list, ascending
    leader: int  # the arm of highest mean
    finished: str  # why it stopped: "" while it runs, or "certified"

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total


@frozen
class Bounds:
    """An interval for the mean of each arm; all hold at once, and at all times."""

    means: FloatArray  # the centres, shape (K,)
    radius: FloatArray  # half the widths, shape (K,); infinite for an arm that was never pulled

    @property
    def lower(self) -> FloatArray:
        return np.asarray(self.means - self.radius)

    @property
    def upper(self) -> FloatArray:
        return np.asarray(self.means + self.radius)


def check_question(name: str, problem: Problem, *kinds: type[Above | TopM | AllGood]) -> None:
    """Refuse a problem that asks for something else, or for what is not there."""
    if not isinstance(problem.question, kinds):
        known = " or ".join(repr(each) for each, made in NAMES.items() if made in kinds)
        raise InvalidInput(f"{name} answers question {known}, not {question_name(problem.question)!r}.")
    if problem.arms is not None and problem.arms.segments is not None:
        raise InvalidInput(f"{name} answers for the whole list and not for each segment: leave segments out.")
    inquiry_of(problem)


def control_of(problem: Problem) -> int | None:
    """Index of the arm that the others are compared with; None: there is none."""
    asked = problem.question
    if not isinstance(asked, Above) or asked.control is None or problem.arms is None:
        return None
    return problem.arms.ids.index(asked.control)


def initial_lists(problem: Problem) -> ListingState:
    """Nobody is on a list."""
    nobody = np.zeros(problem.num_arms, bool)
    asked = np.flatnonzero(inquiry_of(problem).asked(problem))
    return ListingState(1, Observations.nothing(problem.num_arms), nobody, nobody, asked, 0, "")


def bounds_of(problem: Problem, seen: Observations, boundary: str, accuracy: float | None) -> Bounds:
    """The intervals, except with probability delta."""
    counts, sigma, delta, num_arms = seen.counts, problem.scales, problem.delta, problem.num_arms
    if boundary == "union":
        return Bounds(seen.means, anytime_radius(counts, sigma, delta=delta, num_arms=num_arms))
    known = isinstance(problem.question, Above) and problem.question.control is None
    tightest = problem.epsilon * (1.0 if known else 0.5) if accuracy is None else accuracy
    return Bounds(seen.means, mixture_radius(counts, sigma, delta=delta, num_arms=num_arms, accuracy=tightest))


def listed_arms(problem: Problem, bounds: Bounds) -> tuple[BoolArray, BoolArray]:
    """(arms that the bounds put on the first list, on the second), each of shape (K,); all lists ever made are right,
    where all intervals hold.

        above      inside where lower >= upper(tau) - epsilon        outside where upper <= lower(tau) + epsilon
        top        all at once, where the lowest lower bound of the m highest means is at least the highest upper bound
                   of the others - epsilon
        all-good   inside where lower >= (highest upper bound of the others) - epsilon - slack
                   outside where upper < highest lower bound - epsilon

    tau is the threshold plus `by`, or the interval of the control plus `by`.
    """
    asked, lower, upper = problem.question, bounds.lower, bounds.upper
    nobody = np.zeros(problem.num_arms, bool)
    if isinstance(asked, Above):
        return _compared(problem, asked, bounds)
    if isinstance(asked, TopM):
        top = top_of(bounds.means, asked.m)
        done = bool(np.min(lower[top]) >= np.max(upper[~top]) - problem.epsilon)
        return (top, ~top) if done else (nobody, nobody)
    slack = problem.epsilon if not isinstance(asked, AllGood) or asked.slack is None else asked.slack
    inside = lower >= highest_of_others(upper) - problem.epsilon - slack
    return inside, (upper < np.max(lower) - problem.epsilon) & ~inside


def _compared(problem: Problem, asked: Above, bounds: Bounds) -> tuple[BoolArray, BoolArray]:
    control = control_of(problem)
    if control is None:
        low = high = float(asked.threshold or 0.0)
    else:
        low, high = float(bounds.lower[control]), float(bounds.upper[control])
    inside = bounds.lower >= high + asked.by - problem.epsilon
    outside = (bounds.upper <= low + asked.by + problem.epsilon) & ~inside
    if control is not None:
        inside[control] = outside[control] = False
    return inside, outside


def top_of(means: FloatArray, m: int) -> BoolArray:
    """The m highest, of equals the first, shape (K,)."""
    found = np.zeros(len(means), bool)
    found[np.argsort(-means, kind="stable")[:m]] = True
    return found


def highest_of_others(values: FloatArray) -> FloatArray:
    """For each arm the highest value of the other arms, shape (K,); -infinity where there is no other."""
    found, best = np.full(len(values), np.max(values)), int(np.argmax(values))
    found[best] = np.max(np.delete(values, best), initial=-np.inf)
    return found


def listed_after(
    problem: Problem, state: ListingState, plan: Plan, seen: Observations, bounds: Bounds
) -> Step[ListingState]:
    """The step to the lists that the bounds add; who is on a list stays there."""
    pooled = state.seen.plus(seen)
    up, down = listed_arms(problem, bounds)
    inside = state.inside | (up & ~state.outside)
    outside = state.outside | (down & ~inside)
    left = np.flatnonzero(inquiry_of(problem).asked(problem) & ~inside & ~outside)
    measured = pooled.counts > 0
    leader = int(np.argmax(np.where(measured, pooled.means, -np.inf))) if measured.any() else state.leader
    finished = "" if len(left) else "certified"
    after = ListingState(state.round + 1, pooled, inside, outside, left, leader, finished)
    return Step(after, trace_row(plan, after, pulls=seen.total, gap=None))


def claim_of(state: ListingState, spent: float) -> Claim:
    """What the lists entitle to say."""
    lists = (np.flatnonzero(state.inside), np.flatnonzero(state.outside))
    return Claim(state.leader, state.finished, state.pulls, spent=spent, lists=lists)


def spent_by(problem: Problem, boundary: str) -> float:
    """What the intervals of `bounds_of` can spend."""
    return problem.delta * (math.pi**2 / 12.0 if boundary == "union" else 1.0)


def opening_pulls(state: ListingState) -> Plan | None:
    """One pull of each arm that has none; None where all have some."""
    never = state.seen.counts == 0
    return Plan(round=state.round, counts=never.astype(np.int64)) if never.any() else None


def shared_growth(state: ListingState, arms: list[int], growth: float) -> Plan:
    """The same number of pulls for these arms: a share of what the least pulled of them has, at least 1."""
    counts = np.zeros(len(state.seen.counts), np.int64)
    counts[arms] = max(1, math.ceil(growth * int(state.seen.counts[arms].min())))
    return Plan(round=state.round, counts=counts)


# --- Uniform sampling for questions whose answer is lists: the valid baseline.

PULLED = ("all", "undecided")


class ListsPeer:
    """What peers whose answer is lists have in common."""

    __slots__ = ()
    problem: Problem
    boundary: str
    accuracy: float | None

    def init(self) -> ListingState:
        return initial_lists(self.problem)

    def tell(self, state: ListingState, plan: Plan, seen: Observations) -> Step[ListingState]:
        return listed_after(self.problem, state, plan, seen, self._bounds(state.seen.plus(seen)))

    def claim(self, state: ListingState) -> Claim:
        return claim_of(state, spent_by(self.problem, self.boundary))

    def _bounds(self, seen: Observations) -> Bounds:
        return bounds_of(self.problem, seen, self.boundary, self.accuracy)


@record
class UniformLists(ListsPeer):
    """Pull every arm equally often, until intervals that hold for all arms at all times put every arm on a list.

    The lists are those of `listed`; with errors="discovery" no arm at all is on a wrong list, except with probability
    delta, which is more than is asked.

    Args:
        problem: what is asked, any question but the best arm. One scale per arm is used as such.
        growth: a round adds ceil(growth * n) pulls, at least 1, to each arm with n pulls; at most 1000.
        pulled: "all", or "undecided": only arms on which a list still depends, as action elimination does for the best
            arm. These are the arms on no list, the control, of `AllGood` the arms that set the two thresholds, and of
            `TopM` the arms of some pair across the cut whose intervals do not settle it.
        boundary: which intervals: "union" or "mixture", as of `ActionElimination`.
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: epsilon beside a
            threshold, else half of it.

    Raises:
        InvalidInput: a setting has no meaning, or the question is which arm is the best.

    Source: ours, the baseline of all papers on these questions.
    Cost: O(K log K) a round.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth)
    pulled: str = option("all", one_of(*PULLED))
    boundary: str = option("mixture", one_of(*BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_question("uniform-lists", self.problem, Above, TopM, AllGood)

    def ask(self, state: ListingState) -> Plan:
        if (first := opening_pulls(state)) is not None:
            return first
        more = np.maximum(1, np.ceil(self.growth * state.seen.counts)).astype(np.int64)
        counts = more if self.pulled == "all" else np.where(self._open(state), more, 0)
        return Plan(round=state.round, counts=counts)

    def _open(self, state: ListingState) -> BoolArray:
        """The arms on which a list still depends, shape (K,)."""
        bounds, asked = self._bounds(state.seen), self.problem.question
        if isinstance(asked, TopM):
            top = top_of(bounds.means, asked.m)
            cut = np.max(bounds.upper[~top]) - self.problem.epsilon, np.min(bounds.lower[top]) + self.problem.epsilon
            return np.where(top, bounds.lower < cut[0], bounds.upper > cut[1])
        found = np.zeros(self.problem.num_arms, bool)
        found[state.active] = True
        needed = [np.argmax(bounds.upper), np.argmax(bounds.lower)] if isinstance(asked, AllGood) else []
        control = control_of(self.problem)
        found[needed if control is None else control] = True
        return found


# --- (ST)^2 (Mason et al. 2020): all arms within epsilon of the best; sample the threshold, split by the threshold.


@record
class ST2(ListsPeer):
    """Pull the arm of highest upper bound, the doubtful arm that looks good and the doubtful arm that looks bad.

        G = the arms whose mean is at least the highest mean - epsilon;   doubtful: on no list (`listed`)
        i1 = argmin over doubtful arms of G of the lower bound,   i2 = argmax over doubtful arms outside G of the upper
        bound,   i3 = argmax of the upper bound;   stop when nobody is doubtful

    The lists are right whatever was pulled, since all intervals hold at all times, except with probability delta.

    Args:
        problem: what is asked, question `AllGood`, whose slack is the paper's gamma. One scale per arm is used as such.
        growth: the three arms get ceil(growth * u) pulls, at least 1, where u counts the pulls of the one that has
            fewest; 0 pulls one of each, as in the paper. At most 1000.
        boundary: which intervals: "union" or "mixture", as of `ActionElimination`.
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: half of epsilon.

    Raises:
        InvalidInput: a setting has no meaning, or the question is another one.

    Source: Mason, Jain, Tripathy & Nowak (2020), Algorithm (ST)^2, additive.
    Differs from its source: batches; sigma; intervals of `bounds_of`, where the paper has an iterated logarithm without
    its constants; an arm's lower bound is compared with the upper bounds of the others, not with its own.
    Cost: O(K) a batch.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    boundary: str = option("mixture", one_of(*BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_question("st2", self.problem, AllGood)

    def ask(self, state: ListingState) -> Plan:
        if (first := opening_pulls(state)) is not None:
            return first
        bounds = self._bounds(state.seen)
        doubtful = ~state.inside & ~state.outside
        good = bounds.means >= np.max(bounds.means) - self.problem.epsilon
        arms = [int(np.argmax(bounds.upper))]
        if np.any(doubtful & good):
            arms.append(int(np.argmin(np.where(doubtful & good, bounds.lower, np.inf))))
        if np.any(doubtful & ~good):
            arms.append(int(np.argmax(np.where(doubtful & ~good, bounds.upper, -np.inf))))
        return shared_growth(state, arms, self.growth)
