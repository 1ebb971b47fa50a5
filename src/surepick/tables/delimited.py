"""Separated text: CSV, and what spreadsheets of some languages write instead (tabs, semicolons, decimal commas)."""

from __future__ import annotations

import csv
import io
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.tables.escapes import unescaped
from surepick.tables.table import TableWarning, as_number

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}
DECIMAL_COMMA = re.compile(r"\s*[+-]?\d*,\d+([eE][+-]?\d+)?\s*%?\s*")


@record
class Delimited:
    """The rows of a text, the first of them usually the header.

    Args:
        rows: (line number, cells) of every line that is not blank.
        separator: what stands between the cells.
        decimal: what stands in the numbers, "." or ",".
    """

    rows: list[tuple[int, list[str]]]
    separator: str
    decimal: str


def read_delimited(path: Path, text: str) -> Delimited:
    """The rows of a text with a header, and how it was written, which is found from its first two rows.

    Comment lines (# ...) above the header are skipped. What is not plain CSV is said in a `TableWarning`.

    Raises:
        InvalidInput: a quote is not closed, or there are only comments.
    """
    text, skipped = _below_comments(text)
    if skipped.comments:
        lines = "one comment line (#) is" if skipped.comments == 1 else f"{skipped.comments} comment lines (#) are"
        warnings.warn(f"{path}: {lines} skipped above the header.", TableWarning, stacklevel=2)
    separator = _separator(text)
    rows = delimited_rows(path, text, separator, above=skipped.lines)
    if not rows:
        raise InvalidInput(f"{path} is empty but for comments; a table needs a header and at least one row.")
    cells = itertools.chain.from_iterable(row for _, row in rows[1:])
    decimal = "," if separator != "," and any(map(DECIMAL_COMMA.fullmatch, cells)) else "."
    if separator != ",":
        commas = " and has decimal commas" * (decimal == ",")
        warnings.warn(
            f"{path} is separated by {SEPARATORS[separator]}{commas}; it is read so.", TableWarning, stacklevel=2
        )
    return Delimited(rows, separator, decimal)


def delimited_rows(path: Path, text: str, separator: str = ",", *, above: int = 0) -> list[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank.

    Args:
        above: lines of the file that stand above the text.

    Raises:
        InvalidInput: a quote is not closed or stands where none can.
    """
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=separator)
    try:
        rows = [(above + reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        name = SEPARATORS[separator].removesuffix("s")
        raise InvalidInput(f"{path}, line {above + reader.line_num}: not {name}-separated text: {error}.") from error
    return [(line, list(map(unescaped, row))) for line, row in rows] if "'" in text else rows


@record
class _Skipped:
    """What stands above the header: how many lines, and how many of them are comments."""

    lines: int
    comments: int


def _below_comments(text: str) -> tuple[str, _Skipped]:
    """The text from its header on, and what was skipped. "#sku,x" above "a,1" is a header, and no comment."""
    starts, comments, at = [0], 0, 0
    last = 0  # start of the last comment
    for line, after in _lines(text):
        if line.lstrip().startswith("#"):
            comments, last = comments + 1, at
        elif line.strip():
            break
        at = after
        starts.append(at)
    if not comments:
        return text, _Skipped(0, 0)
    if starts[-2] == last and _is_header(text[last:]):
        at, comments = last, comments - 1
        starts.pop()
    return (text[at:], _Skipped(len(starts) - 1, comments)) if comments else (text, _Skipped(0, 0))


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """(line, where the next one starts)."""
    at = 0
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        yield text[at:end], end
        at = end


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
        return list(itertools.islice((row for row in reader if row), 2))
    except csv.Error:
        return []


def _separator(text: str) -> str:
    """That which parts the first two rows into equally many cells, and into most; commas if several do."""

    def fit(separator: str) -> tuple[bool, int]:
        widths = [len(row) for row in _first_rows(text, separator)] or [1]
        return widths[0] > 1 and len(set(widths)) == 1, widths[0]

    return max(SEPARATORS, key=fit)
