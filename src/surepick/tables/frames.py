"""Data frames as tables: what pandas, polars and others hold in memory is read as their file would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surepick.core.arms import Arms
from surepick.core.arrays import record
from surepick.core.frames import SOURCE, frame_of
from surepick.core.originals import Originals
from surepick.core.values import is_absent
from surepick.tables.selection import Names, column_names, row_ids
from surepick.tables.table import Column, Table, cells_as_column


@record
class FrameTable:
    """A data frame as a table.

    Args:
        table: its columns; of those of its index only what is the id.
        id: the columns of the ids; None: the rows are counted.
        labels: what was given as the id of each row: a cell, or a tuple of cells where several columns are the id.
    """

    table: Table
    id: Names | None
    labels: list[Any]

    def with_labels(self, arms: Arms, kept: Table) -> Arms:
        """The arms of the rows that were kept, which remember what their ids were in the frame."""
        rows = [kept.line_of(row) - 1 for row in range(kept.num_rows)]
        return arms.with_objects(Originals.of(row_ids(kept, self.id), (self.labels[row] for row in rows)))


def table_of_frame(frame: object, id: Names | None = None, *, drop_missing: bool = False) -> FrameTable:  # noqa: A002 (as in read_arms)
    """A data frame as a table, and the columns of its ids.

    Args:
        frame: as `core.frames.is_frame` knows it.
        id: as in `read_arms`; an index may be named, too. None: the index, where rows are not only counted.
        drop_missing: as in `read_table`.

    Raises:
        InvalidInput: as `frame_of`, or there is no such column.
    """
    found = frame_of(frame)
    columns = {name: _column(cells) for name, cells in found.columns.items()}
    if id is None and not found.index:
        return FrameTable(Table(SOURCE, columns, drop_missing=drop_missing), None, found.labels)
    chosen = found.index if id is None else column_names(Table(SOURCE, columns), id)
    held = {name: cells for name, cells in columns.items() if name in chosen or name not in found.index}
    parts = [found.columns[name] for name in chosen]
    labels = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
    return FrameTable(Table(SOURCE, held, drop_missing=drop_missing), chosen, labels)


def _column(cells: Sequence[Any]) -> Column:
    return cells_as_column([None if is_absent(one) else one for one in cells])
