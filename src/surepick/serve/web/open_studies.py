"""The studies of a database, for many threads: each study object is used by one thread at a time, and used again."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from surepick.errors import InvalidInput
from surepick.serve.web.problems import Refused
from surepick.studies.database import Database
from surepick.studies.study import Study

MOST_AT_ONCE = 4  # objects of one study that work: another one takes longer to make than these to be free again
PATIENCE = 0.1  # seconds for which a request waits for one of them, before it makes its own
MOST_OBJECTS = 2 * MOST_AT_ONCE  # of one study, for those who wait longer than that; what is more waits on
LONGEST = 60.0  # seconds for which a request waits for one of these
MOST_IDLE = 64  # study objects that wait to be used again
MOST_IDLE_BYTES = 256 * 2**20  # of all of them, roughly; the one that was used last stays, however large


class Studies:
    """Studies by name.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._idle: OrderedDict[int, tuple[str, Study, int]] = OrderedDict()
        self._used: Counter[str] = Counter()
        self._lock = threading.Condition()
        self._epoch = 0  # another one since the database is another file

    @contextmanager
    def open(self, name: str) -> Iterator[Study]:
        """A study that nobody else uses meanwhile.

        Raises:
            Refused: there is none of that name.
            StorageError: of the database.
        """
        epoch, study, whole = self._epoch, self._taken(name), False
        try:
            if study is None:
                try:
                    study = self.database.resume(name)
                except InvalidInput as error:
                    raise Refused(HTTPStatus.NOT_FOUND, f"There is no study {name!r}.") from error
            yield study
            whole = True
        finally:
            self._free(name, study if whole else None, epoch)  # one in which something failed is not used again

    def has(self, name: str) -> bool:
        """Whether there is one of that name."""
        try:
            with self.open(name):
                return True
        except Refused:
            return False

    def forget(self) -> None:
        """Use no object again that is there now: it knows another file of the database."""
        with self._lock:
            self._epoch += 1
            self._idle.clear()

    def _taken(self, name: str) -> Study | None:
        """An object that waits, for which we wait a little where others work; None: one has to be made."""
        with self._lock:
            if not self._lock.wait_for(lambda: self._used[name] < MOST_AT_ONCE, PATIENCE) and not self._lock.wait_for(
                lambda: self._used[name] < MOST_OBJECTS, LONGEST
            ):
                raise Refused(
                    HTTPStatus.SERVICE_UNAVAILABLE,
                    f"{MOST_OBJECTS} requests work on study {name!r} and take long; nothing was done. Ask again.",
                    {"retry-after": "10"},
                )
            self._used[name] += 1
            number = next((number for number, (own, *_) in reversed(self._idle.items()) if own == name), None)
            return None if number is None else self._idle.pop(number)[1]

    def _free(self, name: str, study: Study | None, epoch: int) -> None:
        size = 0 if study is None else study.replay.kept_bytes
        with self._lock:
            self._used[name] -= 1
            if self._used[name] == 0:
                del self._used[name]
            self._lock.notify_all()
            same = sum(own == name for own, *_ in self._idle.values())
            if study is None or epoch != self._epoch or same >= MOST_AT_ONCE:
                return
            self._idle[id(study)] = (name, study, size)
            while len(self._idle) > MOST_IDLE or (
                len(self._idle) > 1 and sum(size for *_, size in self._idle.values()) > MOST_IDLE_BYTES
            ):
                self._idle.popitem(last=False)
