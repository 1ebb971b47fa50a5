"""Measurements that run beside each other: parts of a batch in workers, or as coroutines in an event loop."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
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
Outcome = tuple[int, Any, BaseException | None]  # (number of the part, what was returned, what was raised)


def is_coroutine_function(function: object) -> bool:
    """Whether what a function returns has to be awaited."""
    inner: Any = function
    while isinstance(inner, partial):
        inner = inner.func
    own = getattr(type(inner), "__call__", None)  # noqa: B004 (we look at what it is)
    return any(inspect.iscoroutinefunction(one) for one in (inner, own))


@dataclass(slots=True)
class Outer:
    """A program that waits for the answer in an event loop of its own."""

    loop: asyncio.AbstractEventLoop
    cancelled: bool = False  # it waits no more


OUTER: ContextVar[Outer | None] = ContextVar("OUTER", default=None)


class Workers:
    """Who carries out calls; a context, at whose end an event loop of our own ends.

    Args:
        jobs: most calls at a time.
    """

    def __init__(self, jobs: int = 1) -> None:
        self.jobs = jobs
        self._own = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self._own.close()

    def outcomes(self, calls: Sequence[Call]) -> Iterator[Outcome]:
        """What came of each call, as it comes: what one raises harms no other. Where a worker died it is made again."""
        outer = OUTER.get()
        if outer is not None and outer.cancelled:
            raise Cancelled
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

        if self._loop is None:  # the same for all calls of a study: what a program opens in it stays usable
            outer = OUTER.get()
            self._loop = self._own.enter_context(_own_loop()) if outer is None else outer.loop
        came: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
        running = asyncio.run_coroutine_threadsafe(_gathered(calls, self.jobs, came), self._loop)
        try:
            yield from (came.get() for _ in calls)
        finally:
            running.cancel()


class Cancelled(BaseException):
    """Nobody waits for the answer any more."""


DIED = ("TerminatedWorkerError", "BrokenProcessPool", "KilledWorker", "WorkerCrashedError")  # of joblib, Dask and Ray


def _made(number: int, call: Call) -> Outcome:
    """What came of a call; of an iterator as a list, which a process can hand back."""
    try:
        given = call()
        if isinstance(given, Iterator):
            given = list(islice(given, len(call.args[0]) + 1))  # one too many is as wrong as a million
    except Exception as error:
        return number, None, _portable(error)
    return number, given, None


def _portable(error: Exception) -> Exception:
    """The error; in another process what can be handed back of one that cannot."""
    import multiprocessing  # noqa: PLC0415
    import pickle  # noqa: PLC0415

    if multiprocessing.parent_process() is None:
        return error
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _own_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop in a thread; at the end what still runs in it is cancelled and waited for."""
    import asyncio  # noqa: PLC0415
    import threading  # noqa: PLC0415

    own = asyncio.new_event_loop()
    thread = threading.Thread(target=own.run_forever, name="surepick coroutines", daemon=True)
    thread.start()
    try:
        yield own
    finally:
        asyncio.run_coroutine_threadsafe(_all_cancelled(), own).result()
        own.call_soon_threadsafe(own.stop)
        thread.join()
        own.close()


async def _all_cancelled() -> None:
    """Every other task of the loop is cancelled and has ended."""
    import asyncio  # noqa: PLC0415

    others = asyncio.all_tasks() - {asyncio.current_task()}
    for one in others:
        one.cancel()
    await asyncio.gather(*others, return_exceptions=True)


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
