"""What a durable tell costs: beside a bare INSERT with a commit of its own, and the commands beside an interpreter.

    OMP_NUM_THREADS=1 python benchmarks/storage.py [--postgres URL] [--seconds 3] [--repeats 5] [--only waits]

Tells of an open round of 1,000 candidates, every one acknowledged on disk:

    bare      one INSERT of the same row and one COMMIT, by the plain driver (sqlite3, psycopg) on the same file system
              and server, with the same durability: synchronous=FULL and WAL, or synchronous_commit on; it is checked
    tell 1    Study.tell of one result with a key
    tell 64   Study.tell of 64 results with keys, in one transaction

as results per second, by 1 and by 8 processes that write at the same time; medians over the repeats, and the ratio of
the rate to that of bare. Second table: seconds of `surepick ask`, `tell` and `status` on a study of 1,000 candidates,
from start to end, beside `python -c 'import numpy, scipy.linalg'`; medians of 7, taken in turns. The aim: at most
twice that and .6 s. Third table: how long 8 processes that tell 200 results each, one by one, wait for a call: the
mean, the longest, and their ratio. The aim: at most 5.

    python benchmarks/storage.py --against FOLDER [--postgres URL] [--seconds 3] [--repeats 5]

What a tell costs beside another version of surepick, whose checkout is in FOLDER: the two take turns in one run, each
on a new database. Beside the tells of an open round: whole rounds, told 64 at a time, with what closing them takes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count, product
from pathlib import Path

import numpy as np
from sqlalchemy.engine import make_url

import surepick as sp
from surepick.studies.database import resume_stored_study

ARMS = 1_000
PROCESSES = (1, 8)
COLUMNS = "study, plan, status, key, arm, pulls, sum, squares, lease, source, told_at"
BARE = """CREATE TABLE bare (
    id {serial} PRIMARY KEY, study bigint NOT NULL, plan bigint NOT NULL, status text NOT NULL, key text,
    arm bigint NOT NULL, pulls bigint NOT NULL, sum double precision NOT NULL, squares double precision,
    lease bigint NOT NULL, source text NOT NULL, told_at double precision NOT NULL, UNIQUE (study, key))"""


def ids() -> list[str]:
    return [f"sku-{arm}" for arm in range(ARMS)]


def create(url: str, name: str) -> None:
    """A study of many candidates with an open round."""
    arms = sp.Arms(np.arange(ARMS, dtype=float)[:, None], ids())
    policy = sp.make_policy("action-elimination", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(1.0))
    study = sp.create_study(url, name, arms, policy)
    assert study.missing.all()
    study.log._engine.dispose()


def plain(url: str) -> str:
    """The address as psycopg reads it."""
    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def bare_rows(name: str) -> Iterator[tuple[object, ...]]:
    for number in count():
        yield (1, 1, "counted", f"{name}-{number}", number % ARMS, 1, 0.5, 0.25, 0, name, time.time())


def bare_inserts(url: str, name: str) -> Callable[[], int]:
    """One insert and commit a call, by the plain driver."""
    rows = bare_rows(name)
    if url.startswith("sqlite"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"), timeout=60, isolation_level=None)
        file.execute("PRAGMA synchronous = FULL")
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert file.execute("PRAGMA synchronous").fetchone() == (2,)
        insert = f"INSERT INTO bare ({COLUMNS}) VALUES ({', '.join('?' * 11)})"

        def call() -> int:
            file.execute("BEGIN IMMEDIATE")
            file.execute(insert, next(rows))
            file.execute("COMMIT")
            return 1

        return call
    import psycopg  # noqa: PLC0415 (an extra)

    server = psycopg.connect(plain(url))
    assert server.execute("SHOW synchronous_commit").fetchone() == ("on",)
    assert server.execute("SHOW fsync").fetchone() == ("on",)
    server.commit()
    insert = f"INSERT INTO bare ({COLUMNS}) VALUES ({', '.join(['%s'] * 11)})"

    def call_server() -> int:
        server.execute(insert, next(rows))
        server.commit()
        return 1

    return call_server


def tells(url: str, name: str, together: int) -> Callable[[], int]:
    """So many results a call, by a study. The last candidate is never told, so that the round does not end."""
    study, names, told = resume_stored_study(url, "tells"), ids(), count()
    with study.log._engine.connect() as connection:
        sqlite = url.startswith("sqlite")
        found = connection.exec_driver_sql("PRAGMA synchronous" if sqlite else "SHOW synchronous_commit").scalar()
        assert found == (2 if sqlite else "on"), found

    def call() -> int:
        numbers = [next(told) for _ in range(together)]
        keys = [f"{name}-{number}" for number in numbers]
        receipt = study.tell([names[number % (ARMS - 1)] for number in numbers], [0.5] * together, keys)
        assert receipt.counted == together, receipt
        return together

    return call


def rounds(url: str, name: str) -> Callable[[], int]:
    """Whole rounds, 64 results a tell; results a call."""
    study, names = resume_stored_study(url, "tells"), ids()

    def call() -> int:
        plan = study.ask()
        arms = np.repeat(np.arange(ARMS), plan.counts)
        keys = [f"{name}-{plan.round}-{place}" for place in range(len(arms))]
        for start in range(0, len(arms), 64):
            part = arms[start : start + 64]
            study.tell([names[arm] for arm in part], [0.5] * len(part), keys[start : start + 64])
        return len(arms)

    return call


WORK = {
    "bare": bare_inserts,
    "tell 1": partial(tells, together=1),
    "tell 64": partial(tells, together=64),
    "rounds": rounds,
}


def worker(kind: str, url: str, name: str, seconds: float, barrier: object, done: object) -> None:
    """Write for so many seconds, from the moment at which all can."""
    call = WORK[kind](url, name)
    for _ in range(1 if kind == "rounds" else 3):
        call()
    barrier.wait(120)  # type: ignore[attr-defined]
    start, total = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        total += call()
    done.put(total / (time.perf_counter() - start))  # type: ignore[attr-defined]


def rate(kind: str, url: str, processes: int, seconds: float) -> float:
    """Results a second, all processes together."""
    spawned = multiprocessing.get_context("spawn")
    barrier, done = spawned.Barrier(processes), spawned.SimpleQueue()
    name = secrets.token_hex(4)
    workers = [
        spawned.Process(target=worker, args=(kind, url, f"{name}-{number}", seconds, barrier, done))
        for number in range(processes)
    ]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    if any(one.exitcode for one in workers):
        raise SystemExit("a writer failed; see above")
    return sum(done.get() for _ in workers)


@contextmanager
def database(kind: str, server: str, folder: Path) -> Iterator[str]:
    """A new database with a study and the bare table."""
    if kind == "SQLite":
        file = folder / f"{secrets.token_hex(4)}.db"
        create(f"sqlite:///{file}", "tells")
        with sqlite3.connect(file) as connection:
            connection.execute(BARE.format(serial="integer"))
        connection.close()
        yield f"sqlite:///{file}"
        return
    import psycopg  # noqa: PLC0415 (an extra)

    name = f"surepick_benchmark_{secrets.token_hex(4)}"
    with psycopg.connect(plain(server), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = make_url(server).set(database=name).render_as_string(hide_password=False)
    try:
        create(url, "tells")
        with psycopg.connect(plain(url), autocommit=True) as connection:
            connection.execute(BARE.format(serial="bigserial"))
        yield url
    finally:
        with psycopg.connect(plain(server), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def print_rates(servers: dict[str, str], folder: Path, seconds: float, repeats: int) -> None:
    print(f"results a second, medians of {repeats} times {seconds:g} s; in brackets the share of bare")
    print(f"{'':12s}{'processes':>10s}{'bare':>10s}{'tell 1':>18s}{'tell 64':>18s}", flush=True)
    for kind, server in servers.items():
        for processes in PROCESSES:
            measured: dict[str, list[float]] = {"bare": [], "tell 1": [], "tell 64": []}
            for _ in range(repeats):
                with database(kind, server, folder) as url:
                    for what, rates in measured.items():
                        rates.append(rate(what, url, processes, seconds))
            bare, *others = (statistics.median(rates) for rates in measured.values())
            cells = "".join(f"{one:>10,.0f} ({one / bare:5.2f})" for one in others)
            print(f"{kind:12s}{processes:>10d}{bare:>10,.0f}{cells}", flush=True)


def print_ratios(servers: dict[str, str], other: Path, seconds: float, repeats: int) -> None:
    """Seconds a result of this version, in those of another."""
    sources = {"this": Path(sp.__file__).parents[1], "other": other / "packages/surepick/src"}
    print(
        f"cost of a result told, this version / {other.name}; medians (and ranges) of {repeats} pairs of {seconds:g} s"
    )
    print(f"{'':12s}{'processes':>10s}{'':3s}{'what':10s}{'ratio':>22s}", flush=True)
    for kind, server in servers.items():
        for processes, what in product(PROCESSES, ("tell 1", "tell 64", "rounds")):
            if what == "rounds" and processes > 1:
                continue
            ratios = []
            for repeat in range(repeats):
                rates = {}
                for version in sorted(sources, reverse=bool(repeat % 2)):
                    words = [__file__, "--rate", kind, what, str(processes), str(seconds), server]
                    environment = os.environ | {"PYTHONPATH": str(sources[version])}
                    run = subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)
                    rates[version] = float(run.stdout)
                ratios.append(rates["other"] / rates["this"])
            spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            print(f"{kind:12s}{processes:>10d}{'':3s}{what:10s}{spread:>22s}", flush=True)


def print_one_rate(kind: str, what: str, processes: str, seconds: str, server: str) -> None:
    """The other half of a pair, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, database(kind, server, Path(folder)) as url:
        print(rate(what, url, int(processes), float(seconds)))


