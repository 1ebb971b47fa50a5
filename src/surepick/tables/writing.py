"""Tables as files: Parquet, JSON lines or CSV, each written whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from surepick.errors import InvalidInput
from surepick.files import write_whole
from surepick.tables.reading import pyarrow_parquet


def write_table(
    path: str | Path, columns: Mapping[str, Sequence[object]], *, kinds: Mapping[str, type] | None = None
) -> None:
    """Write named columns as Parquet, JSON lines or CSV, by the ending of the path; whole or not at all (by rename).

    Args:
        path: where to.
        columns: name -> cells; None is a missing cell.
        kinds: name -> int, float, bool or str, for Parquet: the type of a column whatever its cells; None: found from
            the cells, so that a column without any has none.

    Raises:
        InvalidInput: columns of different lengths, or pyarrow is needed and absent.
    """
    path = Path(path)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInput(f"the columns have different lengths: {lengths}; a table needs equal ones.")
    plain = {name: getattr(values, "tolist", lambda values=values: list(values))() for name, values in columns.items()}
    rows = zip(*plain.values(), strict=True)
    if path.suffix == ".parquet":
        arrow = pyarrow_parquet()
        sink = io.BytesIO()
        arrow.parquet.write_table(arrow.table(plain, schema=_schema(arrow, plain, kinds)), sink)
        write_whole(path, sink.getvalue())
    elif path.suffix == ".jsonl":
        write_json_lines(path, (dict(zip(plain, row, strict=True)) for row in rows))
    else:
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(plain)
        writer.writerows(rows)
        write_whole(path, text.getvalue().encode())


def _schema(arrow: Any, columns: Mapping[str, Sequence[object]], kinds: Mapping[str, type] | None) -> Any:
    if kinds is None:
        return None
    types = {int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_(), str: arrow.string()}
    return arrow.schema([(name, types[kinds[name]]) for name in columns])


def write_json_lines(path: str | Path, objects: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object a line, whole or not at all (by rename).

    Raises:
        InvalidInput: an object holds a number that JSON cannot carry (NaN, infinity).
    """
    try:
        lines = [json.dumps(value, allow_nan=False, ensure_ascii=False) + "\n" for value in objects]
    except ValueError as error:
        raise InvalidInput(f"{path}: a value cannot be written as JSON: {error}.") from error
    write_whole(path, "".join(lines).encode())
