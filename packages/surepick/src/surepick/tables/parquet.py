"""Parquet and Arrow files, through pyarrow: whole, or column by column.

A `ParquetSource` writes numbers batch by batch into an array that is there, so that they are never held twice.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surepick.core.files import check_regular
from surepick.core.frames import SOURCE, frame_of
from surepick.core.records import FloatArray
from surepick.core.values import is_absent
from surepick.errors import InvalidInput
from surepick.tables.content import LOOKED_AT, file_bytes, readable, refuse_foreign
from surepick.tables.selection import Names, column_names
from surepick.tables.table import Column, Table, cells_as_column, check_distinct

BATCH_ENTRIES = 1_000_000
COLUMNS_AT_ONCE = 16  # a page and a dictionary of each is in memory while we read them


def pyarrow_parquet() -> Any:
    """The package pyarrow with its Parquet module loaded."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput(
            'Parquet and Arrow files need pyarrow, which is absent: pip install "surepick[tables]".'
        ) from error
    return pyarrow


def read_columns(path: str | Path, kind: Literal["Parquet", "Arrow"] = "Parquet") -> dict[str, list[Any]]:
    """The columns of a Parquet or an Arrow file (Feather, IPC file or stream) as they were written."""
    arrow = pyarrow_parquet()
    content = file_bytes(Path(path), "parquet" if kind == "Parquet" else "arrow")
    if content.startswith(b"FEA1"):
        raise InvalidInput(f"{path} is a Feather file of version 1, which we do not read; write it in version 2.")
    with readable(path, kind):
        if kind == "Parquet":
            found = arrow.parquet.read_table(io.BytesIO(content))
        else:
            opened = arrow.ipc.open_file if content.startswith(b"ARROW1") else arrow.ipc.open_stream
            found = opened(content).read_all()
        found.validate(full=True)  # damaged offsets and texts point anywhere
        check_distinct(path, found.column_names)
        columns: dict[str, list[Any]] = found.to_pydict()
    return columns


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """A Parquet file that is open for reading."""

    name: str  # its path, for messages
    file: Any  # the reader of pyarrow
    numbers: dict[str, Any]  # columns of numbers and of lists of numbers -> their type, one of pyarrow's

    @staticmethod
    @contextmanager
    def open(path: Path) -> Iterator[ParquetSource]:
        """The file, of which only the schema is read."""
        arrow = pyarrow_parquet()
        check_regular(path)
        with readable(path, "Parquet"), path.open("rb") as file:
            refuse_foreign(path, file.read(LOOKED_AT), "parquet")
        with readable(path, "Parquet"):
            file = arrow.parquet.ParquetFile(path, memory_map=True)
        try:
            with readable(path, "Parquet"):
                numbers = {one.name: one.type for one in file.schema_arrow if _holds_numbers(arrow.types, one.type)}
                source = ParquetSource(str(path), file, numbers)
                names = source.names
                groups = sum(file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
                if groups != source.num_rows:
                    raise ValueError(f"its header counts {source.num_rows} rows, and its parts hold {groups}")
            if source.num_rows == 0 or not names:
                raise InvalidInput(f"{path} has no rows; there is nothing to choose among.")
            check_distinct(path, names)
            yield source
        finally:
            file.close()

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return list(self.file.schema_arrow.names)

    @property
    def num_rows(self) -> int:
        """The rows that the header of the file counts."""
        return int(self.file.metadata.num_rows)

    def outline(self, whole: Collection[str], named: Collection[str] | None) -> Table:
        """A table of what we must know before we read numbers: which columns hold some, and all other cells."""
        columns: dict[str, Column] = {}
        for name in self.names:
            if name in whole or (name in named if named is not None else not self.in_lists(name)):
                unread = name in self.numbers and name not in whole
                columns[name] = np.broadcast_to(np.nan, self.num_rows) if unread else self._cells(name)
        return Table(self.name, columns)

    def in_lists(self, name: str) -> bool:
        """Whether its cells are lists of numbers."""
        return name in self.numbers and self.numbers[name].num_fields > 0

    def _cells(self, name: str) -> Column:
        with readable(self.name, "Parquet"):
            cells = self.file.read(columns=[name])[name].to_pylist()
            if len(cells) != self.num_rows:
                raise ValueError(f"column {name!r} has {len(cells)} cells for {self.num_rows} rows")
        return cells_as_column(cells)

    def parts(self, name: str) -> list[str]:
        """The names of the numbers in a column: its own, or "name[0]", "name[1]", ... for lists of equal length."""
        if not self.in_lists(name):
            return [name]
        with readable(self.name, "Parquet"):
            first = next(self.file.iter_batches(batch_size=1, columns=[name])).column(name)[0].as_py()
        if not first:
            raise InvalidInput(f"{self.name}, row 1: no numbers in the column {name!r}; give lists of equal length.")
        return [f"{name}[{place}]" for place in range(len(first))]

    def in_single(self, names: Iterable[str]) -> bool:
        """float32 holds the numbers of these columns."""
        items = [getattr(self.numbers[name], "value_type", self.numbers[name]) for name in names]
        return all(str(item) in {"float", "halffloat"} for item in items)

    def read_numbers(self, into: FloatArray, places: Mapping[str, slice]) -> None:
        """Write columns of numbers into an array, some at a time, batch by batch; a missing number becomes NaN."""
        names = list(places)
        with readable(self.name, "Parquet"):
            for start in range(0, len(names), COLUMNS_AT_ONCE):
                some, top = names[start : start + COLUMNS_AT_ONCE], 0
                width = sum(places[name].stop - places[name].start for name in some)
                for batch in self.file.iter_batches(batch_size=max(1, BATCH_ENTRIES // width), columns=some):
                    for name in some:
                        self._write(into[top : top + len(batch), places[name]], name, batch.column(name), top)
                    top += len(batch)
                if top != len(into):  # nobody has written to what is left
                    raise ValueError(f"{top} rows were found where its header counts {len(into)}")

    def _write(self, block: FloatArray, name: str, column: Any, top: int) -> None:
        if not self.in_lists(name):
            block[:, 0] = column.to_numpy(zero_copy_only=False)
            return
        there = np.asarray(column.is_valid())
        lengths = np.asarray(column.value_lengths().fill_null(block.shape[1]))
        wrong = np.flatnonzero(lengths != block.shape[1])
        if wrong.size:
            raise InvalidInput(
                f"{self.name}, row {top + wrong[0] + 1}: {lengths[wrong[0]]} numbers in the column {name!r} where "
                f"{block.shape[1]} were expected, as in the first row. Give lists of equal length."
            )
        block[there] = column.flatten().to_numpy(zero_copy_only=False).reshape(-1, block.shape[1])
        block[~there] = np.nan


def _holds_numbers(types: Any, kind: Any) -> bool:
    """A column of this type of pyarrow holds numbers, lists of numbers, or nothing."""
    in_lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    item = kind.value_type if in_lists else kind
    return bool(types.is_integer(item) or types.is_floating(item) or types.is_null(kind))


# --- Data frames as tables: what pandas, polars and others hold in memory is read as their file would be.


def table_of_frame(
    frame: object, named: Names | None = None, *, drop_missing: bool = False
) -> tuple[Table, Names | None, list[Any]]:
    """(a data frame as a table, without an index that is no id, the columns of its ids, None where rows are counted,
    what was given as the id of each row: a cell, or a tuple of cells of several columns)."""
    found = frame_of(frame)
    columns = {
        name: cells_as_column([None if is_absent(one) else one for one in cells])
        for name, cells in found.columns.items()
    }
    if named is None and not found.index:
        return Table(SOURCE, columns, drop_missing=drop_missing), None, found.labels
    chosen = found.index if named is None else column_names(Table(SOURCE, columns), named)
    held = {name: cells for name, cells in columns.items() if name in chosen or name not in found.index}
    parts = [found.columns[name] for name in chosen]
    labels = parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))
    return Table(SOURCE, held, drop_missing=drop_missing), chosen, labels
