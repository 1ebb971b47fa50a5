"""A table in memory: named columns, each text as written or numbers.

A cell keeps the text of the file until somebody asks for numbers, so that an id is what the file says ("0.7", "007").
"""

from __future__ import annotations

import re
import struct
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.tables.numbers import OTHER, Notation, Written, cell_number, cell_text, is_missing, number_or_none, truth
from surepick.text import did_you_mean

Column = tuple[str, ...] | FloatArray
EXACT_INTEGERS = 2**53
EXACTLY = "Names must match exactly."
LOOKED_AT = 20  # rows, for a header that is not the first line
LONGEST = 60  # letters of a cell in a message
LIMIT = re.compile(r"[<>≤≥≈~]")  # of detection
NO_UNIT = re.compile(r"\W*\d|[<>≤≥≈~]|fail|error", re.IGNORECASE)
WITH_UNIT = re.compile(r"\D{0,4}[\d.,' \u00a0]*\d\s*[^\d\s]{0,12}")  # $1,234, 3 mg/L
PERCENTAGE = re.compile(r"[^%]*\d[^%]*%")


class TableWarning(UserWarning):
    """We read a table in a way that its owner should know of."""


_KEPT: ContextVar[list[str] | None] = ContextVar("notes on tables", default=None)


@contextmanager
def keeping_notes() -> Iterator[list[str]]:
    """The notes on tables that are read inside, in place of warnings.

    Only those of this thread: `warnings.catch_warnings` would catch what other threads warn of, too.
    """
    kept: list[str] = []
    token = _KEPT.set(kept)
    try:
        yield kept
    finally:
        _KEPT.reset(token)


def warn(sentence: str) -> None:
    """A `TableWarning`, of the caller of the function that warns; or a note, inside of `keeping_notes`."""
    kept = _KEPT.get()
    if kept is None:
        warnings.warn(sentence, TableWarning, stacklevel=3)
    else:
        kept.append(sentence)


def warn_of_comments(path: Path, comments: int) -> None:
    """A `TableWarning` of the comment lines above the header, if there are any."""
    if comments:
        warn(f"{path}: we skip {comments} comment line{'s' * (comments > 1)} (#) above the header.")


class Understood:
    """How the numbers of columns are written, as far as somebody asked, and what was said of it."""

    def __init__(self) -> None:
        self.notations: dict[str, Notation] = {}
        self.said: set[str] = set()

    def news(self, source: str, name: str, found: Notation) -> list[str]:
        """The notes on a column, without those of a kind that was said of the table."""
        kinds = {note if found.truths else note.partition(":")[0]: note for note in found.notes}
        news = [f"{source}: {note} (column {name!r})." for kind, note in kinds.items() if kind not in self.said]
        self.said |= kinds.keys()
        return news


