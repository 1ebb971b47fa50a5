"""Passes over blocks of rows: a function of each block, and a sum of what comes out, in a fixed tree."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from surepick.chunks.sources import Block, RowBlocks
from surepick.core.arms import announce
from surepick.core.records import FloatArray
from surepick.core.values import whole_number
from surepick.errors import InvalidInput
from surepick.linalg.rows import one_blas_thread

T = TypeVar("T")
OfBlock = Callable[[FloatArray, int], T]  # (rows, number of the first one) -> what they say
Combine = Callable[[T, T], T]
Run = Sequence[Block]  # neighbours that one worker goes through at a time


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass that was made."""

    name: str  # what for
    rows: int  # read
    num_bytes: int
    seconds: float  # that it took


@dataclass
class Meter:
    """What passes took, and how far the present one is."""

    # called after each run of blocks with (name, rows seen, rows of the pass, seconds to come); None: nobody watches
    watch: Callable[[str, int, int, float], None] | None = None
    passes: list[Pass] = field(default_factory=list)  # made so far

    @property
    def num_bytes(self) -> int:
        """Read by all passes."""
        return sum(one.num_bytes for one in self.passes)

    def watched(self, name: str, runs: Sequence[Run], results: Iterable[T]) -> Iterator[T]:
        """The results, one a run of blocks, noted as they come."""
        total, seen, size, began = sum(one.stop - one.start for run in runs for one in run), 0, 0, time.monotonic()
        for run, result in zip(runs, results, strict=True):
            seen += sum(block.stop - block.start for block in run)
            size += sum((block.stop - block.start) * block.source.row_bytes for block in run)
            to_come = (time.monotonic() - began) * (total - seen) / seen
            if run is runs[0]:
                announce(to_come, f"Going through {total:,} rows ({name}).")
            if self.watch is not None:
                self.watch(name, seen, total, to_come)
            yield result
        self.passes.append(Pass(name, seen, size, time.monotonic() - began))


class Executor(Protocol):
    """Who does the work of a pass. Whoever it is, the result is the same to the last bit."""

    def reduced(self, blocks: Sequence[Block], function: OfBlock[T], combine: Combine[T], meter: Meter, name: str) -> T:
        """`tree` of the function of each block."""


@dataclass(frozen=True, slots=True)
class Serial:
    """This process, a block after the other."""

    def reduced(self, blocks: Sequence[Block], function: OfBlock[T], combine: Combine[T], meter: Meter, name: str) -> T:
        return tree(meter.watched(name, runs_of(blocks), (applied(function, block) for block in blocks)), combine)


def runs_of(blocks: Sequence[Block], size: int = 1) -> list[Run]:
    """The blocks in runs of 2^n neighbours, the last perhaps of fewer: such a run is a part of `tree`, bit for bit."""
    return [blocks[first : first + size] for first in range(0, len(blocks), size)]


def applied(function: OfBlock[T], block: Block) -> T:
    """What the function says of a block."""
    return function(block.read(), block.first)


def tree(values: Iterable[T], combine: Combine[T]) -> T:
    """The sum of at least one value, of neighbours in a tree that depends on their number alone, as the digits of a
    binary counter carry; what is left is added from its end. So rounding is the same for whoever formed them."""
    held: list[tuple[int, T]] = []
    for value in values:
        height, found = 0, value
        while held and held[-1][0] == height:
            found = combine(held.pop()[1], found)
            height += 1
        held.append((height, found))
    _, result = held.pop()
    while held:
        result = combine(held.pop()[1], result)
    return result


@dataclass(frozen=True)
class Passes:
    """Rows, who goes through them, and what that took."""

    rows: RowBlocks  # in blocks
    executor: Executor = field(default_factory=Serial)  # who does the work
    meter: Meter = field(default_factory=Meter)  # what passes took

    def map_reduce(self, name: str, function: OfBlock[T], combine: Combine[T]) -> T:
        """One pass: the sum of what a function says of each block."""
        return self.executor.reduced(self.rows.blocks(), function, combine, self.meter, name)


# --- Passes by several processes of this machine (joblib), or by the workers of a cluster (Dask).

MOST_DEATHS = 3  # of workers in one pass
AHEAD = 4  # runs that are under way for each worker of a cluster
SHARES = 4  # runs for each worker, at least: a run costs milliseconds to hand out, and the last one is waited for
PATIENCE = 2.0  # seconds after which we ask whether a worker is still there


def _alone(function: OfBlock[T], combine: Combine[T], run: Run) -> T:
    """The sum of what the function says of each block, with one thread of linear algebra, as in this process."""
    with one_blas_thread():
        return tree((applied(function, block) for block in run), combine)


