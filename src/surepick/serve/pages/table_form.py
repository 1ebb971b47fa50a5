"""A table that somebody uploaded, pasted or typed: its text goes along in the form, its columns are shown."""

from __future__ import annotations

import csv
import io
import tempfile
from dataclasses import replace
from pathlib import Path

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.serve.pages.forms import Form
from surepick.serve.pages.spreadsheets import PACKED, as_csv
from surepick.tables import keeping_notes, read_table
from surepick.tables.content import decoded
from surepick.tables.kinds import refuse_foreign
from surepick.tables.selection import looks_numeric

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json", ".jsonl": "jsonl"}
EXAMPLES = 3
ROOM = 2**16  # bytes that the other fields of a form may take
TYPED = "name"  # the column of names that were typed


@record
class Column:
    """A column of a table.

    Args:
        name: its header.
        numeric: it holds numbers.
        distinct: how many different cells it has.
        examples: the first of them.
    """

    name: str
    numeric: bool
    distinct: int
    examples: tuple[str, ...]


@record
class Given:
    """A table.

    Args:
        text: as it came.
        kind: csv, json or jsonl.
        rows: how many it has.
        columns: that it has.
        notes: what is to be known of how it was read.
    """

    text: str
    kind: str
    rows: int
    columns: tuple[Column, ...]
    notes: tuple[str, ...]

    @property
    def likely_id(self) -> str:
        """The column that most likely names the candidates: the first without a repeated cell, words before numbers."""
        alone = [one for one in self.columns if one.distinct == self.rows]
        alone.sort(key=lambda one: one.numeric)
        return (alone or self.columns)[0].name


def table_in(form: Form, *, largest: int) -> Given:
    """The table of a form.

    Args:
        form: with a file, a text or names.
        largest: bytes of a request, in which the table goes along from step to step.

    Raises:
        InvalidInput: there is none, or it cannot be read, or is too large.
    """
    text, kind = form.raw("table"), form.text("kind", "csv")
    notes: tuple[str, ...] = ()
    if "file" in form.files:
        text, kind, notes = _in_file(*form.files["file"])
    elif form.text("names"):
        lines = [line.strip() for line in form.raw("names").splitlines()]
        written = io.StringIO()
        csv.writer(written).writerows([[TYPED], *([line] for line in lines if line)])
        text, kind = written.getvalue(), "csv"
    if not text.strip():
        raise InvalidInput("There is no table yet: choose a file, paste one, or type the names.")
    if (size := len(text.encode())) > (most := largest - ROOM):
        raise InvalidInput(
            f"As text the table has {size:,} bytes, and this page takes {most:,}. Leave out columns that nobody needs."
        )
    found = read(text, kind)
    return replace(found, notes=(*notes, *found.notes))


def _in_file(name: str, content: bytes) -> tuple[str, str, tuple[str, ...]]:
    """(text, kind, notes) of a file that was uploaded.

    Raises:
        InvalidInput: it is of no kind that we read, or damaged.
    """
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


def read(text: str, kind: str) -> Given:
    """What a table says.

    Raises:
        InvalidInput: it cannot be read.
    """
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
    return Given(text, kind, table.num_rows, tuple(columns), tuple(notes))
