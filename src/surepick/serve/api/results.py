"""Leases and results: what a caller measures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from itertools import zip_longest
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool

from surepick.core.json import to_json
from surepick.errors import InvalidInput
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.models import Failures, LeaseOf, Results, Totals, Undone, Worker
from surepick.serve.api.routing import API, Measurer, Routes, Shared, Shows
from surepick.serve.api.tables import results_in
from surepick.serve.api.telling import failures_told, prior_told, told, totals_told, worker_of
from surepick.serve.web.callers import Server, address_of
from surepick.studies.batch import Batch
from surepick.studies.recording import Receipt
from surepick.studies.study import Study

router = APIRouter(prefix=API, tags=["measuring"])
routes = Routes(router)
RECEIPT = "X-Surepick-Receipt"
Once = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=200)]


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


@routes.add("POST", "/studies/{name}/leases", Shows.own, who=Role.measurer)
def lease(name: str, wanted: LeaseOf, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """Take measurements: nobody else is given them before the lease has run out. Asking again gives what is left."""
    worker = worker_of(caller, wanted.worker)
    with server.studies.open(name) as study:
        part = study.lease(wanted.max_pulls, worker=worker, duration=wanted.duration, trust_clock=wanted.trust_clock)
        answer = part_of(study, part)
        answer |= {"batch": None if part is None else part.sent()} if wanted.whole else {}
    server.trail.soon(worker, address_of(request), "lease", name, f"{answer['pulls']} measurements")
    return answer


@routes.add("GET", "/studies/{name}/leases", Shows.own, who=Role.measurer)
def leases(name: str, server: Shared, caller: Measurer) -> dict[str, Any]:
    """What the caller holds."""
    with server.studies.open(name) as study:
        held = [part for part in study.progress().out if caller.is_worker(part.worker)]
        return {"leases": [{"worker": one.worker, "pulls": one.pulls, "until": one.until} for one in held]}


@routes.add(
    "POST",
    "/studies/{name}/results",
    Shows.own,
    who=Role.measurer,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": Results.model_json_schema(ref_template="#/components/schemas/{model}")},
                "text/csv": {"schema": {"type": "string"}},
            },
        }
    },
)
async def tell(
    name: str, request: Request, response: Response, server: Shared, caller: Measurer, once: Once = None
) -> dict[str, Any]:
    """Report results, in JSON or as a table (text/csv; columns id, reward, key, and those of quantities and blocks).

    All are stored, or none. Sending the same again changes nothing, and has the same answer; `notes` in it says how
    numbers of a table were read that are not written plainly. The header X-Surepick-Receipt says what became of them
    this time: what counted, and what had been reported before.
    """
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

    notes: list[str] = []

    def read(study: Study) -> Results:
        found, notes[:] = results_in(body, kind, study)
        return found

    def stored() -> tuple[dict[str, Any], Receipt]:
        answer, receipt = store_results(server, name, caller, address_of(request), read, once)
        return answer | ({"notes": notes} if notes else {}), receipt

    return _answered(response, *await run_in_threadpool(stored))


def store_results(
    server: Server,
    name: str,
    caller: Principal,
    address: str,
    read: Callable[[Study], Results],
    once: str | None = None,
) -> tuple[dict[str, Any], Receipt]:
    """Store results, count them, and put that on the trail.

    Args:
        server, name: where the study is, and what it is called.
        caller, address: whose the results are, and from where they come.
        read: gives the results; the study names their columns.
        once: a text that no other request of the caller has; None: each result has a key.

    Raises:
        Refused, SurepickError: as `told`.
    """
    salt = salt_of(caller, once)
    return _stored(
        server, name, caller, address, "tell", "results", lambda study: told(study, caller, read(study), salt)
    )


def _stored(
    server: Server,
    name: str,
    caller: Principal,
    address: str,
    action: str,
    rows: str,
    store: Callable[[Study], tuple[dict[str, Any], Receipt]],
) -> tuple[dict[str, Any], Receipt]:
    """Store what came, count what is new, and put that on the trail.

    Args:
        server, name, caller, address: as of `store_results`.
        action, rows: what is done with what, for the trail.
        store: gives the answer and the receipt.
    """
    with server.studies.open(name) as study:
        answer, receipt = store(study)
    server.metrics.results.inc(receipt.counted)
    number = answer.get("stored", 0) + answer.get("failed", 0)
    server.trail.soon(caller.name, address, action, name, f"{number} {rows}")
    return answer, receipt


def _answered(response: Response, answer: dict[str, Any], receipt: Receipt) -> dict[str, Any]:
    """The answer, with the receipt in a header."""
    response.headers[RECEIPT] = to_json(receipt)
    return answer


def salt_of(caller: Principal, once: str | None) -> str | None:
    """What makes keys of a request's rows that have none: of the caller and the request, and of nobody else's."""
    return None if once is None else hashlib.sha256(json.dumps([caller.name, once]).encode()).hexdigest()[:32]


@routes.add("POST", "/studies/{name}/totals", Shows.own, who=Role.measurer)
def tell_totals(
    name: str,
    came: Totals,
    request: Request,
    response: Response,
    server: Shared,
    caller: Measurer,
    once: Once = None,
) -> dict[str, Any]:
    """Report totals of several measurements, a row each, for instruments that add up."""

    def store(study: Study) -> tuple[dict[str, Any], Receipt]:
        return {"stored": len(came.ids)}, totals_told(study, caller, came, salt_of(caller, once))

    return _answered(response, *_stored(server, name, caller, address_of(request), "tell totals", "rows", store))


@routes.add("POST", "/studies/{name}/prior", Shows.own, who=Role.measurer)
def tell_prior(
    name: str,
    came: Results,
    request: Request,
    response: Response,
    server: Shared,
    caller: Measurer,
    once: Once = None,
) -> dict[str, Any]:
    """Keep results that the study did not ask for; they are never used."""

    def store(study: Study) -> tuple[dict[str, Any], Receipt]:
        return {"stored": len(came.results)}, prior_told(study, caller, came, salt_of(caller, once))

    return _answered(response, *_stored(server, name, caller, address_of(request), "tell prior", "results", store))


@routes.add("POST", "/studies/{name}/failures", Shows.own, who=Role.measurer)
def fail(
    name: str,
    came: Failures,
    request: Request,
    response: Response,
    server: Shared,
    caller: Measurer,
    once: Once = None,
) -> dict[str, Any]:
    """Report measurements that gave no result; they are offered again at once."""

    def store(study: Study) -> tuple[dict[str, Any], Receipt]:
        return {"failed": len(came.ids)}, failures_told(study, caller, came, salt_of(caller, once))

    return _answered(response, *_stored(server, name, caller, address_of(request), "fail", "measurements", store))


@routes.add("POST", "/studies/{name}/release", Shows.own, who=Role.measurer)
def release(name: str, whose: Worker, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """End the caller's leases, so that others can measure; an owner may end those of another worker."""
    anybody = caller.role >= Role.owner and whose.worker is not None
    worker = str(whose.worker) if anybody else worker_of(caller, whose.worker)
    if not worker.strip():
        raise InvalidInput("worker is empty; name the worker whose leases end.")
    with server.studies.open(name) as study:
        released = study.release(worker)
    server.trail.add(caller.name, address_of(request), "release", name, worker)
    return {"worker": worker, "released": released}


@routes.add("POST", "/studies/{name}/undo", Shows.own, who=Role.measurer)
def undo(name: str, which: Undone, request: Request, server: Shared, caller: Measurer) -> dict[str, Any]:
    """Take back results of the open round that the caller reported and that were typed wrongly.

    Their measurements are wanted again, under the same keys. Nobody takes back the results of others.
    """
    worker = worker_of(caller, which.worker)
    with server.studies.open(name) as study:
        ids = study.undo(which.keys, worker=worker, reason=which.reason)
    server.trail.add(caller.name, address_of(request), "undo", name, f"{len(ids)} results")
    return {"undone": len(ids), "ids": ids}
