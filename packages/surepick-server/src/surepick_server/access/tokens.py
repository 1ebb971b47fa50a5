"""Tokens: 32 random bytes, shown once; the database keeps their hash."""

import hashlib
import ipaddress
import re
import secrets
import socket
from collections.abc import Sequence
from enum import IntEnum
from urllib.parse import urlsplit

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row
from sqlalchemy.exc import IntegrityError

from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.studies.logs.base import system_clock
from surepick.studies.logs.sql.engine import in_words
from surepick.text import quoted
from surepick_server.access import schema
from surepick_server.access.schema import writing

# --- The four roles, each of which may do what those before it may.


class Role(IntEnum):
    """What somebody may do."""

    viewer = 1  # see what closed rounds say
    measurer = 2  # lease measurements, and report one's own
    owner = 3  # make studies, give up, withdraw, close
    admin = 4  # make and revoke tokens


def read_role(text: object) -> Role:
    """A role by its name."""
    if isinstance(text, str) and text in Role.__members__:
        return Role[text]
    raise InvalidInput(f"role is {quoted(text)}; choose one of {', '.join(Role.__members__)}.")


@record
class Principal:
    """Somebody who is known."""

    name: str  # of the token; the worker of what they report
    role: Role  # what they may do
    study: str | None = None  # the only study that they see; None: all
    token: int = 0  # number of the token; 0 for the person at this machine, before there are tokens

    def is_worker(self, worker: str) -> bool:
        """Whether a worker of that name is they, or one of theirs: "lab" has "lab/1", "lab/2", ... Before there are
        tokens nobody is told from anybody: the person at this machine is every worker."""
        return self.token == 0 or worker == self.name or worker.startswith(f"{self.name}/")


LOCAL = Principal("local", Role.admin)


# --- Identities: what people are called where they log in. An admin enters each; none is made by logging in.

SUBJECT = "://"  # is in ISSUER#SUBJECT, and in nothing that a proxy or an address of e-mail may say
IDENTITY = re.compile(r"[!-~](?:[ -~]{0,598}[!-~])?")


def read_identity(text: str) -> str:
    """An identity as it is stored and compared: an address of e-mail in small letters, anything else as it is."""
    if not isinstance(text, str) or not IDENTITY.fullmatch(text):
        raise InvalidInput(
            f"an identity is {quoted(text)}; give an address of e-mail, ISSUER#SUBJECT, or the name that the proxy "
            "gives: visible ASCII and inner spaces, at most 600 characters."
        )
    return text.lower() if "@" in text and SUBJECT not in text else text


def bind(connection: Connection, identity: str, *, token: int, made_by: str, now: float) -> None:
    """Let an identity log in under a token's name. It leaves a token that is worth nothing any more."""
    own, tokens = schema.identity.c, schema.token.c
    row = {"token": token, "made_by": made_by, "made_at": now}
    found = connection.execute(
        sa.select(own.token, tokens.name, tokens.revoked_at, tokens.expires_at)
        .join(schema.token, tokens.id == own.token)
        .where(own.identity == identity)
    ).first()
    if found is None:
        connection.execute(sa.insert(schema.identity), [{"identity": identity, **row}])
        return
    if found.revoked_at is None and found.expires_at > now and found.token != token:
        raise InvalidInput(
            f"{quoted(identity)} logs in as {quoted(found.name)} already; revoke that token first, or take another "
            "identity."
        )
    connection.execute(sa.update(schema.identity).where(own.identity == identity).values(**row))


PREFIX, BYTES = "spk_", 32
NAME = re.compile(r"[\w][\w.@+ -]{0,79}")
REMEMBERED, MOST_KNOWN = 1.0, 10_000  # seconds; tokens
USUAL_SECONDS, LONGEST_SECONDS = 90 * 86400.0, 366 * 86400.0


