"""Parquet files column by column: numbers go batch by batch into an array that is there, and are never held twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.files import check_regular
from surepick.errors import InvalidInput
from surepick.tables.arrow import check_distinct, pyarrow_parquet
from surepick.tables.content import readable
from surepick.tables.reading import cells_as_column
from surepick.tables.table import Column, Table

BATCH_ENTRIES = 1_000_000
COLUMNS_AT_ONCE = 16  # a page and a dictionary of each is in memory while they are read
NUMBERS = np.zeros(0)
NO_TEXT: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParquetSource:
    """A Parquet file that is open for reading.

    Args:
        name: its path, for messages.
        file: the reader of pyarrow.
    """

    name: str
    file: Any

    @staticmethod
    def open(path: Path) -> ParquetSource:
        """The file, of which only the schema is read.

        Raises:
            InvalidInput: the file is missing, no Parquet file, without rows or with equal names, or pyarrow is absent.
        """
        arrow = pyarrow_parquet()
        check_regular(path)
        with readable(path, "Parquet"):
            source = ParquetSource(str(path), arrow.parquet.ParquetFile(path, memory_map=True))
            names, rows = source.names, source.num_rows
            groups = sum(source.file.metadata.row_group(group).num_rows for group in range(source.file.num_row_groups))
        if groups != rows:
            raise source.damaged(f"its header counts {rows} rows, and its parts hold {groups}")
        if rows == 0 or not names:
            raise InvalidInput(f"{path} has no rows; there is nothing to choose among.")
        check_distinct(path, names)
        return source

    def close(self) -> None:
        self.file.close()

    def damaged(self, why: str) -> InvalidInput:
        """What is raised where the parts of the file contradict each other."""
        return InvalidInput(f"{self.name} is not a readable Parquet file: {why}. Obtain or write it again.")

    @property
    def names(self) -> list[str]:
        return list(self.file.schema_arrow.names)

    @property
    def num_rows(self) -> int:
        return int(self.file.metadata.num_rows)

    def header(self) -> Table:
        """A table that knows the names of the columns and none of their cells."""
        return Table(self.name, dict.fromkeys(self.names, NO_TEXT))

    def outline(self, *, whole: Sequence[str], named: Sequence[str] | None) -> Table:
        """A table of what must be known before the numbers are read: texts, and the columns that are asked for.

        Args:
            whole: columns that are read whatever they hold (the ids).
            named: other columns in which one is interested; None: all but those of lists.

        Returns:
            Columns of numbers without their cells, an array of length 0; so are lists of numbers that are named.
        """
        columns: dict[str, Any] = {}
        for name in self.names:
            of_numbers = self._holds_numbers(name)
            if name in whole or (not of_numbers and not self._is_list(name) and (named is None or name in named)):
                columns[name] = self._cells(name)
            elif of_numbers or (named is not None and name in named):
                columns[name] = NUMBERS
            else:
                columns[name] = NO_TEXT
        return Table(self.name, columns)

    def _cells(self, name: str) -> Column:
        with readable(self.name, "Parquet"):
            cells = self.file.read(columns=[name])[name].to_pylist()
        if len(cells) != self.num_rows:
            raise self.damaged(f"column {name!r} has {len(cells)} cells for {self.num_rows} rows")
        return cells_as_column(cells)

    def parts(self, name: str) -> tuple[str, ...]:
        """The names of the numbers in a column: its own, or "name[0]", "name[1]", ... for lists of equal length."""
        return tuple(f"{name}[{place}]" for place in range(self._length(name))) if self._is_list(name) else (name,)

    def in_single(self, name: str) -> bool:
        """The numbers of the column fit in float32."""
        kind = self._kind(name)
        return str(kind.value_type if self._is_list(name) else kind) in {"float", "halffloat"}

    def read_numbers(self, into: FloatArray, places: Mapping[str, slice]) -> None:
        """Write columns of numbers into an array, some at a time, batch by batch; a missing number becomes NaN.

        Args:
            into: shape (rows, any).
            places: name -> the columns of the array that its parts take.

        Raises:
            InvalidInput: the file is damaged, or lists differ in length (the row is named).
        """
        names = list(places)
        with readable(self.name, "Parquet"):
            for start in range(0, len(names), COLUMNS_AT_ONCE):
                self._read_some(into, {name: places[name] for name in names[start : start + COLUMNS_AT_ONCE]})

    def _read_some(self, into: FloatArray, places: Mapping[str, slice]) -> None:
        width, top = sum(place.stop - place.start for place in places.values()), 0
        for batch in self.file.iter_batches(batch_size=max(1, BATCH_ENTRIES // width), columns=list(places)):
            for name, place in places.items():
                block = into[top : top + len(batch), place]
                if self._is_list(name):
                    self._write_lists(block, name, batch.column(name), top)
                else:
                    block[:, 0] = batch.column(name).to_numpy(zero_copy_only=False)
            top += len(batch)
        if top != len(into):  # what is left was never written to
            raise self.damaged(f"{top} rows were found where its header counts {len(into)}")

    def _write_lists(self, block: FloatArray, name: str, column: Any, top: int) -> None:
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

    def _kind(self, name: str) -> Any:
        return self.file.schema_arrow.field(name).type

    def _is_list(self, name: str) -> bool:
        types, kind = pyarrow_parquet().types, self._kind(name)
        return bool(
            (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
            and (types.is_integer(kind.value_type) or types.is_floating(kind.value_type))
        )

    def _holds_numbers(self, name: str) -> bool:
        types, kind = pyarrow_parquet().types, self._kind(name)
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_null(kind))

    def _length(self, name: str) -> int:
        with readable(self.name, "Parquet"):
            first = next(self.file.iter_batches(batch_size=1, columns=[name])).column(name)[0].as_py()
        if not first:
            raise InvalidInput(f"{self.name}, row 1: no numbers in the column {name!r}; give lists of equal length.")
        return len(first)
