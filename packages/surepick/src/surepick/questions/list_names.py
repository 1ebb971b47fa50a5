"""What the lists of an answer are called, for readers who never saw the question."""

from surepick.core.records import record
from surepick.questions.own import OwnQuestion
from surepick.questions.records import Above, AllGood, BestFeasible, Question, TopM


@record
class ListNames:
    """Short names of the lists.

    Args:
        first: of the list of those that the question asks for.
        second: of the list of the others; "" where there is none.
        neither: of those on neither list when all is decided; "" where there are none.
    """

    first: str
    second: str
    neither: str = ""


def list_names(asked: Question, epsilon: float) -> ListNames:
    """The names of the lists of a question's answer."""
    if isinstance(asked, Above):
        by = f" by {asked.by:g}" if asked.by else ""
        if asked.control is None:
            return ListNames(
                f"above {asked.threshold:g}{by}", f"{'not above' if by else 'below'} {asked.threshold:g}{by}"
            )
        better, worse = f"better than {asked.control}{by}", "not better" if by else f"worse than {asked.control}"
        return ListNames(better, worse, "the control")
    if isinstance(asked, TopM):
        return ListNames("the best" if asked.m == 1 else f"the {asked.m} best", "the others")
    if isinstance(asked, AllGood):
        return ListNames(f"within {epsilon:g} of the best", "worse than that")
    if isinstance(asked, BestFeasible):
        return ListNames("the best that keeps the bounds", "the others")
    return (
        ListNames(*asked.called(epsilon), "not asked about")
        if isinstance(asked, OwnQuestion)
        else ListNames("recommended", "", "not recommended")
    )
