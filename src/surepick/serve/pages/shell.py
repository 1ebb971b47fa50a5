"""What all pages share: templates, links below the root path, the token of forms, and a sentence after a form."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from itsdangerous import BadSignature
from jinja2 import Environment
from markupsafe import Markup

from surepick.reports.templates import environment_of
from surepick.serve.access.roles import Principal, Role
from surepick.serve.web.callers import COOKIE, Server, server_of
from surepick.serve.web.proxies import identity_of
from surepick.studies.logs.leases import BEYOND, NO_TIME, to_the_minute
from surepick.studies.progress import rounded_up

VISITOR = "surepick-visitor"  # a random text of each browser, to which the tokens of its forms belong
SAID_SECONDS = 120  # for which a sentence is shown after a form
FOLDER = Path(__file__).parent


def root_of(request: Request) -> str:
    """What all links begin with."""
    return str(request.scope.get("root_path", "")).rstrip("/")


def path_of(request: Request) -> str:
    """The path of a request, below the root path."""
    path, root = str(request.scope["path"]), root_of(request)
    return path.removeprefix(root) if root and path.startswith(f"{root}/") else path


def study_path(name: str, part: str = "") -> str:
    """The path of a page of a study, below the root path."""
    return f"/studies/{quote(name, safe='')}" + (f"/{part}" if part else "")


def form_token(server: Server, visitor: str, session: str) -> str:
    """What each form of a browser carries. Other sites cannot know it, and it ends with the session.

    Args:
        server: whose secret signs it.
        visitor: the browser's cookie.
        session: as `session_text` gives it.
    """
    signed = server.sessions.make_signer("form").get_signature(f"{visitor} {session}".encode())
    return signed.decode()


def session_text(request: Request) -> str:
    """What the tokens of forms belong to beside the browser: the session, or whom a proxy vouches for."""
    return f"{request.cookies.get(COOKIE, '')} {identity_of(request) or ''}".rstrip()


def is_form_token(request: Request, given: str) -> bool:
    """Whether a form was made for the browser that sends it."""
    visitor = request.cookies.get(VISITOR, "")
    wanted = form_token(server_of(request), visitor, session_text(request))
    return bool(visitor) and hmac.compare_digest(wanted.encode(), given.encode())


def page(
    request: Request, template: str, caller: Principal | None, *, status: int = HTTPStatus.OK, **values: Any
) -> HTMLResponse:
    """A page.

    Args:
        request: that it answers.
        template: its file.
        caller: who sees it; None: somebody who is not known.
        status: of the answer.
        values: for the template.
    """
    server = server_of(request)
    known = request.cookies.get(VISITOR, "")
    visitor = known or secrets.token_urlsafe(24)
    shared = {
        "by_proxy": identity_of(request) is not None,
        "caller": caller,
        "can": {role.name: caller is not None and caller.role >= role for role in Role},
        "form_token": form_token(server, visitor, session_text(request)),
        "here": path_of(request),
        "is_local": server.is_local(),
        "mark": _mark(),
        "root": root_of(request),
        "said": _said(server, request.query_params.get("said", "")),
    }
    content = environment().get_template(template).render(shared | values)
    answer = HTMLResponse(content, status)
    if not known:
        set_cookie(request, answer, VISITOR, visitor)
    return answer


def set_cookie(request: Request, answer: Response, name: str, value: str, seconds: float | None = None) -> None:
    """A cookie that only this server gets, from its own pages only."""
    answer.set_cookie(
        name,
        value,
        max_age=None if seconds is None else int(seconds),
        path=root_of(request) or "/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def to(request: Request, path: str, said: str = "") -> RedirectResponse:
    """Go on to a page.

    Args:
        request: that this answers.
        path: of the page, below the root path.
        said: a sentence that it shows, once.
    """
    if said:
        signed = server_of(request).sessions.dumps(said, salt="said")
        path += f"{'&' if '?' in path else '?'}said={signed if isinstance(signed, str) else signed.decode()}"
    return RedirectResponse(root_of(request) + path, HTTPStatus.SEE_OTHER)


def _said(server: Server, signed: str) -> str:
    try:
        return str(server.sessions.loads(signed, max_age=SAID_SECONDS, salt="said")) if signed else ""
    except BadSignature:
        return ""


@cache
def environment() -> Environment:
    """The templates, with what they need to write numbers, times and addresses."""
    found = environment_of(FOLDER / "templates")
    found.filters |= {
        "date": date,
        "number": lambda value: f"{value:,}",
        "rounded_up": rounded_up,
        "sentence": sentence,
    }
    found.globals |= {"study_path": study_path}
    return found


def sentence(clause: str, name: str | None) -> str:
    """A clause as a sentence begins, but for one that begins with a name, which is left as it is."""
    return clause if name and clause.startswith(name) else clause[:1].upper() + clause[1:]


def date(seconds: float) -> Markup:
    """A time, in UTC to the minute, as an element."""
    try:
        text = to_the_minute(seconds)
    except BEYOND:
        return Markup(NO_TIME)
    day, hour, zone = text.split()
    return Markup('<time datetime="{}T{}Z">{} {} {}</time>').format(day, hour, day, hour, zone)


@cache
def _mark() -> str:
    """Changes with the static files, so that browsers may keep them."""
    found = hashlib.sha256()
    for path in sorted((FOLDER / "static").iterdir()):
        found.update(path.read_bytes())
    return found.hexdigest()[:12]
