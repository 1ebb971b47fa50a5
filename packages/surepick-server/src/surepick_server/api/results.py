"""Leases and results: what a caller measures."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from functools import partial
from http import HTTPStatus
from itertools import zip_longest
from typing import Annotated, Any, TypeVar

import numpy as np
from fastapi import Depends, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders

from surepick.core.observations import Quantity
from surepick.core.records import record, to_json
from surepick.errors import InvalidInput, SurepickError, UnusualResult
from surepick.studies.ledger import Batch
from surepick.studies.logs.base import COUNTED, LATE
from surepick.studies.logs.keys import canonical_keys, read_item_key, read_pull_key, with_items
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.text import quoted
from surepick_server.access.tokens import Principal, Role
from surepick_server.api.models import Correction, Failures, LeaseOf, ResultBody, ResultsBody, Totals, Undone, Worker
from surepick_server.api.routing import API, Measurer, Routes, Shared, Visibility
from surepick_server.api.studies import results_in
from surepick_server.web.auth import ServerState, address_of
from surepick_server.web.open_studies import HTTPError

# --- What callers may report: their own measurements, so that nobody learns of another's by trying values.

OF_REQUEST = "request:"  # before the keys of results that came without one: no caller may give such a key


def worker_of(caller: Principal, given: str | None) -> str:
    """Under which name a caller works: their own, or one of their parts."""
    worker = caller.name if given is None else given
    if not caller.is_worker(worker):
        raise HTTPError(
            HTTPStatus.FORBIDDEN,
            f"You are {caller.name!r}: leave worker out, or name a part of you, '{caller.name}/1'.",
        )
    return worker


def receipt_told(
    study: Study, caller: Principal, came: ResultsBody, salt: str | None = None
) -> tuple[dict[str, Any], Receipt]:
    """Store results; the same again have the same answer, which is about what is stored, and another receipt."""
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
        places = tuple(good[row] for row in question.rows)
        raise UnusualResult(str(question), rows=places, beside=question.beside) from None
    plan_next(study, receipt)
    statuses = Counter({COUNTED: receipt.counted, LATE: receipt.late})
    if receipt.repeated or failed:
        statuses = Counter(one.status for one in study.log.recorded([keys[place] for place in good]).values())
    counts = {"counted": statuses[COUNTED], "late": statuses[LATE]}
    return {"stored": len(good), **counts, "failed": len(failed)}, receipt


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


def prior_told(study: Study, caller: Principal, came: ResultsBody, salt: str | None) -> Receipt:
    """Keep results that were not asked for; as `told`."""
    worker, ids = worker_of(caller, came.worker), [row.id for row in came.results]
    keys = _keys(study, came.results, salt)
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
    """Refuse keys of somebody else's results or leases: who may try values under them learns whether they are right."""
    stored = study.log.recorded(list(keys))
    others = [key for key, one in stored.items() if not caller.is_worker(one.source)]
    if others:
        raise HTTPError(HTTPStatus.CONFLICT, f"Key {others[0]!r} was reported by somebody else. Nothing was stored.")
    if caller.role >= Role.owner:
        return
    planned = study.log.last_plan()
    if planned is None:
        return
    look, index = study.replay.look(planned), {name: place for place, name in enumerate(study.ids)}
    for name, key in zip(ids, keys, strict=True):
        if name in index and not caller.is_worker(_holder(study, look, index[name], key, caller)):
            raise HTTPError(
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


def _keys(study: Study, rows: Sequence[ResultBody], salt: str | None) -> list[str]:
    """The key of each result, in its one form."""
    given: list[str | None] = [row.key for row in rows]
    of_items = [row for row in rows if row.item is not None]
    if of_items:
        columns = [row.id for row in of_items], [row.item for row in of_items], [row.key for row in of_items]
        named = iter(with_items(study.policy.traits.items, *columns))
        given = [row.key if row.item is None else next(named) for row in rows]
    return keyed([row.id for row in rows], given, salt)


def keyed(ids: Sequence[str], keys: Sequence[str | None] | None, salt: str | None) -> list[str]:
    """A key for each row: those that were given, in their one form, and for others one of the request's own."""
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


def _values(study: Study, rows: Sequence[ResultBody]) -> Any:
    """The rewards; with constraints a row for each, with what else was measured."""
    names = [one.name for one in study.constraints]
    unknown = sorted({name for row in rows for name in row.quantities} - set(names))
    if unknown:
        raise InvalidInput(f"{unknown[0]!r} is no quantity of this study; it has {', '.join(names) or 'none'}.")
    if not names:
        return [row.reward for row in rows]
    beside = [[row.reward, *(row.quantities.get(name) for name in names)] for row in rows]
    return np.array([[np.nan if value is None else value for value in row] for row in beside], np.float64)


routes = Routes(prefix=API, tags=["measuring"])
RECEIPT = "X-Surepick-Receipt"
Once = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]
Came = TypeVar("Came")
Store = Callable[[Study, Principal, Came, str | None], Receipt]


