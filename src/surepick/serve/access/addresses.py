"""Addresses that a server may send to: names are resolved once, and what they resolve to is what is connected to."""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.text import quoted

SCHEMES = ("https", "http")
Number = ipaddress.IPv4Address | ipaddress.IPv6Address
SPECIAL_4 = tuple(  # IANA's IPv4 Special-Purpose Address Registry, 2025, multicast, and the deprecated 192.88.99.0/24
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16"),
            *("192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        ),
    )
)
UNICAST = ipaddress.IPv6Network("2000::/3")  # all that is given out; the rest is of a machine, of a site, or of nobody
SPECIAL_6 = tuple(  # what IANA's IPv6 Special-Purpose Address Registry, 2025, takes out of it, but for 6to4
    map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20"))
)
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how a network of IPv6 alone reaches one of IPv4
ISATAP = (0x0000_5EFE, 0x0200_5EFE)  # before the last four bytes, which are an address of IPv4


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


def is_public(number: Number) -> bool:
    """Whether an address is one of the internet, also as it is written in other forms.

    Python's own lists lag behind the registries, so these stand here. Of IPv6 only what is given out as unicast is
    public, and an address of IPv4 inside one of IPv6 is judged as itself.
    """
    if isinstance(number, ipaddress.IPv4Address):
        return not any(number in network for network in SPECIAL_4)
    inner = _inner(number)
    if inner is not None and not is_public(inner):
        return False
    if number.ipv4_mapped is not None or number in NAT64:
        return True
    return number in UNICAST and not any(number in network for network in SPECIAL_6)


def _inner(number: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The address of IPv4 that one of IPv6 leads to; None: it holds none."""
    if number.ipv4_mapped is not None:
        return number.ipv4_mapped
    if number.sixtofour is not None:
        return number.sixtofour
    last = int(number) & 0xFFFF_FFFF
    of_isatap = (int(number) >> 32) & 0xFFFF_FFFF in ISATAP
    return ipaddress.IPv4Address(last) if number in NAT64 or of_isatap else None
