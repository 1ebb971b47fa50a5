"""Results in the body of a request: JSON, or a table."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path

from surepick.errors import InvalidInput
from surepick.serve.api.making import PLAIN
from surepick.serve.api.models import MOST_ROWS, Result, Results, brought
from surepick.serve.web.problems import Refused
from surepick.studies.study import Study
from surepick.tables import keeping_notes
from surepick.tables.delimited import Delimited, read_delimited
from surepick.tables.kinds import refuse_foreign
from surepick.tables.numbers import Notation, Written, as_number, is_missing, notation, truth
from surepick.tables.result_rows import FAILED, key_column
from surepick.tables.table import Understood, check_distinct
from surepick.text import did_you_mean

THE_TABLE = Path("the table")


def results_in(body: bytes, kind: str, study: Study) -> tuple[Results, list[str]]:
    """The results of a body, and what is to be known of how its numbers were read.

    Args:
        body: as it came.
        kind: its media type.
        study: of which they are: it names the columns.

    Raises:
        InvalidInput: they cannot be read.
        Refused: of another kind.
    """
    if kind == "application/json":
        return brought(Results, body, "The results are"), []
    if kind == "text/csv":
        rows, notes = rows_of(body, study)
        return Results(results=rows), notes
    raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Results come as application/json or text/csv.")


def rows_of(body: bytes, study: Study) -> tuple[list[Result], list[str]]:
    """The rows of a table, and notes; a row without a reward is left out (it is still to be measured).

    Notes show cells. They are no warnings, which another thread of the process could catch.

    Raises:
        InvalidInput: it is no table with the columns that are needed, or a cell has no meaning.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the table cannot be read: {error}.") from None
    refuse_foreign(THE_TABLE, body)
    if not text.strip():
        raise InvalidInput("the table is empty; it needs a header and at least one row.")
    with keeping_notes():  # how cells are separated needs no note
        table = read_delimited(THE_TABLE, text)
    (_, header), *lines = table.rows
    columns = [name.strip() for name in header]
    check_distinct("the table", [name for name in columns if name])
    key = key_column("the table", columns)
    beside = [one.name for one in study.constraints]
    block = None if study.blocking is None else study.blocking.name
    id_columns, reward = _names(study, columns)
    for wanted in (*id_columns, reward, *beside):
        if wanted not in columns:
            meant = did_you_mean(wanted, columns)
            raise InvalidInput(
                f"the table has no column {wanted!r}; it has {', '.join(map(repr, columns)) or 'none'}.{meant}"
            )
    if len(lines) > MOST_ROWS:
        raise InvalidInput(f"the table has more than {MOST_ROWS:,} rows; send it in parts.")
    for line, cells in lines:
        if len(cells) != len(columns):
            raise InvalidInput(f"row {line} has another number of cells than the header.")
    rows = [(line, dict(zip(columns, cells, strict=True))) for line, cells in lines]
    how = {name: _notation([row[name] for _, row in rows], name, table) for name in (reward, *beside)}
    understood = Understood()
    notes = [note for name, one in how.items() for note in understood.news("the table", name, one)]
    found = []
    for line, row in rows:
        cell = row[reward].strip()
        if not cell:
            continue
        failed = cell.lower() == FAILED
        found.append(
            Result(
                id=_text("/".join(row[one].strip() for one in id_columns), line),
                reward=None if failed else _number(cell, reward, line, how),
                failed=failed,
                key=None if key is None or is_missing(row[key]) else row[key].strip(),
                block=None if block is None else row.get(block, "").strip() or None,
                item=row.get("item", "").strip() or None,
                quantities={
                    name: _number(row[name].strip(), name, line, how) if row[name].strip() else None for name in beside
                },
            )
        )
    return found, notes


def _names(study: Study, columns: list[str]) -> tuple[list[str], str]:
    """(the columns of the ids, the column of the results) of a table."""
    found = study.column_names.id_in(columns)
    ids = [found] if found in columns else [one.strip() for one in found.split(",")]
    return ids, study.column_names.reward_in(columns)


def _text(cell: str, line: int) -> str:
    if not cell.strip() or len(cell) > 500:
        raise InvalidInput(f"row {line} names no candidate.")
    return cell.strip()


def _notation(cells: list[str], name: str, table: Delimited) -> Notation:
    """How the numbers of a column are written.

    Raises:
        InvalidInput: that is not clear.
    """
    words = [cell for cell in cells if cell.strip().lower() != FAILED]
    found = notation(words, Written(continental=table.separator == ";"))
    if found.doubt:
        raise InvalidInput(f"the table, column {name!r}: {found.question} {PLAIN} Nothing was stored.")
    return found


def _number(cell: str, column: str, line: int, how: dict[str, Notation]) -> float:
    value = as_number(cell, decimal=how[column].decimal)
    value = truth(cell) if value is None and how[column].truths else value
    if value is None and cell.rstrip().endswith("%"):
        raise InvalidInput(
            f"row {line}: {cell[:40]!r} in column {column!r} is a percentage: write 0.013 for 1.3%. Nothing was stored."
        )
    if value is None or not abs(value) <= 1e308:
        raise InvalidInput(f"row {line}: {cell[:40]!r} in column {column!r} is no number. Nothing was stored.")
    return value
