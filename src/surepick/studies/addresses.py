"""Addresses of servers, and whether a token may be sent there."""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import SplitResult, urlsplit

from surepick.errors import InvalidInput
from surepick.text import quoted

TOKEN, INSECURE = "SUREPICK_TOKEN", "SUREPICK_INSECURE_HTTP"


def is_http(url: object) -> bool:
    """Whether an address is a server's, and no database's."""
    return isinstance(url, str) and url.lower().startswith(("http://", "https://"))


def checked_address(url: str, *, insecure: bool | None = None) -> str:
    """The address of a server, without a slash at the end.

    Args:
        url: "https://HOST" or "http://HOST:PORT", with the path under which a proxy serves it.
        insecure: http, and not https, to another machine is meant; None: as SUREPICK_INSECURE_HTTP says ("1").

    Raises:
        InvalidInput: it is none, holds a name or a password, or is http to another machine.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise InvalidInput(f"{quoted(url)} is no address of a server: {error}.") from None
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"the address of {quoted(host)} has a name or a password in it, which lists of processes and logs show. "
            f"Leave it out, and put the token into {TOKEN}."
        )
    if not host or parts.query or parts.fragment:
        raise InvalidInput(
            f"{quoted(_plain(parts))} is no address of a server; write https://HOST, or http://127.0.0.1:8421."
        )
    meant = os.environ.get(INSECURE) == "1" if insecure is None else insecure
    if parts.scheme.lower() == "http" and not meant and not is_this_machine(host):
        raise InvalidInput(
            f"http://{host} is another machine, and http is not encrypted: whoever is between could read the token and "
            f"the results. Write https://, or, in a network that you trust, insecure=True ({INSECURE}=1)."
        )
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme.lower()}://{shown}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def is_this_machine(host: str) -> bool:
    """Whether a name or number of a host is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def given_token(token: str | None) -> str | None:
    """The token: the one that was given, else that of the environment; None where there is none.

    Raises:
        InvalidInput: it is none that a request can carry. The message does not show it.
    """
    found = os.environ.get(TOKEN, "") if token is None else token
    if not isinstance(found, str) or not (found.isascii() and found.isprintable()):
        raise InvalidInput("the token has characters that no token has; copy it as surepick token create showed it.")
    return found.strip() or None


def _plain(parts: SplitResult) -> str:
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
