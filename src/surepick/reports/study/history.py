"""The log of a study: what was asked when, what came, from whom, and what was set aside. Closed plans only."""

from __future__ import annotations

from collections import Counter
from typing import Any

from surepick.core.arrays import record
from surepick.reports.study.facts import Facts
from surepick.studies.logs.base import ABANDONED, CLOSED, COUNTED, FAILED, LATE, PRIOR, Log
from surepick.studies.logs.leases import BEYOND, NO_TIME, to_the_minute
from surepick.studies.logs.memory import MemoryLog

EDGES = 150  # of very many batches the first and the last so many are listed
NOBODY = "without a name"


@record
class Kept:
    """A plan that was judged.

    Args:
        number: 1, 2, ...
        opened_at, closed_at: seconds since 1970 (UTC).
        failed: measurements that gave no result.
        given_up: (reason, measurements) that were abandoned.
        tellers: who told its results, and of how many measurements.
    """

    number: int
    opened_at: float
    closed_at: float
    failed: int
    given_up: tuple[tuple[str, int], ...]
    tellers: tuple[tuple[str, int], ...]


@record
class History:
    """What the log says beyond the certificate.

    Args:
        kept: the plans that were judged, in order.
        late, prior: who told results that are not used, of how many measurements.
        durable: the log is in a database, where it was written before anything was measured.
    """

    kept: tuple[Kept, ...]
    late: tuple[tuple[str, int], ...]
    prior: tuple[tuple[str, int], ...]
    durable: bool


def history_of(log: Log, judged: int) -> History:
    """What the log says of the plans up to `judged`, and of what was set aside. No reward is looked at.

    Args:
        judged: number of the last plan that was judged.
    """
    tellers: dict[tuple[str, int], Counter[str]] = {}
    for stored in log.history(judged):
        plan = stored.plan if stored.status == COUNTED else 0
        found = tellers.setdefault((stored.status, plan), Counter())
        found[stored.results.source or NOBODY] += int(stored.results.pulls.sum())
    kept = []
    for planned in log.plans():
        if planned.number > judged:
            break
        events = log.arrivals(planned.number).events
        reasons: Counter[str] = Counter()
        for event in events:
            if event.kind == ABANDONED:
                reasons[event.reason] += event.pulls
        closed = [event.at for event in events if event.kind == CLOSED and event.plan == planned.number]
        kept.append(
            Kept(
                planned.number,
                planned.opened_at,
                closed[0] if closed else planned.opened_at,
                sum(event.pulls for event in events if event.kind == FAILED),
                tuple(reasons.items()),
                tuple(tellers.get((COUNTED, planned.number), Counter()).items()),
            )
        )
    aside = {kind: tuple(tellers.get((kind, 0), Counter()).items()) for kind in (LATE, PRIOR)}
    return History(tuple(kept), aside[LATE], aside[PRIOR], not isinstance(log, MemoryLog))


def batches(study: Facts, kept: History) -> list[tuple[dict[str, Any], Kept | None]]:
    """The closed batches, each with what the log says of it; of very many the first and the last few."""
    by_number = {one.number: one for one in kept.kept}
    looks = study.looks if len(study.looks) <= 2 * EDGES else (*study.looks[:EDGES], *study.looks[-EDGES:])
    return [(look, by_number.get(int(look["plan"]))) for look in looks]


def time(seconds: float) -> str:
    """A time in UTC, to the minute: the same wherever the report is made."""
    try:
        return to_the_minute(seconds).replace(" ", "\N{NO-BREAK SPACE}")
    except BEYOND:
        return NO_TIME