@record
class Reporter:
    """Who reports to a server, and from where."""

    server: ServerState
    caller: Principal
    address: str
    salt: str | None = None  # makes keys of rows that have none: of the caller and the request, and of nobody else's
    headers: MutableHeaders = field(default_factory=MutableHeaders)  # of the answer

    def results(self, name: str, read: Callable[[Study], ResultsBody]) -> dict[str, Any]:
        """Store single results."""
        with self.server.studies.open(name) as study:
            answer, receipt = receipt_told(study, self.caller, read(study), self.salt)
        return self._noted(name, "tell", "results", answer, receipt)

    def stored(
        self, name: str, action: str, rows: str, answer: dict[str, Any], store: Store[Came], came: Came
    ) -> dict[str, Any]:
        """Store what came; the answer says how much that is."""
        with self.server.studies.open(name) as study:
            receipt = store(study, self.caller, came, self.salt)
        return self._noted(name, action, rows, answer, receipt)

    def _noted(self, name: str, action: str, rows: str, answer: dict[str, Any], receipt: Receipt) -> dict[str, Any]:
        """Count what is new, put what came on the trail, and the receipt into a header."""
        self.server.metrics.results.inc(receipt.counted)
        number = answer.get("stored", 0) + answer.get("failed", 0)
        self.server.trail.soon(self.caller.name, self.address, action, name, f"{number} {rows}")
        self.headers[RECEIPT] = to_json(receipt)
        return answer


async def reporting(
    request: Request, response: Response, server: Shared, caller: Measurer, once: Once = None
) -> Reporter:
    """Whoever sends a request."""
    salt = None if once is None else hashlib.sha256(json.dumps([caller.name, once]).encode()).hexdigest()[:32]
    return Reporter(server, caller, address_of(request), salt, response.headers)


Telling = Annotated[Reporter, Depends(reporting)]


def part_of(study: Study, part: Batch | None) -> dict[str, Any]:
    """A lease, measurement by measurement."""
    if part is None:
        return {"stopped": True, "plan": 0, "round": 0, "pulls": 0, "lease": None, "measurements": []}
    keyed = part.keys() if part.total else []
    rows = zip_longest(keyed, part.item_ids if part.total else (), part.blocks if keyed else ())
    lease = part.lease
    return {
        "stopped": False,
        "plan": part.number,
        "round": part.round,
        "pulls": part.total,
        "lease": None if lease is None else {"number": lease.number, "worker": lease.worker, "until": lease.until},
        "measurements": [
            {"id": pair[0], "key": pair[1]}
            | ({} if item is None else {"item": item})
            | ({} if block is None else {"block": block})
            for pair, item, block in rows
        ],
        "quantities": [one.name for one in study.constraints],
        "block": part.block_name or None,
    }


