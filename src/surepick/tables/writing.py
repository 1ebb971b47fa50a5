"""Tables as files: Parquet, JSON lines or CSV, each written whole or not at all."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from surepick.core.files import write_whole
from surepick.errors import InvalidInput
from surepick.tables.escapes import escaped
from surepick.tables.parquet import pyarrow_parquet

QUOTED = re.compile(r'[,"\r\n]')


def write_table(
    path: str | Path, columns: Mapping[str, Sequence[object]], *, kinds: Mapping[str, type] | None = None
) -> None:
    """Write named columns as Parquet, JSON lines or CSV, by the ending of the path; whole or not at all (by rename).

    A text that a spreadsheet would compute (it begins with = + - @ or a tab) gets an apostrophe in front in CSV, which
    `read_table` takes away.

    Args:
        path: where to.
        columns: name -> cells; None is a missing cell.
        kinds: name -> int, float, bool or str, for Parquet: the type of a column whatever its cells; None: found from
            the cells, so that a column without any has none.

    Raises:
        InvalidInput: columns of different lengths, a text that no file can hold (half of a character; in CSV a zero
            byte), or pyarrow is needed and absent.
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
        content = _parquet(plain, kinds) if path.suffix == ".parquet" else _csv(path, [tuple(plain), *rows])
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
    """Refuse, before the work, a file whose name says no kind of table that is written.

    Raises:
        InvalidInput: its name ends in none of .csv, .parquet and .jsonl.
    """
    if path.suffix not in (".csv", ".parquet", ".jsonl"):
        raise InvalidInput(f"{path} is no table that can be written; its name must end in .csv, .parquet or .jsonl.")


def _csv(path: Path, rows: Iterable[Sequence[object]]) -> bytes:
    """Rows as lines; one of a single empty cell is quoted, since a blank line is no row."""
    content = "".join((",".join(map(_cell, row)) or '""') + "\n" for row in rows).encode()
    if b"\0" in content:
        raise InvalidInput(f"{path} cannot be written: a text holds a zero byte, which CSV has no place for.")
    return content


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = escaped(value) if isinstance(value, str) else str(value)
    return '"' + text.replace('"', '""') + '"' if QUOTED.search(text) else text


def write_json_lines(path: str | Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, whole or not at all (by rename).

    Raises:
        InvalidInput: an object holds a number that JSON cannot carry (NaN, infinity), or half of a character.
    """
    try:
        lines = [json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n" for value in objects]
    except ValueError as error:
        raise InvalidInput(f"{path}: a value cannot be written as JSON: {error}.") from error
    with _storable(path):
        content = "".join(lines).encode()
    write_whole(path, content)
