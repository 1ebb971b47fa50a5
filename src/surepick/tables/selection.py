"""What of a table is used: the columns of ids and features, and the rows that have a value in each of them."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.tables.table import MISSING, Table, TableWarning, as_number, header_hint

Names = str | Sequence[str]
SHOWN = 3
NO_ID = "the id"
SUMS = frozenset({"total", "totals", "sum", "mean", "average", "summe", "total:", "sum:"})


@record
class Selection:
    """The rows and columns of a table that are used.

    Args:
        table: the rows.
        ids: the columns of the ids; none: the row number.
        features: column -> whether it holds numbers; of one that does not, each value becomes a feature.
    """

    table: Table
    ids: tuple[str, ...]
    features: dict[str, bool]


def column_names(table: Table, names: Names) -> tuple[str, ...]:
    """Columns of the table from "a,b" or a sequence; a name that itself contains a comma is found whole.

    Raises:
        InvalidInput: none is given, one is unknown (the known are listed) or named twice.
    """
    split = names.split(",") if isinstance(names, str) else list(names)
    parts = [names] if isinstance(names, str) and names in table.columns else split
    chosen = tuple(part if part in table.columns else part.strip() for part in parts if part.strip())
    for name in chosen:
        table.column(name)
    if not chosen or len(set(chosen)) != len(chosen):
        raise InvalidInput(f"columns {names!r}: name at least one column, and each of them once.")
    return chosen


def row_ids(table: Table, id: Names | None, *, known: Collection[str] = ()) -> tuple[str, ...]:  # noqa: A002 (as in read_arms)
    """The id of every row: its cells in the id columns without spaces around them, joined by "/"; or the row number.

    Args:
        known: ids that are found as they are written, spaces and all.

    Raises:
        InvalidInput: an id is empty, or different cells join to the same id.
    """
    if id is None:
        return tuple(str(row) for row in range(table.num_rows))
    columns = column_names(table, id)
    written = list(zip(*(table.text(name) for name in columns), strict=True))
    parts = [part if "/".join(part) in known else tuple(map(str.strip, part)) for part in written]
    empty = [row for row, part in enumerate(parts) if not any(part)]
    if empty:
        raise _incomplete(table, dict.fromkeys(empty, _empty_id(columns)))
    joined: dict[str, tuple[str, ...]] = {}
    for part in parts:
        name = "/".join(part)
        if joined.setdefault(name, part) != part:
            raise InvalidInput(
                f"{table.source}: {joined[name]} and {part} are both the id {name!r} once joined by '/'. "
                "Choose other id columns, or write the table without '/' in their cells."
            )
    return tuple("/".join(part) for part in parts)


def warn_of_case(source: str, ids: Collection[str]) -> None:
    """A `TableWarning` where two ids differ in nothing but capital and small letters."""
    seen: dict[str, str] = {}
    pairs = [(first, name) for name in dict.fromkeys(ids) if (first := seen.setdefault(name.casefold(), name)) != name]
    if pairs:
        first, second = pairs[0]
        more = f", and so do {len(pairs) - 1} more" if len(pairs) > 1 else ""
        warnings.warn(
            f"{source}: the ids {first!r} and {second!r} differ only in capital letters{more}. They are different "
            "candidates; if they should be one, write them alike.",
            TableWarning,
            stacklevel=2,
        )


def looks_numeric(table: Table, name: str) -> bool:
    """At least half of the cells that are not missing are numbers: the others are then mistakes, not categories."""
    cells = table.column(name)
    if not isinstance(cells, tuple):
        return True
    decimal = table.decimal
    others = [cell for cell in cells if as_number(cell, decimal=decimal, percent=True) is None]
    words = sum(cell.strip().lower() not in MISSING for cell in others)
    return len(cells) - len(others) >= max(words, 1)


def feature_columns(
    table: Table, id_columns: tuple[str, ...], features: Names | None, exclude: Sequence[str] = ()
) -> dict[str, bool]:
    """The columns that are features (those that are named, or as `read_arms` says of None), and which hold numbers.

    Raises:
        InvalidInput: as `column_names`.
    """
    if features is not None or table.parameters:
        named = table.parameters if features is None else column_names(table, features)
        return {name: looks_numeric(table, name) for name in named}
    others = [name for name in table.columns if name not in id_columns and name not in exclude]
    numeric = [name for name in others if looks_numeric(table, name)]
    if not numeric and len(id_columns) > 1:
        numeric = [name for name in id_columns if looks_numeric(table, name)]
    return dict.fromkeys(numeric, True)


def selected(
    table: Table,
    id: Names | None,  # noqa: A002 (as in read_arms)
    features: Names | None,
    *,
    exclude: Sequence[str] = (),
    needed: Sequence[str] = (),
) -> Selection:
    """The columns that are used, and the rows that have a value in each.

    Args:
        exclude: columns that are no features unless named.
        needed: other columns of numbers that are used (the rewards).

    Raises:
        InvalidInput: a column is unknown, rows miss a cell and the table does not say that they are left out, or all
            of them do.
    """
    ids = () if id is None and not table.parameters else column_names(table, id or table.parameters)
    numeric = feature_columns(table, ids, features, exclude)
    if id is None and features is None and not table.parameters:
        _warn_of_header(table)
    numbers = [name for name, is_number in numeric.items() if is_number]
    return Selection(complete_rows(table, ids, (*numbers, *needed)), ids, numeric)


def complete_rows(table: Table, ids: Sequence[str], numbers: Sequence[str]) -> Table:
    """The rows that have an id and a cell in each column of numbers; the others are left out if the table says so.

    Raises:
        InvalidInput: rows miss a cell and the table does not say that they are left out, or all rows do.

    Warns:
        TableWarning: rows are left out; how many, and for what.
    """
    missing: dict[int, str] = {}
    if ids:
        texts = [table.text(name) for name in ids]
        blank = [row for row, part in enumerate(zip(*texts, strict=True)) if not any(map(str.strip, part))]
        missing |= dict.fromkeys(blank, _empty_id(ids))
    for name in numbers:
        text = table.text(name)
        for row in table.missing_rows(name):
            missing.setdefault(row, f"{name!r} is {repr(text[row]) if text[row].strip() else 'empty'}")
    if not missing:
        return table
    if not table.drop_missing:
        for name in numbers:
            if set(table.bad_rows(name)) - missing.keys():
                table.numbers(name)  # raises: it holds words, and its gaps are the lesser evil
        raise _incomplete(table, missing)
    if len(missing) == table.num_rows:
        raise InvalidInput(f"{table.source}: every row misses a cell ({_shown(table, missing)}); no row is left.")
    warnings.warn(
        f"{table.source}: {len(missing)} of {table.num_rows} rows are left out, because a cell is missing "
        f"({_shown(table, missing)}).",
        TableWarning,
        stacklevel=2,
    )
    return table.without(sorted(missing))


def _empty_id(columns: Sequence[str]) -> str:
    return f"{NO_ID} ({', '.join(columns)}) is empty"


def _incomplete(table: Table, missing: Mapping[int, str]) -> InvalidInput:
    """What is raised of rows that miss a cell: one message, whatever stands in its place."""
    rows = f"{len(missing)} of {table.num_rows} rows miss a cell"
    last = " The last row looks like a spreadsheet's sum." if _is_sum(table, missing) else ""
    return InvalidInput(
        f"{table.source}: {rows} ({_shown(table, missing)}).{last} Fill the cells in, or leave these rows out with "
        "--drop-missing (in Python: drop_missing=True)."
    )


def _is_sum(table: Table, missing: Mapping[int, str]) -> bool:
    """The last row misses a cell, and its id too, or it says that it is a sum."""
    row = table.num_rows - 1
    if row not in missing:
        return False
    texts = [cells[row].strip().lower() for cells in table.columns.values() if isinstance(cells, tuple)]
    return missing[row].startswith(NO_ID) or any(text in SUMS for text in texts)


def _shown(table: Table, missing: Mapping[int, str]) -> str:
    rows = sorted(missing)
    named = ", ".join(f"row {table.line_of(row)}: {missing[row]}" for row in rows[:SHOWN])
    return named + (f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else "")


def _warn_of_header(table: Table) -> None:
    """Nobody named a column, so nothing else shows that a file without a header has lost its first row."""
    if table.first_row > 1 and not all(name.isdigit() for name in table.columns if as_number(name) is not None):
        warnings.warn(
            f"{table.source}: {header_hint(tuple(table.columns))} Else its first row is no candidate.",
            TableWarning,
            stacklevel=2,
        )
