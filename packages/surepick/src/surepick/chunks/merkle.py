"""A hash of all rows, of which each row can be shown to be one: a Merkle tree.

    leaf = H(0, type, bytes of 32 rows)        node = H(1, left, right)        H = SHA-256

The tree over n leaves has the largest power of two below n on its left (RFC 6962). Leaves begin anew with each source.
The root is H(2, columns, rows of each source, top of the tree), so that the number of a row means one row only.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick.chunks.sources import RowBlocks
from surepick.core.records import FloatArray, record
from surepick.errors import InvalidInput

LEAF_ROWS = 32
SIZE = 32  # bytes of a hash


def leaves_of(rows: FloatArray, _: int) -> bytes:
    """The hashes of the leaves of consecutive rows, one after the other."""
    begun = hashlib.sha256(b"\0" + rows.dtype.newbyteorder("<").str.encode())
    stored = _stored(rows).reshape(-1).view(np.uint8).data
    size, found = LEAF_ROWS * rows.shape[1] * rows.dtype.itemsize, []
    for top in range(0, len(stored), size):
        leaf = begun.copy()
        leaf.update(stored[top : top + size])
        found.append(leaf.digest())
    return b"".join(found)


def _stored(rows: FloatArray) -> NDArray[Any]:
    return np.ascontiguousarray(rows, rows.dtype.newbyteorder("<"))


def _node(children: bytes) -> bytes:
    return hashlib.sha256(b"\1" + children).digest()


def _levels(leaves: bytes) -> list[bytes]:
    """The levels of the tree, each as its hashes in a row, leaves first; a node without a neighbour moves up."""
    levels = [leaves]
    while len(levels[-1]) > SIZE:
        below = levels[-1]
        whole = len(below) - len(below) % (2 * SIZE)
        above = [_node(below[top : top + 2 * SIZE]) for top in range(0, whole, 2 * SIZE)]
        levels.append(b"".join(above) + below[whole:])
    return levels


@record
class Path:
    """That a row is one of those behind a root."""

    row: int  # its number
    rows: bytes  # bytes of the rows of its leaf
    dtype: str  # of their numbers
    beside: tuple[str, ...]  # hashes of the neighbours from the leaf up to the root, in hexadecimal digits

    def spec(self) -> dict[str, Any]:
        """As plain data."""
        rows = base64.b64encode(self.rows).decode()
        return {"row": self.row, "rows": rows, "dtype": self.dtype, "beside": list(self.beside)}

    @staticmethod
    def of(spec: Mapping[str, Any]) -> Path:
        """From plain data."""
        try:
            rows, beside = base64.b64decode(spec["rows"], validate=True), tuple(map(str, spec["beside"]))
            return Path(int(spec["row"]), rows, str(spec["dtype"]), beside)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInput(f"a path of a row cannot be read: {error!r}.") from None

    def features(self, root: str, sizes: Sequence[int], num_columns: int) -> FloatArray:
        """The row, shape (D,), float64, if the path leads to the root."""
        wrong = InvalidInput(f"row {self.row} is not shown to be one of the list with the root {root[:12]}...")
        try:
            leaf, inside, filled = _leaf_of(self.row, sizes)
            neighbours = [bytes.fromhex(one) for one in self.beside]
            values = np.frombuffer(self.rows, {"<f4": "<f4", "<f8": "<f8"}[self.dtype]).reshape(filled, num_columns)
        except (KeyError, ValueError):
            raise wrong from None
        found = hashlib.sha256(b"\0" + self.dtype.encode() + self.rows).digest()
        number, place = _num_leaves(sizes), leaf
        while number > 1:
            if place ^ 1 < number:
                if not neighbours:
                    raise wrong
                other = neighbours.pop(0)
                found = _node(found + other if place % 2 == 0 else other + found)
            number, place = (number + 1) // 2, place // 2
        if neighbours or _root(found, sizes, num_columns) != root:
            raise wrong
        return np.asarray(values[inside].astype(np.float64))


def _root(top: bytes, sizes: Sequence[int], num_columns: int) -> str:
    numbers = b"".join(number.to_bytes(8, "little") for number in (num_columns, *sizes))
    return hashlib.sha256(b"\2" + numbers + top).hexdigest()


def _leaf_of(row: int, sizes: Sequence[int]) -> tuple[int, int, int]:
    """(number of a row's leaf, the row's place in it, rows of that leaf)."""
    before = 0
    for size in sizes:
        if 0 <= row < size:
            start = row - row % LEAF_ROWS
            return before + row // LEAF_ROWS, row % LEAF_ROWS, min(LEAF_ROWS, size - start)
        row, before = row - size, before + _num_leaves([size])
    raise ValueError("no such row")


def _num_leaves(sizes: Sequence[int]) -> int:
    return sum(-(-size // LEAF_ROWS) for size in sizes)


class Tree:
    """The tree of all rows, from the hashes of their leaves, one after the other, as `leaves_of` gives them."""

    def __init__(self, rows: RowBlocks, leaves: bytes) -> None:
        self._rows = rows
        self._levels = _levels(leaves)

    @property
    def root(self) -> str:
        """In hexadecimal digits."""
        return _root(self._levels[-1], self.sizes, self._rows.num_columns)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows of each source."""
        return tuple(one.num_rows for one in self._rows.sources)

    def path(self, row: int) -> Path:
        """That of a row."""
        place, inside, filled = _leaf_of(row, self.sizes)
        source, there = self._rows.place(row)
        rows = _stored(source.read(there - inside, there - inside + filled))
        beside = []
        for level in self._levels[:-1]:
            neighbour = level[SIZE * (place ^ 1) : SIZE * ((place ^ 1) + 1)]
            if neighbour:
                beside.append(neighbour.hex())
            place //= 2
        return Path(row, rows.tobytes(), rows.dtype.str, tuple(beside))
