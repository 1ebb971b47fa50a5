"""Threads that a test leaves at work: servers, clients and watchers that would disturb the tests after it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 10.0  # seconds for what is ending
KEPT_BY_PACKAGES = (  # threads that stay until the process ends, and do nothing unless they are asked
    "ExecutorManagerThread", "QueueFeederThread", "QueueManagerThread",  # of joblib
    "AnyIO worker thread", "asyncio_",  # of event loops
    "Dask-Callback-Thread", "Dask-Offload", "TCP-Executor", "Profile",  # of distributed
)  # fmt: skip


@contextmanager
def nothing_left(patience: float = PATIENCE) -> Iterator[None]:
    """An AssertionError that names the threads which the block began and which are still at work after it.

    Args:
        patience: seconds that threads are given to end.
    """
    before = set(threading.enumerate())
    yield
    until = time.monotonic() + patience
    while (left := _at_work(before)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not left, f"threads are left at work: {left}"


def _at_work(before: set[threading.Thread]) -> list[str]:
    """Names of the threads that were begun since, and are no pool's that waits for work."""
    return [
        thread.name
        for thread in threading.enumerate()
        if thread not in before and not thread.name.startswith(KEPT_BY_PACKAGES)
    ]
