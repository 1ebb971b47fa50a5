"""Recording results: each once, with its plan and its lease."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from surepick.core.arrays import IntArray, record
from surepick.core.plan import Plan
from surepick.errors import InvalidInput, OutOfTurn
from surepick.studies.ledger import Ledger
from surepick.studies.logs.base import CLOSED, COUNTED, FAILED, LATE, PRIOR, Event, Log, Recorded, Results
from surepick.studies.logs.keys import canonical_keys, other_spellings, read_pull_key
from surepick.studies.logs.leases import ANYONE
from surepick.studies.open_plan import OpenPlan
from surepick.studies.replay import Replay
from surepick.studies.validation import source
from surepick.text import quoted


@record
class Receipt:
    """What became of reported results.

    Args:
        plan: number of the plan that was open; 0 if none was.
        counted: results that count.
        repeated: results whose key was reported before; each still counts once.
        late: results of a plan that was closed before; kept, and never used.
        prior: results that `tell_prior` set aside.
        failed: measurements that gave no result and are asked again.
        closed: these results completed the plan.
    """

    plan: int = 0
    counted: int = 0
    repeated: int = 0
    late: int = 0
    prior: int = 0
    failed: int = 0
    closed: bool = False


class _NoPlan(Exception):
    """Results belong to no plan; what was stored in the same turn is taken back."""


def tell(
    ledger: Ledger,
    results: Results,
    worker: str | None,
    plan: int | None,
    failed: Sequence[tuple[object, object]] = (),
) -> Receipt:
    """Record results and failed measurements in one turn; `Study.tell` has the arguments."""
    gone, rows = Receipt(), pairs(failed)
    try:
        with ledger.turn():
            if rows:
                gone = _fail(ledger, rows, worker)
            receipt = store(ledger.replay, results, ledger.ids, worker, plan) if len(results.arms) else Receipt()
            if receipt is None:
                raise _NoPlan
    except _NoPlan:
        ledger.replay.settle()
        raise OutOfTurn(ledger.why_closed()) from None
    if receipt.closed:
        ledger.replay.settle()
    repeated, late = receipt.repeated + gone.repeated, receipt.late + gone.late
    return replace(receipt, failed=gone.failed, repeated=repeated, late=late)


def keep_apart(ledger: Ledger, results: Results) -> Receipt:
    """Record results that the study did not ask for; they never enter an estimate."""
    with ledger.turn():
        news, repeated = fresh(ledger.log, results, ledger.ids)
        if len(news.arms):
            ledger.log.add_results(0, news, status=PRIOR, at=ledger.log.clock())
    return Receipt(prior=len(news.arms), repeated=repeated)


def fail(ledger: Ledger, ids: Sequence[object], keys: Sequence[object] | None, worker: str | None) -> Receipt:
    """As `Study.fail`, which has the arguments."""
    _, names = ledger.arms_of(ids)
    labels = canonical_keys(keys, names) or (None,) * len(names)
    with ledger.turn():
        ledger.taking()
        return _fail(ledger, list(zip(names, labels, strict=True)), worker)


def _fail(ledger: Ledger, failed: Sequence[tuple[object, object]], worker: str | None) -> Receipt:
    arms, names = ledger.arms_of([name for name, _ in failed])
    keys = canonical_keys([key for _, key in failed], names) or ()
    return store_failures(ledger.replay, arms, ledger.ids, keys, source(worker))


def store(replay: Replay, results: Results, ids: Sequence[str], worker: str | None, plan: int | None) -> Receipt | None:
    """Store results, inside a turn; None, and nothing is stored, if they belong to no plan.

    Args:
        worker, plan: who measured, and the plan, where the keys do not say it; as in `Study.tell`.

    Raises:
        InvalidInput: a row is refused.
    """
    log = replay.log
    news, repeated = fresh(log, results, ids)
    if len(news.arms) == 0:
        return Receipt(repeated=repeated)  # a retry: all of it counts already, perhaps in a plan that is closed
    planned = log.last_plan()
    open_plan = None if planned is None else replay.look(planned)
    latest = 0 if planned is None else planned.number
    open_number = latest if open_plan is not None and open_plan.takes_results else 0
    belongs = plans_of(log, news, worker, plan, open_number, latest)
    if not belongs.all():
        return None
    now = log.clock()
    current = news.rows(np.flatnonzero(belongs == open_number))
    if len(current.arms) and open_plan is not None:
        check_asked(open_plan.planned.plan, current.arms, ids)
        current = with_leases(current, open_plan, worker)
    for number in np.unique(belongs[belongs != open_number]).tolist():
        log.add_results(number, news.rows(np.flatnonzero(belongs == number)), status=LATE, at=now)
    closed = False
    if len(current.arms) and open_plan is not None:
        log.add_results(open_number, current, status=COUNTED, at=now)
        closed = open_plan.completed_by(current.arms, current.pulls)
        if closed:
            log.add_event(Event(CLOSED, open_number, at=now))
    counted = len(current.arms)
    return Receipt(open_number, counted, repeated, late=len(news.arms) - counted, closed=closed)


def store_failures(
    replay: Replay,
    arms: IntArray,
    ids: Sequence[str],
    keys: Sequence[str | None],
    worker: str | None,
) -> Receipt:
    """Record measurements of the open plan that gave no result, inside a turn; each key once. Late ones need nothing.

    Raises:
        InvalidInput: an arm was not asked, or a key was never given.
    """
    log, late = replay.log, 0
    planned = log.last_plan()
    open_plan = None if planned is None else replay.look(planned)
    if planned is None or open_plan is None or not open_plan.takes_results:
        return Receipt(late=len(arms))
    events: list[Event] = []
    given = {key for key in keys if key is not None}
    spellings = other_spellings(given)
    known = {*log.recorded([*given, *(spellings.keys() - given)]), *open_plan.failed_keys}
    check_spellings(spellings, {*given, *known})
    spent: dict[int, Counter[int]] = defaultdict(Counter)
    now = log.clock()
    for arm, key in zip(arms.tolist(), keys, strict=True):
        if key is not None and key in known:
            continue  # a retry
        named = None if key is None else read_pull_key(key)
        if named is not None and named[0] != planned.number:
            late += 1  # of a plan that is closed: nothing waits for it
            continue
        check_asked(planned.plan, np.array([arm]), ids)
        ordinal = None if named is None else named[1]
        if ordinal is not None:
            check_given(open_plan, arm, ordinal, str(key))
        lease = open_plan.lease_of(arm, ordinal=ordinal, worker=worker or ANYONE, spent=spent[arm])
        spent[arm][lease] += 1
        known.update(() if key is None else (key,))
        events.append(Event(FAILED, planned.number, arm, 1, lease, key or "", now))
    for event in events:
        log.add_event(event)
    return Receipt(planned.number, repeated=len(arms) - len(events) - late, late=late, failed=len(events))


def pairs(failed: Sequence[tuple[object, object]]) -> list[tuple[object, object]]:
    """Failed measurements, as (id, key) pairs.

    Raises:
        InvalidInput: it is none.
    """
    rows = list(failed) if hasattr(failed, "__iter__") and not isinstance(failed, str | bytes) else [failed]
    wrong = [row for row in rows if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != 2]
    if wrong:
        raise InvalidInput(f"failed holds {quoted(wrong[0])}; give pairs of an id and its key, or None for the key.")
    return [(name, key) for name, key in rows]


def fresh(log: Log, results: Results, ids: Sequence[str]) -> tuple[Results, int]:
    """(the new rows, the number of repeated ones).

    Raises:
        InvalidInput: a key was reported before for another arm, with another value, or in another spelling. We do
            not name the value: it may belong to an open plan.
    """
    if results.keys is None:
        return results, 0
    keys = {key for key in results.keys if key is not None}
    spellings = other_spellings(keys)
    seen = log.recorded([*keys, *(spellings.keys() - keys)])
    check_spellings(spellings, {*keys, *seen})
    seen = {key: stored for key, stored in seen.items() if key in keys}
    kept = []
    rows = zip(results.arms.tolist(), results.pulls.tolist(), results.sums.tolist(), strict=True)
    for row, (key, (arm, pulls, total)) in enumerate(zip(results.keys, rows, strict=True)):
        stored = Recorded(arm, pulls, total)
        if key is None:
            kept.append(row)
        elif key not in seen:
            seen[key] = stored
            kept.append(row)
        elif seen[key] != stored:
            other = f"of arm {ids[seen[key].arm]!r}" if seen[key].arm != arm else "with another value"
            raise InvalidInput(
                f"key {key!r} was reported before {other}; a key names one result. Nothing of this call was stored. If "
                "it is another measurement, give it a key of its own. A reported result cannot be corrected: under a "
                "new key both would count."
            )
    return results.rows(kept), len(results.keys) - len(kept)


def check_spellings(spellings: Mapping[str, str], known: Collection[str]) -> None:
    """Refuse a whole number among the keys that is known in another spelling.

    Args:
        spellings: as in `other_spellings`.
        known: the keys of this call, and those that were reported before.

    Raises:
        InvalidInput: there is one; both would count.
    """
    twin = next((spelling for spelling in spellings if spelling in known), None)
    if twin is not None:
        raise InvalidInput(
            f"keys {quoted(spellings[twin])} and {quoted(twin)} are the same number, written in two ways: a "
            "spreadsheet or a table of decimals may have changed one of them, and both would count. Nothing of this "
            "call was stored. Write the key as it was given first; if they are two measurements, give them keys that "
            "differ by more."
        )


def plans_of(
    log: Log,
    results: Results,
    worker: str | None,
    plan: int | None,
    open_number: int,
    latest: int,
) -> IntArray:
    """Number of the plan that each row belongs to, shape (n,); 0 where that is the open one and none is open.

    Args:
        worker: who reported; rows without a key of a lease belong to the plan of the worker's latest lease, if results
            of that lease are still to come.
        plan: the number that the caller gives; None: nothing.
        open_number: the open plan, 0 if there is none.
        latest: the latest plan.

    Raises:
        InvalidInput: there is no such plan.
    """
    if plan is not None and not (isinstance(plan, int | np.integer) and 1 <= plan <= latest):
        raise InvalidInput(f"plan is {quoted(plan)}; the study has opened {latest} plans so far, numbered from 1.")
    usual = plan or _owed_plan(log, worker, open_number) or open_number
    belongs = np.full(len(results.arms), usual, np.int64)
    if results.keys is not None:
        for row, key in enumerate(results.keys):
            named = None if key is None else read_pull_key(key)
            if named is None or plan is not None:
                continue
            if named[0] > latest:
                raise InvalidInput(_unknown(str(key)))
            belongs[row] = named[0]
    return belongs


def _owed_plan(log: Log, worker: str | None, open_number: int) -> int:
    """The plan of the worker's latest lease, if results of it are still to come; 0 if not."""
    latest = log.latest_plan_of(worker) if worker else 0
    if latest in (0, open_number):
        return latest
    news = log.arrivals(latest)
    left = {leased.lease.number: leased.counts.copy() for leased in news.leased if leased.lease.worker == worker}
    came = zip(news.leases.tolist(), news.arms.tolist(), news.pulls.tolist(), strict=True)
    failed = ((event.lease, event.arm, event.pulls) for event in news.events if event.kind == FAILED)
    for lease, arm, pulls in (*came, *failed):
        if lease in left and arm is not None:
            left[lease][arm] -= pulls
    return latest if any(np.any(counts > 0) for counts in left.values()) else 0


