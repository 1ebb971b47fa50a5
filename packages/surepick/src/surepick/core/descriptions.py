"""What is said of candidates and of measurements for people: columns of a table, a unit, limits of what can be right.

None of it is part of what a study promises: it is in no registration code, no certificate rests on it, and no policy
sees it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from surepick.core.records import IntArray, record
from surepick.core.values import storable_text
from surepick.errors import InvalidInput
from surepick.text import printable, shortened

BETWEEN = " · "
SHOWN = 3  # columns of a line
LONGEST_CELL = 60  # characters of a line
MOST_UNIT = 40  # characters


@record
class Described:
    """What the rows of a table say of the candidates, as text."""

    columns: tuple[str, ...] = ()  # their names
    cells: tuple[tuple[str, ...], ...] = ()  # of each column K texts

    def __post_init__(self) -> None:
        if len(self.cells) != len(self.columns) or len({len(column) for column in self.cells}) > 1:
            raise InvalidInput("a description has a column of as many texts as there are candidates for each name.")
        storable_text("a description", "".join(("".join(self.columns), *("".join(column) for column in self.cells))))

    def __bool__(self) -> bool:
        return bool(self.columns)

    def of(self, arm: int) -> tuple[str, ...]:
        """What the row of a candidate says, a text for each column."""
        return tuple(column[arm] for column in self.cells)

    def line(self, arm: int) -> str:
        """The first cells of a candidate that are not empty: "SPhos · K3PO4 · dioxane"; "" where nothing is said."""
        said = [shortened(printable(cell), LONGEST_CELL) for cell in self.of(arm) if cell.strip()]
        return BETWEEN.join(said[:SHOWN])

    def only(self, members: IntArray | Sequence[int]) -> Described:
        """What is said of the candidates with these indices."""
        return Described(self.columns, tuple(tuple(column[arm] for arm in members) for column in self.cells))


NOTHING_SAID = Described()


@record
class Scale:
    """How numbers are measured: a unit, and limits beyond which a number is surely a typing error."""

    unit: str = ""
    low: float | None = None  # no number is smaller
    high: float | None = None  # no number is larger

    def __post_init__(self) -> None:
        if len(storable_text("the unit", self.unit)) > MOST_UNIT:
            raise InvalidInput(f"the unit has {len(self.unit)} characters, and may have {MOST_UNIT}.")
        for name, value in (("least", self.low), ("largest", self.high)):
            if value is not None and not math.isfinite(value):
                raise InvalidInput(f"the {name} number that can be right is {value!r}; give a finite one, or none.")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InvalidInput(
                f"numbers below {self.low:g} and above {self.high:g} are asked about, so that all are. The first limit "
                "is the smaller one."
            )

    @staticmethod
    def of(text: str) -> tuple[float | None, float | None]:
        """Limits as somebody typed them: "0:100"; "0:" or ":100" for one of them."""
        low, colon, high = text.partition(":")
        try:
            found = tuple(float(one) if one.strip() else None for one in (low, high))
        except ValueError:
            found = ()
        if not colon or found in ((), (None, None)):
            raise InvalidInput(f"{text!r} has no limits of measurements; write LOW:HIGH, as in 0:100, or 0: for one.")
        return found[0], found[1]

    @staticmethod
    def stored_in(configuration: Mapping[str, Any]) -> Scale:
        """That of a stored study."""
        return Scale(**configuration.get("scale", {}))

    def stored(self) -> dict[str, Any]:
        """What is stored beside the policy's spec; {} where nothing is said."""
        return {} if self == NO_SCALE else {"scale": {"unit": self.unit, "low": self.low, "high": self.high}}

    def outside(self, value: float) -> float | None:
        """The limit that a number is beyond; None where it is not."""
        if self.low is not None and value < self.low:
            return self.low
        return self.high if self.high is not None and value > self.high else None


NO_SCALE = Scale()
