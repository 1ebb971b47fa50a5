"""Who is asking: by a token, by what a proxy says, by a session of a page, or the person at this machine."""

from __future__ import annotations

import asyncio
import math
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import Request
from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.errors import SurepickError
from surepick.studies.logs.base import system_clock
from surepick_server.access.schema import AuditLog, make_tables
from surepick_server.access.tokens import LOCAL, PREFIX, Ended, Principal, Role, Tokens
from surepick_server.access.webhooks import Webhooks
from surepick_server.settings import Settings
from surepick_server.web import open_studies
from surepick_server.web.connections import identity_of, named_in, peer_of

if TYPE_CHECKING:
    from surepick_server.openid import Provider


# --- Limits that hold before anything is read: size and pace of a request, requests a minute, and safe headers.

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
HEALTH = "/healthz"
CLOSE = {"connection": "close"}
LOOPBACK = ("127.0.0.1", "localhost", "::1", "[::1]")
FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip", b"via")


class Guard:
    """Refuses bodies too large or too slow, foreign hosts of a local server, and who plays a proxy; adds headers. While
    there is no token only names of this machine are answered: a page elsewhere whose name was made to point here would
    be answered as the admin else."""

    def __init__(
        self, app: ASGIApp, server: ServerState, answer: open_studies.Answer = open_studies.as_document
    ) -> None:
        self.app = app
        self.server = server
        self.settings = server.settings
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if self.settings.root_path:
            scope["root_path"] = self.settings.root_path  # whether the proxy takes it off or not

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in message.get("headers", [])}
                more = [(name, value) for name, value in HEADERS.items() if name not in own]
                message["headers"] = [*message.get("headers", []), *more]
            await send(message)

        refusal = await self._refusal_now(scope)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
            return
        await self.app(scope, self._limited(receive), with_headers)

    async def _refusal_now(self, scope: Scope) -> ASGIApp | None:
        """As `_refusal`, of the database that is there now."""
        try:
            if self.server.moved:
                await run_in_threadpool(self.server.reopen)
            return self._refusal(scope)
        except SurepickError as error:
            if scope["path"].endswith(HEALTH):  # whether the server answers: it does
                return None
            return self.answer(
                Request(scope), open_studies.status_of(error), str(error), None, open_studies.problem_kind(error)
            )

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        request, headers = Request(scope), dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 18:
            return self.answer(request, HTTPStatus.BAD_REQUEST, "The length of the body is no number.", None, None)
        if int(length) > self.settings.largest_body:
            return self.answer(request, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large, CLOSE, None)
        named = named_in(scope)
        if named.why:
            return self.answer(request, named.status, named.why, None, None)
        host = headers.get(b"host", b"").decode("latin-1").rpartition("@")[2]
        name = host[: host.find("]") + 1] if host.startswith("[") else host.partition(":")[0]
        passed_on = any(one in headers for one in FORWARDED)
        if self.server.is_local() and (passed_on or name.lower() not in LOOPBACK):
            return self.answer(
                request,
                HTTPStatus.MISDIRECTED_REQUEST,
                "Without tokens this server answers this machine only, under its own names (127.0.0.1, localhost), not "
                "behind a proxy. Make a token first: surepick token create.",
                None,
                None,
            )
        return None

    @property
    def _too_large(self) -> str:
        return f"The body is larger than {self.settings.largest_body:,} bytes; send it in parts."

    def _limited(self, receive: Receive) -> Receive:
        """The same, while the body is small enough and comes in time."""
        seen, until = 0, time.monotonic() + self.settings.slowest_body
        done = False

        async def limited() -> Message:
            nonlocal seen, done
            if done:  # only a disconnection can come
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), max(until - time.monotonic(), 0.001))
            except TimeoutError:
                why = f"The body did not come within {self.settings.slowest_body:g} s."
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, why, CLOSE) from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                done = not message.get("more_body", False)
                if seen > self.settings.largest_body:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large, CLOSE)
            return message

        return limited


class Pace:
    """How many requests each key may make in a minute, a bucket that fills evenly; the quietest keys are forgotten."""

    def __init__(self, a_minute: int, most_keys: int = 10_000) -> None:
        self._rate = a_minute / 60.0
        self._most = float(a_minute)
        self._keys = most_keys
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def wait(self, key: str) -> float:
        """Seconds after which the key may ask again; 0: now, and this request is counted."""
        now = time.monotonic()
        with self._lock:
            left, at = self._left.pop(key, (self._most, now))
            left = min(self._most, left + (now - at) * self._rate)
            allowed = left >= 1.0
            self._left[key] = (left - 1.0 if allowed else left, now)
            while len(self._left) > self._keys:
                self._left.pop(next(iter(self._left)))
        return 0.0 if allowed else (1.0 - left) / self._rate


