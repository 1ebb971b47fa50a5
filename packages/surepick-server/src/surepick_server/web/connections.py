"""Connections: how many there are, and how long one may take to send a request. uvicorn limits neither.

A connection that has not sent a whole request in time is closed. Where there are too many, or too many of one peer, the
one that has waited longest for its sender goes, never one whose request is being answered: so a server of which a
stranger holds all connections still answers, also that stranger's neighbours.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.text import quoted
from surepick_server.access.tokens import SUBJECT, read_identity
from surepick_server.settings import Network, Settings, networks

# --- Proxies that the operator has named: from where a request really comes, and who is asking, as they say it.
#
# The header that says who is asking is believed from them alone. From anybody else it is refused, and not only ignored:
# who sends it tries to be somebody, or a proxy was left out when the server was started.

PLACE = "surepick.named"  # in the scope of a request
Number = ipaddress.IPv4Address | ipaddress.IPv6Address


@record
class Named:
    """What a proxy says of a request."""

    identity: str | None = None  # who is asking; None: nobody is said to be
    status: HTTPStatus = HTTPStatus.OK  # status, why: of the refusal, if it may not say so
    why: str = ""


class Proxies:
    """Notes what a named proxy says of a request, and puts the address of who is behind it in the place of its own.
    Nobody is believed who was not named, also not this machine: whoever connects from it could be anybody else."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._header = settings.trusted_header.lower().encode()
        self._trusted = networks(settings.trusted_proxies)
        inner: Any = app
        self._behind: Any = ProxyHeadersMiddleware(inner, [str(one) for one in self._trusted])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        peer = number_of_connection(scope)
        if peer is not None:
            scope["client"] = (str(peer), scope["client"][1])
        scope[PLACE] = self._named(scope, peer)
        await self._behind(scope, receive, send)

    def _named(self, scope: Scope, peer: Number | None) -> Named:
        said = [value for name, value in scope["headers"] if name == self._header] if self._header else []
        if not said:
            return Named()
        name = self._header.decode()
        if peer is None or not any(peer in network for network in self._trusted):
            why = f"The header {name} is believed from the proxies of this server alone, and this request is of none."
            return Named(status=HTTPStatus.FORBIDDEN, why=why)
        if len(said) > 1:
            why = f"The header {name} is here {len(said)} times, so nobody knows which of them is the proxy's."
            return Named(status=HTTPStatus.BAD_REQUEST, why=why)
        try:
            return Named(_read(said[0].decode("latin-1").strip()))
        except InvalidInput as error:
            return Named(status=HTTPStatus.BAD_REQUEST, why=f"The header {name}: {error}")


def _read(text: str) -> str | None:
    """What a proxy calls somebody; None: nothing. It is no ISSUER#SUBJECT, which only a provider may say."""
    identity = read_identity(text) if text else None
    if identity is not None and SUBJECT in identity:
        raise InvalidInput(f"{quoted(identity)} is an address of the web, and has to be a name.")
    return identity


