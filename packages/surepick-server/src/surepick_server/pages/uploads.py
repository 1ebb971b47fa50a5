"""Tables that somebody brings: uploaded, pasted, typed, an example, or a copy of another study's."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.tables import Table, keeping_notes, read_table, write_table
from surepick.tables.content import decoded, refuse_foreign
from surepick.tables.numbers import Notation, Written
from surepick.tables.selection import looks_numeric
from surepick_server.pages.layout import FOLDER, Form
from surepick_server.web.open_studies import HTTPError

# --- Spreadsheets and Parquet files that somebody uploaded, as CSV: read in a process of its own, with little memory.
#
# Such a file is packed: a small one may unpack to more than a machine holds. So what reads it may fail alone.

PACKED = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".parquet")
MOST_MEMORY = 2 * 2**30  # bytes of addresses
MOST_SECONDS = 20
MOST_WAITING = 3 * MOST_SECONDS
TURN = threading.BoundedSemaphore(1)  # all that is uploaded to a process is unpacked one after the other
BUSY = "Others' tables are being read. Send this one again in a moment, or save it as CSV (UTF-8)."
READER = "from surepick_server.pages.uploads import read_in_child; read_in_child()"
TOO_LARGE = "is too large to be read here, or damaged. Save the table as CSV (UTF-8), and give that."


def as_csv(content: bytes, suffix: str, shown: str) -> tuple[str, tuple[str, ...]]:
    """(the table of a file as CSV, what is to be noted about it). Of a spreadsheet it is the first sheet."""
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder) / f"table{suffix}", Path(folder) / "read.csv"
        path.write_bytes(content)
        command = [sys.executable, "-c", READER, str(path), str(written)]
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if not TURN.acquire(timeout=MOST_WAITING):
            raise HTTPError(HTTPStatus.SERVICE_UNAVAILABLE, BUSY, {"retry-after": str(MOST_SECONDS)})
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


def read_in_child() -> None:
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
    if not typed or not Notation.of([str(cell) for cell in cells], Written()).question:
        return cells
    return tuple(cell + ".0" if cell.removeprefix("-").isdigit() else cell for cell in cells)


def _limit() -> None:
    with suppress(ImportError, ValueError, OSError):  # where a system has no such limits, the time is one
        import resource  # noqa: PLC0415 (not on every system)

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


# --- A table that somebody uploaded, pasted or typed: its text goes along in the form, its columns are shown.

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json", ".jsonl": "jsonl"}
EXAMPLES = 3
ROOM = 2**16  # bytes that the other fields of a form may take
EXAMPLE_NAMES = ("lab", "headlines", "models")
TYPED = "name"  # the column of names that were typed


@record
class Column:
    """A column of a table."""

    name: str  # its header
    numeric: bool  # it holds numbers
    distinct: int  # how many different cells it has
    examples: tuple[str, ...]  # the first of them


@record
class GivenTable:
    """A table."""

    text: str  # as it came
    kind: str  # csv, json or jsonl
    rows: int  # how many it has
    columns: tuple[Column, ...]  # that it has
    notes: tuple[str, ...]  # what is to be known of how it was read
    called: str = ""  # the file that it was

    @property
    def likely_id(self) -> str:
        """The column that most likely names the candidates: the first without a repeated cell, words before numbers."""
        alone = [one for one in self.columns if one.distinct == self.rows]
        alone.sort(key=lambda one: one.numeric)
        return (alone or self.columns)[0].name


def table_in(form: Form, *, largest: int) -> GivenTable:
    """The table of a form."""
    text, kind, called = form.raw("table"), form.text("kind", "csv"), form.text("called")
    notes: tuple[str, ...] = ()
    if "file" in form.files:
        text, kind, notes = _in_file(*form.files["file"])
        called = form.files["file"][0][:80]
    elif form.raw("pasted").strip():
        text, kind, called = form.raw("pasted"), "csv", ""
    elif form.text("names"):
        lines = [line.strip() for line in form.raw("names").splitlines()]
        written = io.StringIO()
        csv.writer(written).writerows([[TYPED], *([line] for line in lines if line)])
        text, kind, called = written.getvalue(), "csv", ""
    if not text.strip():
        raise InvalidInput("There is no table yet: choose a file, paste one, or type the names.")
    if (size := len(text.encode())) > (most := largest - ROOM):
        raise InvalidInput(
            f"As text the table has {size:,} bytes, and this page takes {most:,}. Leave out columns that nobody needs."
        )
    found = read(text, kind)
    return replace(found, notes=(*notes, *found.notes), called=called)


def example(name: str) -> str:
    """The table of an example; "" where there is none of that name."""
    path = FOLDER / "examples" / f"{name}.csv"
    return path.read_text(encoding="utf-8") if name in EXAMPLE_NAMES else ""


def _in_file(name: str, content: bytes) -> tuple[str, str, tuple[str, ...]]:
    """(text, kind, notes) of a file that was uploaded."""
    shown, suffix = repr(name[:80]), Path(name).suffix.lower()
    if suffix in PACKED:
        text, notes = as_csv(content, suffix, shown)
        return text, "csv", notes
    if suffix not in KINDS:
        raise InvalidInput(f"{shown} is none of {', '.join((*KINDS, *PACKED))}. Save the table as CSV (UTF-8).")
    refuse_foreign(shown, content)
    with keeping_notes() as said:
        try:
            text = decoded(shown, content)
        except UnicodeDecodeError:
            raise InvalidInput(f"{shown} is no text in UTF-8. Save it as CSV (UTF-8).") from None
    return text, KINDS[suffix], tuple(said)


def read(text: str, kind: str) -> GivenTable:
    """What a table says."""
    if kind not in KINDS.values():
        raise InvalidInput("This kind of table is not known.")
    text = text.replace("\r\n", "\n")
    with tempfile.TemporaryDirectory() as folder, keeping_notes() as said:
        path = Path(folder) / f"candidates.{kind}"
        path.write_text(text, encoding="utf-8")
        try:
            table = read_table(path)
            numeric = {name: looks_numeric(table, name) for name in table.columns}
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(path), "the table")) from None
    notes = dict.fromkeys(note.replace(str(path), "the table") for note in said)
    columns = []
    for name in table.columns:
        cells = [str(cell) for cell in table.column(name)]
        distinct = tuple(dict.fromkeys(cells))
        columns.append(Column(name, numeric[name], len(distinct), distinct[:EXAMPLES]))
    return GivenTable(text, kind, table.num_rows, tuple(columns), tuple(notes))
