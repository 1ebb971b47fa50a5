"""Rows of the database as records of the log. Values of a wrong kind raise; `legible` turns that into words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy.engine import Row

from surepick.studies.logs.base import ABANDONED, ADDED, WITHDRAWN, Event, Leased
from surepick.studies.logs.leases import Lease

COMES = -1  # the lease of an event that says that an arm comes


def check_arms(arms: Sequence[int], num_arms: int) -> None:
    """Refuse arms that the study does not have: a negative one would count for another.

    Raises:
        ValueError: there is one.
    """
    if len(arms) and not (min(arms) >= 0 and max(arms) < num_arms):
        raise ValueError(f"there are {num_arms} arms, and a row is of arm {max(arms, key=abs)}")


def leased_of(rows: Sequence[Row[Any]], num_arms: int) -> tuple[Leased, ...]:
    """Leases from their rows, one an arm."""
    by_number: dict[int, list[Row[Any]]] = {}
    for row in rows:
        by_number.setdefault(row.number, []).append(row)
    found = []
    for number, parts in by_number.items():
        counts, first, again = (np.zeros(num_arms, np.int64) for _ in range(3))
        arms = [part.arm for part in parts]
        check_arms(arms, num_arms)
        counts[arms] = [part.pulls for part in parts]
        first[arms] = [part.first for part in parts]
        again[arms] = [part.again for part in parts]
        lease = Lease(int(number), int(parts[0].plan), str(parts[0].worker), float(parts[0].until))
        found.append(Leased(lease, counts, first, again))
    return tuple(found)


def event_of(row: Row[Any]) -> Event:
    """An event from its row."""
    kind, lease = row.kind, int(row.lease)
    if kind == ABANDONED and row.pulls == 0:
        kind, lease = (ADDED, 0) if lease == COMES else (WITHDRAWN, lease)
    about = 0 if row.result is None else int(row.result)
    return Event(kind, int(row.plan), row.arm, int(row.pulls), lease, row.reason, float(row.at), about)


def row_of(event: Event) -> dict[str, Any]:
    """An event as a row without its hash.

    The table knows no kind for an arm that goes or comes: nothing of it is abandoned, on the lease 0 or -1.
    """
    listed = event.kind in (WITHDRAWN, ADDED)
    return {
        "plan": event.plan,
        "kind": ABANDONED if listed else event.kind,
        "arm": event.arm,
        "pulls": event.pulls,
        "lease": COMES if event.kind == ADDED else event.lease,
        "reason": event.reason,
        "at": event.at,
        "hash": None,
        "result": event.result or None,
    }


def events_of(rows: Sequence[Row[Any]], num_arms: int) -> tuple[Event, ...]:
    """Events from their rows."""
    check_arms([row.arm for row in rows if row.arm is not None], num_arms)
    return tuple(event_of(row) for row in rows)
