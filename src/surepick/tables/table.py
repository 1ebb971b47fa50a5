"""A table in memory: named columns, each text as written or numbers.

A cell keeps the text of the file until somebody asks for numbers, so that an id is what the file says ("0.7", "007").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.errors import InvalidInput

Column = tuple[str, ...] | FloatArray
MISSING = frozenset({"", "n/a", "na", "nan", "none", "null", "-", "--", "?", "#n/a", "#value!", "#ref!", "#div/0!"})
PERCENTAGE = re.compile(r"[^%]*\d[^%]*%")


class TableWarning(UserWarning):
    """A table was read in a way that its owner should know of."""


@record
class Table:
    """Named columns of equal length.

    Args:
        source: where it came from, for messages.
        columns: name -> cells; text as written, or float64 numbers (Parquet, Arrow, JSON, spreadsheets).
        first_row: number of the first row of cells in the file, for messages; more than 1 where a line of the file
            names the columns.
        parameters, measurements: what an Olympus folder declares of its columns; empty for other tables.
        minimize: whether small measurements are good, None when the table does not say.
        lines: number of each row in the file, for messages; None: they follow upon the first.
        decimal: "," where the numbers have decimal commas.
        percent: a cell like 1.3% is the number 0.013; else it is no number.
        drop_missing: rows that miss a cell which is needed are left out; else they are refused.
    """

    source: str
    columns: dict[str, Column]
    first_row: int = 1
    parameters: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    minimize: bool | None = None
    lines: IntArray | None = None
    decimal: str = "."
    percent: bool = False
    drop_missing: bool = False

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def line_of(self, row: int) -> int:
        """The number of a row in the file."""
        return self.first_row + row if self.lines is None else int(self.lines[row])

    def column(self, name: str) -> Column:
        """The cells of a column.

        Raises:
            InvalidInput: there is none of that name; the known ones are listed.
        """
        if name not in self.columns:
            known = ", ".join(repr(column) for column in self.columns)
            hint = header_hint(tuple(self.columns)) if self.first_row > 1 else ""
            raise InvalidInput(
                f"{self.source} has no column {name!r}; it has {known}. {hint or 'Names must match exactly.'}"
            )
        return self.columns[name]

    def text(self, name: str) -> tuple[str, ...]:
        """The cells of a column as text, exactly as written where the file is text; "" for a missing number."""
        cells = self.column(name)
        return cells if isinstance(cells, tuple) else tuple(number_text(cell) for cell in cells.tolist())

    def number(self, text: str) -> float | None:
        """The number that a cell of this table means; None if it means none."""
        return as_number(text, decimal=self.decimal, percent=self.percent)

    def bad_rows(self, name: str) -> list[int]:
        """Indices of the cells that are not numbers (NaN and infinity are)."""
        cells = self.column(name)
        return [row for row, cell in enumerate(cells) if self.number(cell) is None] if isinstance(cells, tuple) else []

    def are_percentages(self, name: str, rows: Sequence[int]) -> bool:
        """The cells of these rows look like 1.3%, but for empty ones."""
        filled = [cell for cell in map(self.text(name).__getitem__, rows) if cell.strip()]
        return bool(filled) and all(map(PERCENTAGE.fullmatch, filled))

    def missing_rows(self, name: str) -> list[int]:
        """Indices of the cells that hold no value: empty, NaN, or a word for it such as n/a."""
        cells = self.column(name)
        if not isinstance(cells, tuple):
            return [int(row) for row in np.flatnonzero(np.isnan(cells))]
        return [row for row, cell in enumerate(cells) if not cell[:1].isdigit() and cell.strip().lower() in MISSING]

    def numbers(self, name: str) -> FloatArray:
        """The cells of a column as float64.

        Raises:
            InvalidInput: a cell is not a number, or it is not clear which number it is; the first rows are named.
        """
        cells = self.column(name)
        if not isinstance(cells, tuple):
            return np.array(cells, dtype=np.float64)
        found = [self.number(cell) for cell in cells]
        bad = [row for row, number in enumerate(found) if number is None]
        if bad:
            raise self._not_numeric(name, bad)
        self._refuse_two_notations(name, cells)
        return np.array(found, dtype=np.float64)

    def without(self, rows: Sequence[int]) -> Table:
        """The table without some of its rows."""
        left = np.delete(np.arange(self.num_rows), rows).tolist()
        columns: dict[str, Column] = {
            name: tuple(cells[row] for row in left) if isinstance(cells, tuple) else cells[left]
            for name, cells in self.columns.items()
        }
        lines = np.array([self.line_of(row) for row in left], dtype=np.int64)
        return replace(self, columns=columns, lines=lines)

    def _named_cells(self, name: str, rows: Sequence[int]) -> str:
        text = self.text(name)
        return ", ".join(f"row {self.line_of(row)}: {text[row]!r}" for row in rows[:3])

    def _not_numeric(self, name: str, bad: list[int]) -> InvalidInput:
        shown = self._named_cells(name, bad)
        if self.are_percentages(name, bad):
            return InvalidInput(
                f"{self.source}: {len(bad)} of {self.num_rows} cells of column {name!r} are no numbers ({shown}); "
                "these look like percentages; write 0.013 for 1.3%, or give --percent (in Python: percent=True)."
            )
        return InvalidInput(
            f"{self.source}: column {name!r} is not numeric: {len(bad)} of {self.num_rows} cells are not numbers "
            f"({shown}). Correct or drop these rows, or choose another column."
        )

    def _refuse_two_notations(self, name: str, cells: Sequence[str]) -> None:
        """1.234 beside 1,5 is one and a bit, or more than a thousand; 1.3 beside 1.3% is 1.3, or 0.013."""
        points = [row for row, cell in enumerate(cells) if "." in cell] if self.decimal == "," else []
        if points:
            raise InvalidInput(
                f"{self.source} has decimal commas, and column {name!r} has points in {len(points)} of its numbers "
                f"({self._named_cells(name, points)}): is 1.234 more than 1 or more than 1000? Write one of the two "
                "everywhere, and nothing between thousands."
            )
        plain = [row for row, cell in enumerate(cells) if not cell.rstrip().endswith("%")] if self.percent else []
        if 0 < len(plain) < len(cells):
            raise InvalidInput(
                f"{self.source}: column {name!r} has percentages and {len(plain)} numbers without a percent sign "
                f"({self._named_cells(name, plain)}): is 1.3 the same as 1.3% there? Write the sign everywhere, or "
                "nowhere."
            )


def as_number(text: str, *, decimal: str = ".", percent: bool = False) -> float | None:
    """The number that a text means, or None; with `percent` a hundredth of what stands before a percent sign."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        body = text.strip()
    if decimal == "," and "," in body and "." not in body:
        return as_number(body.replace(",", "."), percent=percent)
    if not (percent and body.endswith("%")):
        return None
    body = body[:-1].rstrip()
    number = as_number(body)
    try:
        return None if number is None else float(f"{body}e-2")  # the nearest to 0.013, which 1.3 / 100 need not be
    except ValueError:  # the number has an exponent, or is no number
        return None if number is None else number / 100


def number_text(value: float) -> str:
    """A number as an id: without a point where it is whole, "" where it is missing."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def header_hint(names: Sequence[str]) -> str:
    """What to say of the names of columns that look like a row of cells; "" if they do not."""
    numbers = [name for name in names if as_number(name) is not None]
    if not numbers:
        return ""
    return f"The first line looks like data ({numbers[0]!r} is a number): name the columns in a line above it."
