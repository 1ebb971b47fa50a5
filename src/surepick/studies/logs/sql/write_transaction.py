"""The turn of a writer: a transaction in which nobody else writes to the study."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.engine import commit_in_words, in_words, sqlite_file
from surepick.studies.logs.sql.one_file import stored
from surepick.studies.logs.sql.timeouts import UNANSWERED, patience_of
from surepick.studies.logs.sql.write_queue import in_line


class Turns:
    """The turns of one writer.

    Args:
        engine: of the database.
        study: id of the study's row.
    """

    def __init__(self, engine: Engine, study: int) -> None:
        self._engine = engine
        self._study = study
        self._file = sqlite_file(engine.url)
        self._patience = patience_of(engine.url)
        self._ahead = False

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        """A connection inside a transaction that holds the study; what was written is stored when the context ends.

        Raises:
            StorageError: the study cannot be held, or the database fails.
        """
        url = self._engine.url
        with in_words(url), in_line(self._file, self._patience.lock), self._begun() as writing:
            try:
                yield writing
            except BaseException:
                writing.rollback()
                raise
            with commit_in_words(url):
                writing.commit()
            stored(writing)

    def _begun(self) -> Connection:
        """A transaction that holds the study.

        A server that was started anew has closed the connection that we kept. Before anything was written we try once
        more; later we do not, since nobody knows what was stored.
        """
        try:
            return self._begin()
        except DBAPIError as error:
            if not error.connection_invalidated or UNANSWERED in str(error.orig):
                raise
            return self._begin()

    def _begin(self) -> Connection:
        connection = self._engine.connect()
        try:
            if self._engine.dialect.name == "sqlite" and not self._ahead:
                _write_ahead(connection)
                self._ahead = True
            writing = connection.execution_options(writes=True)
            writing.begin()
            if self._engine.dialect.name == "postgresql":
                mine = sa.select(tables.study.c.id).where(tables.study.c.id == self._study)
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
