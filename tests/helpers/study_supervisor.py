"""A supervisor of the workers on one study, which kills them with signal 9 and starts them again.

It lives in a process of its own that has no threads and no connection, so that it can fork hundreds of workers in a few
seconds. Run as a program, it is one such worker itself, in a fresh interpreter.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa
from apart import apart
from study_workers import (
    ENVIRONMENT,
    PLACE,
    POINTS,
    WORKERS,
    Order,
    lived,
    rewards_of,
    subject,
    watch,
    write_outside_transactions,
)

import surepick as sp


class Supervisor:
    """Two workers on one study; each has an hour of death until enough have died."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.chance = random.Random(f"kills {order.seed} {order.study}")
        self.kills, self.phases = 0, Counter[str]()
        self.births = [0] * len(WORKERS)
        self.over = False  # something went wrong
        self.rows: dict[int, int] = {}  # process number -> row of the worker
        self.deaths: dict[int, float] = {}  # process number -> when it is to be killed
        _, policy = subject(order.subject, order.seed)
        state = policy.init()
        plan = policy.ask(state)  # what is imported at the first use is there before the fork
        ones = np.ones(policy.problem.num_arms)
        if plan.places is None:
            policy.tell(state, plan, sp.Observations(plan.counts, 0.0 * ones, ones * plan.counts))
        rewards_of(order.subject, order.seed)
        sa.create_engine(order.url).dispose()
        watch((type(policy),))
        if order.doctored == "outside transactions":
            write_outside_transactions(order.folder)

    def run(self) -> dict[str, Any]:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        started, problems = time.monotonic(), []
        for row in range(len(WORKERS)):
            self.start(row)
        while self.rows:
            soonest = min(self.deaths.values(), default=time.monotonic() + 1.0)
            signal.sigtimedwait({signal.SIGCHLD}, max(0.0, soonest - time.monotonic()))
            self.kill_those_due()
            problems += self.bury()
        return {
            "seconds": time.monotonic() - started,
            "kills": self.kills,
            "phases": dict(self.phases.most_common()),
            "problems": problems,
        }

    def start(self, row: int) -> None:
        point, left, seconds = self.fate()
        process = os.fork()
        if process == 0:
            PLACE.row, PLACE.point, PLACE.left = row, point, left
            os._exit(lived(self.order, WORKERS[row], self.births[row]))
        self.births[row] += 1
        self.rows[process] = row
        if seconds is not None:
            self.deaths[process] = time.monotonic() + seconds

    def fate(self) -> tuple[str, int, float | None]:
        """(point, which time, seconds): where or when the next worker dies."""
        order = self.order
        if self.kills >= order.kills:
            return "", 0, None
        if not order.point and self.chance.random() < 0.5:
            return "", 0, self.chance.uniform(0.0, 2.5 * order.seconds / order.kills)
        point, most = self.chance.choice([pair for pair in POINTS if order.point in ("", pair[0])])
        return point, self.chance.randint(1, most), None

    def kill_those_due(self) -> None:
        for process, at in list(self.deaths.items()):
            if at <= time.monotonic():
                os.kill(process, signal.SIGKILL)  # not waited for yet: the number is still its own
                del self.deaths[process]

    def bury(self) -> list[str]:
        """Wait for those who ended; those who were killed are started again."""
        problems = []
        for process in list(self.rows):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended:
                continue
            row = self.rows.pop(process)
            self.deaths.pop(process, None)
            killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
            if killed and self.over:
                continue
            if killed:
                self.kills += 1
                self.phases[PLACE.of(row)] += 1
                self.start(row)
            elif status != 0:
                problems.append((Path(self.order.folder) / f"{WORKERS[row]}.problem").read_text())
                self.over = True
                for other in self.rows:  # it may wait for what this one held
                    os.kill(other, signal.SIGKILL)
        return problems


def run_supervisor(order: Order, most: float = 300.0) -> dict[str, Any]:
    """The report of a supervisor in a process of its own."""
    report: dict[str, Any] = apart(supervised, order, most=most)
    return report


def supervised(order: Order) -> dict[str, Any]:
    return Supervisor(order).run()


def start_alone(order: Order, name: str, birth: int) -> subprocess.Popen[str]:
    """One worker in a fresh interpreter."""
    command = [sys.executable, __file__, "alone", json.dumps(asdict(order)), name, str(birth)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)


if __name__ == "__main__":
    sys.exit(lived(Order(**json.loads(sys.argv[2])), sys.argv[3], int(sys.argv[4])))
