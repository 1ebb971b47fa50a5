"""Arrays in frozen records, and the decorator that makes a record.

Arrays in a record are read-only, so that it can be shared without fear; two records are equal when their fields are,
arrays compared element by element. An array that is given is copied, unless nobody can write to it: it and every array
that it is a view of are read-only, down to the memory. Read-only arrays are shared, so if you pass one, keep no
writeable view of it and do not make it writeable again.
"""

import base64
import functools
import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, is_dataclass, replace
from reprlib import recursive_repr
from typing import Any, TypeVar, Union, cast, dataclass_transform, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from surepick.errors import InvalidInput, StorageError
from surepick.text import quoted

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
_ARRAY = get_origin(FloatArray)  # np.ndarray; from numpy 2.5 on NDArray, an alias of its own

T = TypeVar("T")


def _equal(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):  # an array equals no None
        return isinstance(left, np.ndarray) and isinstance(right, np.ndarray) and bool(np.array_equal(left, right))
    return bool(left == right)


def _eq(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    compared = [each.name for each in fields(self) if each.compare]
    return all(_equal(getattr(self, name), getattr(other, name)) for name in compared)


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: Any, name: str, *value: object) -> None:  # noqa: ARG001
    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def _set_state(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


SHARED = {
    "__repr__": recursive_repr()(_repr),
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": lambda self: [getattr(self, each.name) for each in fields(self)],
    "__setstate__": _set_state,
}


ARRAYS: dict[object, np.dtype[Any]] = {  # annotations of fields that `frozen` makes read-only
    annotation: np.dtype(kind)
    for array, name, kind in (
        (FloatArray, "FloatArray", np.float64), (IntArray, "IntArray", np.int64), (BoolArray, "BoolArray", np.bool_)
    )
    for annotation in (array, array | None, name, f"{name} | None")
}  # fmt: skip


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass with slots whose equality compares arrays element by element."""
    return _made(cls, {})


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """A record whose arrays are made read-only, of the dtypes of their annotations, as by `freeze`."""
    return _made(cls, ARRAYS)


def _made(cls: type[T], arrays: Mapping[object, np.dtype[Any]]) -> type[T]:
    # Only the constructor is compiled: all that `dataclass(frozen=True)` compiles takes a third of a small study.
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    for name, function in SHARED.items():
        if name not in vars(cls):
            setattr(made, name, function)
    if "__init__" not in vars(cls):
        made.__init__ = _constructor(made, arrays)
    made.__eq__, made.__hash__ = _eq, None
    return cast(type[T], made)


def _constructor(cls: type, arrays: Mapping[object, np.dtype[Any]], keep: str = "_kept") -> Any:
    """What `dataclass(frozen=True)` would write as __init__."""
    known: dict[str, Any] = {"__name__": cls.__module__, "_set": object.__setattr__, "_absent": MISSING}
    known[keep] = globals()[keep]
    taken: dict[bool, list[str]] = {False: [], True: ["*"]}  # by place, and by keyword
    body = []
    for each in fields(cls):
        name, made = each.name, f"_new_{each.name}"
        factory = each.default_factory is not MISSING
        known[made] = each.default_factory if factory else each.default
        value = f"{made}() if {name} is _absent else {name}" if factory else name
        if each.init:
            default = "=_absent" if factory else "" if each.default is MISSING else f"={made}"
            taken[bool(each.kw_only)].append(name + default)
        elif factory or each.default is not MISSING:
            value = f"{made}()" if factory else made
        else:
            continue
        if each.type in arrays:
            known[f"_kind_{name}"], value = arrays[each.type], f"{keep}({value}, _kind_{name})"
        body.append(f" _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    arguments = ["self", *taken[False], *(taken[True] if len(taken[True]) > 1 else [])]
    exec("\n".join([f"def __init__({', '.join(arguments)}):", *(body or [" pass"])]), known)
    init = known.pop("__init__")
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in fields(cls) if each.init} | {"return": None}
    return init


def own(cls: type[T]) -> Callable[..., T]:
    """A constructor of a frozen record that takes arrays as they are: of the right dtypes, and held by nobody else."""
    made = _constructor(cls, ARRAYS, "_owned")
    return lambda *given, **named: made(new := cls.__new__(cls), *given, **named) or new


def _owned(array: NDArray[Any] | None, _: np.dtype[Any]) -> NDArray[Any] | None:
    if array is not None:
        array.flags.writeable = False
    return array


def unwritable(array: NDArray[Any]) -> bool:
    """Nobody can write to the array, nor to what it is a view of, down to memory, bytes or a file mapped to read."""
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
    """Set fields of a frozen record while it is made; arrays are read-only: copies, unless nobody can write to them."""
    for name, value in values.items():
        kept = value
        if isinstance(value, np.ndarray) and not unwritable(value):
            kept = np.array(value)
            kept.flags.writeable = False
        object.__setattr__(instance, name, kept)


def freeze(instance: object, **arrays: np.dtype[Any] | type) -> None:
    """Replace array fields of a frozen record by read-only ones of these dtypes: copies, unless nobody can write."""
    for name, dtype in arrays.items():
        object.__setattr__(instance, name, _kept(getattr(instance, name), dtype))


def _kept(value: Any, dtype: np.dtype[Any] | type) -> Any:
    if value is None or (isinstance(value, np.ndarray) and value.dtype == dtype and unwritable(value)):
        return value
    array = np.array(value, dtype=dtype)
    array.flags.writeable = False
    return array


def rows_of(value: T, rows: Any) -> T:
    """Of arrays with a row for each study, alone or in a record, those rows."""
    if isinstance(value, np.ndarray):
        return cast(T, value[rows])
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return replace(value, **{one.name: rows_of(getattr(value, one.name), rows) for one in fields(value)})


def array_bytes(value: object) -> int:
    """The bytes of all arrays in a value: in records, tuples, lists and mappings."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value) and not isinstance(value, type):
        return sum(array_bytes(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, Mapping):
        return sum(map(array_bytes, value.values()))
    return sum(map(array_bytes, value)) if isinstance(value, tuple | list) else 0


# --- The one JSON codec: records to a line of text and back, exactly.

LARGEST_IN_RUNS = 2**53  # differences of larger numbers may wrap
SHORT = 32  # entries; shorter arrays are written as they are
PACKED_FROM = 4096  # floats; so many that no person reads them are written as the bytes of their numbers


def encode(value: object, *, sparse: bool = False) -> Any:
    """Plain JSON data for a record, an array, or plain data; a field that no constructor takes stays here."""
    if isinstance(value, np.ndarray):
        return _shorter(value) if sparse else value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        held = [field.name for field in fields(value) if field.init]
        return {name: encode(getattr(value, name), sparse=sparse) for name in held}
    if isinstance(value, Mapping):
        return {str(key): encode(item, sparse=sparse) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item, sparse=sparse) for item in value]
    return value.item() if isinstance(value, np.generic) else value


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
    """All entries of an array: many floats by their bytes, in half of the characters, others as they are."""
    if array.size < PACKED_FROM or array.dtype != np.float64:
        return array.tolist()
    if not np.isfinite(array).all():
        raise ValueError("one of its arrays has an entry that is not finite")
    return {"packed": base64.b64encode(array.astype("<f8").tobytes()).decode(), "shape": list(array.shape)}


def to_json(value: object, *, sparse: bool = False) -> str:
    """A record, or plain data, as one line of JSON: floats exactly, keys in field order; InvalidInput for NaN."""
    try:
        data = encode(value, sparse=sparse)
        return json.dumps(data, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    except ValueError as error:
        raise InvalidInput(f"{type(value).__name__} holds a number that JSON cannot carry: {error}.") from error


_hints_of = functools.cache(get_type_hints)  # of the fields of a record; looking them up takes longer than to read one


def _decode(hint: Any, data: Any) -> Any:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        if data is None:
            return None
        return _decode(next(part for part in get_args(hint) if part is not type(None)), data)
    if origin is _ARRAY:
        kind = get_args(hint)[-1]  # the kind of its numbers; up to numpy 2.4 inside np.dtype
        return _decode_array(data, np.dtype(*(get_args(kind) or [kind])))
    if origin is tuple:
        return tuple(_decode(get_args(hint)[0], item) for item in data)
    if is_dataclass(hint):
        hints = _hints_of(cast(Any, hint))
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
    """The record of the given kind that `to_json` wrote; StorageError where the text is none."""
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
        decoded: T = _decode(kind, data)
    except (LookupError, TypeError, ValueError) as error:
        raise StorageError(f"stored {kind.__name__} cannot be read: {error}.") from error
    return decoded


def read_json(text: str | bytes) -> Any:
    """Plain data from JSON that somebody else wrote."""
    return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=each_once)


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a JSON object."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ValueError(f"the field {quoted(twice)} stands in it twice, and readers would disagree about which counts")
    return found


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")


# --- Where two records, or two pieces of JSON data, differ, in words.

TOLERANCE = 1e-9  # relative; another processor adds in another order
ROUNDING = 1e-12


def first_difference(stored: Any, again: Any, tolerance: float = TOLERANCE, where: str = "") -> str:
    """Where they differ, in words; "" where they agree: numbers within `tolerance`, all else exactly."""
    if is_dataclass(stored) and not isinstance(stored, type) and type(stored) is type(again):
        told = [one.name for one in fields(stored)]
        stored, again = ({name: getattr(one, name) for name in told} for one in (stored, again))
    if isinstance(stored, np.ndarray | tuple) and type(stored) is type(again):
        stored, again = (one.tolist() if isinstance(one, np.ndarray) else list(one) for one in (stored, again))
    if isinstance(stored, dict) and isinstance(again, dict):
        names = [*stored, *(name for name in again if name not in stored)]
        parts = ((stored.get(name), again.get(name), f"{where}.{name}") for name in names)
        return next(filter(None, (first_difference(*part[:2], tolerance, part[2]) for part in parts)), "")
    if isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        if _all_numbers(stored) and _all_numbers(again):
            return _first_number(stored, again, tolerance, where)
        rows = enumerate(zip(stored, again, strict=True))
        found = (first_difference(*pair, tolerance, f"{where}[{row}]") for row, pair in rows)
        return next(filter(None, found), "")
    if isinstance(stored, float) and isinstance(again, float):
        return _first_number([stored], [again], tolerance, where)
    if type(stored) is not type(again) or stored != again:
        return f"{where} is stored as {_short(stored)} and computed as {_short(again)}"
    return ""


def _all_numbers(values: list[Any]) -> bool:
    return bool(values) and all(isinstance(value, float) for value in values)


def _first_number(stored: list[float], again: list[float], tolerance: float, where: str) -> str:
    """Relative to each number, but for the rounding of sums that nearly cancel, which is that of the list's largest."""
    left, right = np.array(stored), np.array(again)
    size = np.maximum(np.abs(left), np.abs(right))
    bad = np.flatnonzero(~(np.abs(left - right) <= tolerance * size + ROUNDING * size.max()))
    if len(bad) == 0:
        return ""
    row = int(bad[0])
    place = where if len(stored) == 1 else f"{where}[{row}]"
    return f"{place} is stored as {stored[row]!r} and computed as {again[row]!r}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