def peer_of(address: str) -> str:
    """Whom an address belongs to, as one who is counted: of IPv6 the network, in which a machine has many addresses."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(number, ipaddress.IPv4Address):
        return address
    return str(number.ipv4_mapped or ipaddress.ip_network((int(number) >> 64 << 64, 64)))


def number_of_connection(scope: Mapping[str, Any]) -> Number | None:
    """From where a connection comes, an IPv4 address also where it is written as one of IPv6."""
    client = scope.get("client")
    try:
        number = ipaddress.ip_address(client[0] if client else "")
    except ValueError:
        return None
    inner = number.ipv4_mapped if isinstance(number, ipaddress.IPv6Address) else None
    return inner or number


def named_in(scope: Scope) -> Named:
    """What a proxy says of a request."""
    found = scope.get(PLACE)
    return found if isinstance(found, Named) else Named()


def identity_of(request: Request) -> str | None:
    """Who is asking, as a named proxy says; None: it says nothing."""
    return named_in(request.scope).identity


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

USUAL_FILES = 1_024
OWN_FILES = 80  # files that the database, the trail and uploads need
MOST = 2_000
SHARE = 4  # one peer may have a quarter of all connections
LOOK = 0.5  # seconds between two looks at how long connections wait
GRACE = 5.0  # seconds in which who sends a body too slowly is told so
SLOWEST_READER = 60.0  # seconds in which somebody who is sent an answer reads nothing of it


def most_at_once(settings: Settings) -> tuple[int, int]:
    """(connections open at once, those that the kernel holds back), below the files that this process may open."""
    files = USUAL_FILES if resource is None else resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    files = files if 0 < files < 10 * MOST else 10 * MOST
    held = min(max(files // 16, 8), 128)
    return settings.most_connections or max(16, min(files - OWN_FILES - 3 * held, MOST)), held


def configuration(app: FastAPI, settings: Settings) -> uvicorn.Config:
    """How uvicorn serves the application."""
    most, held = most_at_once(settings)
    crowd = Crowd(settings, most)
    return uvicorn.Config(
        app,
        http=crowd.connection,  # type: ignore[arg-type]
        ws="none",
        backlog=held,
        log_config=None,
        server_header=False,
        proxy_headers=False,  # the application knows which proxies to believe
        timeout_keep_alive=math.ceil(settings.slowest_headers),
        timeout_graceful_shutdown=10,
        h11_max_incomplete_event_size=65536,
        lifespan="off",
    )


class Crowd:
    """All connections of a server, at most so many; of one event loop."""

    def __init__(self, settings: Settings, most: int) -> None:
        self._settings = settings
        self._most = most
        self._share = max(1, most // SHARE)
        self._trusted: tuple[Network, ...] = networks(settings.trusted_proxies)
        self._open: dict[Connection, None] = {}
        self._of: dict[str, dict[Connection, None]] = {}
        self._looking = False

    def connection(self, **given: Any) -> Connection:
        """A new connection, as uvicorn asks for one."""
        return Connection(H11Protocol(**given), self)

    def enter(self, one: Connection) -> None:
        """Make room for a connection, or close it if there is none."""
        self._open[one] = None
        self._of.setdefault(one.peer, {})[one] = None
        if not self._looking:
            self._looking = True
            one.loop.call_later(LOOK, self._look, one.loop)
        if len(self._of[one.peer]) > self._share and not one.passes_on(self._trusted):
            _close_one(self._of[one.peer])
        elif len(self._open) > self._most:
            _close_one(max(self._of.values(), key=len))

    def leave(self, one: Connection) -> None:
        """A connection has ended."""
        self._open.pop(one, None)
        own = self._of.get(one.peer, {})
        own.pop(one, None)
        if not own:
            self._of.pop(one.peer, None)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for one in list(self._open):
            if one.overdue(now, self._settings):
                one.close()
        self._looking = bool(self._open)
        if self._looking:
            loop.call_later(LOOK, self._look, loop)


def _close_one(among: dict[Connection, None]) -> None:
    """Close the one that has waited longest for its sender, or the newest if all are being answered."""
    waiting = [one for one in among if not one.answered]
    chosen = min(waiting, key=lambda one: one.since) if waiting else next(reversed(among))
    chosen.close()


class Connection(asyncio.Protocol):
    """A connection of a crowd: what uvicorn does, and since when it waits for its sender."""

    def __init__(self, inner: H11Protocol, crowd: Crowd) -> None:
        self._inner = inner
        self._crowd = crowd
        self.loop = inner.loop
        self.since = self.loop.time()
        self.peer = ""
        self._cycle: Any = None
        self._unread = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._inner.connection_made(transport)  # type: ignore[arg-type]
        self.peer = peer_of(self._inner.client[0] if self._inner.client else "")
        self._crowd.enter(self)

    def data_received(self, data: bytes) -> None:
        if self._inner.transport.is_closing():
            return
        self._inner.data_received(data)
        if self._inner.cycle is not self._cycle:  # the headers are here
            self._cycle, self.since = self._inner.cycle, self.loop.time()

    def eof_received(self) -> None:
        self._inner.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._crowd.leave(self)
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    @property
    def answered(self) -> bool:
        """Whether a whole request is here, and its answer is not complete."""
        cycle = self._inner.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def passes_on(self, trusted: tuple[Network, ...]) -> bool:
        """Whether it is one of a named proxy, behind which there are many."""
        number = number_of_connection({"client": self._inner.client})
        return number is not None and any(number in network for network in trusted)

    def overdue(self, now: float, settings: Settings) -> bool:
        """Whether its sender, or its reader, takes too long."""
        cycle, unread = self._inner.cycle, self._inner.transport.get_write_buffer_size()
        if self.answered or (unread and unread != self._unread):  # it is not the sender whom we wait for
            if not unread or unread != self._unread:
                self.since, self._unread = now, unread
            return now - self.since > SLOWEST_READER
        has_headers = cycle is not None and not cycle.response_complete
        return now - self.since > (settings.slowest_body + GRACE if has_headers else settings.slowest_headers)

    def close(self) -> None:
        """End it at once."""
        self._crowd.leave(self)
        self._inner.transport.abort()
