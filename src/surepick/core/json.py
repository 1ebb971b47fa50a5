"""The one JSON codec: records to a line of text and back, exactly."""

from __future__ import annotations

import base64
import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from surepick.errors import InvalidInput, StorageError
from surepick.text import quoted

T = TypeVar("T")
LARGEST_IN_RUNS = 2**53  # differences of larger numbers may wrap
SHORT = 32  # entries; shorter arrays are written as they are
PACKED_FROM = 4096  # floats; so many that no person reads them are written as the bytes of their numbers


def encode(value: object, *, sparse: bool = False) -> Any:
    """Plain JSON data for a record, an array, or plain data.

    Args:
        value: to encode.
        sparse: write an array by the entries that differ from its usual one, or by its runs, where that is shorter;
            many rows of floats by those that are not 0; and many floats by their bytes. `from_json` reads all forms.

    A field that no constructor takes stays in this process.
    """
    if isinstance(value, np.ndarray):
        return _shorter(value) if sparse else value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        held = [field.name for field in fields(value) if field.init]
        return {name: encode(getattr(value, name), sparse=sparse) for name in held}
    if isinstance(value, Mapping):
        return {str(key): encode(item, sparse=sparse) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, sparse=sparse) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def _shorter(array: np.ndarray) -> Any:
    """An array by its runs of successive numbers, by what differs from its usual entry, or as it is."""
    size = array.size
    if array.ndim == 2 and size >= PACKED_FROM and array.dtype == np.float64:
        rows = np.flatnonzero(np.ascontiguousarray(array).view(np.uint64).any(axis=1))
        return {"shape": list(array.shape), "rows": _shorter(rows), "others": _dense(array[rows])}
    if array.ndim != 1 or size < SHORT:
        return array.tolist()
    if np.issubdtype(array.dtype, np.integer) and array.min() >= 0 and array.max() < LARGEST_IN_RUNS:
        breaks = np.flatnonzero(np.diff(array) != 1) + 1
        if 4 * len(breaks) < size:
            starts, ends = np.append(0, breaks), np.append(breaks, size) - 1
            return {"runs": np.column_stack([array[starts], array[ends] + 1]).tolist()}
    bits = np.ascontiguousarray(array).view(f"u{array.itemsize}")  # as bits, so that -0.0 stays what it is
    usual = max((bits.dtype.type(0), bits[0]), key=lambda entry: np.count_nonzero(bits == entry))
    others = np.flatnonzero(bits != usual)
    if 2 * len(others) >= size:
        return _dense(array)
    entry = usual.view(array.dtype).item()
    return {"size": size, "usual": entry, "at": _shorter(others), "others": _dense(array[others])}


def _dense(array: np.ndarray) -> Any:
    """All entries of an array: many floats by their bytes, in half of the characters, others as they are.

    Raises:
        ValueError: an entry that is written by its bytes is not finite.
    """
    if array.size < PACKED_FROM or array.dtype != np.float64:
        return array.tolist()
    if not np.isfinite(array).all():
        raise ValueError("one of its arrays has an entry that is not finite")
    return {"packed": base64.b64encode(array.astype("<f8").tobytes()).decode(), "shape": list(array.shape)}


def to_json(value: object, *, sparse: bool = False) -> str:
    """A record as one line of JSON: floats exactly, keys in field order, no NaN and no infinity.

    Args:
        value: a record, or plain data.
        sparse: as in `encode`.

    Raises:
        InvalidInput: a number is not finite.
    """
    try:
        data = encode(value, sparse=sparse)
        return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
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
        names = {field.name for field in fields(hint) if field.init}
        if not isinstance(data, dict) or set(data) != names:
            found = sorted(data) if isinstance(data, dict) else repr(data)
            raise StorageError(
                f"stored {getattr(hint, '__name__', hint)} has fields {found}, expected {sorted(names)}."
            )
        return hint(**{name: _decode(hints[name], value) for name, value in data.items()})  # type: ignore[operator]
    return data


def _decode_array(data: Any, dtype: np.dtype[Any]) -> np.ndarray:
    if isinstance(data, dict):
        return _full(data, dtype)
    array = np.array(data)
    if array.size == 0:
        array = array.astype(dtype)
    if not np.can_cast(array.dtype, dtype, casting="safe"):
        raise ValueError(f"an array of {dtype} holds {array.dtype} values")
    return array.astype(dtype)


def _full(data: dict[str, Any], dtype: np.dtype[Any]) -> np.ndarray:
    """The array that `_shorter` wrote."""
    if "runs" in data:
        runs = [np.arange(start, end) for start, end in data["runs"]]
        return _decode_array(np.concatenate(runs), dtype)
    if "packed" in data:
        packed = np.frombuffer(base64.b64decode(data["packed"], validate=True), "<f8")
        return _decode_array(packed.reshape(data["shape"]), dtype)
    others = _decode_array(data["others"], dtype)
    if "rows" in data:
        array = np.zeros(data["shape"], dtype)
        rows = _decode_array(data["rows"], np.dtype(np.int64))
        array[rows] = others.reshape(len(rows), array.shape[1])
        return array
    array = np.full(data["size"], data["usual"], dtype)
    array[_decode_array(data["at"], np.dtype(np.int64))] = others
    return array


def from_json(kind: type[T], text: str) -> T:
    """The record of the given kind that `to_json` wrote.

    Raises:
        StorageError: the text is not JSON, or its fields are not those of the record.
    """
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
        decoded: T = _decode(kind, data)
    except (LookupError, TypeError, ValueError) as error:
        raise StorageError(f"stored {kind.__name__} cannot be read: {error}.") from error
    return decoded


def read_json(text: str | bytes) -> Any:
    """Plain data from JSON that somebody else wrote.

    Raises:
        ValueError: it is none, a number in it is not finite, or an object has two fields of one name, of which each
            reader would take another.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=each_once)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a JSON object.

    Raises:
        ValueError: two have one name.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"the field {quoted(twice)} stands in it twice, and readers would disagree about which counts")
    return found


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")
