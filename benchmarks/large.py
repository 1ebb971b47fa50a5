"""A certified study of candidates in files, from a million to a hundred million on one machine.

    python benchmarks/large.py [--arms 1000000,10000000,100000000] [--folder large-candidates] [--executor serial]

Gaussian features in 20 dimensions, float32, written to files of at most 10,000,000 candidates (8 GB for a hundred
million; made once and used again); rewards linear with a unit vector, noise sub-Gaussian with sigma .5; epsilon .1,
delta .05, norm bound 1. Each study runs in a process of its own whose memory is limited to 4 GB (RLIMIT_DATA, and the
largest resident size is checked), with BLAS on one thread. Printed: seconds of the whole study, passes over the files
and bytes that these read, the largest resident memory, measurements for the short list and in all, candidates on it,
and whether the answer is within epsilon of the best; then the seconds of reading all files once, in the same process
before it, and how seconds grow (the slope of log seconds against log K). `--executor processes:2` or
`dask:tcp://HOST:PORT` makes the passes elsewhere, with the same answer.

    python benchmarks/large.py --workers 1,2 [--arms 10000000]

starts a Dask scheduler and so many workers on this machine instead, and prints how many times as fast the passes of a
second study are (in the first one each worker loads the package).

    python benchmarks/large.py --design .01 [--arms 1000000,10000000,100000000]

solves the design for all differences instead, to that tolerance, and prints its value, the bound below every design,
the gap that is proved, passes, processor seconds and the largest resident memory (pages of the files among it).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import surepick as sp
from peak_memory import peak_memory
from surepick.chunks.moments import Directions, largest_rows
from surepick.chunks.passes import Meter, Passes, executor_of
from surepick.core.random_streams import stream
from surepick.linalg.rows import one_thread

DIM, SIGMA, EPSILON, DELTA, NORM_BOUND = 20, 0.5, 0.1, 0.05, 1.0
FILE_ROWS, PIECE = 10_000_000, 1_000_000
MOST_MEMORY, MOST_PASSES = 4 * 2**30, 60


def make(folder: Path, num_arms: int) -> None:
    """Write the files, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, num_arms, FILE_ROWS)):
        rows, path = min(FILE_ROWS, num_arms - first), folder / f"{number:04}.npy"
        if path.exists():
            continue
        part = path.with_suffix(".part")
        written = np.lib.format.open_memmap(part, "w+", np.float32, (rows, DIM))
        for top in range(0, rows, PIECE):
            piece = stream(0, "large", first + top).standard_normal((min(PIECE, rows - top), DIM), dtype=np.float32)
            written[top : top + len(piece)] = piece
        written.flush()
        del written
        part.rename(path)


def theta(seed: int) -> np.ndarray:
    """The truth, a unit vector."""
    drawn = stream(seed, "large", "theta").standard_normal(DIM)
    return drawn / np.linalg.norm(drawn)


def _nothing(rows: np.ndarray, _: int) -> float:
    return float(rows[0, 0])


def study(folder: Path, seed: int, executor: str) -> dict[str, object]:
    """One certified study, and what it took."""
    rows, meter, truth = sp.read_arms(folder, blocks=True), Meter(), theta(seed)
    workers = executor_of(executor)
    once = Passes(rows, workers)
    once.map_reduce("reading", _nothing, max)
    noise = stream(seed, "large", "noise")

    def measure(ids: list[str]) -> list[float]:
        wanted = np.array(ids, np.int64)
        there, place = np.unique(wanted, return_inverse=True)
        return list(rows.take(there)[place] @ truth + SIGMA * noise.standard_normal(len(ids)))

    began = time.perf_counter()
    result = sp.find_best(
        rows,
        measure,
        epsilon=EPSILON,
        delta=DELTA,
        noise=sp.SubGaussian(SIGMA),
        norm_bound=NORM_BOUND,
        executor=workers,
        meter=meter,
        progress=False,
    )
    seconds = time.perf_counter() - began
    everywhere = Directions(None, 0.0, np.eye(DIM), 0.0)
    (best,) = largest_rows(once, everywhere, slopes=truth[None], name="truth")
    answer = rows.take(np.array([int(result.best_arm)]))[0] @ truth
    return {
        "arms": rows.num_rows,
        "seconds": seconds,
        "reading": once.meter.passes[0].seconds,
        "passes": [(one.name, round(one.seconds, 3)) for one in meter.passes],
        "bytes": meter.num_bytes,
        "megabytes": peak_memory(),
        "short": result.study.arms.num_arms,
        "first": result.pulls - result.certificate.pulls,
        "pulls": result.pulls,
        "verdict": result.verdict,
        "right": bool(best.values[0] - answer <= EPSILON),
    }


