"""The one file that an engine of SQLite works on: noticed if it is deleted, or if another is put in its place.

SQLite goes on writing to a file that has no name any more, and says that all is well. So each connection remembers
which file it opened, and nothing is acknowledged while the name leads elsewhere. The files beside it count too: what
was stored last stands in FILE-wal, and FILE-shm says where in it.
"""

import threading
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from surepick.errors import StorageError

Identity = tuple[int, int]  # device and number of a file there
OPTION, OPENED = "surepick_file", "surepick_opened"  # of an engine, and in what is kept with a connection
BESIDE = ("-wal", "-shm")
NOTHING = "Nothing of this call was stored."


@dataclass(eq=False)
class Opened:
    """A file that was opened."""

    main: Identity
    path: Path  # where SQLite keeps it, and what is beside it
    beside: tuple[Identity | None, ...] = ()  # which ones are beside it, while somebody has them open
    holders: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)  # connections that keep these from going


class OneFile:
    """What an engine has opened."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self.opened: Opened | None = None
        self._lock = threading.RLock()  # the end of a study, which closes connections, may come at any moment

    def watch(self, engine: Engine) -> None:
        """From now on no connection of the engine works on another file than the first one did."""
        engine.update_execution_options(**{OPTION: self})

        @sa.event.listens_for(engine, "do_connect")
        def before(*_: Any) -> None:
            if self.opened is not None:  # SQLite makes a file that is absent
                self._check(self.opened)

        @sa.event.listens_for(engine, "connect")
        def after(connection: Any, record: Any) -> None:
            try:
                record.info[OPENED] = self._joined()
            except StorageError:
                connection.close()
                raise

        @sa.event.listens_for(engine, "close")
        def gone(_: Any, record: Any) -> None:
            opened = record.info.get(OPENED)
            if opened is not None:
                with self._lock:
                    opened.holders.discard(record)

        @sa.event.listens_for(engine, "checkout")
        def again(_: Any, record: Any, __: Any) -> None:
            self._check_main(record.info[OPENED])  # alone: what is refused here is closed, see `_check`

        @sa.event.listens_for(engine, "commit")
        def committing(connection: Connection) -> None:
            self._check(connection.info[OPENED])

    def begun(self, connection: Connection) -> None:
        """A transaction has begun."""
        opened, record = connection.info[OPENED], connection.connection._connection_record
        if record not in opened.holders:
            connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1")  # opens what is beside, until its end
            with self._lock:
                now = _beside(opened)
                if not opened.holders:
                    opened.beside = now
                if any(now):
                    opened.holders.add(record)
        self._check(opened)

    def check_stored(self, connection: Connection) -> None:
        """After a commit."""
        try:
            self._check(connection.info[OPENED])
        except StorageError as error:
            raise StorageError(
                f"{str(error).replace(NOTHING, 'It happened while this call was being stored.')} Nobody knows whether "
                "it is in the file; repeat it if every result has a key: it counts once."
            ) from None

    @property
    def moved(self) -> bool:
        """Whether the name leads to another file than the one that was opened, or to none."""
        return self.opened is not None and self.opened.main != _identity(self._path)

    def renew(self, engine: Engine) -> None:
        """Let go of the file that was opened, so that the next connection opens the one that is there now."""
        opened, now = self.opened, _identity(self._path)
        if opened is None or opened.main == now:
            return
        if now is None:
            self._check(opened)
        if any(old is not None and old == new for old, new in zip(opened.beside, _beside(opened), strict=False)):
            raise StorageError(
                f"{self._path} was replaced, and {self._path}-wal beside it is of the file before: both together are "
                f"no database. {NOTHING} Remove {self._path.name}-wal and -shm, or put them away with "
                "the file before."
            )
        engine.dispose()
        self.opened = None

    def _joined(self) -> Opened:
        """What a new connection has opened."""
        with self._lock:
            now = _identity(self._path)
            if self.opened is None:
                if now is None:
                    raise StorageError(self._words(None))
                self.opened = Opened(now, self._path.resolve())
            opened = self.opened
        self._check(opened)
        return opened

    def _check_main(self, opened: Opened) -> None:
        now = _identity(self._path)
        if now != opened.main:
            raise StorageError(self._words(now))

    def _check(self, opened: Opened) -> None:
        """Refuse another file, and another one beside it. In the second case no connection is closed: the last one
        would write what it holds into the file, which may be a copy that somebody has just put there. It does so when
        the program ends, and the message says that."""
        self._check_main(opened)
        with self._lock:
            changed = bool(opened.holders) and opened.beside != _beside(opened)
        if changed:
            raise StorageError(
                f"{self._path}-wal or -shm, where the latest results stand, was removed or replaced while the file is "
                f"open. {NOTHING} End all programs that have it open; the last one writes what it knows into the "
                "file. Put a copy in its place only after that."
            )

    def _words(self, now: Identity | None) -> str:
        if now is None:
            return f"{self._path} was deleted or moved while it is open. {NOTHING} Put it back, or a copy of it."
        return (
            f"{self._path} was replaced by another file while it is open. {NOTHING} Open the study again; a server "
            "does so at the next call."
        )


def file_of(engine: Engine | Connection) -> OneFile | None:
    """What an engine has opened; None: it is no file of SQLite with a path."""
    found = engine.get_execution_options().get(OPTION)
    return found if isinstance(found, OneFile) else None


def opened_by(connection: Connection) -> Opened | None:
    """The file that a connection has opened; None: as for `file_of`."""
    found = connection.info.get(OPENED)
    return found if isinstance(found, Opened) else None


def stored(connection: Connection) -> None:
    """Between a commit and its acknowledgement."""
    file = file_of(connection)
    if file is not None:
        file.check_stored(connection)


def _beside(opened: Opened) -> tuple[Identity | None, ...]:
    return tuple(_identity(opened.path.with_name(f"{opened.path.name}{end}")) for end in BESIDE)


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
