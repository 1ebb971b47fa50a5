"""Settings that people type: refused with a sentence where they have no meaning."""

from __future__ import annotations

import math

from surepick.errors import InvalidInput


def as_number(name: str, value: object) -> float:
    """The value as a float, which may be NaN or infinite.

    Raises:
        InvalidInput: it is a text, a truth value, or no number at all.
    """
    if not isinstance(value, bool | str | bytes | complex):
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            pass
    raise InvalidInput(f"{name} is {value!r}; it must be a number.")


def positive_number(name: str, value: object, meaning: str) -> float:
    """The value as a positive finite float; `meaning` completes "NAME is VALUE; it must be positive: ..."."""
    number = as_number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise InvalidInput(f"{name} is {value!r}; it must be positive and finite: {meaning}")
    return number


def share_of_pulls(name: str, value: object) -> float:
    """The value as a share in [0, 1)."""
    number = as_number(name, value)
    if not 0.0 <= number < 1.0:
        raise InvalidInput(f"{name} is {value!r}; it must lie in [0, 1): a share of the pulls.")
    return number


def whole_number(name: str, value: object, *, least: int, meaning: str) -> int:
    """The value as an integer of at least `least`.

    Raises:
        InvalidInput: it is not whole, or too small.
    """
    number = as_number(name, value)
    if not (math.isfinite(number) and number == math.floor(number) and number >= least):
        raise InvalidInput(f"{name} is {value!r}; it must be a whole number, {least} or more: {meaning}")
    return int(number)


def not_negative(name: str, value: object, meaning: str) -> float:
    """The value as a finite float of at least 0."""
    number = as_number(name, value)
    if not (math.isfinite(number) and number >= 0):
        raise InvalidInput(f"{name} is {value!r}; it must be finite and not negative: {meaning}")
    return number
