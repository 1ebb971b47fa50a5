"""The studies of a database, for many threads: each study object is used by one thread at a time, and used again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from surepick.errors import InvalidInput
from surepick.serve.web.problems import Refused
from surepick.studies.database import Database
from surepick.studies.study import Study

MOST_IDLE = 64  # study objects that wait to be used again
MOST_IDLE_CANDIDATES = 500_000  # in all of them


class Studies:
    """Studies by name.

    Args:
        database: where they are.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._idle: OrderedDict[int, tuple[str, Study]] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def open(self, name: str) -> Iterator[Study]:
        """A study that nobody else uses meanwhile.

        Raises:
            Refused: there is none of that name.
            StorageError: of the database.
        """
        study = self._taken(name)
        if study is None:
            try:
                study = self.database.resume(name)
            except InvalidInput as error:
                raise Refused(HTTPStatus.NOT_FOUND, f"There is no study {name!r}.") from error
        yield study
        self._keep(name, study)  # one in which something failed is not used again

    def has(self, name: str) -> bool:
        """Whether there is one of that name."""
        try:
            with self.open(name):
                return True
        except Refused:
            return False

    def _taken(self, name: str) -> Study | None:
        with self._lock:
            number = next((number for number, (own, _) in reversed(self._idle.items()) if own == name), None)
            return None if number is None else self._idle.pop(number)[1]

    def _keep(self, name: str, study: Study) -> None:
        with self._lock:
            self._idle[id(study)] = (name, study)
            while len(self._idle) > MOST_IDLE or (
                len(self._idle) > 1 and sum(len(one.ids) for _, one in self._idle.values()) > MOST_IDLE_CANDIDATES
            ):
                self._idle.popitem(last=False)
