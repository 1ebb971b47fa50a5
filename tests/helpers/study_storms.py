"""Many processes that tell one study at once, and two that judge it at once.

They are forked by a process of its own that has no threads and no connection.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from apart import apart
from study_workers import PLACE, Order, Worker, rewards_of, subject, watch

import surepick as sp
from surepick.core.records import to_json
from surepick.studies.database import create_stored_study, resume_stored_study
from surepick.studies.logs.base import Decision, Planned, Results
from surepick.studies.logs.sql.log import SqlLog

FORK = multiprocessing.get_context("fork")
BARRIER_SECONDS = 60.0


@dataclass(frozen=True)
class Storm:
    """What the processes are to do.

    Args:
        url, study, subject, seed: of the study.
        folder: for what they leave.
        processes: how many; of killed creators: how many statements later the next one dies.
        results: rows that each tells, repetitions included; of a creator: the statement that it does not live to see.
        repeats: share of the rows whose key is also told elsewhere, earlier or at about the same time.
        doctored: name of a fault that is built in; "" for none.
    """

    url: str
    study: str
    subject: str
    seed: int
    folder: str
    processes: int = 8
    results: int = 150
    repeats: float = 0.3
    doctored: str = ""


Row = tuple[str, str, float]  # id, key, reward


def row_of(storm: Storm, process: int, number: int) -> Row:
    """The result of that number that a process measures; never of the first arm, so that the plan stays open."""
    arms, _ = subject(storm.subject, storm.seed)
    key = f"{process}/{number}"
    arm = arms.ids[1 + (31 * process + 7 * number) % (arms.num_arms - 1)]
    return arm, key, rewards_of(storm.subject, storm.seed)(arm, key)


def num_own(storm: Storm) -> int:
    """Results that each process measures itself."""
    return storm.results - round(storm.results * storm.repeats)


def told_by(storm: Storm, process: int) -> list[list[Row]]:
    """What a process tells, call by call: its own results, some of them twice, and some of the others'."""
    chance = random.Random(f"storm {storm.seed} {process}")
    own = num_own(storm)
    rows = [(number, row_of(storm, process, number)) for number in range(own)]
    for again in range(storm.results - own):
        number = chance.randrange(own)
        whose = process if again % 2 else chance.choice([other for other in range(storm.processes) if other != process])
        rows.append((number + 0.5, row_of(storm, whose, number)))  # about when its owner tells it
    ordered = [row for _, row in sorted(rows, key=lambda pair: (pair[0], pair[1][1]))]
    parts = []
    while ordered:
        size = 1 if chance.random() < 0.7 else chance.randint(2, 5)
        parts.append(ordered[:size])
        ordered = ordered[size:]
    return parts


def blow(storm: Storm, process: int, barrier: Any) -> dict[str, Any]:
    """One process: all that it tells, as fast as it can."""
    parts = told_by(storm, process)
    study = resume_stored_study(storm.url, storm.study)
    counted = repeated = late = 0
    barrier.wait(BARRIER_SECONDS)
    started = time.monotonic()
    for part in parts:
        ids, keys, rewards = zip(*part, strict=True)
        receipt = study.tell(ids, rewards, keys=keys, worker=f"worker {process}")
        counted, repeated, late = counted + receipt.counted, repeated + receipt.repeated, late + receipt.late
    seconds = time.monotonic() - started
    return {"calls": len(parts), "counted": counted, "repeated": repeated, "late": late, "seconds": seconds}


def doctor(fault: str) -> None:
    """The saboteurs: a log that forgets what was told, loses rows, or counts a key twice."""
    add = SqlLog.add_results
    if fault in ("forgets", "counts twice"):
        SqlLog.recorded = lambda log, keys: {}
    if fault == "loses":
        SqlLog.add_results = lambda log, plan, results, **how: add(log, plan, results.rows([0]), **how)
    if fault == "counts twice":

        def without_keys(log: SqlLog, plan: int, results: Results, **how: Any) -> None:
            add(log, plan, replace(results, keys=None), **how)

        SqlLog.add_results = without_keys


