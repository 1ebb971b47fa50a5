"""The questions: what each bets on, what it wants decided next, and when an arm is on a list.

A false answer needs the process of a true null to reach its threshold; docs/questions.md has, for each question, what
can be false, and so how many nulls share delta.
"""

import math
from dataclasses import field, replace
from functools import partial
from typing import Protocol

import numpy as np

from surepick.core.observations import Observations, Quantity
from surepick.core.records import BoolArray, FloatArray, IntArray, freeze, record
from surepick.embeddings import IndependentEmbedding
from surepick.estimators import noise_mgf_after
from surepick.noise import Noise, largest_scale
from surepick.policies import tuning
from surepick.policies.base import Problem
from surepick.policies.questions.outlook import Aims, Bet, Ground, Lists
from surepick.policies.sequential.posterior import NUMBER, Posterior
from surepick.policies.sequential.state import Collected, EProcesses, processes_of
from surepick.questions import Constraint

# --- How each arm stands to the bounds of the constraints, as far as the past says.

UNEVEN = "Measurements of a candidate give different values of {}, which was said to have no noise"
EXACT = 1e-9  # of its size, within which repeats of a quantity without noise agree


@record
class ConstraintEstimate:
    """How the arms stand to one constraint."""

    # by how much each arm keeps the bound, as guessed, (K,), in the quantity's units; negative where it does not
    room: FloatArray
    errors: FloatArray  # standard errors of `room`, (K,); 0 where there is no noise
    scales: FloatArray  # of the noise, (K,); 0 without noise
    known: BoolArray  # arms of which the quantity was measured, (K,)
    tolerance: float  # how far beyond the bound the answer may be
    exact: bool  # there is no noise, so that the room of known arms is a fact
    posterior: Posterior | None  # guesses, for bets; None where there is no noise

    def __post_init__(self) -> None:
        freeze(self, room=np.float64, errors=np.float64, scales=np.float64, known=np.bool_)


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


HEURISTIC_ENTRIES = 30_000  # processes for the m best, beyond which only arms of the guess get some


@record
class View:
    """What a rule sees: all of it from the past."""

    evidence: Collected  # what was collected
    lists: Lists  # what is answered so far
    posterior: Posterior  # guesses of the means
    standings: tuple[ConstraintEstimate, ...] = ()  # how the arms stand to each constraint
    # of the reward's noise, (K,), in reward units; empty where no constraint asks for them
    scales: FloatArray = field(default_factory=partial(np.empty, 0))

    def processes(self, name: str | int) -> EProcesses:
        """Those of that name; new ones where there are none."""
        return processes_of(self.evidence, name, len(self.posterior.scores))


class Inquiry(Protocol):
    """One question, as a policy asks it."""

    @property
    def number(self) -> float | None:
        """What arms are compared with; None: with each other."""
        ...

    @property
    def asked(self) -> BoolArray:
        """Which arms will be on a list in the end, shape (K,)."""
        ...

    def bets(self, view: View) -> tuple[Bet, ...]:
        """What the next batch bets on; a function of the past."""
        ...

    def aims(self, view: View) -> Aims:
        """What is to be decided next: at least one pair."""
        ...

    def decided(self, view: View) -> Lists:
        """The lists after a batch."""
        ...

    def named(self, view: View) -> int | None:
        """The arm that looks like the answer; None: the one that looks best, of the first list if there is one."""
        ...


class OfAll:
    """A question about all arms, which are compared with each other."""

    num_arms: int

    @property
    def number(self) -> float | None:
        return None

    @property
    def asked(self) -> BoolArray:
        return np.ones(self.num_arms, bool)

    def named(self, view: View) -> int | None:  # noqa: ARG002 (a question with one answer looks)
        """None: the one that looks best, of the first list if there is one."""
        return None


def classified(highs: FloatArray, lows: FloatArray, lists: Lists, asked: BoolArray, delta: float) -> Lists:
    """Lists of which no arm is wrong, except with probability delta.

        an arm gets on a list once one of its two processes has reached (arms asked about) / delta

    Of the two nulls of an arm at most one is true, so there are no more true ones than arms asked about (docs/
    questions.md, line 3). The threshold stays as it is when arms get on lists: that an arm is rightly on one of them
    shows its false null, while its true one was a chance to err, which is spent.

    Args:
        highs, lows: log of the largest value of the processes that put an arm on the first list, and on the second;
            shape (K,).
        asked: which arms there are, shape (K,).
    """
    threshold, still = bet_threshold(int(np.count_nonzero(asked)), delta), asked & ~lists.decided
    up, down = still & (highs >= threshold), still & (lows >= threshold)
    first = up & (~down | (highs >= lows))
    return Lists(lists.inside | first, lists.outside | (down & ~first))


def bet_threshold(nulls: int, delta: float) -> float:
    """log(nulls / delta): what a process must reach where so many can be true."""
    return math.log(nulls / delta)


