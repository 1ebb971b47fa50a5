"""Tokens: 32 random bytes, shown once; the database keeps their hash."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row
from sqlalchemy.exc import IntegrityError

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.serve.access import schema
from surepick.serve.access.identities import bind, read_identity
from surepick.serve.access.roles import Principal, Role
from surepick.serve.access.schema import writing
from surepick.studies.logs.leases import system_clock
from surepick.studies.logs.sql.engine import in_words
from surepick.text import quoted

PREFIX, BYTES = "spk_", 32
NAME = re.compile(r"[\w][\w.@+ -]{0,79}")
REMEMBERED, MOST_KNOWN = 1.0, 10_000  # seconds; tokens
USUAL_SECONDS, LONGEST_SECONDS = 90 * 86400.0, 366 * 86400.0


@record
class Token:
    """What is known of a token; the token itself is not.

    Args:
        id: its number.
        name: whose it is: the worker of what they report.
        role: what they may do.
        study: the only study that it is for; None: all.
        made_by, made_at: by whom, and when, in seconds since 1970 (UTC).
        expires_at: from when on it is worth nothing.
        revoked_at: when it was revoked; None: it was not.
        identities: what its holder is called where they log in otherwise.
    """

    id: int
    name: str
    role: Role
    study: str | None
    made_by: str
    made_at: float
    expires_at: float
    revoked_at: float | None
    identities: tuple[str, ...] = ()


def hash_of(text: str) -> str:
    """What is stored of a token. It is random, so that a plain hash is enough."""
    return hashlib.sha256(text.encode()).hexdigest()


class Tokens:
    """The tokens of a database.

    Args:
        engine: of a database with the tables of a server.
    """

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
        """(a new token, what is known of it). Nobody can be told the token again.

        Args:
            name: whose it is; no other token may have it, also no revoked one: it stands in the log.
            role: what they may do.
            study: the only study that it is for; None: all.
            seconds: how long it is worth something, at most a year.
            identity: what its holder is called where they log in; None: they log in by the token alone.
            made_by: who makes it.

        Raises:
            InvalidInput: a value has no meaning, or the name is taken, or the identity.
        """
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
        row = {
            "name": name,
            "role": role.name,
            "study": study,
            "hash": hash_of(text),
            "made_by": made_by,
            "made_at": now,
            "expires_at": now + seconds,
        }
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
        """Let the holder of a token log in by an identity too.

        Raises:
            InvalidInput: there is no such token, it is worth nothing, or the identity is another's.
        """
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
        """From now on it is worth nothing, also in sessions that it opened.

        Raises:
            InvalidInput: there is none of that name.
        """
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
        """Whose token it is; None: nobody's, or it is worth nothing any more.

        What was read a moment ago is not read again: a token that another process revoked works a second longer here.
        """
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
        """Whose token opened a session, if it is still worth something and the session was not logged out.

        Args:
            number: of the token.
            session: id of the session.
        """
        over = sa.exists().where(schema.ended.c.id == session)
        found = self._found((schema.token.c.id == number) & ~over)
        return None if found is None else found[0]

    def known_as(self, identities: Sequence[str]) -> Principal | None:
        """Who has one of these identities; None: no admin has entered one, or what it had is worth nothing any more.

        Args:
            identities: of one person, as `read_identity` gives them; the first that is known counts.
        """
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
    return Token(
        int(row.id),
        row.name,
        Role[row.role],
        row.study,
        row.made_by,
        row.made_at,
        row.expires_at,
        row.revoked_at,
        identities,
    )


def _taken(name: str) -> InvalidInput:
    return InvalidInput(
        f"there is, or was, a token of the name {quoted(name)}. Names stand in the log of studies, so each is used "
        "once; take another, e.g. with a number."
    )
