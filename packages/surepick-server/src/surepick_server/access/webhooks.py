"""Webhooks: addresses that are told what happens in a study, and what is still to be delivered to them.

set by an owner, allowed by an admin -> an event is noted once -> delivered, or tried again with growing pauses
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row
from sqlalchemy.exc import IntegrityError

from surepick.core.records import record
from surepick.errors import InvalidInput, StorageError
from surepick.studies.logs.base import system_clock
from surepick.studies.logs.sql.engine import in_words
from surepick.text import quoted
from surepick_server.access import schema
from surepick_server.access.schema import writing
from surepick_server.access.tokens import check_address

EVENTS = ("round-opened", "round-complete", "study-stopped", "lease-expired")
PAUSES = (10.0, 60.0, 300.0, 1_800.0, 7_200.0, 21_600.0, 43_200.0, 86_400.0)  # seconds before each further try
CLAIMED = 60.0  # seconds for which a try belongs to one process


@record
class Webhook:
    """An address that is told."""

    id: int  # its number
    study: str  # what happens in it
    url: str  # the address
    events: tuple[str, ...]  # which kinds
    secret: str  # what its messages are signed with
    set_by: str  # the owner
    allowed: bool  # an admin allowed it; before that nothing is sent
    private: bool  # the admin allowed an address of this machine or of its network
    made_at: float  # seconds since 1970 (UTC); what happened before is not told
    opened: int = 0  # opened, judged: the last rounds of which it is noted that they were opened, and judged
    judged: int = 0


@record
class Message:
    """Something that a webhook is to be told."""

    event: str  # its kind
    occasion: str  # what happened, e.g. "round-opened 3": it is noted once, by whichever process sees it first
    body: Mapping[str, Any]  # what is said of it


@record
class Delivery:
    """A message that is due."""

    id: int  # its number
    webhook: Webhook  # to whom
    event: str  # its kind
    body: str  # JSON
    tries: int  # how often it was tried


def signature(secret: str, at: int, body: str) -> str:
    """The header that says that a message is ours, and of when: "t=SECONDS,v1=HMAC-SHA256 of SECONDS.BODY"."""
    made = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={at},v1={made}"


class Webhooks:
    """The webhooks of a database with the tables of a server."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(
        self, study: str, url: str, events: tuple[str, ...], set_by: str, *, opened: int = 0, judged: int = 0
    ) -> Webhook:
        """A new one. Nothing is noted for it before an admin has allowed it; then it is told what happened since."""
        check_address(url)
        unknown = [event for event in events if event not in EVENTS]
        if unknown or not events:
            raise InvalidInput(f"events are {', '.join(EVENTS)}, not {quoted(unknown[0]) if unknown else 'none'}.")
        kinds = json.dumps(sorted(set(events)))
        row: dict[str, object] = {"study": study, "url": url, "events": kinds, "secret": secrets.token_hex(32)}
        row |= {"set_by": set_by, "allowed_by": None, "private": False, "made_at": system_clock()}
        try:
            with writing(self._engine) as connection:
                inserted = sa.insert(schema.webhook).returning(schema.webhook)
                made = connection.execute(inserted, [row]).one()
                reached = {"webhook": made.id, "opened": opened, "judged": judged}
                connection.execute(sa.delete(schema.reached).where(schema.reached.c.webhook == made.id))
                connection.execute(sa.insert(schema.reached), [reached])
                return _webhook(made)
        except IntegrityError as error:
            raise InvalidInput(f"study {quoted(study)} has that address already; remove it first.") from error

    def allow(self, study: str, number: int, by: str, *, private: bool) -> Webhook:
        """From now on it sends."""
        columns = schema.webhook.c
        changed = sa.update(schema.webhook).where(columns.id == number, columns.study == study)
        with writing(self._engine) as connection:
            changed = changed.values(allowed_by=by, private=private).returning(schema.webhook)
            row = connection.execute(changed).first()
        return _webhook(_known(row, number))

    def remove(self, study: str, number: int) -> Webhook:
        """Send nothing more, and forget what is still to be delivered."""
        columns = schema.webhook.c
        gone = sa.delete(schema.webhook).where(columns.id == number, columns.study == study)
        with writing(self._engine) as connection:
            row = connection.execute(gone.returning(schema.webhook)).first()
            if row is not None:
                connection.execute(sa.delete(schema.delivery).where(schema.delivery.c.webhook == number))
                connection.execute(sa.delete(schema.reached).where(schema.reached.c.webhook == number))
        return _webhook(_known(row, number))

    def list(self, study: str | None = None) -> list[Webhook]:
        """Those of a study, or all."""
        columns = schema.reached.c
        wanted = sa.select(schema.webhook, columns.opened, columns.judged).order_by(schema.webhook.c.id)
        wanted = wanted.outerjoin(schema.reached, columns.webhook == schema.webhook.c.id)
        wanted = wanted if study is None else wanted.where(schema.webhook.c.study == study)
        with in_words(self._engine.url), self._engine.connect() as connection:
            return [_webhook(row) for row in connection.execute(wanted)]

    def note(
        self, webhook: Webhook, messages: Sequence[Message], *, opened: int | None = None, judged: int | None = None
    ) -> int:
        """Note messages for delivery, all of them or none."""
        try:
            return self._noted(webhook, messages, opened, judged)
        except IntegrityError as error:
            raise StorageError("another process notes the same messages now; nothing was stored.") from error

    def _noted(self, webhook: Webhook, messages: Sequence[Message], opened: int | None, judged: int | None) -> int:
        now, columns = system_clock(), schema.delivery.c
        with writing(self._engine) as connection:
            known = sa.select(columns.occasion).where(columns.webhook == webhook.id)
            known = known.where(columns.occasion.in_([one.occasion for one in messages]))
            there = set(connection.execute(known).scalars())
            rows = [
                {
                    "webhook": webhook.id,
                    "event": one.event,
                    "occasion": one.occasion,
                    "body": json.dumps({"event": one.event, **one.body}, ensure_ascii=False, sort_keys=True),
                    "made_at": now,
                    "due_at": now,
                    "tries": 0,
                }
                for one in messages
                if one.occasion not in there
            ]
            if rows:
                connection.execute(sa.insert(schema.delivery), rows)
            moved = {name: value for name, value in (("opened", opened), ("judged", judged)) if value is not None}
            if moved:
                mine = sa.update(schema.reached).where(schema.reached.c.webhook == webhook.id).values(**moved)
                if connection.execute(mine).rowcount == 0:
                    row = {"webhook": webhook.id, "opened": webhook.opened, "judged": webhook.judged, **moved}
                    connection.execute(sa.insert(schema.reached), [row])
        return len(rows)

    def due(self, most: int = 1, busy: Collection[int] = ()) -> Sequence[Delivery]:
        """Messages whose time has come, one a webhook. For a minute no other process is given them."""
        columns, now = schema.delivery.c, system_clock()
        allowed = {one.id: one for one in self.list() if one.allowed and one.id not in busy}
        if not allowed:
            return []
        waiting = columns.done_at.is_(None) & (columns.due_at <= now)
        first = sa.func.min(columns.due_at)
        longest = sa.select(columns.webhook).where(waiting, columns.webhook.in_(list(allowed)))
        longest = longest.group_by(columns.webhook).order_by(first).limit(most)
        with in_words(self._engine.url), self._engine.connect() as connection:
            hooks = connection.execute(longest).scalars().all()
        found = []
        for hook in hooks:
            own = sa.select(columns.id).where(waiting, columns.webhook == hook)
            oldest = own.order_by(columns.due_at, columns.id).limit(1).scalar_subquery()
            mine = sa.update(schema.delivery).where(columns.id == oldest, waiting)
            with writing(self._engine) as connection:
                taken = connection.execute(mine.values(due_at=now + CLAIMED).returning(schema.delivery)).first()
            if taken is not None:
                found.append(Delivery(taken.id, allowed[hook], taken.event, taken.body, taken.tries))
        return found

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
    told: dict[str, Any] = {
        name: getattr(row, name) for name in ("id", "study", "url", "secret", "set_by", "private", "made_at")
    }
    told |= {name: getattr(row, name, None) or 0 for name in ("opened", "judged")}
    return Webhook(**told, events=tuple(json.loads(row.events)), allowed=row.allowed_by is not None)
