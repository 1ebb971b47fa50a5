"""What an operator decides about a server."""

import importlib.util
import ipaddress
import re
from urllib.parse import urlsplit

from surepick.core.records import record
from surepick.errors import InvalidInput

MIB = 2**20
HEADER = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,99}")
SPOKEN_FOR = ("authorization", "cookie", "host", "origin", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@record
class OpenId:
    """An identity provider (OpenID Connect) that people may log in by."""

    issuer: str  # its address, as it writes it itself
    client: str  # what this server is called there
    secret: str  # that it shows there; "": none, for a public client
    name: str  # on the button of the login


@record
class Settings:
    """How a server behaves."""

    url: str  # of the database of the studies
    root_path: str = ""  # where a proxy serves it, e.g. "/surepick"; "" at the root
    largest_body: int = 32 * MIB  # bytes of a request
    slowest_headers: float = 15.0  # seconds within which the headers of a request have to be here, also of the first
    slowest_body: float = 30.0  # seconds within which the rest of it has to be here
    most_connections: int = 0  # that are open at once; 0: as many as this process may open files, with room for others
    requests_a_minute: int = 1_200  # of one token, or of one address without a token
    logins_a_minute: int = 10  # attempts of one address
    session_seconds: float = 12 * 3600.0  # after which one has to log in anew
    most_streams: int = 100  # pages and programs that listen to studies at once
    local: bool = True  # it listens to this machine alone
    trusted_proxies: tuple[str, ...] = ()  # addresses and networks of proxies, whose headers are believed
    trusted_header: str = ""  # in which they say who is asking; "": in none
    openid: OpenId | None = None  # by whom people may log in; None: by tokens alone

    @property
    def alone(self) -> bool:
        """Whether without any token whoever reaches it is its admin: nobody is meant to come from elsewhere."""
        return self.local and not self.trusted_proxies and self.openid is None


def networks(given: tuple[str, ...]) -> tuple[Network, ...]:
    """Addresses and networks of proxies."""
    found = []
    for text in given:
        try:
            network = ipaddress.ip_network(text)
        except ValueError:
            raise InvalidInput(
                f"--trusted-proxy is {text!r}; give an address of a machine, or a network: 10.0.0.5, 10.0.0.0/28."
            ) from None
        if network.prefixlen == 0:
            raise InvalidInput(f"--trusted-proxy is {text!r}, which is everybody; name the proxy.")
        found.append(network)
    return tuple(found)


def read_header(name: str, *, proxies: bool) -> str:
    """The header in which proxies say who is asking; "" is none."""
    if not name:
        return ""
    if not HEADER.fullmatch(name) or name.lower() in SPOKEN_FOR:
        raise InvalidInput(f"--trusted-header is {name!r}; give the name of a header, e.g. X-Forwarded-User.")
    if not proxies:
        raise InvalidInput(
            f"--trusted-header {name} without --trusted-proxy ADDRESS would let everybody say who they are; name the "
            "proxy."
        )
    return name


def read_provider(issuer: str, client: str, name: str, secret: str) -> OpenId | None:
    """The identity provider of a server; None: it has none."""
    if not issuer:
        if client or name:
            raise InvalidInput("--oidc-client-id and --oidc-name go with --oidc-issuer https://HOST.")
        return None
    if not client:
        raise InvalidInput("--oidc-issuer needs --oidc-client-id: what the provider calls this server.")
    if importlib.util.find_spec("authlib") is None:
        raise InvalidInput(
            'login by an identity provider needs authlib, which is absent: pip install "surepick[oidc]".'
        )
    if not is_encrypted(issuer) or "?" in issuer:
        raise InvalidInput(
            f"--oidc-issuer is {re.sub('//.*@', '//***@', issuer)!r}; give the address of the provider, https://HOST: "
            "whoever is on the way could let anybody in otherwise."
        )
    return OpenId(issuer, client, secret, name or str(urlsplit(issuer).hostname))


def is_encrypted(url: str) -> bool:
    """Whether an address is one of https, or of this machine, and has no user in it."""
    try:
        parts = urlsplit(url)
        plain = parts.scheme == "http" and parts.hostname in LOOPBACK
        return (parts.scheme == "https" or plain) and bool(parts.hostname) and not parts.username and not parts.fragment
    except ValueError:
        return False
