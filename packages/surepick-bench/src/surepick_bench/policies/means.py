"""Action elimination (Even-Dar et al. 2006; Jamieson & Nowak 2014): no features, one confidence interval per arm."""

import math
from dataclasses import field
from typing import ClassVar, cast

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Deciding, Intervals, Plan, Step
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.errors import InvalidInput
from surepick.estimators import anytime_radius
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, compared_with, trace_row
from surepick.policies.options import check_options, one_of, option
from surepick.policies.sequential.engine import Memo
from surepick.questions import Above, TopM
from surepick_bench.policies import lists
from surepick_bench.policies.widths import mixture_radius

ELIMINATION_BOUNDARIES = ("union", "mixture")


@frozen
class MeansState:
    """Where action elimination stands."""

    round: int  # the next batch, from 1
    active: IntArray  # indices of the arms not ruled out
    seen: Observations  # everything told so far
    leader: int  # the active arm of highest mean
    gap: float | None  # the leader is at most this much worse than the best arm; None if nothing can be said
    finished: str  # why it stopped: "" while it runs, "certified", "single" or "given"

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total


@record
class Judgement:
    """What one look says."""

    leader: int  # the arm that would be recommended
    gap: float  # the leader is at most this much worse than the best arm; infinite: nothing can be said
    active: IntArray  # the leader and the rivals that stay in question, ascending
    finished: str  # "certified" or "single" if that ends it, else ""
    deciding: Deciding | None = field(default=None, compare=False)  # gives the intervals that decided

    @property
    def certified_gap(self) -> float | None:
        """The gap; None if nothing can be said."""
        return self.gap if math.isfinite(self.gap) else None


@record
class ActionElimination:
    """Pull every active arm equally often; drop an arm when the leader's interval lies above its own.

        c_i = sigma_i sqrt(2 log(4 K n_i^2 / delta) / n_i)
        x goes when mean(leader) - c(leader) > mean(x) + c(x)
        stop when one arm is left, or max over x != leader of mean(x) + c(x) - (mean(leader) - c(leader)) <= epsilon

    That is boundary="union"; "mixture" has the narrower intervals of a modern confidence sequence (`mixture_radius`).
    Both hold for every arm and every number of pulls at once, so it may be judged after any
    pull; batches that grow by a share of what an arm has make it cheap. With probability at least 1 - delta the answer
    is epsilon-best.

    Args:
        problem: what is asked. One scale per arm is used as such, the gap bound only to answer at once when it is at
            most epsilon.
        growth: a batch adds ceil(growth * n) pulls, at least 1, to each active arm with n pulls; at most 1000.
        boundary: which intervals: "union", as published, or "mixture", tuned to widths of epsilon / 2.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Even-Dar, Mannor & Mansour (2006); constants as in Jamieson & Nowak (2014). The mixture: Robbins (1970),
    Howard et al. (2021).
    Differs from its sources: the epsilon-stop compares intervals; it comes no later than 2 c <= epsilon would.
    Cost: O(K) a batch.
    """

    traits: ClassVar[Traits] = Traits(eliminates=True)

    problem: Problem
    growth: float = option(0.02, options.growth)
    boundary: str = option("union", one_of(*ELIMINATION_BOUNDARIES))
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)

    def init(self) -> MeansState:
        return initial_means(self.problem)

    def ask(self, state: MeansState) -> Plan:
        counts = np.zeros(self.problem.num_arms, np.int64)
        counts[state.active] = np.maximum(1, np.ceil(self.growth * state.seen.counts[state.active]))
        return Plan(round=state.round, counts=counts)

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled, active = state.seen.plus(seen), state.active
        radius = self._radius(pooled.counts)
        upper, lower = pooled.means + radius, pooled.means - radius
        leader = int(active[np.argmax(np.where(pooled.counts[active] > 0, pooled.means[active], -np.inf))])
        survivors = active[(upper[active] >= lower[leader]) | (active == leader)]
        others, rivals = survivors[survivors != leader], active[active != leader]
        gap = max(0.0, float(np.max(upper[others] - lower[leader]))) if len(others) else 0.0
        finished = "single" if len(others) == 0 else "certified" if gap <= self.problem.epsilon else ""
        allowed = np.where(np.isin(rivals, survivors), self.problem.epsilon, 0.0)
        deciding = compared_with(leader, rivals, pooled.means, radius[leader] + radius, allowed)
        return judged(state, plan, seen, pooled, Judgement(leader, gap, survivors, finished, deciding))

    def claim(self, state: MeansState) -> Claim:
        spent = self.problem.delta * (math.pi**2 / 12.0 if self.boundary == "union" else 1.0)
        return Claim(state.leader, state.finished, state.seen.total, state.gap, spent)

    def _radius(self, counts: IntArray) -> FloatArray:
        sigma, delta, num_arms = self.problem.scales, self.problem.delta, self.problem.num_arms
        if self.boundary == "union":
            return anytime_radius(counts, sigma, delta=delta, num_arms=num_arms)
        return mixture_radius(counts, sigma, delta=delta, num_arms=num_arms, accuracy=0.5 * self.problem.epsilon)


