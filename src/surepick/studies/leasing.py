"""Parts of an open plan, given to workers."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.validation import storable_text, whole_number
from surepick.errors import InvalidInput, OutOfTurn
from surepick.studies.batch import Batch
from surepick.studies.ledger import Ledger
from surepick.studies.logs.base import FAILED, Event, Log, Planned
from surepick.studies.logs.leases import ANYONE, format_time, parse_duration, pull_key
from surepick.studies.logs.open_plan import LeaseProgress, OpenPlan
from surepick.text import quoted

USUAL_LEASE = "8h"
BACKWARDS = 120.0  # seconds that the clock of one writer may be behind that of another
LONGEST_PAUSE = 366 * 86_400.0  # seconds without an entry; a clock that is ahead by years takes all leases of others


def terms(max_pulls: int | None, worker: str | None, lease: str | float | None) -> tuple[str, float]:
    """(worker, seconds) of a lease that is asked for.

    Raises:
        InvalidInput: the number is not positive, the name is empty, or the lease is no duration.
    """
    if max_pulls is not None:
        whole_number("max_pulls", max_pulls, least=1, meaning="the pulls that are leased.")
    name = ANYONE if worker is None else worker
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"worker is {quoted(worker)}; give a name, so that we know who holds the lease.")
    return storable_text("worker", name), parse_duration(USUAL_LEASE if lease is None else lease)


def checked_time(log: Log) -> float:
    """The time, if leases can be judged by it.

    Raises:
        OutOfTurn: the clock is behind the latest entry, or more than a year ahead of it.
    """
    now, latest = log.clock(), log.latest_time()
    if now < latest - BACKWARDS:
        raise OutOfTurn(
            f"Clock skew: it is {format_time(now)}, but the latest entry of this study is from {format_time(latest)}. "
            "Leases need consistent clocks, so none was granted. Fix the clock (results can still be reported), or "
            "pass --trust-clock (lease(..., trust_clock=True)) if the earlier entries are wrong."
        )
    if latest > 0.0 and now > latest + LONGEST_PAUSE:
        raise OutOfTurn(
            f"Clock skew: it is {format_time(now)} here, more than a year after the latest entry of this study "
            f"({format_time(latest)}), so every lease of others would have run out. None was granted. Fix the clock, "
            "or pass --trust-clock (lease(..., trust_clock=True)) if the study rested for so long."
        )
    return now


def part(log: Log, open_plan: OpenPlan, held: LeaseProgress, ids: tuple[str, ...]) -> Batch:
    """The rest of a lease, as a batch of the keys without a result."""
    planned, left = open_plan.planned, open_plan.wanted_of(held)
    ordinals = []
    for arm in np.flatnonzero(left).tolist():
        first, number = int(held.leased.first[arm]), int(held.leased.counts[arm])
        mine = np.arange(first, first + number)
        if held.done[arm]:
            keys = [pull_key(planned.number, ordinal, ids[arm]) for ordinal in mine.tolist()]
            recorded = {*log.recorded(keys), *open_plan.failed_keys}
            mine = mine[[key not in recorded for key in keys]]
        ordinals.append(mine[: left[arm]])
        left[arm] = len(ordinals[-1])
    flat = np.concatenate(ordinals) if ordinals else np.empty(0, np.int64)
    return Batch.of(planned.plan, ids, planned.number, counts=left, lease=held.lease, ordinals=flat)


def lease_part(
    ledger: Ledger, planned: Planned, most: int | None, worker: str, seconds: float, trusted: bool
) -> Batch | None:
    """A lease on a part of the plan, or the rest of the worker's lease; None if the plan was closed meanwhile."""
    log = ledger.log
    with ledger.turn():
        now = log.clock() if trusted else checked_time(log)
        open_plan = ledger.replay.look(planned)
        held = open_plan.held_by(worker, now)
        if not open_plan.takes_results:
            return None
        if held is None:
            if most is not None and planned.plan.first_items is not None:
                most = whole_arms(open_plan.free(now), most)
            leased = open_plan.grant(worker, most, now=now, until=now + seconds, alike=ledger.blocking is not None)
            if leased is None:
                return ledger.batch(planned, np.zeros_like(open_plan.asked))
            log.add_lease(leased, now)
            held = LeaseProgress(leased, np.zeros_like(open_plan.asked))
        return _rest(ledger, open_plan, held)


def _rest(ledger: Ledger, open_plan: OpenPlan, held: LeaseProgress) -> Batch:
    """What is left of a lease."""
    planned = open_plan.planned
    if planned.plan.first_items is not None:
        return ledger.batch(planned, open_plan.wanted_of(held), lease=held.lease)
    batch = part(ledger.log, open_plan, held, ledger.ids)
    return ledger.in_blocks(batch, int(held.done.sum()), planned.plan.counts)


def free_part(ledger: Ledger) -> Batch | None:
    """As `Study.free_part`."""
    planned = ledger.open_plan()
    if planned is None:
        return None
    return ledger.batch(planned, ledger.replay.look(planned).free(ledger.log.clock()))


def held_part(ledger: Ledger, worker: str) -> Batch | None:
    """As `Study.held`, which has the arguments."""
    planned = ledger.log.last_plan()
    open_plan = None if planned is None else ledger.replay.look(planned)
    if open_plan is None or not open_plan.takes_results:
        return None
    held = open_plan.held_by(worker, ledger.log.clock())
    return None if held is None else _rest(ledger, open_plan, held)


def whole_arms(free: IntArray, most: int) -> int:
    """The pulls of the first arms that together need at most so many; of one arm at least.

    Whoever answers test items for an arm answers all that the plan asks of it.

    Args:
        free: pulls that nobody holds, shape (K,).
    """
    ends = np.cumsum(free[free > 0])
    fitting = ends[ends <= most]
    return int(fitting[-1] if len(fitting) else ends[0]) if len(ends) else most


def release(ledger: Ledger, worker: str) -> int:
    """As `Study.release`, which has the arguments."""
    pulls = 0
    with ledger.turn():
        (planned, open_plan), now = ledger.taking(), ledger.log.clock()
        for held in open_plan.running(now):
            if held.lease.worker != worker and not held.lease.worker.startswith(f"{worker}/"):
                continue
            left, number = held.left, held.lease.number
            for arm in np.flatnonzero(left).tolist():
                pulls += int(left[arm])
                ledger.log.add_event(Event(FAILED, planned.number, arm, int(left[arm]), number, "", now))
    return pulls
