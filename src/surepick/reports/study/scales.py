"""Where marks lie: frames, scales and their ticks, bins, and the paths of a few shapes. Templates write them as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from surepick.core.arrays import record
from surepick.reports.study.format import distinct

WIDTH = 640.0  # of every drawing; letters are larger on small screens, and the places leave room for that
BELOW = 56.0  # room for the numbers and the name of an axis
LETTERS = 24  # of a candidate's name beside a row
MOST_LETTERS = 30  # where names differ only then
LETTER = 11.2  # room for one of them, as wide as it is on small screens


@record
class Frame:
    """The rectangle in which the marks of a chart lie, on a drawing that is WIDTH wide, and the room below it."""

    left: float
    right: float
    top: float
    bottom: float
    below: float = BELOW

    @property
    def width(self) -> float:
        return WIDTH

    @property
    def height(self) -> float:
        """Of the drawing, with the axis below the frame."""
        return self.bottom + self.below

    def across(self, low: float, high: float, *, logarithmic: bool = False, whole: bool = False) -> Scale:
        """From left to right."""
        return Scale(low, high, self.left, self.right, logarithmic, whole)

    def up(self, low: float, high: float, *, logarithmic: bool = False, whole: bool = False) -> Scale:
        """From bottom to top."""
        return Scale(low, high, self.bottom, self.top, logarithmic, whole)


@record
class Scale:
    """From numbers to places.

    Args:
        low, high: the range of numbers, low < high.
        start, end: their places.
        logarithmic: equal ratios are equal distances; low is positive then.
        whole: only whole numbers have a meaning.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False
    whole: bool = False

    def at(self, value: float) -> float:
        """The place of a number, at the edge for one outside the range."""
        kept = min(max(value, self.low), self.high)
        if self.logarithmic:
            share = math.log(kept / self.low) / math.log(self.high / self.low)
        else:
            share = (kept - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers in the range."""
        if self.logarithmic:
            lowest, highest = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            apart = max(1, -(-(highest - lowest + 1) // most))
            return [10.0**power for power in range(lowest, highest + 1, apart)]
        step = nice_step(max((self.high - self.low) / most, 1.0 if self.whole else 0.0))
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [round(count * step, 12) if step < 1 else count * step for count in range(first, last + 1)]


def nice_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least this."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least * (1.0 - 1e-9))


def spread(values: Iterable[float]) -> tuple[float, float]:
    """(lowest, highest), widened where they are equal."""
    found = list(values)
    low, high = min(found), max(found)
    if high - low <= 1e-12 * max(abs(low), abs(high)):
        room = max(abs(low), 1.0) * 0.5
        return low - room, high + room
    return low, high


def place(value: float) -> str:
    """A place on a drawing, as short as a hundredth of a unit can be written."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


# --- rows, one a candidate


@record
class Rows:
    """A chart with a row for each candidate: the frame, and the names beside it.

    Args:
        frame: the rows fill it from top to bottom.
        names: short, and different where the candidates' names are.
        step: height of a row.
    """

    frame: Frame
    names: tuple[str, ...]
    step: float


def rows_of(names: Sequence[str], *, right: float, top: float, step: float = 26.0) -> Rows:
    """Rows with room for these names, and a symbol, at their left."""
    short = tuple(distinct(names, LETTERS, MOST_LETTERS))
    left = max(120.0, 34.0 + LETTER * max(map(len, short), default=0))
    return Rows(Frame(left, right, top, top + step * len(short)), short, step)


# --- distributions


@record
class Column:
    """One column of a distribution.

    Args:
        low, high: from (included) and to (excluded, but for the last).
        count: how many values lie there.
        x, width: where it is drawn.
    """

    low: float
    high: float
    count: int
    x: float
    width: float


@record
class Histogram:
    """How values are distributed over equal parts of a scale; what lies outside is in the first or the last part.

    Args:
        frame: around it.
        across: of the values.
        up: of the counts.
        columns: every part, in order.
    """

    frame: Frame
    across: Scale
    up: Scale
    columns: tuple[Column, ...]


def histogram(values: Sequence[float], frame: Frame, across: Scale, number_of: int) -> Histogram:
    """Count the values in `number_of` columns of equal width."""
    width = (across.end - across.start) / number_of
    counts = [0] * number_of
    for value in values:
        counts[min(int((across.at(value) - across.start) / width), number_of - 1)] += 1
    edges = [_back(across, part / number_of) for part in range(number_of + 1)]
    columns = tuple(
        Column(edges[part], edges[part + 1], count, across.start + width * part, width)
        for part, count in enumerate(counts)
    )
    return Histogram(frame, across, frame.up(0.0, float(max(counts)), whole=True), columns)


def _back(scale: Scale, share: float) -> float:
    if scale.logarithmic:
        return float(scale.low * (scale.high / scale.low) ** share)
    return scale.low + share * (scale.high - scale.low)


# --- paths


def staircase(points: Sequence[tuple[float, float]]) -> str:
    """A path that stays until the next point and then steps."""
    y = points[0][1]
    words = [f"M{place(points[0][0])} {place(y)}"]
    for x, level in points[1:]:
        if level == y and x < points[-1][0]:
            continue
        words.append(f"H{place(x)}")
        if level != y:
            words.append(f"V{place(level)}")
        y = level
    return "".join(words)


def diamond(x: float, y: float, size: float) -> str:
    """A closed path around a place."""
    return f"M{x - size:g} {y:g}l{size:g} {-size:g} {size:g} {size:g} {-size:g} {size:g}z"


def star(x: float, y: float, size: float) -> str:
    """A closed path with five points around a place."""
    corners = []
    for corner in range(10):
        radius = size if corner % 2 == 0 else 0.42 * size
        angle = math.pi * (corner / 5.0 - 0.5)
        corners.append(f"{x + radius * math.cos(angle):.1f} {y + radius * math.sin(angle):.1f}")
    return f"M{'L'.join(corners)}Z"


def arrow(x: float, y: float, back: float) -> str:
    """A closed path that points at a place, away from `back`."""
    return f"M{x + back:.2f} {y - 5:.2f}L{x:.2f} {y:.2f}L{x + back:.2f} {y + 5:.2f}Z"
