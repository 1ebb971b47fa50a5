"""Login, which opens a session, and logout, which ends it; the static files, which everybody may have."""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from surepick.drawings.html import STYLE
from surepick.errors import InvalidInput, SurepickError
from surepick.reports.study.page import TEMPLATES
from surepick.studies.logs.base import system_clock
from surepick_server import openid
from surepick_server.access.tokens import Principal, Role
from surepick_server.api import studies
from surepick_server.api.models import NewToken, brought
from surepick_server.api.routing import Admin, Routes, Shared, Viewer, Visibility
from surepick_server.pages.layout import FOLDER, Posted, page, root_of, set_cookie, to
from surepick_server.web.auth import COOKIE, ServerState, address_of, server_of
from surepick_server.web.connections import identity_of, peer_of
from surepick_server.web.open_studies import HTTPError, status_of

if TYPE_CHECKING:
    from surepick_server.openid import Provider

routes = Routes(include_in_schema=False)


LOCAL_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # of this server: a slash, and no second one; visible ASCII but "\"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".txt": "text/plain"}
STATIC = {
    path.name: (path, KINDS[path.suffix])
    for path in (*(FOLDER / "static").iterdir(), TEMPLATES / "report.css")
    if path.suffix in KINDS
} | {"drawings.css": (STYLE, KINDS[".css"])}


@routes.add("GET", "/static/{file}", Visibility.nothing, who=None)
def static(file: str) -> Response:
    """A style, or a script."""
    if file not in STATIC:
        raise HTTPError(HTTPStatus.NOT_FOUND, "There is no such file.")
    path, kind = STATIC[file]
    return Response(path.read_bytes(), media_type=kind, headers={"cache-control": "public, max-age=86400"})


@routes.add("GET", "/login", Visibility.nothing, who=None)
def login_page(request: Request, server: Shared, next: str = "/") -> Response:  # noqa: A002 (of the address)
    """Where one logs in."""
    if server.is_local():
        return to(request, own_path(next))
    if identity_of(request) is not None and server.caller(request):  # refused if no admin has entered them
        return to(request, own_path(next))
    return _ask(request, server, own_path(next))


@routes.add("POST", "/login", Visibility.nothing, who=None)
def login(request: Request, server: Shared, form: Posted) -> Response:
    """Open a session by a token."""
    server.slowed(server.logins, peer_of(address_of(request)))
    found, path = server.tokens.principal(form.text("token")), own_path(form.text("next", "/"))
    if found is None:
        error = "This token is not known here, or it was revoked, or it has expired. Check that all of it was pasted."
        return _ask(request, server, path, status=HTTPStatus.UNAUTHORIZED, error=error)
    return open_session(request, to(request, path), found, "by token")


@routes.add("POST", "/logout", Visibility.nothing, who=Role.viewer)
def logout(request: Request, server: Shared, caller: Viewer, form: Posted) -> Response:  # noqa: ARG001
    """End the session of this browser, also for whoever has a copy of its cookie."""
    server.end_session(request)
    server.trail.add(caller.name, address_of(request), "log out")
    answer = to(request, "/login")
    answer.delete_cookie(COOKIE, path=root_of(request) or "/", httponly=True, samesite="strict")
    return answer


def open_session(request: Request, answer: Response, who: Principal, way: str) -> Response:
    """The answer, with the cookie of a new session."""
    server = server_of(request)
    server.trail.add(who.name, address_of(request), "log in", None, way)
    set_cookie(request, answer, COOKIE, server.session_of(who), server.settings.session_seconds)
    return answer


def own_path(path: str) -> str:
    """A path of this server; the list of studies in the place of any other address."""
    return path if LOCAL_PATH.fullmatch(path) and not path.startswith(("/login", "/logout")) else "/"


def _ask(
    request: Request, server: ServerState, path: str, *, status: HTTPStatus = HTTPStatus.OK, error: str = ""
) -> Response:
    provider = "" if server.settings.openid is None else server.settings.openid.name
    return page(request, "login.html", None, status=status, next=path, error=error, provider=provider)


# --- Login by an identity provider: the way there, and the way back, which opens a session for whom an admin entered.

FLOW_COOKIE = "surepick-login"  # of a login that was begun
START, BACK = "/login/openid", "/login/openid/back"
NOT_BEGUN = (
    "This login was not begun in this browser, or it was used already, or it was begun more than 10 minutes ago. "
    "Nobody was logged in; begin it again."
)
log = logging.getLogger("surepick_server")
OURS = (None, "none", "same-origin")  # from where a login may be begun


@routes.add("GET", START, Visibility.nothing, who=None)
def start(request: Request, server: Shared, next: str = "/") -> Response:  # noqa: A002 (of the address)
    """To the provider. Nothing but a cookie is made."""
    provider, path = _provider(server), own_path(next)
    if request.headers.get("sec-fetch-site") not in OURS:  # another site's page does not begin it: people do
        return to(request, f"/login?next={quote(path, safe='')}")
    server.slowed(server.logins, f"to the provider, {peer_of(address_of(request))}")
    flow = openid.begun_login(path)
    try:
        answer = RedirectResponse(provider.address(flow, _back(request)), HTTPStatus.SEE_OTHER)
    except (openid.ProviderAway, openid.ProviderWrong) as error:
        raise _unanswered(provider, error) from error
    # it has to come back from another site; all that it can do is to end the login that it began
    limits = {"path": root_of(request) + START, "samesite": "lax"}
    set_cookie(request, answer, FLOW_COOKIE, openid.sealed_login(flow, server.sessions), openid.FLOW_SECONDS, **limits)
    return answer


