"""What is asked of the candidates, beside "which one is the best": one record a question.

Each question is answered by lists, and says in `problem` units what its answer promises. docs/questions.md has the
proofs. A policy's problem holds the question; None there asks for one epsilon-best arm.
"""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from surepick.core.arrays import record
from surepick.core.validation import (
    check_choice,
    finite_number,
    not_negative,
    positive_number,
    probability,
    storable_text,
    whole_number,
)
from surepick.errors import InvalidInput
from surepick.noise import Noise, known_scale, parse_noise
from surepick.text import quoted

ERRORS = ("family", "discovery")
FLOATING_POINT = 1e-12
RESERVED = ("id", "key", "reward", "item", "pulls", "sum", "squares")  # columns of results


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

    Args:
        m: how many, at least 1 and fewer than there are arms.

    Raises:
        InvalidInput: m is no whole number, or below 1.
    """

    m: int

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

    Raises:
        InvalidInput: share is not between 0 and 1, or sample_seed no whole number.
    """

    share: float
    sample_seed: int = 0

    def __init__(self, share: float, sample_seed: int | None = None) -> None:
        object.__setattr__(self, "share", probability("share", share, "of the list, e.g. 0.01 for the best per cent."))
        drawn = secrets.randbelow(MOST_SEED) if sample_seed is None else sample_seed
        object.__setattr__(self, "sample_seed", whole_number("sample_seed", drawn, least=0, meaning="of the draw."))

    def best_of(self, num_arms: int) -> int:
        """How many arms of a list its best share is: rounded up, but not for what floating point adds (.07 of 100)."""
        return math.ceil(self.share * num_arms * (1.0 - FLOATING_POINT))


