"""Readings as people see them: a table in which each row is one joint point, and bars of how far one could be wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from surepick.assumptions.likely_norm import rounded
from surepick.assumptions.reading import Reading
from surepick.assumptions.records import off_by, scatter_of
from surepick.core.records import record
from surepick.text import html_table

HEADERS = ("the means are", "norm", "suggested", "off by up to", "noise", "the answer is")
OFF = 3  # the most prominent of them
LEFT = (HEADERS[0], HEADERS[-1])
TOGETHER = "Each line is one claim, whose numbers hold together; off by: how far each mean may be off the class."
ALONE = "How far one of them alone could be wrong, all else as it was declared:"
COLUMNS = 60  # of a bar on a terminal
FEWEST = 8  # of them are its marks
ROOM = (0.8, 1.25)  # of the smallest and of the largest number that a bar shows: where it begins and ends


def row_of(reading: Reading) -> tuple[str, ...]:
    """The cells of a reading: one point at which all of its numbers hold together."""
    off = reading.off_by if reading.off_by is not None else off_by(reading.assumption) or None
    scatter = scatter_of(reading.assumption)
    scale = reading.declared_scatter if scatter is None else scatter
    numbers = (reading.norm, reading.suggested_norm, off, scale)
    return (reading.kind, *(_number(one) for one in numbers), _answer(reading))


def _answer(reading: Reading) -> str:
    if reading.refuted:
        return "no candidate: refuted"
    if reading.gap is None:
        return "not known"
    if reading.off_by is not None:
        return f"within {reading.epsilon:g}"
    return f"within {rounded(reading.gap, 3, math.ceil):g}" + ("" if reading.stands else f", not {reading.epsilon:g}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{float(f'{value:.3g}'):,g}"


@record
class Bar:
    """Up to which value of one number the same results certify the answer, all else as it was read."""

    what: str
    holds: float  # up to this value
    declared: float  # what was declared, or trusted
    repeats: float | None = None  # what repeats say; None: nothing

    @property
    def attention(self) -> bool:
        """Whether repeats lie beyond what the answer survives."""
        return self.repeats is not None and self.repeats > self.holds

    def place(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        known = [one for one in (self.holds, self.declared, self.repeats) if one is not None]
        low, high = ROOM[0] * min(known), ROOM[1] * max(known)
        return (value - low) / (high - low)

    @property
    def marks(self) -> str:
        """What else the scale has, in words."""
        said = [] if self.repeats is None else [f"repeats {self.repeats:.3g}"]
        return ", ".join([f"declared {self.declared:.3g}", *said])

    def __str__(self) -> str:
        """The bar in at most 60 columns."""
        said = f" to {self.holds:.3g}; {self.marks}"
        places = max(COLUMNS - len(said) - 7, FEWEST)
        full = round(places * self.place(self.holds))
        return f"{self.what:<7}{'█' * full}{'░' * (places - full)}{said}"


def bars_of(reading: Reading) -> tuple[Bar, ...]:
    """How far means may be off the class, and how much the noise may vary: each alone."""
    found = []
    if reading.off_by is not None:
        found.append(Bar("off by", reading.off_by, off_by(reading.assumption)))
    if reading.stands and reading.largest_scatter is not None and reading.declared_scatter is not None:
        most = rounded(reading.largest_scatter, 3, math.floor)
        found.append(Bar("noise", most, reading.declared_scatter, reading.suggested_scatter))
    return tuple(found)


def html_of(readings: Sequence[Reading]) -> str:
    """The claim, the table and the bars, for notebooks; "" without readings."""
    if not readings:
        return ""
    bars = "\n".join(map(str, bars_of(readings[0])))
    table = html_table(HEADERS, map(row_of, readings), readings[0].survives)
    return f"{table}<p>{TOGETHER}</p><pre>{escape(bars)}</pre>"
