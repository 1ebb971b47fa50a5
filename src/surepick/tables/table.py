"""A table in memory: named columns, each text as written or numbers.

A cell keeps the text of the file until somebody asks for numbers, so that an id is what the file says ("0.7", "007").
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.text import did_you_mean

Column = tuple[str, ...] | FloatArray
MISSING = frozenset({"", "n/a", "na", "nan", "none", "null", "-", "--", "?", "#n/a", "#value!", "#ref!", "#div/0!"})
EXACT_INTEGERS = 2**53
PERCENTAGE = re.compile(r"[^%]*\d[^%]*%")


class TableWarning(UserWarning):
    """We read a table in a way that its owner should know of."""


def warn(sentence: str) -> None:
    """A `TableWarning`, of the caller of the function that warns."""
    warnings.warn(sentence, TableWarning, stacklevel=3)


def warn_of_comments(path: Path, comments: int) -> None:
    """A `TableWarning` of the comment lines above the header, if there are any."""
    if comments:
        warn(f"{path}: we skip {comments} comment line{'s' * (comments > 1)} (#) above the header.")


@record
class Table:
    """Named columns of equal length.

    Args:
        source: where it came from, for messages.
        columns: name -> cells; text as written, or float64 numbers (Parquet, Arrow, JSON, spreadsheets).
        has_header: a line of the file names the columns.
        parameters, measurements: what an Olympus folder declares of its columns; empty for other tables.
        minimize: whether small measurements are good, None when the table does not say.
        lines: number of each row in the file, shape (rows,), for messages; None: 1, 2, ...
        decimal: "," where the numbers have decimal commas.
        percent: a cell like 1.3% is the number 0.013; else it is no number.
        drop_missing: we leave out rows that miss a cell which is needed; else we refuse them.
    """

    source: str
    columns: dict[str, Column]
    has_header: bool = False
    parameters: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    minimize: bool | None = None
    lines: IntArray | None = None
    decimal: str = "."
    percent: bool = False
    drop_missing: bool = False
    _parsed: dict[str, FloatArray] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def line_of(self, row: int) -> int:
        """The number of a row in the file."""
        return row + 1 if self.lines is None else int(self.lines[row])

    def column(self, name: str) -> Column:
        """The cells of a column.

        Raises:
            InvalidInput: no column has that name; the message lists the known ones.
        """
        if name not in self.columns:
            known = ", ".join(map(repr, self.columns))
            meant = did_you_mean(name, self.columns).strip()
            hint = meant or (self.has_header and header_hint(self.columns)) or "Names must match exactly."
            raise InvalidInput(f"{self.source} has no column {name!r}; it has {known}. {hint}")
        return self.columns[name]

    def text(self, name: str) -> tuple[str, ...]:
        """The cells of a column as text, exactly as written where the file is text; "" for a missing number.

        Raises:
            InvalidInput: as `column`.
        """
        cells = self.column(name)
        return cells if isinstance(cells, tuple) else tuple(number_text(cell) for cell in cells.tolist())

    def numbers(self, name: str) -> FloatArray:
        """The cells of a column as float64, shape (rows,).

        Raises:
            InvalidInput: as `column`; a cell is not a number, or it is not clear which number it is (the message names
                the first rows).
        """
        bad = self.bad_rows(name)
        if bad:
            raise self._not_numeric(name, bad)
        self._refuse_two_notations(name)
        return np.array(self._as_parsed(name), dtype=np.float64)

    def numbers_or_missing(self, name: str) -> FloatArray:
        """The same where cells may hold no value: NaN there.

        Raises:
            InvalidInput: as `numbers`.
        """
        missing = self.missing_rows(name)
        found = np.full(self.num_rows, np.nan)
        found[np.setdiff1d(np.arange(self.num_rows), missing)] = self.without(missing).numbers(name)
        return found

    def bad_rows(self, name: str, *, percent: bool = False) -> list[int]:
        """Indices of the cells that are not numbers (NaN and infinity are); with `percent` percentages are, too."""
        cells, either = self.column(name), percent or self.percent
        if not isinstance(cells, tuple):
            return []
        unknown = self._without_number(name)
        return [row for row in unknown if as_number(cells[row], decimal=self.decimal, percent=either) is None]

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
            found = (as_number(cell, decimal=self.decimal, percent=self.percent) for cell in cells)
            self._parsed[name] = np.array([np.nan if number is None else number for number in found], dtype=np.float64)
        return self._parsed[name]

    def _without_number(self, name: str) -> list[int]:
        rows: list[int] = np.flatnonzero(np.isnan(self._as_parsed(name))).tolist()
        return rows

    def _named_cells(self, name: str, rows: Sequence[int]) -> str:
        text = self.text(name)
        return ", ".join(f"row {self.line_of(row)}: {text[row]!r}" for row in rows[:3])

    def _not_numeric(self, name: str, bad: list[int]) -> InvalidInput:
        wrong = (
            f"{self.source}: column {name!r} is not numeric: {len(bad)} of {self.num_rows} cells are not numbers "
            f"({self._named_cells(name, bad)})."
        )
        if self.are_percentages(name, bad):
            cure = "They look like percentages: write 0.013 for 1.3%, or give --percent (in Python: percent=True)."
        else:
            cure = "Correct or drop these rows, or choose another column."
        return InvalidInput(f"{wrong} {cure}")

    def _refuse_two_notations(self, name: str) -> None:
        """1.234 beside 1,5 is one and a bit, or more than a thousand; 1.3 beside 1.3% is 1.3, or 0.013."""
        cells = self.columns[name]
        if not isinstance(cells, tuple):
            return
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
                f"({self._named_cells(name, plain)}): does 1.3 mean 1.3% there? Write the sign everywhere, or nowhere."
            )


def is_missing(cell: str) -> bool:
    """The text holds no value: it is empty, or a word for that such as n/a."""
    return cell.strip().lower() in MISSING


def as_number(text: str, *, decimal: str = ".", percent: bool = False) -> float | None:
    """The number that a text means, or None; with `percent` a hundredth of what stands before a percent sign."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        body = text.strip()
    if decimal == "," and "." not in body:
        body = body.replace(",", ".")
    is_share = percent and body.endswith("%")
    body = body[:-1].rstrip() if is_share else body
    try:
        number = None if "_" in body else float(body)
    except ValueError:
        return None
    if not is_share or number is None:
        return number
    try:
        return float(f"{body}e-2")  # the nearest to 0.013, which 1.3 / 100 need not be
    except ValueError:  # the number has an exponent, or is not finite
        return number / 100


def cells_as_column(values: Sequence[Any]) -> Column:
    """Numbers when every value is one (missing: NaN), else text; whole numbers that no float holds are text, too."""
    if all(value is None or _is_number(value) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    return tuple("" if value is None else str(value) for value in values)


def _is_number(value: object) -> bool:
    """Whether a float holds it exactly: a key or an id of 17 digits is the text that stands there."""
    if isinstance(value, bool | float):
        return isinstance(value, float)
    return isinstance(value, int) and abs(value) <= EXACT_INTEGERS


def number_text(value: float) -> str:
    """A number as an id: without a point where it is whole, "" where it is missing."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)


def header_hint(names: Iterable[str]) -> str:
    """What to say of names of columns that look like a row of cells; "" if they do not."""
    numbers = [name for name in names if as_number(name) is not None]
    if not numbers:
        return ""
    return f"The first line looks like data ({numbers[0]!r} is a number): name the columns in a line above it."


def check_distinct(path: str | Path, names: Sequence[str]) -> None:
    """Refuse columns of one name.

    Raises:
        InvalidInput: two are equal.
    """
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise InvalidInput(f"{path} has more than one column named {repeated[0]!r}; give each its own name.")
