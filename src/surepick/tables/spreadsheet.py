"""Sheets of .xlsx and .ods files as rows, through python-calamine."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Sequence
from functools import reduce
from itertools import compress, dropwhile
from pathlib import Path
from typing import Any

import numpy as np

from surepick.errors import InvalidInput
from surepick.tables.content import file_bytes, readable
from surepick.tables.escapes import unescaped
from surepick.tables.table import Column, number_text, warn, warn_of_comments

Cell = str | float | None
FILLED = re.compile(rb'<(?:\w+:)?c\s(?:[^>]*\s)?r="([A-Z]{1,3})([0-9]{1,7})"[^>]*(?<!/)>')
MOST_CELLS = 50_000_000  # between the first filled cell of a sheet and the last: all of them are laid out in memory
MOST_BYTES = 2_000_000_000
BLOCK = 16_000_000
LONGEST_CELL = 1_000  # bytes of a cell's opening tag


def read_sheet(path: Path, name: str | None) -> list[tuple[int, list[Any]]]:
    """The filled rows of a sheet below its comments, the first of which names the columns.

    Args:
        path: the file.
        name: the sheet; None: the first.

    Returns:
        (number in the sheet, cells) of each row. Cells are texts, numbers or None, in the first row texts. We leave out
        columns without any cell.

    Raises:
        InvalidInput: the file is missing or no spreadsheet, there is no such sheet (the message lists the others), it
            is empty or too large, or python-calamine is absent.

    Warns:
        TableWarning: we skip comments above the header, or other sheets.
    """
    rows = [(line, row) for line, row in _cells(path, name) if any(cell is not None for cell in row)]
    below = list(dropwhile(lambda one: _is_comment(one[1]), rows))
    warn_of_comments(path, len(rows) - len(below))
    if not below:
        raise InvalidInput(f"{path}: the sheet is empty; a table needs a header and at least one row.")
    used = [any(cell is not None for cell in column) for column in zip(*(row for _, row in below), strict=True)]
    (line, header), *others = [(line, list(compress(row, used))) for line, row in below]
    return [(line, [_text(cell).strip() for cell in header]), *others]


def sheet_column(cells: Sequence[Cell]) -> Column:
    """Numbers (missing: NaN) where no cell is a text, else texts, whole numbers without a point; shape (rows,)."""
    if any(isinstance(cell, str) for cell in cells):
        return tuple(map(_text, cells))
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)


def _is_comment(row: Sequence[Cell]) -> bool:
    filled = [cell for cell in row if cell is not None]
    return len(filled) == 1 and str(filled[0]).lstrip().startswith("#")


def _cells(path: Path, name: str | None) -> list[tuple[int, list[Cell]]]:
    """(number in the sheet, cells) of every row."""
    try:
        import python_calamine as calamine  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput(
            f'{path}: spreadsheets need python-calamine, which is absent: pip install "surepick[excel]".'
        ) from error
    content = file_bytes(path)
    with readable(path, "spreadsheet"):
        _check_extent(path, content)
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheet = book.get_sheet_by_name(_chosen(path, book.sheet_names, name))
        first = 1 + (sheet.start or (0, 0))[0]
        return [(line, list(map(_value, row))) for line, row in enumerate(sheet.to_python(), start=first)]


def _chosen(path: Path, sheets: Sequence[str], name: str | None) -> str:
    listed = ", ".join(map(repr, sheets))
    if name is None and len(sheets) > 1:
        warn(
            f"{path} has {len(sheets)} sheets ({listed}); we read the first. --sheet (in Python: sheet=...) names one."
        )
    elif name is not None and name not in sheets:
        raise InvalidInput(f"{path} has no sheet {name!r}; it has {listed}. Names must match exactly.")
    return sheets[0] if name is None else name


def _value(cell: Any) -> Cell:
    if isinstance(cell, str):
        return unescaped(cell) if cell.strip() else None
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else str(cell)


def _text(cell: Cell) -> str:
    return number_text(cell) if isinstance(cell, float) else cell or ""


def _check_extent(path: Path, content: bytes) -> None:
    """Refuse a workbook that would not fit into memory: a reader lays out all cells between the first and the last."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MOST_BYTES:
            raise InvalidInput(f"{path} unpacks to more than {MOST_BYTES:,} bytes; save the table as CSV or Parquet.")
        for entry in entries:
            if not entry.filename.startswith("xl/worksheets/"):
                continue
            with archive.open(entry) as stream:
                height, width = _extent(stream)
            if height * width > MOST_CELLS:
                raise InvalidInput(
                    f"{path}: the filled cells of a sheet span {height:,} rows and {width:,} columns, more than "
                    f"{MOST_CELLS:,} cells. Delete the stray ones far from the table, or save the table as CSV."
                )


def _extent(stream: Any) -> tuple[int, int]:
    """Rows and columns between the first filled cell of a sheet's XML and the last."""
    rows: set[int] = set()
    columns: set[bytes] = set()
    rest = b""
    while block := stream.read(BLOCK):
        text = rest + block
        for column, row in FILLED.findall(text):
            rows.add(int(row))
            columns.add(column)
        rest = text[-LONGEST_CELL:]
    places = [reduce(lambda place, letter: 26 * place + letter - ord("A") + 1, column, 0) for column in columns]
    return (max(rows) - min(rows) + 1, max(places) - min(places) + 1) if rows else (0, 0)
