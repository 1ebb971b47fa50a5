"""Scripted workers on one durable study, and a supervisor that kills them with signal 9 and starts them again.

Run as a program, it reads an `Order` as JSON, forks the workers, and prints a report as JSON: a process of its own
that has no threads and no connection, so that it can fork hundreds of workers in a few seconds. With the argument
"alone" it is one such worker itself, in a fresh interpreter.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import surepick as sp
from surepick.core.random_streams import stream
from surepick.studies import replay as replays
from surepick.studies.database import open_study, resume_study
from surepick.studies.logs.sql.log import SqlLog

WORKERS = ("ann", "bob")
SUBJECTS = {  # policy, options, arms, features, epsilon, sigma
    "certified-linear": ({"norm_bound": 1.0, "largest_batch": 30}, 100, 5, 0.1, 0.8),
    "linear-embedding": ({"norm_bound": 1.0}, 60, 4, 0.15, 0.5),
    "action-elimination": ({}, 60, 2, 0.5, 0.3),
}
POINTS = (  # what a worker comes by, and may be killed at; the second number: how often, most of all, before it is
    ("opening", 1),
    ("asking", 5),
    ("designing", 2),
    ("designed", 2),
    ("judging", 2),
    ("judged", 2),
    ("begun", 15),
    ("written", 15),
    ("closing", 2),
    ("committing", 15),
    ("committed", 15),
    ("telling", 10),
    ("told", 10),
    ("noted", 10),
    ("waiting", 5),
)
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # one thread, so it can be forked
NAMES = tuple(name for name, _ in POINTS)


@dataclass(frozen=True)
class Order:
    """What the supervisor is to do.

    Args:
        url, study: where the workers work.
        subject: name of the policy, and with the seed the arms and the truth.
        seed: of the arms, and of the instants of the kills.
        folder: of the journals.
        kills: workers to kill; with 0 the run is undisturbed.
        seconds: about how long an undisturbed run takes.
        doctored: name of a fault that is built into the workers; "" for none.
        point: kill at this point only; "" for any, and half the time at any instant.
        patience: seconds for which a worker waits for the other.
    """

    url: str
    study: str
    subject: str
    seed: int
    folder: str
    kills: int = 0
    seconds: float = 1.0
    doctored: str = ""
    point: str = ""
    patience: float = 60.0


# the subject


@cache
def subject(name: str, seed: int) -> tuple[sp.Arms, Any]:
    """(arms, policy) of a study of about 20 plans and a few hundred pulls."""
    options, number, features, epsilon, sigma = SUBJECTS[name]
    points = stream(seed, "arms").normal(size=(number, features))
    points /= np.linalg.norm(points, axis=1).max()
    arms = sp.Arms(points, [f"sku-{arm}" for arm in range(number)])
    policy = sp.make_policy(name, arms, epsilon=epsilon, delta=0.05, noise=sp.SubGaussian(sigma), **options)
    return arms, policy


@cache
def rewards_of(name: str, seed: int) -> Callable[[str, str], float]:
    """The reward of a pull: a function of its arm and its key, whoever measures it and whenever."""
    arms, _ = subject(name, seed)
    sigma = SUBJECTS[name][-1]
    features = arms.features
    means = dict(
        zip(arms.ids, (features @ np.full(features.shape[1], features.shape[1] ** -0.5)).tolist(), strict=True)
    )
    return lambda arm, key: means[arm] + sigma * float(stream(seed, "noise", key).normal())


# where a worker is


class Place:
    """The point that a worker came by last, in memory that it shares with its supervisor; and where it is to die."""

    def __init__(self) -> None:
        self.shared = mmap.mmap(-1, len(WORKERS))
        self.row = 0
        self.point, self.left = "", 0

    def reach(self, name: str) -> None:
        self.shared[self.row] = NAMES.index(name)
        if name == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def of(self, row: int) -> str:
        return NAMES[self.shared[row]]


PLACE = Place()


def watch(policies: tuple[type, ...]) -> None:
    """Have every point between and inside the commits reported; what is done there stays as it is."""
    turn, insert, event, add_plan = SqlLog.turn, SqlLog._insert, SqlLog.add_event, SqlLog.add_plan
    closed_plan, decision_on = replays.closed_plan, replays.decision_on

    @contextmanager
    def watched_turn(log: SqlLog) -> Iterator[None]:
        outermost = log._open is None
        with turn(log):
            if outermost:
                PLACE.reach("begun")
            yield
        if outermost:
            PLACE.reach("committed")

    def watched_insert(log: SqlLog, *values: Any) -> None:
        insert(log, *values)
        PLACE.reach("written")

    def watched_event(log: SqlLog, *values: Any) -> None:
        PLACE.reach("closing")
        event(log, *values)

    def watched_plan(log: SqlLog, *values: Any) -> Any:
        PLACE.reach("designed")
        return add_plan(log, *values)

    def watched_reading(*values: Any, **named: Any) -> Any:
        PLACE.reach("judging")
        return closed_plan(*values, **named)

    def watched_decision(*values: Any, **named: Any) -> Any:
        decision = decision_on(*values, **named)
        PLACE.reach("judged")
        return decision

    SqlLog.turn, SqlLog._insert, SqlLog.add_event = watched_turn, watched_insert, watched_event
    SqlLog.add_plan = watched_plan
    replays.closed_plan, replays.decision_on = watched_reading, watched_decision
    sa.event.listen(sa.engine.Engine, "commit", lambda connection: PLACE.reach("committing"))
    for policy in policies:
        _watch_asking(policy)


def _watch_asking(policy: type) -> None:
    ask = policy.ask

    def watched(self: Any, state: Any) -> Any:
        PLACE.reach("designing")
        return ask(self, state)

    policy.ask = watched


def write_outside_transactions(folder: str) -> None:
    """The saboteur: a turn keeps others away as it should, but each statement in it is a transaction of its own."""
    turn, insert = SqlLog.turn, SqlLog._insert
    inside = False

    @contextmanager
    def no_turn(log: SqlLog) -> Iterator[None]:
        nonlocal inside
        if inside:
            yield
            return
        with (Path(folder) / "turn").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            inside = True
            try:
                yield
            finally:
                inside = False

    def insert_at_once(log: SqlLog, *values: Any) -> None:
        with turn(log):
            insert(log, *values)

    SqlLog.turn, SqlLog._insert = no_turn, insert_at_once


# a worker


class Problem(Exception):
    """What must not happen, seen by a worker."""


class Journal:
    """A worker's own file: what it is about to tell, and what was acknowledged; one line in one write."""

    def __init__(self, folder: str, worker: str) -> None:
        self.path = Path(folder) / f"{worker}.journal"
        self.file = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def note(self, kind: str, pairs: list[tuple[str, str]]) -> None:
        line = json.dumps([kind, pairs]) + "\n"
        assert os.write(self.file, line.encode()) == len(line)

    def read(self) -> tuple[set[str], list[tuple[str, str]]]:
        """(keys that were acknowledged, pairs that were about to be told when the worker died)."""
        return read_journal(self.path)


