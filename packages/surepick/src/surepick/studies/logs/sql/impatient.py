"""Connections to PostgreSQL that do not wait forever. The only importer of psycopg."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar

import psycopg

from surepick.studies.logs.sql.patience import UNANSWERED, Patience

T = TypeVar("T")
GRACE_SECONDS = 5.0  # beyond the server's own time-outs, whose messages say more


def open_connection(patience: Patience, *words: Any, **options: Any) -> ImpatientConnection:
    """A connection whose statements end after a while, by the server's clock and by ours."""
    options.setdefault("connect_timeout", max(2, round(patience.connect)))  # libpq waits 2 seconds or more
    connection = ImpatientConnection.connect(*words, **options)
    lock = min(patience.lock, patience.statement)
    statement = patience.statement + (1.0 if lock == patience.statement else 0.0)
    connection.longest = statement + GRACE_SECONDS
    connection.autocommit = True
    connection.execute(
        f"SET lock_timeout = {round(1_000 * lock)}; SET statement_timeout = {round(1_000 * statement)}".encode()
    )
    connection.autocommit = False
    return connection


class ImpatientConnection(psycopg.Connection[Any]):
    """A connection that closes itself when the server is silent for too long, as its own time-outs cannot tell."""

    longest = 60.0 + GRACE_SECONDS

    def wait(self, gen: Generator[Any, Any, T], *words: Any, **options: Any) -> T:
        """As psycopg waits: it asks `gen` on, several times a second, whether or not there is news."""
        return super().wait(self._limited(gen), *words, **options)

    def _limited(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        heard = time.monotonic()
        try:
            wanted = next(gen)
            while True:
                news = yield wanted
                now = time.monotonic()
                if news:
                    heard = now
                elif now > heard + self.longest:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"{UNANSWERED} within {self.longest:g} s")
                wanted = gen.send(news)
        except StopIteration as done:
            result: T = done.value
            return result