def discoveries(values: FloatArray, allowed: BoolArray, total: int, delta: float) -> BoolArray:
    """A list of which a share of at most delta is wrong on average: the k arms of largest e-values, for the largest k
    with all of these at least K / (delta k).

    Args:
        values: log of the processes as they are now, shape (K,); not of their largest values.
        allowed: arms that may be on the list, shape (K,).

    Source: Wang & Ramdas (2022), e-BH; any dependence, at any stopping time (docs/questions.md, line 5).
    """
    found, number = np.zeros(len(values), bool), int(np.count_nonzero(allowed))
    order = np.argsort(np.where(allowed, -values, np.inf), kind="stable")[:number]
    enough = np.flatnonzero(values[order] >= math.log(total / delta) - np.log(np.arange(1, number + 1)))
    if len(enough):
        found[order[: enough[-1] + 1]] = True
    return found


@record
class AboveCentre(OfAll):
    """Which arms are above a number, or an arm."""

    num_arms: int  # K
    centre: int  # the control; NUMBER: there is a threshold
    threshold: float | None  # tau; None: there is a control
    epsilon: float  # the margin, in reward units
    delta: float  # what may be spent
    discovery: bool  # errors are counted as shares of the lists
    by: float = 0.0  # how much above the threshold or the control is wanted, in reward units

    @property
    def number(self) -> float | None:
        return self.threshold

    @property
    def asked(self) -> BoolArray:
        found = np.ones(self.num_arms, bool)
        if self.centre != NUMBER:
            found[self.centre] = False
        return found

    def bets(self, view: View) -> tuple[Bet, ...]:
        made = []
        for name, high in (("above", True), ("below", False)):
            lacks = self._lacks(view, name)
            arms = self.asked & (lacks > 0.0) & (self.discovery | ~view.lists.decided)
            margin, needs = self._margin(high=high), np.maximum(lacks, 0.0)
            made.append(Bet(name, self.centre, margin, high, arms, needs, bold=True))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        arms = np.flatnonzero(self.asked & ~view.lists.decided)
        high = self._looks_above(view)[arms]
        sides = [
            np.maximum(view.posterior.cautious(self.centre, self._margin(high=side), arms, high=side), self._least)
            for side in (True, False)
        ]
        lacks = [self._lacks(view, name)[arms] for name in ("above", "below")]
        centres = np.full(len(arms), self.centre)
        return Aims(arms, centres, np.where(high, *sides), np.where(high, *lacks))

    def decided(self, view: View) -> Lists:
        above, below = (view.processes(name) for name in ("above", "below"))
        if not self.discovery:
            return classified(above.peaks, below.peaks, view.lists, self.asked, self.delta)
        total, higher = int(np.count_nonzero(self.asked)), above.values >= below.values
        inside = discoveries(above.values, self.asked & higher, total, self.delta)
        outside = discoveries(below.values, self.asked & ~higher, total, self.delta)
        return Lists(inside, outside)

    def _lacks(self, view: View, name: str) -> FloatArray:
        """What each arm's evidence lacks for one of the two lists, shape (K,)."""
        own, asked = view.processes(name), int(np.count_nonzero(self.asked))
        if not self.discovery:
            return bet_threshold(asked, self.delta) - own.peaks
        listed = view.lists.inside if name == "above" else view.lists.outside
        looks = self._looks_above(view) == (name == "above")
        expected = max(int(np.count_nonzero(self.asked & np.where(view.lists.decided, listed, looks))), 1)
        return math.log(asked / (self.delta * expected)) - own.values

    def _margin(self, *, high: bool) -> float:
        return self.epsilon - self.by if high else self.epsilon + self.by

    def _looks_above(self, view: View) -> BoolArray:
        return np.asarray(view.posterior.leads(self.centre, high=True) >= self.by)

    @property
    def _least(self) -> float:
        return tuning.HEURISTIC_LEAST_MARGIN * self.epsilon


