"""The column of a table that says what one measurement of each candidate costs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.errors import InvalidInput
from surepick.tables.table import Table

POSITIVE = "A cost is a positive number, in the same currency for all candidates"


def row_costs(table: Table, name: str, ids: Sequence[str]) -> FloatArray:
    """What one measurement costs, row by row.

    Args:
        table: the rows.
        name: the column.
        ids: the candidate of each row.

    Returns:
        Shape (rows,), positive and finite.

    Raises:
        InvalidInput: there is no such column, or a cell is empty, a text, zero, negative or infinite; the message names
            the row and the candidate.
    """
    empty = table.missing_rows(name)
    if empty:
        raise _refused(table, name, ids, empty, f"{POSITIVE}. Fill the cell in, or leave the row out")
    words = table.bad_rows(name)
    if words:
        raise _refused(table, name, ids, words, f"{POSITIVE}, without a unit. Correct the cell")
    costs = table.numbers(name)
    wrong = np.flatnonzero(~((costs > 0.0) & np.isfinite(costs))).tolist()
    if wrong:
        raise _refused(table, name, ids, wrong, f"{POSITIVE}. Correct the cell, or leave the row out")
    return costs


def arm_costs(table: Table, name: str, ids: Sequence[str], first: IntArray, arm_of_row: IntArray) -> FloatArray:
    """What one measurement of each candidate costs, where rows that share an id are one.

    Args:
        table, name, ids: as in `row_costs`.
        first: the first row of each candidate, shape (K,).
        arm_of_row: index of each row's candidate, shape (rows,).

    Returns:
        Shape (K,).

    Raises:
        InvalidInput: as `row_costs`, or rows of one id differ.
    """
    rows = row_costs(table, name, ids)
    costs: FloatArray = rows[first]
    differs = np.flatnonzero(rows != costs[arm_of_row])
    if differs.size:
        row = differs[0]
        raise InvalidInput(
            f"{table.source}, row {table.line_of(row)}: candidate {ids[row]!r} costs {rows[row]:g} in column {name!r}, "
            f"and {costs[arm_of_row[row]]:g} in an earlier row; a candidate has one cost. Write the same in all of its "
            "rows."
        )
    return costs


def _refused(table: Table, name: str, ids: Sequence[str], rows: Sequence[int], cure: str) -> InvalidInput:
    row, more = rows[0], len(rows) - 1
    cell = table.text(name)[row].strip()
    others = f", and {more} more row{'s' * (more > 1)} cannot be used" if more else ""
    return InvalidInput(
        f"{table.source}, row {table.line_of(row)}: the cost of candidate {ids[row]!r} in column {name!r} is "
        f"{repr(cell) if cell else 'empty'}{others}. {cure}."
    )
