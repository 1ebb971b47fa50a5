"""The log of a study: plans, leases, results and decisions. Rows are only ever added. A study is a replay over it.

    plan -> leases, results, events -> "closed" -> decision -> plan -> ...

Results are in the user's sign and unit. A log stores rows and gives one writer a turn at a time; the study knows the
rules.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol

import numpy as np

from surepick.core.observations import Observations, Quantity
from surepick.core.plans import Plan, RoundRecord
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.core.values import plain_number
from surepick.errors import InvalidInput
from surepick.text import quoted

# --- Leases: who measures what and until when, the keys of their pulls, and the only clock of the library.

Clock = Callable[[], float]
ANYONE = "anyone"
LONGEST_TEXT = 100  # characters of a duration
LONGEST = 3.2e9  # seconds, a century: times beyond it have no date
BEYOND = (OSError, OverflowError, ValueError)  # what a damaged time causes, each on another platform
NO_TIME = "a time of no calendar"
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@record
class Lease:
    """Who measures a part of a plan, and until when it is theirs."""

    number: int  # serial number of the lease among those of the plan, from 1
    plan: int  # number of the plan in its study, from 1
    worker: str
    until: float  # seconds since 1970 (UTC); what is missing then is offered to others


def pull_key(plan: int, ordinal: int, name: str) -> str:
    """The key of one leased pull of the arm of that name."""
    return f"p{plan}.{ordinal}@{name}"


def system_clock() -> float:
    """Seconds since 1970 (UTC), as this machine sees them."""
    return time.time()


def parse_duration(text: str | float) -> float:
    """Seconds of a duration: "90s", "15m", "8h", "2d", "1w", "1h30m", or a number (not a text) of seconds."""
    if isinstance(text, str):
        whole = text.strip().lower() if len(text) <= LONGEST_TEXT else ""  # a search takes the square of it
        parts = re.findall(r"(\d+(?:\.\d+)?)([smhdw])", whole)
        if parts and "".join(number + unit for number, unit in parts) == whole:
            seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
        else:
            seconds = math.nan  # a number without a unit could be hours or seconds
    else:
        try:
            number = plain_number(text)
        except OverflowError:
            number = None
        seconds = math.nan if number is None else number
    if not 0 < seconds <= LONGEST:
        raise InvalidInput(f"{quoted(text)} is not a duration; write a positive one, e.g. 30m, 8h, 2d or 1h30m.")
    return seconds


def format_time(seconds: float) -> str:
    """A time as people of this machine's time zone write it, to the minute."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M %Z").strip()
    except BEYOND:
        return NO_TIME


def to_the_minute(seconds: float) -> str:
    """A time in UTC, to the minute: the same text on every machine."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%d %H:%M UTC")


def format_utc(seconds: float) -> str:
    """A time in UTC, ISO 8601, to the microsecond."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    except BEYOND:
        return NO_TIME


INDEPENDENT_OF_VALUE = "independent-of-value"
COUNTED, LATE, PRIOR = "counted", "late", "prior"
FAILED, ABANDONED, CLOSED, ENDED = "failed", "abandoned", "closed", "ended"
WITHDRAWN, ADDED = "withdrawn", "added"
UNDONE, UNUSUAL, CORRECTED = "undone", "unusual", "corrected"
CONFIRMED, UNASKED = "confirmed", "nobody was asked"  # why an unusual result counts
REFUSED = "cannot be judged: "  # begins the reason of a second event "closed", of a plan that the policy refuses
Judge = Literal["closed rounds", "as they come"]
Surplus = Literal["count", "refuse"]  # what becomes of results of the open round beyond what was asked
COUNT: Surplus = "count"
REFUSE: Surplus = "refuse"
CLOSED_ROUNDS: Judge = "closed rounds"
AS_THEY_COME: Judge = "as they come"
Values = tuple[tuple[int, float, float], ...]


@record
class Planned:
    """A plan was opened; its counts are facts from now on."""

    number: int  # 1, 2, ... in the study
    plan: Plan  # what the policy asked for, without ids
    opened_at: float  # seconds since 1970 (UTC)