COOKIE = "surepick-session"
BEARER = "bearer "
SAFE = ("GET", "HEAD", "OPTIONS")
MOST_SEEN = 10_000  # people of whom it is remembered that the trail has their login


class AuthMethod(StrEnum):
    """By what somebody is known."""

    token = "token"
    proxy = "proxy"
    session = "session"
    machine = "machine"


@dataclass
class ServerState:
    """What all routes share."""

    settings: Settings  # of the operator
    studies: open_studies.Studies  # of the database
    tokens: Tokens  # who may do what
    trail: AuditLog  # what was done
    webhooks: Webhooks  # who is told what happens
    sessions: URLSafeTimedSerializer  # signs the cookies of pages
    ended: Ended  # sessions that were logged out
    provider: Provider | None = None  # by whom people may log in; None: by tokens alone
    metrics: open_studies.Metrics = field(default_factory=open_studies.Metrics)  # counts for the operator
    kept: open_studies.Kept = field(init=False, default_factory=open_studies.Kept)  # documents of closed rounds
    pace: Pace = field(init=False)
    logins: Pace = field(init=False)
    streams: int = field(init=False, default=0)
    reopened: int = field(init=False, default=0)  # how often the database became another file
    _guarded: bool = field(init=False, default=False)
    _stale: bool = field(init=False, default=False)
    _reopening: threading.Lock = field(init=False, default_factory=threading.Lock)
    _seen: dict[int, float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.pace = Pace(self.settings.requests_a_minute)
        self.logins = Pace(self.settings.logins_a_minute)

    def is_local(self) -> bool:
        """Whether whoever reaches it is its admin: it listens to this machine alone, and there is no token."""
        if not self._guarded and self.settings.alone:
            self._guarded = self.tokens.any()
        return self.settings.alone and not self._guarded

    @property
    def moved(self) -> bool:
        """Whether the database is another file than the one that was opened, or none."""
        return self._stale or self.studies.database.moved

    def close(self) -> None:
        """Store what waits for the trail, and let go of the database and of the provider."""
        self.trail.close()
        self.studies.forget()
        self.studies.database.engine.dispose()
        if self.provider is not None:
            self.provider.close()

    def reopen(self) -> None:
        """Open the file that is there now, with its sessions and tokens; a StorageError if there is none of ours."""
        with self._reopening:
            if not self.moved:  # another call did it
                return
            self._stale = True
            self.studies.forget()
            self.kept.forget()
            self.studies.database.reopen()
            secret = make_tables(self.studies.database.engine, secrets.token_urlsafe(32))
            self.sessions = signer(secret)
            self.tokens.forget()
            self._seen.clear()
            self.reopened += 1
            self._stale = False

    def session_of(self, principal: Principal) -> str:
        """A signed cookie that stands for a token, without it, until it is logged out."""
        signed = self.sessions.dumps([principal.token, secrets.token_urlsafe(16)])
        return signed if isinstance(signed, str) else signed.decode()

    def end_session(self, request: Request) -> None:
        """From now on the session of this browser is worth nothing, also to somebody who has copied its cookie."""
        opened = self._opened(request)
        if opened is not None:
            self.ended.add(opened[1])

    def caller(self, request: Request) -> Principal:
        """Who is asking; an HTTPError where it is nobody that is known, or too often."""
        key, (way, found) = peer_of(address_of(request)), self.asker(request)
        if found is None and way is AuthMethod.token:
            self.slowed(self.logins, key)
        if found is None and way is AuthMethod.proxy:
            self.slowed(self.logins, key)
            raise self.unknown(
                request, (identity_of(request) or "",), f"header {self.settings.trusted_header}", "The proxy"
            )
        if found is not None and way is not AuthMethod.token and request.method not in SAFE:
            _check_origin(request)
        if found is None:
            raise open_studies.HTTPError(
                HTTPStatus.UNAUTHORIZED,
                "Say who you are: Authorization: Bearer TOKEN, with a token that is neither revoked nor expired.",
                {"www-authenticate": "Bearer"},
            )
        self.slowed(self.pace, f"{found.token}" if found.token else key)
        if way is AuthMethod.proxy:
            self._note_login(request, found)
        request.scope.setdefault("state", {})["token"] = found.token
        return found

    def known(self, request: Request) -> Principal | None:
        """Who is asking, now; None: nobody that is known."""
        return self.asker(request)[1]

    def asker(self, request: Request) -> tuple[AuthMethod, Principal | None]:
        """By what somebody says who they are, and who they are, now; None: nobody that is known. One of our tokens goes
        before all else. What a proxy says goes before a session, so that who logs out there and in as another is not
        taken for the first."""
        given, identity = request.headers.get("authorization", ""), identity_of(request)
        ours = given.lower().startswith(BEARER)
        token = given[len(BEARER) :].strip() if ours else ""
        if given and (identity is None or token.startswith(PREFIX)):
            return AuthMethod.token, self.tokens.principal(token) if ours else None
        if identity is not None:
            return AuthMethod.proxy, self.tokens.known_as((identity,))
        if self.is_local():  # a cookie that another server of this machine has left stands for nobody here
            return AuthMethod.machine, LOCAL
        opened = self._opened(request)
        return AuthMethod.session, None if opened is None else self.tokens.holder(*opened)

    def unknown(self, request: Request, identities: tuple[str, ...], way: str, whom: str) -> open_studies.HTTPError:
        """The refusal of somebody whom no admin has entered, with `whom` who names them; only the trail has them."""
        called = " or ".join(reversed(identities))
        self.trail.add("", address_of(request), "log in refused", None, f"by {way}: {called}")
        return open_studies.HTTPError(
            HTTPStatus.FORBIDDEN,
            f"{whom} knows you as {called}, and nobody of that name may use this server; ask one of its admins to "
            "enter you.",
        )

    def _note_login(self, request: Request, caller: Principal) -> None:
        """Somebody whom a proxy vouches for is in the trail once a session's time, in each process."""
        now = system_clock()
        if now - self._seen.get(caller.token, -math.inf) < self.settings.session_seconds:
            return
        if len(self._seen) > MOST_SEEN:
            self._seen.clear()
        self._seen[caller.token] = now
        way = f"by header {self.settings.trusted_header}: {identity_of(request)}"
        self.trail.soon(caller.name, address_of(request), "log in", None, way)

    def slowed(self, pace: Pace, key: str) -> None:
        """Count a request; an HTTPError if there were too many."""
        wait = pace.wait(key)
        if wait > 0.0:
            raise open_studies.HTTPError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many requests; ask again in {math.ceil(wait)} s.",
                {"retry-after": str(math.ceil(wait))},
            )

    def _opened(self, request: Request) -> tuple[int, str] | None:
        """(number of the token, id) of the session that the cookie says; None: it says none that we opened."""
        try:
            number, session = self.sessions.loads(
                request.cookies.get(COOKIE, ""), max_age=int(self.settings.session_seconds)
            )
            return int(number), str(session)
        except (BadSignature, TypeError, ValueError):  # of another server; or of an older version
            return None


