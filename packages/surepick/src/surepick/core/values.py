"""What Python callers pass where numbers or names are wanted: taken as they meant it, or refused in a sentence.

A stranger's class may raise anything when it is looked at, so every look at one is guarded here.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from surepick.core.frames import is_frame
from surepick.core.records import FloatArray
from surepick.errors import InvalidInput
from surepick.text import did_you_mean, look_of, looks_as_written, number_look, quoted

MOST = 20_000_000  # entries of what says no length, or says one that no memory holds
ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")  # in the text of an object that has none of its own
KINDS = {  # of arrays that hold no real numbers
    "c": "complex numbers, which have no order",
    "M": "dates",
    "m": "durations: divide them by a unit, x / numpy.timedelta64(1, 's')",
    "V": "records of several fields: give one field",
    "S": "bytes",
    "b": "truth values",
    "U": "texts: convert them first, e.g. numpy.asarray(x, dtype=float)",
    "T": "texts: convert them first, e.g. numpy.asarray(x, dtype=float)",
}


def reason(error: BaseException) -> str:
    """What an error says, or the name of its class where it says nothing."""
    try:
        return str(error).rstrip(".") or type(error).__name__
    except Exception:
        return type(error).__name__


def is_absent(value: object) -> bool:
    """Whether the value says that there is none: None, NaN of any kind of number or time, NA of pandas."""
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        if isinstance(value, str | np.ma.core.MaskedConstant):
            return False
        differs = value != value  # noqa: PLR0124 (only what is not a number differs from itself)
        return isinstance(differs, bool | np.bool_) and bool(differs)
    except Exception:
        return False


def is_masked(value: object) -> bool:
    """Whether a masked array hides an entry, or a list holds one that is hidden."""
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.getmaskarray(value).any())
    return isinstance(value, list | tuple) and any(
        isinstance(one, np.ma.MaskedArray | list | tuple) and is_masked(one) for one in value
    )


def listed(what: str, values: object, *, cure: str = "") -> list[Any]:
    """The entries of a sequence of names, as they were given."""
    cure = cure and f" {cure}"
    if isinstance(values, str | bytes | bytearray):
        raise InvalidInput(f"{what} is {quoted(values)}; give a sequence of {what}, [{quoted(values)}] for one.{cure}")
    if isinstance(values, Mapping):
        raise InvalidInput(f"{what} is a mapping, {quoted(values)}; give list(x) for its keys.{cure}")
    if isinstance(values, set | frozenset):
        raise InvalidInput(f"{what} is a set, which has no order: give sorted(x), or a list.{cure}")
    if is_frame(values):
        raise InvalidInput(f"{what} is a table; give one column of it.{cure}")
    if is_masked(values):
        raise InvalidInput(f"some of the {what} are masked; give those that are there, x.compressed().{cure}")
    shape = getattr(values, "shape", (0,)) if isinstance(values, np.ndarray) else (0,)
    if len(shape) != 1:
        raise InvalidInput(f"{what} is an array of shape {shape}; give a sequence, of shape (n,).{cure}")
    if isinstance(values, np.ndarray) and values.dtype.names:
        raise InvalidInput(f"{what} is an array of records of several fields; give one field.{cure}")
    try:
        if hasattr(type(values), "to_pylist"):  # of pyarrow, whose entries are no Python objects
            values = values.to_pylist()  # type: ignore[attr-defined]
        given = list(islice(iter(values), MOST + 1))  # type: ignore[call-overload]
    except Exception as error:
        why = "" if isinstance(error, TypeError) else f" ({reason(error)})"
        raise InvalidInput(f"{what} is {quoted(values)}{why}; give a sequence of texts.{cure}") from error
    if len(given) > MOST:
        raise InvalidInput(f"{what} do not end after {MOST:,}; give a sequence with an end.{cure}")
    return given


def name_text(what: str, value: object) -> str:
    """The text of a name, in the place of the object: a whole number without a point, of a function its own name."""
    if type(value) is str:
        return value
    if type(value) is int and abs(value) < LARGEST_WHOLE:
        return str(value)
    value = _scalar(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes | bytearray):
        raise InvalidInput(f"{what} is {quoted(value)}, which is bytes; give a text, x.decode().")
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidInput(f"{what} is masked or a masked array; give a text.")
    if isinstance(value, set | frozenset):
        raise InvalidInput(
            f"{what} is {quoted(value)}, a set, which is written in another order each time: give a tuple."
        )
    entries = value if isinstance(value, list) and value else [""]
    if _is_array(value) or all(isinstance(one, int | float | np.number) and type(one) is not bool for one in entries):
        raise InvalidInput(
            f"{what} is {quoted(value)}, a row of numbers. Rows of features go to sp.Arms(X, ids=...); where the row "
            "itself is the candidate, give a tuple."
        )
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2.0**53:
        return str(int(value))
    if callable(value) and isinstance(getattr(type(value), "__qualname__", None), str) and _own_name(value):
        return _own_name(value)
    try:
        text = str(value)
        plain = isinstance(text, str) and not ADDRESS.search(text)
    except Exception as error:
        raise InvalidInput(f"{what} cannot be written as a text: {reason(error)}. Give a text.") from error
    if not plain:
        raise InvalidInput(
            f"{what} is {quoted(value)}, which has no text of its own to stand in a file. Give a text, or give its "
            "class a method __str__."
        )
    return text


def _scalar(value: Any) -> Any:
    """What an array of no dimension holds, or an entry of an array of another library; anything else as it is."""
    try:
        if isinstance(value, np.ma.MaskedArray | np.generic):
            return value
        if isinstance(value, np.ndarray):
            return value[()]
        if hasattr(type(value), "as_py"):
            return value.as_py()
        return value.item() if _is_array(value, 0) and hasattr(type(value), "item") else value
    except Exception:
        return value


def _is_array(value: Any, *dimensions: int) -> bool:
    """Whether it is an array of some library with one dimension or more, or with that number of them."""
    try:
        found = value.ndim if hasattr(type(value), "ndim") and hasattr(type(value), "__array__") else None
    except Exception:
        return False
    return isinstance(found, int) and (found in dimensions if dimensions else found > 0)


def _own_name(value: object) -> str:
    """The name of a function or a class; "" of any other object."""
    if isinstance(value, type) or type(value).__name__ in ("function", "builtin_function_or_method", "ufunc"):
        return str(getattr(value, "__name__", ""))
    return ""


def check_looks(what: str, values: Sequence[object], names: Sequence[str]) -> None:
    """Refuse names that nobody can tell apart: by spaces, composed letters, what is not seen, or 1 beside "1.0"."""
    kinds, number = {type(one) for one in values}, int | float | np.number
    numbers = any(issubclass(kind, number) for kind in kinds) and any(issubclass(kind, str) for kind in kinds)
    plain = {name for name in names if looks_as_written(name)}
    if len(plain) == len(names) and not numbers:
        return
    seen: dict[str, str] = {}
    for name in names:
        look = name if name in plain else look_of(name)
        if not look:
            raise InvalidInput(f"{what} is {name!a}, which is empty: nobody could see which is meant. Name it.")
        if numbers:
            look = number_look(look) or look
        if seen.setdefault(look, name) != name:
            raise InvalidInput(
                f"{what} is {_ascii(seen[look])} and another is {_ascii(name)}: they look alike. If they are one, give "
                "it once; if they are two, name them so that people see which is which."
            )


def _ascii(name: str) -> str:
    shown = ascii(name)
    return shown if len(shown) <= 80 else f"{shown[:40]}...{shown[-37:]}"


def check_order(what: str, values: object, names: Sequence[str]) -> None:
    """Refuse a column of a frame that is labelled with the same ids in another order: it would be read by position."""
    if not (hasattr(type(values), "iloc") and hasattr(type(values), "index")):
        return
    try:
        labels = [name_text("a label", one) for one in values.index.tolist()]  # type: ignore[attr-defined]
    except Exception:
        return
    if labels != list(names) and sorted(labels) == sorted(names):
        raise InvalidInput(
            f"{what} are labelled with the ids in another order ({quoted(labels[0])} first, where {quoted(names[0])} "
            "is asked): numbers are taken by their place. Give x.loc[ids], or a list in the order of the ids."
        )


def real_numbers(what: str, values: object, *, wrong: str = "", truths: bool = True) -> FloatArray:
    """Real numbers as a float64 array of any shape: NaN for a missing one, 0 and 1 for truths; a text is none."""
    wrong = wrong or f"{what} are not numbers"
    if isinstance(values, str | bytes | bytearray | Mapping | Set):
        raise InvalidInput(f"{wrong}: {quoted(values)} is a {type(values).__name__}. Give numbers in their order.")
    if is_masked(values):
        raise InvalidInput(f"{wrong}: some are masked. Give those that are there, and their ids; nothing was taken.")
    try:
        if isinstance(values, Iterator):
            values = list(islice(values, MOST))
        array = np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.dtype == np.float64:
            return np.asarray(array)
        if array.dtype.kind in ("biuf" if truths else "iuf"):
            with np.errstate(over="ignore"):
                return array.astype(np.float64)
        if array.dtype.kind == "O":
            return _from_objects(array, truths=truths)
        why = KINDS.get(array.dtype.kind, f"an array of {array.dtype}")
    except Exception as error:
        said = reason(error)
        why = "they are rows of different lengths" if "inhomogeneous" in said else said
        raise InvalidInput(f"{wrong}: {why}.") from error
    raise InvalidInput(f"{wrong}: they are {why}.")


def setting(name: str, value: object) -> object:
    """A setting that can be compared with others: an array or a column of a frame becomes a list."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Decimal | Fraction):
        return plain_number(value)
    if isinstance(value, list | tuple):
        for one in value:
            setting(name, one)
        return value
    if is_frame(value) or is_masked(value):
        raise InvalidInput(f"{name} is {quoted(value)}, a {type(value).__name__}; give a number, a text or a list.")
    try:
        if isinstance(value, np.ndarray | np.generic) or hasattr(type(value), "iloc"):
            value = value.tolist()  # type: ignore[attr-defined]
        elif hasattr(type(value), "to_list"):
            value = value.to_list()  # type: ignore[attr-defined]
        if value is NotImplemented or is_absent(value):
            raise TypeError("it stands for no value")
        bool(value == None) or bool(value)  # noqa: E711 (whether it can be compared)
    except Exception as error:
        raise InvalidInput(f"{name} is {quoted(value)}, which cannot be compared: {reason(error)}.") from error
    return value


