"""What of a table is used: the columns of ids and features, and the rows that have a value in each of them."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from enum import Enum

import numpy as np

from surepick.core.arms import may_count, numbers_rows
from surepick.core.records import IntArray, record
from surepick.core.values import listed
from surepick.errors import InvalidInput
from surepick.tables.numbers import is_missing, number_or_none
from surepick.tables.table import Column, Table, Understood, header_hint, warn
from surepick.text import look_of, quoted

Names = str | Sequence[str]


class Unnamed(Enum):
    """Numbers in columns that nobody named as features, where it is known whether features are used."""

    needed = "each is a feature, and a row needs a cell in it"
    spare = "one that can be no feature is set aside, and only a policy that uses features refuses that"


@record
class Unused:
    """Columns that are named as features and that nobody looks at, but for whether they are there."""

    names: Names


NONE = "none"  # in place of names: no column is a feature
SHOWN = 3
LISTED = 10  # candidates that go, by name
NO_ID = "the id"
SUMS = frozenset({"total", "totals", "sum", "mean", "average", "summe", "total:", "sum:"})


def column_names(table: Table, names: Names) -> tuple[str, ...]:
    """Columns of the table from "a,b" or a sequence; a name that itself contains a comma is found whole."""
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
    """The id of every row: its cells in the id columns without spaces around them, joined by "/"; or the row number."""
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


def warn_of_look(source: str, ids: Collection[str]) -> None:
    """A `TableWarning` where two ids differ in nothing but capital letters, or in nothing that can be seen."""
    seen: dict[str, str] = {}
    pairs = [
        (first, name)
        for name in dict.fromkeys(ids)
        if (first := seen.setdefault(look_of(name).casefold(), name)) != name
    ]
    if pairs:
        first, second = pairs[0]
        more = f", and so do {len(pairs) - 1} more" if len(pairs) > 1 else ""
        in_case = first.casefold() == second.casefold()
        how = f"differ only in capital letters{more}" if in_case else f"look the same{more}: characters differ"
        shown = repr if in_case else ascii
        warn(
            f"{source}: the ids {shown(first)} and {shown(second)} {how}. We take them for different candidates; if "
            "they are one, write them alike."
        )


def column_of_ids(table: Table) -> tuple[str, ...]:
    """The column that is called "id", where no cell of it is empty or stands twice; () where there is none."""
    if "id" not in table.columns:
        return ()
    cells = table.text("id")
    return ("id",) if all(cells) and len(set(cells)) == len(cells) else ()


def feature_columns(
    table: Table, id_columns: tuple[str, ...], features: Names | Unnamed | Unused | None, exclude: Sequence[str] = ()
) -> dict[str, bool]:
    """The columns that are features (those that are named, or as `read_arms` says of None), and which hold numbers: the
    one place that decides it. A warning where none is named and the first line looks like data, or a column numbers
    rows."""
    named = named_features(table, features)
    if named is not None or table.parameters:
        return {name: looks_numeric(table, name) for name in (table.parameters if named is None else named)}
    numbers = [name for name in table.columns if number_or_none(name) is not None]
    if not id_columns and table.has_header and not all(map(str.isdigit, numbers)):
        warn(f"{table.source}: {header_hint(table.columns)} We do not take that line for a candidate.")
    others = [name for name in table.columns if name not in id_columns and name not in exclude]
    numeric = [name for name in others if looks_numeric(table, name)]

    counting = [name for name in numeric if counts_rows(table, name)]
    if counting:
        warn(
            f"{table.source}: column {counting[0]!r} looks like row numbers, and is no feature. If it is one, name it "
            "among the features."
        )
    numeric = [name for name in numeric if name not in counting]
    if not numeric and len(id_columns) > 1:
        numeric = [name for name in id_columns if looks_numeric(table, name)]
    return dict.fromkeys(numeric, True)


def named_features(table: Table, features: Names | Unnamed | Unused | None) -> tuple[str, ...] | None:
    """The columns that are named as features, () for none and for what nobody uses; None where nothing is said."""
    if features is None or isinstance(features, Unnamed):
        return None
    names = features.names if isinstance(features, Unused) else features
    names = names if isinstance(names, str) else listed("columns", names)
    found = () if says_none(table, names) else column_names(table, names)
    return () if isinstance(features, Unused) else found


def wanted_features(features: Names | None, *, used: bool) -> Names | Unnamed | Unused:
    """What the reader of a table is told where it is known whether somebody uses features."""
    if not used:
        if features is None or (isinstance(features, str) and not features.strip()):
            return Unused(())
        return Unused(features)
    return Unnamed.needed if features is None else features


def not_used(features: object, *, said: str, cure: str = "assume='linear' or a norm_bound") -> str:
    """A sentence about columns that were named as features where nobody looks at any; "" where none is named."""
    word = features.strip().lower() if isinstance(features, str) else None
    if features is None or word in ("", NONE) or (isinstance(features, Sized) and len(features) == 0):
        return ""
    return f"{said} not used: nothing is assumed about features without {cure}."


def says_none(table: Table, features: Names) -> bool:
    if not isinstance(features, str):
        return len(features) == 0
    word = features.strip()
    if word in table.columns and word.lower() == NONE:
        raise InvalidInput(
            f"{table.source} has a column {word!r}, and that is also the word for no features. For the column write "
            f"--features '{word},' (in Python: [{word!r}]), for no features rename it (in Python: [])."
        )
    return word.lower() == NONE


def counts_rows(table: Table, name: str) -> bool:
    """The column numbers the rows."""
    found = (number_or_none(cell) if isinstance(cell, str) else cell for cell in table.column(name) if may_count(name))
    values = np.array([np.nan if value is None else value for value in found], np.float64)
    return numbers_rows(list(table.columns), name, values)


def looks_numeric(table: Table, name: str) -> bool:
    """At least half of the cells that are not missing are numbers: the others are then mistakes, not categories."""
    cells = table.column(name)
    if not isinstance(cells, tuple):
        return True
    others = table.bad_rows(name, percent=True)
    return len(cells) - len(others) >= max(sum(not is_missing(cells[row]) for row in others), 1)


def complete_rows(table: Table, ids: Sequence[str], numbers: Sequence[str], *, also: str = "") -> Table:
    """The rows with an id and a cell in each column of numbers, with a warning, or refused as the table says."""
    missing = _missing_cells(table, ids, numbers)
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
        f"({_shown(table, missing)}).{also}"
    )
    return table.without(sorted(missing))


def candidates_gone(table: Table, ids: Sequence[str], numbers: Sequence[str], *, accepted: bool) -> str:
    """The candidates of which `complete_rows` leaves no row, as a sentence; "" where all have one left."""
    missing = _missing_cells(table, ids, numbers)
    if not missing or not table.drop_missing or len(missing) == table.num_rows:
        return ""  # nothing goes, or `complete_rows` refuses the table
    if ids:
        parts = zip(*map(table.text, ids), strict=True)
        names = ["/".join(map(str.strip, part)) if any(map(str.strip, part)) else "" for part in parts]
    else:
        names = [f"row {table.line_of(row)}" for row in range(table.num_rows)]
    left = {name for row, name in enumerate(names) if row not in missing}
    first = {name: row for row, name in reversed(list(enumerate(names))) if name and name not in left}
    if not first:
        return ""
    gone = sorted(first, key=first.__getitem__)
    shown = ", ".join(map(repr, gone[:LISTED])) + (f" and {len(gone) - LISTED} more" if len(gone) > LISTED else "")
    one = len(gone) == 1
    who = f"candidate{'' if one else 's'} {shown} {'has' if one else 'have'} no row left"
    why = f"row {table.line_of(first[gone[0]])}: {missing[first[gone[0]]]}"
    if accepted:
        return f" {who[0].upper()}{who[1:]} and {'is' if one else 'are'} not compared."
    raise InvalidInput(
        f"{table.source}: {who} and would not be compared ({why}). Fill the cells in, leave the column out of the "
        "features, or accept it with --drop-candidates (in Python: drop_candidates=True)."
    )


def _missing_cells(table: Table, ids: Sequence[str], numbers: Sequence[str]) -> dict[int, str]:
    """Rows without an id or a cell in a column of numbers -> what they miss."""
    missing = _empty_ids(ids, (tuple(map(str.strip, part)) for part in zip(*map(table.text, ids), strict=True)))
    for name in numbers:
        cells = table.column(name)
        for row in table.missing_rows(name):
            word = cells[row].strip() and repr(cells[row]) if isinstance(cells, tuple) else ""
            missing.setdefault(row, f"{name!r} is {word or 'empty'}")
    return missing


def _empty_ids(columns: Sequence[str], parts: Iterable[tuple[str, ...]]) -> dict[int, str]:
    """Rows whose cells in the id columns are all empty -> what they miss."""
    reason = f"{NO_ID} ({', '.join(columns)}) is empty"
    return {row: reason for row, part in enumerate(parts) if not any(part)}


def _incomplete(table: Table, missing: Mapping[int, str]) -> InvalidInput:
    """What we raise of rows that miss a cell: one message, whatever stands in its place."""
    last = table.num_rows - 1  # of a sum in the last row the id is empty, or a cell says what it is
    texts = [cells[last].strip().lower() for cells in table.columns.values() if isinstance(cells, tuple)]
    without_id = [row for row, reason in missing.items() if reason.startswith(NO_ID)]
    is_sum = last in missing and (without_id == [last] or not SUMS.isdisjoint(texts))
    hint = " The last row looks like a spreadsheet's sum." if is_sum else ""
    hint = f" {table.units_hint}." if 0 in missing and table.units else hint
    cure = "Fill the cells in, or leave these rows out with --drop-missing (in Python: drop_missing=True)."
    if 0 not in without_id and set(without_id) - {last}:
        cure = (
            "Cells below a merged one are empty: fill them with --fill-down COLUMN (in Python: fill_down=...). If the "
            "rows belong to no candidate, leave them out with --drop-missing (drop_missing=True)."
        )
    return InvalidInput(
        f"{table.source}: {len(missing)} of {table.num_rows} rows miss a cell ({_shown(table, missing)}).{hint} {cure}"
    )


def _shown(table: Table, missing: Mapping[int, str]) -> str:
    rows = sorted(missing)
    named = ", ".join(f"row {table.line_of(row)}: {missing[row]}" for row in rows[:SHOWN])
    return named + (f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else "")


# --- Layouts that people have, as one row a measurement: cells below merged ones, and repeats side by side.


def filled_down(table: Table, names: Names) -> Table:
    """The table in which empty cells of columns say what stands above them, as below a merged cell; with a warning."""
    columns = dict(table.columns)
    for name in column_names(table, names):
        empty = np.array([not cell.strip() for cell in table.text(name)], dtype=bool)
        if empty[0]:
            raise InvalidInput(
                f"{table.source}, row {table.line_of(0)}: the first cell of column {name!r} is empty, so nothing "
                "stands above it to fill it with. Fill it in."
            )
        above = np.maximum.accumulate(np.where(empty, 0, np.arange(table.num_rows)))
        columns[name] = _taken(columns[name], above)
        if count := int(empty.sum()):
            cells = f"{count} empty cell{'s' * (count > 1)} of column {name!r}"
            warn(f"{table.source}: we fill {cells} with what stands above.")
    return replace(table, columns=columns)


def side_by_side(table: Table, rewards: Names) -> tuple[Table, str]:
    """(the table with one measurement a row, where several columns have repeats, the column of the measurements)."""
    names = column_names(table, rewards)
    if len(names) == 1:
        return table, names[0]
    for name in names:
        cells = table.column(name)
        words = [row for row in table.missing_rows(name) if isinstance(cells, tuple) and cells[row].strip()]
        if words and not table.drop_missing:
            raise InvalidInput(
                f"{table.source}, row {table.line_of(words[0])}: {name!r} is {cells[words[0]]!r}. Let a cell be empty "
                "in which nothing was measured, or leave such cells out with --drop-missing (in Python: "
                "drop_missing=True)."
            )
    values = np.stack([table.numbers_or_missing(name) for name in names], axis=1)
    rows, _ = np.nonzero(~np.isnan(values))
    if not rows.size:
        raise InvalidInput(f"{table.source}: the columns {', '.join(names)} hold no measurement.")
    if empty := values.size - len(rows):
        warn(f"{table.source}: {empty} of {values.size} cells for repeats are empty; they are no measurements.")
    joined = ",".join(names)
    columns = {name: _taken(cells, rows) for name, cells in table.columns.items() if name not in names}
    columns[joined] = values[~np.isnan(values)]
    lines = np.array([table.line_of(row) for row in rows.tolist()], dtype=np.int64)
    return replace(table, columns=columns, lines=lines, understood=Understood()), joined


def _taken(cells: Column, rows: IntArray) -> Column:
    return tuple(cells[row] for row in rows.tolist()) if isinstance(cells, tuple) else cells[rows]
