"""Addresses that a server may send to: names are resolved once, and what they resolve to is what is connected to."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.text import quoted

SCHEMES = ("https", "http")


@record
class Target:
    """Where to send.

    Args:
        url: with the number of the host in place of its name.
        host: the name, for the header and the certificate.
    """

    url: str
    host: str


def check_address(url: str) -> None:
    """Refuse what is no address of a web server.

    Raises:
        InvalidInput: it is none.
    """
    try:
        parts = urlsplit(url)
        named = bool(parts.hostname) and (parts.port is None or 0 < parts.port < 65536)
    except ValueError:
        named = False
    strange = any(ord(letter) < 33 or ord(letter) > 126 for letter in url) or len(url) > 2_000
    if not named or strange or parts.scheme not in SCHEMES or parts.username is not None or parts.fragment:
        raise InvalidInput(
            f"{quoted(url)} is no address that can be sent to; give one such as https://example.org/surepick, without "
            "a user or a fragment."
        )


def target_of(url: str, *, private: bool) -> Target:
    """Where an address leads now.

    Args:
        url: the address.
        private: an admin allowed that it is of this machine or of its network.

    Raises:
        InvalidInput: it leads nowhere, or to where nobody allowed.
    """
    check_address(url)
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidInput(f"nothing is known of the host {quoted(host)}.") from error
    numbers = [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]
    for number in numbers:
        if not private and not is_public(number):
            raise InvalidInput(
                f"{quoted(host)} is an address of this machine or of its network; an admin has to allow that."
            )
    chosen = f"[{numbers[0]}]" if numbers[0].version == 6 else str(numbers[0])
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    shown = f"[{host}]" if ":" in host else host
    return Target(f"{parts.scheme}://{chosen}:{port}{rest}", shown if parts.port is None else f"{shown}:{port}")


def is_public(number: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address is one of the internet, also as it is written in other forms."""
    if isinstance(number, ipaddress.IPv6Address):
        inner = number.ipv4_mapped or number.sixtofour or (number.teredo[1] if number.teredo else None)
        if inner is not None:
            return is_public(inner)
    return number.is_global and not number.is_multicast
