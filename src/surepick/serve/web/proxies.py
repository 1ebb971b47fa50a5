"""Proxies that the operator has named: from where a request really comes, and who is asking, as they say it.

The header that says who is asking is believed from them alone. From anybody else it is refused, and not only ignored:
who sends it tries to be somebody, or a proxy was left out when the server was started.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.serve.access.identities import SUBJECT, read_identity
from surepick.serve.settings import Settings, networks
from surepick.text import quoted

PLACE = "surepick.named"  # in the scope of a request
Number = ipaddress.IPv4Address | ipaddress.IPv6Address


@record
class Named:
    """What a proxy says of a request.

    Args:
        identity: who is asking; None: nobody is said to be.
        status, why: of the refusal, if it may not say so.
    """

    identity: str | None = None
    status: HTTPStatus = HTTPStatus.OK
    why: str = ""


class Proxies:
    """Notes what a named proxy says of a request, and puts the address of who is behind it in the place of its own.

    Nobody is believed who was not named, also not this machine: whoever connects from it could be anybody else.

    Args:
        app: what is behind it.
        settings: with the proxies and the header.
    """

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
        peer = number_of(scope)
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


def number_of(scope: Mapping[str, Any]) -> Number | None:
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