def signer(secret: str) -> URLSafeTimedSerializer:
    """What signs the cookies of pages."""
    return URLSafeTimedSerializer(secret, salt="session")


def address_of(request: Request) -> str:
    """From where a request comes."""
    return request.client.host if request.client else ""


def _check_origin(request: Request) -> None:
    """Refuse what another site's page makes a browser send with our cookie."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if site not in (None, "same-origin", "none") or (origin is not None and origin != ours):
        encrypted = origin == f"https://{request.headers.get('host', '')}"
        more = " Behind a proxy that encrypts, name it: surepick serve --trusted-proxy ADDRESS." if encrypted else ""
        raise open_studies.HTTPError(
            HTTPStatus.FORBIDDEN, f"This request comes from another site; nothing was done.{more}"
        )


def server_of(request: Request) -> ServerState:
    """What the routes of this request's application share."""
    found: ServerState = request.app.state.server
    return found


def needs(role: Role) -> Callable[[Request], Principal]:
    """A dependency: the caller, if they may do that much, and see the study that the path names."""

    def caller(request: Request) -> Principal:
        found = server_of(request).caller(request)
        study = request.path_params.get("name")
        if found.study is not None and study != found.study:
            if study is None and role is Role.viewer:
                return found
            raise open_studies.HTTPError(HTTPStatus.NOT_FOUND if study else HTTPStatus.FORBIDDEN, _unseen(study))
        if found.role < role:
            raise open_studies.HTTPError(
                HTTPStatus.FORBIDDEN, f"That takes the role {role.name}, and yours is {found.role.name}."
            )
        return found

    return caller


def _unseen(study: str | None) -> str:
    return f"There is no study {study!r}." if study else "This token is for one study only."
