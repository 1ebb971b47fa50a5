"""Layouts that people have, as one row a measurement: cells below merged ones, and repeats side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.arrays import IntArray, record
from surepick.errors import InvalidInput
from surepick.tables.selection import Names, column_names
from surepick.tables.table import Column, Table, Understood, warn


@record
class SideBySide:
    """A table with one measurement a row.

    Args:
        table: the rows.
        reward: its column of the measurements.
    """

    table: Table
    reward: str


def filled_down(table: Table, names: Names) -> Table:
    """The table in which empty cells of columns say what stands above them, as below a merged cell of a spreadsheet.

    Args:
        table: the rows.
        names: of the columns.

    Raises:
        InvalidInput: there is no such column, or its first cell is empty.

    Warns:
        TableWarning: how many cells were filled.
    """
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


def side_by_side(table: Table, rewards: Names) -> SideBySide:
    """The table with one measurement a row, where repeats stand in several columns; an empty cell is no measurement.

    Args:
        table: the rows.
        rewards: the columns of the measurements; if it is one, the table stays as it is.

    Raises:
        InvalidInput: there is no such column, a cell has a word for no value and the table does not say that we leave
            it out, or no cell holds a measurement.

    Warns:
        TableWarning: how many cells are empty.
    """
    names = column_names(table, rewards)
    if len(names) == 1:
        return SideBySide(table, names[0])
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
    return SideBySide(replace(table, columns=columns, lines=lines, understood=Understood()), joined)


def _taken(cells: Column, rows: IntArray) -> Column:
    if isinstance(cells, tuple):
        return tuple(cells[row] for row in rows.tolist())
    taken: Column = cells[rows]
    return taken
