"""Answer, history, certificate, report and results of a study; and certificates that are checked."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from surepick.errors import InvalidInput, SurepickError
from surepick.linalg.blas_threads import one_thread
from surepick.questions import TopM, list_names
from surepick.reports.study.page import report_drawings
from surepick.serve.access.roles import Role
from surepick.serve.api import documents
from surepick.serve.api.routing import Routes, Shared, Shows, Viewer
from surepick.serve.pages.forms import Posted
from surepick.serve.pages.shell import page
from surepick.serve.pages.study import standing_of
from surepick.serve.web.callers import Server
from surepick.serve.web.problems import status_of
from surepick.studies.study import Study

router = APIRouter(include_in_schema=False)
routes = Routes(router)
Drawings = list[tuple[str, str, Markup]]
MOST_DRAWN = 5_000  # candidates of a study whose pictures are drawn here; the report has those of larger ones


@routes.add("GET", "/studies/{name}/answer", Shows.closed, who=Role.viewer)
def answer(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """What the closed rounds say."""
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
        found = study.certificate() if shown["progress"].judged or shown["over"] else None
        drawn = shown["progress"].judged and len(study.ids) <= MOST_DRAWN
        problem = study.policy.problem
    drawings = drawings_of(server, name) if drawn else []
    asked = TopM(1) if problem.question is None else problem.question  # of each segment, where it is none
    names = list_names(asked, problem.epsilon)
    return page(request, "answer.html", caller, answer=found, drawings=drawings, names=names, **shown)


@routes.add("GET", "/studies/{name}/history", Shows.closed, who=Role.viewer)
def history(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """Who told how much of each closed round, and what was done over HTTP."""
    found = documents.history(name, server, caller)
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
    return page(request, "history.html", caller, history=found["history"], trail=found["trail"], **shown)


@routes.add("GET", "/studies/{name}/report", Shows.closed, who=Role.viewer)
def report(name: str, server: Shared, caller: Viewer) -> Response:
    """The report, with a policy of its own."""
    return documents.report(name, server, caller)


@routes.add("GET", "/studies/{name}/certificate.json", Shows.closed, who=Role.viewer)
def certificate(name: str, server: Shared, caller: Viewer) -> Response:
    """The certificate, as a file."""
    text = json.dumps(documents.certificate(name, server, caller), indent=1, ensure_ascii=False)
    named = {"content-disposition": 'attachment; filename="certificate.json"'}
    return Response(text, media_type="application/json", headers=named)


@routes.add("GET", "/studies/{name}/results.csv", Shows.closed, who=Role.viewer)
def results_table(name: str, server: Shared, caller: Viewer) -> Response:
    """The results of the closed rounds, as a file."""
    found = documents.export(name, "csv", server, caller)
    found.headers["content-disposition"] = 'attachment; filename="results.csv"'
    return found


@routes.add("GET", "/verify", Shows.nothing, who=Role.viewer)
def verify_page(request: Request, server: Shared, caller: Viewer) -> Response:  # noqa: ARG001
    """Where a certificate is dropped."""
    return page(request, "verify.html", caller, result=None, error="", code="", pasted="")


@routes.add("POST", "/verify", Shows.nothing, who=Role.viewer)
def verify(request: Request, server: Shared, caller: Viewer, form: Posted) -> Response:  # noqa: ARG001
    """Compute the certificate's numbers again."""
    content = form.files["file"][1] if "file" in form.files else form.raw("pasted").encode()
    code, error, result, status = form.text("code"), "", None, HTTPStatus.OK
    try:
        result = documents.verify(_document(content), caller, code or None)
    except SurepickError as problem:
        error, status = str(problem), status_of(problem)
    pasted = "" if "file" in form.files else form.raw("pasted")
    return page(request, "verify.html", caller, status=status, result=result, error=error, code=code, pasted=pasted)


def _document(content: bytes) -> dict[str, Any]:
    if not content.strip():
        raise InvalidInput("There is no certificate: choose its file, or paste its text.")
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidInput("This is no certificate: it is no JSON in UTF-8.") from None
    if not isinstance(found, dict):
        raise InvalidInput("This is no certificate: it is JSON of another kind.")
    return found


def drawings_of(server: Server, name: str) -> Drawings:
    """The report's pictures of the closed rounds of a study that is not too large."""

    def make(study: Study) -> bytes:
        with one_thread():
            return json.dumps([*map(list, report_drawings(study))]).encode()

    found = json.loads(documents.of_its_state(server, name, ("drawings",), make))
    return [(key, heading, Markup(drawing)) for key, heading, drawing in found]
