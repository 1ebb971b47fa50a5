"""Tokens: 32 random bytes, shown once; the database keeps their hash."""

from __future__ import annotations

import hashlib
import re
import secrets

import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row
from sqlalchemy.exc import IntegrityError

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.serve.access import schema
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
    """

    id: int
    name: str
    role: Role
    study: str | None
    made_by: str
    made_at: float
    expires_at: float
    revoked_at: float | None


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
        made_by: str = "command line",
    ) -> tuple[str, Token]:
        """(a new token, what is known of it). Nobody can be told the token again.

        Args:
            name: whose it is; no other token may have it, also no revoked one: it stands in the log.
            role: what they may do.
            study: the only study that it is for; None: all.
            seconds: how long it is worth something, at most a year.
            made_by: who makes it.

        Raises:
            InvalidInput: a value has no meaning, or the name is taken.
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
                number = connection.execute(sa.insert(schema.token).returning(schema.token.c.id), [row]).scalar_one()
        except IntegrityError as error:
            raise InvalidInput(
                f"there is, or was, a token of the name {quoted(name)}. Names stand in the log of studies, so each is "
                "used once; take another, e.g. with a number."
            ) from error
        return text, Token(int(number), name, role, study, made_by, now, now + seconds, None)

    def list(self) -> list[Token]:
        """All that were ever made, in their order."""
        with in_words(self._engine.url), self._engine.connect() as connection:
            return [_token(row) for row in connection.execute(sa.select(schema.token).order_by(schema.token.c.id))]

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
        return _token(row)

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

    def holder(self, number: int) -> Principal | None:
        """Whose token has that number, if it is still worth something."""
        found = self._found(schema.token.c.id == number)
        return None if found is None else found[0]

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


def _token(row: Row[tuple[object, ...]]) -> Token:
    return Token(
        int(row.id), row.name, Role[row.role], row.study, row.made_by, row.made_at, row.expires_at, row.revoked_at
    )
