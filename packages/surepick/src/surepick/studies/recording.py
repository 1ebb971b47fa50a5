"""Recording results: each once, with its plan and its lease. `tell` reads from top to bottom.

tell -> fail, _store -> fresh, plans_of, _check_wanted, with_leases, _unusual -> the log
"""

import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from surepick.core.records import IntArray, record
from surepick.core.values import listed
from surepick.errors import InvalidInput, OutOfTurn, UnusualWarning
from surepick.studies import slips
from surepick.studies.ledger import StudyLog
from surepick.studies.logs import base, keys as keyed
from surepick.studies.logs.keys import read_pull_key
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.validation import source
from surepick.text import quoted

Accept = bool | Literal["unasked"]
ACCEPTED = {True: base.CONFIRMED, "unasked": base.UNASKED}  # why results count that stand out
DRAWN = "drawn"  # by a simulation: none is looked at


@record
class Receipt:
    """What became of reported results.

    Args:
        plan: number of the plan that was open; 0 if none was.
        counted: results that count.
        repeated: results whose key was reported before; each still counts once.
        late: results of a plan that was closed before; kept, and never used. Where results are judged as they come
            they count instead, while the study runs.
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


class _NextPlanNeeded(Exception):
    """Results of a closed plan count in the next one, and it is not made yet; what was stored is taken back."""


def tell(
    ledger: StudyLog,
    results: base.Results,
    worker: str | None,
    plan: int | None,
    failed: Sequence[tuple[object, object]] = (),
    *,
    accept_unusual: Accept = False,
    drawn: bool = False,
) -> Receipt:
    """Record results and failed measurements in one turn; `Study.tell` has the arguments, `tell_simulated` `drawn`."""
    if accept_unusual not in (False, *ACCEPTED):
        raise InvalidInput(f"accept_unusual is {quoted(accept_unusual)}; it must be True, False or 'unasked'.")
    rows, why = pairs(failed), DRAWN if drawn else ACCEPTED.get(accept_unusual, "")
    if slips.asks(ledger.noise):
        ledger.judged()  # outside of the turn, where it may have to be read
        if not why and (words := slips.doubt_of_kind(ledger.noise, results)):
            warnings.warn(words, UnusualWarning, stacklevel=3)
    while True:
        try:
            with ledger.turn():
                gone = fail(ledger, rows, worker) if rows else Receipt()
                receipt = _store(ledger, results, worker, plan, why) if len(results.arms) else Receipt()
        except _NoPlan:
            ledger.replay.settle()
            raise OutOfTurn(ledger.why_closed()) from None
        except _NextPlanNeeded:
            ledger.open_plan()  # outside of the turn: a design may take seconds
        else:
            break
    if receipt.closed:
        ledger.replay.settle()
    repeated, late = receipt.repeated + gone.repeated, receipt.late + gone.late
    return replace(receipt, failed=gone.failed, repeated=repeated, late=late)


def _store(ledger: StudyLog, results: base.Results, worker: str | None, plan: int | None, why: str) -> Receipt:
    """Store results, inside a turn; `why`: for what reason they count if they stand out, "" if they do not yet."""
    log, replay, ids = ledger.log, ledger.replay, ledger.ids
    places = fresh(log, results, ids)
    news, repeated = results.rows(places), len(results.arms) - len(places)
    if len(news.arms) == 0:
        return Receipt(repeated=repeated)  # a retry: all of it counts already, perhaps in a plan that is closed
    if ledger.blocking is not None:
        keyed.check_once(log, news, ids, ledger.blocking)
    planned = log.last_plan()
    open_plan = None if planned is None else replay.look(planned)
    latest = 0 if planned is None else planned.number
    open_number = latest if open_plan is not None and open_plan.takes_results else 0
    belongs = plans_of(log, news, worker, plan, open_number, latest)
    if not belongs.all():
        raise _NoPlan
    now = log.clock()
    current = news.rows(np.flatnonzero(belongs == open_number))
    if len(current.arms) and open_plan is not None:
        _check_wanted(ledger, open_plan, current)
        current = with_leases(current, open_plan, worker)
    rest = belongs != open_number
    counts = np.full(len(rest), True) if ledger.in_parts and not _over(log) else ~rest
    if counts.any() and (open_plan is None or open_number == 0):
        raise _NextPlanNeeded
    order = np.concatenate([np.flatnonzero(counts & rest), np.flatnonzero(counts & ~rest)])  # as they are stored
    unusual = _unusual(ledger, news.rows(order), open_number, places[order], why)
    if rest.any() and counts.all() and open_plan is not None:
        _check_earlier(log, news.rows(np.flatnonzero(rest)), belongs[rest], open_plan, ids)
        log.add_results(open_number, news.rows(np.flatnonzero(rest)), status=base.COUNTED, at=now)
        rest[:] = False
    of_items = planned is not None and planned.plan.first_items is not None
    again = _keep_late(log, news.rows(np.flatnonzero(rest)), belongs[rest], ids, of_items=of_items)
    if len(current.arms):
        log.add_results(open_number, current, status=base.COUNTED, at=now)
    counted = int(np.count_nonzero(~rest))
    if unusual:
        stored = log.reported(open_number, news.source)[-counted:]
        for one in unusual:
            number = one.number if one.row < 0 else stored[one.row].number
            log.add_event(base.Event(base.UNUSUAL, open_number, one.arm, reason=why, at=now, result=number))
    closed = False
    if counted and open_plan is not None:
        closed = open_plan.completed_by(news.arms[~rest], news.pulls[~rest])
        if closed:
            log.add_event(base.Event(base.CLOSED, open_number, at=now))
    return Receipt(open_number, counted, repeated + again, late=len(news.arms) - counted - again, closed=closed)


def _keep_late(log: base.Log, results: base.Results, belongs: IntArray, ids: Sequence[str], *, of_items: bool) -> int:
    """Keep results of closed plans; how many of them were kept before."""
    again = 0
    for number in np.unique(belongs).tolist():
        late = results.rows(np.flatnonzero(belongs == number))
        if of_items:
            late = keyed.set_aside(late)
            kept = fresh(log, late, ids)
            late, again = late.rows(kept), again + len(late.arms) - len(kept)
        if len(late.arms):
            log.add_results(number, late, status=base.LATE, at=log.clock())
    return again


def fresh(log: base.Log, results: base.Results, ids: Sequence[str]) -> IntArray:
    """The places of the rows that are new."""
    if results.keys is None:
        return np.arange(len(results.arms))
    seen = dict(log.recorded(list({key for key in results.keys if key is not None})))
    kept = []
    for row, (key, stored) in enumerate(zip(results.keys, results.recorded(), strict=True)):
        if key is None:
            kept.append(row)
        elif key not in seen:
            seen[key] = stored
            kept.append(row)
        elif seen[key] != stored:
            other = f"of arm {ids[seen[key].arm]!r}" if seen[key].arm != stored.arm else "with another value"
            other = other if seen[key].block in (None, stored.block) else f"of the block {seen[key].block!r}"
            raise InvalidInput(
                f"key {key!r} was reported before {other}; a key names one result. Nothing of this call was stored. If "
                "it is another measurement, give it a key of its own. If the first was a typing error, undo it while "
                "its round is open (surepick undo), and report the key again; once it is closed, correct it (surepick "
                "correct). Under a new key both would count."
            )
    return np.array(kept, np.int64)


def plans_of(
    log: base.Log, results: base.Results, worker: str | None, plan: int | None, open_number: int, latest: int
) -> IntArray:
    """Number of the plan that each row belongs to, shape (n,); 0 where that is the open one and none is open."""
    if plan is not None and not (isinstance(plan, int | np.integer) and 1 <= plan <= latest):
        raise InvalidInput(f"plan is {quoted(plan)}; the study has opened {latest} plans so far, numbered from 1.")
    usual = plan or _owed_plan(log, worker, open_number) or open_number
    belongs = np.full(len(results.arms), usual, np.int64)
    for row, key in enumerate(results.keys or () if plan is None else ()):
        named = None if key is None else read_pull_key(key)
        if named is not None:
            if named[0] > latest:
                raise InvalidInput(_never_given(str(key)))
            belongs[row] = named[0]
    return belongs


def _owed_plan(log: base.Log, worker: str | None, open_number: int) -> int:
    """The plan of the worker's latest lease, if results of it are still to come; 0 if not."""
    latest = log.latest_plan_of(worker) if worker else 0
    if latest in (0, open_number):
        return latest
    news = log.arrivals(latest)
    left = {leased.lease.number: leased.counts.copy() for leased in news.leased if leased.lease.worker == worker}
    received = zip(news.leases.tolist(), news.arms.tolist(), news.pulls.tolist(), strict=True)
    failed = ((event.lease, event.arm, event.pulls) for event in news.events if event.kind == base.FAILED)
    for lease, arm, pulls in (*received, *failed):
        if lease in left and arm is not None:
            left[lease][arm] -= pulls
    return latest if any(np.any(counts > 0) for counts in left.values()) else 0


