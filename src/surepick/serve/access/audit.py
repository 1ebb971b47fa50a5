"""The trail of what was done over HTTP: who, from where, when. Entries are only added, and name no reward."""

from __future__ import annotations

import logging
import threading
import time

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from surepick.core.arrays import record
from surepick.errors import SurepickError
from surepick.serve.access import schema
from surepick.serve.access.schema import writing
from surepick.studies.logs.leases import system_clock
from surepick.studies.logs.sql.engine import in_words

SECONDS = 0.2  # for which entries are gathered
MOST_WAITING = 10_000  # entries, while the database is away
log = logging.getLogger("surepick.serve")


@record
class Entry:
    """Something that was done.

    Args:
        at: seconds since 1970 (UTC).
        who: name of the token.
        address: from where.
        action: what, e.g. "tell".
        study: in which study; None: in none.
        words: more of it, without rewards.
    """

    at: float
    who: str
    address: str
    action: str
    study: str | None = None
    words: str = ""


class Trail:
    """The trail of a database.

    Args:
        engine: of a database with the tables of a server.
    """

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
        """Store an entry within a fifth of a second, together with others.

        For what the study's own log says too, with who and when: leases and results. A kill may lose from where it was.
        """
        self._keep(who, address, action, study, words)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._store_soon, name="trail", daemon=True)
                self._thread.start()

    def store(self) -> None:
        """Store all that waits; what cannot be stored waits on.

        Raises:
            StorageError: of the database.
        """
        with self._storing:
            with self._lock:
                rows, self._kept = self._kept, []
            if not rows:
                return
            try:
                with writing(self._engine) as connection:
                    connection.execute(sa.insert(schema.audit), rows)
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
        columns = schema.audit.c
        wanted = sa.select(schema.audit).order_by(columns.id.desc()).limit(most)
        if study is not None:
            wanted = wanted.where(columns.study == study)
        with in_words(self._engine.url), self._engine.connect() as connection:
            rows = connection.execute(wanted).all()
        return [Entry(row.at, row.who, row.address, row.action, row.study, row.words) for row in rows]
