"""What a study says to others: its certificate, its report, its results, its history; and certificates checked."""

import asyncio
import base64
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Hashable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from fastapi import Query, Request, Response
from fastapi.responses import HTMLResponse, StreamingResponse

from surepick.certificates.document import certificate_document
from surepick.certificates.verify import read_certificate, verify_certificate
from surepick.core.records import encode
from surepick.errors import StorageError
from surepick.linalg.rows import one_thread
from surepick.reports.study.facts import history_of
from surepick.reports.study.page import write_report
from surepick.studies.audit import audit, export_results
from surepick.studies.study import Study
from surepick_server.access.tokens import Principal, Role
from surepick_server.api.models import Document, Keys, PlanOf
from surepick_server.api.routing import API, Measurer, Routes, Shared, Viewer, Visibility
from surepick_server.api.studies import study_status
from surepick_server.web.auth import ServerState
from surepick_server.web.open_studies import HTTPError

Key = tuple[Hashable, ...]
routes = Routes(prefix=API, tags=["documents"])
MOST_FORECAST = 300  # candidates for which a report forecasts
KINDS = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl", "parquet": "application/vnd.apache.parquet"}
Called = Annotated[str | None, Query(max_length=200, description="What the study is called in it; empty: no name.")]


def state_of(study: Study, name: str) -> Key:
    """What documents of the closed rounds depend on: equal states have equal documents."""
    decision, ended, progress = study.log.last_decision(), study.log.ended(), study.progress()
    last = None if decision is None else (decision.plan, decision.at)
    over = None if ended is None else (ended.at, ended.reason)
    return name, study.registration, progress.judged, last, over, progress.withdrawn, study.log.set_aside()


def of_its_state(server: ServerState, name: str, kind: Key, make: Callable[[Study], bytes]) -> bytes:
    """A document of the closed rounds, made once of each state of a study."""
    with server.studies.open(name) as study:
        state = state_of(study, name)

    def made() -> bytes:
        with server.studies.open(name) as study:
            return make(study)

    return server.kept.get((*kind, *state), made)


@routes.add("GET", "/studies/{name}/certificate", Visibility.closed, who=Role.viewer)
def show_certificate(name: str, server: Shared, caller: Viewer, called: Called = None) -> dict[str, Any]:  # noqa: ARG001
    """The answer and all that it rests on; all decisions are computed again first."""
    title = name if called is None else called or None

    def make(study: Study) -> bytes:
        return json.dumps(certificate_document(study, title, check=True), ensure_ascii=False).encode()

    found: dict[str, Any] = json.loads(of_its_state(server, name, ("certificate", title), make))
    return found


@routes.add("GET", "/studies/{name}/report", Visibility.closed, who=Role.viewer, response_class=HTMLResponse)
def read_report(
    name: str,
    server: Shared,
    caller: Viewer,  # noqa: ARG001 (the role counts)
    called: Called = None,
    forecast_up_to: Annotated[int, Query(ge=0)] = MOST_FORECAST,
) -> Response:
    """The study as a page that anybody can read."""
    title, most = name if called is None else called or None, min(forecast_up_to, MOST_FORECAST)

    def make(study: Study) -> bytes:
        with tempfile.TemporaryDirectory() as folder, one_thread():
            page = Path(folder) / "report.html"
            write_report(study, page, name=title, forecast_up_to=most)
            return page.read_bytes()

    content = of_its_state(server, name, ("report", title, most), make).decode("utf-8")
    policy = content.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    return HTMLResponse(content, headers={"content-security-policy": policy.replace("&#39;", "'")})


@routes.add("GET", "/studies/{name}/export.{kind}", Visibility.closed, who=Role.viewer, response_class=Response)
def read_export(name: str, kind: str, server: Shared, caller: Viewer) -> Response:  # noqa: ARG001
    """The results of the closed rounds, as a table: csv, jsonl or parquet."""
    if kind not in KINDS:
        raise HTTPError(HTTPStatus.NOT_FOUND, f"Results are exported as {' or '.join(KINDS)}, not as {kind[:20]!r}.")

    def make(study: Study) -> bytes:
        """The number of its rows, in a line, and the table."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"results.{kind}"
            rows = export_results(study, path)
            return b"%d\n%b" % (rows, path.read_bytes())

    rows, _, table = of_its_state(server, name, ("export", kind), make).partition(b"\n")
    return Response(table, media_type=KINDS[kind], headers={"x-surepick-rows": rows.decode()})


@routes.add("GET", "/studies/{name}/history", Visibility.closed, who=Role.viewer)
def read_history(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """Who told how much of each closed round, and when it was open; and the latest of what was done over HTTP."""

    def make(study: Study) -> bytes:
        return json.dumps(encode(history_of(study.log, study.progress().judged))).encode()

    found = json.loads(of_its_state(server, name, ("history",), make))
    return {"history": found, "trail": [encode(one) for one in server.trail.latest(name)]}


@routes.add("POST", "/verify", Visibility.nothing, who=Role.viewer)
def verify_document(document: Document, caller: Viewer, registered: str | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Compute every number of a certificate again, from its measurements."""
    result = verify_certificate(read_certificate(document), registered=registered)
    return {
        "holds": result.holds,
        "verdict": result.verdict,
        "lines": [{"what": one.what, "holds": one.holds, "words": one.words} for one in result.lines],
        "unchecked": list(result.unchecked),
    }