def read_journal(path: Path) -> tuple[set[str], list[tuple[str, str]]]:
    """(keys that were acknowledged, (id, key) pairs that were about to be told at the end)."""
    acknowledged: set[str] = set()
    open_pairs: list[tuple[str, str]] = []
    for kind, pairs in map(json.loads, path.read_text().splitlines()):
        if kind == "acknowledged":
            acknowledged.update(key for _, key in pairs)
        open_pairs = [(arm, key) for arm, key in pairs] if kind == "telling" else []
    return acknowledged, open_pairs


class Worker:
    """Asks, measures and tells until the study stops; after a restart it first looks at its journal."""

    def __init__(self, order: Order, name: str, birth: int) -> None:
        self.order, self.name = order, name
        self.reward = rewards_of(order.subject, order.seed)
        self.chance = random.Random(f"{order.seed} {name} {birth}")
        self.journal = Journal(order.folder, name)
        PLACE.reach("opening")
        opened = open_study if birth % 4 == 3 else resume_study  # every fourth computes all decisions again
        self.study = opened(order.url, order.study)

    def run(self) -> None:
        acknowledged, interrupted = self.journal.read()
        self.check_kept(acknowledged)
        if interrupted:
            self.tell(interrupted, again=True)
            acknowledged.update(key for _, key in interrupted)
        waiting_since = time.monotonic()
        while True:
            PLACE.reach("asking")
            plan = self.study.lease(max_pulls=self.chance.randint(5, 40), worker=self.name, duration="8h")
            if plan is None:
                return
            pairs = plan.keys() if plan.total else []
            if acknowledged.intersection(key for _, key in pairs):
                raise Problem("asked again for what was acknowledged")
            if pairs:
                acknowledged.update(key for _, key in pairs)
                self.tell_in_parts(pairs)
                waiting_since = time.monotonic()
                continue
            PLACE.reach("waiting")
            if time.monotonic() > waiting_since + self.order.patience:
                raise Problem(f"stuck: nothing to do for {self.order.patience} s, and the study goes on")
            time.sleep(0.003)

    def check_kept(self, acknowledged: set[str]) -> None:
        told = self.study.log.recorded(sorted(acknowledged))
        lost = acknowledged - set(told)
        if lost:
            raise Problem(f"lost {len(lost)} results that were acknowledged, the first is {min(lost)}")

    def tell_in_parts(self, pairs: list[tuple[str, str]]) -> None:
        while pairs:
            size = self.chance.randint(1, 9)
            part, pairs = pairs[:size], pairs[size:]
            self.tell(part)

    def tell(self, pairs: list[tuple[str, str]], *, again: bool = False) -> None:
        self.journal.note("telling", pairs)
        if self.order.doctored == "acknowledge first":
            self.journal.note("acknowledged", pairs)
        ids, keys = [arm for arm, _ in pairs], [key for _, key in pairs]
        rewards = [self.reward(arm, key) for arm, key in pairs]
        without = again and self.order.doctored == "forget the keys"
        PLACE.reach("telling")
        receipt = self.study.tell(ids, rewards, keys=None if without else keys, worker=self.name)
        PLACE.reach("told")
        self.journal.note("acknowledged", pairs)
        PLACE.reach("noted")
        whole = receipt.counted + receipt.repeated
        if whole != len(pairs) or (receipt.repeated and not again):
            raise Problem(f"told {len(pairs)} for the {'second' if again else 'first'} time, and got {receipt}")


# the supervisor


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


def lived(order: Order, name: str, birth: int) -> int:
    """The life of a worker: 0 if it went well; else what happened is in its file."""
    try:
        Worker(order, name, birth).run()
    except BaseException:
        (Path(order.folder) / f"{name}.problem").write_text(traceback.format_exc())
        return 1
    return 0


def run_supervisor(order: Order, most: float = 300.0) -> dict[str, Any]:
    """The report of a supervisor in a process of its own."""
    command = [sys.executable, __file__, "supervise", json.dumps(asdict(order))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=most, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def start_alone(order: Order, name: str, birth: int) -> subprocess.Popen[str]:
    """One worker in a fresh interpreter."""
    command = [sys.executable, __file__, "alone", json.dumps(asdict(order)), name, str(birth)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)


if __name__ == "__main__":
    given = Order(**json.loads(sys.argv[2]))
    if sys.argv[1] == "alone":
        sys.exit(lived(given, sys.argv[3], int(sys.argv[4])))
    print(json.dumps(Supervisor(given).run()))