def _from_objects(array: np.ndarray, *, truths: bool) -> FloatArray:
    found = np.empty(array.shape)
    entries = found.reshape(-1)
    for place, one in enumerate(array.reshape(-1).tolist()):
        if truths and isinstance(one, bool | np.bool_):
            one = int(one)  # noqa: PLW2901 (as in an array of them)
        number = np.nan if is_absent(one) else plain_number(one)
        if number is None:
            raise TypeError(f"one is {quoted(one)}, a {type(one).__name__}")
        entries[place] = number
    return found


def plain_number(value: object) -> float | None:
    """A single real number as a float; None for a truth value, a text, a time, an array, or anything else."""
    if isinstance(value, np.ma.MaskedArray):
        return None
    try:
        if isinstance(value, np.ndarray | np.generic) and value.ndim == 0:
            value = value.item() if value.dtype.kind in "iuf" else None
        unlike = isinstance(value, bool | str | bytes | bytearray | complex) or getattr(value, "ndim", 0) != 0
        if unlike or (not hasattr(type(value), "__float__") and not hasattr(type(value), "__index__")):
            return None
        return float(value)  # type: ignore[arg-type]
    except OverflowError:
        raise
    except Exception:
        return None


# --- Settings that people type: we refuse those without a meaning, in a sentence.

