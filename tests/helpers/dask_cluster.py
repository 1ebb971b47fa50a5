"""A Dask scheduler and workers on loopback, each a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

QUIET = {  # nobody looks at what they say of themselves, a hundred times a second
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "60s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
}
START = "from distributed.cli import dask_{part}; dask_{part}.main()"


@contextmanager
def dask_cluster(folder: Path, workers: int = 2, *, restarted: bool = False) -> Iterator[str]:
    """The address of a scheduler with so many workers, for as long as the block lasts.

    Args:
        folder: for their files.
        workers: how many.
        restarted: a worker that dies is started again.
    """
    from distributed import Client

    file = folder / "scheduler.json"
    options = ["--scheduler-file", str(file), "--no-dashboard", "--interface", "lo"]
    processes = [_started("scheduler", *options, "--port", "0")]
    try:
        _wait_for(file.exists)
        worker = ["--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder)]
        worker += [] if restarted else ["--no-nanny"]
        processes += [_started("worker", *worker) for _ in range(workers)]
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(workers, timeout=60)
            address = client.scheduler.address
        yield address
    finally:
        for process in reversed(processes):
            process.kill()  # a worker that is asked to end waits for its scheduler
        for process in processes:
            process.wait(timeout=30)


def _started(part: str, *options: str) -> subprocess.Popen:
    known = os.environ | QUIET | {"PYTHONPATH": os.pathsep.join(sys.path)}  # workers import what tests import
    return subprocess.Popen(
        [sys.executable, "-c", START.format(part=part), *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=known,
    )


def _wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the scheduler did not start"
        time.sleep(0.05)