def print_commands(url: str, folder: Path, repeats: int = 7) -> None:
    """Seconds of the daily commands from start to end, taken in turns so that all see the same machine."""
    results = folder / "results.csv"
    names = ids()
    program = [sys.executable, "-m", "surepick"]
    commands = {
        "python -c 'import numpy, scipy.linalg'": [sys.executable, "-c", "import numpy, scipy.linalg"],
        "surepick ask": [*program, "ask", url, "tells", "--format", "json"],
        "surepick ask --worker (64)": [*program, "ask", url, "tells", "--worker", "lab", "--max-pulls", "64"],
        "surepick tell (64 results)": [*program, "tell", url, "tells", str(results)],
        "surepick status": [*program, "status", url, "tells"],
    }
    seconds: dict[str, list[float]] = {label: [] for label in commands}
    for turn in range(repeats + 1):
        rows = [f"{names[place]},0.5,{turn}-{place}" for place in range(64)]
        results.write_text("id,reward,key\n" + "\n".join(rows) + "\n")
        for label, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            if turn:  # the first fills the caches
                seconds[label].append(time.perf_counter() - start)
    reference = statistics.median(seconds["python -c 'import numpy, scipy.linalg'"])
    print(f"\ncommands at {ARMS:,} candidates, medians of {repeats}; aim: at most {2 * reference + 0.6:.2f} s")
    for label, taken in seconds.items():
        print(f"{label:42s}{statistics.median(taken):>8.2f} s   (from {min(taken):.2f} to {max(taken):.2f})")


