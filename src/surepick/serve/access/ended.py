"""What is over before its time: sessions that were logged out, logins that were used. Every process sees it at once."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import IntegrityError

from surepick.serve.access import schema
from surepick.serve.access.schema import writing
from surepick.studies.logs.leases import system_clock


class Ended:
    """What is over, of a database.

    Args:
        engine: of a database with the tables of a server.
        seconds: after which all of it would be over anyway, and is forgotten.
    """

    def __init__(self, engine: Engine, seconds: float) -> None:
        self._engine = engine
        self._seconds = seconds

    def add(self, name: str) -> bool:
        """Whether this ended it; False: it was over already."""
        columns, now = schema.ended.c, system_clock()
        try:
            with writing(self._engine) as connection:
                connection.execute(sa.delete(schema.ended).where(columns.at < now - self._seconds))
                connection.execute(sa.insert(schema.ended), [{"id": name, "at": now}])
        except IntegrityError:
            return False
        return True
