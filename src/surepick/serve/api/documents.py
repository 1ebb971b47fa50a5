"""What a study says to others: its certificate, its report, its results, its history; and certificates checked."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Hashable
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from surepick.certificates.document import certificate_document
from surepick.certificates.verify import read_certificate, verify_certificate
from surepick.core.json import encode
from surepick.linalg.blas_threads import one_thread
from surepick.reports.study.history import history_of
from surepick.reports.study.page import write_report
from surepick.serve.access.roles import Role
from surepick.serve.api.models import Document
from surepick.serve.api.routing import API, Routes, Shared, Shows, Viewer
from surepick.serve.web.callers import Server
from surepick.serve.web.problems import Refused
from surepick.studies.reading.export import export_results
from surepick.studies.study import Study

Key = tuple[Hashable, ...]
router = APIRouter(prefix=API, tags=["documents"])
routes = Routes(router)
MOST_FORECAST = 300  # candidates for which a report forecasts
KINDS = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}
Called = Annotated[str | None, Query(max_length=200, description="What the study is called in it; empty: no name.")]


def state_of(study: Study, name: str) -> Key:
    """What documents of the closed rounds depend on: equal states have equal documents."""
    decision, ended, progress = study.log.last_decision(), study.log.ended(), study.progress()
    last = None if decision is None else (decision.plan, decision.at)
    over = None if ended is None else (ended.at, ended.reason)
    return name, study.registration, progress.judged, last, over, progress.withdrawn, study.log.set_aside()


def of_its_state(server: Server, name: str, kind: Key, make: Callable[[Study], bytes]) -> bytes:
    """A document of the closed rounds, made once of each state of a study.

    Args:
        server, name: where the study is, and what it is called.
        kind: what document, and what it depends on beside the study.
        make: makes it.
    """
    with server.studies.open(name) as study:
        state = state_of(study, name)

    def made() -> bytes:
        with server.studies.open(name) as study:
            return make(study)

    return server.kept.get((*kind, *state), made)


@routes.add("GET", "/studies/{name}/certificate", Shows.closed, who=Role.viewer)
def certificate(name: str, server: Shared, caller: Viewer, called: Called = None) -> dict[str, Any]:  # noqa: ARG001
    """The answer and all that it rests on; all decisions are computed again first."""
    title = name if called is None else called or None

    def make(study: Study) -> bytes:
        return json.dumps(certificate_document(study, title, check=True), ensure_ascii=False).encode()

    found: dict[str, Any] = json.loads(of_its_state(server, name, ("certificate", title), make))
    return found


@routes.add("GET", "/studies/{name}/report", Shows.closed, who=Role.viewer, response_class=HTMLResponse)
def report(
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


@routes.add("GET", "/studies/{name}/export.{kind}", Shows.closed, who=Role.viewer, response_class=Response)
def export(name: str, kind: str, server: Shared, caller: Viewer) -> Response:  # noqa: ARG001
    """The results of the closed rounds, as a table: csv, jsonl or parquet."""
    if kind not in KINDS:
        raise Refused(HTTPStatus.NOT_FOUND, f"Results are exported as {' or '.join(KINDS)}, not as {kind[:20]!r}.")

    def make(study: Study) -> bytes:
        """The number of its rows, in a line, and the table."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"results.{kind}"
            rows = export_results(study, path)
            return b"%d\n%b" % (rows, path.read_bytes())

    rows, _, table = of_its_state(server, name, ("export", kind), make).partition(b"\n")
    return Response(table, media_type=KINDS[kind], headers={"x-surepick-rows": rows.decode()})


@routes.add("GET", "/studies/{name}/history", Shows.closed, who=Role.viewer)
def history(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """Who told how much of each closed round, and when it was open; and the latest of what was done over HTTP."""

    def make(study: Study) -> bytes:
        return json.dumps(encode(history_of(study.log, study.progress().judged))).encode()

    found = json.loads(of_its_state(server, name, ("history",), make))
    return {"history": found, "trail": [encode(one) for one in server.trail.latest(name)]}


@routes.add("POST", "/verify", Shows.nothing, who=Role.viewer)
def verify(document: Document, caller: Viewer, registered: str | None = None) -> dict[str, Any]:  # noqa: ARG001
    """Compute every number of a certificate again, from its measurements."""
    result = verify_certificate(read_certificate(document), registered=registered)
    return {
        "holds": result.holds,
        "verdict": result.verdict,
        "lines": [{"what": one.what, "holds": one.holds, "words": one.words} for one in result.lines],
        "unchecked": list(result.unchecked),
    }
