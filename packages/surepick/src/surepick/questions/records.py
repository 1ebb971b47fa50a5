"""One record a question; None in a problem's place for one asks for one epsilon-best arm."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from surepick.core.random_streams import Chooser, settled_seed
from surepick.core.records import BoolArray, FloatArray, record
from surepick.core.values import check_choice, finite_number, positive_number, probability, storable_text, whole_number
from surepick.errors import InvalidInput
from surepick.questions.constraints import Constraint, parse_constraint

# --- Questions of other packages.

METHODS = ("inquiry", "nulls", "said", "called", "guarantee", "wrong")


@runtime_checkable
class OwnQuestion(Protocol):
    """A question of another package: a frozen dataclass whose fields, plain data, are its options.

    The entry point in `surepick.questions` gives the class, under the name that it has itself. The answer is two lists
    of candidates, of which the certified-* policies collect evidence, as docs/questions.md proves for our own.
    """

    name: ClassVar[str]

    def inquiry(self, problem: Any, delta: float) -> Any:
        """What is bet on, and when an arm is on a list: a `surepick.policies.questions.inquiries.Inquiry`.

        Args:
            problem: a `Problem`: `num_arms`, `epsilon`, `arms`; of rewards large ones are good.
            delta: what may be spent.

        Raises:
            InvalidInput: it has no meaning for these arms.
        """
        ...

    def nulls(self, num_arms: int) -> int:
        """How many false statements share delta, each of a difference of two means against a margin of epsilon: what
        measuring all equally often would cost is computed of it."""
        ...

    def said(self, epsilon: float) -> tuple[str, str, str]:
        """(the question, what is said of the first list, what is said of the second), in sentences."""
        ...

    def called(self, epsilon: float) -> tuple[str, str]:
        """(the first list, the second), each in some words for those who never saw the question: "above 3"."""
        ...

    def guarantee(self, delta: float) -> str:
        """How often any of it may be wrong, in a sentence."""
        ...

    def wrong(self, problem: Any, inside: BoolArray, outside: BoolArray, means: FloatArray) -> BoolArray:
        """The arms of whom the lists say what is not so, shape (K,), for whoever knows the means, shape (K,)."""
        ...


ERRORS = ("family", "discovery")
FLOATING_POINT = 1e-12


@record
class Above:
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

    threshold: float | None = None
    control: str | None = None
    by: float = 0.0
    errors: Literal["family", "discovery"] = "family"

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


@record
class TopM:
    """Which are the m best?

    Every arm of the list is at most epsilon worse than the m-th best arm.

    Raises:
        InvalidInput: m is no whole number, or below 1.
    """

    m: int  # how many, at least 1 and fewer than there are arms

    def __post_init__(self) -> None:
        meaning = "how many of the best are wanted."
        object.__setattr__(self, "m", whole_number("m", self.m, least=1, meaning=meaning))


@record
class AllGood:
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

    slack: float | None = None

    def __post_init__(self) -> None:
        if self.slack is not None:
            meaning = "how much worse than epsilon an arm on the list may be."
            object.__setattr__(self, "slack", positive_number("slack", self.slack, meaning))


@record
class OneOf:
    """Which arm is within epsilon of one of the best share of the list?

    The price does not grow with the list: only a random sample of it is compared.

    Args:
        share: of the list, in (0, 1), e.g. .01: the best per cent.
        sample_seed: of the draw. None: it is drawn now, so that whoever made the list cannot know it.
        sample_seed_by: "program" or "user", who chose it, as a study has stored it; None: whoever gives it.

    Raises:
        InvalidInput: share is not between 0 and 1, or sample_seed no whole number.
    """

    share: float
    sample_seed: int = 0
    sample_seed_by: Chooser = "user"

    def __init__(self, share: float, sample_seed: int | None = None, sample_seed_by: Chooser | None = None) -> None:
        object.__setattr__(self, "share", probability("share", share, "of the list, e.g. 0.01 for the best per cent."))
        seed, by = settled_seed("sample_seed", sample_seed, sample_seed_by, "of the draw.")
        object.__setattr__(self, "sample_seed", seed)
        object.__setattr__(self, "sample_seed_by", by)

    def best_of(self, num_arms: int) -> int:
        """How many arms of a list its best share is: rounded up, but not for what floating point adds (.07 of 100)."""
        return math.ceil(self.share * num_arms * (1.0 - FLOATING_POINT))


@record
class BestFeasible:
    """Which arm is the best of those that keep some bounds?

    The answer keeps each bound but for its tolerance, and is at most epsilon worse than any arm that keeps all bounds;
    or no arm keeps them.

    Raises:
        InvalidInput: there is none, or two have the same name.
    """

    constraints: tuple[Constraint, ...]  # `Constraint` records, or their texts

    def __init__(self, constraints: Constraint | str | Sequence[Constraint | str]) -> None:
        alone = isinstance(constraints, str) or not isinstance(constraints, Sequence)
        given: list[Any] = [constraints] if alone else [*constraints]  # type: ignore[misc]
        found = tuple(one if isinstance(one, Constraint) else parse_constraint(one) for one in given)
        names = [one.name for one in found]
        if not found:
            raise InvalidInput("question 'feasible' needs constraints, e.g. 'temperature<=80'.")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidInput(
                f"two constraints are on {twice!r}, and a column takes one. For a range, e.g. 14 <= x <= 16, put the "
                "second bound on a copy of the column that has another name."
            )
        object.__setattr__(self, "constraints", found)


Question = Above | TopM | AllGood | OneOf | BestFeasible | OwnQuestion
BEST = "best"  # the name of the usual question, which has no record
NAMES: Mapping[str, type[Any]] = {
    "above": Above,
    "top": TopM,
    "all-good": AllGood,
    "one-of": OneOf,
    "feasible": BestFeasible,
}
OF_MANY = ("above", "top", "all-good")  # whose answers are lists of many arms
LISTED = (*OF_MANY, "feasible")  # whose answers are lists