@record
class Token:
    """What is known of a token; the token itself is not."""

    id: int  # its number
    name: str  # whose it is: the worker of what they report
    role: Role  # what they may do
    study: str | None  # the only study that it is for; None: all
    made_by: str  # made_by, made_at: by whom, and when, in seconds since 1970 (UTC)
    made_at: float
    expires_at: float  # from when on it is worth nothing
    revoked_at: float | None  # when it was revoked; None: it was not
    identities: tuple[str, ...] = ()  # what its holder is called where they log in otherwise


def hash_of(text: str) -> str:
    """What is stored of a token. It is random, so that a plain hash is enough."""
    return hashlib.sha256(text.encode()).hexdigest()


class Tokens:
    """The tokens of a database with the tables of a server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, tuple[float, Principal, float]] = {}  # hash -> (when it was read, whose, until when)

    def make(
        self,
        name: str,
        role: Role,
        *,
        study: str | None = None,
        seconds: float = USUAL_SECONDS,
        identity: str | None = None,
        made_by: str = "command line",
    ) -> tuple[str, Token]:
        """(a new token, what is known of it). Nobody can be told the token again."""
        if not isinstance(name, str) or not NAME.fullmatch(name) or name != name.strip() or name == "local":
            raise InvalidInput(
                f"the name of a token is {quoted(name)}; give that of whoever uses it: letters, digits, . @ + - and "
                "inner spaces, at most 80, and not 'local'."
            )
        if not 0.0 < seconds <= LONGEST_SECONDS:
            raise InvalidInput(f"a token is to last {seconds:g} seconds; give a positive time, at most a year.")
        if role is Role.admin and study is not None:
            raise InvalidInput("an admin is one of all studies; leave the study out, or choose the role owner.")
        own = () if identity is None else (read_identity(identity),)
        text, now = PREFIX + secrets.token_urlsafe(BYTES), system_clock()
        row: dict[str, object] = {"name": name, "role": role.name, "study": study, "hash": hash_of(text)}
        row |= {"made_by": made_by, "made_at": now, "expires_at": now + seconds}
        try:
            with writing(self._engine) as connection:
                if connection.execute(sa.select(schema.token.c.id).where(schema.token.c.name == name)).first():
                    raise _taken(name)
                number = connection.execute(sa.insert(schema.token).returning(schema.token.c.id), [row]).scalar_one()
                for called in own:
                    bind(connection, called, token=int(number), made_by=made_by, now=now)
        except IntegrityError as error:
            raise _taken(name) from error
        return text, Token(int(number), name, role, study, made_by, now, now + seconds, None, own)

    def bind(self, name: str, identity: str, *, made_by: str = "command line") -> Token:
        """Let the holder of a token log in by an identity too."""
        called, now = read_identity(identity), system_clock()
        try:
            with writing(self._engine) as connection:
                row = connection.execute(sa.select(schema.token).where(schema.token.c.name == name)).first()
                if row is None or row.revoked_at is not None or row.expires_at <= now:
                    raise InvalidInput(f"there is no token of the name {quoted(name)} that is worth something.")
                bind(connection, called, token=int(row.id), made_by=made_by, now=now)
        except IntegrityError as error:
            raise InvalidInput(
                f"somebody else enters {quoted(called)} at this moment; see surepick token list."
            ) from error
        return _token(row, (called,))

    def list(self) -> list[Token]:
        """All that were ever made, in their order."""
        wanted = (
            sa.select(schema.token, schema.identity.c.identity)
            .outerjoin(schema.identity, schema.identity.c.token == schema.token.c.id)
            .order_by(schema.token.c.id, schema.identity.c.identity)
        )
        found: dict[int, Token] = {}
        with in_words(self._engine.url), self._engine.connect() as connection:
            for row in connection.execute(wanted):
                before = found[row.id].identities if row.id in found else ()
                found[row.id] = _token(row, before if row.identity is None else (*before, str(row.identity)))
        return list(found.values())

    def revoke(self, name: str) -> Token:
        """From now on it is worth nothing, also in sessions that it opened."""
        columns = schema.token.c
        with writing(self._engine) as connection:
            still = sa.update(schema.token).where(columns.name == name, columns.revoked_at.is_(None))
            connection.execute(still.values(revoked_at=system_clock()))
            row = connection.execute(sa.select(schema.token).where(columns.name == name)).first()
        self._known.clear()
        if row is None:
            raise InvalidInput(f"there is no token of the name {quoted(name)}; surepick token list has those that are.")
        return _token(row, ())

    def principal(self, text: str) -> Principal | None:
        """Whose token it is; None: nobody's, or it is worth nothing any more. What was read a moment ago is not read
        again: a token that another process revoked works a second longer here."""
        hashed, now = hash_of(text), system_clock()
        known = self._known.get(hashed)
        if known is not None and abs(now - known[0]) < REMEMBERED and now < known[2]:
            return known[1]
        found = self._found(schema.token.c.hash == hashed)
        if found is None:
            self._known.pop(hashed, None)
            return None
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._known[hashed] = (now, found[0], found[1])
        return found[0]

    def forget(self) -> None:
        """Read all anew: the database is another one."""
        self._known.clear()

    def holder(self, number: int, session: str) -> Principal | None:
        """Whose token opened a session, if it is still worth something and the session was not logged out."""
        over = sa.exists().where(schema.ended.c.id == session)
        found = self._found((schema.token.c.id == number) & ~over)
        return None if found is None else found[0]

    def known_as(self, identities: Sequence[str]) -> Principal | None:
        """Who has one of these identities; None: no admin has entered one, or what it had is worth nothing any more."""
        for identity in identities:
            number = sa.select(schema.identity.c.token).where(schema.identity.c.identity == identity).scalar_subquery()
            found = self._found(schema.token.c.id == number)
            if found is not None:
                return found[0]
        return None

    def any(self) -> bool:
        """Whether one was ever made."""
        with in_words(self._engine.url), self._engine.connect() as connection:
            return connection.execute(sa.select(schema.token.c.id).limit(1)).first() is not None

    def _found(self, which: sa.ColumnElement[bool]) -> tuple[Principal, float] | None:
        """(whose token it is, until when), if it is worth something."""
        with in_words(self._engine.url), self._engine.connect() as connection:
            row = connection.execute(sa.select(schema.token).where(which)).first()
        if row is None or row.revoked_at is not None or row.expires_at <= system_clock():
            return None
        return Principal(str(row.name), Role[row.role], row.study, int(row.id)), float(row.expires_at)


def _token(row: Row[tuple[object, ...]], identities: tuple[str, ...]) -> Token:
    known = (row.made_by, row.made_at, row.expires_at, row.revoked_at)
    return Token(int(row.id), row.name, Role[row.role], row.study, *known, identities)


def _taken(name: str) -> InvalidInput:
    return InvalidInput(
        f"there is, or was, a token of the name {quoted(name)}. Names stand in the log of studies, so each is used "
        "once; take another, e.g. with a number."
    )


# --- Addresses that a server may send to: names are resolved once, and what they resolve to is what is connected to.

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
    """Where to send."""

    url: str  # with the number of the host in place of its name
    host: str  # the name, for the header and the certificate


def check_address(url: str) -> None:
    """Refuse what is no address of a web server."""
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
    """Where an address leads now."""
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
    """Whether an address is one of the internet, also as it is written in other forms. Python's own lists lag behind
    the registries, so these stand here. Of IPv6 only what is given out as unicast is public, and an address of IPv4
    inside one of IPv6 is judged as itself."""
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


# --- What is over before its time: sessions that were logged out, logins that were used. Every process sees it at once.


class Ended:
    """What is over, of a database; after `seconds` all of it would be over anyway, and is forgotten."""

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._engine = engine
        self._seconds = seconds

    def add(self, name: str) -> bool:
        """Whether this ended it; False: it was over already."""
        columns, now = schema.ended.c, system_clock()
        try:
            with writing(self._engine) as connection:
                connection.execute(sa.delete(schema.ended).where(columns.at < now - self._seconds))
                connection.execute(sa.insert(schema.ended), [{"id": name, "at": now}])
        except IntegrityError:
            return False
        return True