def _over(log: base.Log) -> bool:
    """Whether no result counts any more: the study was closed, or its last decision stopped it."""
    decision = log.last_decision()
    return log.ended() is not None or (decision is not None and decision.stopped)


def with_leases(results: base.Results, open_plan: OpenPlan, worker: str | None) -> base.Results:
    """The rows with the number of the lease that each answers."""
    if not open_plan.held and results.keys is None:
        return results
    keys = results.keys or (None,) * len(results.arms)
    leases = []
    for key, arm in zip(keys, results.arms.tolist(), strict=True):
        named = None if key is None else read_pull_key(key)
        ordinal = None if named is None or named[0] != open_plan.planned.number else named[1]
        if ordinal is not None:
            _check_given(open_plan.granted, arm, ordinal, str(key))
        leases.append(open_plan.lease_of(arm, ordinal=ordinal, worker=worker or base.ANYONE))
    return replace(results, leases=np.array(leases, np.int64)) if open_plan.held else results


def _unusual(ledger: StudyLog, new: base.Results, plan: int, places: IntArray, why: str) -> list[slips.Unusual]:
    """The new results that stand out in that plan; without a reason we ask. `places` in the call: shape (n,)."""
    if len(new.arms) == 0 or why == DRAWN:
        return []
    found = slips.outside(ledger.scale, new)
    if slips.asks(ledger.noise) and not ledger.unlike:
        own = ledger.log.reported(plan, new.source) if new.source else []  # nobody knows whose the others are
        beyond = {one.row for one in found}
        beside = slips.unusual(ledger.noise, len(ledger.ids), ledger.judged(), own, new)
        found += [one for one in beside if one.row < 0 or one.row not in beyond]
    if found and not why:
        placed = [replace(one, row=one.row if one.row < 0 else int(places[one.row])) for one in found]
        raise slips.refusal(placed, ledger.ids)
    return found


