"""Where rows lie: arrays, .npy files, and whatever can be sliced like an array (Zarr, HDF5)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from surepick.blocks.rows import BLOCK_ENTRIES, RowBlocks
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.files import check_regular, is_folder
from surepick.errors import InvalidInput

FLOATS = ("float32", "float64")
KINDS = "float32 or float64"


class Sliceable(Protocol):
    """An array of which parts can be read: of NumPy, Zarr, h5py, ..."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...
    def __getitem__(self, rows: Any) -> Any: ...


@record
class ArraySource:
    """Rows of an array, or of what can be sliced like one. Nobody may change it while it is used.

    Args:
        array: shape (K, D), float32 or float64. For work in other processes it must be picklable, as arrays of NumPy
            and Zarr are.
        name: what it is called in messages.

    Raises:
        InvalidInput: another shape or type.
    """

    array: Any
    name: str = "the array"

    def __post_init__(self) -> None:
        array = cast(Sliceable, self.array)
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
    """Rows of a .npy file, read from the disk a block at a time.

    Args:
        path: of the file.
        shape: of its array.
        dtype: of its numbers, with their order of bytes.
        offset: bytes before the first number.
        changed: when the file was last written, in ns; a file that is written while it is used is refused.
    """

    path: str
    shape: tuple[int, int]
    dtype: str
    offset: int
    changed: int

    @staticmethod
    def of(path: str | Path) -> NpySource:
        """That of a file, of which only the header is read.

        Raises:
            InvalidInput: it is missing, no .npy file of a (K, D) array of floats in the order of C, or shorter or
                longer than its header says.
        """
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
        return NpySource(str(file), (int(shape[0]), int(shape[1])), dtype.str, offset, found.st_mtime_ns)

    @property
    def name(self) -> str:
        return self.path

    @property
    def spec(self) -> dict[str, Any]:
        return {"path": str(Path(self.path).resolve()), "changed": self.changed}

    @property
    def num_rows(self) -> int:
        return self.shape[0]

    @property
    def num_columns(self) -> int:
        return self.shape[1]

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.dtype).itemsize * self.shape[1]

    def read(self, start: int, stop: int) -> FloatArray:
        self._check_unchanged()
        number = (stop - start) * self.shape[1]
        try:
            found = np.fromfile(self.path, np.dtype(self.dtype), number, offset=self.offset + start * self.row_bytes)
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be read: {error.strerror or error}.") from None
        if len(found) != number:
            raise InvalidInput(f"{self.path} ends at row {start + len(found) // self.shape[1]}; it was cut off.")
        return self._native(found.reshape(-1, self.shape[1]))

    def take(self, rows: IntArray) -> FloatArray:
        self._check_unchanged()
        mapped = np.memmap(self.path, np.dtype(self.dtype), "r", self.offset, self.shape)
        return self._native(np.array(mapped[rows]))

    def _native(self, found: NDArray[Any]) -> FloatArray:
        native: FloatArray = found.astype(found.dtype.newbyteorder("="), copy=False)
        return native

    def _check_unchanged(self) -> None:
        try:
            now = os.stat(self.path)  # noqa: PTH116 (once a block)
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be read: {error.strerror or error}.") from None
        if now.st_mtime_ns != self.changed:
            raise InvalidInput(f"{self.path} was written to while it was used; what was found in it is worth nothing.")


def rows_of(where: Any, *, block_entries: int = BLOCK_ENTRIES) -> RowBlocks:
    """The rows of an array, of a .npy file, or of all .npy files of a folder in the order of their names.

    Args:
        where: an array of shape (K, D) or what can be sliced like one (Zarr, h5py), a path, or `RowBlocks`, which stay.
        block_entries: most numbers in a block.

    Raises:
        InvalidInput: there is none, or one is not what it should be.
    """
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
