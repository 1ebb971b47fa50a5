"""The log of a study: what was asked and what was told, in order, never changed. A study is a fold over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from surepick.records import FloatArray, IntArray, Plan, freeze, record

INDEPENDENT_OF_VALUE = "independent-of-value"


@record
class Planned:
    """A plan was opened; its counts are facts from now on."""

    plan: Plan


@record
class Told:
    """Results of the open plan, as columns; one row is one pull or the total of several.

    Args:
        arms: index of the arm, shape (n,).
        pulls: pulls that the row sums up, shape (n,).
        sums: their total reward, shape (n,), in the user's sign and unit.
        squares: the total of the squared rewards, shape (n,); None when only totals are known.
        keys: n names that make each row count once; None when rows have none.
    """

    arms: IntArray
    pulls: IntArray
    sums: FloatArray
    squares: FloatArray | None = None
    keys: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        freeze(self, arms=np.int64, pulls=np.int64, sums=np.float64, squares=np.float64)


@record
class Abandoned:
    """The rest of the open plan will not be measured.

    Args:
        reason: "independent-of-value" when which results are missing has nothing to do with their values; the
            certificate then lists that as an assumption. Any other reason makes the verdict heuristic.
    """

    reason: str


Entry = Planned | Told | Abandoned


class Log(Protocol):
    """An append-only sequence of entries."""

    def append(self, entry: Entry) -> None:
        """Store the entry; it is durable (as far as this log is) when the call returns."""
        ...

    def entries(self, start: int = 0) -> Iterator[Entry]:
        """The entries from position `start` on, in order."""
        ...


class MemoryLog:
    """A log that lives as long as the process."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def entries(self, start: int = 0) -> Iterator[Entry]:
        return iter(self._entries[start:])
