"""What a question is: what it bets on, when an arm is on a list, its words, its truth, and how people ask it.

Each has a file beside this one, with the number of nulls that share delta, which docs/questions.md proves.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, field, fields
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.errors import InvalidInput
from surepick.estimators.e_values import Collected, EProcesses, processes_of
from surepick.estimators.posterior import NUMBER, Posterior

ROUNDING = 1e-12  # of the means' size

# --- What the past says, what a batch bets on, and what is to be decided next.


@frozen
class Lists:
    """What is answered of each arm; an arm on neither list is undecided, or not asked about."""

    inside: BoolArray  # (K,)
    outside: BoolArray  # (K,)

    @staticmethod
    def empty(num_arms: int) -> Lists:
        """Nothing is decided."""
        return Lists(np.zeros(num_arms, bool), np.zeros(num_arms, bool))

    @property
    def decided(self) -> BoolArray:
        """Which arms are on a list, shape (K,)."""
        return np.asarray(self.inside | self.outside)

    def beyond(self, means: FloatArray, low: float, high: float) -> BoolArray:
        """The arms on the first list below `low`, and on the second above `high`, but for rounding, shape (K,)."""
        slack = ROUNDING * max(float(np.abs(means).max()), 1.0)
        return np.asarray((self.inside & (means < low - slack)) | (self.outside & (means > high + slack)))


@frozen
class Bet:
    """What a batch bets on, decided from the past: one comparison of many arms with one centre.

    low      evidence against "h_i - h_c > margin":  that arm i is not above the centre by more
    high     evidence against "h_c - h_i > margin":  that arm i is not below it by more
    """

    name: str  # of the e-processes that it is for
    centre: int  # c, an arm, or NUMBER
    margin: float  # in reward units, of any sign
    high: bool  # the second of the two
    arms: BoolArray  # whose processes bet, (K,)
    needs: FloatArray  # what the evidence of each arm still lacks, (K,); bets need not promise much more
    start: float = 0.0  # log of the weight with which new processes begin, at most 0
    # where the arms share nothing, bets are as high as promises most: guesses of means that are drawn towards their
    # centre are caution enough. Else bets are a share of that.
    bold: bool = False
    quantity: int = 0  # what is compared: 0 the reward, l the quantity of the l-th constraint

    def margins(self, posterior: Posterior) -> FloatArray:
        """By how much the truth contradicts each null, as guessed; no bet where it is not positive; shape (K,)."""
        if self.margin <= 0.0:
            return posterior.margins(self.centre, self.margin, high=self.high, doubt=0.0, least=0.0)
        return posterior.margins(self.centre, self.margin, high=self.high)


@record
class Aims:
    """The comparisons that are to be decided next."""

    first: IntArray  # the arms of each pair, or NUMBER in the second place, (m,)
    second: IntArray
    leads: FloatArray  # the margin plus the lead that the null denies, as guessed, (m,), in reward units
    needs: FloatArray  # what the evidence of each pair still lacks, (m,)
    # pulls that each arm takes whatever is measured of others, (K,); None: pairs are all
    alone: FloatArray | None = None


@frozen
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


@record
class View:
    """What a question sees: all of it from the past."""

    problem: Any  # a `Problem`
    delta: float  # what may be spent
    evidence: Collected  # what was collected
    lists: Lists  # what is answered so far
    posterior: Posterior  # guesses of the means
    standings: tuple[ConstraintEstimate, ...] = ()  # how the arms stand to each constraint
    # of the reward's noise, (K,), in reward units; empty where no constraint asks for them
    scales: FloatArray = field(default_factory=partial(np.empty, 0))

    @property
    def num_arms(self) -> int:
        """K."""
        return len(self.posterior.scores)

    @property
    def epsilon(self) -> float:
        """In reward units."""
        return float(self.problem.epsilon)

    def processes(self, name: str | int) -> EProcesses:
        """Those of that name; new ones where there are none."""
        return processes_of(self.evidence, name, self.num_arms)

    def bet(self, name: str | int, centre: int, margin: float, threshold: float, among: BoolArray, **more: Any) -> Bet:
        """The one on those of some arms whose processes have not reached the threshold, against any other centre."""
        lacks = threshold - self.processes(name).peaks
        arms = (lacks > 0.0) & among & (np.arange(self.num_arms) != centre)
        return Bet(str(name), centre, margin, arms=arms, needs=np.maximum(lacks, 0.0), **{"high": False, **more})

    def within(self, arms: IntArray, delta: float) -> View:
        """What the question of these arms alone sees, with so much of delta; of what was collected, that of theirs."""
        evidence = tuple(
            EProcesses(one.name, one.values[arms], one.peaks[arms])
            for one in self.evidence
            if np.any(one.values[arms]) or np.any(one.peaks[arms])
        )
        errors = self.posterior.errors

        def inner(centre: int) -> FloatArray:
            return np.asarray(errors(centre if centre == NUMBER else int(arms[centre]))[arms])

        lists = Lists(self.lists.inside[arms], self.lists.outside[arms])
        posterior = Posterior(self.posterior.scores[arms], inner, self.posterior.number)
        return View(self.problem, delta, evidence, lists, posterior)


class Inquiry(ABC):
    """What is bet on, and when an arm is on a list."""

    __slots__ = ()

    def number(self, problem: Any) -> float | None:  # noqa: ARG002
        """What arms are compared with, in reward units; None: with each other, or with one of them."""
        return None

    def asked(self, problem: Any) -> BoolArray:
        """Which arms will be on a list in the end, shape (K,)."""
        return np.ones(problem.num_arms, bool)

    @abstractmethod
    def bets(self, view: View) -> tuple[Bet, ...]:
        """What the next batch bets on; a function of the past."""

    @abstractmethod
    def aims(self, view: View) -> Aims:
        """What is to be decided next: at least one pair."""

    @abstractmethod
    def decided(self, view: View) -> Lists:
        """The lists after a batch."""

    def named(self, view: View) -> int | None:  # noqa: ARG002
        """The arm that looks like the answer; None: the one that looks best, of the first list if there is one."""
        return None


def bet_threshold(nulls: int, delta: float) -> float:
    """log(nulls / delta): what a process must reach where so many can be true."""
    return math.log(nulls / delta)


# --- What is asked.


def settable(help: str, kind: type[Any], *, default: Any = MISSING, **more: Any) -> Any:  # noqa: A002
    """A field of a question that the command line sets: `kind` and `more` are those of its option; `flag` its name."""
    return field(default=default, metadata={"help": help, "kind": kind, **more})


@record
class FormChoice:
    """A way to ask a question on a page."""

    choice: str  # its name there
    words: str  # the question
    option: str = ""  # that it takes; "": none
    label: str = ""  # of the option's field
    kind: Literal["number", "whole", "text"] = "number"
    first: str = ""  # what stands in the field at first


@record
class ListNames:
    """Short names of the lists, for readers who never saw the question."""

    first: str  # of the list of those that the question asks for
    second: str  # of the list of the others; "" where there is none
    neither: str = "not asked about"  # of those on neither list when all is decided; "" where there are none


class Question(Inquiry):
    """What is asked of the candidates: a frozen dataclass whose fields, plain data, are its options.

    surepick's own have a file each in `surepick.questions`; the entry point of another package in that group gives the
    class, under the name that it has itself. The answer is two lists of candidates, of which the certified-* policies
    collect evidence, as docs/questions.md proves for our own.
    """

    __slots__ = ()
    name: ClassVar[str]
    needs: ClassVar[Mapping[str, str]] = {}  # option that it is nothing without -> what it is
    implied_by: ClassVar[str] = ""  # the option that asks it by itself
    forms: ClassVar[tuple[FormChoice, ...]] = ()  # how a page asks it
    listed: ClassVar[bool] = True  # the answer is lists
    splits: ClassVar[bool] = False  # arms are compared with each other, so in each segment by themselves
    wanted: ClassVar[str] = "put every candidate on a list"  # what measurements are to do

    def check(self, problem: Any) -> None:
        """Refuse a `Problem` (`num_arms`, `epsilon`, `noise`, `arms`) for which it has no meaning."""

    @abstractmethod
    def said(self, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:
        """(the question, what is said of the first list, what is said of the second), in sentences."""

    @abstractmethod
    def called(self, epsilon: float) -> ListNames:
        """The lists, in some words for those who never saw the question: "above 3"."""

    def wrong(self, problem: Any, lists: Lists, means: FloatArray, quantities: FloatArray | None = None) -> BoolArray:  # noqa: ARG002
        """The arms of whom the lists say what is not so, shape (K,).

        Args:
            means: shape (K,).
            quantities: means of what constraints are on, shape (K, r).
        """
        return lists.beyond(means, *self.borders(problem, means))

    def borders(self, problem: Any, means: FloatArray) -> tuple[float, float]:
        """(the least mean of an arm that is rightly on the first list, the largest of one on the second)."""
        raise NotImplementedError

    def nulls(self, num_arms: int) -> int:
        """How many false statements share delta, each of a difference of two means against a margin of epsilon: what
        measuring all equally often would cost is computed of it."""
        return num_arms - 1

    def guarantee(self, delta: float) -> str:
        """How often any of it may be wrong, in a sentence."""
        return f"This statement is wrong with probability at most {delta:g}."

    def reason(self, number: int, epsilon: float) -> str:  # noqa: ARG002
        """Why an answer with so many on the first list is good."""
        return "Every candidate that the question asks about is on a list."

    def check_segments(self) -> None:
        """Refuse segments where it is not asked of them."""
        if not self.splits:
            raise InvalidInput(
                f"question {self.name!r} is not asked of segments, so far: leave segments out, or make a study of each."
            )

    def even_pulls(self, problem: Any, sigma: float, sizes: Sequence[int]) -> int:
        """Pulls of one batch, the same of each arm, whose averages answer it; arms have segments of these sizes."""
        nulls = sum(map(self.nulls, sizes))
        return int(problem.num_arms * pulls_of_each(2.0 * sigma**2, nulls, problem.epsilon, problem.delta))

    def lines(self, told: Mapping[str, float], sign: float, epsilon: float) -> list[tuple[float, str]]:  # noqa: ARG002
        """(number, what it is) of what averages are compared with on a picture.

        Args:
            told: id -> average, in the user's sign.
            sign: -1 where small ones are good.
        """
        return []

    def plain(self) -> dict[str, Any]:
        """Its options as plain data."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]


def pulls_of_each(variance: float, nulls: int, margin: float, delta: float) -> int:
    """ceil(2 v log(n / delta) / m^2): pulls of an arm after which none of n nulls is off by m, for pulls of variance v.

    Source: Hoeffding and a union.
    """
    return math.ceil(2.0 * variance * math.log(nulls / delta) / margin**2) if nulls else 0
