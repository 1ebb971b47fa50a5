"""Processes of their own, forked from one that has imported surepick: begun in a tenth of a second, not in two."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import os
import traceback
from collections.abc import Callable
from multiprocessing import forkserver
from typing import Any
from unittest import mock

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # so it can be forked
IMPORTED = [
    "uvicorn",
    "httpx",
    "sqlalchemy",
    "psycopg",
    "surepick.cli.app",
    "surepick_server.app",
    "surepick.studies.database",
    "surepick.studies.logs.sql.engine",
    "scipy.linalg",  # from here on what the policies of killed studies load at their first plan
    "surepick.designs.solve",
    "surepick.estimators.item_processes",
    "surepick.estimators.pairs",
    "surepick.policies.carried.elimination",
    "surepick.policies.items",
    "surepick.policies.paired.elimination",
    "surepick.policies.questions.elimination",
    "surepick.policies.steered.chosen",
    "surepick_bench.policies",
    "surepick_bench.command",
]


@functools.cache
def forks() -> Any:
    """The context of such processes; what has imported is ended, and waited for, with this process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    with mock.patch.dict(os.environ, ONE_THREAD):
        forkserver.ensure_running()
    atexit.register(forkserver._forkserver._stop)
    return context


def apart(work: Callable[..., Any], *given: Any, most: float = 600.0) -> Any:
    """What a function of a helper module returns in a process that has no threads and no connections.

    Args:
        work: the function.
        given: its arguments.
        most: seconds.

    Raises:
        AssertionError: with what went wrong in it.
    """
    here, there = forks().Pipe(duplex=False)
    process = forks().Process(target=_report, args=(there, work, given))
    process.start()
    there.close()
    try:
        assert here.poll(most), f"{work.__name__} is not done after {most} s"
        problem, found = here.recv()
    except EOFError:
        process.join(10.0)
        raise AssertionError(f"{work.__name__} ended with code {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
        here.close()
    assert not problem, problem
    return found


def _report(there: Any, work: Callable[..., Any], given: tuple[Any, ...]) -> None:
    try:
        there.send(("", work(*given)))
    except BaseException:
        there.send((traceback.format_exc(), None))