def check_given(open_plan: OpenPlan, arm: int, ordinal: int, key: str) -> None:
    """Refuse a key of a pull that was never leased: it would collide with the key of one that will be.

    Raises:
        InvalidInput: it is one.
    """
    if ordinal >= open_plan.granted[arm]:
        raise InvalidInput(_unknown(key))


def _unknown(key: str) -> str:
    return (
        f"key {key!r} looks like one that ask gave, and this study never gave it: it is of another study, or was given "
        "after the backup from which this database was restored. Nothing of this call was stored. Give the results "
        "keys of their own."
    )


def check_asked(plan: Plan, arms: IntArray, ids: Sequence[str]) -> None:
    """Refuse results of arms that the plan does not ask for.

    Raises:
        InvalidInput: there are some.
    """
    stray = arms[plan.counts[arms] == 0]
    if len(stray):
        raise InvalidInput(
            f"{len(stray)} results are of arms that the open plan did not ask for, the first is "
            f"{ids[stray[0]]!r}. Which arms are measured must not depend on a hunch, or the certificate means "
            "nothing. Nothing of this call was stored. To keep such results apart: tell_prior(), or tell --as-prior."
        )


def with_leases(results: Results, open_plan: OpenPlan, worker: str | None) -> Results:
    """The rows with the number of the lease that each answers.

    Raises:
        InvalidInput: a key looks like that of a lease, and there is no such lease.
    """
    if not open_plan.held and results.keys is None:
        return results
    keys = results.keys or (None,) * len(results.arms)
    leases = []
    for key, arm in zip(keys, results.arms.tolist(), strict=True):
        named = None if key is None else read_pull_key(key)
        ordinal = None if named is None or named[0] != open_plan.planned.number else named[1]
        if ordinal is not None:
            check_given(open_plan, arm, ordinal, str(key))
        leases.append(open_plan.lease_of(arm, ordinal=ordinal, worker=worker or ANYONE))
    return replace(results, leases=np.array(leases, np.int64)) if open_plan.held else results
