"""What callers may report: their own measurements, so that nobody learns of another's by trying values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any

import numpy as np

from surepick.core.observations import Quantity
from surepick.errors import InvalidInput, SurepickError, UnusualResult
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.models import Failures, Result, Results, Totals
from surepick.serve.web.problems import Refused
from surepick.studies.logs.base import COUNTED, LATE
from surepick.studies.logs.item_keys import with_items
from surepick.studies.logs.keys import canonical_keys, read_item_key, read_pull_key
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.text import quoted

OF_REQUEST = "request:"  # before the keys of results that came without one: no caller may give such a key


def worker_of(caller: Principal, given: str | None) -> str:
    """Under which name a caller works: their own, or one of their parts.

    Raises:
        Refused: it is another's.
    """
    worker = caller.name if given is None else given
    if not caller.is_worker(worker):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            f"You are {caller.name!r}: leave worker out, or name a part of you, '{caller.name}/1'.",
        )
    return worker


def told(study: Study, caller: Principal, came: Results, salt: str | None = None) -> tuple[dict[str, Any], Receipt]:
    """Store results; the answer depends on what is stored, so that the same results again have the same answer.

    The receipt says what became of them this time.

    Args:
        study: of which they are.
        caller: whose they are.
        came: the results.
        salt: makes keys for those without one; None: each has to have a key.

    Raises:
        Refused: one has no key, or another's.
        SurepickError: as `Study.tell`.
    """
    worker, rows = worker_of(caller, came.worker), came.results
    ids, keys = [row.id for row in rows], _keys(study, rows, salt)
    check_own(study, caller, ids, keys)
    good = [place for place, row in enumerate(rows) if not row.failed]
    failed = [(ids[place], keys[place]) for place, row in enumerate(rows) if row.failed]
    without = [rows[place].id for place in good if rows[place].reward is None]
    if without:
        raise InvalidInput(f"the result of {without[0]!r} has no reward; give one, or say that it failed.")
    blocks = [rows[place].block for place in good]
    tell = partial(
        study.tell,
        [ids[place] for place in good],
        _values(study, [rows[place] for place in good]),
        [keys[place] for place in good],
        worker=worker,
        plan=came.plan,
        blocks=blocks if any(one is not None for one in blocks) else None,
        failed=failed,
        accept_unusual=came.accept_unusual,
    )
    try:
        receipt = tell()
    except UnusualResult as question:
        raise UnusualResult(str(question), rows=tuple(good[row] for row in question.rows)) from None
    plan_next(study, receipt)
    statuses = Counter({COUNTED: receipt.counted, LATE: receipt.late})
    if receipt.repeated or failed:
        statuses = Counter(one.status for one in study.log.recorded([keys[place] for place in good]).values())
    answer = {
        "stored": len(good),
        "counted": statuses[COUNTED],
        "late": statuses[LATE],
        "failed": len(failed),
    }
    return answer, receipt


def totals_told(study: Study, caller: Principal, came: Totals, salt: str | None) -> Receipt:
    """Store totals; as `told`."""
    worker, keys = worker_of(caller, came.worker), keyed(came.ids, came.keys, salt)
    check_own(study, caller, came.ids, keys)
    quantities = None
    if came.quantities is not None:
        columns = [(one.counts, one.sums, one.squares) for one in came.quantities]
        if any(len(column) != len(one[0]) for one in columns for column in one):
            raise InvalidInput("the totals of a quantity have columns of different lengths.")
        quantities = [Quantity(*map(np.array, one)) for one in columns]
    receipt = study.tell_totals(
        came.ids,
        came.pulls,
        came.sums,
        came.squares,
        keys,
        worker=worker,
        plan=came.plan,
        blocks=came.blocks,
        quantities=quantities,
        accept_unusual=came.accept_unusual,
    )
    plan_next(study, receipt)
    return receipt


def prior_told(study: Study, caller: Principal, came: Results, salt: str | None) -> Receipt:
    """Keep results that were not asked for; as `told`."""
    worker, ids, keys = (
        worker_of(caller, came.worker),
        [row.id for row in came.results],
        _keys(study, came.results, salt),
    )
    check_own(study, caller, ids, keys)
    without = [row.id for row in came.results if row.reward is None]
    if without:
        raise InvalidInput(f"the result of {without[0]!r} has no reward; give one, or leave it out.")
    return study.tell_prior(ids, _values(study, came.results), keys, worker=worker)


def failures_told(study: Study, caller: Principal, came: Failures, salt: str | None) -> Receipt:
    """Record measurements that gave no result; as `told`."""
    worker, keys = worker_of(caller, came.worker), keyed(came.ids, came.keys, salt)
    check_own(study, caller, came.ids, keys)
    return study.fail(came.ids, keys, worker=worker)


def plan_next(study: Study, receipt: Receipt) -> None:
    """The next plan, where results completed one, so that asking for it is quick."""
    if receipt.closed or receipt.repeated:  # repeated: the process that completed it may have been killed before
        with suppress(SurepickError):  # what came is stored: whoever asks is told why there is no plan
            study.ask()


def check_own(study: Study, caller: Principal, ids: Sequence[str], keys: Sequence[str]) -> None:
    """Refuse keys under which somebody else reported, and keys of measurements that are leased to somebody else.

    Whoever may try values under another's key learns whether they are the right ones.

    Raises:
        Refused: there is one.
    """
    stored = study.log.recorded(list(keys))
    others = [key for key, one in stored.items() if not caller.is_worker(one.source)]
    if others:
        raise Refused(HTTPStatus.CONFLICT, f"Key {others[0]!r} was reported by somebody else. Nothing was stored.")
    if caller.role >= Role.owner:
        return
    planned = study.log.last_plan()
    if planned is None:
        return
    look, index = study.replay.look(planned), {name: place for place, name in enumerate(study.ids)}
    for name, key in zip(ids, keys, strict=True):
        if name in index and not caller.is_worker(_holder(study, look, index[name], key, caller)):
            raise Refused(
                HTTPStatus.FORBIDDEN, f"The measurement {key!r} is leased to somebody else. Nothing was stored."
            )


def _holder(study: Study, look: OpenPlan, arm: int, key: str, caller: Principal) -> str:
    """To whom the measurement of a key is leased; the caller, where to nobody.

    An item is leased again under its own key once a lease has run out: who had it before may still answer it.
    """
    named = read_pull_key(key)
    if named is not None and named[0] == look.planned.number:
        number = look.lease_of(arm, ordinal=named[1], worker=caller.name)
        return look.held[number].lease.worker if number else caller.name
    if read_item_key(key) < 0:
        return caller.name
    had = [one.lease.worker for one in look.held.values() if one.leased.counts[arm]]
    holds = [one.lease.worker for one in look.running(study.log.clock()) if one.left[arm]]
    return caller.name if not holds or any(map(caller.is_worker, had)) else holds[0]


def _keys(study: Study, rows: Sequence[Result], salt: str | None) -> list[str]:
    """The key of each result, in its one form.

    Raises:
        InvalidInput: one has none.
    """
    given: list[str | None] = [row.key for row in rows]
    of_items = [row for row in rows if row.item is not None]
    if of_items:
        columns = [row.id for row in of_items], [row.item for row in of_items], [row.key for row in of_items]
        named = iter(with_items(study.policy.traits.items, *columns))
        given = [row.key if row.item is None else next(named) for row in rows]
    return keyed([row.id for row in rows], given, salt)


def keyed(ids: Sequence[str], keys: Sequence[str | None] | None, salt: str | None) -> list[str]:
    """A key for each row: those that were given, in their one form, and for others one of the request's own.

    Raises:
        InvalidInput: one has none, and nothing tells this request from others; or one is of that kind.
    """
    given = canonical_keys([None] * len(ids) if keys is None else keys, ids) or ()
    reserved = [key for key in given if key is not None and key.startswith(OF_REQUEST)]
    if reserved:
        raise InvalidInput(
            f"a key is {quoted(reserved[0])}, as this server calls results that came without one; give another."
        )
    if None in given and salt is None:
        raise InvalidInput(
            "each result needs the key of its measurement, which a lease has, so that it counts once however often it "
            "is sent. For measurements without a lease send the header Idempotency-Key: a text that no other request "
            "of yours has."
        )
    return [f"{OF_REQUEST}{salt}.{place}" if key is None else key for place, key in enumerate(given)]


def _values(study: Study, rows: Sequence[Result]) -> Any:
    """The rewards; with constraints a row for each, with what else was measured."""
    names = [one.name for one in study.constraints]
    unknown = sorted({name for row in rows for name in row.quantities} - set(names))
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is no quantity of this study; it has {', '.join(names) or 'none'}.")
    if not names:
        return [row.reward for row in rows]
    beside = [[row.reward, *(row.quantities.get(name) for name in names)] for row in rows]
    return np.array([[np.nan if value is None else value for value in row] for row in beside], np.float64)
