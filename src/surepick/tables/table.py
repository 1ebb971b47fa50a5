"""A table in memory: named columns, each text as written or numbers.

A cell keeps the text of the file until somebody asks for numbers, so that an id is what the file says ("0.7", "007").
"""

from __future__ import annotations

import numpy as np

from surepick.errors import InvalidInput
from surepick.records import FloatArray, record

Column = tuple[str, ...] | FloatArray


@record
class Table:
    """Named columns of equal length.

    Args:
        source: where it came from, for messages.
        columns: name -> cells; text as written, or float64 numbers (Parquet, JSON lines).
        first_row: number of the first row of cells in the file, for messages.
        parameters, measurements: what an Olympus folder declares of its columns; empty for other tables.
        minimize: whether small measurements are good, None when the table does not say.
    """

    source: str
    columns: dict[str, Column]
    first_row: int = 1
    parameters: tuple[str, ...] = ()
    measurements: tuple[str, ...] = ()
    minimize: bool | None = None

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values())))

    def column(self, name: str) -> Column:
        """The cells of a column.

        Raises:
            InvalidInput: there is none of that name; the known ones are listed.
        """
        if name not in self.columns:
            known = ", ".join(repr(column) for column in self.columns)
            raise InvalidInput(f"{self.source} has no column {name!r}; it has {known}. Names must match exactly.")
        return self.columns[name]

    def text(self, name: str) -> tuple[str, ...]:
        """The cells of a column as text, exactly as written where the file is text."""
        cells = self.column(name)
        return cells if isinstance(cells, tuple) else tuple(_number_text(cell) for cell in cells.tolist())

    def bad_rows(self, name: str) -> list[int]:
        """Indices of the cells that are not numbers (NaN and infinity are)."""
        cells = self.column(name)
        return [row for row, cell in enumerate(cells) if as_number(cell) is None] if isinstance(cells, tuple) else []

    def numbers(self, name: str) -> FloatArray:
        """The cells of a column as float64.

        Raises:
            InvalidInput: a cell is not a number; the first rows are named.
        """
        bad = self.bad_rows(name)
        if bad:
            text = self.text(name)
            shown = ", ".join(f"row {self.first_row + row}: {text[row]!r}" for row in bad[:3])
            raise InvalidInput(
                f"{self.source}: column {name!r} is not numeric: {len(bad)} of {self.num_rows} cells are not numbers "
                f"({shown}). Correct or drop these rows, or choose another column."
            )
        return np.array([float(cell) for cell in self.column(name)], dtype=np.float64)


def as_number(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 2.0**53 else repr(value)
