"""Leases: their keys, how long they last, and the only clock of the library."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from surepick.errors import InvalidInput
from surepick.text import quoted

Clock = Callable[[], float]
ANYONE = "anyone"
KEY = re.compile(r"p([1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})@(.*)", re.DOTALL)  # as it is written, so that each is one
LONGEST = 3.2e9  # seconds, a century: times beyond it have no date
BEYOND = (OSError, OverflowError, ValueError)  # what a damaged time causes, each on another platform
NO_TIME = "a time of no calendar"
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def system_clock() -> float:
    """Seconds since 1970 (UTC), as this machine sees them."""
    return time.time()


def parse_duration(text: str | float) -> float:
    """Seconds of a duration: "90s", "15m", "8h", "2d", "1w", "1h30m", or a number (not a text) of seconds.

    Raises:
        InvalidInput: it is none of these, or not positive, or longer than a century.
    """
    if isinstance(text, str):
        whole = text.strip().lower()
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhdw])", whole)
        if parts and "".join(number + unit for number, unit in parts) == whole:
            seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
        else:
            seconds = math.nan  # a number without a unit could be hours or seconds
    else:
        seconds = _plain(text)
    if not 0 < seconds <= LONGEST:
        raise InvalidInput(f"{quoted(text)} is not a duration; write a positive one, e.g. 30m, 8h, 2d or 1h30m.")
    return seconds


def _plain(text: str | float) -> float:
    try:
        return float(text)
    except (OverflowError, TypeError, ValueError):
        return math.nan


def format_time(seconds: float) -> str:
    """A time as people of this machine's time zone write it, to the minute."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M %Z").strip()
    except BEYOND:
        return NO_TIME


def to_the_minute(seconds: float) -> str:
    """A time in UTC, to the minute: the same text on every machine.

    Raises:
        ValueError: no calendar has that time.
    """
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M UTC")


def format_utc(seconds: float) -> str:
    """A time in UTC, ISO 8601, to the microsecond."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    except BEYOND:
        return NO_TIME


def read_key(key: str, name: str) -> tuple[int, int] | None:
    """(plan, ordinal) of the key of a leased pull of the arm of that name; None for a key of the user's own.

    Raises:
        InvalidInput: it is the key of another arm.
    """
    found = KEY.fullmatch(key)
    if found is None:
        return None
    if found[3] != name:
        raise InvalidInput(
            f"key {key!r} is of a measurement of {found[3]!r}, and the result is told as one of {name!r}: the columns "
            "of the table may have been moved against each other. Nothing of this call was stored."
        )
    return int(found[1]), int(found[2])
