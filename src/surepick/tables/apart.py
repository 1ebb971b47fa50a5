"""The columns of a table that say something of candidates and are no features: their cost and their segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import IntArray, record
from surepick.errors import InvalidInput
from surepick.tables.costs import arm_costs, row_costs
from surepick.tables.selection import column_names
from surepick.tables.table import Table


@record
class Apart:
    """Which columns they are.

    Args:
        cost: of what one measurement costs; None: measurements cost alike.
        segments: of the segment of each candidate; None: there is one list.
        reward: of the results, which the table need not have.
    """

    cost: str | None = None
    segments: str | None = None
    reward: str | None = None

    def no_features(self, table: Table) -> tuple[str, ...]:
        """Those that are no features unless they are named as some.

        Raises:
            InvalidInput: as `columns`.
        """
        return (*self.columns(table), *([self.reward] if self.reward in table.columns else []))

    def columns(self, table: Table) -> tuple[str, ...]:
        """The columns, as the table names them.

        Raises:
            InvalidInput: the table does not have one, or both are the same.
        """
        given = [name for name in (self.cost, self.segments) if name is not None]
        return column_names(table, given) if given else ()


def rows_apart(table: Table, apart: Apart, ids: Sequence[str]) -> dict[str, Any]:
    """`costs` and `segments` of `Arms`, as far as they are asked for, where every row is a candidate.

    Raises:
        InvalidInput: a cost is no positive number, or a segment is empty; the row and the candidate are named.
    """
    found: dict[str, Any] = {}
    if apart.cost is not None:
        found["costs"] = row_costs(table, column_names(table, [apart.cost])[0], ids)
    if apart.segments is not None:
        found["segments"] = _row_segments(table, column_names(table, [apart.segments])[0], ids)
    return found


def arms_apart(table: Table, apart: Apart, ids: Sequence[str], first: IntArray, arm_of_row: IntArray) -> dict[str, Any]:
    """The same, where rows that share an id are one candidate.

    Args:
        table, apart, ids: as in `rows_apart`.
        first: the first row of each candidate, shape (K,).
        arm_of_row: index of each row's candidate, shape (rows,).

    Raises:
        InvalidInput: as `rows_apart`, or rows of one id differ.
    """
    found: dict[str, Any] = {}
    if apart.cost is not None:
        found["costs"] = arm_costs(table, column_names(table, [apart.cost])[0], ids, first, arm_of_row)
    if apart.segments is not None:
        name = column_names(table, [apart.segments])[0]
        rows = np.array(_row_segments(table, name, ids))
        differs = np.flatnonzero(rows != rows[first][arm_of_row])
        if differs.size:
            row = differs[0]
            raise InvalidInput(
                f"{table.source}, row {table.line_of(row)}: candidate {ids[row]!r} is in segment {str(rows[row])!r} of "
                f"column {name!r}, and in {str(rows[first][arm_of_row[row]])!r} in an earlier row; a candidate has one "
                "segment. Write the same in all of its rows, or make the column part of the id."
            )
        found["segments"] = rows[first].tolist()
    return found


def _row_segments(table: Table, name: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The segment of each row, without spaces around it."""
    cells = tuple(cell.strip() for cell in table.text(name))
    empty = [row for row, cell in enumerate(cells) if not cell]
    if empty:
        row, more = empty[0], len(empty) - 1
        others = f", and {more} more row{'s' * (more > 1)}" if more else ""
        raise InvalidInput(
            f"{table.source}, row {table.line_of(row)}: the segment of candidate {ids[row]!r} in column {name!r} is "
            f"empty{others}. Fill the cell in, or leave the row out."
        )
    return cells
