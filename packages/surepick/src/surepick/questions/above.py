"""Which arms are above a number, or better than one of them?"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from surepick.core.certificate import named
from surepick.core.records import BoolArray, FloatArray, record
from surepick.core.values import check_choice, finite_number, storable_text
from surepick.errors import InvalidInput
from surepick.estimators.posterior import HEURISTIC_LEAST_MARGIN, NUMBER
from surepick.questions import protocol
from surepick.questions.protocol import Aims, Bet, FormChoice, ListNames, Lists, Question, View, settable
from surepick.text import did_you_mean, quoted

ERRORS = ("family", "discovery")


@record
class Above(Question):
    """Which arms are above a threshold, or better than a control?

        said to be above    h_i > tau - epsilon
        said to be below    h_i < tau + epsilon

    tau is the threshold, or the control's mean, plus `by`. An arm within epsilon of it is rightly on either list.

    Args:
        threshold: tau, in reward units; None: there is a control.
        control: id of the arm that the others are compared with, which is on neither list; None: there is a threshold.
        by: how much above the threshold or the control is wanted, in reward units: with by = epsilon all on the first
            list are really above it.
        errors: "family": with probability at least 1 - delta no arm at all is on a wrong list. "discovery": of each
            list, the share that is wrong is at most delta on average; it needs far fewer measurements where many arms
            are above.

    Raises:
        InvalidInput: there are not exactly one of threshold and control, or a value has no meaning.
    """

    threshold: float | None = settable("What means are compared with (question above).", float, default=None)
    control: str | None = None
    by: float = settable("How much above the threshold or the control is wanted (question above).", float, default=0.0)
    errors: Literal["family", "discovery"] = settable(
        "family: no one at all is on a wrong list; discovery: a small share of each list may be, for fewer "
        "measurements (question above).",
        str,
        default="family",
    )
    name: ClassVar[str] = "above"
    forms: ClassVar[tuple[FormChoice, ...]] = (
        FormChoice("above", "Which are better than a number?", "threshold", "the number"),
        FormChoice("control", "Which are better than one of them?", "control", "its name", "text"),
    )

    def __post_init__(self) -> None:
        if (self.threshold is None) == (self.control is None):
            raise InvalidInput(
                "question 'above' needs threshold, a number, or control, the id of the candidate that the others are "
                "compared with; not both."
            )
        if self.threshold is not None:
            object.__setattr__(self, "threshold", finite_number("threshold", self.threshold))
        if self.control is not None:
            storable_text("control", self.control)
        object.__setattr__(self, "by", finite_number("by", self.by))
        check_choice("errors", self.errors, ERRORS)

    def check(self, problem: Any) -> None:
        support = problem.noise.support
        if self.threshold is not None and support is not None and not support[0] <= self.threshold <= support[1]:
            raise InvalidInput(
                f"threshold is {self.threshold:g}, and rewards lie between {support[0]:g} and {support[1]:g}: nothing "
                "has to be measured."
            )
        self._centre(problem)
        if problem.num_arms < 2 and self.control is not None:
            raise InvalidInput("there is only the control; nothing can be compared with it.")

    def _centre(self, problem: Any) -> int:
        """The control's index; NUMBER: there is a threshold."""
        if self.control is None:
            return NUMBER
        ids: tuple[str, ...] = () if problem.arms is None else problem.arms.ids
        if self.control not in ids:
            meant = did_you_mean(self.control, ids)
            raise InvalidInput(
                f"control is {quoted(self.control)}, and no candidate is called so; {named(ids, 5)} are.{meant}"
            )
        return ids.index(self.control)

    def number(self, problem: Any) -> float | None:  # noqa: ARG002
        return self.threshold

    def asked(self, problem: Any) -> BoolArray:
        found, centre = np.ones(problem.num_arms, bool), self._centre(problem)
        if centre != NUMBER:
            found[centre] = False
        return found

    def nulls(self, num_arms: int) -> int:
        return num_arms - (self.control is not None)

    def even_pulls(self, problem: Any, sigma: float, sizes: Sequence[int]) -> int:  # noqa: ARG002
        variance, nulls = sigma**2 * (1.0 if self.control is None else 2.0), self.nulls(problem.num_arms)
        return int(problem.num_arms * protocol.pulls_of_each(variance, nulls, problem.epsilon, problem.delta))

    def check_segments(self) -> None:
        if self.errors == "discovery":
            raise InvalidInput(
                "errors='discovery' promises a share of the whole list, not of each segment's: leave segments out, or "
                "take errors='family'."
            )

    def said(self, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:  # noqa: ARG002
        centre = f"{self.threshold:g}" if self.control is None else f"the control {self.control}"
        better, worse = ("above", "below") if self.control is None else ("better than", "worse than")
        return (
            f"Which candidates are {better} {centre}{f' by {self.by:g}' if self.by else ''}?",
            f"Each one on the first list is {_nearly(self.by, epsilon, better, worse, centre)}.",
            f"Each one on the second list is {_nearly(-self.by, epsilon, worse, better, centre)}.",
        )

    def called(self, epsilon: float) -> ListNames:  # noqa: ARG002
        by = f" by {self.by:g}" if self.by else ""
        if self.control is None:
            below = "not above" if by else "below"
            return ListNames(f"above {self.threshold:g}{by}", f"{below} {self.threshold:g}{by}", "")
        worse = "not better" if by else f"worse than {self.control}"
        return ListNames(f"better than {self.control}{by}", worse, "the control")

    def guarantee(self, delta: float) -> str:
        if self.errors == "discovery":
            return f"Of each list, a share of at most {delta:g} is wrong on average; single candidates may be."
        return f"The probability that any of these statements is wrong is at most {delta:g}."

    def borders(self, problem: Any, means: FloatArray) -> tuple[float, float]:
        tau = self.threshold
        if tau is None:
            tau = float(means[problem.arms.ids.index(self.control)])
        return tau + self.by - problem.epsilon, tau + self.by + problem.epsilon

    def lines(self, told: Mapping[str, float], sign: float, epsilon: float) -> list[tuple[float, str]]:  # noqa: ARG002
        words, by = "what is wanted" if self.by else "the control", sign * self.by
        if self.threshold is not None:
            return [(self.threshold + by, words.replace("control", "threshold"))]
        return [(average + by, words) for one, average in told.items() if one == self.control]

    def bets(self, view: View) -> tuple[Bet, ...]:
        made, asked, centre = [], self.asked(view.problem), self._centre(view.problem)
        for name, high in (("above", True), ("below", False)):
            lacks = self._lacks(view, name)
            arms = asked & (lacks > 0.0) & ((self.errors == "discovery") | ~view.lists.decided)
            needs = np.maximum(lacks, 0.0)
            made.append(Bet(name, centre, self._margin(view, high=high), high, arms, needs, bold=True))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        arms, centre = np.flatnonzero(self.asked(view.problem) & ~view.lists.decided), self._centre(view.problem)
        high, least = self._looks_above(view)[arms], HEURISTIC_LEAST_MARGIN * view.epsilon
        sides = [
            np.maximum(view.posterior.cautious(centre, self._margin(view, high=side), arms, high=side), least)
            for side in (True, False)
        ]
        lacks = [self._lacks(view, name)[arms] for name in ("above", "below")]
        return Aims(arms, np.full(len(arms), centre), np.where(high, *sides), np.where(high, *lacks))

    def decided(self, view: View) -> Lists:
        above, below = (view.processes(name) for name in ("above", "below"))
        asked = self.asked(view.problem)
        if self.errors == "family":
            return classified(above.peaks, below.peaks, view.lists, asked, view.delta)
        total, higher = int(np.count_nonzero(asked)), above.values >= below.values
        inside = discoveries(above.values, asked & higher, total, view.delta)
        outside = discoveries(below.values, asked & ~higher, total, view.delta)
        return Lists(inside, outside)

    def _lacks(self, view: View, name: str) -> FloatArray:
        """What each arm's evidence lacks for one of the two lists, shape (K,)."""
        own, asked = view.processes(name), self.asked(view.problem)
        if self.errors == "family":
            return protocol.bet_threshold(int(np.count_nonzero(asked)), view.delta) - own.peaks
        listed = view.lists.inside if name == "above" else view.lists.outside
        looks = self._looks_above(view) == (name == "above")
        expected = max(int(np.count_nonzero(asked & np.where(view.lists.decided, listed, looks))), 1)
        return math.log(np.count_nonzero(asked) / (view.delta * expected)) - own.values

    def _margin(self, view: View, *, high: bool) -> float:
        return view.epsilon - self.by if high else view.epsilon + self.by

    def _looks_above(self, view: View) -> BoolArray:
        return np.asarray(view.posterior.leads(self._centre(view.problem), high=True) >= self.by)


def _nearly(by: float, epsilon: float, better: str, worse: str, centre: str) -> str:
    """Better by more than `by` - epsilon, in words, whatever its sign; they hold for small rewards too."""
    if math.isclose(by, epsilon):
        return f"{better} {centre}"
    if by > epsilon:
        return f"{better} {centre} by more than {by - epsilon:g}"
    return f"{better} {centre}, or {worse} it by less than {epsilon - by:g}"


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
    threshold, still = protocol.bet_threshold(int(np.count_nonzero(asked)), delta), asked & ~lists.decided
    up, down = still & (highs >= threshold), still & (lows >= threshold)
    first = up & (~down | (highs >= lows))
    return Lists(lists.inside | first, lists.outside | (down & ~first))


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
