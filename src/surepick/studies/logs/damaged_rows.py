"""What is stored may be damaged: a value of a wrong kind is a `StorageError` that names the study, not a traceback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import isgeneratorfunction
from typing import Any, TypeVar

from surepick.errors import StorageError, SurepickError

T = TypeVar("T", bound=type)
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # what values of a wrong kind cause


class Illegible(StorageError):
    """A stored value is of a wrong kind; the error that it caused is the cause of this one."""


@contextmanager
def reading(study: str, what: str = "what is stored") -> Iterator[None]:
    """Errors of values of a wrong kind as errors of the database.

    Args:
        study: its name.
        what: which row is read, where one knows.

    Raises:
        Illegible: a value is of a wrong kind.
    """
    try:
        yield
    except SurepickError:
        raise
    except UNREADABLE as error:
        raise Illegible(
            f"study {study!r}: {what} cannot be read ({error}). The database was altered or is damaged. "
            "Nothing was changed now; take the latest backup (docs/studies.md)."
        ) from error


def legible(cls: T) -> T:
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
