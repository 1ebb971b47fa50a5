"""Refusals: pages for people, a way to the login for those who are not known, and problem documents for programs."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

from fastapi import Request, Response

from surepick.errors import SurepickError
from surepick.serve.access.roles import Principal
from surepick.serve.pages.shell import page, path_of, root_of, to
from surepick.serve.web.callers import server_of
from surepick.serve.web.problems import as_document

PROGRAMS = ("/api/", "/healthz", "/metrics")
TITLES = {
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.FORBIDDEN: "This is not allowed",
    HTTPStatus.CONFLICT: "This cannot be done now",
    HTTPStatus.UNPROCESSABLE_ENTITY: "This cannot be done so",
    HTTPStatus.TOO_MANY_REQUESTS: "Too many requests",
    HTTPStatus.BAD_GATEWAY: "Another server does not do its part",
    HTTPStatus.SERVICE_UNAVAILABLE: "This does not work now",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "This is too large",
}


def answer(
    request: Request, status: int, sentence: str, headers: dict[str, str] | None = None, kind: str | None = None
) -> Response:
    """The answer to a request that is refused."""
    path = path_of(request)
    if path.startswith(PROGRAMS):
        return as_document(request, status, sentence, headers, kind)
    if status == HTTPStatus.UNAUTHORIZED and path != "/login":
        return _to_login(request, path)
    if sentence == HTTPStatus(status).phrase:  # nobody said more
        sentence = "The address is wrong, or what was here is gone." if status == HTTPStatus.NOT_FOUND else ""
    title = TITLES.get(HTTPStatus(status), HTTPStatus(status).phrase)
    found = page(request, "error.html", _caller(request, status), status=status, title=title, sentence=sentence)
    for name, value in (headers or {}).items():
        found.headers[name] = value
    return found


def _caller(request: Request, status: int) -> Principal | None:
    """Who sees the page, with links to all others; None: somebody who was not let in, or cannot be looked up now."""
    let_in = "token" in request.scope.get("state", {})
    if not let_in and (status != HTTPStatus.NOT_FOUND or "authorization" in request.headers):  # no place to try tokens
        return None
    try:
        return server_of(request).known(request)
    except SurepickError:
        return None


def _to_login(request: Request, path: str) -> Response:
    """To the login, and back afterwards: to the page, or after a form to the page that has it."""
    if request.method != "GET" or "hx-request" in request.headers:
        parts = path.split("/")
        path = "/".join(parts[:3]) if path.startswith("/studies/") else "/"
    query = f"?{request.url.query}" if request.method == "GET" and request.url.query else ""
    login = f"/login?next={quote(quote(path, safe='/') + query, safe='')}"
    if "hx-request" in request.headers:  # not into a part of the page
        return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"hx-redirect": root_of(request) + login})
    return to(request, login)
