"""The loop ask - measure - tell over a program, with several calls at a time."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field

from surepick.errors import InvalidInput, OutOfTurn
from surepick.studies.command import Command, Outcome, Running
from surepick.studies.results import check_rewards
from surepick.studies.study import Study
from surepick.studies.telling import Receipt

POLL_SECONDS = 1.0


class MeasurementFailed(OutOfTurn):
    """A candidate could not be measured, however often it was tried; what was told is stored."""


@dataclass(frozen=True, slots=True)
class Call:
    """Pulls of one candidate that are being measured: whose lease they are of, and their keys."""

    worker: str
    name: str
    keys: tuple[str, ...]


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
        idle: called with the study when all that is missing is out with others, so that the loop begins to wait.
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
    idle: Callable[[Study], None] | None = None
    _failures: Counter[str] = field(default_factory=Counter)
    _running: Running = field(default_factory=Running)

    def run(self) -> bool:
        """Measure until the study stops; False if the budget ended it before.

        Raises:
            MeasurementFailed: a candidate failed too often, or a reward is not what the study declares.
        """
        workers = [f"{self.worker}/{slot + 1}" for slot in range(self.slots)]
        calls: dict[Future[Outcome], Call] = {}
        pool = ThreadPoolExecutor(self.slots)
        waiting = False
        try:
            while True:
                over = False
                busy = {call.worker for call in calls.values()}
                for worker in workers:
                    if worker in busy or over:
                        continue
                    over = not self._opened()
                    call = None if over else self._next(worker)
                    if call is not None:
                        calls[pool.submit(self.command.measure, call.name, len(call.keys), self._running)] = call
                if not calls:
                    if over:
                        return self.study.stopped
                    if self.idle is not None and not waiting:
                        self.idle(self.study)
                    waiting = True
                    time.sleep(POLL_SECONDS)
                    continue
                waiting = False
                done, _ = wait(calls, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for one in done:
                    self._conclude(calls.pop(one), one.result())
        finally:
            self._running.end()
            pool.shutdown(wait=True, cancel_futures=True)

    def _opened(self) -> bool:
        """Whether a plan is open that is within the budget."""
        if self.study.ask() is None:
            return False
        if self.most is None:
            return True
        progress = self.study.progress()
        return progress.told > 0 or progress.pulls + progress.asked <= self.most

    def _next(self, worker: str) -> Call | None:
        """What the worker measures next; None while nothing is free. A fair share, so that no slot idles."""
        fair = math.ceil(int(self.study.missing.sum()) / self.slots)
        plan = self.study.ask(max(1, min(self.batch, fair)), worker=worker, lease=self.lease)
        if plan is None or plan.total == 0:
            return None
        pairs = plan.keys()
        name = pairs[0][0]
        keys = tuple(key for other, key in pairs if other == name)
        return Call(worker, name, keys if self.command.takes_pulls else keys[:1])

    def _check_declared(self, name: str, rewards: tuple[float, ...]) -> None:
        """Refuse to go on if a reward is not what the study declares: to measure again would be to choose by value."""
        try:
            check_rewards(rewards, self.study.noise, len(rewards), [name] * len(rewards))
        except InvalidInput as error:
            raise MeasurementFailed(
                f"the program's answer for {name!r} cannot be told: {error} Nothing of this call was stored. If the "
                "program is wrong, mend it and give the same command again; it is not asked again by itself, since "
                "repeating a measurement because of its value would make the certificate worthless."
            ) from error

    def _conclude(self, call: Call, outcome: Outcome) -> None:
        """Tell what a call gave, and give back what it did not."""
        number = len(outcome.rewards)
        self._check_declared(call.name, outcome.rewards)
        missing = call.keys[number:]
        if missing:
            self._failures[call.name] += 1
            with suppress(OutOfTurn):  # the study was closed, or the plan abandoned: nothing waits for them
                self.study.fail([call.name] * len(missing), missing, worker=call.worker)
        else:
            self._failures[call.name] = 0
        receipt = Receipt()
        if number:
            try:
                receipt = self.study.tell([call.name] * number, outcome.rewards, call.keys[:number], worker=call.worker)
            except InvalidInput as error:
                raise MeasurementFailed(
                    f"a result of {call.name!r} was refused: {error} If this study is measured in several places at "
                    "once, give each of them a name of its own (--worker)."
                ) from error
        if self._failures[call.name] > self.retries and not self.study.stopped:
            raise MeasurementFailed(
                f"{call.name!r} could not be measured in {self._failures[call.name]} calls, one after the other; in "
                f"the last, {outcome.failure}. What was told is stored; the study goes on when the program works, with "
                "the same command."
            )
        if self.heard is not None:
            self.heard(self.study, receipt)