@record
class Table:
    """Named columns of equal length."""

    source: str  # where it came from, for messages
    columns: dict[str, Column]  # name -> cells: text as written, or float64 numbers (Parquet, Arrow, JSON, sheets)
    has_header: bool = False  # a line of the file names the columns
    parameters: tuple[str, ...] = ()  # what an Olympus folder declares of its columns; empty for other tables
    measurements: tuple[str, ...] = ()
    minimize: bool | None = None  # whether small measurements are good, None when the table does not say
    lines: IntArray | None = None  # number of each row in the file, (rows,), for messages; None: 1, 2, ...
    written: Written = field(default_factory=Written)  # what is declared or known of how numbers are written
    usual_id: str | None = None  # the column of the ids if none is named; None: rows are numbered, or Olympus says
    drop_missing: bool = False  # we leave out rows that miss a cell which is needed; else we refuse them
    # how the numbers of each column are written, found from all rows of the file; tables with some of them share it
    understood: Understood = field(default_factory=Understood, repr=False, compare=False)
    _parsed: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def line_of(self, row: int) -> int:
        """The number of a row in the file."""
        return row + 1 if self.lines is None else int(self.lines[row])

    def column(self, name: str) -> Column:
        """The cells of a column."""
        if name not in self.columns:
            known = ", ".join(map(repr, self.columns))
            meant = did_you_mean(name, self.columns).strip()
            hint = self._header_below(name) or meant or (self.has_header and header_hint(self.columns)) or EXACTLY
            raise InvalidInput(f"{self.source} has no column {name!r}; it has {known}. {hint}")
        return self.columns[name]

    def _header_below(self, name: str) -> str:
        """What to say where a name stands in one of the first rows; "" where it does not."""
        rows = range(min(self.num_rows, LOOKED_AT) if self.has_header else 0)
        texts = [cells for cells in self.columns.values() if isinstance(cells, tuple)]
        words = re.compile(rf"(.*[,;\t|])?\s*{re.escape(name.strip())}\s*([,;\t|].*)?", re.DOTALL)
        found = next((row for row in rows if any(words.fullmatch(cells[row]) for cells in texts)), None)
        if found is None:
            return ""
        line = self.line_of(found)
        return f"The header seems to be line {line}; give --header {line} (in Python: header={line})."

    @property
    def units(self) -> str:
        """What stands in the first row where it looks like units, words above numbers and no number; else ""."""
        first = {name: cells[0].strip() for name, cells in self.columns.items() if isinstance(cells, tuple) and cells}
        alone = len(first) == len(self.columns) and self.num_rows > 1
        if not alone or any(cell_number(cell, decimal=mark) is not None for cell in first.values() for mark in OTHER):
            return ""
        words = (name for name, cell in first.items() if not is_missing(cell) and truth(cell) is None)
        above = (name for name in words if not NO_UNIT.match(first[name]) and self.bad_rows(name, percent=True) == [0])
        return next((first[name] for name in above if self._without_number(name) != list(range(self.num_rows))), "")

    @property
    def units_hint(self) -> str:
        """What to say of a row of units."""
        return (
            f"Line {self.line_of(0)} looks like units ({self.units[:LONGEST]!r}): leave it out with --skip-units (in "
            "Python: skip_units=True)"
        )

    def text(self, name: str) -> tuple[str, ...]:
        """The cells of a column as text, exactly as written where the file is text; "" for a missing number."""
        cells = self.column(name)
        return cells if isinstance(cells, tuple) else tuple(number_as_id(cell) for cell in cells.tolist())

    def numbers(self, name: str) -> FloatArray:
        """The cells of a column as float64, shape (rows,)."""
        if isinstance(cells := self.column(name), tuple):
            found = self.notation(name)
            bad = [row for row in self.bad_rows(name) if not (found.truths and truth(cells[row]) is not None)]
            if bad:
                raise self._not_numeric(name, bad)
            if found.question:
                raise InvalidInput(f"{self.source}, column {name!r}: {found.doubt}")
            self._refuse_bare_shares(name)
            for note in self.understood.news(self.source, name, found):
                warn(note)
        return np.array(self._as_parsed(name), dtype=np.float64)

    def notation(self, name: str) -> Notation:
        """How the numbers of a column of texts are written."""
        known = self.understood.notations
        if name not in known:
            cells = self.column(name)
            known[name] = Notation.of(cells if isinstance(cells, tuple) else (), self.written)
        return known[name]

    def numbers_or_missing(self, name: str) -> FloatArray:
        """The same where cells may hold no value: NaN there."""
        missing = self.missing_rows(name)
        found = np.full(self.num_rows, np.nan)
        found[np.setdiff1d(np.arange(self.num_rows), missing)] = self.without(missing).numbers(name)
        return found

    def bad_rows(self, name: str, *, percent: bool = False) -> list[int]:
        """Indices of the cells that are not numbers (NaN and infinity are); with `percent` percentages are, too."""
        cells, either = self.column(name), percent or self.written.percent
        if not isinstance(cells, tuple):
            return []
        unknown = range(len(cells)) if self.notation(name).truths else self._without_number(name)
        marks = (self.written.decimal,) if self.written.decimal else OTHER
        return [
            row for row in unknown if all(cell_number(cells[row], decimal=one, percent=either) is None for one in marks)
        ]

    def missing_rows(self, name: str) -> list[int]:
        """Indices of the cells that hold no value: empty, NaN, or a word for it such as n/a."""
        cells = self.column(name)
        return [row for row in self._without_number(name) if not isinstance(cells, tuple) or is_missing(cells[row])]

    def are_percentages(self, name: str, rows: Sequence[int]) -> bool:
        """The cells of these rows look like 1.3%, but for empty ones."""
        filled = [cell.strip() for cell in map(self.text(name).__getitem__, rows) if cell.strip()]
        return bool(filled) and all(map(PERCENTAGE.fullmatch, filled))

    def without(self, rows: Sequence[int]) -> Table:
        """The table without some of its rows."""
        left = np.delete(np.arange(self.num_rows), rows).tolist()
        columns: dict[str, Column] = {
            name: tuple(cells[row] for row in left) if isinstance(cells, tuple) else cells[left]
            for name, cells in self.columns.items()
        }
        return replace(self, columns=columns, lines=np.array([self.line_of(row) for row in left], dtype=np.int64))

    def _as_parsed(self, name: str) -> FloatArray:
        """The numbers of a column, shape (rows,), NaN where a cell is none; parsed once."""
        cells = self.column(name)
        if not isinstance(cells, tuple):
            return cells
        if name not in self._parsed:
            how, percent = self.notation(name), self.written.percent
            found = (cell_number(cell, decimal=how.decimal, percent=percent) for cell in cells)
            if how.truths:
                found = (truth(cell) if number is None else number for cell, number in zip(cells, found, strict=True))
            self._parsed[name] = np.array([np.nan if number is None else number for number in found], dtype=np.float64)
        return self._parsed[name]

    def _without_number(self, name: str) -> list[int]:
        return np.flatnonzero(np.isnan(self._as_parsed(name))).tolist()

    def _named_cells(self, name: str, rows: Sequence[int]) -> str:
        text = self.text(name)
        return ", ".join(f"row {self.line_of(row)}: {text[row][:LONGEST]!r}" for row in rows[:3])

    def _not_numeric(self, name: str, bad: list[int]) -> InvalidInput:
        wrong = (
            f"{self.source}: column {name!r} is not numeric: {len(bad)} of {self.num_rows} cells are not numbers "
            f"({self._named_cells(name, bad)})."
        )
        cells = [self.text(name)[row].strip() for row in bad]
        if self.are_percentages(name, bad):
            cure = "They look like percentages: write 0.013 for 1.3%, or give --percent (in Python: percent=True)."
        elif bad == [0] and self.units:
            cure = f"{self.units_hint}. Else correct it, or choose another column."
        elif all(truth(cell) is not None for cell in cells):
            cure = "Words for yes and no stand alone, of one kind: write 1 and 0 for them."
        elif any(map(LIMIT.match, cells)):
            cure = "A limit is no number, nor a missing value. Decide with the laboratory what stands for it."
        elif all(map(WITH_UNIT.fullmatch, cells)):
            cure = "Write the number alone, without a unit or a currency."
        else:
            cure = "Correct or drop these rows, or choose another column."
        return InvalidInput(f"{wrong} {cure}")

    def _refuse_bare_shares(self, name: str) -> None:
        """1.3 beside 1.3% is 1.3, or 0.013."""
        cells = self.text(name) if self.written.percent else ()
        plain = [row for row, cell in enumerate(cells) if not cell.rstrip().endswith("%")]
        if 0 < len(plain) < len(cells):
            raise InvalidInput(
                f"{self.source}: column {name!r} has percentages and {len(plain)} numbers without a percent sign "
                f"({self._named_cells(name, plain)}): does 1.3 mean 1.3% there? Write the sign everywhere, or nowhere."
            )