def runs_for(blocks: Sequence[Block], workers: int) -> list[Run]:
    """The blocks in runs, of one size, `SHARES` or more for each worker."""
    return runs_of(blocks, 1 << max(0, (len(blocks) // (SHARES * max(1, workers))).bit_length() - 1))


@dataclass(frozen=True, slots=True)
class Processes:
    """Processes of this machine, by joblib. Where one dies in the middle of a pass, what it had is done again."""

    jobs: int  # how many

    def __post_init__(self) -> None:
        whole_number("jobs", self.jobs, least=1, meaning="the processes that share the work.")

    def reduced(self, blocks: Sequence[Block], function: OfBlock[T], combine: Combine[T], meter: Meter, name: str) -> T:
        runs = runs_for(blocks, self.jobs)
        return tree(meter.watched(name, runs, self._results(runs, function, combine)), combine)

    def _results(self, runs: Sequence[Run], function: OfBlock[T], combine: Combine[T]) -> Iterator[T]:
        try:
            from joblib import Parallel, delayed  # noqa: PLC0415 (an extra)
            from joblib.externals.loky.process_executor import TerminatedWorkerError  # noqa: PLC0415
        except ImportError as error:
            raise InvalidInput(
                'several processes need joblib, which is absent: pip install "surepick[bench]".'
            ) from error
        done, deaths = 0, 0
        while done < len(runs):
            work = Parallel(n_jobs=self.jobs, return_as="generator", batch_size=1, pre_dispatch="2*n_jobs")
            try:
                for result in work(delayed(_alone)(function, combine, run) for run in runs[done:]):
                    done += 1
                    yield result
            except TerminatedWorkerError as error:
                deaths += 1
                if deaths > MOST_DEATHS:
                    raise InvalidInput(
                        f"{deaths} processes were ended from outside in one pass, perhaps for want of memory. Take "
                        "fewer processes, or smaller blocks (block_entries)."
                    ) from error


@dataclass(frozen=True, slots=True)
class Cluster:
    """The workers of a Dask cluster, which must see the same files; what they say of runs of blocks is summed up here.
    A run is given to the same worker in each pass, whose system keeps its files; where one is gone, to another."""

    # the address of the scheduler, to which each pass opens a connection of its own and closes it, so that nothing goes
    # on looking for a scheduler that has ended; or a `distributed.Client`, which stays open
    where: Any

    def reduced(self, blocks: Sequence[Block], function: OfBlock[T], combine: Combine[T], meter: Meter, name: str) -> T:
        with _client(self.where) as client:
            spread = _Spread(client)
            workers = spread.workers()
            runs = runs_for(blocks, len(workers))
            results = spread.results(runs, partial(_alone, function, combine), workers)
            return tree(meter.watched(name, runs, results), combine)


@contextmanager
def _client(where: Any) -> Iterator[Any]:
    """The client itself, or one that is connected to the scheduler of that address for as long as the block lasts."""
    if not isinstance(where, str):
        yield where
        return
    try:
        from distributed import Client  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput('a Dask cluster needs Dask, which is absent: pip install "surepick[dask]".') from error
    try:
        client = Client(where, timeout=20)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInput(f"no Dask scheduler answers at {where}: {error}.") from None
    with client:
        yield client


@dataclass(frozen=True, slots=True)
class _Spread:
    """The work of one pass at the workers of a client."""

    client: Any

    def results(self, runs: Sequence[Run], work: Callable[[Run], T], workers: Sequence[str]) -> Iterator[T]:
        """One a run, in their order; a few runs a worker are under way."""
        waiting, gone = deque[tuple[Run, Any, str | None]](), set[str]()
        for number, run in enumerate(runs):
            worker = workers[number % len(workers)] if workers else None
            waiting.append((run, self._submitted(work, run, worker), worker))
            if len(waiting) > AHEAD * max(1, len(workers)):
                yield self._result(work, *waiting.popleft(), gone)
        while waiting:
            yield self._result(work, *waiting.popleft(), gone)

    def _result(self, work: Callable[[Run], T], run: Run, future: Any, worker: str | None, gone: set[str]) -> T:
        """What comes of a run, wherever it is done in the end: Dask moves nothing that a worker was given by name."""
        while True:
            try:
                result: T = future.result(timeout=0.0 if worker in gone else PATIENCE)
            except TimeoutError:
                if worker is not None and (worker in gone or worker not in self.workers()):
                    gone.add(worker)
                    future.cancel()
                    future, worker = self._submitted(work, run, None), None
            else:
                return result

    def _submitted(self, work: Callable[[Run], T], run: Run, worker: str | None) -> Any:
        named: dict[str, Any] = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        return self.client.submit(work, run, pure=False, **named)

    def workers(self) -> list[str]:
        return sorted(self.client.scheduler_info(n_workers=-1)["workers"])


def executor_of(what: Executor | str | Any | None) -> Executor:
    """Who does the work of passes."""
    if what is None or what == "serial":
        return Serial()
    if isinstance(what, str):
        kind, _, rest = what.partition(":")
        if kind == "processes" and rest.isdecimal():
            return Processes(int(rest))
        if kind == "dask" and rest:
            with _client(rest):  # whether somebody answers
                return Cluster(rest)
        raise InvalidInput(f"executor is {what!r}; give serial, processes:N or dask:tcp://HOST:PORT.")
    if hasattr(what, "submit") and hasattr(what, "scheduler_info"):
        return Cluster(what)
    if hasattr(what, "reduced"):
        return what
    raise InvalidInput(f"executor is a {type(what).__name__}; give serial, processes:N or dask:tcp://HOST:PORT.")