# --- What happens to a study, as server-sent events: one whenever what may be seen of it changes.

event_routes = Routes(prefix=API, tags=["events"])
PAUSE, HEARTBEAT = 1.0, 15.0  # seconds between two looks, and between two signs of life
STREAM = {"description": "The events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}}
EVENTS: dict[str, Any] = {"response_class": StreamingResponse, "responses": {200: STREAM}}


@event_routes.add("GET", "/studies/{name}/events", Visibility.closed, who=Role.viewer, **EVENTS)
def events(name: str, request: Request, server: Shared, caller: Viewer) -> StreamingResponse:
    """An event `status` at once, and whenever where the study stands has changed; its data is that of the status.

    The stream ends when the caller's token is worth nothing any more.
    """
    with server.studies.open(name):
        pass
    if server.streams >= server.settings.most_streams:
        raise HTTPError(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"{server.settings.most_streams} listen already; ask for the status from time to time.",
            {"retry-after": "60"},
        )
    return StreamingResponse(_stream(name, request, server, caller), media_type="text/event-stream")


async def _stream(name: str, request: Request, server: ServerState, caller: Principal) -> AsyncIterator[str]:
    if server.streams >= server.settings.most_streams:  # others came meanwhile
        return
    server.streams += 1
    try:
        seen, sent = "", time.monotonic()
        while not await request.is_disconnected():
            said = await asyncio.to_thread(_look, name, request, server, caller)
            if said is None:
                return
            shown = json.dumps({**said, "progress": {**said["progress"], "now": 0.0}})
            if shown != seen:
                seen, sent = shown, time.monotonic()
                yield f"event: status\ndata: {json.dumps(said)}\n\n"
            elif time.monotonic() - sent >= HEARTBEAT:
                sent = time.monotonic()
                yield ": still here\n\n"
            await asyncio.sleep(PAUSE)
    finally:
        server.streams -= 1


def _look(name: str, request: Request, server: ServerState, caller: Principal) -> dict[str, Any] | None:
    """Where the study stands; None: the caller may not know any more."""
    if server.known(request) != caller:
        return None
    try:
        with server.studies.open(name) as study:
            return study_status(study, name)
    except StorageError:  # the client asks again, and is told
        return None


# --- What programs need that work with a study over HTTP as they would with one in a database
# (`surepick_server.client`).

library_routes = Routes(prefix=API, tags=["library"])


@library_routes.add("GET", "/me", Visibility.nothing, who=Role.viewer)
def me(caller: Viewer) -> dict[str, Any]:
    """Whose token this is, and what it is for."""
    return {"name": caller.name, "role": caller.role.name, "study": caller.study, "local": caller.token == 0}


@library_routes.add("GET", "/studies/{name}/terms", Visibility.terms, who=Role.viewer)
def read_terms(name: str, server: Shared, caller: Viewer, check: bool = False) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """What a study asks and by which policy, but for the features; with `check` all decisions are computed again."""
    with server.studies.open(name) as study:
        if check:
            audit(study, name)
        stated = server.studies.database.configuration(name)
        return {"study": name.strip(), "ids": study.ids, "registration": study.registration, "configuration": stated}


@library_routes.add("GET", "/studies/{name}/features", Visibility.terms, who=Role.viewer)
def read_features(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """The features of the candidates, by the bytes of their numbers."""
    with server.studies.open(name):
        matrix = np.asarray(server.studies.database.arms(name).features, dtype="<f8")
    return {"packed": base64.b64encode(matrix.tobytes()).decode(), "shape": list(matrix.shape)}


@library_routes.add("POST", "/studies/{name}/plan", Visibility.closed, who=Role.measurer)
def plan(name: str, which: PlanOf, server: Shared, caller: Measurer) -> dict[str, Any]:  # noqa: ARG001
    """The open plan, or a new one; with `free` what of it is neither in nor leased. Nothing is leased."""
    with server.studies.open(name) as study:
        batch = study.free_part() if which.free else study.ask()
        return {"batch": None if batch is None else batch.sent()}


@library_routes.add("GET", "/studies/{name}/open", Visibility.closed, who=Role.viewer)
def open_plan(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """How many measurements of each candidate the open plan lacks, and whether the study has stopped."""
    with server.studies.open(name) as study:
        return {"stopped": study.stopped, "missing": study.missing.tolist()}


@library_routes.add("POST", "/studies/{name}/recorded", Visibility.closed, who=Role.measurer)
def recorded_keys(name: str, which: Keys, server: Shared, caller: Measurer) -> dict[str, Any]:  # noqa: ARG001
    """Whether each of these keys was reported; nothing is said of rewards."""
    with server.studies.open(name) as study:
        return {"recorded": study.recorded(which.ids, which.keys)}


@library_routes.add("GET", "/studies/{name}/answer", Visibility.closed, who=Role.viewer)
def read_answer(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """The answer of the closed rounds, what it rests on, and how the study was closed early, if it was."""
    with server.studies.open(name) as study:
        return {
            "certificate": encode(study.certificate(), sparse=True),
            "early_end": encode(study.early_end()),
            "best_arm": study.recommend(),
            "trace": [encode(row, sparse=True) for row in study.trace],
        }


ROUTERS = tuple(one.router for one in (routes, event_routes, library_routes))
