"""What the readers of data sets share: files, refused rows, numbers for what repeats, coordinates."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.core.files import is_file
from surepick.errors import DatasetMissing, InvalidInput
from surepick.linalg.factorisations import thin_svd
from surepick.tables import Table

Value = TypeVar("Value", bound=Hashable)


def data_file(folder: Path, name: str, recipe: str) -> Path:
    """The file of that name in the folder, packed (name.gz) or plain.

    Raises:
        DatasetMissing: there is neither; the message holds the recipe.
    """
    for path in (folder / f"{name}.gz", folder / name):
        if is_file(path):
            return path
    raise DatasetMissing(f"There is neither {name}.gz nor {name} in {folder}.", recipe=recipe)


def refuse_rows(table: Table, bad: BoolArray, fault: Callable[[int], str], recipe: str) -> None:
    """Refuse a table with bad rows.

    Args:
        bad: shape (rows,).
        fault: the first bad row -> a sentence about it.

    Raises:
        InvalidInput: some row is bad; the message holds the recipe.
    """
    rows = np.flatnonzero(bad)
    if rows.size:
        raise InvalidInput(f"{table.source}, row {table.line_of(rows[0])}: {fault(int(rows[0]))} {recipe}")


def numbered(values: Sequence[Value]) -> tuple[list[Value], IntArray]:
    """The different values in the order of first appearance, and the place there of each value."""
    places: dict[Value, int] = {}
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return list(places), index


def one_hot(values: Sequence[Hashable]) -> FloatArray:
    """A 0/1 column for each different value, shape (len(values), different values)."""
    different, place = numbered(values)
    return np.eye(len(different))[place]


def in_row_space(features: FloatArray, *, tolerance: float) -> FloatArray:
    """The rows in orthonormal coordinates of their span, U diag(s), shape (K, rank).

    Args:
        tolerance: singular values of at most this share of the largest count as rounding errors.
    """
    u, singular, _ = thin_svd(features)
    kept = singular > tolerance * singular[0]
    coordinates: FloatArray = u[:, kept] * singular[kept]
    return coordinates
