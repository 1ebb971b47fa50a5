"""Every error that surepick raises on purpose.

    SurepickError
    ├── InvalidInput      (also ValueError)    an argument, a table or a reward is wrong
    │   └── UnusualResult                      a result stands out: is it a typing error?
    ├── OutOfTurn         (also RuntimeError)  tell before ask, ask of a broken study, ...
    │   └── MeasurementFailed                  a candidate could not be measured, however often it was tried
    ├── ContractError                          a premise of the theorem fails: no certificate could be true
    ├── NotConverged                           an iteration stopped short; carries the best design and its gap
    ├── StorageError                           a log is corrupt, foreign, or written by a newer version
    └── DatasetMissing                         a file that surepick may not ship; carries the recipe to obtain it

A message says what was wrong, with the numbers; why it matters; and what to do. It is one line of at most 500
characters, whatever the names and values in it hold: control characters are written out, and what is longer is cut.
"""

from functools import partial
from typing import Any

from surepick.text import one_line


class SurepickError(Exception):
    """Base of every error that surepick raises on purpose.

    Args:
        message: what was wrong, why it matters, and what to do.

    Attributes:
        study: the `Study` that a closed loop (`find_best`, `Study.run`) was in, with the results so far; else None.
    """

    study: Any = None

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(str(message)))


class InvalidInput(SurepickError, ValueError):
    """An argument, a table or a reward is wrong."""


class UnusualResult(InvalidInput):
    """A result stands out from what is known: is it a typing error? Whoever says that it is not has it stored.

    Args:
        message: which one, beside what, and what to do.
        rows: their places in the call, from 0; results that were reported before it have none.
        beside: of each of these, beside what it stands out, and a clause that says so.
    """

    def __init__(self, message: str, *, rows: tuple[int, ...] = (), beside: tuple[tuple[float, str], ...] = ()) -> None:
        super().__init__(message)
        self.rows = rows
        self.beside = beside

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), rows=self.rows, beside=self.beside), self.args


class UnusualWarning(UserWarning):
    """A result of a program stands out from what is known. It counts."""


class OutOfTurn(SurepickError, RuntimeError):
    """A call came when the protocol ask -> measure -> tell does not allow it."""


class MeasurementFailed(OutOfTurn):
    """A candidate could not be measured, however often we tried; the reported results are stored."""


class ContractError(SurepickError):
    """A premise of the theorem behind the certificate does not hold."""


class NotConverged(SurepickError):
    """An iteration stopped before its tolerance was met.

    Args:
        message: what was not met, with the numbers.
        best: the best `Design` found; its `lower_bound` and `value` still bracket the optimum. (Errors stand below all
            records, so no type says so.)
        gap: its certified relative gap, value / lower_bound - 1.
    """

    def __init__(self, message: str, *, best: Any, gap: float) -> None:
        super().__init__(message)
        self.best = best
        self.gap = gap

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), best=self.best, gap=self.gap), self.args


class StorageError(SurepickError):
    """A stored study is corrupt, foreign, or newer than this version."""


class DatasetMissing(SurepickError):
    """A data file is absent and may not be shipped.

    Args:
        message: which file, and where it was looked for.
        recipe: how to obtain it.
    """

    def __init__(self, message: str, *, recipe: str) -> None:
        super().__init__(f"{message} {recipe}")
        self.recipe = recipe
        self._message = message

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), recipe=self.recipe), (self._message,)
