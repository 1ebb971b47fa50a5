"""The loop ask - measure - tell over a program, with several calls at a time."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from surepick.errors import InvalidInput, OutOfTurn
from surepick.records import Plan
from surepick.studies.command import Command, Outcome, kill
from surepick.studies.study import Receipt, Study

POLL_SECONDS = 1.0


class MeasurementFailed(OutOfTurn):
    """A candidate could not be measured, however often it was tried; what was told is stored."""


@dataclass(slots=True)
class Share:
    """What one slot has to measure: the keys of each candidate, in the order of the plan."""

    worker: str
    left: list[tuple[str, list[str]]] = field(default_factory=list)


@dataclass(slots=True)
class Loop:
    """A study measured by a program.

    Every slot is a worker of its own, so that a loop that was killed is given the same leases when it starts again.

    Args:
        study: what is measured; only the thread that calls `run` touches it.
        command: the program.
        worker: name of this loop among those that measure the study at the same time.
        slots: calls at a time.
        retries: calls for a candidate that may fail one after the other before the loop gives up.
        batch: most pulls in a lease.
        lease: how long a lease lasts, as in `Study.ask`.
        most: no plan is begun that would bring the measurements above this; None: no limit.
        heard: called with the study after every result.
    """

    study: Study
    command: Command
    worker: str
    slots: int = 1
    retries: int = 3
    batch: int = 64
    lease: str | float = "1h"
    most: int | None = None
    heard: Callable[[Study, Receipt], None] | None = None
    _failures: Counter[str] = field(default_factory=Counter)
    _running: set[subprocess.Popen[str]] = field(default_factory=set)

    def run(self) -> bool:
        """Measure until the study stops; False if the budget ended it before.

        Raises:
            MeasurementFailed: a candidate failed too often.
        """
        shares = [Share(f"{self.worker}/{slot + 1}") for slot in range(self.slots)]
        calls: dict[Future[Outcome], tuple[Share, str, list[str]]] = {}
        pool = ThreadPoolExecutor(self.slots)
        try:
            while True:
                busy = {share.worker for share, _, _ in calls.values()}
                over = False
                for share in shares:
                    if share.worker not in busy and not over:
                        over = not self._begin(share, pool, calls)
                if not calls:
                    if over:
                        return not self._beyond_budget()
                    time.sleep(POLL_SECONDS)  # all that is missing is out with others
                    continue
                done, _ = wait(calls, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for call in done:
                    self._conclude(*calls.pop(call), call.result())
        finally:
            for process in list(self._running):
                kill(process)
            pool.shutdown(wait=True, cancel_futures=True)

    def _begin(
        self, share: Share, pool: ThreadPoolExecutor, calls: dict[Future[Outcome], tuple[Share, str, list[str]]]
    ) -> bool:
        """Start the slot's next call if there is one; False once the study or the budget is at its end."""
        if not share.left:
            if self._beyond_budget():
                return False
            plan = self.study.ask(self.batch, worker=share.worker, lease=self.lease)
            if plan is None:
                return False
            share.left = _by_candidate(plan)
        if share.left:
            name, keys = share.left.pop(0)
            calls[pool.submit(self.command.measure, name, len(keys), self._running)] = (share, name, keys)
        return True

    def _conclude(self, share: Share, name: str, keys: list[str], outcome: Outcome) -> None:
        """Tell what a call gave, and give back what it did not."""
        rewards = list(outcome.rewards)
        receipt = Receipt()
        try:
            if len(rewards) < len(keys):
                self._failures[name] += 1
                missing = keys[len(rewards) :]
                if self._failures[name] <= self.retries and self.study.missing.any():
                    self.study.fail([name] * len(missing), missing, worker=share.worker)
            if rewards:
                receipt = self.study.tell([name] * len(rewards), rewards, keys[: len(rewards)], worker=share.worker)
                if len(rewards) == len(keys):
                    self._failures[name] = 0
        except InvalidInput as error:
            raise MeasurementFailed(f"what the program printed for {name!r} was refused: {error}") from error
        if self._failures[name] > self.retries:
            raise MeasurementFailed(
                f"{name!r} could not be measured in {self._failures[name]} calls, one after the other; in the last, "
                f"{outcome.failure}. What was told is stored; the study goes on when the program works, with the same "
                "command."
            )
        if self.heard is not None:
            self.heard(self.study, receipt)

    def _beyond_budget(self) -> bool:
        if self.most is None:
            return False
        progress = self.study.progress()
        return progress.told == 0 and progress.pulls + progress.asked > self.most


def _by_candidate(plan: Plan) -> list[tuple[str, list[str]]]:
    if plan.lease is None:
        return []
    keys: dict[str, list[str]] = {}
    pairs = plan.keys()
    for name, key in pairs:
        keys.setdefault(name, []).append(key)
    return list(keys.items())