# --- What is refused


def _check_wanted(ledger: StudyLog, open_plan: OpenPlan, current: base.Results) -> None:
    """Refuse results that the open plan did not ask for (InvalidInput)."""
    ids, plan = ledger.ids, open_plan.planned.plan
    _check_asked(open_plan.asked, current.arms, ids)
    if ledger.no_surplus:
        _check_no_surplus(open_plan.asked - open_plan.recorded, current, ids)
    if plan.first_items is not None:
        keyed.check_items(plan, ledger.replay.item_order.places, current, ids)
    if ledger.blocking is not None:
        keyed.check_anew(ledger.log, current, open_plan.planned.number, ledger.blocking)


def _check_asked(asked: IntArray, arms: IntArray, ids: Sequence[str]) -> None:
    """Refuse results of arms that the plan, with these counts, shape (K,), does not ask for."""
    stray = arms[asked[arms] == 0]
    if len(stray):
        raise InvalidInput(
            f"{len(stray)} results are of arms that the open plan did not ask for, the first is "
            f"{ids[stray[0]]!r}. Which arms are measured must not depend on a hunch, or the certificate means "
            "nothing. Nothing of this call was stored. To keep such results apart: tell_prior(), or tell --as-prior."
        )


def _check_no_surplus(wanted: IntArray, results: base.Results, ids: Sequence[str]) -> None:
    """Refuse results, whatever they are, beyond the pulls that have not come yet: shape (K,), below 0 of surplus."""
    received = np.zeros(len(wanted), np.int64)
    np.add.at(received, results.arms, results.pulls)
    over = np.flatnonzero((received > 0) & (received > np.maximum(wanted, 0)))
    if len(over):
        arm = int(over[0])
        raise InvalidInput(
            f"{int(received[arm])} results are of {quoted(ids[arm])}, of which this round wants "
            f"{max(int(wanted[arm]), 0)} more. This study counts no results beyond what it asked, since somebody could "
            "go on until a mean suits. Nothing of this call was stored. To keep such results apart: tell_prior(), or "
            "tell --as-prior."
        )