@frozen
class Results:
    """Results as columns of n; a row is one pull, or the total of several. None of a column: no row has it."""

    arms: IntArray  # index of the arm, shape (n,)
    pulls: IntArray  # pulls that the row sums up, shape (n,)
    sums: FloatArray  # their total reward, shape (n,), in the user's sign and unit
    squares: FloatArray | None = None  # the total of the squared rewards, shape (n,); None when some are unknown
    keys: tuple[str | None, ...] | None = None  # names that make each row count once
    leases: IntArray | None = None  # number of the lease that each row answers; 0: none
    source: str = ""  # who reported them
    blocks: tuple[str, ...] | None = None  # n names of the rows' blocks; None in a study without blocks
    items: IntArray | None = None  # number of the test item that each row answers; -1: none
    quantities: tuple[Quantity, ...] | None = None  # what else was measured
    within: FloatArray | None = None  # squared deviations from its mean, of simulations

    def recorded(self, status: str = COUNTED) -> list[Recorded]:
        """Each row as it is known by its key."""
        number = len(self.arms)
        beside: Sequence[Values | None] = [None] * number
        if self.quantities is not None:
            beside = [self.values_of(row) for row in range(number)]
        blocks = self.blocks or (None,) * number
        rows = zip(self.arms.tolist(), self.pulls.tolist(), self.sums.tolist(), blocks, beside, strict=True)
        return [Recorded(*row, self.source, status) for row in rows]

    def values_of(self, row: int) -> Values:
        """(number, sum, sum of squares) of each quantity in a row."""
        rows = ((one.counts[row], one.sums[row], one.squares[row]) for one in self.quantities or ())
        return tuple((int(count), float(total), float(square)) for count, total, square in rows)

    def as_read(self, values: Mapping[int, float]) -> Results:
        """The rows, single ones at these places with other rewards."""
        at = [place for place in values if 0 <= place < len(self.arms)]
        if not at:
            return self
        sums, squares = self.sums.copy(), None if self.squares is None else self.squares.copy()
        sums[at] = [values[place] for place in at]
        if squares is not None:
            squares[at] = sums[at] ** 2
        return replace(self, sums=sums, squares=squares)

    def rows(self, kept: Sequence[int] | IntArray) -> Results:
        """The rows of these positions."""
        kept = np.asarray(kept, dtype=np.int64)
        columns: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, column in columns.items():
            if isinstance(column, np.ndarray):
                columns[name] = column[kept]
            elif name in ("keys", "blocks") and column is not None:
                columns[name] = tuple(column[row] for row in kept.tolist())
        quantities = None if self.quantities is None else tuple(one.rows(kept) for one in self.quantities)
        return Results(**columns | {"quantities": quantities})


@record
class Recorded:
    """The result that is stored under a key; two that agree in the first five are the same."""

    arm: int
    pulls: int
    total: float
    block: str | None = None
    beside: Values | None = None
    source: str = field(default="", compare=False)  # who reported it
    status: str = field(default="counted", compare=False)


@frozen
class Leased:
    """A lease as it was granted."""

    lease: Lease  # its terms
    counts: IntArray  # pulls of each arm, shape (K,)
    first: IntArray  # ordinal of the first of them, shape (K,); the others follow it
    again: IntArray  # how many of them were out with somebody before, whose lease ran out, shape (K,)


@record
class Event:
    """Something that happened to a plan, or to the study.

    Pulls of a lease "failed" or were "abandoned"; an arm is "withdrawn" or "added" with the next plan; a plan is
    "closed" ("as they come": some may be missing), the study "ended" early; a result is "undone", or counts though
    "unusual".
    """

    kind: str
    plan: int  # number of the plan; 0 for the study
    arm: int | None = None  # index of the arm, None where no single one is meant
    pulls: int = 0  # how many pulls
    lease: int = 0  # number of the lease, 0 for none
    reason: str = ""  # why, in the user's words; of a failed pull its key, if it had one
    at: float = 0.0  # seconds since 1970 (UTC)
    result: int = 0  # number of the result that it is about, as in `Reported`; 0: of none


