"""One of several writers of a study: it tells results one by one and says when each call began and ended.

The clock is one that all processes of the machine share.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from apart import forks

import surepick as sp
from surepick.studies.database import create_stored_study, resume_stored_study
from surepick.studies.logs.sql import writing as sql_turn

ARMS = 400
Call = tuple[float, float]


def create(url: str) -> None:
    """A study with an open round, which no writer here completes."""
    arms = sp.Arms(np.arange(ARMS, dtype=float)[:, None])
    policy = sp.make_policy("action-elimination", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(1.0))
    study = create_stored_study(url, "waits", arms, policy)
    assert study.missing.all()
    study.log._engine.dispose()


def run_writers(url: str, *, writers: int, results: int, sabotaged: bool = False) -> list[list[Call]]:
    """The calls of each writer, all at once."""
    pipes = [forks().Pipe() for _ in range(writers)]
    started = [
        forks().Process(target=write, args=(there, url, f"w{number}", results, sabotaged))
        for number, (_, there) in enumerate(pipes)
    ]
    for one in started:
        one.start()
    for here, _ in pipes:
        assert here.poll(500.0)
        assert here.recv() == "ready"
    for here, _ in pipes:
        here.send("go")
    calls = []
    for here, _ in pipes:
        assert here.poll(500.0)
        calls.append(here.recv())
    for one in started:
        one.join()
    assert all(one.exitcode == 0 for one in started)
    return calls


def most_overtaken(calls: list[list[Call]]) -> int:
    """Of any call: how many calls of others began after it and ended before it."""
    everything = [call for theirs in calls for call in theirs]
    starts, ends = np.array(everything).T
    return max(int(np.count_nonzero((starts > start) & (ends < end))) for start, end in everything)


def write(pipe: Any, url: str, name: str, results: int, sabotaged: bool) -> None:
    """One writer: it says "ready", waits for a word, and sends its calls."""
    if sabotaged:
        sql_turn.in_line = lambda *_: nullcontext()
    study = resume_stored_study(url, "waits")
    study.tell(["0"], [0.5], [f"{name}-first"])
    pipe.send("ready")
    pipe.recv()
    calls = []
    for number in range(results):
        start = time.monotonic()
        study.tell([str(number % (ARMS - 1))], [0.5], [f"{name}-{number}"])
        calls.append((start, time.monotonic()))
    pipe.send(calls)
