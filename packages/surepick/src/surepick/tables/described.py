"""What the rows of a table say of the candidates, beside their ids: text for whoever measures, decides or reads."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from surepick.core.arms import is_nameless
from surepick.core.descriptions import NOTHING_SAID, Described
from surepick.core.records import IntArray
from surepick.tables.selection import Names, column_names, says_none
from surepick.tables.table import Table

MOST_COLUMNS = 20  # unless somebody names them
MOST_CELLS = 500_000


def described_columns(table: Table, wanted: Names | None, apart: Collection[str], rows: int) -> tuple[str, ...]:
    """The columns of a table that are kept as text.

    Args:
        table: has the columns.
        wanted: their names, "a,b" or a sequence; "none" or []: none. None: all but those apart and those without a
            name, the first MOST_COLUMNS of them, as far as MOST_CELLS allow.
        apart: columns that are not among all: those of the ids, of results, ...
        rows: of the table.
    """
    if wanted is not None:
        return () if says_none(table, wanted) else column_names(table, wanted)
    every = list(table.columns)
    names = [name for name in every if name not in apart and not is_nameless(every, name)]
    return tuple(names[: min(MOST_COLUMNS, MOST_CELLS // max(rows, 1))])


def described_rows(
    table: Table, names: Sequence[str], first: IntArray | None = None, arm_of_row: IntArray | None = None
) -> Described:
    """These columns of a table as text, a cell for each candidate.

    Args:
        table: one row or more for each candidate.
        names: the columns; one without any text is left out.
        first: the first row of each candidate; None: there is one row for each.
        arm_of_row: the candidate of each row: then columns that differ between rows of one are left out, too.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in names:
        cells = tuple(cell.strip() for cell in table.text(name))
        if first is not None and len(first) < len(cells):
            rows = np.array(cells, dtype=object)
            if arm_of_row is not None and np.any(rows != rows[first][arm_of_row]):
                continue
            cells = tuple(rows[first].tolist())
        if any(cells):
            found[name] = cells
    return Described(tuple(found), tuple(found.values())) if found else NOTHING_SAID
