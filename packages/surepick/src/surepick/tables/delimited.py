"""Separated text: CSV, and what spreadsheets of some languages and other programs write instead.

What is found on the way: comments, Excel's line sep=;, a header further down, tabs, semicolons or bars between the
cells, spaces before quotes, R's row names, rows and columns of separators alone.
"""

import contextlib
import csv
import io
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surepick.core.files import write_whole
from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.tables.content import escaped, unescaped
from surepick.tables.numbers import OTHER, cell_number, number_or_none
from surepick.tables.parquet import pyarrow_parquet
from surepick.tables.table import warn, warn_of_comments

Rows = list[tuple[int, list[str]]]  # (line number, cells) of every line that is not blank
SEPARATORS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
SPACE = " "
NAMES = {**SEPARATORS, SPACE: "space"}
DECLARED = re.compile(r'"?sep=(?P<mark>[^\w"\r\n])(?P=mark)*"?[^\S\r\n\t]*(\r\n|\n|\r)', re.IGNORECASE)  # Excel's
LOOKED_AT = 20  # rows that show what separates the cells


@record
class Delimited:
    """The rows of a text, the first of them usually the header."""

    rows: Rows  # (line number, cells) of every line that is not blank
    separator: str  # what stands between the cells

    @property
    def mark(self) -> str:
        """What the separator is called."""
        return NAMES.get(self.separator, repr(self.separator))


def read_delimited(path: Path, text: str, *, header: int | None = None) -> Delimited:
    """The rows of a text with a header, and what separates its cells, which its first rows show."""
    if "\n" not in text:
        text = text.replace("\r", "\n")  # as old Macs write lines
    declared, above = DECLARED.match(text), 0
    if declared:
        text, above = text[declared.end() :], 1
    if header is not None:
        text, above = _from_line(path, text, above, header), header - 1
    else:
        text, above = _below_comments(path, text, above)
    separator = declared["mark"] if declared else _separator(text)
    rows = delimited_rows(path, text, separator, above=above)
    rows = list(itertools.dropwhile(lambda one: not any(map(str.strip, one[1])), rows))
    if not rows:
        raise InvalidInput(f"{path} holds only comments; a table needs a header and at least one row.")
    found = Delimited(_fitted(path, rows, separator, text), separator)
    if declared or separator != ",":
        warn(f"{path}: we read {found.mark}s between the cells{', as its line sep= says' if declared else ''}.")
    return found


def delimited_rows(path: Path, text: str, separator: str = ",", *, above: int = 0) -> Rows:
    """The rows of a text."""
    rows: Rows | None = None
    try:
        rows = list(_parsed(text, separator, above))
    except csv.Error as error:
        tight = re.sub(rf'(?<!")" +(?={re.escape(separator)}|[\r\n]|\Z)', '"', text)  # "a" ,"b"
        with contextlib.suppress(csv.Error):
            rows = list(_parsed(tight, separator, above)) if tight != text else None
        if rows is None:
            reader, name = _reader(text, separator, spaced=True), NAMES.get(separator, repr(separator))
            with contextlib.suppress(csv.Error):
                list(reader)
            line = above + int(reader.line_num)
            raise InvalidInput(f"{path}, line {line}: not {name}-separated text: {error}.") from error
    return [(line, list(map(unescaped, row))) for line, row in rows] if "'" in text else rows


def seeming_header(rows: Sequence[tuple[int, Sequence[object]]]) -> int | None:
    """The last line above the first numbers that is as wide as most rows and filled: it seems to name the columns."""
    width = Counter(len(row) for _, row in rows[1:]).most_common(1)[0][0] if len(rows) > 1 else 0
    if width <= len(rows[0][1]):
        return None
    found = None
    for line, row in rows:
        texts = [str(cell).strip() for cell in row]
        if len(row) == width and any(cell_number(text, decimal=mark) is not None for text in texts for mark in OTHER):
            return found
        if len(row) == width and all(texts):
            found = line
    return found


