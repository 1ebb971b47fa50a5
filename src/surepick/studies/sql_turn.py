"""The turn of a writer: a transaction in which nobody else writes to the study."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from surepick.studies import sql_schema as tables
from surepick.studies.line import in_line
from surepick.studies.patience import UNANSWERED, patience_of
from surepick.studies.sql_engine import commit_in_words, in_words, sqlite_file


@contextmanager
def study_held(engine: Engine, study: int, *, first: bool) -> Iterator[Connection]:
    """A connection inside a transaction that holds the study; what was written is stored when the context ends.

    Args:
        engine: of the database.
        study: id of the study's row.
        first: whether this is the first turn of the engine, which sets up SQLite's journal.

    Raises:
        StorageError: the study cannot be held, or the database fails.
    """
    url = engine.url
    with in_words(url), in_line(sqlite_file(url), patience_of(url).lock), _begun(engine, study, first=first) as writing:
        try:
            yield writing
        except BaseException:
            writing.rollback()
            raise
        with commit_in_words(url):
            writing.commit()


def _begun(engine: Engine, study: int, *, first: bool) -> Connection:
    """A transaction that holds the study.

    A server that was started anew has closed the connection that we kept. Before anything was written we try once more;
    later we do not, since nobody knows what was stored.
    """
    try:
        return _begin(engine, study, first=first)
    except DBAPIError as error:
        if not error.connection_invalidated or UNANSWERED in str(error.orig):
            raise
        return _begin(engine, study, first=first)


def _begin(engine: Engine, study: int, *, first: bool) -> Connection:
    connection = engine.connect()
    try:
        if first and engine.dialect.name == "sqlite":
            _write_ahead(connection)
        writing = connection.execution_options(writes=True)
        writing.begin()
        if engine.dialect.name == "postgresql":
            mine = sa.select(tables.study.c.id).where(tables.study.c.id == study)
            writing.execute(mine.with_for_update(key_share=True))
    except BaseException:
        connection.close()
        raise
    return writing


def _write_ahead(connection: Connection) -> None:
    """SQLite's write-ahead log, which a copy of the database may have lost."""
    raw = connection.connection.dbapi_connection
    if raw is not None:
        with suppress(sqlite3.OperationalError):  # a database that cannot be written says so when it is
            raw.execute("PRAGMA journal_mode = WAL")
