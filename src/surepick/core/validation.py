"""Settings that people type: we refuse those without a meaning, in a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from surepick.core.values import is_absent, listed, name_text, plain_number, reason
from surepick.errors import InvalidInput
from surepick.text import did_you_mean, quoted

LARGEST_WHOLE = 2**53  # beyond it not every whole number is a float
LEAST_SLACK = 1e-6  # with less, rounding takes more pulls than anybody has
CERTAINTY = 1e-6  # a probability that is nearer to 1 promises nothing
SMALLEST, LARGEST = 1e-100, 1e100  # what can be squared, and the square multiplied and divided by, as a float
MOST_SCALES = 1e50  # of noise to a tolerance: their square, times what a study has of it, is a float
LARGEST_REWARD = 1e50  # a value beyond it leaves what numbers can hold once its square is squared and added up


def as_number(name: str, value: object) -> float:
    """The value as a float, which may be NaN or infinite.

    Raises:
        InvalidInput: it is a text, a truth value, no number at all, or one of more digits than a float can hold.
    """
    try:
        number = plain_number(value)
    except OverflowError as error:
        raise InvalidInput(f"{name} is {quoted(value)}; numbers here go up to 1.8e308.") from error
    if number is None:
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a number.")
    return number


def _checked(name: str, value: object, holds: Callable[[float], bool], must: str) -> float:
    number = as_number(name, value)
    if not holds(number):
        raise InvalidInput(f"{name} is {quoted(value)}; it must {must}")
    return number


def finite_number(name: str, value: object) -> float:
    """The value as a finite float; any other is `InvalidInput`."""
    return _checked(name, value, math.isfinite, "be finite.")


def positive_number(name: str, value: object, meaning: str) -> float:
    """The value as a positive finite float; any other is `InvalidInput`, whose message ends with `meaning`."""
    return _checked(name, value, lambda number: 0.0 < number < math.inf, f"be positive and finite: {meaning}")


def not_negative(name: str, value: object, meaning: str) -> float:
    """The value as a finite float of at least 0; any other is `InvalidInput`, whose message ends with `meaning`."""
    return _checked(name, value, lambda number: 0.0 <= number < math.inf, f"be finite and not negative: {meaning}")


def probability(name: str, value: object, meaning: str) -> float:
    """The value as a float in (0, 1), at least 1e-100 and at most 1 - 1e-6; any other is `InvalidInput`, whose message
    ends with `meaning`."""
    number = _checked(name, value, lambda number: 0.0 < number < 1.0, f"lie strictly between 0 and 1: {meaning}")
    if not SMALLEST <= number <= 1.0 - CERTAINTY:
        raise InvalidInput(
            f"{name} is {quoted(value)}; below {SMALLEST:g} or above 1 - {CERTAINTY:g} nothing can be computed or "
            f"promised: {meaning}"
        )
    return number


def share_of_pulls(name: str, value: object) -> float:
    """The value as a share in [0, 1); any other is `InvalidInput`."""
    return _checked(name, value, lambda number: 0.0 <= number < 1.0, "lie in [0, 1): a share of the pulls.")


def check_slack(slack: object) -> None:
    """Refuse a slack of rounding outside (0, 1] with `InvalidInput`."""
    _checked(
        "slack",
        slack,
        lambda number: LEAST_SLACK <= number <= 1.0,
        f"lie in (0, 1], and be at least {LEAST_SLACK:g}: what rounding to whole pulls may cost.",
    )


def check_size(name: str, *numbers: float) -> None:
    """Refuse positive numbers that cannot be computed with.

    Raises:
        InvalidInput: one is below 1e-100 or above 1e100, so that its square may leave
            the range of floats.
    """
    for number in map(float, numbers):  # a small kind of NumPy cannot be compared with 1e100
        if not SMALLEST <= number <= LARGEST:
            raise InvalidInput(
                f"{name} is {number:g}; no float holds the square that we compute with. Take another unit, so that it "
                f"lies between {SMALLEST:g} and {LARGEST:g}."
            )


def check_reach(name: str, tolerance: float, scale: float) -> None:
    """Refuse a tolerance that no number of measurements reaches.

    Args:
        name: of the tolerance.
        tolerance: in reward units, positive.
        scale: of the noise, in the same units.

    Raises:
        InvalidInput: the noise is 1e50 times as large, so that the square of this, how many measurements it takes, may
            leave the range of floats.
    """
    if scale > MOST_SCALES * tolerance:
        raise InvalidInput(
            f"{name} is {tolerance:g} and the noise has scale {scale:g}; nobody can measure so often. State both "
            "in the unit of the measurements."
        )


def whole_number(name: str, value: object, *, least: int, meaning: str) -> int:
    """The value as an integer of at least `least`.

    Raises:
        InvalidInput: it is not whole, too small, or above 2^53.
    """
    number = as_number(name, value)
    exact = value if isinstance(value, int) else number  # a float cannot tell 2^53 + 1 from 2^53
    if exact > LARGEST_WHOLE and math.isfinite(number):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a whole number from {least} to 2^53: {meaning}")
    if not (math.isfinite(number) and number == math.floor(number) and number >= least):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a whole number, {least} or more: {meaning}")
    return int(number)


def text_of(name: str, value: object) -> str:
    """The value as a text.

    Raises:
        InvalidInput: it has none: an integer of more digits than Python writes, or a broken class.
    """
    try:
        return str(value)
    except Exception as error:  # a stranger's class may raise anything
        raise InvalidInput(f"{name} cannot be written as a text: {reason(error)}. Give a text.") from error


def storable_text(name: str, value: object) -> str:
    """The value as a text that files and databases can hold.

    Raises:
        InvalidInput: it is no text, or holds a zero byte or half of a character.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a text.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} holds {quoted(value[error.start])}, half of a character: it is made of bytes that are not "
            "UTF-8, which no file and no database can hold. Type it, or read the table, anew with its right encoding."
        ) from error
    if "\0" in value:
        raise InvalidInput(f"{name} holds a zero byte, which no database can hold. Remove it.")
    return value


def texts_of(what: str, values: Sequence[object]) -> tuple[str, ...]:
    """The values as texts.

    Raises:
        InvalidInput: they are no sequence, one is missing (None, NaN: it would become the text "nan" or "None"), or
            has no text of its own.
    """
    given = listed(what, values)
    missing = [row for row, one in enumerate(given) if type(one) not in (str, int) and is_absent(one)]
    if missing:
        raise InvalidInput(
            f"{len(missing)} of {len(given)} {what} are missing: the first is {quoted(given[missing[0]])}, in place "
            f"{missing[0]}. We could not report on it without a name; give it one."
        )
    return tuple(name_text(f"one of the {what}", value) for value in given)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is none of the known ones.

    Raises:
        InvalidInput: it is none; they are listed.
    """
    if not isinstance(value, str) or value not in known:
        meant = did_you_mean(value, known)
        raise InvalidInput(f"{name} is {quoted(value)}; choose one of {', '.join(map(repr, known))}.{meant}")
