"""Separated text: CSV, and what spreadsheets of some languages write instead (tabs, semicolons, decimal commas)."""

from __future__ import annotations

import csv
import io
import itertools
import re
from pathlib import Path

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.tables.escapes import unescaped
from surepick.tables.table import as_number, warn, warn_of_comments

Rows = list[tuple[int, list[str]]]  # (line number, cells) of every line that is not blank
SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon"}
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*%?\s*")


@record
class Delimited:
    """The rows of a text, the first of them usually the header.

    Args:
        rows: (line number, cells) of every line that is not blank.
        separator: what stands between the cells.
        decimal: what stands in the numbers, "." or ",".
    """

    rows: Rows
    separator: str
    decimal: str


def read_delimited(path: Path, text: str) -> Delimited:
    """The rows of a text with a header, and how it was written, which its first two rows show.

    Raises:
        InvalidInput: a quote is not closed, or there are only comments.

    Warns:
        TableWarning: we skip comment lines (# ...) above the header, or the separators are not commas.
    """
    text, above = _below_comments(path, text)
    separator = _separator(text)
    rows = delimited_rows(path, text, separator, above=above)
    if not rows:
        raise InvalidInput(f"{path} holds only comments; a table needs a header and at least one row.")
    cells = itertools.chain.from_iterable(row for _, row in rows[1:])
    decimal = "," if separator != "," and any(map(DECIMAL_COMMA.fullmatch, cells)) else "."
    if separator != ",":
        commas = " and commas as decimal points" * (decimal == ",")
        warn(f"{path}: we read {SEPARATORS[separator]}s between the cells{commas}.")
    return Delimited(rows, separator, decimal)


def delimited_rows(path: Path, text: str, separator: str = ",", *, above: int = 0) -> Rows:
    """The rows of a text.

    Args:
        above: lines of the file that stand above the text.

    Raises:
        InvalidInput: a quote is not closed or stands where none can.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    try:
        rows = [(above + reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        name, line = SEPARATORS[separator], above + reader.line_num
        raise InvalidInput(f"{path}, line {line}: not {name}-separated text: {error}.") from error
    return [(line, list(map(unescaped, row))) for line, row in rows] if "'" in text else rows


def _below_comments(path: Path, text: str) -> tuple[str, int]:
    """The text from its header on, and the lines above it. "#sku,x" above "a,1" is a header, and no comment."""
    start, above = 0, 0
    comments: list[tuple[int, int]] = []  # where each starts, and the lines above it
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        line = text[start:end].strip()
        if line.startswith("#"):
            comments.append((start, above))
        elif line:
            break
        start, above = end, above + 1
    if comments and comments[-1][1] == above - 1 and _is_header(text[comments[-1][0] :]):
        start, above = comments.pop()
    warn_of_comments(path, len(comments))
    return text[start:], above


def _is_header(text: str) -> bool:
    """The first line, which begins with #, names columns of the second: as many, none without a name, above numbers."""
    rows = _first_rows(text, _separator(text))
    if len(rows) < 2:
        return False
    header, below = rows
    filled = all(cell.strip() for cell in header)
    return filled and len(header) == len(below) > 1 and any(as_number(cell) is not None for cell in below)


def _first_rows(text: str, separator: str) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return list(itertools.islice(filter(None, reader), 2))
    except csv.Error:
        return []


def _separator(text: str) -> str:
    """That which parts the first two rows into equally many cells, and into most; commas if several do."""

    def fit(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in _first_rows(text, separator)] or [1]
        return widths[0] > 1 and len(set(widths)) == 1, widths[0]

    return max(SEPARATORS, key=fit)
