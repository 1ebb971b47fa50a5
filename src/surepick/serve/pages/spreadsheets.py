"""Spreadsheets and Parquet files that somebody uploaded, as CSV: read in a process of its own, with little memory.

Such a file is packed: a small one may unpack to more than a machine holds. So what reads it may fail alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from surepick.errors import InvalidInput
from surepick.serve.web.problems import Refused
from surepick.tables import Table, keeping_notes, read_table, write_table
from surepick.tables.numbers import Written, notation

PACKED = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".parquet")
MOST_MEMORY = 2 * 2**30  # bytes of addresses
MOST_SECONDS = 20
MOST_WAITING = 3 * MOST_SECONDS
TURN = threading.BoundedSemaphore(1)  # all that is uploaded to a process is unpacked one after the other
BUSY = "Others' tables are being read. Send this one again in a moment, or save it as CSV (UTF-8)."
READER = "from surepick.serve.pages.spreadsheets import main; main()"
TOO_LARGE = "is too large to be read here, or damaged. Save the table as CSV (UTF-8), and give that."


def as_csv(content: bytes, suffix: str, shown: str) -> tuple[str, tuple[str, ...]]:
    """(the table of a file as CSV, what is to be noted about it). Of a spreadsheet it is the first sheet.

    Args:
        content: of the file.
        suffix: one of PACKED.
        shown: what messages call the file.

    Raises:
        InvalidInput: it cannot be read, or takes too much memory or time.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder) / f"table{suffix}", Path(folder) / "read.csv"
        path.write_bytes(content)
        command = [sys.executable, "-c", READER, str(path), str(written)]
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if not TURN.acquire(timeout=MOST_WAITING):
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, BUSY, {"retry-after": str(MOST_SECONDS)})
        try:
            done = subprocess.run(command, capture_output=True, timeout=MOST_SECONDS, env=alone, check=False)
            said = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            raise InvalidInput(f"{shown} {TOO_LARGE}") from None
        finally:
            TURN.release()
        if said["error"]:
            raise InvalidInput(said["error"].replace(str(path), shown))
        notes = (note.replace(str(path), shown).partition(" --sheet")[0] for note in said["notes"])
        return written.read_text(encoding="utf-8"), tuple(notes)


def main() -> None:
    """Read the file that is named first, write the second, and say in JSON what there is to say."""
    path, written = sys.argv[1:]
    _limit()
    notes: list[str] = []
    error = ""
    try:
        with keeping_notes() as notes:
            table = read_table(path)
            write_table(written, {name: _cells(table, name) for name in table.columns})
    except InvalidInput as refused:
        error = str(refused)
    except MemoryError:
        error = f"{path} {TOO_LARGE}"
    sys.stdout.write(json.dumps({"error": error, "notes": notes}))


def _cells(table: Table, name: str) -> tuple[str, ...]:
    """The cells of a column as texts, from which its numbers are read as they are: 987.0 beside 1.234."""
    cells = table.text(name)
    typed = not isinstance(table.column(name), tuple) or not table.notation(name).question
    if not typed or not notation([str(cell) for cell in cells], Written()).question:
        return cells
    return tuple(cell + ".0" if cell.removeprefix("-").isdigit() else cell for cell in cells)


def _limit() -> None:
    with suppress(ImportError, ValueError, OSError):  # where a system has no such limits, the time is one
        import resource  # noqa: PLC0415 (not on every system)

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
