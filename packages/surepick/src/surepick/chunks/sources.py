"""Where rows lie: arrays, .npy files, and whatever can be sliced like an array (Zarr, HDF5)."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from surepick.core.files import check_regular, is_folder
from surepick.core.records import FloatArray, IntArray, record, set_fields
from surepick.core.values import whole_number
from surepick.errors import InvalidInput

# --- Rows in blocks: a matrix of which no more than a block at a time is in memory.

BLOCK_ENTRIES = 4_000_000
LEAST_ROWS = 6  # a power of two


@runtime_checkable
class RowSource(Protocol):
    """Some of the rows, in a file or elsewhere. It goes to other processes and machines, so it opens files when read.
    Rows with ids of their own have `ids(rows)`; a file that another process can open has `spec`, its path and
    reading."""

    @property
    def name(self) -> str: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def num_columns(self) -> int: ...
    @property
    def row_bytes(self) -> int:
        """Bytes that reading a row takes."""

    def read(self, start: int, stop: int) -> FloatArray:
        """Rows start .. stop - 1, (stop - start, D), floats of 32 or 64 bits; InvalidInput if they were changed."""

    def take(self, rows: IntArray) -> FloatArray:
        """Single rows, ascending, shape (n, D), without reading all of those between; InvalidInput as `read`."""


@record
class Block:
    """Consecutive rows of one source."""

    source: RowSource  # where they lie
    start: int  # which rows of the source
    stop: int
    first: int  # the number of the first one among all rows

    def read(self) -> FloatArray:
        """The rows, shape (n, D), finite."""
        values = self.source.read(self.start, self.stop)
        with np.errstate(over="ignore", invalid="ignore"):
            total = values.sum()  # of numbers with one that is not finite, it is not; and far faster to form
        if not np.isfinite(total) and not np.isfinite(values).all():
            wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
            others = f", and {len(wrong) - 1} more in the {len(values):,} rows from {self.start}"
            more = others if len(wrong) > 1 else ""
            raise InvalidInput(
                f"{self.source.name}, row {self.start + int(wrong[0])} has NaN or an infinite number{more} (the first "
                "row is 0). Fill or drop them."
            )
        return values


@record
class RowBlocks:
    """A matrix X of K rows and D columns, as blocks of rows, numbered as if the sources stood in a row."""

    sources: tuple[RowSource, ...]  # where the rows lie, in their order
    # most numbers in a block. Results of passes depend on it in their last bits, and on nothing else: not on who does
    # the work.
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
        set_fields(self, sources=kept, block_entries=block_entries)

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
        """Single rows by their numbers, ascending, shape (n, D), float64."""
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
        """The ids of single rows, ascending: those that their source has for them, else their numbers."""
        wanted, found, first = np.asarray(rows, np.int64), list[str](), 0
        for source in self.sources:
            here = wanted[slice(*np.searchsorted(wanted, [first, first + source.num_rows]))]
            of = getattr(source, "ids", None)
            own = None if of is None else of(here - first)
            found += map(str, here.tolist()) if own is None else own
            first += source.num_rows
        return found

    @property
    def spec(self) -> dict[str, Any] | None:
        """Where the rows lie, as plain data; None where they are not all in files."""
        found = [spec for one in self.sources if (spec := getattr(one, "spec", None)) is not None]
        return {"files": found, "block_entries": self.block_entries} if len(found) == len(self.sources) else None

    def place(self, row: int) -> tuple[RowSource, int]:
        """(the source of a row, its number there)."""
        ends = np.cumsum([one.num_rows for one in self.sources]).tolist()
        source = bisect_right(ends, row)
        return self.sources[source], row - (ends[source - 1] if source else 0)


FLOATS = ("float32", "float64")
KINDS = "float32 or float64"


@record
class ArraySource:
    """Rows of an array, or of what can be sliced like one. Nobody may change it while it is used."""

    # (K, D), float32 or float64. For work in other processes it must be picklable, as arrays of NumPy and Zarr are.
    array: Any
    name: str = "the array"  # what it is called in messages

    def __post_init__(self) -> None:
        array = self.array
        if len(array.shape) != 2 or np.dtype(array.dtype).name not in FLOATS:
            raise InvalidInput(
                f"{self.name} has shape {tuple(array.shape)} and type {array.dtype}; rows of candidates have the shape "
                f"(K, D) and are {KINDS}."
            )

    @property
    def num_rows(self) -> int:
        return int(self.array.shape[0])

    @property
    def num_columns(self) -> int:
        return int(self.array.shape[1])

    @property
    def row_bytes(self) -> int:
        return int(np.dtype(self.array.dtype).itemsize) * self.num_columns

    def read(self, start: int, stop: int) -> FloatArray:
        return np.asarray(self.array[start:stop])

    def take(self, rows: IntArray) -> FloatArray:
        if isinstance(self.array, np.ndarray):
            return np.asarray(self.array[rows])
        return np.concatenate([np.asarray(self.array[row : row + 1]) for row in rows.tolist()])


@record
class NpySource:
    """Rows of a .npy file, read from the disk a block at a time."""

    name: str  # the path of the file
    num_rows: int  # of its array
    num_columns: int
    dtype: str  # of its numbers, with their order of bytes
    offset: int  # bytes before the first number
    changed: int  # when the file was last written, in ns; a file that is written while it is used is refused

    @staticmethod
    def of(path: str | Path) -> NpySource:
        """That of a file, of which only the header is read."""
        file = Path(path)
        found = check_regular(file)
        try:
            with file.open("rb") as opened:
                version = np.lib.format.read_magic(opened)
                read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                shape, by_columns, dtype = read(opened)
                offset = opened.tell()
        except (OSError, ValueError, EOFError) as error:
            raise InvalidInput(f"{file} is not a .npy file that NumPy writes: {error}.") from None
        if len(shape) != 2 or dtype.newbyteorder("=").name not in FLOATS or by_columns:
            order = ", column after column" if by_columns else ""
            raise InvalidInput(
                f"{file} holds an array of shape {shape} and type {dtype}{order}; candidates are rows of a (K, D) "
                f"array of {KINDS}, row after row (np.ascontiguousarray)."
            )
        wanted = offset + shape[0] * shape[1] * dtype.itemsize
        if found.st_size != wanted:
            whole = (found.st_size - offset) // max(dtype.itemsize * shape[1], 1)
            raise InvalidInput(
                f"{file} has {found.st_size:,} bytes where its header says {wanted:,}: {whole:,} of {shape[0]:,} rows "
                "are there. It was cut off, or is still being written; make it again."
            )
        return NpySource(str(file), int(shape[0]), int(shape[1]), dtype.str, offset, found.st_mtime_ns)

    @property
    def spec(self) -> dict[str, Any]:
        return {"path": str(Path(self.name).resolve()), "changed": self.changed}

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * self.num_columns

    def read(self, start: int, stop: int) -> FloatArray:
        self._check_unchanged()
        number = (stop - start) * self.num_columns
        try:
            found = np.fromfile(self.name, np.dtype(self.dtype), number, offset=self.offset + start * self.row_bytes)
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror or error}.") from None
        if len(found) != number:
            raise InvalidInput(f"{self.name} ends at row {start + len(found) // self.num_columns}; it was cut off.")
        return self._native(found.reshape(-1, self.num_columns))

    def take(self, rows: IntArray) -> FloatArray:
        self._check_unchanged()
        mapped = np.memmap(self.name, np.dtype(self.dtype), "r", self.offset, (self.num_rows, self.num_columns))
        return self._native(np.array(mapped[rows]))

    def _native(self, found: NDArray[Any]) -> FloatArray:
        return found.astype(found.dtype.newbyteorder("="), copy=False)

    def _check_unchanged(self) -> None:
        try:
            now = os.stat(self.name)  # noqa: PTH116 (once a block)
        except OSError as error:
            raise InvalidInput(f"{self.name} cannot be read: {error.strerror or error}.") from None
        if now.st_mtime_ns != self.changed:
            raise InvalidInput(f"{self.name} was written to while it was used; what was found in it is worth nothing.")


def rows_of(where: Any, *, block_entries: int = BLOCK_ENTRIES) -> RowBlocks:
    """The rows of an array (K, D) or what can be sliced like one (Zarr, h5py), of a .npy file, of all in a folder in
    the order of their names, or of `RowBlocks`, which stay."""
    if isinstance(where, RowBlocks):
        return where
    if not isinstance(where, (str, Path)):
        return RowBlocks((ArraySource(where),), block_entries=block_entries)
    if is_folder(where):
        files = sorted(Path(where).glob("*.npy"))
        if not files:
            raise InvalidInput(f"the folder {where} has no .npy file.")
        return RowBlocks([NpySource.of(file) for file in files], block_entries=block_entries)
    return RowBlocks([NpySource.of(where)], block_entries=block_entries)


# --- What is known of a list too long for memory, where only a part of it is compared.


class LongListed(Protocol):
    """A list too long to be compared one by one, from which the arms of a study were selected."""

    @property
    def total(self) -> int:
        """Its candidates."""

    @property
    def minimize(self) -> bool:
        """Small rewards are good, as they were when the arms were selected."""

    def check(self, rows: RowBlocks) -> str:
        """Select the arms again; what was found, in words. InvalidInput if the list or the arms are others."""
