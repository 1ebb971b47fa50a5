"""Rows of the database as records of the log. Values of a wrong kind raise; `legible` turns that into words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy.engine import Row

from surepick.studies.logs.base import Event, Leased
from surepick.studies.logs.leases import Lease


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
    about = 0 if row.result is None else int(row.result)
    return Event(row.kind, int(row.plan), row.arm, int(row.pulls), int(row.lease), row.reason, float(row.at), about)


def row_of(event: Event) -> dict[str, Any]:
    """An event as a row without its hash."""
    return {
        "plan": event.plan,
        "kind": event.kind,
        "arm": event.arm,
        "pulls": event.pulls,
        "lease": event.lease,
        "reason": event.reason,
        "at": event.at,
        "result": event.result or None,
        "hash": None,
    }


def events_of(rows: Sequence[Row[Any]], num_arms: int) -> tuple[Event, ...]:
    """Events from their rows."""
    check_arms([row.arm for row in rows if row.arm is not None], num_arms)
    return tuple(event_of(row) for row in rows)