def _reader(text: str, separator: str, *, spaced: bool, strict: bool = True) -> Any:
    return csv.reader(io.StringIO(text, newline=""), strict=strict, delimiter=separator, skipinitialspace=spaced)


def _parsed(text: str, separator: str, above: int) -> Iterator[tuple[int, list[str]]]:
    spaced = separator == SPACE or re.search(rf'(^|{re.escape(separator)}) +"', text, re.MULTILINE) is not None
    reader = _reader(text, separator, spaced=spaced)
    return ((above + reader.line_num, row) for row in reader if row)


def _from_line(path: Path, text: str, above: int, header: int) -> str:
    """The text from a line of the file on."""
    lines = text.splitlines(keepends=True) if "\n" not in text else re.split(r"(?<=\n)", text)
    start = header - 1 - above
    if not 0 <= start < len(lines) or not lines[start].strip():
        raise InvalidInput(
            f"{path}: line {header} names no columns; it is empty, or not there. Give --header another line."
        )
    skipped = sum(bool(line.strip()) for line in lines[:start])
    if skipped:
        warn(f"{path}: we skip {skipped} line{'s' * (skipped > 1)} above the header in line {header}.")
    return "".join(lines[start:])


def _fitted(path: Path, rows: Rows, separator: str, text: str) -> Rows:
    """The rows below the header that have a cell, as wide as the header where only separators make a difference."""
    (line, header), *body = rows
    body = [(at, row) for at, row in body if any(map(str.strip, row)) or (len(header) == 1 and row == [""])]
    widths = {len(row) for _, row in body}
    named = _filled(header)
    if widths <= {named}:
        return [(line, header[:named]), *body]
    used = max((_filled(row) for _, row in body), default=named)
    if used <= named:  # what is beyond are separators
        return [(line, header[:named]), *((at, row[:named]) for at, row in body)]
    if widths == {len(header) + 1} and named == len(header) and _are_row_names(body, separator, text):
        short = f"{path}: the header is one name short, so the first column has row names, as R writes them"
        if all(re.fullmatch(r"\d+", row[0].strip()) for _, row in body):
            warn(f"{short}; they only count rows, and we leave them out.")
            return [(line, header), *((at, row[1:]) for at, row in body)]
        warn(f"{short}; we call it 'column 1'.")
        return [(line, ["", *header]), *body]
    return [(line, header), *body]


def _filled(row: Sequence[str]) -> int:
    """The cells of a row up to the last that is not blank."""
    return max((place for place, cell in enumerate(row, start=1) if cell.strip()), default=0)


def _are_row_names(body: Rows, separator: str, text: str) -> bool:
    """The first column has a name for each row; with commas, which may be decimal, it and the header are quoted."""
    lines = text.lstrip().split("\n", 2)
    quoted = len(lines) > 1 and all(part.lstrip().startswith('"') for part in lines[:2])
    names = [row[0].strip() for _, row in body]
    return (separator != "," or quoted) and all(names) and len(set(names)) == len(names)


def _below_comments(path: Path, text: str, above: int) -> tuple[str, int]:
    """The text from its header on, and the lines above it. "#sku,x" above "a,1" is a header, and no comment."""
    start = 0
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
    rows = _first_rows(text, _separator(text), 2)
    if len(rows) < 2:
        return False
    header, below = rows
    filled = all(cell.strip() for cell in header)
    return filled and len(header) == len(below) > 1 and any(number_or_none(cell) is not None for cell in below)


def _first_rows(text: str, separator: str, number: int) -> list[list[str]]:
    spaced = separator == SPACE or ', "' in text[:1000] or f'{separator} "' in text[:1000]
    try:
        return list(itertools.islice(filter(None, _reader(text, separator, spaced=spaced, strict=False)), number))
    except csv.Error:
        return []


