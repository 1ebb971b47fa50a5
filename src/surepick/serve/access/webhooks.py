"""Webhooks: addresses that are told what happens in a study, and what is still to be delivered to them.

set by an owner, allowed by an admin -> an event is noted once -> delivered, or tried again with growing pauses
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row
from sqlalchemy.exc import IntegrityError

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.serve.access import schema
from surepick.serve.access.addresses import check_address
from surepick.serve.access.schema import writing
from surepick.studies.logs.leases import system_clock
from surepick.studies.logs.sql.engine import in_words
from surepick.text import quoted

EVENTS = ("round-opened", "round-complete", "study-stopped", "lease-expired")
PAUSES = (10.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0)  # seconds before each further try
CLAIMED = 60.0  # seconds for which a try belongs to one process


@record
class Webhook:
    """An address that is told.

    Args:
        id: its number.
        study: what happens in it.
        url: the address.
        events: which kinds.
        secret: what its messages are signed with.
        set_by: the owner.
        allowed: an admin allowed it; before that nothing is sent.
        private: the admin allowed an address of this machine or of its network.
        made_at: seconds since 1970 (UTC); what happened before is not told.
    """

    id: int
    study: str
    url: str
    events: tuple[str, ...]
    secret: str
    set_by: str
    allowed: bool
    private: bool
    made_at: float


@record
class Delivery:
    """A message that is due.

    Args:
        id: its number.
        webhook: to whom.
        event: its kind.
        body: JSON.
        tries: how often it was tried.
    """

    id: int
    webhook: Webhook
    event: str
    body: str
    tries: int


def signature(secret: str, at: int, body: str) -> str:
    """The header that says that a message is ours, and of when: "t=SECONDS,v1=HMAC-SHA256 of SECONDS.BODY"."""
    made = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


class Webhooks:
    """The webhooks of a database.

    Args:
        engine: of a database with the tables of a server.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, study: str, url: str, events: tuple[str, ...], set_by: str) -> Webhook:
        """A new one, which sends nothing before an admin has allowed it.

        Raises:
            InvalidInput: the address or an event has no meaning, or the study has that address.
        """
        check_address(url)
        unknown = [event for event in events if event not in EVENTS]
        if unknown or not events:
            raise InvalidInput(f"events are {', '.join(EVENTS)}, not {quoted(unknown[0]) if unknown else 'none'}.")
        row = {
            "study": study,
            "url": url,
            "events": json.dumps(sorted(set(events))),
            "secret": secrets.token_hex(32),
            "set_by": set_by,
            "allowed_by": None,
            "private": False,
            "made_at": system_clock(),
        }
        try:
            with writing(self._engine) as connection:
                inserted = sa.insert(schema.webhook).returning(schema.webhook)
                return _webhook(connection.execute(inserted, [row]).one())
        except IntegrityError as error:
            raise InvalidInput(f"study {quoted(study)} has that address already; remove it first.") from error

    def allow(self, study: str, number: int, by: str, *, private: bool) -> Webhook:
        """From now on it sends.

        Raises:
            InvalidInput: the study has none of that number.
        """
        columns = schema.webhook.c
        changed = sa.update(schema.webhook).where(columns.id == number, columns.study == study)
        with writing(self._engine) as connection:
            changed = changed.values(allowed_by=by, private=private).returning(schema.webhook)
            row = connection.execute(changed).first()
        return _webhook(_known(row, number))

    def remove(self, study: str, number: int) -> Webhook:
        """Send nothing more, and forget what is still to be delivered.

        Raises:
            InvalidInput: the study has none of that number.
        """
        columns = schema.webhook.c
        gone = sa.delete(schema.webhook).where(columns.id == number, columns.study == study)
        with writing(self._engine) as connection:
            row = connection.execute(gone.returning(schema.webhook)).first()
            if row is not None:
                connection.execute(sa.delete(schema.delivery).where(schema.delivery.c.webhook == number))
        return _webhook(_known(row, number))

    def list(self, study: str | None = None) -> list[Webhook]:
        """Those of a study, or all."""
        wanted = sa.select(schema.webhook).order_by(schema.webhook.c.id)
        wanted = wanted if study is None else wanted.where(schema.webhook.c.study == study)
        with in_words(self._engine.url), self._engine.connect() as connection:
            return [_webhook(row) for row in connection.execute(wanted)]

    def note(self, webhook: Webhook, event: str, occasion: str, body: Mapping[str, Any]) -> bool:
        """Note a message for delivery.

        Args:
            webhook: to whom.
            event: its kind.
            occasion: what happened, e.g. "round-opened 3": it is noted once, by whichever process sees it first.
            body: what it says.

        Returns:
            Whether it is new.
        """
        now = system_clock()
        row = {
            "webhook": webhook.id,
            "event": event,
            "occasion": occasion,
            "body": json.dumps({"event": event, **body}, ensure_ascii=False, sort_keys=True),
            "made_at": now,
            "due_at": now,
            "tries": 0,
        }
        try:
            with writing(self._engine) as connection:
                connection.execute(sa.insert(schema.delivery), [row])
        except IntegrityError:
            return False
        return True

    def due(self) -> Delivery | None:
        """A message whose time has come. For a minute no other process is given it."""
        columns, now = schema.delivery.c, system_clock()
        waiting = sa.select(columns.id, columns.due_at, columns.webhook)
        waiting = waiting.where(columns.done_at.is_(None), columns.due_at <= now).order_by(columns.due_at).limit(20)
        with in_words(self._engine.url), self._engine.connect() as connection:
            rows = connection.execute(waiting).all()
        allowed = {one.id: one for one in self.list() if one.allowed} if rows else {}
        for row in rows:
            if row.webhook not in allowed:
                continue
            with writing(self._engine) as connection:
                mine = sa.update(schema.delivery).where(columns.id == row.id, columns.due_at == row.due_at)
                mine = mine.where(columns.done_at.is_(None)).values(due_at=now + CLAIMED).returning(schema.delivery)
                taken = connection.execute(mine).first()
            if taken is not None:
                return Delivery(taken.id, allowed[row.webhook], taken.event, taken.body, taken.tries)
        return None

    def tried(self, delivery: Delivery, outcome: str, *, delivered: bool) -> None:
        """Say what became of a try; after the last one the message is given up."""
        now, tries = system_clock(), delivery.tries + 1
        over = delivered or tries > len(PAUSES)
        values: dict[str, Any] = {"tries": tries, "outcome": outcome[:200], "done_at": now if over else None}
        values["due_at"] = now if over else now + PAUSES[tries - 1]
        with writing(self._engine) as connection:
            connection.execute(sa.update(schema.delivery).where(schema.delivery.c.id == delivery.id).values(**values))


def _known(row: Row[Any] | None, number: int) -> Row[Any]:
    if row is None:
        raise InvalidInput(f"the study has no webhook of the number {number}.")
    return row


def _webhook(row: Row[Any]) -> Webhook:
    return Webhook(
        id=int(row.id),
        study=str(row.study),
        url=str(row.url),
        events=tuple(json.loads(row.events)),
        secret=str(row.secret),
        set_by=str(row.set_by),
        allowed=row.allowed_by is not None,
        private=bool(row.private),
        made_at=float(row.made_at),
    )