def waiter(url: str, name: str, results: int, barrier: object, done: object) -> None:
    """The seconds of each call of one of several writers."""
    call = tells(url, name, 1)
    call()
    barrier.wait(120)  # type: ignore[attr-defined]
    times = [time.perf_counter()]
    for _ in range(results):
        call()
        times.append(time.perf_counter())
    done.put(np.diff(times))  # type: ignore[attr-defined]


def print_waits(servers: dict[str, str], folder: Path, repeats: int, writers: int = 8, results: int = 200) -> None:
    print(f"\nmilliseconds of a tell of one result, {writers} writers with {results} results each, {repeats} times")
    print(f"{'':12s}{'mean':>10s}{'longest':>10s}{'ratio':>10s}{'results/s':>12s}", flush=True)
    spawned = multiprocessing.get_context("spawn")
    for kind, server in servers.items():
        for _ in range(repeats):
            with database(kind, server, folder) as url:
                barrier, done = spawned.Barrier(writers), spawned.SimpleQueue()
                started = [
                    spawned.Process(target=waiter, args=(url, f"w{number}", results, barrier, done))
                    for number in range(writers)
                ]
                for one in started:
                    one.start()
                each = [done.get() for _ in started]
                for one in started:
                    one.join()
            waits, longest = np.concatenate(each), max(float(theirs.sum()) for theirs in each)
            mean, most = 1e3 * waits.mean(), 1e3 * waits.max()
            print(f"{kind:12s}{mean:>10.1f}{most:>10.1f}{most / mean:>10.1f}{len(waits) / longest:>12,.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--postgres", default=os.environ.get("SUREPICK_TEST_POSTGRES_URL"), help="a server to use too")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", choices=("rates", "commands", "waits"))
    parser.add_argument("--folder", help="where SQLite's file is; none: the folder for temporary files")
    parser.add_argument("--against", type=Path, help="the checkout of another version, to take turns with")
    parser.add_argument("--rate", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.rate:
        print_one_rate(*chosen.rate)
        return
    servers = {"SQLite": ""} | ({"PostgreSQL": chosen.postgres} if chosen.postgres else {})
    if chosen.against:
        print_ratios(servers, chosen.against.resolve(), chosen.seconds, chosen.repeats)
        return
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        if chosen.only in (None, "rates"):
            print_rates(servers, Path(folder), chosen.seconds, chosen.repeats)
        if chosen.only in (None, "waits"):
            print_waits(servers, Path(folder), chosen.repeats)
        if chosen.only in (None, "commands"):
            with database("SQLite", "", Path(folder)) as url:
                print_commands(url, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
