"""The question, where it is not which candidate is the best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from typer import Option

from surepick.cli.options import Goal
from surepick.cli.plugin_names import QUESTIONS
from surepick.policies.questions.words import guarantee_of, said
from surepick.questions import TopM, parse_constraint, taken_question


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What is asked of the candidates."""

    question: Annotated[
        str | None,
        Option(help=f"{QUESTIONS}: which is the best (usual), which are above, the m best, ..."),
    ] = None
    m: Annotated[int | None, Option(min=1, help="How many of the best (question top).")] = None
    threshold: Annotated[float | None, Option(help="What means are compared with (question above).")] = None
    by: Annotated[
        float | None, Option(help="How much above the threshold or the control is wanted (question above).")
    ] = None
    errors: Annotated[
        str | None,
        Option(
            help="family: no one at all is on a wrong list; discovery: a small share of each list may be, for fewer "
            "measurements (question above)."
        ),
    ] = None
    slack: Annotated[
        float | None, Option(help="How much worse than epsilon one on the list may be (question all-good).")
    ] = None

    share: Annotated[float | None, Option(help="One of the best share is wanted, e.g. 0.01 (question one-of).")] = None

    constraint: Annotated[
        list[str] | None,
        Option(
            metavar="TEXT",
            help="A bound on another measured column, repeatable: 'temp<=80', or, with its noise, "
            "'temp<=80, tolerance=0.5, noise=subgaussian:1'. The best that keeps it is wanted.",
        ),
    ] = None

    def measured_beside(self) -> tuple[str, ...]:
        """The columns that constraints are on."""
        return tuple(parse_constraint(text).name for text in self.constraint or ())

    def question_values(self) -> dict[str, list[Any]]:
        """The options of the question that were given; several questions where commas stand between them."""
        names = ("m", "threshold", "by", "errors", "slack", "share")
        found = {name: [value] for name in names if (value := getattr(self, name)) is not None}
        if self.constraint:
            found["constraints"] = [list(self.constraint)]
        asked = [word.strip() for word in (self.question or "").split(",") if word.strip()]
        return {"question": asked, **found} if asked else found

    def own_values(self) -> dict[str, Any]:
        """The options of a question of another package that were given."""
        return {}

    @property
    def asks_several(self) -> bool:
        """Whether questions are compared."""
        return len(self.question_values().get("question", [])) > 1

    def asked(self, goal: Goal, *, by_segment: bool = False) -> str:
        """The question, and what is promised of its answer, in words.

        Args:
            goal: how good the answer must be.
            by_segment: it is asked of each segment.
        """
        values = self.question_values()
        if self.asks_several:
            return f"{len(values['question'])} questions, each with epsilon {goal.epsilon:g} and delta {goal.delta:g}."
        given = {name: value for name, (value,) in values.items()} | self.own_values()
        question = taken_question({**given, "control": getattr(self, "control", None)})
        if question is None and by_segment:
            question = TopM(1)
        if question is None:
            return f"one {goal}."
        return " ".join((*said(question, goal.epsilon, by_segment=by_segment), guarantee_of(question, goal.delta)))
