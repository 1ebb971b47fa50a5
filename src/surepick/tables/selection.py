"""What of a table is used: the columns of ids and features, and the rows that have a value in each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from surepick.core.values import listed
from surepick.errors import InvalidInput
from surepick.tables.table import Table, as_number, header_hint, is_missing, warn
from surepick.text import quoted

Names = str | Sequence[str]
SHOWN = 3
NO_ID = "the id"
SUMS = frozenset({"total", "totals", "sum", "mean", "average", "summe", "total:", "sum:"})


def column_names(table: Table, names: Names) -> tuple[str, ...]:
    """Columns of the table from "a,b" or a sequence; a name that itself contains a comma is found whole.

    Raises:
        InvalidInput: none is given, one is unknown (the message lists the known ones) or named twice.
    """
    split = names.split(",") if isinstance(names, str) else listed("columns", names)
    if not all(isinstance(part, str) for part in split):
        raise InvalidInput(f"columns {quoted(names)}: the name of a column is a text.")
    parts = [names] if isinstance(names, str) and names in table.columns else split
    chosen = tuple(part if part in table.columns else part.strip() for part in parts if part.strip())
    for name in chosen:
        table.column(name)
    if not chosen or len(set(chosen)) != len(chosen):
        raise InvalidInput(f"columns {quoted(names)}: name at least one column, and each of them once.")
    return chosen


def row_ids(table: Table, id: Names | None, *, known: Collection[str] = ()) -> tuple[str, ...]:  # noqa: A002 (as in read_arms)
    """The id of every row: its cells in the id columns without spaces around them, joined by "/"; or the row number.

    Args:
        known: ids that we also find as they are written, spaces and all.

    Raises:
        InvalidInput: an id is empty, or different cells join to the same id.
    """
    if id is None:
        return tuple(map(str, range(table.num_rows)))
    columns = column_names(table, id)
    written = zip(*map(table.text, columns), strict=True)
    parts = [part if "/".join(part) in known else tuple(map(str.strip, part)) for part in written]
    if not all(map(any, parts)):
        raise _incomplete(table, _empty_ids(columns, parts))
    names = tuple(map("/".join, parts))
    joined: dict[str, tuple[str, ...]] = {}
    for name, part in zip(names, parts, strict=True):
        if joined.setdefault(name, part) != part:
            raise InvalidInput(
                f"{table.source}: {joined[name]} and {part} are both the id {name!r} once joined by '/'. "
                "Choose other id columns, or write the table without '/' in their cells."
            )
    return names


def warn_of_case(source: str, ids: Collection[str]) -> None:
    """A `TableWarning` where two ids differ in nothing but capital and small letters."""
    seen: dict[str, str] = {}
    pairs = [(first, name) for name in dict.fromkeys(ids) if (first := seen.setdefault(name.casefold(), name)) != name]
    if pairs:
        first, second = pairs[0]
        more = f", and so do {len(pairs) - 1} more" if len(pairs) > 1 else ""
        warn(
            f"{source}: the ids {first!r} and {second!r} differ only in capital letters{more}. We take them for "
            "different candidates; if they are one, write them alike."
        )


def feature_columns(
    table: Table, id_columns: tuple[str, ...], features: Names | None, exclude: Sequence[str] = ()
) -> dict[str, bool]:
    """The columns that are features (those that are named, or as `read_arms` says of None), and which hold numbers.

    Raises:
        InvalidInput: as `column_names`.

    Warns:
        TableWarning: no column is named, and the first line of the file looks like data.
    """
    if features is not None or table.parameters:
        named = table.parameters if features is None else column_names(table, features)
        return {name: _looks_numeric(table, name) for name in named}
    numbers = [name for name in table.columns if as_number(name) is not None]
    if not id_columns and table.has_header and not all(map(str.isdigit, numbers)):
        warn(f"{table.source}: {header_hint(table.columns)} We do not take that line for a candidate.")
    others = [name for name in table.columns if name not in id_columns and name not in exclude]
    numeric = [name for name in others if _looks_numeric(table, name)]
    if not numeric and len(id_columns) > 1:
        numeric = [name for name in id_columns if _looks_numeric(table, name)]
    return dict.fromkeys(numeric, True)


def _looks_numeric(table: Table, name: str) -> bool:
    """At least half of the cells that are not missing are numbers: the others are then mistakes, not categories."""
    cells = table.column(name)
    if not isinstance(cells, tuple):
        return True
    others = table.bad_rows(name, percent=True)
    words = sum(not is_missing(cells[row]) for row in others)
    return len(cells) - len(others) >= max(words, 1)


def complete_rows(table: Table, ids: Sequence[str], numbers: Sequence[str]) -> Table:
    """The rows that have an id and a cell in each column of numbers; we leave out the others if the table says so.

    Raises:
        InvalidInput: rows miss a cell and the table does not say that we leave them out, or all rows do.

    Warns:
        TableWarning: we leave out rows; how many, and for what.
    """
    stripped = (tuple(map(str.strip, part)) for part in zip(*map(table.text, ids), strict=True))
    missing = _empty_ids(ids, stripped)
    for name in numbers:
        cells = table.column(name)
        for row in table.missing_rows(name):
            word = cells[row].strip() and repr(cells[row]) if isinstance(cells, tuple) else ""
            missing.setdefault(row, f"{name!r} is {word or 'empty'}")
    if not missing:
        return table
    if not table.drop_missing:
        for name in numbers:
            if set(table.bad_rows(name)) - missing.keys():
                table.numbers(name)  # raises: it holds words, and its gaps are the lesser evil
        raise _incomplete(table, missing)
    if len(missing) == table.num_rows:
        raise InvalidInput(f"{table.source}: every row misses a cell ({_shown(table, missing)}); no row is left.")
    warn(
        f"{table.source}: we leave out {len(missing)} of {table.num_rows} rows, because they miss a cell "
        f"({_shown(table, missing)})."
    )
    return table.without(sorted(missing))


def _empty_ids(columns: Sequence[str], parts: Iterable[tuple[str, ...]]) -> dict[int, str]:
    """Rows whose cells in the id columns are all empty -> what they miss."""
    reason = f"{NO_ID} ({', '.join(columns)}) is empty"
    return {row: reason for row, part in enumerate(parts) if not any(part)}


def _incomplete(table: Table, missing: Mapping[int, str]) -> InvalidInput:
    """What we raise of rows that miss a cell: one message, whatever stands in its place."""
    last = table.num_rows - 1  # of a sum in the last row the id is empty, or a cell says what it is
    texts = [cells[last].strip().lower() for cells in table.columns.values() if isinstance(cells, tuple)]
    is_sum = last in missing and (missing[last].startswith(NO_ID) or not SUMS.isdisjoint(texts))
    hint = " The last row looks like a spreadsheet's sum." if is_sum else ""
    return InvalidInput(
        f"{table.source}: {len(missing)} of {table.num_rows} rows miss a cell ({_shown(table, missing)}).{hint} Fill "
        "the cells in, or leave these rows out with --drop-missing (in Python: drop_missing=True)."
    )


def _shown(table: Table, missing: Mapping[int, str]) -> str:
    rows = sorted(missing)
    named = ", ".join(f"row {table.line_of(row)}: {missing[row]}" for row in rows[:SHOWN])
    return named + (f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else "")
