"""Results in the body of a request: JSON, or a table."""

from __future__ import annotations

import csv
import io
from http import HTTPStatus

from surepick.errors import InvalidInput
from surepick.serve.api.models import MOST_ROWS, Result, Results, brought
from surepick.serve.web.problems import Refused
from surepick.studies.study import Study
from surepick.tables.result_rows import key_column
from surepick.tables.table import as_number, check_distinct, is_missing

FAILED = "failed"


def results_in(body: bytes, kind: str, study: Study) -> Results:
    """The results of a body.

    Args:
        body: as it came.
        kind: its media type.
        study: of which they are: it names the columns.

    Raises:
        InvalidInput: they cannot be read.
        Refused: of another kind.
    """
    if kind == "application/json":
        return brought(Results, body, "The results are")
    if kind == "text/csv":
        return Results(results=rows_of(body, study))
    raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Results come as application/json or text/csv.")


def rows_of(body: bytes, study: Study) -> list[Result]:
    """The rows of a table; one without a reward is left out (it is still to be measured).

    Raises:
        InvalidInput: it is no table with the columns that are needed, or a cell has no meaning.
    """
    try:
        text = body.decode("utf-8-sig")
        first = text.split("\n", 1)[0]
        delimiter = max(",;\t", key=first.count)
        reader = csv.DictReader(io.StringIO(text), delimiter=delimiter, strict=True, skipinitialspace=True)
        columns = [name.strip() for name in reader.fieldnames or ()]
        reader.fieldnames = columns
        rows = [row for _, row in zip(range(MOST_ROWS + 1), reader, strict=False)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"the table cannot be read: {error}.") from None
    check_distinct("the table", [name for name in columns if name])
    key = key_column("the table", columns)
    beside = [one.name for one in study.constraints]
    block = None if study.blocking is None else study.blocking.name
    for wanted in ("id", "reward", *beside):
        if wanted not in columns:
            raise InvalidInput(f"the table has no column {wanted!r}; it has {', '.join(map(repr, columns)) or 'none'}.")
    if len(rows) > MOST_ROWS:
        raise InvalidInput(f"the table has more than {MOST_ROWS:,} rows; send it in parts.")
    found = []
    for line, row in enumerate(rows, 2):
        if None in row or None in row.values():
            raise InvalidInput(f"row {line} has another number of cells than the header.")
        cell = row["reward"].strip()
        if not cell:
            continue
        failed = cell.lower() == FAILED
        found.append(
            Result(
                id=_text(row["id"], line),
                reward=None if failed else _number(cell, "reward", line, delimiter),
                failed=failed,
                key=None if key is None or is_missing(row[key]) else row[key].strip(),
                block=None if block is None else row.get(block, "").strip() or None,
                item=row.get("item", "").strip() or None,
                quantities={
                    name: _number(row[name].strip(), name, line, delimiter) if row[name].strip() else None
                    for name in beside
                },
            )
        )
    return found


def _text(cell: str, line: int) -> str:
    if not cell.strip() or len(cell) > 500:
        raise InvalidInput(f"row {line} names no candidate.")
    return cell.strip()


def _number(cell: str, column: str, line: int, delimiter: str) -> float:
    value = as_number(cell, decimal="," if delimiter == ";" and "," in cell else ".")
    if value is None or not abs(value) <= 1e308:
        raise InvalidInput(f"row {line}: {cell[:40]!r} in column {column!r} is no number. Nothing was stored.")
    return value
