"""Which are the m best?"""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.core.values import whole_number
from surepick.errors import InvalidInput
from surepick.estimators.posterior import HEURISTIC_DOUBT
from surepick.questions import protocol
from surepick.questions.protocol import Aims, Bet, FormChoice, ListNames, Lists, Question, View, settable

HEURISTIC_ENTRIES = 30_000  # processes, beyond which only arms of the guess get some


@record
class TopM(Question):
    """Which are the m best?

    Every arm of the list is at most epsilon worse than the m-th best arm.

    Raises:
        InvalidInput: m is no whole number, or below 1.
    """

    m: int = settable("How many of the best (question top).", int, min=1)  # fewer than there are arms
    name: ClassVar[str] = "top"
    needs: ClassVar[Mapping[str, str]] = {"m": "how many of the best are wanted."}
    forms: ClassVar[tuple[FormChoice, ...]] = (
        FormChoice("top", "Which are the best few?", "m", "how many", "whole", "3"),
    )
    splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", whole_number("m", self.m, least=1, meaning=self.needs["m"]))

    def check(self, problem: Any) -> None:
        if self.m >= problem.num_arms:
            raise InvalidInput(f"m is {self.m}, and there are {problem.num_arms} candidates: all are among the m best.")

    def nulls(self, num_arms: int) -> int:
        return max(self.m * (num_arms - self.m), 0)

    def said(self, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:
        best, last, each, its = f"candidates are the {self.m} best", f"the one in place {self.m}", "", ""
        if by_segment:
            each, its = " of each segment", " of its segment"
            best, last = ("candidate is the best", "the best one") if self.m == 1 else (best, last)
        first = f"Each one on the first list is at most {epsilon:g} worse than {last}{its}."
        return f"Which {best}{each}?", first, "The second list has the others."

    def called(self, epsilon: float) -> ListNames:  # noqa: ARG002
        return ListNames("the best" if self.m == 1 else f"the {self.m} best", "the others", "")

    def borders(self, problem: Any, means: FloatArray) -> tuple[float, float]:
        return float(np.sort(means)[-min(self.m, len(means))]) - problem.epsilon, np.inf

    def lines(self, told: Mapping[str, float], sign: float, epsilon: float) -> list[tuple[float, str]]:  # noqa: ARG002
        ranked = sorted((sign * average for average in told.values()), reverse=True)
        cut = [sign * 0.5 * (ranked[self.m - 1] + ranked[self.m])] if self.m < len(ranked) else []
        return [(one, f"below place {self.m}") for one in cut]

    def threshold(self, view: View) -> float:
        """log(m (K - m) / delta): the pairs of a true one of the m best and one that is none (line 7)."""
        return protocol.bet_threshold(self.nulls(view.num_arms), view.delta)

    def bets(self, view: View) -> tuple[Bet, ...]:
        """Of every pair that may be across the cut, not of the guess alone: no early evidence is lost."""
        top, _ = self._guessed(view)
        known = [int(one.name) for one in view.evidence]
        likely, unsure = self._doubtful(view)
        room = max(HEURISTIC_ENTRIES // view.num_arms - len({*known, *top.tolist()}), 0)
        fresh = [arm for arm in likely.tolist() if arm not in known][: math.ceil(room / 2)]
        made = []
        for arm in dict.fromkeys([*top.tolist(), *sorted(known), *fresh]):
            if view.lists.inside[arm]:
                continue
            among = np.ones(view.num_arms, bool)
            if arm in top:
                among[top] = unsure[top]  # one that is surely among the best is not compared with another
            made.append(view.bet(arm, arm, view.epsilon, self.threshold(view), among, bold=True))
        return tuple(made)

    def _doubtful(self, view: View) -> tuple[IntArray, BoolArray]:
        """(the arms outside the guess that may be among the m best, best first; whether each arm may be none, (K,))."""
        order, posterior = self._order(view), view.posterior
        last, first = int(order[self.m - 1]), int(order[self.m])
        short = posterior.leads(last) - HEURISTIC_DOUBT * posterior.errors(last)
        ahead = posterior.leads(first, high=True) - HEURISTIC_DOUBT * posterior.errors(first)
        others = order[self.m :]
        return others[short[others] <= 0.0], ahead <= 0.0

    def aims(self, view: View) -> Aims:
        top, others = self._guessed(view)
        asked = top[~view.lists.inside[top]]
        lacks = np.array([self.threshold(view) - view.processes(arm).peaks[others] for arm in asked])
        leads = np.array([view.posterior.cautious(int(arm), view.epsilon, others) for arm in asked])
        place, rival = np.nonzero(lacks > 0.0)
        if len(place) == 0:
            place, rival = np.array([0]), np.array([0])
        return Aims(others[rival], asked[place], leads[place, rival], lacks[place, rival])

    def decided(self, view: View) -> Lists:
        """An arm is on the list once fewer than m others may be better than it by epsilon (line 7)."""
        inside, order = view.lists.inside.copy(), self._order(view)
        names = {one.name for one in view.evidence}
        for arm in order.tolist():
            if inside[arm] or str(arm) not in names or np.count_nonzero(inside) == self.m:
                continue
            unbeaten = view.processes(arm).peaks < self.threshold(view)
            unbeaten[arm] = False
            inside[arm] = np.count_nonzero(unbeaten) < self.m
        return Lists(inside, ~inside if np.count_nonzero(inside) == self.m else view.lists.outside)

    def _order(self, view: View) -> IntArray:
        """The arms, those on the list first, then by what they look like."""
        return np.lexsort((-view.posterior.scores, ~view.lists.inside))

    def _guessed(self, view: View) -> tuple[IntArray, IntArray]:
        """(the m arms that look best, those on the list among them; the others), ascending."""
        order = self._order(view)
        return np.sort(order[: self.m]), np.sort(order[self.m :])