LARGEST_WHOLE = 2**53  # beyond it not every whole number is a float
LEAST_SLACK = 1e-6  # with less, rounding takes more pulls than anybody has
CERTAINTY = 1e-6  # a probability that is nearer to 1 promises nothing
SMALLEST, LARGEST = 1e-100, 1e100  # what can be squared, and the square multiplied and divided by, as a float
MOST_SCALES = 1e50  # of noise to a tolerance: their square, times what a study has of it, is a float
LARGEST_REWARD = 1e50  # a value beyond it leaves what numbers can hold once its square is squared and added up


def as_number(name: str, value: object) -> float:
    """The value as a float, which may be NaN or infinite."""
    try:
        number = plain_number(value)
    except OverflowError as error:
        raise InvalidInput(f"{name} is {quoted(value)}; numbers here go up to 1.8e308.") from error
    if number is None:
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a number.")
    return number


def _checked(name: str, value: object, holds: Callable[[float], bool], must: str) -> float:
    number = as_number(name, value)
    if not holds(number):
        raise InvalidInput(f"{name} is {quoted(value)}; it must {must}")
    return number


def finite_number(name: str, value: object) -> float:
    """The value as a finite float; any other is `InvalidInput`."""
    return _checked(name, value, math.isfinite, "be finite.")


def positive_number(name: str, value: object, meaning: str) -> float:
    """The value as a positive finite float; any other is `InvalidInput`, whose message ends with `meaning`."""
    return _checked(name, value, lambda number: 0.0 < number < math.inf, f"be positive and finite: {meaning}")


