"""Rows in blocks: a matrix of which no more than a block at a time is in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.validation import whole_number
from surepick.errors import InvalidInput

BLOCK_ENTRIES = 4_000_000
LEAST_ROWS = 6  # a power of two


@runtime_checkable
class RowSource(Protocol):
    """Some of the rows, in a file or elsewhere. It goes to other processes and machines, so it opens files when read.

    `name` says where they lie, for messages.
    """

    @property
    def name(self) -> str: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_columns(self) -> int: ...
    @property
    def row_bytes(self) -> int:
        """Bytes that reading a row takes."""
        ...

    def read(self, start: int, stop: int) -> FloatArray:
        """Rows start .. stop - 1, shape (stop - start, D), float32 or float64.

        Raises:
            InvalidInput: they cannot be read, or are no longer what they were.
        """
        ...

    def take(self, rows: IntArray) -> FloatArray:
        """Single rows, ascending, shape (n, D), without reading all of those between.

        Raises:
            InvalidInput: as `read`.
        """
        ...


@runtime_checkable
class NamedSource(Protocol):
    """Rows that have ids of their own."""

    def ids(self, rows: IntArray) -> list[str] | None:
        """The ids of single rows, ascending; None where they have none."""
        ...


@runtime_checkable
class StoredSource(Protocol):
    """Rows in a file, which another process can open again."""

    @property
    def spec(self) -> dict[str, Any]:
        """Its absolute path, and how it is read, as plain data."""
        ...


@record
class Block:
    """Consecutive rows of one source.

    Args:
        source: where they lie.
        start, stop: which rows of the source.
        first: the number of the first one among all rows.
    """

    source: RowSource
    start: int
    stop: int
    first: int

    def read(self) -> FloatArray:
        """The rows, shape (n, D), finite.

        Raises:
            InvalidInput: they cannot be read, or one has NaN or an infinite number (its row is named).
        """
        values = self.source.read(self.start, self.stop)
        if not np.isfinite(values).all():
            wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
            more = (
                f", and {len(wrong) - 1} more in the {len(values):,} rows from {self.start}" if len(wrong) > 1 else ""
            )
            raise InvalidInput(
                f"{self.source.name}, row {self.start + int(wrong[0])} has NaN or an infinite number{more} (the first "
                "row is 0). Fill or drop them."
            )
        return values


@record
class RowBlocks:
    """A matrix X of K rows and D columns, as blocks of rows.

    A row has the number that it has when the sources are laid one after the other.

    Args:
        sources: where the rows lie, in their order.
        block_entries: most numbers in a block. Results of passes depend on it in their last bits, and on nothing else:
            not on who does the work.

    Raises:
        InvalidInput: there is no row, or two sources differ in their columns.
    """

    sources: tuple[RowSource, ...]
    block_entries: int = BLOCK_ENTRIES

    def __init__(self, sources: Sequence[RowSource], *, block_entries: int = BLOCK_ENTRIES) -> None:
        whole_number("block_entries", block_entries, least=1, meaning="the most numbers in a block.")
        kept = tuple(sources)
        if not kept or not sum(one.num_rows for one in kept):
            raise InvalidInput("there is no row; nothing can be chosen.")
        columns = kept[0].num_columns
        for one in kept[1:]:
            if one.num_columns != columns:
                raise InvalidInput(
                    f"{one.name} has {one.num_columns} columns and {kept[0].name} has {columns}; all files have the "
                    "same columns."
                )
        if columns == 0:
            raise InvalidInput(f"{kept[0].name} has no feature column; candidates of this kind need at least one.")
        object.__setattr__(self, "sources", kept)
        object.__setattr__(self, "block_entries", block_entries)

    @property
    def num_rows(self) -> int:
        """K."""
        return sum(one.num_rows for one in self.sources)

    @property
    def num_columns(self) -> int:
        """D."""
        return self.sources[0].num_columns

    @property
    def num_bytes(self) -> int:
        """Bytes that a pass over all rows reads."""
        return sum(one.num_rows * one.row_bytes for one in self.sources)

    @property
    def block_rows(self) -> int:
        """Rows of a block: a power of two, so that hashes of blocks are branches of the tree of hashes."""
        return 1 << max(LEAST_ROWS, (self.block_entries // self.num_columns).bit_length() - 1)

    def blocks(self) -> list[Block]:
        """All rows, in their order. No block has rows of two sources."""
        step, found, first = self.block_rows, [], 0
        for source in self.sources:
            for start in range(0, source.num_rows, step):
                stop = min(start + step, source.num_rows)
                found.append(Block(source, start, stop, first + start))
            first += source.num_rows
        return found

    def take(self, rows: IntArray) -> FloatArray:
        """Single rows by their numbers, ascending, shape (n, D), float64.

        Raises:
            InvalidInput: there is none of that number, they do not ascend, or they cannot be read.
        """
        wanted = np.asarray(rows, np.int64)
        if len(wanted) and not (wanted[0] >= 0 and wanted[-1] < self.num_rows and (np.diff(wanted) > 0).all()):
            raise InvalidInput(f"rows are numbers from 0 to {self.num_rows - 1}, ascending.")
        found, first = np.empty((len(wanted), self.num_columns)), 0
        for source in self.sources:
            here = slice(*np.searchsorted(wanted, [first, first + source.num_rows]))
            if here.start < here.stop:
                found[here] = source.take(wanted[here] - first)
            first += source.num_rows
        return found

    def ids(self, rows: IntArray) -> list[str]:
        """The ids of single rows, ascending: those that their source has for them, else their numbers.

        Raises:
            InvalidInput: they cannot be read.
        """
        wanted, found, first = np.asarray(rows, np.int64), list[str](), 0
        for source in self.sources:
            here = wanted[slice(*np.searchsorted(wanted, [first, first + source.num_rows]))]
            own = source.ids(here - first) if isinstance(source, NamedSource) else None
            found += map(str, here.tolist()) if own is None else own
            first += source.num_rows
        return found

    @property
    def spec(self) -> dict[str, Any] | None:
        """Where the rows lie, as plain data; None where they are not all in files."""
        found = [one.spec for one in self.sources if isinstance(one, StoredSource)]
        return {"files": found, "block_entries": self.block_entries} if len(found) == len(self.sources) else None

    def place(self, row: int) -> tuple[RowSource, int]:
        """(the source of a row, its number there)."""
        ends = np.cumsum([one.num_rows for one in self.sources]).tolist()
        source = bisect_right(ends, row)
        return self.sources[source], row - (ends[source - 1] if source else 0)
