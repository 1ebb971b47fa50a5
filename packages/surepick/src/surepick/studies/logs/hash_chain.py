"""Hashes of what is stored: a chain of texts, the arms, and the one form of JSON data that is hashed."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.errors import StorageError, SurepickError


def chained(previous: str, *texts: str) -> str:
    """SHA-256 of the hash before and of texts, each with its length, so that none can run into the next."""
    digest = hashlib.sha256(previous.encode())
    for text in texts:
        stored = str(text).encode()  # SQLite may hold any kind of value
        digest.update(len(stored).to_bytes(8, "big"))
        digest.update(stored)
    return digest.hexdigest()


def arms_hash(
    ids: str,
    shape: tuple[int, ...],
    features: bytes,
    costs: ArrayLike | None = None,
    segments: Sequence[str] | None = None,
) -> str:
    """The hash of arms."""
    priced = [] if costs is None else [hashlib.sha256(np.ascontiguousarray(costs, dtype="<f8").tobytes()).hexdigest()]
    apart = [] if segments is None else [json.dumps(list(segments), ensure_ascii=False)]
    return chained("", ids, str(list(shape)), hashlib.sha256(features).hexdigest(), *priced, *apart)


def rows_hash(rows: Iterable[Iterable[Any]]) -> str:
    """SHA-256 of rows of a table, in their order: a JSON array of arrays."""
    return hashlib.sha256(row_text(list(map(tuple, rows))).encode("utf-8", "surrogatepass")).hexdigest()


def row_text(row: Iterable[Any]) -> str:
    """A row as one line of JSON; floats exactly."""
    return json.dumps(row if isinstance(row, list) else tuple(row), ensure_ascii=False, separators=(",", ":"))


def hash_of_arms(arms: Arms) -> str:
    """The hash of arms as they are in memory: `arms_hash` of their ids, features, costs and segments."""
    features = np.ascontiguousarray(arms.features, dtype="<f8")
    ids = json.dumps(arms.ids, ensure_ascii=False)
    return arms_hash(ids, features.shape, features.tobytes(), arms.costs, arms.segments)


def canonical(value: Any) -> bytes:
    """JSON data as bytes that are hashed and signed: sorted keys, no spaces, UTF-8, numbers as Python writes them."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


# --- What is stored may be damaged: a value of a wrong kind is a `StorageError` that names the study, not a traceback.

T = TypeVar("T", bound=type)
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what values of a wrong kind cause


class CorruptRow(StorageError):
    """A stored value is of a wrong kind; the error that it caused is the cause of this one."""


@contextmanager
def reading(study: str, what: str = "what is stored") -> Iterator[None]:
    """Errors of values of a wrong kind as errors of the database."""
    try:
        yield
    except SurepickError:
        raise
    except UNREADABLE as error:
        raise CorruptRow(
            f"study {study!r}: {what} cannot be read ({error}). The database was altered or is damaged. "
            "Nothing was changed now; take the latest backup (docs/studies.md)."
        ) from error


def explained(cls: T) -> T:
    """A log whose public methods all read in this way; they are named by `_name`."""
    for name, method in list(vars(cls).items()):
        if callable(method) and not name.startswith("_") and name != "turn":  # in a turn others do more than read
            setattr(cls, name, _rows(method) if isgeneratorfunction(method) else _one(method))
    return cls


def _one(method: Any) -> Any:
    @wraps(method)
    def read(self: Any, *given: Any, **named: Any) -> Any:
        with reading(self._name):
            return method(self, *given, **named)

    return read


def _rows(method: Any) -> Any:
    @wraps(method)
    def read(self: Any, *given: Any, **named: Any) -> Iterator[Any]:
        rows: Iterable[Any] = method(self, *given, **named)
        iterator = iter(rows)
        while True:
            with reading(self._name):
                try:
                    row = next(iterator)
                except StopIteration:
                    return
            yield row  # outside: what the reader of a row does wrong is not wrong with the row

    return read


# --- Where a study is kept, as far as others have to know.


class RemoteLog(Protocol):
    """Whoever has the log of a study that is not here; the documents that need all of it are made there."""

    def certificate(self, name: str | None) -> dict[str, Any]:
        """The certificate; all decisions are computed again first."""

    def report(self, name: str | None, most: int) -> bytes:
        """The page about the study."""

    def export(self, kind: str) -> tuple[bytes, int]:
        """(the file, its rows) of the results of the closed rounds."""


class Home:
    """What a study says of where it is kept."""

    elsewhere: RemoteLog | None = None  # None: its log is here

    def worker_name(self, process: str) -> str:
        """Under which name a process measures, if nobody gave it one."""
        return process
