"""Who is asking: by a token in the header, by a session of a page, or the person at this machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from fastapi import Request
from itsdangerous import BadSignature, URLSafeTimedSerializer

from surepick.serve.access.audit import Trail
from surepick.serve.access.roles import LOCAL, Principal, Role
from surepick.serve.access.tokens import Tokens
from surepick.serve.access.webhooks import Webhooks
from surepick.serve.settings import Settings
from surepick.serve.web.limits import Pace
from surepick.serve.web.open_studies import Studies
from surepick.serve.web.problems import Refused
from surepick.serve.web.watching import Metrics

COOKIE = "surepick-session"
BEARER = "bearer "
SAFE = ("GET", "HEAD", "OPTIONS")


@dataclass
class Server:
    """What all routes share.

    Args:
        settings: of the operator.
        studies: of the database.
        tokens: who may do what.
        trail: what was done.
        webhooks: who is told what happens.
        sessions: signs the cookies of pages.
        metrics: counts for the operator.
    """

    settings: Settings
    studies: Studies
    tokens: Tokens
    trail: Trail
    webhooks: Webhooks
    sessions: URLSafeTimedSerializer
    metrics: Metrics = field(default_factory=Metrics)
    pace: Pace = field(init=False)
    logins: Pace = field(init=False)
    streams: int = field(init=False, default=0)
    _guarded: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.pace = Pace(self.settings.requests_a_minute)
        self.logins = Pace(self.settings.logins_a_minute)

    def is_local(self) -> bool:
        """Whether whoever reaches it is its admin: it listens to this machine alone, and there is no token."""
        if not self._guarded and self.settings.local:
            self._guarded = self.tokens.any()
        return self.settings.local and not self._guarded

    def session_of(self, principal: Principal) -> str:
        """A signed cookie that stands for a token, without it."""
        signed = self.sessions.dumps(principal.token)
        return signed if isinstance(signed, str) else signed.decode()

    def caller(self, request: Request) -> Principal:
        """Who is asking.

        Raises:
            Refused: nobody that is known, or too often.
        """
        key, found = address_of(request), self.known(request)
        bearer = "authorization" in request.headers
        if found is None and bearer:
            self.slowed(self.logins, key)
        if found is not None and not bearer and request.method not in SAFE:
            _check_origin(request)
        if found is None:
            raise Refused(
                HTTPStatus.UNAUTHORIZED,
                "Say who you are: Authorization: Bearer TOKEN, with a token that is neither revoked nor expired.",
                {"www-authenticate": "Bearer"},
            )
        self.slowed(self.pace, f"{found.token}" if found.token else key)
        request.scope.setdefault("state", {})["token"] = found.token
        return found

    def known(self, request: Request) -> Principal | None:
        """Who is asking, now: by a token, by a session, or the person at this machine; None: nobody that is known."""
        given = request.headers.get("authorization", "")
        if given:
            return self.tokens.principal(given[len(BEARER) :].strip()) if given.lower().startswith(BEARER) else None
        if self.is_local():  # a cookie that another server of this machine has left stands for nobody here
            return LOCAL
        return self._of_session(request.cookies[COOKIE]) if COOKIE in request.cookies else None

    def slowed(self, pace: Pace, key: str) -> None:
        """Count a request.

        Raises:
            Refused: there were too many.
        """
        wait = pace.wait(key)
        if wait > 0.0:
            raise Refused(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"Too many requests; ask again in {math.ceil(wait)} s.",
                {"retry-after": str(math.ceil(wait))},
            )

    def _of_session(self, cookie: str) -> Principal | None:
        try:
            number = self.sessions.loads(cookie, max_age=int(self.settings.session_seconds))
        except BadSignature:
            return None
        return self.tokens.holder(number) if isinstance(number, int) else None


def address_of(request: Request) -> str:
    """From where a request comes."""
    return request.client.host if request.client else ""


def _check_origin(request: Request) -> None:
    """Refuse what another site's page makes a browser send with our cookie.

    Raises:
        Refused: it does not come from a page of ours.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    ours = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if site not in (None, "same-origin", "none") or (origin is not None and origin != ours):
        raise Refused(HTTPStatus.FORBIDDEN, "This request comes from another site; nothing was done.")


def server_of(request: Request) -> Server:
    """What the routes of this request's application share."""
    found: Server = request.app.state.server
    return found


def needs(role: Role) -> Callable[[Request], Principal]:
    """A dependency: the caller, if they may do that much, and see the study that the path names.

    Raises:
        Refused: by the dependency.
    """

    def caller(request: Request) -> Principal:
        found = server_of(request).caller(request)
        study = request.path_params.get("name")
        if found.study is not None and study != found.study:
            if study is None and role is Role.viewer:
                return found
            raise Refused(HTTPStatus.NOT_FOUND if study else HTTPStatus.FORBIDDEN, _unseen(study))
        if found.role < role:
            raise Refused(
                HTTPStatus.FORBIDDEN, f"That takes the role {role.name}, and this token has {found.role.name}."
            )
        return found

    return caller


def _unseen(study: str | None) -> str:
    return f"There is no study {study!r}." if study else "This token is for one study only."