@record
class TopOf(OfAll):
    """Which are the m best."""

    num_arms: int  # K
    m: int  # how many
    epsilon: float  # in reward units
    delta: float  # what may be spent

    @property
    def threshold(self) -> float:
        """log(m (K - m) / delta): the pairs of a true one of the m best and one that is none (line 7)."""
        return bet_threshold(self.m * (self.num_arms - self.m), self.delta)

    def bets(self, view: View) -> tuple[Bet, ...]:
        """Of every pair that may be across the cut, not of the guess alone: no early evidence is lost."""
        top, _ = self._guessed(view.posterior)
        known = [int(one.name) for one in view.evidence]
        likely, unsure = self._doubtful(view.posterior)
        room = max(HEURISTIC_ENTRIES // self.num_arms - len({*known, *top.tolist()}), 0)
        fresh = [arm for arm in likely.tolist() if arm not in known][: math.ceil(room / 2)]
        made = []
        for arm in dict.fromkeys([*top.tolist(), *sorted(known), *fresh]):
            lacks = self.threshold - view.processes(arm).peaks
            arms = lacks > 0.0
            arms[arm] = False
            if arm in top:
                arms[top] &= unsure[top]  # one that is surely among the best is not compared with another
            made.append(Bet(str(arm), arm, self.epsilon, False, arms, np.maximum(lacks, 0.0), bold=True))
        return tuple(made)

    def _doubtful(self, posterior: Posterior) -> tuple[IntArray, BoolArray]:
        """(the arms outside the guess that may be among the m best, best first; whether each arm may be none, (K,))."""
        order = np.argsort(-posterior.scores, kind="stable")
        last, first = int(order[self.m - 1]), int(order[self.m])
        short = posterior.leads(last) - tuning.HEURISTIC_DOUBT * posterior.errors(last)
        ahead = posterior.leads(first, high=True) - tuning.HEURISTIC_DOUBT * posterior.errors(first)
        others = order[self.m :]
        return others[short[others] <= 0.0], ahead <= 0.0

    def aims(self, view: View) -> Aims:
        top, others = self._guessed(view.posterior)
        lacks = np.array([self.threshold - view.processes(arm).peaks[others] for arm in top])
        leads = np.array([view.posterior.cautious(int(arm), self.epsilon, others) for arm in top])
        place, rival = np.nonzero(lacks > 0.0)
        if len(place) == 0:
            place, rival = np.array([0]), np.array([0])
        return Aims(others[rival], top[place], leads[place, rival], lacks[place, rival])

    def decided(self, view: View) -> Lists:
        top, others = self._guessed(view.posterior)
        names = {one.name for one in view.evidence}
        for arm in top.tolist():
            if str(arm) not in names or np.any(view.processes(arm).peaks[others] < self.threshold):
                return view.lists
        inside = np.zeros(self.num_arms, bool)
        inside[top] = True
        return Lists(inside, ~inside)

    def _guessed(self, posterior: Posterior) -> tuple[IntArray, IntArray]:
        """(the m arms that look best, the others), ascending."""
        order = np.argsort(-posterior.scores, kind="stable")
        return np.sort(order[: self.m]), np.sort(order[self.m :])


@record
class GoodOnes(OfAll):
    """Which arms are within epsilon of the best."""

    num_arms: int  # K
    epsilon: float  # in reward units
    slack: float
    delta: float  # what may be spent

    @property
    def threshold(self) -> float:
        """log(K / delta): of each arm one null at most is true, of its place on one of the lists (line 9)."""
        return bet_threshold(self.num_arms, self.delta)

    def bets(self, view: View) -> tuple[Bet, ...]:
        threshold, witness = self.threshold, self._witness(view)
        lacks = threshold - view.processes("out").peaks
        arms = (lacks > 0.0) & ~view.lists.decided
        arms[witness] = False
        made = [Bet("out", witness, -self.epsilon, False, arms, np.maximum(lacks, 0.0))]
        good = ~view.lists.decided & self._looks_good(view.posterior, witness)
        known = {int(one.name) for one in view.evidence if one.name != "out"}
        for arm in np.flatnonzero(
            good | (np.isin(np.arange(self.num_arms), list(known)) & ~view.lists.decided)
        ).tolist():
            lacks = threshold - view.processes(arm).peaks
            rivals = (lacks > 0.0) & ~view.lists.outside
            rivals[arm] = False
            made.append(Bet(str(arm), arm, self.epsilon + self.slack, False, rivals, np.maximum(lacks, 0.0)))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        threshold, witness = self.threshold, self._witness(view)
        good = self._looks_good(view.posterior, witness)
        bad = np.flatnonzero(~view.lists.decided & ~good)
        out = threshold - view.processes("out").peaks[bad]
        least = tuning.HEURISTIC_LEAST_MARGIN * self.slack
        low = np.maximum(view.posterior.leads(witness)[bad] - self.epsilon, least)
        firsts, seconds, leads, needs = [bad], [np.full(len(bad), witness)], [low], [out]
        rivals = np.flatnonzero(~view.lists.outside)
        for arm in np.flatnonzero(~view.lists.decided & good).tolist():
            lacks = threshold - view.processes(arm).peaks[rivals]
            still = (lacks > 0.0) & (rivals != arm)
            firsts.append(rivals[still])
            seconds.append(np.full(int(still.sum()), arm))
            leads.append(view.posterior.cautious(arm, self.epsilon + self.slack, rivals[still]))
            needs.append(lacks[still])
        return Aims(*(np.concatenate(part) for part in (firsts, seconds, leads, needs)))

    def decided(self, view: View) -> Lists:
        inside, outside, decided = view.lists.inside, view.lists.outside, view.lists.decided
        outside = outside | (~decided & (view.processes("out").rejected(self.threshold)))
        up = np.zeros(self.num_arms, bool)
        for one in view.evidence:
            if one.name != "out" and not (inside | outside)[int(one.name)]:
                rivals = ~outside
                rivals[int(one.name)] = False
                up[int(one.name)] = bool(np.all(one.peaks[rivals] >= self.threshold))
        return Lists(inside | up, outside)

    def _witness(self, view: View) -> int:
        """The arm that others are shown to be worse than."""
        return int(np.argmax(np.where(view.lists.outside, -np.inf, view.posterior.scores)))

    def _looks_good(self, posterior: Posterior, witness: int) -> BoolArray:
        return np.asarray(posterior.leads(witness) <= self.epsilon + 0.5 * self.slack)
