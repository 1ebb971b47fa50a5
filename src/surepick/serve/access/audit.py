"""The trail of what was done over HTTP: who, from where, when. Entries are only added, and name no reward."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from surepick.core.arrays import record
from surepick.serve.access import schema
from surepick.serve.access.schema import writing
from surepick.studies.logs.leases import system_clock
from surepick.studies.logs.sql.engine import in_words


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

    def add(self, who: str, address: str, action: str, study: str | None = None, words: str = "") -> None:
        """Store an entry."""
        row = {"at": system_clock(), "who": who, "address": address, "action": action, "study": study, "words": words}
        with writing(self._engine) as connection:
            connection.execute(sa.insert(schema.audit), [row])

    def latest(self, study: str | None = None, most: int = 200) -> list[Entry]:
        """The latest entries, the newest first; of one study, or of all."""
        columns = schema.audit.c
        wanted = sa.select(schema.audit).order_by(columns.id.desc()).limit(most)
        if study is not None:
            wanted = wanted.where(columns.study == study)
        with in_words(self._engine.url), self._engine.connect() as connection:
            rows = connection.execute(wanted).all()
        return [Entry(row.at, row.who, row.address, row.action, row.study, row.words) for row in rows]
