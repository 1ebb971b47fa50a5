"""What a study says: its answer, history, certificate, report and results; and certificates that are checked."""

import json
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response

from surepick.errors import InvalidInput, SurepickError
from surepick.questions import asked_of
from surepick.studies.logs.sql.descriptions import TITLE
from surepick_server.access.tokens import Role
from surepick_server.api import documents
from surepick_server.api.routing import Routes, Shared, Viewer, Visibility
from surepick_server.pages.drawings import MOST_DRAWN, drawings_of
from surepick_server.pages.layout import Posted, page, root_of, study_path
from surepick_server.pages.standing import standing_of
from surepick_server.web.open_studies import status_of

routes = Routes(include_in_schema=False)


@routes.add("GET", "/studies/{name}/answer", Visibility.closed, who=Role.viewer)
def answer_page(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """What the closed rounds say."""
    with server.studies.open(name) as study:
        shown = standing_of(server, study, name, caller)
        found = study.certificate() if shown["progress"].judged or shown["over"] else None
        problem = study.policy.problem
    results = f"{root_of(request)}{study_path(name, 'results.csv')}"
    few = shown["asked"]["candidates"] <= MOST_DRAWN
    drawings = drawings_of(server, name, results) if shown["progress"].judged and few else {}
    asked = asked_of(problem.question, by_segment=True)
    names = None if asked is None else asked.called(problem.epsilon)
    return page(request, "answer.html", caller, answer=found, drawings=drawings, names=names, **shown)


@routes.add("GET", "/studies/{name}/history", Visibility.closed, who=Role.viewer)
def history_page(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """Who told how much of each closed round, and what was done over HTTP."""
    found = documents.read_history(name, server, caller)
    with server.studies.open(name) as study:
        shown = standing_of(server, study, name, caller)
    return page(request, "history.html", caller, history=found["history"], trail=found["trail"], **shown)


@routes.add("GET", "/studies/{name}/report", Visibility.closed, who=Role.viewer)
def report_page(name: str, server: Shared, caller: Viewer) -> Response:
    """The report, with a policy of its own."""
    called = server.studies.database.said(name).get(name, {}).get(TITLE, name)
    return documents.read_report(name, server, caller, called)


@routes.add("GET", "/studies/{name}/certificate.json", Visibility.closed, who=Role.viewer)
def certificate_page(name: str, server: Shared, caller: Viewer) -> Response:
    """The certificate, as a file."""
    text = json.dumps(documents.show_certificate(name, server, caller), indent=1, ensure_ascii=False)
    named = {"content-disposition": 'attachment; filename="certificate.json"'}
    return Response(text, media_type="application/json", headers=named)


@routes.add("GET", "/studies/{name}/results.csv", Visibility.closed, who=Role.viewer)
def results_table(name: str, server: Shared, caller: Viewer) -> Response:
    """The results of the closed rounds, as a file."""
    found = documents.read_export(name, "csv", server, caller)
    found.headers["content-disposition"] = 'attachment; filename="results.csv"'
    return found


@routes.add("GET", "/verify", Visibility.nothing, who=Role.viewer)
def verify_page(request: Request, server: Shared, caller: Viewer) -> Response:  # noqa: ARG001
    """Where a certificate is dropped."""
    return page(request, "verify.html", caller, result=None, error="", code="", pasted="")


@routes.add("POST", "/verify", Visibility.nothing, who=Role.viewer)
def verify(request: Request, server: Shared, caller: Viewer, form: Posted) -> Response:  # noqa: ARG001
    """Compute the certificate's numbers again."""
    content = form.files["file"][1] if "file" in form.files else form.raw("pasted").encode()
    code, error, result, status = form.text("code"), "", None, HTTPStatus.OK
    try:
        result = documents.verify_document(_document(content), caller, code or None)
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
