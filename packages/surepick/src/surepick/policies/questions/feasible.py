"""The best arm of those that keep some bounds."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.core.arms import Arms, KnownIds
from surepick.core.certificate import named
from surepick.core.observations import Observations
from surepick.core.plans import CandidateBounds, Intervals, Plan, Step
from surepick.core.random_streams import WHO_CHOSE, stream
from surepick.core.records import BoolArray, FloatArray, IntArray, freeze, record
from surepick.errors import InvalidInput
from surepick.policies import tuning
from surepick.policies.base import Claim, Policy, Problem, Spec, Traits, delta_for_test
from surepick.policies.certified.sampling_rule import efforts
from surepick.policies.questions import inquiries as asking
from surepick.policies.questions import outlook
from surepick.policies.sequential.posterior import NUMBER, Posterior
from surepick.policies.sequential.state import EProcesses
from surepick.questions import Above, AllGood, BestFeasible, Constraint, OneOf, OwnQuestion, TopM
from surepick.text import did_you_mean, quoted

HEURISTIC_FRESH_CANDIDATES = 3  # candidates that a batch begins to test beside the one that looks best
HEURISTIC_CANDIDATES = 30  # that are tested at most, so long as the one that looks best is among them
SURE = math.inf  # log evidence of a fact


@record
class BestOfFeasible(asking.OfAll):
    """Which arm is the best of those that keep all bounds.

        named, c     for each bound: evidence against "c is beyond it by more than the tolerance"; all others are out
        out, j       evidence against "j keeps this bound", for one of the bounds, or against "h_j - h_c > epsilon"
        none         each arm is out for one of the bounds

    Source: ours (docs/questions.md, lines 16 to 18).
    """

    num_arms: int  # K
    constraints: tuple[Constraint, ...]  # the bounds
    epsilon: float  # in reward units
    delta: float  # what may be spent

    @property
    def kept(self) -> float:
        """log(2 K / delta): what shows that an arm keeps a bound but for its tolerance; any arm may be the answer.

        Half of delta, unless no bound has noise, so that nothing of this kind can be wrong.
        """
        return asking.bet_threshold(2 * self.num_arms, self.delta)

    @property
    def out(self) -> float:
        """log(2 (1 + r) / delta): what shows that an arm does not keep a bound; only the best feasible arm matters.

        r: bounds with noise; where there are none, log(1 / delta).
        """
        noisy = sum(one.noise is not None for one in self.constraints)
        return asking.bet_threshold(2 * (1 + noisy) if noisy else 1, self.delta)

    def worse(self, place: int) -> float:
        """log(2 (1 + r) k (k + 1) / delta): the same, that an arm is no better than the k-th candidate, k = place + 1.

        The weights 1 / (k (k + 1)) of the candidates, in the order in which their tests began, sum to 1.
        """
        return self.out + math.log((place + 1) * (place + 2))

    def bets(self, view: asking.View) -> tuple[outlook.Bet, ...]:
        made, out = [], self._breaks(view)
        opened = _candidates(view)
        for place, arm in enumerate(dict.fromkeys([*opened, *self._fresh(view, opened)])):
            lacks = self.worse(place) - view.processes(_named(arm)).peaks
            arms = (lacks > 0.0) & ~out
            arms[arm] = False
            made.append(outlook.Bet(_named(arm), arm, self.epsilon, False, arms, np.maximum(lacks, 0.0), bold=True))
        for place, one in enumerate(self.constraints, 1):
            if one.noise is None:
                continue
            for name, margin, high, threshold in (
                ("breaks", 0.0, one.at_most, self.out),
                ("keeps", one.tolerance, not one.at_most, self.kept),
            ):
                lacks = threshold - view.processes(f"{name} {place}").peaks
                arms = (lacks > 0.0) & ~out
                needs = np.maximum(lacks, 0.0)
                made.append(
                    outlook.Bet(f"{name} {place}", NUMBER, margin, high, arms, needs, bold=True, quantity=place)
                )
        return tuple(made)

    def aims(self, view: asking.View) -> outlook.Aims:
        candidate, out = self.named(view), self._breaks(view)
        alone, pairs = np.zeros(self.num_arms), np.empty(0, np.int64)
        left = ~out
        leads = lacks = np.empty(0)
        breaking = self._pulls_to_break(view)
        if candidate is not None:
            left[candidate] = False
            alone[candidate] = self._pulls_to_keep(view, candidate)
            place, peaks = self._place(view, candidate), view.processes(_named(candidate)).peaks
            needs = self.worse(place) - peaks
            left &= needs > 0.0
            rivals = np.flatnonzero(left)
            by_reward = view.posterior.cautious(candidate, self.epsilon, rivals)
            pulls = (view.scales[rivals] * efforts(-needs[rivals], 0.0) / by_reward) ** 2
            cheaper = pulls <= breaking[rivals]
            pairs, leads, lacks = rivals[cheaper], by_reward[cheaper], needs[rivals[cheaper]]
            left[pairs] = False
        alone[left] = breaking[left]
        if not len(pairs) and not alone.any():
            alone[:] = 1.0
        seconds = np.full(len(pairs), NUMBER if candidate is None else candidate)
        return outlook.Aims(pairs, seconds, leads, lacks, alone)

    def decided(self, view: asking.View) -> outlook.Lists:
        out = self._breaks(view)
        inside = np.zeros(self.num_arms, bool)
        if out.all():
            return outlook.Lists(inside, ~inside)
        keeps, answers = self._keeps(view) & ~out, []
        for place, arm in enumerate(_candidates(view)):
            beaten = out | (view.processes(_named(arm)).rejected(self.worse(place)))
            beaten[arm] = True
            if keeps[arm] and beaten.all():
                answers.append(arm)
        if not answers:
            return view.lists
        inside[max(answers, key=lambda arm: view.posterior.scores[arm])] = True
        return outlook.Lists(inside, ~inside)

    def named(self, view: asking.View) -> int | None:
        """The arm that looks like the answer; None where no arm seems to keep all bounds."""
        fits = self._fits(view)
        return int(np.argmax(np.where(fits, view.posterior.scores, -np.inf))) if fits.any() else None

    def _fits(self, view: asking.View) -> BoolArray:
        """The arms that seem to keep all bounds but for half of the tolerance, shape (K,)."""
        fits = ~self._breaks(view)
        for one in view.standings:
            fits &= (one.room >= -0.5 * one.tolerance) | ~one.known
        return fits

    def _fresh(self, view: asking.View, opened: tuple[int, ...]) -> list[int]:
        """Candidates whose test begins with this batch."""
        candidate = self.named(view)
        if candidate is None:
            return []
        leads, errors = view.posterior.leads(candidate), view.posterior.errors(candidate)
        near = np.flatnonzero(self._fits(view) & (leads <= tuning.HEURISTIC_DOUBT * errors))
        likely = near[np.argsort(leads[near], kind="stable")].tolist()
        found = [arm for arm in [candidate, *likely] if arm not in opened]
        if len(opened) >= HEURISTIC_CANDIDATES:
            found = [arm for arm in found if arm == candidate]
        return list(dict.fromkeys(found))[: 1 + HEURISTIC_FRESH_CANDIDATES]

    def _place(self, view: asking.View, candidate: int) -> int:
        """The place that the candidate has, or will have, in the order of candidates."""
        opened = _candidates(view)
        return opened.index(candidate) if candidate in opened else len(opened)

    def _breaks(self, view: asking.View) -> BoolArray:
        """The arms that are shown not to keep some bound, shape (K,)."""
        found = np.zeros(self.num_arms, bool)
        for place, one in enumerate(view.standings, 1):
            found |= (
                (one.known & (one.room < 0.0)) if one.exact else view.processes(f"breaks {place}").rejected(self.out)
            )
        return found

    def _keeps(self, view: asking.View) -> BoolArray:
        """The arms that are shown to keep all bounds but for the tolerances, shape (K,)."""
        found = np.ones(self.num_arms, bool)
        for place, one in enumerate(view.standings, 1):
            sure = one.known & (one.room >= -one.tolerance)
            found &= sure if one.exact else view.processes(f"keeps {place}").rejected(self.kept)
        return found

    def _pulls_to_break(self, view: asking.View) -> FloatArray:
        """Pulls after which each arm would be shown not to keep some bound, at best, shape (K,)."""
        best = np.full(self.num_arms, np.inf)
        for place, one in enumerate(view.standings, 1):
            if one.exact:
                pulls = np.where(one.known, np.inf, 1.0)
            else:
                pulls = _pulls(-one.room, self.out - view.processes(f"breaks {place}").peaks, one)
            best = np.minimum(best, pulls)
        return best

    def _pulls_to_keep(self, view: asking.View, arm: int) -> float:
        """Pulls after which the arm would be shown to keep all bounds but for the tolerances."""
        most = 0.0
        for place, one in enumerate(view.standings, 1):
            if one.exact:
                most = max(most, 0.0 if one.known[arm] else 1.0)
                continue
            lacks = self.kept - view.processes(f"keeps {place}").peaks
            if lacks[arm] > 0.0:
                most = max(most, float(_pulls(one.tolerance + one.room, lacks, one)[arm]))
        return most


def _pulls(leads: FloatArray, lacks: FloatArray, standing: asking.ConstraintEstimate) -> FloatArray:
    """Pulls of each arm until its evidence is enough; leads are lowered by part of their errors; shape (K,)."""
    errors = np.where(np.isfinite(standing.errors), standing.errors, 0.0)
    careful = np.maximum(leads - tuning.HEURISTIC_CAUTION * errors, tuning.HEURISTIC_LEAST_MARGIN * standing.tolerance)
    return np.asarray((standing.scales * efforts(-lacks, 0.0) / careful) ** 2)


def _named(arm: int) -> str:
    """The processes of what is shown to be no better than a candidate."""
    return f"than {arm}"


def _candidates(view: asking.View) -> tuple[int, ...]:
    """Those that are tested, in the order in which their tests began."""
    return tuple(int(one.name.removeprefix("than ")) for one in view.evidence if one.name.startswith("than "))


# --- A question of each segment of the arms by itself: they share delta, the measurements and what features say.


@record
class OfSegments(asking.OfAll):
    """Every segment is asked by itself, with its share of delta.

    The processes of a segment compare its own arms. Arms of different segments that have the same place in theirs share
    a name: the entries of a segment's arms are that segment's processes.

    Source: docs/questions.md, line 14.
    """

    places: IntArray  # the segment of each arm, 0 .. G-1, (K,).
    # the question of each segment, of arms that are numbered within it; None: all of its arms are on the first list,
    # whatever their means
    inquiries: tuple[asking.Inquiry | None, ...]

    def __post_init__(self) -> None:
        freeze(self, places=np.int64)

    @property
    def asked(self) -> BoolArray:
        return np.ones(len(self.places), bool)

    def bets(self, view: asking.View) -> tuple[outlook.Bet, ...]:
        made = []
        for arms, asked, inner in self._open(view):
            for bet in asked.bets(inner):
                centre = bet.centre if bet.centre == NUMBER else int(arms[bet.centre])
                among, needs = self._spread(arms, bet.arms), self._spread(arms, bet.needs)
                made.append(replace(bet, centre=centre, arms=among.astype(bool), needs=needs))
        return tuple(made)

    def aims(self, view: asking.View) -> outlook.Aims:
        parts = []
        for arms, asked, inner in self._open(view):
            found = asked.aims(inner)
            parts.append((arms[found.first], arms[found.second], found.leads, found.needs))
        return outlook.Aims(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def decided(self, view: asking.View) -> outlook.Lists:
        inside, outside = view.lists.inside.copy(), view.lists.outside.copy()
        for arms, asked in zip(self._members(), self.inquiries, strict=True):
            if asked is None:
                inside[arms] = True
        for arms, asked, inner in self._open(view):
            found = asked.decided(inner)
            inside[arms], outside[arms] = found.inside, found.outside
        return outlook.Lists(inside, outside)

    def _open(self, view: asking.View) -> list[tuple[IntArray, asking.Inquiry, asking.View]]:
        """(the arms, the question, what it sees) of each segment in which somebody is undecided."""
        decided, found = view.lists.decided, []
        for arms, asked in zip(self._members(), self.inquiries, strict=True):
            if asked is not None and not decided[arms].all():
                found.append((arms, asked, _within(view, arms)))
        return found

    def _members(self) -> list[IntArray]:
        """The arms of each segment, ascending."""
        order = np.argsort(self.places, kind="stable")
        ends = np.cumsum(np.bincount(self.places, minlength=len(self.inquiries)))
        return np.split(order, ends[:-1])

    def _spread(self, arms: IntArray, values: FloatArray | BoolArray) -> FloatArray:
        whole = np.zeros(len(self.places))
        whole[arms] = values
        return whole


def _within(view: asking.View, arms: IntArray) -> asking.View:
    """What the question of these arms sees; of what was collected, that of theirs."""
    lists = outlook.Lists(view.lists.inside[arms], view.lists.outside[arms])
    evidence = tuple(
        EProcesses(one.name, one.values[arms], one.peaks[arms])
        for one in view.evidence
        if np.any(one.values[arms]) or np.any(one.peaks[arms])
    )
    errors = view.posterior.errors

    def inner(centre: int) -> FloatArray:
        return np.asarray(errors(centre if centre == NUMBER else int(arms[centre]))[arms])

    return asking.View(evidence, lists, Posterior(view.posterior.scores[arms], inner, view.posterior.number))


def of_segments(
    segments: Sequence[str], nulls: Callable[[int], int], asked: Callable[[int, float], asking.Inquiry]
) -> OfSegments:
    """A question of each segment, with shares of delta in proportion to its nulls: one threshold for all processes."""
    _, places = np.unique(np.array(segments), return_inverse=True)
    sizes = np.bincount(places).tolist()
    counts = [nulls(size) for size in sizes]
    total = sum(counts)
    inquiries = [asked(size, count / total) if count else None for size, count in zip(sizes, counts, strict=True)]
    return OfSegments(places, tuple(inquiries))


# --- One of the best share of a list: a random sample of it is all that has to be compared.

SAMPLED = (
    "The {number:,} candidates that are compared were drawn at random (seed {seed}, {by}) from the list of {total:,} "
    "before the first measurement, whoever made the list; with probability at least {sure:g} one of the best "
    "{share:g}% of the list is among them."
)


def sample_of(asked: OneOf, num_arms: int, delta: float) -> IntArray:
    """The arms that are compared, ascending: with probability at least 1 - delta/2 one of the best t is among them.

        t = the share of K, rounded up
        n = the least with (1 - t/K)^n <= delta/2, or K - t + 1 if that is fewer

    Without replacement a sample misses the best t less often than (1 - t/K)^n; K - t + 1 arms cannot miss them.

    Source: docs/questions.md, line 10.
    """
    best = asked.best_of(num_arms)
    number = num_arms - best + 1
    if best < num_arms:
        number = min(number, math.ceil(math.log(delta / 2.0) / math.log1p(-best / num_arms)))
    drawn: IntArray = stream(asked.sample_seed, "one-of").permutation(num_arms)[:number]
    return np.sort(drawn)


def arms_of_segment(arms: Arms, members: IntArray) -> Arms:
    """The arms with these indices."""
    ids = KnownIds(arms.ids[arm] for arm in members.tolist())
    costs = None if arms.costs is None else arms.costs[members]
    kept = Arms(arms.features[members], ids, columns=arms.columns, preparation=arms.preparation, costs=costs)
    return kept.with_objects(arms.objects)


@record
class OneOfShare:
    """Find the best of a random sample: it is within epsilon of one of the best share of the whole list.

    What it costs depends on the sample, whose size does not grow with the list: log(2/delta) / share arms.

    Source: ours (docs/questions.md); drawing a sample first is the usual way to infinitely many arms, e.g. Aziz et al.
    (2018).
    """

    problem: Problem  # what is asked; its question is `OneOf`
    inner: Policy[Any]  # finds an epsilon-best arm of the sample, with delta / 2
    members: IntArray  # the sample, indices of arms, ascending, (n,)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.inner.traits.items is not None or self.inner.traits.blocks is not None:
            raise InvalidInput("one of the best share is not asked of test items or with blocks, so far.")

    @property
    def traits(self) -> Traits:
        return replace(
            self.inner.traits, eliminates=False, embedding=None, features=None, rounds=None, judges_parts=False
        )

    @property
    def evidence(self) -> Any:
        """The kind of evidence of the inner policy."""
        return getattr(self.inner, "evidence", None)

    def init(self) -> Any:
        return self.inner.init()

    def ask(self, state: Any) -> Plan:
        plan = self.inner.ask(state)
        allocation = None if plan.allocation is None else self._spread(plan.allocation)
        candidate = None if plan.candidate is None else int(self.members[plan.candidate])
        return replace(plan, counts=self._spread(plan.counts), allocation=allocation, candidate=candidate)

    def tell(self, state: Any, plan: Plan, seen: Observations) -> Step[Any]:
        step = self.inner.tell(state, self._within(plan), self._seen(seen))
        row = replace(
            step.record,
            active=self.members[step.record.active],
            leader=int(self.members[step.record.leader]),
            certified_gap=None,
        )
        inner = step.deciding
        if inner is None:
            return Step(step.state, row)

        def deciding(before: Intervals | None) -> Intervals:
            return self._outwards(inner(None if before is None else self._inwards(before)))

        return Step(step.state, row, deciding)

    def claim(self, state: Any) -> Claim:
        claim, asked, num_arms = self.inner.claim(state), self.problem.question, self.problem.num_arms
        if not isinstance(asked, OneOf):
            raise InvalidInput("the question is not one of the best share.")
        leader = int(self.members[claim.leader])
        sampled = SAMPLED.format(
            number=len(self.members),
            seed=asked.sample_seed,
            by=WHO_CHOSE[asked.sample_seed_by],
            total=num_arms,
            sure=1.0 - self.problem.delta / 2.0,
            share=100.0 * asked.share,
        )
        named = np.array([leader] if claim.finished not in ("", "budget") else [], np.int64)
        return replace(
            claim,
            leader=leader,
            gap=None,
            spent=claim.spent + self.problem.delta / 2.0,
            assumptions=(sampled, *claim.assumptions),
            lists=(named, np.empty(0, np.int64)),
        )

    def _spread(self, counts: IntArray) -> IntArray:
        whole = np.zeros(self.problem.num_arms, np.int64)
        whole[self.members] = counts
        return whole

    def _within(self, plan: Plan) -> Plan:
        allocation = None if plan.allocation is None else plan.allocation[self.members]
        candidate = None if plan.candidate is None else int(np.searchsorted(self.members, plan.candidate))
        return replace(plan, counts=plan.counts[self.members], allocation=allocation, candidate=candidate)

    def _seen(self, seen: Observations) -> Observations:
        """What was told of the sample; results of others, which nobody asked for, are not looked at."""
        squares, within = (None if one is None else one[self.members] for one in (seen.squares, seen.within))
        return Observations(seen.counts[self.members], seen.sums[self.members], squares, within=within)

    def _outwards(self, found: Intervals) -> Intervals:
        """The intervals with the indices of the whole list."""
        comparators = np.where(found.comparators >= 0, self.members[found.comparators], -1)
        candidates = tuple(self._moved(one, int(self.members[one.candidate]), self._filled) for one in found.candidates)
        return replace(found, arms=self.members[found.arms], comparators=comparators, candidates=candidates)

    def _inwards(self, found: Intervals) -> Intervals:
        """The intervals with the indices of the sample."""
        place = np.clip(np.searchsorted(self.members, found.comparators), 0, len(self.members) - 1)
        candidates = tuple(
            self._moved(one, int(np.searchsorted(self.members, one.candidate)), lambda column: column[self.members])
            for one in found.candidates
        )
        return replace(
            found,
            arms=np.searchsorted(self.members, found.arms),
            comparators=np.where(found.comparators >= 0, place, -1),
            candidates=candidates,
        )

    def _filled(self, column: FloatArray) -> FloatArray:
        whole = np.full(self.problem.num_arms, np.nan)
        whole[self.members] = column
        return whole

    @staticmethod
    def _moved(one: CandidateBounds, candidate: int, move: Any) -> CandidateBounds:
        columns = (one.bets, one.drawn, one.bounds, one.leads, one.log_e_values)
        return CandidateBounds(candidate, *(move(column) for column in columns))


# --- Which inquiry a question is.


def inquiry_of(problem: Problem) -> asking.Inquiry:
    """The question of a problem, as a policy asks it."""
    delta, segments = delta_for_test(problem), None if problem.arms is None else problem.arms.segments
    if segments is None or not isinstance(problem.question, (TopM, AllGood)):
        return _asked_of(problem, problem.num_arms, delta)
    m = problem.question.m if isinstance(problem.question, TopM) else 0
    if max(Counter(segments).values()) <= max(m, 1):
        raise InvalidInput(
            f"no segment has more than {max(m, 1)} of the {problem.num_arms} candidates: nothing is left to be asked. "
            "Take a column that several candidates share, or leave segments out."
        )

    def nulls(size: int) -> int:
        return max(m * (size - m), 0) if m else size * (size > 1)

    return of_segments(segments, nulls, lambda size, share: _asked_of(problem, size, share * delta))


def _asked_of(problem: Problem, num_arms: int, delta: float) -> asking.Inquiry:
    """The question of so many arms, with so much of delta."""
    asked = problem.question
    if isinstance(asked, OwnQuestion):
        made: asking.Inquiry = asked.inquiry(problem, delta)
        return made
    if isinstance(asked, Above):
        centre, discovery = NUMBER, asked.errors == "discovery"
        if asked.control is not None:
            ids = () if problem.arms is None else problem.arms.ids
            if asked.control not in ids:
                meant = did_you_mean(asked.control, ids)
                raise InvalidInput(
                    f"control is {quoted(asked.control)}, and no candidate is called so; {named(ids, 5)} are.{meant}"
                )
            centre = ids.index(asked.control)
        support = problem.noise.support
        if asked.threshold is not None and support is not None and not support[0] <= asked.threshold <= support[1]:
            raise InvalidInput(
                f"threshold is {asked.threshold:g}, and rewards lie between {support[0]:g} and {support[1]:g}: nothing "
                "has to be measured."
            )
        if num_arms < 2 and asked.control is not None:
            raise InvalidInput("there is only the control; nothing can be compared with it.")
        return asking.AboveCentre(num_arms, centre, asked.threshold, problem.epsilon, delta, discovery, asked.by)
    if isinstance(asked, BestFeasible):
        return BestOfFeasible(num_arms, asked.constraints, problem.epsilon, delta)
    if isinstance(asked, TopM):
        if asked.m >= num_arms:
            raise InvalidInput(f"m is {asked.m}, and there are {num_arms} candidates: all are among the m best.")
        return asking.TopOf(num_arms, asked.m, problem.epsilon, delta)
    if num_arms < 2:
        raise InvalidInput("there is one candidate, and it is the best one; nothing is left to be asked.")
    slack = asked.slack if isinstance(asked, AllGood) and asked.slack is not None else problem.epsilon
    return asking.GoodOnes(num_arms, problem.epsilon, slack, delta)