def initial_means(problem: Problem) -> MeansState:
    """All arms active; finished at once where the answer needs no pull."""
    finished, gap = problem.answer_without_pulls()
    return MeansState(1, np.arange(problem.num_arms), Observations.nothing(problem.num_arms), 0, gap, finished)


def judged(
    state: MeansState, plan: Plan, seen: Observations, pooled: Observations, found: Judgement
) -> Step[MeansState]:
    """The step from a state to what a look at the results of a plan says, pooled with all before them."""
    gap = found.certified_gap
    after = MeansState(state.round + 1, found.active, pooled, found.leader, gap, found.finished)
    return Step(after, trace_row(plan, after, pulls=seen.total, gap=gap), found.deciding)


# --- LUCB1 (Kalyanakrishnan et al. 2012): pull the leader and the rival whose upper bound is highest, until they part.

K1 = 5.0 / 4.0
ZETA_3 = 1.2020569031595942  # sum of 1/t^3


@record
class LUCB:
    """Pull the arm of highest mean and its strongest rival; stop when the rival cannot be better by epsilon.

        beta(u, t) = sigma sqrt(2 log(K1 K t^4 / delta) / u),   K1 = 5/4        u: pulls of the arm
        h = argmax of the mean,   l = argmax over x != h of mean(x) + beta(x)
        stop when mean(l) + beta(l) - (mean(h) - beta(h)) < epsilon

    In the paper rewards lie in [0, 1] (sigma = 1/2) and t counts rounds of two pulls. Here t is half of all pulls, or
    the pulls of the most pulled arm if these are more, so that u <= t for every arm at every look. Why that is enough:
    the event "the mean of the first u pulls of an arm is off by beta(u, t) on the side that harms" has probability at
    most delta / (K1 K t^4), so some arm, some t >= 1 and some u <= t has it with probability at most

        sum_t t delta / (K1 t^4) = zeta(3) delta / K1 = 0.962 delta.

    Whenever somebody looks, the pair (u, t) of an arm is one of these, whatever the batches were. Outside the event a
    best arm b != h has mean(b) + beta(b) > h_b and the leader mean(h) - beta(h) < h_h, so the stop gives
    h_b - h_h < epsilon. Only one side of each arm harms: the upper one of b, the lower one of all others.

    Args:
        problem: what is asked. One scale per arm is used as such, the gap bound only to answer at once when it is at
            most epsilon.
        growth: both arms get ceil(growth * u) pulls, at least 1, where u counts the pulls of the one that has fewer; 0
            pulls one of each, as in the paper. Were the leader's batch a share of its own pulls, it would grow without
            end beside rivals that have few. At most 1000.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Kalyanakrishnan, Tewari, Auer & Stone (2012), Algorithm LUCB1 for one arm (m = 1).
    Differs from its source: batches; sigma; t is at least half of all pulls, which exceeds the number of rounds by K/2.
    Cost: O(K) a batch.
    """

    traits: ClassVar[Traits] = Traits()

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    _cache: Memo = field(default_factory=Memo, init=False, compare=False, repr=False, kw_only=True)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)

    def init(self) -> MeansState:
        return initial_means(self.problem)

    def ask(self, state: MeansState) -> Plan:
        pulls = state.seen.counts
        counts = np.zeros(self.problem.num_arms, np.int64)
        if pulls.min() == 0:
            counts[pulls == 0] = 1
        else:
            pair = [state.leader, self._rival(state.seen, state.leader)]
            counts[pair] = max(1, math.ceil(self.growth * int(pulls[pair].min())))
        return Plan(round=state.round, counts=counts)

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled = state.seen.plus(seen)
        means, measured, everybody = pooled.means, pooled.counts > 0, np.arange(self.problem.num_arms)
        leader = int(np.argmax(np.where(measured, means, -np.inf))) if measured.any() else state.leader
        radius = self._radius(pooled.counts)
        ahead = means + radius - (means[leader] - radius[leader])  # how much better each could be
        ahead[leader] = -np.inf
        gap, epsilon = max(0.0, float(ahead.max())), self.problem.epsilon
        active = np.flatnonzero((ahead >= epsilon) | (everybody == leader))

        def deciding(before: Intervals | None) -> Intervals:
            rivals = everybody[everybody != leader]
            return compared_with(leader, rivals, means, radius[leader] + radius, epsilon)(before)

        found = Judgement(leader, gap, active, "certified" if gap < epsilon else "", deciding)
        return judged(state, plan, seen, pooled, found)

    def claim(self, state: MeansState) -> Claim:
        return Claim(state.leader, state.finished, state.seen.total, state.gap, self.problem.delta * ZETA_3 / K1)

    def _radius(self, counts: IntArray) -> FloatArray:
        """beta(u, t) of each arm, shape (K,); infinite for an arm that was never pulled. A plan asks for those of the
        results before it."""

        def form() -> FloatArray:
            return lucb_radius(counts, self.problem.scales, delta=self.problem.delta)

        return self._cache.of("radius", counts, None, form)

    def _rival(self, seen: Observations, leader: int) -> int:
        upper = seen.means + self._radius(seen.counts)
        upper[leader] = -np.inf
        return int(np.argmax(upper))