def not_negative(name: str, value: object, meaning: str) -> float:
    """The value as a finite float of at least 0; any other is `InvalidInput`, whose message ends with `meaning`."""
    return _checked(name, value, lambda number: 0.0 <= number < math.inf, f"be finite and not negative: {meaning}")


def probability(name: str, value: object, meaning: str) -> float:
    """The value as a float in (0, 1), from 1e-100 to 1 - 1e-6; any other is `InvalidInput` that ends with `meaning`."""
    number = _checked(name, value, lambda number: 0.0 < number < 1.0, f"lie strictly between 0 and 1: {meaning}")
    if not SMALLEST <= number <= 1.0 - CERTAINTY:
        raise InvalidInput(
            f"{name} is {quoted(value)}; below {SMALLEST:g} or above 1 - {CERTAINTY:g} nothing can be computed or "
            f"promised: {meaning}"
        )
    return number


def share_of_pulls(name: str, value: object) -> float:
    """The value as a share in [0, 1); any other is `InvalidInput`."""
    return _checked(name, value, lambda number: 0.0 <= number < 1.0, "lie in [0, 1): a share of the pulls.")


def check_slack(name: str, value: object) -> float:
    """The value as a slack of rounding in (0, 1]; any other is `InvalidInput`."""
    must = f"lie in (0, 1], and be at least {LEAST_SLACK:g}: what rounding to whole pulls may cost."
    return _checked(name, value, lambda number: LEAST_SLACK <= number <= 1.0, must)


def check_size(name: str, *numbers: float) -> None:
    """Refuse positive numbers that cannot be computed with."""
    for number in map(float, numbers):  # a small kind of NumPy cannot be compared with 1e100
        if not SMALLEST <= number <= LARGEST:
            raise InvalidInput(
                f"{name} is {number:g}; no float holds the square that we compute with. Take another unit, so that it "
                f"lies between {SMALLEST:g} and {LARGEST:g}."
            )


def check_reach(name: str, tolerance: float, scale: float) -> None:
    """Refuse a tolerance that no number of measurements reaches."""
    if scale > MOST_SCALES * tolerance:
        raise InvalidInput(
            f"{name} is {tolerance:g} and the noise has scale {scale:g}; nobody can measure so often. State both "
            "in the unit of the measurements."
        )


def whole_number(name: str, value: object, *, least: int, meaning: str) -> int:
    """The value as an integer of at least `least`."""
    number = as_number(name, value)
    exact = value if isinstance(value, int) else number  # a float cannot tell 2^53 + 1 from 2^53
    if exact > LARGEST_WHOLE and math.isfinite(number):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a whole number from {least} to 2^53: {meaning}")
    if not (math.isfinite(number) and number == math.floor(number) and number >= least):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a whole number, {least} or more: {meaning}")
    return int(number)


def text_of(name: str, value: object) -> str:
    """The value as a text."""
    try:
        return str(value)
    except Exception as error:  # a stranger's class may raise anything
        raise InvalidInput(f"{name} cannot be written as a text: {reason(error)}. Give a text.") from error


def storable_text(name: str, value: object) -> str:
    """The value as a text that files and databases can hold."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} is {quoted(value)}; it must be a text.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"{name} holds {quoted(value[error.start])}, half of a character: it is made of bytes that are not "
            "UTF-8, which no file and no database can hold. Type it, or read the table, anew with its right encoding."
        ) from error
    if "\0" in value:
        raise InvalidInput(f"{name} holds a zero byte, which no database can hold. Remove it.")
    return value


def texts_of(what: str, values: Sequence[object]) -> tuple[str, ...]:
    """The values as texts."""
    given = listed(what, values)
    missing = [row for row, one in enumerate(given) if type(one) not in (str, int) and is_absent(one)]
    if missing:
        raise InvalidInput(
            f"{len(missing)} of {len(given)} {what} are missing: the first is {quoted(given[missing[0]])}, in place "
            f"{missing[0]}. We could not report on it without a name; give it one."
        )
    return tuple(name_text(f"one of the {what}", value) for value in given)


def check_choice(name: str, value: object, known: Sequence[str]) -> None:
    """Refuse a value that is none of the known ones."""
    if not isinstance(value, str) or value not in known:
        meant = did_you_mean(value, known)
        raise InvalidInput(f"{name} is {quoted(value)}; choose one of {', '.join(map(repr, known))}.{meant}")
