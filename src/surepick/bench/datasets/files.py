"""What the readers of data sets share: finding a file, numbering what repeats."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.files import is_file
from surepick.errors import DatasetMissing

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


def numbered(values: Sequence[Value]) -> tuple[list[Value], IntArray]:
    """The different values in the order of first appearance, and the place there of each value."""
    places: dict[Value, int] = {}
    index = np.array([places.setdefault(value, len(places)) for value in values], dtype=np.int64)
    return list(places), index


def one_hot(values: Sequence[Hashable]) -> FloatArray:
    """A 0/1 column for each different value, shape (len(values), different values)."""
    different, place = numbered(values)
    return np.eye(len(different))[place]
