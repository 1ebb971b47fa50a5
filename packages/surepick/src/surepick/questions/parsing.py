"""Questions from their names and options, and from plain data."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from surepick.core.plugins import QUESTIONS, plugin, plugin_names
from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.questions import records
from surepick.questions.constraints import Constraint, parse_constraint
from surepick.text import did_you_mean, quoted


def constraints_of(question: records.Question | None) -> tuple[Constraint, ...]:
    """On what else is measured beside the reward."""
    return question.constraints if isinstance(question, records.BestFeasible) else ()


def number_of(problem: Any) -> float | None:
    """What number a problem's arms are compared with, in reward units; None: with each other, or with an arm."""
    asked = problem.question
    if isinstance(asked, records.OwnQuestion):
        found: float | None = asked.inquiry(problem, problem.delta).number
        return found
    return asked.threshold + asked.by if isinstance(asked, records.Above) and asked.threshold is not None else None


def constraints_in(spec: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Those of a policy's stored spec."""
    given = (spec.get("question") or {}).get("constraints", ())
    return tuple(map(parse_constraint, given))


def parse_question(
    asked: records.Question | Mapping[str, Any] | str | None, options: Mapping[str, Any]
) -> records.Question | None:
    """The question of a record, of its name and options, or of its spec."""
    if asked in (None, records.BEST) and options.get("constraints"):
        asked = "feasible"
    if isinstance(asked, str) and asked != records.BEST:
        return _made(asked, options)
    if options:
        raise InvalidInput(
            f"{', '.join(options)}: {'belongs' if len(options) == 1 else 'belong'} to a question by its name, e.g. "
            "question='top', m=5 (--question top --m 5)."
        )
    if asked is None or asked == records.BEST:
        return None
    if isinstance(asked, Mapping):
        given = dict(asked)
        return _made(given.pop("name", None), given)
    if isinstance(asked, type) or not isinstance(
        asked, (records.Above, records.TopM, records.AllGood, records.OneOf, records.BestFeasible, records.OwnQuestion)
    ):
        raise InvalidInput(f"question is {quoted(asked)}; give one of {', '.join(question_names())}, or its record.")
    return asked


def _made(name: object, options: Mapping[str, Any]) -> records.Question:
    made = question_class(name)
    known = [each.name for each in fields(made)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise InvalidInput(f"question {name!r} has no option {unknown[0]!r}; it knows {', '.join(known)}.{meant}")
    if made is records.OneOf and options.get("share") is None:
        raise InvalidInput("question 'one-of' needs share: of the list, e.g. 0.01 for one of the best per cent.")
    if made is records.TopM and options.get("m") is None:
        raise InvalidInput("question 'top' needs m: how many of the best are wanted.")
    if made is records.BestFeasible and not options.get("constraints"):
        raise InvalidInput(
            "question 'feasible' needs constraints, e.g. 'temperature<=80' (--constraint 'temperature<=80')."
        )
    found: records.Question = made(**options)
    return found


def question_class(name: object) -> type[Any]:
    """The record of the question of this name, which is not "best"."""
    made = records.NAMES.get(str(name)) or own_question(name)
    if made is None:
        known = question_names()
        raise InvalidInput(f"question is {quoted(name)}; choose one of {', '.join(known)}.{did_you_mean(name, known)}")
    return made


def own_question(name: object) -> type[Any] | None:
    """The class of the question that an installed package adds under this name; None where none does, or it is ours."""
    found = None if name in (records.BEST, *records.NAMES) else plugin(QUESTIONS, name, type)
    if found is None:
        return None
    whole = all(callable(getattr(found, each, None)) for each in records.METHODS)
    if not is_dataclass(found) or getattr(found, "name", None) != name or not whole:
        raise InvalidInput(
            f"{found.__name__} is no question {quoted(name)}: it must be a frozen dataclass of that name with the "
            "methods of surepick.questions.OwnQuestion."
        )
    return found


def own_fields(asked: object) -> tuple[str, ...]:
    """The options of a question of another package, given by its name; () of any other."""
    found = own_question(asked) if isinstance(asked, str) else None
    return () if found is None else tuple(each.name for each in fields(found))


def question_names() -> list[str]:
    """All names of questions, those of installed packages last."""
    return [records.BEST, *records.NAMES, *(name for name in plugin_names(QUESTIONS) if name not in records.NAMES)]


def question_name(question: records.Question | Mapping[str, Any] | str | None) -> str:
    """The name of a question, which may be given by its record, its spec or its name."""
    if isinstance(question, Mapping):
        return str(question.get("name"))
    if isinstance(question, str):
        return question
    if isinstance(question, records.OwnQuestion):
        return question.name
    return next((name for name, made in records.NAMES.items() if isinstance(question, made)), records.BEST)


def question_spec(question: records.Question | None) -> dict[str, Any] | None:
    """Plain data that `parse_question` makes an equal question of; None for the best arm."""
    if question is None:
        return None
    held = {each.name: getattr(question, each.name) for each in fields(question)}  # type: ignore[arg-type]
    if isinstance(question, records.BestFeasible):
        held["constraints"] = [one.text for one in question.constraints]
    return {"name": question_name(question), **{key: value for key, value in held.items() if value is not None}}


QUESTION_OPTIONS = tuple(dict.fromkeys(each.name for made in records.NAMES.values() for each in fields(made)))


def of_question(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those of other questions than the one that they name: for whoever compares questions."""
    asked = options.get("question", records.BEST)
    made = records.NAMES.get(str(asked))
    own = own_fields(asked) if made is None else tuple(each.name for each in fields(made))
    named = "question" in options
    return {name: value for name, value in options.items() if not named or name in own or name not in QUESTION_OPTIONS}


def taken_question(options: dict[str, Any]) -> records.Question | None:
    """The question that the options ask; it takes its options out of them.

    `control` belongs to the question where there is one, and else to blocks.
    """
    asked = options.pop("question", None)
    names = dict.fromkeys((*QUESTION_OPTIONS, *own_fields(asked)))
    own = [name for name in names if name in options and (asked is not None or name != "control")]
    given = {name: value for name in own if (value := options.pop(name)) is not None}
    return parse_question(asked, given)


# --- What the lists of an answer are called, for readers who never saw the question.


@record
class ListNames:
    """Short names of the lists."""

    first: str  # of the list of those that the question asks for
    second: str  # of the list of the others; "" where there is none
    neither: str = ""  # of those on neither list when all is decided; "" where there are none


def list_names(asked: records.Question, epsilon: float) -> ListNames:
    """The names of the lists of a question's answer."""
    if isinstance(asked, records.Above):
        by = f" by {asked.by:g}" if asked.by else ""
        if asked.control is None:
            return ListNames(
                f"above {asked.threshold:g}{by}", f"{'not above' if by else 'below'} {asked.threshold:g}{by}"
            )
        better, worse = f"better than {asked.control}{by}", "not better" if by else f"worse than {asked.control}"
        return ListNames(better, worse, "the control")
    if isinstance(asked, records.TopM):
        return ListNames("the best" if asked.m == 1 else f"the {asked.m} best", "the others")
    if isinstance(asked, records.AllGood):
        return ListNames(f"within {epsilon:g} of the best", "worse than that")
    if isinstance(asked, records.BestFeasible):
        return ListNames("the best that keeps the bounds", "the others")
    return (
        ListNames(*asked.called(epsilon), "not asked about")
        if isinstance(asked, records.OwnQuestion)
        else ListNames("recommended", "", "not recommended")
    )
