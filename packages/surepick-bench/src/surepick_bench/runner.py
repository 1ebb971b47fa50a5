"""Run experiments: in parallel, each replicate kept as it finishes, resumed after any interruption."""

import contextlib
import functools
import importlib
import importlib.util
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from surepick.core.records import record
from surepick.core.values import whole_number
from surepick.errors import InvalidInput, StorageError
from surepick.policies.registry import needs_torch
from surepick_bench.results import Place, Played, Results, Row, finished, play
from surepick_bench.simulators import throughput
from surepick_bench.spec import Cell, EnvironmentSpec, Experiment, PolicySpec

DAY = 86_400.0  # seconds
OnResult = Callable[[int, int, dict[str, Any]], None]


@record
class Task:
    """A replicate to be run."""

    cell: Cell
    seed: int
    digest: str
    key: str


def runner_tasks(experiments: Sequence[Experiment], *, runs: int, first_seed: int = 0) -> tuple[Task, ...]:
    """Every cell with every seed; seed by seed, so that the replicates left take about as long as those done."""
    whole_number("runs", runs, least=1, meaning="how many seeds every policy is run with.")
    whole_number("seed", first_seed, least=0, meaning="the first of the seeds.")
    cells = list({cell.digest: (cell, cell.digest) for each in experiments for cell in each.cells}.values())
    titles = Counter(cell.title for cell, _ in cells)
    for title, count in titles.items():
        if count > 1:
            raise InvalidInput(
                f"{count} different settings are all called {title}; give them labels, or the experiments names, that "
                "tell them apart."
            )
    return tuple(
        Task(cell, seed, digest, cell.key(seed, digest))
        for seed in range(first_seed, first_seed + runs)
        for cell, digest in cells
    )


def run_experiments(
    experiments: Sequence[Experiment],
    *,
    out: str | Path,
    runs: int,
    first_seed: int = 0,
    jobs: int | None = None,
    data: str | Path = ".",
    on_result: OnResult | None = None,
) -> Results:
    """Run the replicates that are missing or failed before, and write the two tables."""
    if jobs == 0:
        raise InvalidInput("jobs is 0; give the number of processes, or -1 for one per processor.")
    place, wanted = Place(Path(out)), runner_tasks(experiments, runs=runs, first_seed=first_seed)
    with _alone(place):
        kept = dict(finished(place))
        _refuse_unknown(place, kept, wanted)
        if not _left(wanted, kept):
            return Results.of(kept.values())
        for task in _left(wanted, kept):
            if (part := place.read_part(task.digest, task.seed, task.key)) is not None:
                kept[task.key] = part
        left = _left(wanted, kept)
        report = on_result or (lambda _done, _all, _row: None)
        report(len(wanted) - len(left), len(wanted), {})
        for done, (task, played) in enumerate(_played(left, jobs, str(data)), start=len(wanted) - len(left) + 1):
            place.write_part(task.digest, task.seed, played)
            kept[task.key] = played
            report(done, len(wanted), played.replicate)
        results = place.write(kept.values())
        place.remove_parts((task.digest, task.seed) for task in wanted)
        return results


def _left(wanted: Sequence[Task], kept: dict[str, Played]) -> list[Task]:
    """The replicates that are missing or failed."""
    return [task for task in wanted if task.key not in kept or kept[task.key].replicate["failure"]]


def _played(tasks: Sequence[Task], jobs: int | None, data: str) -> Iterator[tuple[Task, Played]]:
    """The replicates in the order in which they finish."""
    try:
        from joblib import Parallel, delayed, parallel_config  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput('experiments need joblib, which is absent: pip install "surepick[bench]".') from error
    from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 (loads multiprocessing)

    network = any(needs_torch(task.cell.policy.name) for task in tasks)
    processes = parallel_config(
        "loky",
        n_jobs=jobs,
        inner_max_num_threads=1,
        idle_worker_timeout=DAY,  # a worker that leaves while the last long ones are played is missed with a warning
        initializer=_end_with,  # at once: a worker may wait for its first task for ever, if another is killed at it
        initargs=(os.getpid(),),
    )
    with contextlib.nullcontext() if jobs is None else processes:
        parallel = Parallel(return_as="generator_unordered", batch_size=1)
        try:
            yield from parallel(delayed(_one)(task, data, network, os.getpid()) for task in tasks)
        except BrokenProcessPool as error:
            raise StorageError(
                "a worker process was killed, perhaps for want of memory. Finished replicates are kept; run the "
                "same again, with fewer --jobs if memory was short."
            ) from error


def _one(task: Task, data: str, network: bool, parent: int) -> tuple[Task, Played]:
    if os.getppid() == parent:
        _end_with(parent)
    if network and importlib.util.find_spec("torch") is not None:
        # first of all: a worker that grows later is replaced
        importlib.import_module("surepick.embeddings.network")
    return task, play(task.cell, task.seed, data)


@functools.cache
def _end_with(parent: int) -> None:
    """End this worker when its parent has ended, even by a kill: else it would wait for work for minutes."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _refuse_unknown(place: Place, kept: dict[str, Played], wanted: Sequence[Task]) -> None:
    unknown = sorted(set(kept) - {task.key for task in wanted})
    if unknown:
        raise InvalidInput(
            f"{place.out} holds {len(unknown):,} replicates that this command does not ask for (the first is "
            f"{unknown[0]}): other experiments, policies, seeds or settings, or an earlier version of surepick. "
            "Choose another --out, or ask for those as well."
        )


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[None]:
    """Hold the folder of parts by a lock, which a killed process loses: two runs would remove each other's."""
    try:
        import fcntl  # noqa: PLC0415 (not on Windows)
    except ImportError:
        place.open_parts()
        yield
        return
    held = _locked(place, fcntl)
    try:
        yield
    finally:
        place.remove_parts(())  # an empty folder, before anybody else can hold it
        os.close(held)


