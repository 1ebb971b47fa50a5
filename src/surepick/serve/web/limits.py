"""Limits that hold before anything is read: size and pace of a request, requests a minute, and safe headers."""

from __future__ import annotations

import asyncio
import threading
import time
from http import HTTPStatus
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from surepick.errors import SurepickError
from surepick.serve.settings import Settings
from surepick.serve.web.problems import Answer, as_document, kind_of, status_of
from surepick.serve.web.proxies import named_in

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


class Guarded(Protocol):
    """What is asked of a server before anything is read."""

    @property
    def settings(self) -> Settings:
        """Of the operator."""

    @property
    def moved(self) -> bool:
        """Whether the database is another file than the one that was opened, or none."""

    def reopen(self) -> None:
        """Open the file that is there now."""

    def is_local(self) -> bool:
        """Whether whoever reaches it is its admin."""


class Guard:
    """Refuses bodies that are too large or too slow, foreign hosts of a local server, and whoever plays a proxy; adds
    headers to all answers.

    Args:
        app: what is guarded.
        server: with the limits. While there is no token only names of this machine are answered (a page elsewhere whose
            name was made to point here would be answered as the admin else).
        answer: makes the answers that refuse.
    """

    def __init__(self, app: ASGIApp, server: Guarded, answer: Answer = as_document) -> None:
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
            return self.answer(Request(scope), status_of(error), str(error), None, kind_of(error))

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

    @property
    def _too_slow(self) -> str:
        return f"The body did not come within {self.settings.slowest_body:g} s."

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
                raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, self._too_slow, CLOSE) from None
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                done = not message.get("more_body", False)
                if seen > self.settings.largest_body:
                    raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large, CLOSE)
            return message

        return limited


class Pace:
    """How many requests each key may make in a minute: a bucket that fills evenly.

    Args:
        a_minute: how many.
        most_keys: keys that are remembered; those that were quiet longest are forgotten, which only is in their favour.
    """

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