def design(folder: Path, tolerance: float, executor: str) -> dict[str, object]:
    """The design for all differences, and what it took."""
    rows, began = sp.read_arms(folder, blocks=True), time.process_time()
    found = sp.solve_design(rows, tolerance=tolerance, executor=executor)
    seconds = time.process_time() - began
    proved = {"value": found.value, "bound": found.lower_bound, "gap": found.gap, "exact": found.exact}
    spent = {"passes": found.passes, "seconds": seconds, "megabytes": peak_memory()}
    return {"arms": rows.num_rows, "measured": len(found.rows)} | proved | spent


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    """The executor of a Dask scheduler with so many workers of one thread, each a process of its own."""
    from distributed import Client  # noqa: PLC0415 (an extra)

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"
        shared = ["--scheduler-file", str(file), "--no-dashboard"]
        start = "from distributed.cli import dask_{0}; dask_{0}.main()"
        commands = [("scheduler", ["--port", "0", "--host", "127.0.0.1"])]
        commands += [("worker", ["--nthreads", "1", "--no-nanny", "--local-directory", folder])] * workers
        running = []
        try:
            for part, options in commands:
                command = [sys.executable, "-c", start.format(part), *shared, *options]
                running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                while not file.exists():
                    time.sleep(0.05)
            with Client(scheduler_file=str(file)) as client:
                client.wait_for_workers(workers, timeout=60)
                address = client.scheduler.address
            yield f"dask:{address}"
        finally:
            for process in reversed(running):
                process.kill()
                process.wait(timeout=30)


def compared(folder: Path, size: int, numbers: list[int], seed: int) -> None:
    """How many times as fast more workers are."""
    make(folder / str(size), size)
    print("   workers   passes s   times as fast   answer")
    first = 0.0
    for workers in numbers:
        with cluster(workers) as executor:
            for _ in range(2):  # the first one has each worker load the package
                one = in_a_process(folder, size, executor, seed)
        seconds = sum(spent for _, spent in one["passes"])
        first = first or seconds
        right = f"{one['verdict']}, {'right' if one['right'] else 'WRONG'}, {one['pulls']:,} measurements"
        print(f"{workers:>10} {seconds:>10.1f} {first / seconds:>15.2f}   {right}", flush=True)


def in_a_process(folder: Path, size: int, executor: str, seed: int, more: Sequence[str] = ()) -> dict[str, Any]:
    """The outcome of a study, or of a design, in a process of its own."""
    again = [sys.executable, __file__, "--one", str(size), "--folder", str(folder), "--executor", executor, *more]
    done = subprocess.run([*again, "--seed", str(seed)], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", help="1000000,10000000,100000000 unless said otherwise; 10000000 with --workers")
    parser.add_argument("--workers", help="of a Dask cluster that is started, e.g. 1,2")
    parser.add_argument("--design", type=float, help="the tolerance of a design that is solved in the place of studies")
    parser.add_argument("--folder", default="large-candidates", type=Path)
    parser.add_argument("--executor", default="serial")
    parser.add_argument("--seed", default=0, type=int)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
        with one_thread():
            where = given.folder / str(given.one)
            if given.design:
                print(json.dumps(design(where, given.design, given.executor)))
            else:
                print(json.dumps(study(where, given.seed, given.executor)))
        return
    if given.workers:
        size = int(given.arms or 10_000_000)
        compared(given.folder, size, [int(number) for number in given.workers.split(",")], given.seed)
        return
    sizes = [int(size) for size in (given.arms or "1000000,10000000,100000000").split(",")]
    if given.design:
        for size in sizes:
            make(given.folder / str(size), size)
            one = in_a_process(given.folder, size, given.executor, given.seed, ["--design", str(given.design)])
            print(", ".join(f"{name} {value:,.6g}" for name, value in one.items()), flush=True)
        return
    print("      arms   reading s   study s   passes   GB read   peak MB   listed   pulls for it   pulls   answer")
    found = []
    for size in sizes:
        make(given.folder / str(size), size)
        one = in_a_process(given.folder, size, given.executor, given.seed)
        found.append(one)
        right = f"{one['verdict']}, {'right' if one['right'] else 'WRONG'}"
        print(
            f"{one['arms']:>10,} {one['reading']:>11.1f} {one['seconds']:>9.1f} {len(one['passes']):>8} "
            f"{one['bytes'] / 1e9:>9.2f} {one['megabytes']:>9,.0f} {one['short']:>8,} {one['first']:>14,} "
            f"{one['pulls']:>7,}   {right}",
            flush=True,
        )
        print("           " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in one["passes"]), flush=True)
        if one["megabytes"] * 1e6 > MOST_MEMORY or len(one["passes"]) > MOST_PASSES:
            sys.exit(f"more than {MOST_MEMORY / 2**30:g} GB of memory, or more than {MOST_PASSES} passes")
    if len(found) > 1:
        slope = np.polyfit(np.log([one["arms"] for one in found]), np.log([one["seconds"] for one in found]), 1)[0]
        print(f"seconds grow as K to the power {slope:.2f}")


if __name__ == "__main__":
    main()