def lucb_radius(counts: IntArray, sigma: FloatArray, *, delta: float) -> FloatArray:
    """sigma sqrt(2 log(K1 K t^4 / delta) / u), t = max(half of all pulls, largest u), infinite at u = 0, shape (K,).
    Source: the exploration rate of LUCB1, Kalyanakrishnan et al. (2012)."""
    t = max(1.0, math.ceil(int(counts.sum()) / 2), float(counts.max()))
    log_term = math.log(K1 * len(counts) / delta) + 4.0 * math.log(t)
    radius = sigma * np.sqrt(2.0 * log_term / np.maximum(counts, 1))
    return np.where(counts > 0, radius, np.inf)


# --- LUCB for the m best (Kalyanakrishnan et al. 2012): pull the two arms at the cut that are most in doubt.

TOP_BOUNDARIES = ("published", "mixture")


@record
class LUCBTop(lists.ListsPeer):
    """Pull the arm of the guess whose lower bound is lowest and the other arm whose upper bound is highest.

        J = the m highest means,   h = argmin over J of mean(x) - beta(x),   l = argmax outside J of mean(x) + beta(x)
        stop when mean(l) + beta(l) - (mean(h) - beta(h)) <= epsilon;   J is the answer

    beta is that of LUCB1, sigma sqrt(2 log(5 K t^4 / (4 delta)) / u), and so is what it spends, .962 delta. A wrong J
    has an arm a that is worse than the m-th best by more than epsilon, so it misses one of the m best, b. The stop
    gives h_b <= h_a + epsilon unless the upper bound of b or the lower bound of a fails. The arms b are among the m
    best and the arms a are not, so only one side of each arm harms.

    Args:
        problem: what is asked, question `TopM`. One scale per arm is used as such.
        growth: both arms get ceil(growth * u) pulls, at least 1, where u counts the pulls of the one that has fewer; 0
            pulls one of each, as in the paper. At most 1000.
        boundary: which intervals: "published", or "mixture", the narrower ones of a modern confidence sequence
            (`mixture_radius`).
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: half of epsilon.

    Raises:
        InvalidInput: a setting has no meaning, or the question is another one.

    Source: Kalyanakrishnan, Tewari, Auer & Stone (2012), Algorithm LUCB1.
    Differs from its source: batches, sigma and t as in `LUCB`.
    Cost: O(K log K) a batch.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    boundary: str = option("published", one_of(*TOP_BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        lists.check_question("lucb-top", self.problem, TopM)

    def ask(self, state: lists.ListingState) -> Plan:
        if (first := lists.opening_pulls(state)) is not None:
            return first
        bounds = self._bounds(state.seen)
        top = lists.top_of(bounds.means, cast(TopM, self.problem.question).m)
        lowest = int(np.argmin(np.where(top, bounds.lower, np.inf)))
        highest = int(np.argmax(np.where(top, -np.inf, bounds.upper)))
        return lists.shared_growth(state, [lowest, highest], self.growth)

    def claim(self, state: lists.ListingState) -> Claim:
        spent = ZETA_3 / K1 if self.boundary == "published" else 1.0
        return lists.claim_of(state, spent * self.problem.delta)

    def _bounds(self, seen: Observations) -> lists.Bounds:
        if self.boundary == "mixture":
            return lists.bounds_of(self.problem, seen, self.boundary, self.accuracy)
        return lists.Bounds(seen.means, lucb_radius(seen.counts, self.problem.scales, delta=self.problem.delta))


# --- APT (Locatelli et al. 2016): which arms are above a threshold? Pull those that are nearest to it.


@record
class APT(lists.ListsPeer):
    """Pull the arm of smallest index; an arm that is on a list is not pulled again.

        index(x) = sqrt(n_x) (|mean(x) - tau| + epsilon) / sigma_x,   tau = threshold + by

    The original has a fixed budget and certifies nothing: it spends its pulls, and then says of each arm on which side
    of tau its mean is. Here its sampling rule goes on until intervals that hold for all arms at all times put every arm
    on a list (`listed`), so the answer is wrong with probability at most delta, whatever the rule was. It is so for
    errors="discovery" too, where this is more than is asked.

    Args:
        problem: what is asked, question `Above` with a threshold. One scale per arm is used as such.
        growth: a batch has ceil(growth * n) pulls, at least 1, where n counts all pulls. They are dealt as single pulls
            would be if no mean changed; 0 pulls one arm once, as in the paper. At most 1000.
        boundary: which intervals: "union" or "mixture", as of `ActionElimination`.
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: epsilon.

    Raises:
        InvalidInput: a setting has no meaning, or the question is another one, or has a control: a mean that is
            measured is no threshold.

    Source: Locatelli, Gutzeit & Carpentier (2016), Algorithm APT.
    Differs from its source: the stop; batches; sigma; arms on a list are left out.
    Cost: O(K log K) a batch.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    boundary: str = option("mixture", one_of(*lists.BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        lists.check_question("apt", self.problem, Above)
        if self._asked.threshold is None:
            raise InvalidInput(
                "apt compares with a threshold that is known, and the question has a control, whose mean is measured. "
                "Take certified-independent or uniform-lists, or give threshold."
            )

    def ask(self, state: lists.ListingState) -> Plan:
        if (first := lists.opening_pulls(state)) is not None:
            return first
        tau = float(self._asked.threshold or 0.0) + self._asked.by
        gaps = (np.abs(state.seen.means - tau) + self.problem.epsilon) / self.problem.scales
        total = max(1, math.ceil(self.growth * state.pulls))
        counts = np.zeros(self.problem.num_arms, np.int64)
        counts[state.active] = dealt(state.seen.counts[state.active], gaps[state.active], total)
        return Plan(round=state.round, counts=counts)

    @property
    def _asked(self) -> Above:
        return cast(Above, self.problem.question)


def dealt(counts: IntArray, gaps: FloatArray, total: int) -> IntArray:
    """Pulls that single pulls of the arm of smallest sqrt(n) gap would give each arm, shape (m,); their sum is `total`.
    The j-th pull of an arm is made when its index is sqrt(n + j - 1) gap; the `total` smallest of these are made."""
    low, high = 0.0, float(np.min((counts + total) * gaps**2))  # squared indices; at the second all go to one arm
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.sum(_up_to(counts, gaps, middle)) < total:
            low = middle
        else:
            high = middle
    found = _up_to(counts, gaps, low)
    order = np.argsort((counts + found) * gaps**2, kind="stable")
    left = total - int(found.sum())
    return found + np.bincount(np.resize(order, left) if left else order[:0], minlength=len(counts)).astype(np.int64)


def _up_to(counts: IntArray, gaps: FloatArray, level: float) -> IntArray:
    """Pulls of each arm that are made at a squared index of at most `level`."""
    pulls: IntArray = np.floor(level / gaps**2).astype(np.int64) + 1 - counts
    return np.maximum(pulls, 0)
