"""Login by an identity provider: the way there, and the way back, which opens a session for whom an admin entered."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from surepick.serve.api.routing import Routes, Shared, Shows
from surepick.serve.openid.errors import NotBelieved, ProviderAway, ProviderWrong, said
from surepick.serve.openid.flow import SECONDS, begun, opened, sealed
from surepick.serve.pages.login import open_session, own_path
from surepick.serve.pages.shell import page, root_of, to
from surepick.serve.web.callers import Server, address_of
from surepick.serve.web.problems import Refused
from surepick.serve.web.proxies import peer_of

if TYPE_CHECKING:
    from surepick.serve.openid.provider import Provider

router = APIRouter(include_in_schema=False)
routes = Routes(router)
COOKIE = "surepick-login"  # of a login that was begun
START, BACK = "/login/openid", "/login/openid/back"
NOT_BEGUN = (
    "This login was not begun in this browser, or it was used already, or it was begun more than 10 minutes ago. "
    "Nobody was logged in; begin it again."
)
log = logging.getLogger("surepick.serve")
OURS = (None, "none", "same-origin")  # from where a login may be begun


@routes.add("GET", START, Shows.nothing, who=None)
def start(request: Request, server: Shared, next: str = "/") -> Response:  # noqa: A002 (of the address)
    """To the provider. Nothing but a cookie is made."""
    provider, path = _provider(server), own_path(next)
    if request.headers.get("sec-fetch-site") not in OURS:  # another site's page does not begin it: people do
        return to(request, f"/login?next={quote(path, safe='')}")
    server.slowed(server.logins, f"to the provider, {peer_of(address_of(request))}")
    flow = begun(path)
    try:
        answer = RedirectResponse(provider.address(flow, _back(request)), HTTPStatus.SEE_OTHER)
    except (ProviderAway, ProviderWrong) as error:
        raise _unanswered(provider, error) from error
    answer.set_cookie(
        COOKIE,
        sealed(flow, server.sessions),
        max_age=SECONDS,
        path=root_of(request) + START,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="lax",  # it has to come back from another site; all that it can do is to end the login that it began
    )
    return answer


@routes.add("GET", BACK, Shows.nothing, who=None)
def back(request: Request, server: Shared, code: str = "", state: str = "", error: str = "", iss: str = "") -> Response:
    """From the provider: a session, if an admin has entered who comes."""
    provider, address = _provider(server), address_of(request)
    server.slowed(server.logins, peer_of(address))
    name, issuer = provider.about.name, provider.about.issuer
    try:
        flow = opened(request.cookies.get(COOKIE, ""), state, server.sessions)
    except NotBelieved as why:
        raise Refused(HTTPStatus.FORBIDDEN, NOT_BEGUN) from why
    if error:
        raise Refused(HTTPStatus.FORBIDDEN, f"{name} did not log you in ({said(error)}).")
    try:
        if iss not in ("", issuer):
            raise NotBelieved("iss")
        person = provider.person(flow, code, _back(request))
    except NotBelieved as why:
        server.trail.add("", address, "log in refused", None, f"by {issuer}: {why}")
        sentence = f"What came from {name} does not hold ({why}), so nobody was logged in. Begin the login again."
        raise Refused(HTTPStatus.FORBIDDEN, sentence) from why
    except (ProviderAway, ProviderWrong) as why:
        raise _unanswered(provider, why) from why
    found = server.tokens.known_as(person.identities)
    if found is None:
        raise server.unknown(request, person.identities, issuer, name)
    if not server.ended.add(f"login {flow.state}"):
        raise Refused(HTTPStatus.FORBIDDEN, NOT_BEGUN)
    answer = page(request, "logged_in.html", None, next=own_path(flow.path), name=found.name)
    answer.delete_cookie(COOKIE, path=root_of(request) + START, httponly=True, samesite="lax")
    return open_session(request, answer, found, f"by {issuer}: {' or '.join(person.identities)}")


def _provider(server: Server) -> Provider:
    if server.provider is None:
        raise Refused(HTTPStatus.NOT_FOUND, "This server has no identity provider; log in with a token.")
    return server.provider


def _back(request: Request) -> str:
    """The address that the provider sends browsers back to. It is entered there, so that it sends them nowhere else."""
    return f"{request.url.scheme}://{request.headers.get('host', '')}{root_of(request)}{BACK}"


def _unanswered(provider: Provider, why: Exception) -> Refused:
    """The refusal if the provider does not do its part; the log says it to the operator."""
    status = HTTPStatus.SERVICE_UNAVAILABLE if isinstance(why, ProviderAway) else HTTPStatus.BAD_GATEWAY
    log.warning("the identity provider failed", extra={"said": {"kind": type(why).__name__, "why": str(why)}})
    sentence = f"{provider.about.name} cannot be asked who you are: {why}. Try again later, or log in with a token."
    return Refused(status, sentence)
