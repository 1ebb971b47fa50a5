"""Scripted workers on one durable study, which may be killed with signal 9 wherever they are, and started again."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import random
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import surepick as sp
from surepick.core.random_streams import stream
from surepick.studies import replay as replays
from surepick.studies.database import open_stored_study, resume_stored_study
from surepick.studies.logs.keys import read_pull_key
from surepick.studies.logs.sql.log import SqlLog

WORKERS = ("ann", "bob")
SUBJECTS = {  # policy, and what makes it another subject: options, arms, features, epsilon, sigma (None: test items)
    "certified-linear": ({"norm_bound": 1.0, "largest_batch": 30}, 100, 5, 0.1, 0.8),
    "linear-embedding": ({"norm_bound": 1.0}, 60, 4, 0.15, 0.5),
    "action-elimination": ({}, 60, 2, 0.5, 0.3),
    "certified-linear, blocks": (
        {"norm_bound": 1.0, "batch_size": 8, "blocks": "plate", "block_size": 8, "control": "sku-1"},
        *(20, 3, 0.3, 0.6),
    ),
    "certified-items": ({"items": 60, "seed": 0, "first_batch": 4, "growth": 0.5}, 12, 2, 0.1, None),
    "certified-items, undone": ({"items": 60, "seed": 0, "first_batch": 4, "growth": 0.5}, 12, 2, 0.1, None),
    "certified-independent, changing": ({"later": ["sku-6", "sku-7"]}, 8, 2, 0.5, 0.4),
}
UNDOING = ("undone", "changing")  # workers of these subjects mistype results now and then, and take them back
ADDS, WITHDRAWS = {2: ["sku-6"], 3: ["sku-7"]}, {4: ["sku-0"]}  # plan -> who comes, or goes, while it is open
ASKED = (8, 2, 0.5, 0.4)
QUESTIONS = {  # the same, of questions whose answer is lists
    f"certified-independent, {name}": (question, *ASKED)
    for name, question in {
        "above": {"question": "above", "control": "sku-1"},
        "discovery": {"question": "above", "control": "sku-1", "errors": "discovery"},
        "top": {"question": "top", "m": 3},
        "all-good": {"question": "all-good"},
        "one-of": {"question": "one-of", "share": 0.3, "sample_seed": 5},
        "feasible": {"constraints": ["heat<=0.2,tolerance=0.4,noise=subgaussian:0.3"]},
    }.items()
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
    """(arms, policy) of a study of about 10 plans and a hundred pulls."""
    options, number, features, epsilon, sigma = {**SUBJECTS, **QUESTIONS}[name]
    points = stream(seed, "arms").normal(size=(number, features))
    points /= np.linalg.norm(points, axis=1).max()
    arms = sp.Arms(points, [f"sku-{arm}" for arm in range(number)])
    noise = sp.Bernoulli() if sigma is None else sp.SubGaussian(sigma)
    policy = sp.make_policy(name.partition(",")[0], arms, epsilon=epsilon, delta=0.05, noise=noise, **options)
    return arms, policy


@cache
def rewards_of(name: str, seed: int) -> Callable[[str, str], float]:
    """The reward of a pull: a function of its arm and its key, whoever measures it and whenever."""
    arms, _ = subject(name, seed)
    options, *_, sigma = {**SUBJECTS, **QUESTIONS}[name]
    features = arms.features
    means = dict(
        zip(arms.ids, (features @ np.full(features.shape[1], features.shape[1] ** -0.5)).tolist(), strict=True)
    )
    if "blocks" in options:  # all of a block are off by the same large amount
        return lambda arm, key: (
            means[arm]
            + 10.0 * float(stream(seed, "block", block_of(key)).normal())
            + sigma * float(stream(seed, "noise", key).normal())
        )
    if sigma is None:  # right or wrong
        return lambda arm, key: float(stream(seed, "noise", key).random() < 0.5 + 0.4 * means[arm])
    return lambda arm, key: means[arm] + sigma * float(stream(seed, "noise", key).normal())


def heats_of(name: str, seed: int) -> np.ndarray:
    """What the constraint of the question "feasible" is on: the mean of each arm, shape (K,)."""
    return subject(name, seed)[0].features[:, 0]


@cache
def results_of(name: str, seed: int) -> Callable[[str, str], float | tuple[float, float]]:
    """What a pull tells: the reward, or with it what a constraint is on; every seventh is missing."""
    reward = rewards_of(name, seed)
    if "constraints" not in {**SUBJECTS, **QUESTIONS}[name][0]:
        return reward
    heats = dict(zip(subject(name, seed)[0].ids, heats_of(name, seed).tolist(), strict=True))

    def told(arm: str, key: str) -> tuple[float, float]:
        noise, missing = stream(seed, "heat", key).normal(), stream(seed, "missing", key).random() < 1 / 7
        return reward(arm, key), float("nan") if missing else heats[arm] + 0.3 * float(noise)

    return told


def block_of(key: str) -> str:
    """The block of a pull: a function of its key, so that it is the same whoever measures it and whenever."""
    plan, ordinal = read_pull_key(key) or (0, 0)
    return f"plate {plan}.{(ordinal + len(key)) % 3}"


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


def wrong(value: float) -> float:
    """What is told in the place of a result, by mistake; not so far off that anybody would be asked about it."""
    return 1.0 - value if value in (0.0, 1.0) else value + 0.01


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
        self.result = results_of(order.subject, order.seed)
        self.chance = random.Random(f"{order.seed} {name} {birth}")
        self.journal = Journal(order.folder, name)
        PLACE.reach("opening")
        opened = (
            open_stored_study if birth % 4 == 3 else resume_stored_study
        )  # every fourth computes all decisions again
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
                self.change(plan.number)
                acknowledged.update(key for _, key in pairs)
                self.tell_in_parts(pairs)
                waiting_since = time.monotonic()
                continue
            PLACE.reach("waiting")
            if time.monotonic() > waiting_since + self.order.patience:
                raise Problem(f"stuck: nothing to do for {self.order.patience} s, and the study goes on")
            time.sleep(0.003)

    def change(self, number: int) -> None:
        """Say who comes and goes while a plan is open; it is, since what is leased here is not told yet."""
        if not self.order.subject.endswith("changing"):
            return
        if number in ADDS:
            self.study.add(ADDS[number])
        if number in WITHDRAWS:
            self.study.withdraw(WITHDRAWS[number], "the oven is broken")

    def mistype(self, pairs: list[tuple[str, str]]) -> None:
        """Tell a wrong value for some of the results, and take it back."""
        for arm, key in pairs:
            if random.Random(key).random() < 0.3:
                self.study.tell([arm], [wrong(self.result(arm, key))], [key], worker=self.name)
                PLACE.reach("told")
                self.study.undo([key], worker=self.name)
                PLACE.reach("told")

    def take_back(self, pairs: list[tuple[str, str]]) -> None:
        """Take back what an earlier life told wrongly and did not live to take back."""
        for arm, key in pairs:
            stored = self.study.log.recorded([key]).get(key)
            if stored is not None and stored.total == wrong(self.result(arm, key)):
                self.study.undo([key], worker=self.name)

    def check_kept(self, acknowledged: set[str]) -> None:
        told = self.study.log.recorded(sorted(acknowledged))
        lost = acknowledged - set(told)
        if lost:
            raise Problem(f"lost {len(lost)} results that were acknowledged, the first is {min(lost)}")

    def tell_in_parts(self, pairs: list[tuple[str, str]]) -> None:
        while pairs:
            size = self.chance.randint(1, 9)
            part, pairs = pairs[:size], pairs[size:]
            self.tell(part, more=bool(pairs))

    def tell(self, pairs: list[tuple[str, str]], *, again: bool = False, more: bool = False) -> None:
        """Tell results.

        Args:
            again: an earlier life may have told them.
            more: others that are leased here follow, so that the plan stays open.
        """
        self.journal.note("telling", pairs)
        if self.order.subject.endswith(UNDOING) and again:
            self.take_back(pairs)
        elif self.order.subject.endswith(UNDOING) and more:
            self.mistype(pairs)
        if self.order.doctored == "acknowledge first":
            self.journal.note("acknowledged", pairs)
        ids, keys = [arm for arm, _ in pairs], [key for _, key in pairs]
        rewards = [self.result(arm, key) for arm, key in pairs]
        without = again and self.order.doctored == "forget the keys"
        PLACE.reach("telling")
        blocks = [block_of(key) for key in keys] if self.study.blocking is not None else None
        receipt = self.study.tell(ids, rewards, keys=None if without else keys, worker=self.name, blocks=blocks)
        PLACE.reach("told")
        self.journal.note("acknowledged", pairs)
        PLACE.reach("noted")
        whole = receipt.counted + receipt.repeated
        if whole != len(pairs) or (receipt.repeated and not again):
            raise Problem(f"told {len(pairs)} for the {'second' if again else 'first'} time, and got {receipt}")


def lived(order: Order, name: str, birth: int) -> int:
    """The life of a worker: 0 if it went well; else what happened is in its file."""
    try:
        Worker(order, name, birth).run()
    except BaseException:
        (Path(order.folder) / f"{name}.problem").write_text(traceback.format_exc())
        return 1
    return 0
