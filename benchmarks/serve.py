"""Results a second over HTTP beside the library on the same database, waits of 16 clients, and memory.

    python benchmarks/serve.py [sqlite:///FILE | postgresql+psycopg://USER@HOST/DATABASE]

The study has 64 candidates and asks for many measurements, so that rounds seldom close; a call brings 64 results.
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np

import surepick as sp
from surepick.studies.database import Database
from surepick_server.access.schema import make_tables
from surepick_server.access.tokens import Role, Tokens

CALLS, ROWS, CLIENTS, REPEATS = 60, 64, 16, 3


def make(url: str) -> str:
    """A study of its own."""
    name = f"bench-{secrets.token_hex(4)}"
    arms = sp.Arms(ids=[f"arm-{number}" for number in range(ROWS)])
    noise = sp.SubGaussian(1.0)
    policy = sp.make_policy("certified-independent", arms, epsilon=0.01, delta=0.05, noise=noise, batch_size=2_000_000)
    sp.create_study(url, name, policy)
    return name


def by_library(url: str, workers: int) -> float:
    """Results a second of so many writers in threads, each with a study object of its own."""
    name = make(url)
    ids, calls = [f"arm-{number}" for number in range(ROWS)], CALLS // workers + 1

    def work(worker: int) -> None:
        study = sp.studies.database.resume_study(url, name)
        for call in range(calls):
            study.tell(ids, [0.5] * ROWS, [f"{worker}-{call}-{row}" for row in range(ROWS)], worker=f"w{worker}")

    return workers * calls * ROWS / timed(work, workers)


def timed(work, workers: int) -> float:
    """Seconds until all have done their work."""
    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(workers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begun


@contextlib.contextmanager
def served(url: str) -> Iterator[tuple[str, int]]:
    """(address, number of the process) of a server."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "surepick", "serve", url, "--port", str(port), "--requests-a-minute", "1000000"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    for _ in range(200):
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"{address}/healthz")
            break
        time.sleep(0.05)
    try:
        yield address, process.pid
    finally:
        process.terminate()
        process.wait()


def by_server(
    url: str, workers: int, header: dict[str, str], address: str, token: str
) -> tuple[float, list[float], list[float]]:
    """(results a second, seconds of each lease, seconds of each tell)."""
    name = make(url)
    path, calls = f"{address}/api/v1/studies/{name}", CALLS // workers + 1
    leases: list[float] = []
    tells: list[float] = []

    def work(worker: int) -> None:
        with httpx.Client(headers=header, timeout=60.0) as client:
            for call in range(calls):
                begun = time.perf_counter()
                client.post(f"{path}/leases", json={"max_pulls": 1, "worker": f"{token}/{worker}"}).raise_for_status()
                leases.append(time.perf_counter() - begun)
                rows = [{"id": f"arm-{row}", "reward": 0.5, "key": f"{worker}-{call}-{row}"} for row in range(ROWS)]
                begun = time.perf_counter()
                client.post(f"{path}/results", json={"results": rows}).raise_for_status()
                tells.append(time.perf_counter() - begun)

    seconds = timed(work, workers)
    told = seconds * sum(tells) / (sum(tells) + sum(leases))  # of the time, what telling takes
    return workers * calls * ROWS / told, leases, tells


def memory(pid: int) -> float:
    """MiB that a process holds."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024


def main(url: str) -> None:
    database = Database(url, create=True)
    database.prepare()
    make_tables(database.engine, secrets.token_urlsafe(32))
    text, _ = Tokens(database.engine).make(f"bench-{secrets.token_hex(4)}", Role.admin)
    name = Tokens(database.engine).principal(text).name
    header = {"authorization": f"Bearer {text}"}
    with served(url) as (address, pid):
        for workers in (1, CLIENTS):
            ratios, rates = [], []
            for _ in range(REPEATS):
                library = by_library(url, workers)
                rate, leases, tells = by_server(url, workers, header, address, name)
                ratios.append(rate / library)
                rates.append(rate)
            p99 = [1e3 * float(np.quantile(one, 0.99)) for one in (leases, tells)]
            print(
                f"{workers} clients, {ROWS} results a call: {statistics.median(rates):,.0f} results a second, "
                f"{statistics.median(ratios):.2f} of the library's; p99 of ask {p99[0]:.0f} ms, of tell {p99[1]:.0f} ms"
            )
        print(f"memory of the server: {memory(pid):.0f} MiB")
        arms = sp.Arms(np.random.default_rng(0).standard_normal((100_000, 4)))
        large = f"large-{secrets.token_hex(4)}"
        policy = sp.make_policy("certified-independent", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(1.0))
        sp.create_study(url, large, policy)
        for _ in range(500):
            make(url)
        for one in httpx.get(f"{address}/api/v1/studies", headers=header, timeout=120.0).json()["studies"]:
            httpx.get(f"{address}/api/v1/studies/{one['name']}", headers=header, timeout=60.0).raise_for_status()
        print(f"... after 500 studies and one of 100,000 candidates were looked at: {memory(pid):.0f} MiB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{folder}/bench.db")
