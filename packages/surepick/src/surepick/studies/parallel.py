"""Measurements that run beside each other: parts of a batch in workers, or as coroutines in an event loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from surepick.errors import InvalidInput

if TYPE_CHECKING:
    import asyncio

TRIES = 3  # of a part whose worker died
Call = partial[Any]  # calls a function that measures with one part's ids
# in which coroutines are awaited; None: a loop of their own, in a thread
LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("LOOP", default=None)
Outcome = tuple[int, Any, BaseException | None]  # (number of the part, what was returned, what was raised)


def is_coroutine_function(function: object) -> bool:
    """Whether what a function returns has to be awaited."""
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    own = getattr(type(inner), "__call__", None)  # noqa: B004 (we look at what it is)
    return any(inspect.iscoroutinefunction(one) for one in (inner, own))


@dataclass(frozen=True, slots=True)
class Workers:
    """Who carries out calls.

    Args:
        jobs: most calls at a time.
    """

    jobs: int = 1

    def outcomes(self, calls: Sequence[Call]) -> Iterator[Outcome]:
        """What came of each call, as it comes: what one raises harms no other. Where a worker died it is made again."""
        if calls and is_coroutine_function(calls[0]):
            return self._awaited(calls)
        if self.jobs == 1:
            return (_made(number, call) for number, call in enumerate(calls))
        return self._in_workers(calls)

    def _in_workers(self, calls: Sequence[Call]) -> Iterator[Outcome]:
        """By joblib: in threads, unless `joblib.parallel_config` says something else (processes, Dask, Ray)."""
        try:
            from joblib import Parallel, delayed  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise InvalidInput('n_jobs needs joblib, which is absent: pip install "surepick[parallel]".') from error
        left = dict(enumerate(calls))
        for again in range(TRIES):
            many = Parallel(n_jobs=self.jobs, prefer="threads", return_as="generator_unordered")
            try:
                for outcome in many(delayed(_made)(number, call) for number, call in left.copy().items()):
                    del left[outcome[0]]
                    yield outcome
            except Exception as error:
                if type(error).__name__ not in DIED or again == TRIES - 1:
                    raise
            if not left:
                return

    def _awaited(self, calls: Sequence[Call]) -> Iterator[Outcome]:
        """In an event loop; told as they come, in the thread that asks."""
        import asyncio  # noqa: PLC0415 (slow to load, and few need it)
        import queue  # noqa: PLC0415

        came: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        with _going(LOOP.get()) as loop:
            running = asyncio.run_coroutine_threadsafe(_gathered(calls, self.jobs, came), loop)
            try:
                yield from (came.get() for _ in calls)
            finally:
                running.cancel()


DIED = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "WorkerCrashedError")  # of joblib, Dask and Ray


def _made(number: int, call: Call) -> Outcome:
    """What came of a call; of an iterator as a list, which a process can hand back."""
    try:
        given = call()
        if isinstance(given, Iterator):
            given = list(islice(given, len(call.args[0]) + 1))  # one too many is as wrong as a million
    except Exception as error:
        return number, None, error
    return number, given, None


@contextmanager
def _going(loop: asyncio.AbstractEventLoop | None) -> Iterator[asyncio.AbstractEventLoop]:
    """The loop, or one of our own in a thread, which ends with it."""
    if loop is not None:
        yield loop
        return
    import asyncio  # noqa: PLC0415
    import threading  # noqa: PLC0415

    own = asyncio.new_event_loop()
    thread = threading.Thread(target=own.run_forever, name="surepick coroutines", daemon=True)
    thread.start()
    try:
        yield own
    finally:
        own.call_soon_threadsafe(own.stop)
        thread.join()
        own.close()


async def _gathered(calls: Sequence[Callable[[], Coroutine[Any, Any, Any]]], jobs: int, came: Any) -> None:
    """All calls, so many at a time."""
    import asyncio  # noqa: PLC0415

    at_once = asyncio.Semaphore(jobs)

    async def one(number: int, call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        async with at_once:
            try:
                outcome: Outcome = number, await call(), None
            except BaseException as error:
                outcome = number, None, error
        came.put(outcome)

    await asyncio.gather(*(one(number, call) for number, call in enumerate(calls)))
