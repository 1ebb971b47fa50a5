"""Writers of files that are killed: one good file after another over the same target, as fast as it goes.

`run` forks a writer, kills it with signal 9 at a random moment, compares the target with the two contents that it may
have, and goes on until it has done so many kills. It is for a process that has no threads: see `apart`.
"""

from __future__ import annotations

import io
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from surepick.certificates.document import write_document
from surepick.core import files
from surepick.core.files import write_whole
from surepick.tables import write_table

ROWS = 4_000
Writer = Callable[[Path, str], None]


def table(path: Path, letter: str) -> None:
    write_table(path, {"id": [f"{letter}{row}" for row in range(ROWS)], "reward": [0.5] * ROWS})


def certificate(path: Path, letter: str) -> None:
    write_document({"study": letter, "rounds": [{"number": row, "leader": letter} for row in range(ROWS)]}, path)


def report(path: Path, letter: str) -> None:
    write_whole(path, (f"<p>{letter}</p>\n" * 60_000).encode(), what="the report")


WRITERS: dict[str, Writer] = {
    "certificate.json": certificate,
    "report.html": report,
    "table.csv": table,
    "table.parquet": table,
    "table.jsonl": table,
}


def in_place(path: str | Path, content: bytes, *, what: str = "") -> None:
    """The saboteur: what `open(path, "w")` does, on a slow disk."""
    with io.FileIO(path, "w") as file:
        for start in range(0, len(content), 65_536):
            file.write(content[start : start + 65_536])
            time.sleep(0.005)


def keep_writing(write: Writer, path: Path) -> None:
    """The life of a writer: the two contents in turns, until it is killed. It never returns."""
    try:
        while True:
            for letter in "ab":
                write(path, letter)
    finally:
        os._exit(1)


def kill_once(write: Writer, path: Path, seconds: float) -> None:
    """Kill one writer after so many seconds, which count from its first file."""
    before = path.stat().st_mtime_ns
    child = os.fork()
    if child == 0:
        keep_writing(write, path)
    until = time.monotonic() + 30.0
    while path.stat().st_mtime_ns == before and time.monotonic() < until:
        time.sleep(0.0005)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if not os.WIFSIGNALED(status):
        raise AssertionError("the writer ended before it was killed")


def run(name: str, folder: Path, kills: int, seed: int) -> dict[str, int]:
    """How many kills there were, and after how many the file was the one, the other, or neither; what was left."""
    write, chance = WRITERS[name], random.Random(f"{seed} {name}")
    contents = []
    path = folder / name
    for letter in "ab":
        write(path, letter)
        contents.append(path.read_bytes())
    started = time.monotonic()
    write(path, "a")
    taken = time.monotonic() - started
    found = {"kills": 0, "a": 0, "b": 0, "torn": 0}
    for _ in range(kills):
        kill_once(write, path, chance.uniform(0.0, 4 * taken))
        found["kills"] += 1
        there = path.read_bytes()
        found["a" if there == contents[0] else "b" if there == contents[1] else "torn"] += 1
    found["left"] = len(list(folder.iterdir())) - 1
    return found


def sabotaged_run(name: str, folder: Path, kills: int, seed: int) -> dict[str, int]:
    """As `run`, of writers that write in place."""
    for module in (files, sys.modules["surepick.certificates.document"], sys.modules["surepick.tables.delimited"]):
        module.write_whole = in_place
    globals()["write_whole"] = in_place
    return run(name, folder, kills, seed)