@record
class Reported:
    """A result of a plan that counts, as whoever reported it may see it, in the user's sign and unit."""

    number: int
    arm: int
    pulls: int
    total: float
    squares: float | None
    key: str | None
    lease: int
    at: float
    source: str = ""
    unusual: bool = False  # it counts although it stands out
    plan: int = 0  # number of its plan


@record
class Correction:
    """What was read takes the place of a result that was typed otherwise, after its plan was closed."""

    plan: int  # number of the plan with which it counts: that was open then, or was opened for it
    result: int  # number of the result, as in `Reported`
    of: int  # number of the result's plan
    arm: int
    typed: float  # what counted before, in the user's sign and unit
    read: float  # what counts instead
    reason: str = ""
    source: str = ""  # who corrected it
    at: float = 0.0  # seconds since 1970 (UTC)


def read_instead(corrections: Iterable[Correction], of: int, known: int) -> dict[int, float]:
    """What was read, by the number of the result, of the results of a plan that were corrected with the first plans."""
    return {one.result: one.read for one in corrections if one.of == of and one.plan <= known}


@record
class Withdrawal:
    """An arm that is neither measured nor recommended any more."""

    arm: int
    reason: str  # why, in the user's words; "independent-of-value": it has nothing to do with results
    at: float

    @property
    def independent(self) -> bool:
        """Whether it is said that results have nothing to do with it."""
        return self.reason == INDEPENDENT_OF_VALUE


@record
class Addition:
    """An arm that may be measured and recommended from now on."""

    arm: int
    at: float


@record
class Stored:
    """Results as they are stored."""

    plan: int  # number of their plan; 0 for prior results
    status: str  # "counted", "late", "prior", "undone" or "corrected"
    at: float
    results: Results


def corrected_rows(told: Stored, made: Sequence[Correction]) -> Iterator[Stored]:
    """A result as it was told, and what its corrections made of it: the last one counts."""
    for one in made:
        yield replace(told, status=CORRECTED)
        told = replace(told, at=one.at, results=replace(told.results.as_read({0: one.read}), source=one.source))
    yield told


@record
class Teller:
    """Measurements that somebody told, of one plan; of a result that was corrected it is who corrected it."""

    status: str  # counted, late or prior
    plan: int  # number of the plan; 0 for prior results
    source: str
    pulls: int


@frozen
class Arrivals:
    """What came to a plan since one looked last: all but rewards, which nobody sees before it is closed."""

    arms: IntArray
    pulls: IntArray
    leases: IntArray
    leased: tuple[Leased, ...]  # leases granted
    events: tuple[Event, ...]  # of the plan, and of the study
    mark: tuple[int, ...]  # where to go on next time


@record
class Deviations:
    """What the certificate must say about how a plan was carried out."""

    surplus: bool = False  # more results came than were asked
    repeated: int = 0  # measurements that were leased again, because the first failed or its lease ran out
    abandoned: tuple[str, ...] = ()  # reasons given for pulls that were not measured, each once, sorted
    doubtful: bool = False  # so far one of these reasons was not that it is independent of the values
    withdrawn: tuple[Withdrawal, ...] = ()  # the arms that are not asked for after it any more, by their index
    added: tuple[Addition, ...] = ()  # the arms that can be asked for after it, by their index
    contradicted: str = ""  # how repeats were seen so far to contradict the declared noise, in words
    undone: int = 0  # results that their reporters took back while it was open
    confirmed: int = 0  # unusual results that their reporters confirmed
    unasked: int = 0  # unusual results that came from a program, which nobody could ask
    corrected: tuple[Correction, ...] = ()  # results of the plans before it that were corrected with it
    alone: bool = False  # it was opened for them alone, and asked for nothing

    @property
    def relists(self) -> bool:
        """Whether the list of arms is another one after the plan."""
        return bool(self.withdrawn or self.added)


