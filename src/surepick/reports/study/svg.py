"""Drawings as lists of marks, and the scales that place them. A template writes them as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field

from surepick.core.arrays import record
from surepick.reports.study.format import distinct, number

WIDTH = 640  # of every drawing; letters are larger on small screens, and the places leave room for that
LETTERS = 24  # of a candidate's name beside a row
MOST_LETTERS = 30  # where names differ only then
LETTER = 11.2  # room for one of them, as wide as it is on small screens


@record
class Mark:
    """An element of SVG.

    Args:
        tag: "path", "rect", "line", "text", ...
        attributes: its attributes; numbers are places on the drawing.
        text: what stands in it; None for an element without content.
        whole: the whole name where `text` is a part of it, "" otherwise.
    """

    tag: str
    attributes: dict[str, str]
    text: str | None = None
    whole: str = ""


@record
class Drawing:
    """A picture with what it shows in words.

    Args:
        key: its name in the page, unique.
        title: what it is, short.
        finding: what it shows, for those who do not see it.
        height: in units of which it is WIDTH wide.
        marks: from back to front.
        symbols: what the symbols beside names mean, "" where there are none.
    """

    key: str
    title: str
    finding: str
    height: float
    marks: tuple[Mark, ...]
    symbols: str = ""
    width: int = field(default=WIDTH)


def mark(tag: str, style: str, text: str | None = None, **attributes: object) -> Mark:
    """A mark of a class of the style sheet; `text_anchor` stands for text-anchor, `d` for itself, and so on."""
    given = {name.replace("_", "-"): _place(value) for name, value in attributes.items()}
    return Mark(tag, {"class": style, **given}, text)


def row_names(names: Sequence[str]) -> list[str]:
    """The names beside rows: short, and different where the names are."""
    return distinct(names, LETTERS, MOST_LETTERS)


def beside(names: Sequence[str], *, least: float = 120.0) -> float:
    """Where a picture begins that has these names, and a symbol, at its left."""
    return max(least, 34.0 + LETTER * max(map(len, names), default=0))


def name_mark(symbol: str, called: str, name: str, y: float) -> Mark:
    """A candidate's name at the left of its row, with the whole one for those who point at it."""
    text = mark("text", "tick", f"{symbol} {called}", x=0.0, y=y)
    return Mark(text.tag, text.attributes, text.text, "" if called == name else name)


def _place(value: object) -> str:
    if isinstance(value, float):
        text = f"{value:.2f}".rstrip("0").rstrip(".")
        return "0" if text == "-0" else text
    return str(value)


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


def spread(values: Iterable[float], *, least: float = 0.0) -> tuple[float, float]:
    """(lowest, highest), widened where they are equal."""
    found = list(values)
    low, high = min(found), max(found)
    if high - low <= max(least, 1e-12 * max(abs(low), abs(high))):
        room = max(abs(low), 1.0) * 0.5
        return low - room, high + room
    return low, high


def across_axis(
    scale: Scale, *, top: float, bottom: float, name: str, most: int = 5, middle: float | None = None
) -> list[Mark]:
    """Grid, numbers and name of an axis below a picture; the name is in the middle of it, or at `middle`."""
    marks = []
    for tick in scale.ticks(most):
        x = scale.at(tick)
        marks.append(mark("line", "grid", x1=x, x2=x, y1=top, y2=bottom))
        marks.append(mark("text", "tick", number(tick), x=x, y=bottom + 20.0, text_anchor="middle"))
    middle = (scale.start + scale.end) / 2 if middle is None else middle
    marks.append(mark("text", "axis", name, x=middle, y=bottom + 46.0, text_anchor="middle"))
    return marks


def upright_axis(scale: Scale, *, left: float, right: float, name: str, most: int = 5) -> list[Mark]:
    """Grid, numbers and name of an axis at the left of a picture; the name stands above it."""
    marks = [mark("text", "axis", name, x=0.0, y=16.0)]
    for tick in scale.ticks(most):
        y = scale.at(tick)
        marks.append(mark("line", "grid", x1=left, x2=right, y1=y, y2=y))
        marks.append(mark("text", "tick", number(tick), x=left - 8.0, y=y + 5.0, text_anchor="end"))
    return marks


def staircase(points: Sequence[tuple[float, float]]) -> str:
    """A path that stays until the next point and then steps; what is no wider than a third of a unit is one step."""
    x, y = points[0]
    words = [f"M{_place(x)} {_place(y)}"]
    for place, level in points[1:]:
        if level == y and place < points[-1][0]:
            continue
        words.append(f"H{_place(place)}")
        if level != y:
            words.append(f"V{_place(level)}")
        x, y = place, level
    return "".join(words)


@record
class Bin:
    """One bar of a distribution.

    Args:
        low, high: from (included) and to (excluded, but for the last).
        count: how many values lie there.
    """

    low: float
    high: float
    count: int


def bins(values: Sequence[float], scale: Scale, number_of: int) -> list[Bin]:
    """The distribution of values over equal parts of a scale; what lies outside is in the first or the last."""
    width = (scale.end - scale.start) / number_of
    counts = [0] * number_of
    for value in values:
        counts[min(int((scale.at(value) - scale.start) / width), number_of - 1)] += 1
    edges = [_back(scale, part / number_of) for part in range(number_of + 1)]
    return [Bin(edges[part], edges[part + 1], count) for part, count in enumerate(counts)]


def _back(scale: Scale, share: float) -> float:
    if scale.logarithmic:
        return float(scale.low * (scale.high / scale.low) ** share)
    return scale.low + share * (scale.high - scale.low)