def _locked(place: Place, fcntl: Any) -> int:
    """A descriptor of the folder of parts, locked: of the folder that is there now, not of one that was removed."""
    while True:
        place.open_parts()
        with contextlib.suppress(FileNotFoundError):
            folder = os.open(place.parts, os.O_RDONLY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(folder)
                raise InvalidInput(
                    f"another process is writing {place.out}; wait for it, or choose another --out."
                ) from None
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(folder).st_ino == place.parts.stat().st_ino:
                    return folder
            os.close(folder)


# --- Ranking and selection's three-stage line, beside the totals that its procedures are published with.
#
# A published total is another procedure's, with other assumptions and another promise: it stands beside ours with both,
# and no ratio is made of it. Its designs, its observation (50 jobs after 2,000) and delta = .1, alpha = .05 are the
# same.

RANKING = "ranking-and-selection"
EPSILON, DELTA = 0.1, 0.05
NOISES: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {20: ("bounded:0:15", "normal"), 50: ("bounded:0:45", "normal")}
)
BEST_THROUGHPUT: Mapping[str, float] = MappingProxyType(  # of the exact chain, which the tests solve
    {"line L=20": 5.776121751463529, "line L=50": 15.697584822793669}
)
NORMAL = "normal observations, variances unknown and unequal"
NORMAL_ONLY = "normal observations"
SELECTS_BEST = "the best, if it leads by delta"
SELECTS_GOOD = "one within delta of the best"


@record
class Procedure:
    """What a procedure of others is published with on one instance."""

    name: str  # as its authors call it; "+ CRN": with common random numbers
    total: float  # observations, mean over its replications
    assumes: str  # assumes, promises: in the words of the field
    promises: str


def _normal(promises: str, totals: Mapping[str, float], assumes: str = NORMAL) -> tuple[Procedure, ...]:
    return tuple(Procedure(name, total, assumes, promises) for name, total in totals.items())


_SLIPPAGE = {100: (23_304, 26_876, 28_761), 500: (137_878, 155_376, 176_223), 1000: (291_689, 328_355, 380_382)}
PROCEDURES: Mapping[tuple[str, str], tuple[Procedure, ...]] = MappingProxyType(
    {
        (RANKING, "line L=20"): (
            *_normal(SELECTS_BEST, {"VKN": 2.12e5, "PPP": 4.04e5}),
            *_normal(SELECTS_GOOD, {"PAC-PPP": 4.18e5, "GSP, beta 100": 4.68e5, "GSP, beta 200": 6.53e5}),
        ),
        (RANKING, "line L=50"): (
            *_normal("few good ones lost, on average", {"PASS": 4.26e6}),
            *_normal("none: a budget is spent", {"FBKT + CRN": 4.70e6}),
            *_normal(SELECTS_BEST, {"KT + CRN": 6.17e6}),
            *_normal(SELECTS_GOOD, {"PAC-PPP": 1.076e7, "GSP, beta 100": 1.083e7, "GSP, beta 200": 1.318e7}),
        ),
        ("slippage", "slippage K=2000"): _normal(SELECTS_BEST, {"iKT": 3.06e6, "KT": 4.11e6}, NORMAL_ONLY),
        **{
            ("slippage", f"slippage K={size}"): _normal(
                SELECTS_BEST, dict(zip(("KN", "Paulson", "PPP"), totals, strict=True)), NORMAL_ONLY
            )
            for size, totals in _SLIPPAGE.items()
        },
    }
)


def _cell(length: int, noise: str, **options: str) -> Cell:
    place = EnvironmentSpec(
        f"line L={length}", "simulated-production-line", {"length": length}, reference="independent"
    )
    label = " ".join(["certified-independent", noise, *(f"with {option}" for option in options)])
    policy = PolicySpec(label, "certified-independent", options, noise=noise)
    return Cell(RANKING, place, policy, EPSILON, DELTA, max_pulls=20_000_000)


RANKING_AND_SELECTION = Experiment(
    RANKING,
    "a three-stage line simulated job by job: the best of 3,249 and of 57,624 designs, delta .1, alpha .05",
    tuple(
        cell
        for length, noises in NOISES.items()
        for cell in (*(_cell(length, noise) for noise in noises), _cell(length, "normal", streams="stream"))
    ),
    note="Exponential services have no bound: an observation above the declared 15 (45) has a chance below 1e-9. With "
    "noise normal observations are taken for normal; they have a skewness of .4.",
)


def procedures_for(experiment: str, environment: str) -> tuple[Procedure, ...]:
    """What is published on an instance; empty if nothing is."""
    return PROCEDURES.get((experiment, environment), ())


def right_in_the_long_run(rows: Sequence[Row]) -> tuple[int, int]:
    """How many of these runs chose a design whose throughput is within epsilon of the best, and how many stopped. An
    observation's mean exceeds the throughput, not by the same for all designs, so the two may rank differently."""
    ended = [row for row in rows if row["experiment"] == RANKING and row["ended_by"] == "policy"]
    return sum(_is_good(row) for row in ended), len(ended)


def _is_good(row: Row) -> bool:
    first, second, third, before, after = (int(part) for part in row["best_arm"].split("-"))
    short = BEST_THROUGHPUT[row["environment"]] - throughput(first, second, third, before, after)
    return bool(short <= row["epsilon"] + 1e-9)