def cells_as_column(values: Sequence[Any]) -> Column:
    """Numbers when every value is one (missing: NaN), else text; whole numbers that no float holds are text, too."""
    if all(value is None or _is_number(value) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    return tuple("" if value is None else cell_text(value) for value in values)


def _is_number(value: object) -> bool:
    """Whether a float holds it exactly: a key or an id of 17 digits is the text that stands there."""
    if isinstance(value, bool | float):
        return isinstance(value, float)
    return isinstance(value, int) and abs(value) <= EXACT_INTEGERS


def number_as_id(value: float) -> str:
    """A number as an id: without a point where it is whole, "" where it is missing."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def header_hint(names: Iterable[str]) -> str:
    """What to say of names of columns that look like a row of cells; "" if they do not."""
    numbers = [name for name in names if number_or_none(name) is not None]
    if not numbers:
        return ""
    return f"The first line looks like data ({numbers[0]!r} is a number): name the columns in a line above it."


def check_distinct(path: str | Path, names: Sequence[str]) -> None:
    """Refuse columns of one name."""
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise InvalidInput(f"{path} has more than one column named {repeated[0]!r}; give each its own name.")


# --- How far the cells of an old workbook (.xls) reach, found without laying them out.
#
# Such a file is a compound file: sectors, a table that chains them, and names of streams. Its workbook has records of
# a number, a length and so many bytes; a cell begins with its row and its column.

ENDS = 0xFFFFFFFA  # and beyond: no sector
HEADER_ENTRIES = 109  # sectors of the table that the header names itself
CELLS = frozenset({0x02, 0x03, 0x04, 0x05, 0x06, 0xBD, 0xD6, 0xFD, 0x203, 0x204, 0x205, 0x206, 0x207, 0x27E, 0x406})
SEVERAL = 0xBD  # cells side by side: the last two bytes are the last column
STREAMS = ("Workbook", "Book")


def cells_reach(content: bytes) -> tuple[int, int]:
    """(rows, columns) between the first and the last filled cell of any sheet; (0, 0) where there are none."""
    rows: set[int] = set()
    columns: set[int] = set()
    stream, place = _workbook(content), 0
    while place + 4 <= len(stream):
        number, length = struct.unpack_from("<HH", stream, place)
        entry, place = stream[place + 4 : place + 4 + length], place + 4 + length
        if number in CELLS and len(entry) >= 4:
            row, column = struct.unpack_from("<HH", entry)
            rows.add(row)
            columns.add(column)
            if number == SEVERAL:
                columns.add(struct.unpack_from("<H", entry, len(entry) - 2)[0])
    return (max(rows) - min(rows) + 1, max(columns) - min(columns) + 1) if rows else (0, 0)


def _workbook(content: bytes) -> bytes:
    """The stream with the workbook."""
    shift, small_shift = struct.unpack_from("<HH", content, 30)
    if not 7 <= shift <= 16 or not 2 <= small_shift <= shift:
        raise ValueError(f"its sectors have 2^{shift} bytes")
    size = 1 << shift
    first, _, cutoff, small_start, _, more, _ = struct.unpack_from("<IIIIIII", content, 48)
    tables = list(struct.unpack_from(f"<{HEADER_ENTRIES}I", content, 76))
    seen: set[int] = set()
    while more < ENDS and more not in seen:
        seen.add(more)
        *entries, more = _numbers(_sector(content, more, size))
        tables += entries
    table = [entry for place in tables if place < ENDS for entry in _numbers(_sector(content, place, size))]

    def stream(start: int, length: int) -> bytes:
        return b"".join(_sector(content, place, size) for place in _chain(table, start))[:length]

    names = {}
    listed = stream(first, len(content))
    for place in range(0, len(listed) - 127, 128):
        entry = listed[place : place + 128]
        length = struct.unpack_from("<H", entry, 64)[0]
        names[entry[: max(length - 2, 0)].decode("utf-16-le", errors="replace")] = struct.unpack_from("<II", entry, 116)
    found = next((names[name] for name in STREAMS if name in names), None)
    if found is None:
        raise ValueError("it has no workbook")
    if found[1] >= cutoff:
        return stream(*found)
    small_table, small = _numbers(stream(small_start, len(content))), stream(*struct.unpack_from("<II", listed, 116))
    step = 1 << small_shift
    return b"".join(small[place * step : (place + 1) * step] for place in _chain(small_table, found[0]))[: found[1]]


def _sector(content: bytes, place: int, size: int) -> bytes:
    return content[(place + 1) * size : (place + 2) * size]


def _numbers(sector: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(sector) // 4}I", sector[: len(sector) // 4 * 4]))


def _chain(table: Sequence[int], start: int) -> Iterator[int]:
    seen: set[int] = set()
    while start < ENDS and start not in seen:
        seen.add(start)
        yield start
        start = table[start]