@record
class Decision:
    """A plan was judged; number 0 is the start."""

    plan: int  # number of the plan
    state: Any  # the policy's state afterwards, or its JSON (a durable log)
    stopped: bool  # no more measurements are needed
    verdict: str  # of the certificate; "not-yet" while the study goes on
    leader: int  # index of the arm that would be recommended
    seen: Observations | None = None  # what was received, in the policy's sign; None at the start
    row: RoundRecord | None = None  # the row of the trace; None at the start
    deviations: Deviations = field(default_factory=Deviations)  # how the plan was carried out
    at: float = 0.0  # seconds since 1970 (UTC)


class Log(Protocol):
    """Rows that are only ever added, by one writer at a time."""

    @property
    def clock(self) -> Clock:
        """The time that all who write to this log share."""

    def turn(self) -> AbstractContextManager[None]:
        """Others wait; what is written inside is stored together, durable at the end, or not at all."""

    def add_plan(self, planned: Planned) -> Planned:
        """Store it, unless a plan of that number is there; returns the one that is stored."""

    def last_plan(self) -> Planned | None: ...

    def plan(self, number: int) -> Planned | None:
        """The plan of that number; None if there is none."""

    def plans(self, after: int = 0) -> Iterator[Planned]:
        """Those with a larger number, in order."""

    def add_lease(self, leased: Leased, at: float) -> None: ...

    def add_results(self, plan: int, results: Results, *, status: str, at: float) -> None:
        """Store rows of a plan (0: of none) as "counted", "late" or "prior"."""

    def add_event(self, event: Event) -> None: ...

    def add_decision(self, decision: Decision) -> Decision:
        """Store it, unless one on that plan is there; returns the one that is stored."""

    def last_decision(self) -> Decision | None: ...

    def decisions(self, after: int = -1) -> Iterator[Decision]:
        """The decisions on plans later than `after`, in order."""

    def arrivals(self, plan: int, mark: tuple[int, ...] = ()) -> Arrivals:
        """What came to the plan after `mark`."""

    def recorded(self, keys: Sequence[str]) -> dict[str, Recorded]:
        """The keys among these that have a result: counted, late or prior; what was undone is none."""

    def reported(self, plan: int, source: str | None) -> list[Reported]:
        """The results of a plan that count and that this source reported, as they came; None: that anybody did."""

    def named(self, key: str, arm: int) -> list[Reported]:
        """The results that count and have that key, or are of that arm (-1: of none), as they came."""

    def add_correction(self, correction: Correction) -> None: ...

    def corrections(self, plan: int | None = None) -> list[Correction]:
        """The corrections that count with that plan, as they came; None: all."""

    def failed(self, keys: Sequence[str]) -> set[str]:
        """Those of the keys under which a measurement was reported that gave no result."""

    def results(self, plan: int, known: int = 0) -> list[Results]:
        """The results of a plan that count, rewards included, keys perhaps left out: for the judgement alone.

        Those that were corrected with one of the first `known` plans are as they were read.
        """

    def in_blocks(self, blocks: Sequence[str]) -> set[tuple[str, int, int]]:
        """(block, index of the arm, number of the plan) of the results of these blocks that count."""

    def measured(self, plans: int) -> dict[int, int]:
        """Pulls that count in the first so many plans, by arm; arms without any are left out."""

    def latest_plan_of(self, worker: str) -> int:
        """Number of the plan of the worker's latest lease; 0 if it never had one."""

    def ended(self) -> Event | None:
        """The event that closed the study early."""

    def set_aside(self) -> tuple[int, int]:
        """Numbers of late and of prior results: kept, and never used."""

    def history(self, judged: int) -> Iterator[Stored]:
        """The results of the plans up to `judged`, also what was undone or corrected with them, and those set aside."""

    def tellers(self, judged: int) -> list[Teller]:
        """Who told how much of the plans up to `judged`, and of what was set aside."""

    def latest_time(self) -> float:
        """The latest time of the last entries; 0 if there is none."""

    def check_rows(self) -> None:
        """Compare plans, decisions and the rows of closed plans with their hashes: a StorageError names what was
        altered."""
