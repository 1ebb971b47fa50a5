"""One of several writers of a study: it tells results one by one and says when each call began and ended.

Run as a program (`python study_waits.py ORDER`), it says "ready", waits for a line, and prints [[start, end], ...] of a
clock that all processes of the machine share.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np

import surepick as sp
from surepick.studies.database import create_study, resume_study
from surepick.studies.logs.sql import write_transaction as sql_turn

ARMS = 400
Call = tuple[float, float]


def create(url: str) -> None:
    """A study with an open round, which no writer here completes."""
    arms = sp.Arms(np.arange(ARMS, dtype=float)[:, None])
    policy = sp.make_policy("action-elimination", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(1.0))
    study = create_study(url, "waits", arms, policy)
    assert study.missing.all()
    study.log._engine.dispose()


def run_writers(url: str, *, writers: int, results: int, sabotaged: bool = False) -> list[list[Call]]:
    """The calls of each writer, all at once."""
    order = {"url": url, "results": results, "sabotaged": sabotaged}
    started = [
        subprocess.Popen(
            [sys.executable, __file__, json.dumps({**order, "name": f"w{number}"})],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    calls = [json.loads(one.communicate(timeout=500)[0]) for one in started]
    assert all(one.returncode == 0 for one in started)
    return [[(start, end) for start, end in theirs] for theirs in calls]


def most_overtaken(calls: list[list[Call]]) -> int:
    """Of any call: how many calls of others began after it and ended before it."""
    everything = [call for theirs in calls for call in theirs]
    starts, ends = np.array(everything).T
    return max(int(np.count_nonzero((starts > start) & (ends < end))) for start, end in everything)


def main(order: dict[str, Any]) -> None:
    if order["sabotaged"]:
        sql_turn.in_line = lambda *_: nullcontext()
    study = resume_study(order["url"], "waits")
    study.tell(["0"], [0.5], [f"{order['name']}-first"])
    print("ready", flush=True)
    sys.stdin.readline()
    calls = []
    for number in range(order["results"]):
        start = time.monotonic()
        study.tell([str(number % (ARMS - 1))], [0.5], [f"{order['name']}-{number}"])
        calls.append((start, time.monotonic()))
    print(json.dumps(calls))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