def _check_earlier(
    log: base.Log, results: base.Results, belongs: IntArray, open_plan: OpenPlan, ids: Sequence[str]
) -> None:
    """Refuse results of earlier plans (`belongs`, shape (n,)) that did not ask for them, or never gave their keys."""
    granted = {open_plan.planned.number: open_plan.granted}
    for number in np.unique(belongs).tolist():
        planned = log.plan(number)
        if planned is not None:
            _check_asked(planned.plan.counts + open_plan.asked, results.arms[belongs == number], ids)
    for key, arm in zip(results.keys or (), results.arms.tolist(), strict=False):
        named = None if key is None else read_pull_key(key)
        if named is not None and named[0] not in granted:
            leased = [one.counts for one in log.arrivals(named[0]).leased]
            granted[named[0]] = np.sum([np.zeros_like(open_plan.asked), *leased], axis=0)
        if named is not None:
            _check_given(granted[named[0]], arm, named[1], str(key))


def _check_given(granted: IntArray, arm: int, ordinal: int, key: str) -> None:
    """Refuse a key beyond the pulls that were leased, shape (K,): it would collide with one that will be given."""
    if ordinal >= granted[arm]:
        raise InvalidInput(_never_given(key))


def _never_given(key: str) -> str:
    return (
        f"key {key!r} looks like one that ask gave, and this study never gave it: it is of another study, or was given "
        "after the backup from which this database was restored. Nothing of this call was stored. Give the results "
        "keys of their own."
    )


# --- Failed measurements, results that are kept apart, and what was recorded


def pairs(failed: Sequence[tuple[object, object]]) -> list[tuple[object, object]]:
    """Failed measurements, as (id, key) pairs."""
    rows = listed("failed", failed, cure="It has pairs of an id and its key, or None for the key.")
    wrong = [row for row in rows if not isinstance(row, Sequence) or isinstance(row, str | bytes) or len(row) != 2]
    if wrong:
        raise InvalidInput(f"failed holds {quoted(wrong[0])}; give pairs of an id and its key, or None for the key.")
    return [(name, key) for name, key in rows]


def fail(ledger: StudyLog, failed: Sequence[tuple[object, object]], worker: str | None) -> Receipt:
    """Record measurements of the open plan without a result, inside a turn, each key once; late ones need nothing."""
    arms, names = ledger.arms_of([name for name, _ in failed])
    keys = keyed.canonical_keys([key for _, key in failed], names) or ()
    log, late, who = ledger.log, 0, source(worker) or base.ANYONE
    planned = log.last_plan()
    open_plan = None if planned is None else ledger.replay.look(planned)
    if planned is None or open_plan is None or not open_plan.takes_results:
        return Receipt(late=len(arms))
    events: list[base.Event] = []
    known = {*log.recorded([key for key in keys if key is not None]), *open_plan.failed_keys}
    spent: dict[int, Counter[int]] = defaultdict(Counter)
    now = log.clock()
    for arm, key in zip(arms.tolist(), keys, strict=True):
        if key is not None and key in known:
            continue  # a retry
        named = None if key is None else read_pull_key(key)
        if named is not None and named[0] != planned.number:
            late += 1  # of a plan that is closed: nothing waits for it
            continue
        _check_asked(planned.plan.counts, np.array([arm]), ledger.ids)
        ordinal = None if named is None else named[1]
        if ordinal is not None:
            _check_given(open_plan.granted, arm, ordinal, str(key))
        lease = open_plan.lease_of(arm, ordinal=ordinal, worker=who, spent=spent[arm])
        spent[arm][lease] += 1
        known.update(() if key is None else (key,))
        events.append(base.Event(base.FAILED, planned.number, arm, 1, lease, key or "", now))
    for event in events:
        log.add_event(event)
    return Receipt(planned.number, repeated=len(arms) - len(events) - late, late=late, failed=len(events))


def keep_apart(ledger: StudyLog, results: base.Results) -> Receipt:
    """Record results that the study did not ask for; they never enter an estimate."""
    with ledger.turn():
        news = results.rows(fresh(ledger.log, results, ledger.ids))
        if news.items is not None:
            news = keyed.set_aside(news)
            news = news.rows(fresh(ledger.log, news, ledger.ids))
        if len(news.arms):
            ledger.log.add_results(0, news, status=base.PRIOR, at=ledger.log.clock())
    return Receipt(prior=len(news.arms), repeated=len(results.arms) - len(news.arms))
