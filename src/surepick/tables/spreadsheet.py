"""Sheets of .xlsx and .ods files as columns, through python-calamine."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.tables.content import file_bytes, readable
from surepick.tables.escapes import unescaped
from surepick.tables.table import TableWarning, number_text

KIND = "spreadsheet"
FILLED = re.compile(rb'<(?:\w+:)?c\s(?:[^>]*\s)?r="([A-Z]{1,3})([0-9]{1,7})"[^>]*(?<!/)>')
MOST_CELLS = 50_000_000  # between the first filled cell of a sheet and the last: all of them are laid out in memory
MOST_BYTES = 2_000_000_000
BLOCK = 16_000_000
LONGEST_CELL = 1_000  # bytes of a cell's opening tag


@record
class Sheet:
    """The filled rows of a sheet below its comments.

    Args:
        header: the names of the columns.
        lines: number of each row in the sheet.
        rows: cells as texts, numbers or None, one for each name.
    """

    header: tuple[str, ...]
    lines: list[int]
    rows: list[list[Any]]


def read_sheet(path: Path, name: str | None) -> Sheet:
    """A sheet whose first filled row names the columns; None for the name: the first sheet.

    What is passed over (comments above the header, other sheets) is said in a `TableWarning`.

    Raises:
        InvalidInput: the file is missing or no spreadsheet, there is no such sheet (the known are listed), it is empty
            or too large, or python-calamine is absent.
    """
    rows = [(line, row) for line, row in _cells(path, name) if any(cell is not None for cell in row)]
    comments = 0
    for _, row in rows:
        filled = [cell for cell in row if cell is not None]
        if len(filled) > 1 or not str(filled[0]).lstrip().startswith("#"):
            break
        comments += 1
    if comments:
        lines = "one comment line (#) is" if comments == 1 else f"{comments} comment lines (#) are"
        warnings.warn(f"{path}: {lines} skipped above the header.", TableWarning, stacklevel=2)
    if len(rows) <= comments:
        raise InvalidInput(f"{path}: the sheet is empty; a table needs a header and at least one row.")
    (_, header), below = rows[comments], rows[comments + 1 :]
    used = [place for place in range(len(header)) if any(row[place] is not None for _, row in rows[comments:])]
    names = tuple("" if header[place] is None else _text(header[place]).strip() for place in used)
    return Sheet(names, [line for line, _ in below], [[row[place] for place in used] for _, row in below])


def _cells(path: Path, name: str | None) -> Iterable[tuple[int, list[Any]]]:
    """(number in the sheet, cells) of every row."""
    try:
        import python_calamine as calamine  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise InvalidInput(
            f'{path}: spreadsheets need python-calamine, which is absent: pip install "surepick[excel]".'
        ) from error
    content = file_bytes(path)
    with readable(path, KIND):
        _check_extent(path, content)
        book = calamine.CalamineWorkbook.from_filelike(io.BytesIO(content))
        sheet = book.get_sheet_by_name(_chosen(path, book.sheet_names, name))
        first = 1 + (sheet.start or (0, 0))[0]
        return [(first + place, [_value(cell) for cell in row]) for place, row in enumerate(sheet.to_python())]


def _chosen(path: Path, sheets: Sequence[str], name: str | None) -> str:
    listed = ", ".join(map(repr, sheets))
    if name is None:
        if len(sheets) > 1:
            warnings.warn(
                f"{path} has {len(sheets)} sheets ({listed}); the first is read. Name another with --sheet (in "
                "Python: sheet=...).",
                TableWarning,
                stacklevel=2,
            )
        return sheets[0]
    if name not in sheets:
        raise InvalidInput(f"{path} has no sheet {name!r}; it has {listed}. Names must match exactly.")
    return name


def _value(cell: Any) -> Any:
    if isinstance(cell, str):
        return unescaped(cell) if cell.strip() else None
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else str(cell)


def _text(cell: Any) -> str:
    return number_text(cell) if isinstance(cell, float) else cell


def sheet_columns(sheet: Sheet, names: Sequence[str]) -> dict[str, list[Any]]:
    """name -> cells; where a column has texts, its numbers are texts too, whole ones without a point."""
    columns = {}
    for place, name in enumerate(names):
        cells = [row[place] for row in sheet.rows]
        numeric = all(cell is None or isinstance(cell, float) for cell in cells)
        columns[name] = cells if numeric else [None if cell is None else _text(cell) for cell in cells]
    return columns


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
    rows, columns, rest = set(), set(), b""
    while block := stream.read(BLOCK):
        text = rest + block
        for column, row in FILLED.findall(text):
            rows.add(int(row))
            columns.add(column)
        rest = text[-LONGEST_CELL:]
    if not rows:
        return 0, 0
    places = [_place(column) for column in columns]
    return max(rows) - min(rows) + 1, max(places) - min(places) + 1


def _place(letters: bytes) -> int:
    place = 0
    for letter in letters:
        place = 26 * place + letter - ord("A") + 1
    return place