@routes.add("GET", BACK, Visibility.nothing, who=None)
def back(request: Request, server: Shared, code: str = "", state: str = "", error: str = "", iss: str = "") -> Response:
    """From the provider: a session, if an admin has entered who comes."""
    provider, address = _provider(server), address_of(request)
    server.slowed(server.logins, peer_of(address))
    name, issuer = provider.about.name, provider.about.issuer
    try:
        flow = openid.opened_login(request.cookies.get(FLOW_COOKIE, ""), state, server.sessions)
    except openid.NotBelieved as why:
        raise HTTPError(HTTPStatus.FORBIDDEN, NOT_BEGUN) from why
    if error:
        raise HTTPError(HTTPStatus.FORBIDDEN, f"{name} did not log you in ({openid.said_error(error)}).")
    try:
        if iss not in ("", issuer):
            raise openid.NotBelieved("iss")
        person = provider.person(flow, code, _back(request))
    except openid.NotBelieved as why:
        server.trail.add("", address, "log in refused", None, f"by {issuer}: {why}")
        sentence = f"What came from {name} does not hold ({why}), so nobody was logged in. Begin the login again."
        raise HTTPError(HTTPStatus.FORBIDDEN, sentence) from why
    except (openid.ProviderAway, openid.ProviderWrong) as why:
        raise _unanswered(provider, why) from why
    found = server.tokens.known_as(person.identities)
    if found is None:
        raise server.unknown(request, person.identities, issuer, name)
    if not server.ended.add(f"login {flow.state}"):
        raise HTTPError(HTTPStatus.FORBIDDEN, NOT_BEGUN)
    answer = page(request, "logged_in.html", None, next=own_path(flow.path), name=found.name)
    answer.delete_cookie(FLOW_COOKIE, path=root_of(request) + START, httponly=True, samesite="lax")
    return open_session(request, answer, found, f"by {issuer}: {' or '.join(person.identities)}")


def _provider(server: ServerState) -> Provider:
    if server.provider is None:
        raise HTTPError(HTTPStatus.NOT_FOUND, "This server has no identity provider; log in with a token.")
    return server.provider


def _back(request: Request) -> str:
    """The address that the provider sends browsers back to. It is entered there, so that it sends them nowhere else."""
    return f"{request.url.scheme}://{request.headers.get('host', '')}{root_of(request)}{BACK}"


def _unanswered(provider: Provider, why: Exception) -> HTTPError:
    """The refusal if the provider does not do its part; the log says it to the operator."""
    status = HTTPStatus.SERVICE_UNAVAILABLE if isinstance(why, openid.ProviderAway) else HTTPStatus.BAD_GATEWAY
    log.warning("the identity provider failed", extra={"said": {"kind": type(why).__name__, "why": str(why)}})
    sentence = f"{provider.about.name} cannot be asked who you are: {why}. Try again later, or log in with a token."
    return HTTPError(status, sentence)


# --- The page of admins: who may do what.


@routes.add("GET", "/tokens", Visibility.nothing, who=Role.admin)
def tokens_page(request: Request, server: Shared, caller: Admin) -> Response:
    """All tokens, without what they are."""
    return _show(request, server, caller)


@routes.add("POST", "/tokens", Visibility.nothing, who=Role.admin)
def token_form(request: Request, server: Shared, caller: Admin, form: Posted) -> Response:
    """A new token, which is shown this once."""
    typed = {name: form.text(name) for name in ("name", "role", "study", "days", "identity")}
    try:
        if server.is_local() and typed["role"] != Role.admin.name:
            raise InvalidInput("Make the first token for yourself, with the role admin: from then on all need one.")
        days = form.number("days", "how many days")
        fields: dict[str, Any] = {**typed, "days": 90.0 if days is None else days}
        fields |= {name: typed[name] or None for name in ("study", "identity")}
        made = studies.issue_token(brought(NewToken, fields, "The token is"), request, server, caller)
    except SurepickError as error:
        return _show(request, server, caller, status=status_of(error), error=str(error), typed=typed)
    return _show(request, server, caller, made=made)


@routes.add("POST", "/tokens/revoke", Visibility.nothing, who=Role.admin)
def revoke_form(request: Request, server: Shared, caller: Admin, form: Posted) -> Response:
    """Make a token worthless."""
    try:
        gone = studies.revoke_token(form.raw("name"), request, server, caller)
    except SurepickError as error:
        return _show(request, server, caller, status=status_of(error), error=str(error))
    return to(request, "/tokens", f"The token of {gone['name']} is not valid any more.")


def _show(request: Request, server: ServerState, caller: Principal, **shown: Any) -> Response:
    """The page of tokens; `shown` are its status, what is wrong, what was typed, or the token that was made."""
    shown = {"error": "", "made": None, **shown, "typed": defaultdict(str, shown.get("typed", {}))}
    shown |= {
        "tokens": studies.tokens(server, caller)["tokens"],
        "roles": list(Role.__members__),
        "now": system_clock(),
    }
    shown |= {"others": server.provider is not None or bool(server.settings.trusted_header)}
    return page(request, "tokens.html", caller, first=server.is_local(), **shown)