@routes.add("POST", "/studies/{name}/leases", Visibility.own, who=Role.measurer)
def lease(name: str, wanted: LeaseOf, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """Take measurements: nobody else is given them before the lease has run out. Asking again gives what is left."""
    worker = worker_of(caller, wanted.worker)
    with server.studies.open(name) as study:
        part = study.lease(wanted.max_pulls, worker=worker, duration=wanted.duration, trust_clock=wanted.trust_clock)
        answer = part_of(study, part)
        answer |= {"batch": None if part is None else part.sent()} if wanted.whole else {}
    server.trail.soon(worker, address_of(request), "lease", name, f"{answer['pulls']} measurements")
    return answer


@routes.add("GET", "/studies/{name}/leases", Visibility.own, who=Role.measurer)
def leases(name: str, server: Shared, caller: Measurer) -> dict[str, Any]:
    """What the caller holds."""
    with server.studies.open(name) as study:
        held = [part for part in study.progress().out if caller.is_worker(part.worker)]
        return {"leases": [{"worker": one.worker, "pulls": one.pulls, "until": one.until} for one in held]}


SCHEMA = ResultsBody.model_json_schema(ref_template="#/components/schemas/{model}")
CONTENT = {"application/json": {"schema": SCHEMA}, "text/csv": {"schema": {"type": "string"}}}
BODY = {"requestBody": {"required": True, "content": CONTENT}}


@routes.add("POST", "/studies/{name}/results", Visibility.own, who=Role.measurer, openapi_extra=BODY)
async def tell_results(name: str, request: Request, reporter: Telling) -> dict[str, Any]:
    """Report results, in JSON or as a table (text/csv; columns id, reward, key, and those of quantities and blocks).

    All are stored, or none. Sending the same again changes nothing, and has the same answer; `notes` in it says how
    numbers of a table were read that are not written plainly. The header X-Surepick-Receipt says what became of them
    this time: what counted, and what had been reported before.
    """
    body, notes = await request.body(), list[str]()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

    def read(study: Study) -> ResultsBody:
        found, notes[:] = results_in(body, kind, study)
        return found

    answer = await run_in_threadpool(reporter.results, name, read)
    return answer | ({"notes": notes} if notes else {})


@routes.add("POST", "/studies/{name}/totals", Visibility.own, who=Role.measurer)
def tell_totals(name: str, came: Totals, reporter: Telling) -> dict[str, Any]:
    """Report totals of several measurements, a row each, for instruments that add up."""
    return reporter.stored(name, "tell totals", "rows", {"stored": len(came.ids)}, totals_told, came)


@routes.add("POST", "/studies/{name}/prior", Visibility.own, who=Role.measurer)
def tell_prior(name: str, came: ResultsBody, reporter: Telling) -> dict[str, Any]:
    """Keep results that the study did not ask for; they are never used."""
    return reporter.stored(name, "tell prior", "results", {"stored": len(came.results)}, prior_told, came)


@routes.add("POST", "/studies/{name}/failures", Visibility.own, who=Role.measurer)
def report_failures(name: str, came: Failures, reporter: Telling) -> dict[str, Any]:
    """Report measurements that gave no result; they are offered again at once."""
    return reporter.stored(name, "fail", "measurements", {"failed": len(came.ids)}, failures_told, came)


@routes.add("POST", "/studies/{name}/release", Visibility.own, who=Role.measurer)
def release_worker(name: str, whose: Worker, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """End the caller's leases, so that others can measure; an owner may end those of another worker."""
    anybody = caller.role >= Role.owner and whose.worker is not None
    worker = str(whose.worker) if anybody else worker_of(caller, whose.worker)
    if not worker.strip():
        raise InvalidInput("worker is empty; name the worker whose leases end.")
    with server.studies.open(name) as study:
        released = study.release(worker)
    server.trail.add(caller.name, address_of(request), "release", name, worker)
    return {"worker": worker, "released": released}


@routes.add("POST", "/studies/{name}/undo", Visibility.own, who=Role.measurer)
def undo_results(name: str, which: Undone, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """Take back results of the open round that the caller reported and that were typed wrongly.

    Their measurements are wanted again, under the same keys. Nobody takes back the results of others.
    """
    worker = worker_of(caller, which.worker)
    with server.studies.open(name) as study:
        ids = study.undo(which.keys, worker=worker, reason=which.reason)
    server.trail.add(caller.name, address_of(request), "undo", name, f"{len(ids)} results")
    return {"undone": len(ids), "ids": ids}


@routes.add("POST", "/studies/{name}/correct", Visibility.own, who=Role.measurer)
def correct_result(name: str, which: Correction, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """Put what was read in the place of a result of a closed round that the caller reported and that was typed wrongly.

    What was planned because of it stays planned. Where a round is open, `waits` is its number: the correction counts
    once it is closed.
    """
    worker = worker_of(caller, which.worker)
    with server.studies.open(name) as study:
        told = study.correct(which.key, which.value, typed=which.typed, worker=worker, reason=which.reason)
    server.trail.add(caller.name, address_of(request), "correct", name, f"{told.id}: {told.typed:g} to {told.read:g}")
    return asdict(told)
