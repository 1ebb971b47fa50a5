"""The tables of a server, beside those of the studies, in the same database. Rows of `serve_audit` are only added."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, Table, Text, UniqueConstraint
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from surepick.errors import StorageError
from surepick.studies.logs.sql.engine import in_words, shown
from surepick.studies.logs.sql.one_file import stored

VERSION = 1
metadata = MetaData()

about = Table(
    "serve_schema", metadata, Column("version", Integer, nullable=False), Column("secret", Text, nullable=False)
)
token = Table(
    "serve_token",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("study", Text),  # the only one that it is for; NULL: all
    Column("hash", Text, nullable=False, unique=True),  # SHA-256 of the 32 random bytes
    Column("made_by", Text, nullable=False),
    Column("made_at", Float(53), nullable=False),
    Column("expires_at", Float(53), nullable=False),
    Column("revoked_at", Float(53)),
)
identity = Table(
    "serve_identity",
    metadata,
    Column("identity", Text, primary_key=True),  # what somebody is called where they log in
    Column("token", Integer, nullable=False),  # number of the token whose name, role and end they have
    Column("made_by", Text, nullable=False),
    Column("made_at", Float(53), nullable=False),
)
ended = Table(
    "serve_ended",
    metadata,
    Column("id", Text, primary_key=True),  # of a session that was logged out, or of a login that was used
    Column("at", Float(53), nullable=False),
)
audit = Table(
    "serve_audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at", Float(53), nullable=False),
    Column("who", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("study", Text),
    Column("words", Text, nullable=False),
)
webhook = Table(
    "serve_webhook",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("events", Text, nullable=False),  # JSON: their kinds
    Column("secret", Text, nullable=False),
    Column("set_by", Text, nullable=False),
    Column("allowed_by", Text),  # NULL: by nobody yet
    Column("private", Boolean, nullable=False),
    Column("made_at", Float(53), nullable=False),
    UniqueConstraint("study", "url", name="one_webhook_an_address"),
)
delivery = Table(
    "serve_delivery",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("webhook", Integer, nullable=False),
    Column("event", Text, nullable=False),
    Column("occasion", Text, nullable=False),  # what happened; it is noted once
    Column("body", Text, nullable=False),  # JSON
    Column("made_at", Float(53), nullable=False),
    Column("due_at", Float(53), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("outcome", Text),
    Column("done_at", Float(53)),  # delivered, or given up
    UniqueConstraint("webhook", "occasion", name="noted_once"),
    Index("waiting_deliveries", "done_at", "webhook", "due_at"),
)
reached = Table(
    "serve_reached",
    metadata,
    Column("webhook", Integer, primary_key=True),
    Column("opened", Integer, nullable=False),  # the last round of which it is noted that it was opened
    Column("judged", Integer, nullable=False),  # and that it was judged
)
TABLES = (about, token, identity, ended, audit, webhook, delivery, reached)


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that writes; an `IntegrityError` is the caller's to explain."""
    with engine.connect() as plain:
        connection = plain.execution_options(writes=True)
        try:
            with connection.begin():
                yield connection
            stored(connection)
        except IntegrityError:
            raise
        except DBAPIError as error:
            with in_words(engine.url):
                raise error


def make_tables(engine: Engine, secret: str) -> str:
    """Make the tables if they are not there.

    Args:
        engine: of the database.
        secret: what sessions are signed with, if none is stored yet.

    Returns:
        The secret that is stored.

    Raises:
        StorageError: they are of a version that is not known.
    """
    with writing(engine) as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(8421)")
        metadata.create_all(connection, tables=TABLES)
        row = connection.execute(about.select()).first()
        if row is None:
            connection.execute(about.insert(), [{"version": VERSION, "secret": secret}])
            return secret
        if row.version != VERSION:
            raise StorageError(
                f"{shown(engine.url)} has tables of a server of version {row.version}; this one knows {VERSION}. "
                "Nothing was changed. Start the server with the version of surepick that wrote them, or with another "
                "database."
            )
    return str(row.secret)
