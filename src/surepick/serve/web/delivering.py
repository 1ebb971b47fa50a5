"""The thread that watches studies with webhooks, and delivers what happened. Several processes may do it at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from surepick.errors import InvalidInput, SurepickError
from surepick.serve.access.addresses import target_of
from surepick.serve.access.webhooks import Delivery, Webhook, signature
from surepick.serve.web.callers import Server
from surepick.serve.web.problems import Refused
from surepick.studies.logs.leases import system_clock
from surepick.studies.study import Study

SECONDS = 2.0  # between two looks
WAITS = 10.0  # seconds for an answer
MOST_ROUNDS = 20  # that are told of when they were judged between two looks
log = logging.getLogger("surepick.serve")


class Deliverer:
    """Notes what happens, and delivers it.

    Args:
        server: whose studies and webhooks.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._noted: set[tuple[int, str]] = set()
        self._judged: dict[str, int] = {}
        self._client = httpx.Client(timeout=WAITS, follow_redirects=False, trust_env=False)

    def look(self) -> None:
        """Note what happened since the last look, and deliver all that is due."""
        hooks: dict[str, list[Webhook]] = {}
        for one in self._server.webhooks.list():
            hooks.setdefault(one.study, []).append(one)
        for name, own in hooks.items():
            try:
                with self._server.studies.open(name) as study:
                    self._note(name, study, own)
            except (Refused, SurepickError) as error:
                log.warning("a study with webhooks cannot be read", extra={"said": {"kind": type(error).__name__}})
        while (due := self._server.webhooks.due()) is not None:
            self.deliver(due)

    def deliver(self, due: Delivery) -> None:
        """Try to deliver a message once."""
        outcome, delivered = self._sent(due)
        self._server.webhooks.tried(due, outcome, delivered=delivered)
        self._server.metrics.deliveries.labels("delivered" if delivered else "failed").inc()

    def close(self) -> None:
        """Give back the connections."""
        self._client.close()

    def _sent(self, due: Delivery) -> tuple[str, bool]:
        """(what became of it, whether it was taken)."""
        hook = due.webhook
        try:
            target = target_of(hook.url, private=hook.private)
        except InvalidInput as error:
            return str(error), False
        headers = {
            "host": target.host,
            "content-type": "application/json",
            "user-agent": "surepick",
            "x-surepick-event": due.event,
            "x-surepick-delivery": str(due.id),
            "x-surepick-signature": signature(hook.secret, int(system_clock()), due.body),
        }
        name = {"sni_hostname": urlsplit(hook.url).hostname or ""}
        try:
            with self._client.stream(
                "POST", target.url, content=due.body.encode(), headers=headers, extensions=name
            ) as answer:
                return str(answer.status_code), answer.is_success
        except (httpx.HTTPError, OSError, ValueError) as error:
            return type(error).__name__, False

    def _note(self, name: str, study: Study, hooks: list[Webhook]) -> None:
        for event, occasion, at, more in self._happened(name, study):
            for hook in hooks:
                if event in hook.events and at >= hook.made_at and (hook.id, occasion) not in self._noted:
                    self._noted.add((hook.id, occasion))
                    self._server.webhooks.note(hook, event, occasion, {"study": name, "at": at, **more})

    def _happened(self, name: str, study: Study) -> Iterator[tuple[str, str, float, dict[str, Any]]]:
        """(event, occasion, when, what is said of it): of closed rounds what everybody may see, of the open one who."""
        progress, now = study.progress(), system_clock()
        before = self._judged.get(name, max(0, progress.judged - MOST_ROUNDS))
        if progress.judged > before:
            for decision in study.log.decisions(after=before):
                number = {"plan": decision.plan, "round": 0 if decision.row is None else decision.row.round}
                yield "round-complete", f"round-complete {decision.plan}", decision.at, number
                if decision.stopped:
                    yield "study-stopped", "study-stopped", decision.at, {"verdict": decision.verdict}
        self._judged[name] = progress.judged
        ended = study.log.ended()
        if ended is not None:
            yield "study-stopped", "study-stopped", ended.at, {"verdict": progress.verdict, "closed": True}
        planned = study.log.last_plan()
        if planned is None or progress.plan == 0:
            return
        number = {"plan": planned.number, "round": planned.plan.round}
        yield "round-opened", f"round-opened {planned.number}", planned.opened_at, {**number, "asked": progress.asked}
        look = study.replay.look(planned)
        for held in look.unfinished.values():
            wanted = int(look.wanted_of(held).sum())
            if held.lease.until <= now and wanted:
                whose = {"worker": held.lease.worker, "pulls": wanted}
                occasion = f"lease-expired {planned.number}.{held.lease.number}"
                yield "lease-expired", occasion, held.lease.until, {**number, **whose}


@contextmanager
def delivering(server: Server, seconds: float = SECONDS) -> Iterator[None]:
    """While this lasts a thread delivers."""
    over, deliverer = threading.Event(), Deliverer(server)

    def work() -> None:
        while not over.wait(seconds):
            try:
                deliverer.look()
            except Exception as error:  # a database that is away comes back
                log.warning("webhooks wait", extra={"said": {"kind": type(error).__name__}})

    thread = threading.Thread(target=work, name="webhooks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(WAITS + seconds)
        deliverer.close()
