"""The turn of a writer: a transaction in which nobody else writes to the study."""

import os
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DBAPIError

from surepick.studies.logs.sql import schema as tables
from surepick.studies.logs.sql.engine import commit_in_words, in_words, sqlite_file
from surepick.studies.logs.sql.one_file import stored
from surepick.studies.logs.sql.patience import UNANSWERED, patience_of

# --- Writers of one SQLite database wait in line: SQLite itself lets those who try again soonest write again and again.
#
# Everybody who wants to write locks a byte of the file DATABASE-line: the one at the present microsecond. The first is
# the one before whom no byte is locked. The kernel gives the bytes of a process back when it ends, so that one that is
# killed stands in nobody's way. The line is a courtesy: SQLite's own lock keeps writers apart, also from those who do
# not stand in line. Where the kernel has no such locks (they are Linux's), SQLite's own waiting is all there is.

try:
    import fcntl

    LOCK, LOOK, MINE, NOBODY = fcntl.F_OFD_SETLK, fcntl.F_OFD_GETLK, fcntl.F_WRLCK, fcntl.F_UNLCK
except (ImportError, AttributeError):  # Windows; macOS
    fcntl = None  # type: ignore[assignment]

FLOCK = "hhqqi4x"  # struct flock: type, whence, start, length, process
NEXT_SECONDS, LATER_SECONDS = 0.0003, 0.0015  # between two looks, of who comes next and of those behind
STALLED_SECONDS = 1.0  # somebody before us does nothing: stopped by hand, say


@contextmanager
def in_line(database: Path | None, seconds: float) -> Iterator[None]:
    """Wait until it is our turn to write; those behind wait until the context ends."""
    place = None if database is None or fcntl is None else _place(database)
    if place is None:
        yield
        return
    try:
        with suppress(OSError):  # a file system without locks
            _wait(place, _stand(place), time.monotonic() + seconds)
        yield
    finally:
        os.close(place)  # and so gives the byte back


def _place(database: Path) -> int | None:
    """A descriptor of the line's file; None where we may not write it."""
    path = f"{database}-line"
    with suppress(OSError):
        try:
            return os.open(path, os.O_RDWR)
        except FileNotFoundError:
            made = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            with suppress(OSError):
                os.fchmod(made, database.stat().st_mode & 0o666)  # for all who may write the database
            return made
    return None


def _flock(place: int, command: int, kind: int, start: int, length: int) -> tuple[int, int]:
    """(type, start) of what the kernel answers."""
    asked = struct.pack(FLOCK, kind, os.SEEK_SET, start, length, 0)
    answer = struct.unpack(FLOCK, fcntl.fcntl(place, command, asked))
    return answer[0], answer[2]


def _stand(place: int) -> int:
    """Take a byte: the number of microseconds since the machine was started, which all processes count alike."""
    byte = time.monotonic_ns() // 1_000
    while True:
        try:
            _flock(place, LOCK, MINE, byte, 1)
        except BlockingIOError:  # somebody came at the same time
            byte += 1
        else:
            return byte


def _before(place: int, start: int, stop: int) -> int | None:
    """A byte from start to before stop that somebody holds."""
    if start >= stop:
        return None
    kind, found = _flock(place, LOOK, MINE, start, stop - start)
    return None if kind == NOBODY else found


def _wait(place: int, byte: int, until: float) -> None:
    seen, moved = -1, time.monotonic()
    while (held := _before(place, 0, byte)) is not None:
        now = time.monotonic()
        if held != seen:
            seen, moved = held, now
        if now > until or now > moved + STALLED_SECONDS:
            return
        more = _before(place, 0, held) is not None or _before(place, held + 1, byte) is not None
        time.sleep(LATER_SECONDS if more else NEXT_SECONDS)


class Turns:
    """The turns of one writer."""

    def __init__(self, engine: Engine, study: int) -> None:
        self._engine = engine
        self._study = study
        self._file = sqlite_file(engine.url)
        self._patience = patience_of(engine.url)
        self._ahead = False

    @contextmanager
    def turn(self) -> Iterator[Connection]:
        """A connection inside a transaction that holds the study; what was written is stored when the context ends."""
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
        """A transaction that holds the study. A server that was started anew has closed the connection that we kept.
        Before anything was written we try once more; later we do not, since nobody knows what was stored."""
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
