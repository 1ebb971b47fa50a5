"""Sheets of .xlsx, .xlsb, .xls and .ods files as rows, through python-calamine."""

import io
import re
import zipfile
from collections.abc import Sequence
from functools import reduce
from itertools import compress, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from surepick.errors import InvalidInput
from surepick.tables.content import file_bytes, readable, unescaped
from surepick.tables.numbers import NumberText
from surepick.tables.table import Column, cells_reach, number_as_id, warn, warn_of_comments

Cell = str | float | None
SheetRows = list[tuple[int, list[Any]]]  # (number in the sheet, cells)
MOST_LISTED = 6  # sheets in a message
FILLED = re.compile(rb'<(?:\w+:)?c\s(?:[^>]*\s)?r="([A-Z]{1,3})([0-9]{1,7})"[^>]*(?<!/)>')
MOST_CELLS = 50_000_000  # between the first filled cell of a sheet and the last: all of them are laid out in memory
MOST_BYTES = 2_000_000_000
BLOCK = 16_000_000
ROW_RECORD, CELL_RECORDS, FOUR = 0, range(2, 12), 4  # of .xlsb: a row, its filled cells; bytes of a number
LONGEST_CELL = 1_000  # bytes of a cell's opening tag


def read_sheet(path: Path, name: str | None, *, header: int | None = None) -> SheetRows:
    """The filled rows of a sheet below its comments, the first of which names the columns; it warns of the others."""
    book = _opened(path)
    return _table_rows(path, book, _chosen(path, book, name), header)


def read_all_sheets(path: Path, *, header: int | None = None) -> dict[str, SheetRows]:
    """The rows of each sheet that is not hidden and not empty, by its name; otherwise as `read_sheet`."""
    book = _opened(path)
    visible = _visible(book)
    found = {name: _table_rows(path, book, name, header) for name in visible if _cells(path, book, name)}
    skipped = [name for name in _names(book) if name not in found]
    if not found:
        raise InvalidInput(f"{path}: no sheet has a cell; a table needs a header and at least one row.")
    if skipped:
        warn(f"{path}: we skip hidden and empty sheets ({_listed(skipped)}).")
    return found


def _table_rows(path: Path, book: Any, name: str, header: int | None) -> SheetRows:
    rows = _cells(path, book, name)
    if header is None:
        filled = ([cell for cell in row if cell is not None] for _, row in rows)
        comments = takewhile(lambda cells: len(cells) == 1 and str(cells[0]).lstrip().startswith("#"), filled)
        below = rows[len(list(comments)) :]
        warn_of_comments(path, len(rows) - len(below))
    else:
        below = [one for one in rows if one[0] >= header]
        if not below or below[0][0] != header:
            raise InvalidInput(
                f"{path}: row {header} of the sheet names no columns; it is empty, or not there. Give --header another "
                "row."
            )
        if skipped := len(rows) - len(below):
            warn(f"{path}: we skip {skipped} row{'s' * (skipped > 1)} above the header in row {header}.")
    if not below:
        raise InvalidInput(f"{path}: the sheet is empty; a table needs a header and at least one row.")
    used = [any(cell is not None for cell in column) for column in zip(*(row for _, row in below), strict=True)]
    (line, names), *others = [(line, list(compress(row, used))) for line, row in below]
    return [(line, [_text(cell).strip() for cell in names]), *others]


def sheet_column(cells: Sequence[Cell]) -> Column:
    """Numbers (missing: NaN) where no cell is a text, else texts, whole numbers without a point; shape (rows,)."""
    if any(isinstance(cell, str) for cell in cells):
        return tuple(map(_text, cells))
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=np.float64)


def _opened(path: Path) -> Any:
    """The workbook of a file, as python-calamine holds it."""
    try:
        import python_calamine as calamine  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput(
            f'{path}: spreadsheets need python-calamine, which is absent: pip install "surepick[excel]".'
        ) from error
    content = file_bytes(path, "zip", "ole")
    if content.strip() and not content.startswith((b"PK", b"\xd0\xcf")) and b"\0" not in content:
        raise InvalidInput(f"{path} is text, not a workbook. Let its name end in .csv or .tsv.")
    with readable(path, "spreadsheet"):
        if content.startswith(b"PK"):
            _check_extent(path, content)
        elif content:
            _refuse_far(path, *cells_reach(content))
        return calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))


