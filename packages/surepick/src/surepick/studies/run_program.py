"""The loop ask - measure - tell over a program, with several calls at a time."""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from typing import Any

from surepick.errors import InvalidInput, MeasurementFailed, OutOfTurn, UnusualResult
from surepick.studies.closed_loop import OnUnusual, limit_of, tell_measured
from surepick.studies.program import Command, Outcome, Reading, Running
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.studies.validation import check_rewards, split_values

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """Pulls that are being measured: whose lease they are of, and the id, the key and the block of each."""

    worker: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    blocks: tuple[str, ...] | None = None


@dataclass(slots=True)
class Loop:
    """A study measured by a program. Every slot is a worker of its own, so that a loop that was killed is given the
    same leases when it starts again."""

    study: Study
    command: Command
    worker: str  # name of this loop among those that measure the study at the same time
    slots: int = 1
    retries: int = 3  # calls for a candidate that may fail one after the other before it gives up
    batch: int = 64
    lease: str | float = "1h"
    most: int | None = None  # no plan is begun that would pass it in measurements; None: `usual_limit`
    most_money: float | None = None  # the same in money, of all that the study has spent; None: no limit
    unusual: OnUnusual = "warn"  # what becomes of results that stand out, as in `Study.run`
    heard: Callable[[Study, Receipt], None] | None = None  # after every result
    idle: Callable[[Study], None] | None = None  # when all is out with others, so that it begins to wait
    _failures: Counter[str] = field(default_factory=Counter)
    _running: Running = field(default_factory=Running)

    def run(self) -> bool:
        """Measure until the study stops; False if the budget ended it before."""
        self.command.check(self.study.ids)
        blocking = self.study.blocking
        if blocking is not None and not self.command.takes_blocks:
            raise InvalidInput(
                f"results of this study name their {blocking.name}, and the command does not say which one a call "
                "measures in. Write {block} where its name belongs (a seed, a plate), or take --measure-batch, which "
                "gives it after the id and a tab."
            )
        if self.study.policy.traits.items is not None:
            raise InvalidInput(
                "a program of run-study is given candidates and no test items; lease with ask, tell the answers, or "
                "take Study.run(measure), which gives both."
            )
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
                        beside: dict[str, Any] = {} if call.blocks is None else {"blocks": call.blocks}
                        if self.study.constraints:
                            beside["values"] = 1 + len(self.study.constraints)
                        calls[pool.submit(self.command.measure, call.names, self._running, **beside)] = call
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
        most = self.limit
        if most is None and self.most_money is None:
            return True
        progress = self.study.progress()
        within = most is None or progress.pulls + progress.asked <= most
        paid = progress.cost_after
        return progress.told > 0 or (within and (self.most_money is None or paid is None or paid <= self.most_money))

    @property
    def limit(self) -> int | None:
        """Most measurements of the study; None where its policy ends by itself."""
        return limit_of(self.study) if self.most is None else self.most

    def _next(self, worker: str) -> Call | None:
        """What the worker measures next; None while nothing is free. A fair share, so that no slot idles."""
        fair = math.ceil(int(self.study.missing.sum()) / self.slots)
        plan = self.study.lease(max(1, min(self.batch, fair)), worker=worker, duration=self.lease)
        if plan is None or plan.total == 0:
            return None
        names, keys = zip(*self.command.share(plan.keys()), strict=True)
        if not plan.blocks:
            return Call(worker, names, keys)
        block_of = {key: block for (_, key), block in zip(plan.keys(), plan.blocks, strict=True)}
        return Call(worker, names, keys, tuple(block_of[key] for key in keys))

    def _check_declared(self, names: Sequence[str], readings: Sequence[Reading]) -> None:
        """Refuse to go on if a reward is not what the study declares: to measure again would be to choose by value."""
        try:
            rewards = split_values(readings, self.study.constraints)[0]
            check_rewards(rewards, self.study.noise, len(readings), list(names))
        except InvalidInput as error:
            raise MeasurementFailed(
                f"the program's answer for {_called(names)} is refused: {error} Nothing of this call was stored. "
                "If the program is wrong, mend it and give the same command again; it is not asked again by itself, "
                "since repeating a measurement because of its value would make the certificate worthless."
            ) from error

    def _conclude(self, call: Call, outcome: Outcome) -> None:
        """Tell what a call gave, and give back what it did not."""
        rows = list(zip_longest(call.names, call.keys, outcome.rewards))
        came = [(name, key, reward) for name, key, reward in rows if reward is not None]
        told_blocks = None
        if call.blocks is not None:
            told_blocks = [block for block, (_, _, reward) in zip(call.blocks, rows, strict=True) if reward is not None]
        missing = [(name, key) for name, key, reward in rows if reward is None]
        self._check_declared([name for name, _, _ in came], [reward for _, _, reward in came])
        lacking = {name for name, _ in missing}
        for name in dict.fromkeys(call.names):
            self._failures[name] = self._failures[name] + 1 if name in lacking else 0
        if missing:
            with suppress(OutOfTurn):  # the study was closed, or the plan abandoned: nothing waits for them
                self.study.fail([name for name, _ in missing], [key for _, key in missing], worker=call.worker)
        receipt = self._tell(call, came, told_blocks) if came else Receipt()
        tired = next((name for name, _ in missing if self._failures[name] > self.retries), None)
        if tired is not None and not self.study.stopped:
            raise MeasurementFailed(
                f"{tired!r} could not be measured in {self._failures[tired]} calls, one after the other; in "
                f"the last, {outcome.failure}. The reported results are stored. Give the same command "
                "again when the program works."
            )
        if self.heard is not None:
            self.heard(self.study, receipt)

    def _tell(self, call: Call, came: Sequence[tuple[str, str, Reading]], blocks: Sequence[str] | None) -> Receipt:
        names, keys, rewards = zip(*came, strict=True)
        try:
            tell = partial(self.study.tell, names, rewards, keys, worker=call.worker, blocks=blocks)
            return tell_measured(lambda how: tell(accept_unusual=how), self.unusual)
        except UnusualResult as question:
            raise MeasurementFailed(
                f"{question} The loop ends here, as --unusual refuse says; --unusual accept goes on."
            ) from question
        except InvalidInput as error:
            raise MeasurementFailed(
                f"a result of {_called(names)} was refused: {error} If this study is measured in several places at "
                "once, give each of them a name of its own (--worker)."
            ) from error


def _called(names: Sequence[str]) -> str:
    """Candidates as a message names them."""
    others = len(set(names)) - 1
    return repr(names[0]) + (f" and {others} others" if others > 0 else "")
