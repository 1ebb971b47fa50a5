"""The one JSON codec: records to a line of text and back, exactly."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from surepick.errors import InvalidInput, StorageError

T = TypeVar("T")


def encode(value: object) -> Any:
    """Plain JSON data for a record, an array, or plain data."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def to_json(value: object) -> str:
    """A record as one line of JSON: floats exactly, keys in field order, no NaN and no infinity.

    Raises:
        InvalidInput: a number is not finite.
    """
    try:
        return json.dumps(encode(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:
        raise InvalidInput(f"{type(value).__name__} holds a number that JSON cannot carry: {error}.") from error


def _decode(hint: Any, data: Any) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        return _decode(next(part for part in get_args(hint) if part is not type(None)), data)
    if origin is np.ndarray:
        return _decode_array(data, np.dtype(get_args(get_args(hint)[1])[0]))
    if origin is tuple:
        return tuple(_decode(get_args(hint)[0], item) for item in data)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        names = {field.name for field in fields(hint)}
        needed = {field.name for field in fields(hint) if field.default is MISSING and field.default_factory is MISSING}
        if not isinstance(data, dict) or not needed <= set(data) <= names:
            found = sorted(data) if isinstance(data, dict) else repr(data)
            raise StorageError(
                f"stored {getattr(hint, '__name__', hint)} has fields {found}, expected {sorted(names)}."
            )
        return hint(**{name: _decode(hints[name], value) for name, value in data.items()})  # type: ignore[operator]
    return data


def _decode_array(data: Any, dtype: np.dtype[Any]) -> np.ndarray:
    array = np.array(data)
    if array.size == 0:
        array = array.astype(dtype)
    if not np.can_cast(array.dtype, dtype, casting="safe"):
        raise ValueError(f"an array of {dtype} holds {array.dtype} values")
    return array.astype(dtype)


def from_json(kind: type[T], text: str) -> T:
    """The record of the given kind that `to_json` wrote; a field unknown to an earlier version takes its default.

    Raises:
        StorageError: the text is not JSON, or its fields are not those of the record.
    """
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
        decoded: T = _decode(kind, data)
    except (TypeError, ValueError) as error:
        raise StorageError(f"stored {kind.__name__} cannot be read: {error}.") from error
    return decoded


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")