@record
class Constraint:
    """A quantity that is measured beside the reward, and whose mean has a bound.

    Args:
        name: of the quantity, and of its column in tables.
        bound: b, in its own units.
        at_most: the mean is to be at most b; False: at least b.
        tolerance: the answer's mean may be beyond b by this much, in the quantity's units. > 0 where there is noise.
        noise: what is assumed of a measurement of it; None: it has no noise, so that one measurement tells it.

    Raises:
        InvalidInput: a value has no meaning, or there is noise of unknown scale, or without tolerance.
    """

    name: str
    bound: float
    at_most: bool = True
    tolerance: float = 0.0
    noise: Noise | None = None

    def __post_init__(self) -> None:
        name = storable_text("the name of a constraint", self.name).strip()
        if not name or any(mark in name for mark in "<>=,"):
            raise InvalidInput(f"a constraint's name is {quoted(self.name)}; it is a column's, without < > = or comma.")
        if name in RESERVED:
            raise InvalidInput(
                f"a constraint cannot be on {name!r}: tables of results have another column of that name."
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bound", finite_number(f"the bound of {name}", self.bound))
        object.__setattr__(self, "at_most", bool(self.at_most))
        object.__setattr__(
            self, "tolerance", not_negative("tolerance", self.tolerance, f"how far beyond {name} may be.")
        )
        if isinstance(self.noise, str):
            object.__setattr__(self, "noise", parse_noise(self.noise))
        if self.noise is None:
            return
        if not known_scale(self.noise):
            raise InvalidInput(
                f"noise {self.noise.spec!r} of {name} names no scale, and a constraint needs one: subgaussian:SIGMA, "
                "bounded:LOW:HIGH or bernoulli."
            )
        if self.tolerance <= 0.0:
            raise InvalidInput(
                f"the constraint on {name} has noise and no tolerance: a mean right at the bound would be measured for "
                f"ever. Say how far beyond the bound the answer may be: {name}{self.sign}{self.bound:g},tolerance=..."
            )

    @property
    def sign(self) -> str:
        """Of the inequality."""
        return "<=" if self.at_most else ">="

    @property
    def text(self) -> str:
        """From which `parse_constraint` makes it again."""
        tolerance = f",tolerance={self.tolerance!r}" if self.tolerance else ""
        noise = "" if self.noise is None else f",noise={self.noise.spec}"
        return f"{self.name}{self.sign}{self.bound!r}{tolerance}{noise}"

    def __str__(self) -> str:
        return f"{self.name} {'at most' if self.at_most else 'at least'} {self.bound:g}"

    @property
    def relaxed(self) -> str:
        """What holds of the answer, in words."""
        bound = self.bound + (self.tolerance if self.at_most else -self.tolerance)
        return f"{self.name} {'at most' if self.at_most else 'at least'} {bound:g}"


def parse_constraint(text: object) -> Constraint:
    """A constraint from its text, e.g. "temperature<=80,tolerance=0.5,noise=subgaussian:1.2".

    Raises:
        InvalidInput: it is no such text.
    """
    found = re.fullmatch(r"([^<>=,]+)(<=|>=)([^,]+)((?:,.*)?)", text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(
            f"constraint {quoted(text)} is not understood; write e.g. 'temperature<=80' or "
            "'temperature<=80,tolerance=0.5,noise=subgaussian:1.2'."
        )
    name, sign, bound, rest = found.groups()
    given: dict[str, str] = {}
    for word in rest.lstrip(",").split(",") if rest else []:
        key, equals, value = word.partition("=")
        if not equals and given:  # a comma inside of the noise
            given["noise"] = f"{given.get('noise', '')},{word}"
            continue
        if key.strip() not in ("tolerance", "noise") or key.strip() in given:
            raise InvalidInput(f"constraint {quoted(text)}: {quoted(word)} is neither tolerance=... nor noise=...")
        given[key.strip()] = value.strip()
    noise = given.get("noise")
    return Constraint(
        name.strip(),
        _number(text, bound),
        sign == "<=",
        _number(text, given.get("tolerance", "0")),
        None if noise is None else parse_noise(noise),
    )


def _number(text: object, word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InvalidInput(f"constraint {quoted(text)}: {quoted(word)} is no number.") from error


@record
class BestFeasible:
    """Which arm is the best of those that keep some bounds?

    The answer keeps each bound but for its tolerance, and is at most epsilon worse than any arm that keeps all bounds;
    or no arm keeps them.

    Args:
        constraints: `Constraint` records, or their texts.

    Raises:
        InvalidInput: there is none, or two have the same name.
    """

    constraints: tuple[Constraint, ...]

    def __init__(self, constraints: Constraint | str | Sequence[Constraint | str]) -> None:
        alone = isinstance(constraints, str) or not isinstance(constraints, Sequence)
        given: list[Any] = [constraints] if alone else [*constraints]  # type: ignore[misc]
        found = tuple(one if isinstance(one, Constraint) else parse_constraint(one) for one in given)
        names = [one.name for one in found]
        if not found:
            raise InvalidInput("question 'feasible' needs constraints, e.g. 'temperature<=80'.")
        if len(set(names)) < len(names):
            raise InvalidInput(f"two constraints are on {next(n for n in names if names.count(n) > 1)!r}; give one.")
        object.__setattr__(self, "constraints", found)


Question = Above | TopM | AllGood | OneOf | BestFeasible
BEST = "best"  # the name of the usual question, which has no record
NAMES: Mapping[str, type[Any]] = {
    "above": Above,
    "top": TopM,
    "all-good": AllGood,
    "one-of": OneOf,
    "feasible": BestFeasible,
}
MOST_SEED = 2**32
OF_MANY = ("above", "top", "all-good")  # whose answers are lists of many arms
LISTED = (*OF_MANY, "feasible")  # whose answers are lists


def constraints_of(question: Question | None) -> tuple[Constraint, ...]:
    """On what else is measured beside the reward."""
    return question.constraints if isinstance(question, BestFeasible) else ()


def constraints_in(spec: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Those of a policy's stored spec."""
    given = (spec.get("question") or {}).get("constraints", ())
    return tuple(map(parse_constraint, given))


def parse_question(asked: Question | Mapping[str, Any] | str | None, options: Mapping[str, Any]) -> Question | None:
    """The question of a record, of its name and options, or of its spec.

    Args:
        asked: a record, its name, its `question_spec`, or None: which arm is the best.
        options: fields of the record where only its name is given.

    Raises:
        InvalidInput: there is no such question, or it has no such option.
    """
    if asked in (None, BEST) and options.get("constraints"):
        asked = "feasible"
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
    if not isinstance(asked, (Above, TopM, AllGood, OneOf, BestFeasible)):
        raise InvalidInput(f"question is {quoted(asked)}; give one of {', '.join([BEST, *NAMES])}, or its record.")
    return asked


def _made(name: object, options: Mapping[str, Any]) -> Question:
    if name not in NAMES:
        raise InvalidInput(f"question is {quoted(name)}; choose one of {', '.join([BEST, *NAMES])}.")
    made = NAMES[str(name)]
    known = [each.name for each in fields(made)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InvalidInput(f"question {name!r} has no option {unknown[0]!r}; it knows {', '.join(known)}.")
    if made is OneOf and options.get("share") is None:
        raise InvalidInput("question 'one-of' needs share: of the list, e.g. 0.01 for one of the best per cent.")
    if made is TopM and options.get("m") is None:
        raise InvalidInput("question 'top' needs m: how many of the best are wanted.")
    if made is BestFeasible and not options.get("constraints"):
        raise InvalidInput("question 'feasible' needs constraints, e.g. constraints=['temperature<=80'].")
    found: Question = made(**options)
    return found


def question_name(question: Question | Mapping[str, Any] | str | None) -> str:
    """The name of a question, which may be given by its record, its spec or its name: one of `NAMES`, or "best"."""
    if isinstance(question, Mapping):
        return str(question.get("name"))
    if isinstance(question, str):
        return question
    return next((name for name, made in NAMES.items() if isinstance(question, made)), BEST)


def question_spec(question: Question | None) -> dict[str, Any] | None:
    """Plain data that `parse_question` makes an equal question of; None for the best arm."""
    if question is None:
        return None
    held = {each.name: getattr(question, each.name) for each in fields(question)}
    if isinstance(question, BestFeasible):
        held["constraints"] = [one.text for one in question.constraints]
    return {"name": question_name(question), **{key: value for key, value in held.items() if value is not None}}


QUESTION_OPTIONS = tuple(dict.fromkeys(each.name for made in NAMES.values() for each in fields(made)))


def of_question(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options without those of other questions than the one that they name: for whoever compares questions."""
    made = NAMES.get(str(options.get("question", "best")))
    own = () if made is None else tuple(each.name for each in fields(made))
    named = "question" in options
    return {name: value for name, value in options.items() if not named or name in own or name not in QUESTION_OPTIONS}


def taken_question(options: dict[str, Any]) -> Question | None:
    """The question that the options ask; it takes its options out of them.

    `control` belongs to the question where there is one, and else to blocks.

    Raises:
        InvalidInput: as `parse_question`.
    """
    asked = options.pop("question", None)
    own = [name for name in QUESTION_OPTIONS if name in options and (asked is not None or name != "control")]
    given = {name: value for name in own if (value := options.pop(name)) is not None}
    return parse_question(asked, given)
