"""Parts of an open plan, given to workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surepick.core.validation import storable_text, text_of, whole_number
from surepick.errors import InvalidInput, OutOfTurn
from surepick.studies.batch import Batch
from surepick.studies.logs.base import Log
from surepick.studies.logs.leases import ANYONE, format_time, parse_duration, pull_key
from surepick.studies.open_plan import LeaseProgress, OpenPlan
from surepick.text import quoted

USUAL_LEASE = "8h"
BACKWARDS = 120.0  # seconds that the clock of one writer may be behind that of another


def terms(max_pulls: int | None, worker: str | None, lease: str | float | None) -> tuple[str, float]:
    """(worker, seconds) of a lease that is asked for.

    Raises:
        InvalidInput: the number is not positive, the name is empty, or the lease is no duration.
    """
    if max_pulls is not None:
        whole_number("max_pulls", max_pulls, least=1, meaning="the pulls that are leased.")
    name = ANYONE if worker is None else worker
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"worker is {quoted(worker)}; give a name, so that what is leased is known to be theirs.")
    return storable_text("worker", name), parse_duration(USUAL_LEASE if lease is None else lease)


def names_of(ids: Sequence[object]) -> list[str]:
    """Ids as texts.

    Raises:
        InvalidInput: they are no sequence.
    """
    if isinstance(ids, str) or not hasattr(ids, "__iter__"):
        raise InvalidInput(f"ids is {quoted(ids)}; give a sequence of ids, [{quoted(ids)}] for one.")
    return [text_of("an id", name) for name in ids]


def source(worker: str | None) -> str:
    """Who told, for the log; "" where nobody is named.

    Raises:
        InvalidInput: it is no text that a database can hold.
    """
    return "" if worker is None else storable_text("worker", worker)


def stated(reason: str) -> str:
    """A reason, for the log.

    Raises:
        InvalidInput: it is no text that a database can hold.
    """
    return storable_text("the reason", reason).strip()


def checked_time(log: Log) -> float:
    """The time, if leases can be judged by it.

    Raises:
        OutOfTurn: it is before what is stored.
    """
    now, latest = log.clock(), log.latest_time()
    if now < latest - BACKWARDS:
        raise OutOfTurn(
            f"the clock says {format_time(now)}, and the latest entry of this study is from {format_time(latest)}: "
            "it was moved back, or another machine's is ahead, and no lease could be judged. Nothing was leased. "
            "Set the clock right; results can be told meanwhile. If it is right now and was wrong then: --trust-clock "
            "(lease(..., trust_clock=True))."
        )
    return now


def part(log: Log, open_plan: OpenPlan, held: LeaseProgress, ids: tuple[str, ...]) -> Batch:
    """What is left of a lease, as a plan with keys that were not told."""
    planned, left = open_plan.planned, open_plan.wanted_of(held)
    ordinals = []
    for arm in np.flatnonzero(left).tolist():
        first, number = int(held.leased.first[arm]), int(held.leased.counts[arm])
        mine = np.arange(first, first + number)
        if held.done[arm]:
            keys = [pull_key(planned.number, ordinal, ids[arm]) for ordinal in mine.tolist()]
            told = {*log.told(keys), *open_plan.failed_keys}
            mine = mine[[key not in told for key in keys]]
        ordinals.append(mine[: left[arm]])
        left[arm] = len(ordinals[-1])
    flat = np.concatenate(ordinals) if ordinals else np.empty(0, np.int64)
    return Batch.of(planned.plan, ids, planned.number, counts=left, lease=held.lease, ordinals=flat)
