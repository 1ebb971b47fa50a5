"""The tables of a server, beside those of the studies, in the same database. Rows of `serve_audit` are only added."""

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import Boolean, Column, Float, Index, Integer, MetaData, Table, Text, UniqueConstraint
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError, IntegrityError

from surepick.core.records import record
from surepick.errors import StorageError, SurepickError
from surepick.studies.logs.base import system_clock
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
    """Make the tables if they are not there."""
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


# --- The trail of what was done over HTTP: who, from where, when. Entries are only added, and name no reward.

SECONDS = 0.2  # for which entries are gathered
MOST_WAITING = 10_000  # entries, while the database is away
log = logging.getLogger("surepick_server")


@record
class Entry:
    """Something that was done."""

    at: float  # seconds since 1970 (UTC)
    who: str  # name of the token
    address: str  # from where
    action: str  # what, e.g. "tell"
    study: str | None = None  # in which study; None: in none
    words: str = ""  # more of it, without rewards


class AuditLog:
    """The trail of a database with the tables of a server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: list[dict[str, object]] = []
        self._lock, self._storing = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, who: str, address: str, action: str, study: str | None = None, words: str = "") -> None:
        """Store an entry."""
        self._keep(who, address, action, study, words)
        self.store()

    def soon(self, who: str, address: str, action: str, study: str | None = None, words: str = "") -> None:
        """Store within a fifth of a second, with others, what the study's own log says too: a kill may lose it."""
        self._keep(who, address, action, study, words)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._store_soon, name="trail", daemon=True)
                self._thread.start()

    def store(self) -> None:
        """Store all that waits; what cannot be stored waits on."""
        with self._storing:
            with self._lock:
                rows, self._kept = self._kept, []
            if not rows:
                return
            try:
                with writing(self._engine) as connection:
                    connection.execute(sa.insert(audit), rows)
            except BaseException:
                with self._lock:
                    self._kept = [*rows, *self._kept][-MOST_WAITING:]
                raise

    def close(self) -> None:
        """Store all that waits, if that can be, and wait until nothing is being stored."""
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()
        self._store_if_possible()

    def _keep(self, who: str, address: str, action: str, study: str | None, words: str) -> None:
        row = {"at": system_clock(), "who": who, "address": address, "action": action, "study": study, "words": words}
        with self._lock:
            self._kept.append(row)

    def _store_soon(self) -> None:
        waiting = True
        while waiting:
            time.sleep(SECONDS)
            waiting = self._store_if_possible()  # if not, the next entry tries again
            with self._lock:
                waiting = waiting and bool(self._kept)
                if not waiting:
                    self._thread = None

    def _store_if_possible(self) -> bool:
        """Whether what waited is stored."""
        try:
            self.store()
        except SurepickError as error:
            log.error("the trail was not stored", extra={"said": {"kind": type(error).__name__}})
            return False
        return True

    def latest(self, study: str | None = None, most: int = 200) -> list[Entry]:
        """The latest entries, the newest first; of one study, or of all."""
        self.store()
        columns = audit.c
        wanted = sa.select(audit).order_by(columns.id.desc()).limit(most)
        if study is not None:
            wanted = wanted.where(columns.study == study)
        with in_words(self._engine.url), self._engine.connect() as connection:
            rows = connection.execute(wanted).all()
        return [Entry(row.at, row.who, row.address, row.action, row.study, row.words) for row in rows]
