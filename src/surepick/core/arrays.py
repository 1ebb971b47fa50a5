"""Arrays in frozen records, and the decorator that makes a record.

Arrays in a record are read-only, so that it can be shared without fear; two records are equal when their fields are,
arrays compared element by element. An array that is given is copied, unless nobody can write to it: it and every array
that it is a view of are read-only, down to the memory. Read-only arrays are shared, so if you pass one, keep no
writeable view of it and do not make it writeable again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, cast, dataclass_transform

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

T = TypeVar("T")


def _equal(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return bool(np.array_equal(left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return False  # an array and None
    return bool(left == right)


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots whose equality compares arrays element by element."""

    def equal(self: Any, other: Any) -> Any:
        if type(self) is not type(other):
            return NotImplemented
        compared = [each.name for each in fields(self) if each.compare]
        return all(_equal(getattr(self, name), getattr(other, name)) for name in compared)

    cls.__eq__ = equal  # type: ignore[method-assign]
    cls.__hash__ = None  # type: ignore[assignment]
    return dataclass(frozen=True, slots=True, eq=False)(cls)


def settled(array: NDArray[Any]) -> bool:
    """Nobody can write to the array: it and every array that it is a view of are read-only, down to the memory.

    The memory is an array's own, or what an array was laid over: bytes, a file mapped for reading.
    """
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return False
        if owner.base is None:
            return True
        owner = owner.base
    try:
        return memoryview(cast(Any, owner)).readonly
    except TypeError:
        return False


def set_fields(instance: object, **values: object) -> None:
    """Set fields of a frozen record while it is made; arrays become read-only: copies, unless nobody can write to
    them."""
    for name, value in values.items():
        kept = value
        if isinstance(value, np.ndarray) and not settled(value):
            kept = np.array(value)
            kept.flags.writeable = False
        object.__setattr__(instance, name, kept)


def freeze(instance: object, **arrays: np.dtype[Any] | type) -> None:
    """Replace the named array fields of a frozen record by read-only arrays of the given dtype: copies, unless
    nobody can write to the given one."""
    for name, dtype in arrays.items():
        value = getattr(instance, name)
        if value is None:
            continue
        if not (isinstance(value, np.ndarray) and value.dtype == dtype and settled(value)):
            value = np.array(value, dtype=dtype)
            value.flags.writeable = False
        object.__setattr__(instance, name, value)


def array_bytes(value: object) -> int:
    """The bytes of all arrays in a value: in records, tuples, lists and mappings."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value) and not isinstance(value, type):
        return sum(array_bytes(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, Mapping):
        return sum(map(array_bytes, value.values()))
    return sum(map(array_bytes, value)) if isinstance(value, tuple | list) else 0
