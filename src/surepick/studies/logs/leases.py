"""Leases: who measures what and until when, the keys of their pulls, and the only clock of the library."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from surepick.core.arrays import record
from surepick.core.values import plain_number
from surepick.errors import InvalidInput
from surepick.text import quoted

Clock = Callable[[], float]
ANYONE = "anyone"
LONGEST_TEXT = 100  # characters of a duration
LONGEST = 3.2e9  # seconds, a century: times beyond it have no date
BEYOND = (OSError, OverflowError, ValueError)  # what a damaged time causes, each on another platform
NO_TIME = "a time of no calendar"
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@record
class Lease:
    """Who measures a part of a plan, and until when it is theirs.

    Args:
        number: serial number of the lease among those of the plan, from 1.
        plan: number of the plan in its study, from 1.
        worker: who measures.
        until: seconds since 1970 (UTC); what is missing then is offered to others.
    """

    number: int
    plan: int
    worker: str
    until: float


def pull_key(plan: int, ordinal: int, name: str) -> str:
    """The key of one leased pull of the arm of that name."""
    return f"p{plan}.{ordinal}@{name}"


def system_clock() -> float:
    """Seconds since 1970 (UTC), as this machine sees them."""
    return time.time()


def parse_duration(text: str | float) -> float:
    """Seconds of a duration: "90s", "15m", "8h", "2d", "1w", "1h30m", or a number (not a text) of seconds.

    Raises:
        InvalidInput: it is none of these, or not positive, or longer than a century.
    """
    if isinstance(text, str):
        whole = text.strip().lower() if len(text) <= LONGEST_TEXT else ""  # a search takes the square of it
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


def _plain(text: object) -> float:
    try:
        number = plain_number(text)
    except OverflowError:
        return math.nan
    return math.nan if number is None else number


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
