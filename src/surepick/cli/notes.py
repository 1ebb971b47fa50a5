"""Notes of the library on standard error, for every command."""

from __future__ import annotations

import logging

from surepick.cli.output import note
from surepick.core.notes import LOG

AGAIN = 2.0  # a longer wait is worth a second note if it is so many times as long


class Notes(logging.Handler):
    """Prints what the library announces; of the many designs of a study the first, and those that take much longer."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._said = 0.0

    def emit(self, record: logging.LogRecord) -> None:
        seconds = float(getattr(record, "seconds", 0.0))
        if seconds < AGAIN * self._said:
            return
        self._said = max(self._said, seconds)
        note(record.getMessage())


def listen() -> None:
    """From now on notes are printed; those of an earlier command in this process are forgotten."""
    for handler in [handler for handler in LOG.handlers if isinstance(handler, Notes)]:
        LOG.removeHandler(handler)
    LOG.addHandler(Notes())
    LOG.setLevel(logging.INFO)
