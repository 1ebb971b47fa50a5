"""Questions from their names and options, and from plain data."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from inspect import isabstract
from typing import Any

from surepick.core.plugins import QUESTIONS, plugin, plugin_names
from surepick.errors import InvalidInput
from surepick.questions.above import Above
from surepick.questions.all_good import AllGood
from surepick.questions.best import BEST
from surepick.questions.feasible import BestFeasible, Constraint, parse_constraint
from surepick.questions.one_of_share import OneOf
from surepick.questions.protocol import Question
from surepick.questions.top_m import TopM
from surepick.text import did_you_mean, quoted

NAMES: Mapping[str, type[Any]] = {made.name: made for made in (Above, TopM, AllGood, OneOf, BestFeasible)}


def constraints_of(question: Question | None) -> tuple[Constraint, ...]:
    """On what else is measured beside the reward."""
    found: tuple[Constraint, ...] = getattr(question, "constraints", ())
    return found


def asked_of(question: Question | None, *, by_segment: bool) -> Question | None:
    """The question: the best of each segment is one of its 1 best."""
    return TopM(1) if question is None and by_segment else question


def number_of(problem: Any) -> float | None:
    """What number a problem's arms are compared with, in reward units; None: with each other, or with an arm."""
    number: float | None = None if problem.question is None else problem.question.number(problem)
    return None if number is None else number + getattr(problem.question, "by", 0.0)


def constraints_in(spec: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Those of a policy's stored spec."""
    given = (spec.get("question") or {}).get("constraints", ())
    return tuple(map(parse_constraint, given))


def parse_question(asked: Question | Mapping[str, Any] | str | None, options: Mapping[str, Any]) -> Question | None:
    """The question of a record, of its name and options, or of its spec."""
    if asked in (None, BEST):
        asked = next((name for name, made in NAMES.items() if options.get(made.implied_by)), asked)
    if isinstance(asked, str) and asked != BEST:
        return _made(asked, options)
    if options:
        raise InvalidInput(
            f"{', '.join(options)}: {'belongs' if len(options) == 1 else 'belong'} to a question by its name, e.g. "
            "question='top', m=5 (--question top --m 5)."
        )
    if asked is None or asked == BEST:
        return None
    if isinstance(asked, Mapping):
        given = dict(asked)
        return _made(given.pop("name", None), given)
    if not isinstance(asked, Question):
        raise InvalidInput(f"question is {quoted(asked)}; give one of {', '.join(question_names())}, or its record.")
    return asked


def _made(name: object, options: Mapping[str, Any]) -> Question:
    made = question_class(name)
    known = [each.name for each in fields(made)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        meant = did_you_mean(unknown[0], known)
        raise InvalidInput(f"question {name!r} has no option {unknown[0]!r}; it knows {', '.join(known)}.{meant}")
    for option, meaning in made.needs.items():
        if options.get(option) is None:
            raise InvalidInput(f"question {name!r} needs {option}: {meaning}")
    found: Question = made(**options)
    return found


def question_class(name: object) -> type[Any]:
    """The record of the question of this name, which is not "best"."""
    made = NAMES.get(str(name)) or own_question(name)
    if made is None:
        known = question_names()
        raise InvalidInput(f"question is {quoted(name)}; choose one of {', '.join(known)}.{did_you_mean(name, known)}")
    return made


def own_question(name: object) -> type[Any] | None:
    """The class of the question that an installed package adds under this name; None where none does, or it is ours."""
    found = None if name in (BEST, *NAMES) else plugin(QUESTIONS, name, type)
    if found is None:
        return None
    whole = issubclass(found, Question) and not isabstract(found)
    if not is_dataclass(found) or getattr(found, "name", None) != name or not whole:
        raise InvalidInput(
            f"{found.__name__} is no question {quoted(name)}: it must be a frozen dataclass of that name, with the "
            "methods of its base surepick.questions.Question."
        )
    return found


def own_fields(asked: object) -> tuple[str, ...]:
    """The options of a question of another package, given by its name; () of any other."""
    found = own_question(asked) if isinstance(asked, str) else None
    return () if found is None else tuple(each.name for each in fields(found))


def question_names() -> list[str]:
    """All names of questions, those of installed packages last."""
    return [BEST, *NAMES, *(name for name in plugin_names(QUESTIONS) if name not in NAMES)]


def question_name(question: Question | Mapping[str, Any] | str | None) -> str:
    """The name of a question, which may be given by its record, its spec or its name."""
    if isinstance(question, Mapping):
        return str(question.get("name"))
    found: object = getattr(question, "name", question or BEST)
    return found if isinstance(found, str) else quoted(found)


def question_spec(question: Question | None) -> dict[str, Any] | None:
    """Plain data that `parse_question` makes an equal question of; None for the best arm."""
    if question is None:
        return None
    return {"name": question.name, **{key: value for key, value in question.plain().items() if value is not None}}


QUESTION_OPTIONS = tuple(dict.fromkeys(each.name for made in NAMES.values() for each in fields(made)))


def of_question(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those of other questions than the one that they name: for whoever compares questions."""
    asked = options.get("question", BEST)
    made = NAMES.get(str(asked))
    own = own_fields(asked) if made is None else tuple(each.name for each in fields(made))
    named = "question" in options
    return {name: value for name, value in options.items() if not named or name in own or name not in QUESTION_OPTIONS}


def taken_question(options: dict[str, Any]) -> Question | None:
    """The question that the options ask; it takes its options out of them.

    `control` belongs to the question where there is one, and else to blocks.
    """
    asked = options.pop("question", None)
    names = dict.fromkeys((*QUESTION_OPTIONS, *own_fields(asked)))
    own = [name for name in names if name in options and (asked is not None or name != "control")]
    given = {name: value for name in own if (value := options.pop(name)) is not None}
    return parse_question(asked, given)
