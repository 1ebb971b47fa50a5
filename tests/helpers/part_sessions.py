"""A session that is judged in parts, in processes that are killed before some statement and started again.

They are forked by a process of its own that has no threads and no connection.
"""

from __future__ import annotations

import os
import random
import signal
from typing import Any

import sqlalchemy as sa
from apart import apart
from judged_parts import reward_of, small_policy

import surepick as sp
from surepick.studies.database import resume_stored_study

NAME = "parts"
MOST_DEATHS = 200


def keys_of(study: sp.Study, number: int) -> list[tuple[str, str]]:
    """All pulls of a plan, which one worker has leased at once."""
    planned = study.log.plan(number)
    counts = [] if planned is None else planned.plan.counts.tolist()
    return [
        (study.ids[arm], f"p{number}.{ordinal}@{study.ids[arm]}")
        for arm, count in enumerate(counts)
        for ordinal in range(count)
    ]


def tell(study: sp.Study, keys: list[tuple[str, str]]) -> None:
    if keys:
        study.tell([arm for arm, _ in keys], [reward_of(key) for _, key in keys], [key for _, key in keys])


def run(url: str) -> None:
    """Of each plan, the first half comes before it is judged, and the rest with the next one; whoever died meanwhile.

    What each call does depends on what is stored alone, so that all is repeated that a dead process may have left out.
    """
    study = resume_stored_study(url, NAME)
    while (part := study.lease(worker="ann")) is not None:
        number = part.number
        tell(study, keys_of(study, number - 1))
        if study.stopped or (plan := study.ask()) is None or plan.number != number:
            continue
        mine = keys_of(study, number)
        tell(study, mine[: (len(mine) + 1) // 2])
        plan = study.ask()
        if plan is not None and plan.number == number:
            study.interim()


def die_before(statement: int) -> None:
    """Be killed before the statement or commit of this number."""
    statements = 0

    def count(*_: Any) -> None:
        nonlocal statements
        statements += 1
        if statements == statement:
            os.kill(os.getpid(), signal.SIGKILL)

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", count)
    sa.event.listen(sa.engine.Engine, "commit", count)


def deaths_until_done(url: str, seed: int) -> int:
    """How many processes died before one came to the end."""
    chance = random.Random(seed)
    for deaths in range(MOST_DEATHS):
        child = os.fork()
        if child == 0:
            if seed:
                die_before(chance.randint(30, 220))
            run(url)
            os._exit(0)
        chance.random()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == 0:
            return deaths
        assert status == -signal.SIGKILL, "a process ended with an error"
    raise AssertionError("nobody came to the end")


def run_killed(url: str, seed: int) -> int:
    """`deaths_until_done` in a process of its own."""
    deaths: int = apart(killed, url, seed, most=300.0)
    return deaths


def killed(url: str, seed: int) -> int:
    policy = small_policy()
    policy.ask(policy.init())  # what is imported at the first use is there before the fork
    sa.create_engine(url).dispose()
    return deaths_until_done(url, seed)
