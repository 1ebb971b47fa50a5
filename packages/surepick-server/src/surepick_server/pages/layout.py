"""What all pages share: templates, links below the root path, the token of forms, and a sentence after a form."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from itsdangerous import BadSignature
from jinja2 import Environment
from markupsafe import Markup
from starlette.datastructures import UploadFile

from surepick.errors import InvalidInput, SurepickError
from surepick.reports.study.page import environment_of
from surepick.studies.logs.base import BEYOND, NO_TIME, to_the_minute
from surepick.studies.progress import rounded_up
from surepick.tables.numbers import lone_number
from surepick_server.access.tokens import Principal, Role
from surepick_server.web.auth import COOKIE, ServerState, server_of
from surepick_server.web.connections import identity_of
from surepick_server.web.open_studies import HTTPError, as_document

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


def form_token(server: ServerState, visitor: str, session: str) -> str:
    """What each form of a browser carries. Other sites cannot know it, and it ends with the session."""
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
    """A page."""
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


def set_cookie(
    request: Request, answer: Response, name: str, value: str, seconds: float | None = None, **limits: Any
) -> None:
    """A cookie that only this server gets, from its own pages only where `limits` do not say otherwise."""
    limits = {"path": root_of(request) or "/", "samesite": "strict", **limits}
    age, encrypted = None if seconds is None else int(seconds), request.url.scheme == "https"
    answer.set_cookie(name, value, max_age=age, secure=encrypted, httponly=True, **limits)


def to(request: Request, path: str, said: str = "") -> RedirectResponse:
    """Go on to a page."""
    if said:
        signed = server_of(request).sessions.dumps(said, salt="said")
        path += f"{'&' if '?' in path else '?'}said={signed if isinstance(signed, str) else signed.decode()}"
    return RedirectResponse(root_of(request) + path, HTTPStatus.SEE_OTHER)


def _said(server: ServerState, signed: str) -> str:
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
        "initials": initials,
        "merged": lambda query, changes: {name: one for name, one in {**query, **changes}.items() if one != ""},
        "number": lambda value: f"{value:,}",
        "rounded_up": rounded_up,
        "sentence": sentence,
    }
    found.globals |= {"study_path": study_path}
    return found


def sentence(clause: str, name: str | None) -> str:
    """A clause as a sentence begins, but for one that begins with a name, which is left as it is."""
    return clause if name and clause.startswith(name) else clause[:1].upper() + clause[1:]


def initials(name: str) -> str:
    """One or two letters for somebody: "Ann Berg" is AB, "ann" is A."""
    words = [word for word in re.split(r"[\s._-]+", name) if word]
    return "".join(word[0] for word in words[:2]).upper()


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


# --- Refusals: pages for people, a way to the login for those who are not known, and problem documents for programs.

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


def error_page(
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


# --- What a form brings, once its token is known to be of the browser that sends it.

MOST_FIELDS = 100_000
LARGEST = 1e308


class FieldErrors(InvalidInput):
    """What is wrong with the fields of a form: name of the field -> a sentence."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(" ".join(fields.values()))
        self.fields = dict(fields)


@dataclass(frozen=True, slots=True)
class Form:
    """A form."""

    fields: dict[str, list[str]]  # each with its texts
    files: dict[str, tuple[str, bytes]]  # each with its name and its bytes; those that were left empty are not there

    def text(self, name: str, default: str = "") -> str:
        """A text, without the spaces around it; the default if it is empty or not there."""
        return self.fields.get(name, [""])[0].strip() or default

    def raw(self, name: str) -> str:
        """A text as it came."""
        return self.fields.get(name, [""])[0]

    def many(self, name: str) -> list[str]:
        """All texts of a name."""
        return self.fields.get(name, [])

    def number(self, name: str, what: str) -> float | None:
        """A number; None if it was left empty."""
        return typed_number(self.text(name), what)


def typed_number(cell: str, what: str) -> float | None:
    """A number that somebody typed; None of nothing."""
    if not cell.strip():
        return None
    value = lone_number(cell)
    if value is None or not abs(value) <= LARGEST:
        raise InvalidInput(f"{what}: {cell[:40]!r} is no number. Nothing was stored.")
    return value


async def posted(request: Request) -> Form:
    """The form of a request."""
    largest = server_of(request).settings.largest_body
    async with request.form(max_files=4, max_fields=MOST_FIELDS, max_part_size=largest) as came:
        fields: dict[str, list[str]] = {}
        files: dict[str, tuple[str, bytes]] = {}
        for name, value in came.multi_items():
            if not isinstance(value, UploadFile):
                fields.setdefault(name, []).append(value)
            elif value.filename:
                files[name] = (value.filename, await value.read())
    if not is_form_token(request, fields.pop("form_token", [""])[0]):
        raise HTTPError(
            HTTPStatus.FORBIDDEN,
            "This form was not made for this browser, or it is from before the last login; nothing was done. Open the "
            "page again, and repeat it there.",
        )
    return Form(fields, files)


Posted = Annotated[Form, Depends(posted)]
