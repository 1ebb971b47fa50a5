"""Questions of other packages."""

from typing import Any, ClassVar, Protocol, runtime_checkable

from surepick.core.records import BoolArray, FloatArray

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
