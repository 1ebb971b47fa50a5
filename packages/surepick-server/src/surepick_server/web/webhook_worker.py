"""Two threads: one notes what happens in studies with webhooks, one delivers it. Several processes may do it at once.

What was noted stands in the database, with how far it goes, so that neither a lock nor a crash loses an event. Each
webhook is sent one message at a time and has a limit for a whole answer, so that none makes others wait.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx

from surepick.errors import InvalidInput, SurepickError
from surepick.studies.logs.base import Decision, Planned, system_clock
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.study import Study
from surepick_server.access.tokens import Target, target_of
from surepick_server.access.webhooks import Delivery, Message, Webhook, signature
from surepick_server.web.auth import ServerState
from surepick_server.web.open_studies import HTTPError

SECONDS = 2.0  # between two looks
WAITS = 10.0  # seconds for a whole answer, from the name of the host to the last byte that is read
MOST_AT_ONCE = 32  # webhooks that are sent to at the same time
MOST_ROUNDS = 100  # that are noted in one transaction
MOST_REMEMBERED = 10_000  # occasions of which it is remembered that the database has them
LEASE_EXPIRED = "lease-expired"
log = logging.getLogger("surepick_server")


class Deliverer:
    """Notes what happens in the studies of a server, and delivers it."""

    def __init__(self, server: ServerState) -> None:
        self._server = server
        self._noted: set[tuple[int, str]] = set()  # what the database has beside rounds
        self._database = server.reopened
        self._sending = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="webhook")  # for names of hosts

    def look(self) -> None:
        """Note what happened since the last look, and deliver all that is due."""
        self.note()
        self.deliver()

    def note(self) -> None:
        """Note what happened since the last look, for the webhooks that an admin has allowed."""
        if self._server.moved:
            self._server.reopen()
        if self._database != self._server.reopened:
            self._noted.clear()
            self._database = self._server.reopened
        hooks: dict[str, list[Webhook]] = {}
        for one in self._server.webhooks.list():
            if one.allowed:
                hooks.setdefault(one.study, []).append(one)
        for name, own in hooks.items():
            try:
                with self._server.studies.open(name) as study:
                    for hook in own:
                        self._note(name, study, hook)
            except (HTTPError, SurepickError) as error:
                log.warning("a study with webhooks waits", extra={"said": {"kind": type(error).__name__}})

    def deliver(self) -> None:
        """Deliver all that is due."""
        asyncio.run(self._deliver(lambda: True))

    def deliver_until(self, over: threading.Event, seconds: float) -> None:
        """Deliver what is due, until it is over."""
        asyncio.run(self._deliver(over.is_set, seconds))

    def close(self) -> None:
        """Wait for nothing more."""
        self._sending.shutdown(wait=False, cancel_futures=True)

    async def _deliver(self, over: Callable[[], bool], seconds: float = 0.0) -> None:
        """Deliver what is due, to many at once; at the end only what has begun."""
        running: dict[int, asyncio.Task[None]] = {}
        first = True
        async with httpx.AsyncClient(timeout=WAITS, follow_redirects=False, trust_env=False) as client:
            while True:
                last = over()
                due = [] if last and seconds and not first else self._due(running)
                first = False
                for one in due:
                    running[one.webhook.id] = asyncio.create_task(self._tried(client, one))
                if last and not running:
                    return
                if not running:
                    await asyncio.sleep(seconds)
                    continue
                ended, _ = await asyncio.wait(
                    running.values(), timeout=seconds or None, return_when=asyncio.FIRST_COMPLETED
                )
                running = {hook: task for hook, task in running.items() if task not in ended}

    def _due(self, running: dict[int, asyncio.Task[None]]) -> Sequence[Delivery]:
        try:
            return self._server.webhooks.due(MOST_AT_ONCE - len(running), running)
        except Exception as error:  # a database that is away comes back
            log.warning("webhooks wait", extra={"said": {"kind": type(error).__name__}})
            return []

    async def _tried(self, client: httpx.AsyncClient, due: Delivery) -> None:
        """Try to deliver a message once."""
        outcome, delivered = await self._sent(client, due)
        try:
            self._server.webhooks.tried(due, outcome, delivered=delivered)
        except Exception as error:  # it is due again in a minute
            log.warning("webhooks wait", extra={"said": {"kind": type(error).__name__}})
        self._server.metrics.deliveries.labels("delivered" if delivered else "failed").inc()

    async def _sent(self, client: httpx.AsyncClient, due: Delivery) -> tuple[str, bool]:
        """(what became of it, whether it was taken)."""
        hook, loop = due.webhook, asyncio.get_running_loop()
        found = loop.run_in_executor(self._sending, lambda: target_of(hook.url, private=hook.private))
        try:
            async with asyncio.timeout(WAITS):
                return await _answered(client, due, await asyncio.shield(found))
        except InvalidInput as error:
            return str(error), False
        except TimeoutError:
            await asyncio.wait([found])  # a name that nobody resolves holds a thread, and one alone
            return f"no answer within {WAITS:g} s", False
        except (httpx.HTTPError, OSError, ValueError) as error:
            return type(error).__name__, False

    def _note(self, name: str, study: Study, hook: Webhook) -> None:
        """Note for one webhook what is not noted yet: each round that was opened or judged, then what holds now."""
        progress, planned = study.progress(), study.log.last_plan()
        opened, judged = hook.opened, hook.judged
        decisions = study.log.decisions(after=judged) if progress.judged > judged else iter(())
        last = 0 if planned is None else planned.number
        while opened < last or judged < progress.judged:
            start, stop = min(opened, judged), min(min(opened, judged) + MOST_ROUNDS, last)
            found: list[tuple[float, Message]] = []
            for number in range(start + 1, stop + 1):
                plan = study.log.plan(number)
                if plan is None:
                    continue
                if number > opened:
                    found.append(_opened(name, plan))
                if judged < number <= progress.judged:
                    decision = next(decisions)
                    found += [*self._expired(name, study, plan, hook, decision.at), *_judged(name, plan, decision)]
            opened, judged = max(opened, stop), max(judged, min(stop, progress.judged))
            self._server.webhooks.note(hook, _wanted(hook, found), opened=opened, judged=judged)
        now: list[tuple[float, Message]] = []
        ended = study.log.ended()
        if ended is not None:
            said = {"study": name, "at": ended.at, "verdict": progress.verdict, "closed": True}
            now.append((ended.at, Message("study-stopped", "study-stopped", said)))
        elif planned is not None and progress.plan:
            now += self._expired(name, study, planned, hook, system_clock())
        new = [one for one in _wanted(hook, now) if (hook.id, one.occasion) not in self._noted]
        if new:
            self._server.webhooks.note(hook, new)
            if len(self._noted) > MOST_REMEMBERED:
                self._noted.clear()
            self._noted |= {(hook.id, one.occasion) for one in new}  # now that the database has them

    def _expired(
        self, name: str, study: Study, planned: Planned, hook: Webhook, until: float
    ) -> Iterator[tuple[float, Message]]:
        """The leases of a round that ran out before that time, with measurements that did not come."""
        if LEASE_EXPIRED not in hook.events:
            return
        look = OpenPlan.of(planned)
        look.add(study.log.arrivals(planned.number))
        for held in look.unfinished.values():
            pulls = int((held.left if look.closed else look.wanted_of(held)).sum())
            at = held.lease.until
            if at <= until and pulls:
                said = {**_of(name, planned, at), "worker": held.lease.worker, "pulls": pulls}
                yield at, Message(LEASE_EXPIRED, f"{LEASE_EXPIRED} {planned.number}.{held.lease.number}", said)


async def _answered(client: httpx.AsyncClient, due: Delivery, target: Target) -> tuple[str, bool]:
    """(the status of the answer, whether that is one of success); what else the answer says is not read."""
    hook = due.webhook
    headers = {
        "host": target.host,
        "content-type": "application/json",
        "user-agent": "surepick",
        "x-surepick-event": due.event,
        "x-surepick-delivery": str(due.id),
        "x-surepick-signature": signature(hook.secret, int(system_clock()), due.body),
    }
    name = {"sni_hostname": urlsplit(hook.url).hostname or ""}
    async with client.stream("POST", target.url, content=due.body.encode(), headers=headers, extensions=name) as answer:
        return str(answer.status_code), answer.is_success


def _of(name: str, planned: Planned, at: float) -> dict[str, Any]:
    return {"study": name, "at": at, "plan": planned.number, "round": planned.plan.round}


def _opened(name: str, planned: Planned) -> tuple[float, Message]:
    at = planned.opened_at
    said = {**_of(name, planned, at), "asked": int(planned.plan.counts.sum())}
    return at, Message("round-opened", f"round-opened {planned.number}", said)


def _judged(name: str, planned: Planned, decision: Decision) -> Iterator[tuple[float, Message]]:
    """Of a closed round what everybody may see."""
    at = decision.at
    yield at, Message("round-complete", f"round-complete {planned.number}", _of(name, planned, at))
    if decision.stopped:
        said = {"study": name, "at": at, "verdict": decision.verdict}
        yield at, Message("study-stopped", "study-stopped", said)


def _wanted(hook: Webhook, found: Sequence[tuple[float, Message]]) -> list[Message]:
    """What a webhook is to be told of it, each once."""
    kept = {one.occasion: one for at, one in found if one.event in hook.events and at >= hook.made_at}
    return list(kept.values())


@contextmanager
def delivering(server: ServerState, seconds: float = SECONDS) -> Iterator[None]:
    """While this lasts two threads note and deliver."""
    over, deliverer = threading.Event(), Deliverer(server)

    def note() -> None:
        while not over.wait(seconds):
            try:
                deliverer.note()
            except Exception as error:  # a database that is away comes back
                log.warning("webhooks wait", extra={"said": {"kind": type(error).__name__}})

    threads = [
        threading.Thread(target=note, name="webhooks", daemon=True),
        threading.Thread(target=deliverer.deliver_until, args=(over, seconds), name="deliveries", daemon=True),
    ]
    for one in threads:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in threads:
            one.join(WAITS + seconds)
        deliverer.close()
