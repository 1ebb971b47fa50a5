"""Leases and results: what a caller measures."""

from __future__ import annotations

from itertools import zip_longest
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.concurrency import run_in_threadpool

from surepick.errors import InvalidInput
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.models import LeaseOf, Results, Worker
from surepick.serve.api.routing import API, Measurer, Routes, Shared, Shows
from surepick.serve.api.tables import results_in
from surepick.serve.api.telling import told, worker_of
from surepick.serve.web.callers import Server, address_of
from surepick.studies.batch import Batch
from surepick.studies.study import Study

router = APIRouter(prefix=API, tags=["measuring"])
routes = Routes(router)
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
        part = study.lease(wanted.max_pulls, worker=worker, duration=wanted.duration)
        answer = part_of(study, part)
    server.trail.add(worker, address_of(request), "lease", name, f"{answer['pulls']} measurements")
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
async def tell(name: str, request: Request, server: Shared, caller: Measurer, once: Once = None) -> dict[str, Any]:
    """Report results, in JSON or as a table (text/csv; columns id, reward, key, and those of quantities and blocks).

    All are stored, or none. Sending the same again changes nothing, and has the same answer.
    """
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return await run_in_threadpool(_tell, name, body, kind, address_of(request), server, caller, once)


def _tell(
    name: str, body: bytes, kind: str, address: str, server: Server, caller: Principal, once: str | None
) -> dict[str, Any]:
    with server.studies.open(name) as study:
        came = results_in(body, kind, study)
        answer = told(study, caller, came, None if once is None else f"{caller.name}/{once}")
    server.metrics.results.inc(answer["counted"])
    server.trail.add(caller.name, address, "tell", name, f"{len(came.results)} results")
    return answer


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
