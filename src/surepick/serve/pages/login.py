"""Login, which opens a session, and logout, which ends it; the static files, which everybody may have."""

from __future__ import annotations

import re
from http import HTTPStatus

from fastapi import APIRouter, Request, Response

from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.routing import Routes, Shared, Shows, Viewer
from surepick.serve.pages.forms import Posted
from surepick.serve.pages.shell import FOLDER, page, root_of, set_cookie, to
from surepick.serve.web.callers import COOKIE, Server, address_of, server_of
from surepick.serve.web.problems import Refused
from surepick.serve.web.proxies import identity_of, peer_of

router = APIRouter(include_in_schema=False)
routes = Routes(router)
LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # of this server: a slash, and no second one; visible ASCII but "\"
REPORT = FOLDER.parents[1] / "reports/study/templates"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".txt": "text/plain"}
STATIC = {
    path.name: (path, KINDS[path.suffix])
    for path in (*(FOLDER / "static").iterdir(), REPORT / "report.css")
    if path.suffix in KINDS
}


@routes.add("GET", "/static/{file}", Shows.nothing, who=None)
def static(file: str) -> Response:
    """A style, or a script."""
    if file not in STATIC:
        raise Refused(HTTPStatus.NOT_FOUND, "There is no such file.")
    path, kind = STATIC[file]
    return Response(path.read_bytes(), media_type=kind, headers={"cache-control": "public, max-age=86400"})


@routes.add("GET", "/login", Shows.nothing, who=None)
def login_page(request: Request, server: Shared, next: str = "/") -> Response:  # noqa: A002 (of the address)
    """Where one logs in."""
    if server.is_local():
        return to(request, own_path(next))
    if identity_of(request) is not None and server.caller(request):  # refused if no admin has entered them
        return to(request, own_path(next))
    return _ask(request, server, own_path(next))


@routes.add("POST", "/login", Shows.nothing, who=None)
def login(request: Request, server: Shared, form: Posted) -> Response:
    """Open a session by a token."""
    server.slowed(server.logins, peer_of(address_of(request)))
    found, path = server.tokens.principal(form.text("token")), own_path(form.text("next", "/"))
    if found is None:
        error = "This token is not known here, or it was revoked, or it has expired. Check that all of it was pasted."
        return _ask(request, server, path, status=HTTPStatus.UNAUTHORIZED, error=error)
    return open_session(request, to(request, path), found, "by token")


@routes.add("POST", "/logout", Shows.nothing, who=Role.viewer)
def logout(request: Request, server: Shared, caller: Viewer, form: Posted) -> Response:  # noqa: ARG001
    """End the session of this browser, also for whoever has a copy of its cookie."""
    server.end_session(request)
    server.trail.add(caller.name, address_of(request), "log out")
    answer = to(request, "/login")
    answer.delete_cookie(COOKIE, path=root_of(request) or "/", httponly=True, samesite="strict")
    return answer


def open_session(request: Request, answer: Response, who: Principal, way: str) -> Response:
    """The answer, with the cookie of a new session.

    Args:
        request: that is answered.
        answer: to it.
        who: logs in.
        way: by what, for the trail.
    """
    server = server_of(request)
    server.trail.add(who.name, address_of(request), "log in", None, way)
    set_cookie(request, answer, COOKIE, server.session_of(who), server.settings.session_seconds)
    return answer


def own_path(path: str) -> str:
    """A path of this server; the list of studies in the place of any other address."""
    return path if LOCAL_PATH.fullmatch(path) and not path.startswith(("/login", "/logout")) else "/"


def _ask(
    request: Request, server: Server, path: str, *, status: HTTPStatus = HTTPStatus.OK, error: str = ""
) -> Response:
    provider = "" if server.settings.openid is None else server.settings.openid.name
    return page(request, "login.html", None, status=status, next=path, error=error, provider=provider)
