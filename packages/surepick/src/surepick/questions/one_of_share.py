"""Which arm is one of the best share of a list? A random sample of it is all that has to be compared."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from surepick.core.random_streams import Chooser, settled_seed, stream
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.core.values import probability
from surepick.errors import ContractError
from surepick.questions import protocol
from surepick.questions.best import WANTED
from surepick.questions.protocol import ListNames, Question, View, settable

FLOATING_POINT = 1e-12


@record
class OneOf(Question):
    """Which arm is within epsilon of one of the best share of the list?

    The price does not grow with the list: only a random sample of it is compared.

    Args:
        share: of the list, in (0, 1), e.g. .01: the best per cent.
        sample_seed: of the draw. None: it is drawn now, so that whoever made the list cannot know it.
        sample_seed_by: "program" or "user", who chose it, as a study has stored it; None: whoever gives it.

    Raises:
        InvalidInput: share is not between 0 and 1, or sample_seed no whole number.
    """

    share: float = settable("One of the best share is wanted, e.g. 0.01 (question one-of).", float)
    sample_seed: int = 0
    sample_seed_by: Chooser = "user"
    name: ClassVar[str] = "one-of"
    needs: ClassVar[Mapping[str, str]] = {"share": "of the list, e.g. 0.01 for the best per cent."}
    listed: ClassVar[bool] = False
    wanted: ClassVar[str] = WANTED

    def __init__(self, share: float, sample_seed: int | None = None, sample_seed_by: Chooser | None = None) -> None:
        object.__setattr__(self, "share", probability("share", share, self.needs["share"]))
        seed, by = settled_seed("sample_seed", sample_seed, sample_seed_by, "of the draw.")
        object.__setattr__(self, "sample_seed", seed)
        object.__setattr__(self, "sample_seed_by", by)

    def best_of(self, num_arms: int) -> int:
        """How many arms of a list its best share is: rounded up, but not for what floating point adds (.07 of 100)."""
        return math.ceil(self.share * num_arms * (1.0 - FLOATING_POINT))

    def sample_size(self, num_arms: int, delta: float) -> int:
        """n, the least with (1 - t/K)^n <= delta/2, or K - t + 1 if that is fewer, for the best t = share K arms."""
        best = self.best_of(num_arms)
        number = num_arms - best + 1
        if best == num_arms:
            return number
        return min(number, math.ceil(math.log(delta / 2.0) / math.log1p(-best / num_arms)))

    def sample(self, num_arms: int, delta: float) -> IntArray:
        """The arms that are compared, ascending: with probability at least 1 - delta/2 one of the best t is among them.

        Without replacement a sample misses the best t less often than (1 - t/K)^n; K - t + 1 arms cannot miss them.

        Source: docs/questions.md, line 10.
        """
        drawn = stream(self.sample_seed, "one-of").permutation(num_arms)[: self.sample_size(num_arms, delta)]
        return np.sort(drawn)

    def asked(self, problem: Any) -> BoolArray:
        return np.zeros(problem.num_arms, bool)

    def bets(self, view: View) -> Any:  # noqa: ARG002
        raise ContractError("one of the best share is the best of a sample, which another question asks for.")

    aims = decided = bets

    def even_pulls(self, problem: Any, sigma: float, sizes: Sequence[int]) -> int:  # noqa: ARG002
        number, delta = self.sample_size(problem.num_arms, problem.delta), problem.delta / 2.0
        return number * protocol.pulls_of_each(2.0 * sigma**2, self.nulls(number), problem.epsilon, delta)

    def said(self, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:  # noqa: ARG002
        best = f"the best {100.0 * self.share:g}% of the list"
        return (
            f"Which candidate is one of {best}?",
            f"The one on the first list is at most {epsilon:g} worse than one of {best}.",
            "There is no second list.",
        )

    def called(self, epsilon: float) -> ListNames:  # noqa: ARG002
        return ListNames("recommended", "", "not recommended")

    def reason(self, number: int, epsilon: float) -> str:  # noqa: ARG002
        return f"No other candidate of the sample can be better by more than {epsilon:.4g}."

    def borders(self, problem: Any, means: FloatArray) -> tuple[float, float]:
        return float(np.sort(means)[-self.best_of(len(means))]) - problem.epsilon, np.inf
