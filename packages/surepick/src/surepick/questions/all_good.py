"""Which are all the arms within epsilon of the best?"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from surepick.core.records import BoolArray, FloatArray, record
from surepick.core.values import positive_number
from surepick.errors import InvalidInput
from surepick.estimators.posterior import HEURISTIC_LEAST_MARGIN
from surepick.questions import protocol
from surepick.questions.protocol import Aims, Bet, FormChoice, ListNames, Lists, Question, View, settable


@record
class AllGood(Question):
    """Which are all the arms within epsilon of the best?

        said to be good       h_i >= max h - epsilon - slack
        said not to be good   h_i <  max h - epsilon

    So every arm within epsilon of the best one is on the list, and none that is worse by more than epsilon + slack.

    Args:
        slack: in reward units, > 0; an arm between epsilon and epsilon + slack is rightly on either list. None:
            epsilon.

    Raises:
        InvalidInput: slack is not positive.
    """

    slack: float | None = settable(
        "How much worse than epsilon one on the list may be (question all-good).", float, default=None
    )
    name: ClassVar[str] = "all-good"
    forms: ClassVar[tuple[FormChoice, ...]] = (FormChoice("all-good", "Which are nearly as good as the best?"),)
    splits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.slack is not None:
            meaning = "how much worse than epsilon an arm on the list may be."
            object.__setattr__(self, "slack", positive_number("slack", self.slack, meaning))

    def check(self, problem: Any) -> None:
        if problem.num_arms < 2:
            raise InvalidInput("there is one candidate, and it is the best one; nothing is left to be asked.")

    def room(self, epsilon: float) -> float:
        """The slack."""
        return epsilon if self.slack is None else self.slack

    def nulls(self, num_arms: int) -> int:
        return num_arms * (num_arms > 1)

    def even_pulls(self, problem: Any, sigma: float, sizes: Sequence[int]) -> int:
        pairs, margin = sum(size * (size - 1) for size in sizes), self.room(problem.epsilon) / 2.0
        return int(problem.num_arms * protocol.pulls_of_each(2.0 * sigma**2, pairs, margin, problem.delta))

    def said(self, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:
        best = "the best one of its segment" if by_segment else "the best one"
        return (
            f"Which candidates are within {epsilon:g} of {best.replace('its', 'their')}?",
            f"Each one on the first list is within {epsilon + self.room(epsilon):g} of {best}.",
            f"Each one on the second list is worse than {best} by more than {epsilon:g}.",
        )

    def called(self, epsilon: float) -> ListNames:
        return ListNames(f"within {epsilon:g} of the best", "worse than that", "")

    def guarantee(self, delta: float) -> str:
        return f"The probability that any of these statements is wrong is at most {delta:g}."

    def borders(self, problem: Any, means: FloatArray) -> tuple[float, float]:
        high = float(means.max()) - problem.epsilon
        return high - self.room(problem.epsilon), high

    def lines(self, told: Mapping[str, float], sign: float, epsilon: float) -> list[tuple[float, str]]:
        best = max((sign * average for average in told.values()), default=0.0)
        off = (epsilon, epsilon + self.room(epsilon)) if told else ()
        return [(sign * (best - one), f"{one:g} from the best") for one in off]

    def threshold(self, view: View) -> float:
        """log(K / delta): of each arm one null at most is true, of its place on one of the lists (line 9)."""
        return protocol.bet_threshold(view.num_arms, view.delta)

    def bets(self, view: View) -> tuple[Bet, ...]:
        threshold, witness, left = self.threshold(view), self._witness(view), ~view.lists.decided
        made = [view.bet("out", witness, -view.epsilon, threshold, left)]
        known = [int(one.name) for one in view.evidence if one.name != "out"]
        wanted = left & (self._looks_good(view, witness) | np.isin(np.arange(view.num_arms), known))
        for arm in np.flatnonzero(wanted).tolist():
            made.append(view.bet(arm, arm, view.epsilon + self.room(view.epsilon), threshold, ~view.lists.outside))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        threshold, witness = self.threshold(view), self._witness(view)
        good = self._looks_good(view, witness)
        bad = np.flatnonzero(~view.lists.decided & ~good)
        out = threshold - view.processes("out").peaks[bad]
        least = HEURISTIC_LEAST_MARGIN * self.room(view.epsilon)
        low = np.maximum(view.posterior.leads(witness)[bad] - view.epsilon, least)
        firsts, seconds, leads, needs = [bad], [np.full(len(bad), witness)], [low], [out]
        rivals = np.flatnonzero(~view.lists.outside)
        for arm in np.flatnonzero(~view.lists.decided & good).tolist():
            lacks = threshold - view.processes(arm).peaks[rivals]
            still = (lacks > 0.0) & (rivals != arm)
            firsts.append(rivals[still])
            seconds.append(np.full(int(still.sum()), arm))
            leads.append(view.posterior.cautious(arm, view.epsilon + self.room(view.epsilon), rivals[still]))
            needs.append(lacks[still])
        return Aims(*(np.concatenate(part) for part in (firsts, seconds, leads, needs)))

    def decided(self, view: View) -> Lists:
        inside, outside, decided = view.lists.inside, view.lists.outside, view.lists.decided
        outside = outside | (~decided & (view.processes("out").rejected(self.threshold(view))))
        up = np.zeros(view.num_arms, bool)
        for one in view.evidence:
            if one.name != "out" and not (inside | outside)[int(one.name)]:
                rivals = ~outside
                rivals[int(one.name)] = False
                up[int(one.name)] = bool(np.all(one.peaks[rivals] >= self.threshold(view)))
        return Lists(inside | up, outside)

    def _witness(self, view: View) -> int:
        """The arm that others are shown to be worse than."""
        return int(np.argmax(np.where(view.lists.outside, -np.inf, view.posterior.scores)))

    def _looks_good(self, view: View, witness: int) -> BoolArray:
        return np.asarray(view.posterior.leads(witness) <= view.epsilon + 0.5 * self.room(view.epsilon))