def _cells(path: Path, book: Any, name: str) -> list[tuple[int, list[Cell]]]:
    """(number in the sheet, cells) of every row with a cell."""
    with readable(path, "spreadsheet"):
        sheet = book.get_sheet_by_name(name)
        first = 1 + (sheet.start or (0, 0))[0]
        rows = [(line, list(map(_value, row))) for line, row in enumerate(sheet.to_python(), start=first)]
    return [(line, row) for line, row in rows if any(cell is not None for cell in row)]


def _names(book: Any) -> list[str]:
    """The sheets of cells, without those of charts and macros."""
    return [one.name for one in book.sheets_metadata if str(one.typ).endswith(".WorkSheet")] or list(book.sheet_names)


def _visible(book: Any) -> list[str]:
    """The sheets that are not hidden; all if none is visible."""
    shown = {one.name for one in book.sheets_metadata if str(one.visible).endswith(".Visible")}
    return [name for name in _names(book) if name in shown] or _names(book)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name[:60]) for name in names[:MOST_LISTED]) + ", ..." * (len(names) > MOST_LISTED)


def _chosen(path: Path, book: Any, name: str | None) -> str:
    names, visible = _names(book), _visible(book)
    if not names:
        raise InvalidInput(f"{path} has no sheets.")
    if name is None and len(names) > 1:
        hidden = [one for one in names if one not in visible]
        which = f"first that is not hidden, {visible[0]!r}" if hidden else "first"
        more = f" Hidden: {_listed(hidden)}." if hidden else ""
        warn(
            f"{path} has {len(names)} sheets ({_listed(names)}); we read the {which}.{more} --sheet (in Python: "
            "sheet=...) names one."
        )
    elif name is not None and name not in names:
        raise InvalidInput(f"{path} has no sheet {name!r}; it has {_listed(names)}. Names must match exactly.")
    return visible[0] if name is None else name


def _value(cell: Any) -> Cell:
    if isinstance(cell, str):
        return unescaped(cell) if cell.strip() else None
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else str(cell)


def _text(cell: Cell) -> str:
    return NumberText(number_as_id(cell)) if isinstance(cell, float) else cell or ""


def _check_extent(path: Path, content: bytes) -> None:
    """Refuse a workbook that would not fit into memory: a reader lays out all cells between the first and the last."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MOST_BYTES:
            raise InvalidInput(f"{path} unpacks to more than {MOST_BYTES:,} bytes; save the table as CSV or Parquet.")
        for entry in entries:
            if not entry.filename.startswith("xl/worksheets/") or entry.is_dir():
                continue
            with archive.open(entry) as stream:
                height, width = _binary_extent(stream) if entry.filename.endswith(".bin") else _extent(stream)
            _refuse_far(path, height, width)


def _refuse_far(path: Path, height: int, width: int) -> None:
    if height * width > MOST_CELLS:
        raise InvalidInput(
            f"{path}: the filled cells of a sheet span {height:,} rows and {width:,} columns, more than {MOST_CELLS:,} "
            "cells. Delete the stray ones far from the table, or save the table as CSV."
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


def _binary_extent(stream: Any) -> tuple[int, int]:
    """The same of a sheet of .xlsb: records of a number, a length and so many bytes."""
    content = stream.read()
    rows: set[int] = set()
    columns: set[int] = set()
    place, row = 0, 0
    while place < len(content):
        kind, place = _variable(content, place)
        length, place = _variable(content, place)
        if kind in (ROW_RECORD, *CELL_RECORDS) and length >= FOUR:
            number = int.from_bytes(content[place : place + FOUR], "little")
            if kind == ROW_RECORD:
                row = number
            else:
                rows.add(row)
                columns.add(number)
        place += length
    return (max(rows) - min(rows) + 1, max(columns) - min(columns) + 1) if rows else (0, 0)


def _variable(content: bytes, place: int) -> tuple[int, int]:
    """(a number of up to four times seven bits, the place behind it)."""
    found = 0
    for part in range(FOUR):
        byte = content[place] if place < len(content) else 0
        place += 1
        found |= (byte & 0x7F) << (7 * part)
        if byte < 0x80:
            break
    return found, place