def _separator(text: str) -> str:
    """That which parts the first two rows into equally many cells, and into most; commas if several do. Where none does
    (a title, R's row names), most of the first rows, unless commas leave one column. Spaces part quoted names only."""
    first = {mark: [len(row) for row in _first_rows(text, mark, LOOKED_AT)] or [1] for mark in SEPARATORS}

    def fit(mark: str) -> tuple[bool, int]:
        widths = first[mark][:2]
        return widths[0] > 1 and len(set(widths)) == 1, widths[0]

    best = max(SEPARATORS, key=fit)
    if fit(best)[0]:
        return best
    if re.match(r'\s*"[^"\n]*" +"', text):
        widths = [len(row) for row in _first_rows(text, SPACE, LOOKED_AT)]
        if len(set(widths[1:])) == 1 and widths[0] in (widths[1], widths[1] - 1):
            return SPACE
    if set(first[","]) == {1}:
        return best

    def usual(mark: str) -> tuple[bool, int, int]:
        width, times = Counter(first[mark][1:] or [1]).most_common(1)[0]
        return width > 1 and 2 * times >= len(first[mark]), width, times

    return max(SEPARATORS, key=usual) if usual(max(SEPARATORS, key=usual))[0] else best


# --- Tables as files: Parquet, JSON lines or CSV, each written whole or not at all.

QUOTED = re.compile(r'[,"\r\n]')


def write_table(
    path: str | Path, columns: Mapping[str, Sequence[object]], *, kinds: Mapping[str, type] | None = None
) -> None:
    """Write named columns as Parquet, JSON lines or CSV, by the ending of the path; whole or not at all (by rename).

    A text that a spreadsheet would compute (it begins with = + - @ or a tab) gets an apostrophe in front in CSV, which
    `read_table` takes away.
    """
    path = Path(path)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput(f"the columns have different lengths: {lengths}; a table needs equal ones.")
    plain = {name: getattr(values, "tolist", lambda values=values: list(values))() for name, values in columns.items()}
    rows = zip(*plain.values(), strict=True)
    if path.suffix == ".jsonl":
        write_json_lines(path, (dict(zip(plain, row, strict=True)) for row in rows))
        return
    with _storable(path):
        if path.suffix == ".parquet":
            content = _parquet(plain, kinds)
        else:  # a row of a single empty cell is quoted, since a blank line is no row
            content = "".join((",".join(map(_cell, row)) or '""') + "\n" for row in [tuple(plain), *rows]).encode()
            if b"\0" in content:
                raise InvalidInput(f"{path} cannot be written: a text holds a zero byte, which CSV has no place for.")
    write_whole(path, content)


@contextmanager
def _storable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except UnicodeEncodeError as error:
        half = error.object[error.start]
        raise InvalidInput(f"{path} cannot be written: a text holds {half!r}, half of a character.") from error


def _parquet(columns: Mapping[str, Sequence[object]], kinds: Mapping[str, type] | None) -> bytes:
    arrow, schema, sink = pyarrow_parquet(), None, io.BytesIO()
    if kinds is not None:
        types = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_(), str: arrow.string()}
        schema = arrow.schema([(name, types[kinds[name]]) for name in columns])
    arrow.parquet.write_table(arrow.table(columns, schema=schema), sink)
    return sink.getvalue()


def check_suffix(path: Path) -> None:
    """Refuse, before the work, a file whose name says no kind of table that is written."""
    if path.suffix not in (".csv", ".parquet", ".jsonl"):
        raise InvalidInput(f"{path} is no table that can be written; its name must end in .csv, .parquet or .jsonl.")


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = escaped(value) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def write_json_lines(path: str | Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, whole or not at all (by rename)."""
    try:
        lines = [json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n" for value in objects]
    except ValueError as error:
        raise InvalidInput(f"{path}: a value cannot be written as JSON: {error}.") from error
    with _storable(path):
        content = "".join(lines).encode()
    write_whole(path, content)