def judge_and_design(storm: Storm, process: int, barrier: Any) -> dict[str, Any]:
    """Judge the closed plan and design the next one; both processes have computed before one of them may store."""
    seen: dict[str, Any] = {}
    add_decision, add_plan = SqlLog.add_decision, SqlLog.add_plan

    def decide_together(log: SqlLog, decision: Decision) -> Decision:
        barrier.wait(BARRIER_SECONDS)
        stored = add_decision(log, decision)
        seen["decision"] = (decision.plan, decision.at, stored.at)
        return stored

    def plan_together(log: SqlLog, planned: Planned) -> Planned:
        barrier.wait(BARRIER_SECONDS)
        stored = add_plan(log, planned)
        seen["plan"] = (planned.number, planned.opened_at, stored.opened_at)
        return stored

    SqlLog.add_decision, SqlLog.add_plan = decide_together, plan_together
    study = resume_stored_study(storm.url, storm.study)
    seen["leader"] = study.recommend()
    seen["asked"] = to_json(study.ask())
    seen["certificate"] = to_json(study.certificate())
    return seen


def die_judging(storm: Storm, process: int, barrier: Any) -> dict[str, Any]:
    """Tell all of the open plan, and be killed when it is closed and nobody has judged it yet."""
    watch(())
    PLACE.point, PLACE.left = "judging", 1
    Worker(Order(storm.url, storm.study, storm.subject, storm.seed, storm.folder), "ann", 0).run()
    return {}


def create_and_die(storm: Storm, process: int, barrier: Any) -> dict[str, Any]:
    """Create the study, but die before the statement or commit of number `results`; 0: of none."""
    statements = 0

    def count(*_: Any) -> None:
        nonlocal statements
        statements += 1
        if statements == storm.results:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", count)
    sa.event.listen(sa.engine.Engine, "commit", count)
    try:
        create_stored_study(storm.url, storm.study, *subject(storm.subject, storm.seed))
    except sp.InvalidInput as error:
        return {"refused": str(error)}
    return {"statements": statements}


def create_again_and_again(storm: Storm) -> dict[str, Any]:
    """Creators that die a few statements later each, until one lives: first without tables, then with them.

    Each is at a study of its own. At the end all of them are tried again, and nobody dies.
    """
    deaths: list[str] = []
    for tables in ("without", "with"):
        statement, status = 1, -signal.SIGKILL
        while status == -signal.SIGKILL:
            name = f"{tables} {statement}"
            (status,) = fork_all(replace(storm, study=name, results=statement), 1, create_and_die)
            statement += storm.processes
            if status == -signal.SIGKILL:
                deaths.append(name)
        report = read_report(storm, 0)
        if "statements" not in report:
            return {"deaths": deaths, "problem": report}
    again = []
    for name in deaths:
        fork_all(replace(storm, study=name, results=0), 1, create_and_die)
        again.append(read_report(storm, 0))
    return {"deaths": deaths, "again": again}


def read_report(storm: Storm, process: int) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((Path(storm.folder) / f"{process}.json").read_text())
    return report


def fork_all(storm: Storm, number: int, work: Callable[[Storm, int, Any], dict[str, Any]]) -> list[int]:
    """Run it in so many processes at once; what each returned is in its file. Returns their exit statuses."""
    barrier = FORK.Barrier(number)
    children = []
    for process in range(number):
        child = os.fork()
        if child == 0:
            os._exit(_leave(storm, process, barrier, work))
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _leave(storm: Storm, process: int, barrier: Any, work: Callable[[Storm, int, Any], dict[str, Any]]) -> int:
    try:
        report = work(storm, process, barrier)
    except BaseException:
        report = {"problem": traceback.format_exc()}
    (Path(storm.folder) / f"{process}.json").write_text(json.dumps(report))
    return 0


def run_storm(storm: Storm, kind: str, most: float = 600.0) -> dict[str, Any]:
    """What became of each process of a "storm" or a "race", or of those "killed judging" or "killed creating"."""
    report: dict[str, Any] = apart(blown, kind, storm, most=most)
    return report


def blown(kind: str, storm: Storm) -> dict[str, Any]:
    _, policy = subject(storm.subject, storm.seed)
    policy.ask(policy.init())  # what is imported at the first use is there before the fork
    sa.create_engine(storm.url).dispose()
    doctor(storm.doctored)
    if kind == "killed creating":
        import_module("surepick.studies.logs.sql.engine")
        return create_again_and_again(storm)
    work, number = {
        "storm": (blow, storm.processes),
        "race": (judge_and_design, 2),
        "killed judging": (die_judging, 1),
    }[kind]
    exits = fork_all(storm, number, work)
    there = [process for process in range(number) if (Path(storm.folder) / f"{process}.json").exists()]
    return {"exits": exits, "processes": [read_report(storm, process) for process in there]}
