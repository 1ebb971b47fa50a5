"""Where the candidates stand, for answers by lists: averages beside what the question compares them with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from surepick.core.records import FloatArray, record
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.questions import Question, constraints_of, parse_question
from surepick.reports.study.facts import MOST_ROWS, Fate, StudyFacts, column, distinct

# --- Where marks lie: frames, scales and their ticks, bins, and the paths of a few shapes. Templates write them as SVG.

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
    width: float = WIDTH  # of the drawing

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
    """From numbers to places."""

    low: float  # the range of numbers, low < high
    high: float
    start: float
    end: float
    logarithmic: bool = False  # equal ratios are equal distances; low is positive then
    whole: bool = False  # only whole numbers have a meaning

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


def spread_labels(values: Iterable[float]) -> tuple[float, float]:
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
class Lanes:
    """A chart with a row for each candidate: the frame, and the names beside it."""

    frame: Frame  # the rows fill it from top to bottom
    names: tuple[str, ...]  # short, and different where the candidates' names are
    step: float


def rows_shown(names: Sequence[str], *, right: float, top: float, step: float = 26.0) -> Lanes:
    """Rows with room for these names, and a symbol, at their left."""
    short = tuple(distinct(names, LETTERS, MOST_LETTERS))
    left = max(120.0, 34.0 + LETTER * max(map(len, short), default=0))
    return Lanes(Frame(left, right, top, top + step * len(short)), short, step)


# --- distributions


@record
class ScaleColumn:
    """One column of a distribution."""

    low: float  # from here (included)
    high: float  # to here (excluded, but for the last)
    count: int
    x: float
    width: float


@record
class Histogram:
    """How values are distributed over equal parts of a scale; what lies outside is in the first or the last part."""

    frame: Frame
    across: Scale
    up: Scale
    columns: tuple[ScaleColumn, ...]


def histogram(values: Sequence[float], frame: Frame, across: Scale, number_of: int) -> Histogram:
    """Count the values in `number_of` columns of equal width."""
    width = (across.end - across.start) / number_of
    counts = [0] * number_of
    for value in values:
        counts[min(int((across.at(value) - across.start) / width), number_of - 1)] += 1
    low, high = across.low, across.high
    shares = [part / number_of for part in range(number_of + 1)]
    edges = [low * (high / low) ** one if across.logarithmic else low + one * (high - low) for one in shares]
    columns = tuple(
        ScaleColumn(edges[part], edges[part + 1], count, across.start + width * part, width)
        for part, count in enumerate(counts)
    )
    return Histogram(frame, across, frame.up(0.0, float(max(counts)), whole=True), columns)


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


SHOWN = 30
ERRORS = 2.0  # standard errors to either side
MOST_ROOM = 1.0  # of the range of averages, that bars may take beyond it


@record
class Point:
    """A candidate on the picture."""

    candidate: int
    average: float
    error: float | None  # the standard error of that; None where one measurement does not show it
    pulls: int


@record
class Panel:
    """One quantity of the candidates."""

    name: str  # of the quantity; "" for the reward
    points: tuple[Point, ...]  # those with a row, the highest average first
    rows: Lanes
    across: Scale
    lines: tuple[tuple[float, str], ...]  # (number, what it is) of what candidates are compared with, ascending
    known: int


def standings(study: StudyFacts) -> tuple[Panel, ...]:
    """The reward, and each quantity with a bound; () where the answer is no list, or nothing was measured."""
    if study.lists is None or study.document["arms"]["ids"] is None:
        return ()
    asked = parse_question((study.document["policy"] or {}).get("question"), {})
    told = _points(study, [look["told"] for look in study.looks])
    panels = [_panel(study, "", told, _lines(study, asked, told))]
    for place, one in enumerate(constraints_of(asked)):
        parts = [look["quantities"][place] for look in study.looks if look.get("quantities")]
        lines = [(one.bound, f"{'at most' if one.at_most else 'at least'} {one.bound:g}")]
        if one.tolerance:
            lines.append((one.bound + (one.tolerance if one.at_most else -one.tolerance), "with the tolerance"))
        panels.append(_panel(study, one.name, _points(study, parts), lines))
    return tuple(one for one in panels if one is not None)


def _points(study: StudyFacts, parts: Sequence[dict[str, Any]]) -> list[Point]:
    """Averages of all candidates that were measured, from the totals of the batches."""
    number = len(study.names)
    pulls, sums, squares = [0] * number, [0.0] * number, [0.0] * number
    for part in parts:
        energies = part["squares"] or [math.nan] * len(part["arms"])
        for arm, count, total, energy in zip(part["arms"], part["pulls"], part["sums"], energies, strict=True):
            pulls[arm] += count
            sums[arm] += total
            squares[arm] += energy
    found = []
    for candidate, count in enumerate(pulls):
        if count:
            average = sums[candidate] / count
            deviation = squares[candidate] / count - average**2
            known = count > 1 and deviation > 1e-12 * average**2
            error = math.sqrt(deviation / (count - 1)) if known else None
            found.append(Point(candidate, average, error, count))
    return found


def _lines(study: StudyFacts, asked: Question | None, told: Sequence[Point]) -> list[tuple[float, str]]:
    """What the averages are compared with."""
    if asked is None or (asked.splits and (study.lists or {}).get("segments")):
        return []
    averages = {study.names[point.candidate]: point.average for point in told}
    return asked.lines(averages, -1.0 if study.document["minimize"] else 1.0, float(study.document["epsilon"]))


def _panel(study: StudyFacts, name: str, told: Sequence[Point], lines: Sequence[tuple[float, str]]) -> Panel | None:
    if not told:
        return None
    near = [(min((abs(point.average - line) for line, _ in lines), default=-point.average), point) for point in told]
    shown = [point for _, point in sorted(near, key=lambda one: (one[0], one[1].candidate))[:SHOWN]]
    shown.sort(key=lambda point: (-point.average, point.candidate))
    low, high = spread_labels([*(point.average for point in shown), *(line for line, _ in lines)])
    room = MOST_ROOM * (high - low)
    ends = [point.average + side * ERRORS * (point.error or 0.0) for point in shown for side in (-1.0, 1.0)]
    rows = rows_shown([study.names[point.candidate] for point in shown], right=560.0, top=62.0)
    widened = [max(min([low, *ends]), low - room), min(max([high, *ends]), high + room)]
    across = rows.frame.across(*spread_labels(widened))
    return Panel(name, tuple(shown), rows, across, tuple(sorted(lines)), len(told))


# --- The candidates on a plane, by their features: who is near whom, and what became of them.

MOST_COLUMNS = 800  # beyond, and with more candidates as well, the directions come from so many of the candidates
TINY = 1e-9  # share of the variance below which a direction is rounding
GRID = 2.0  # marks of one kind nearer than half a unit are one
MANY = 400  # candidates from which marks are small
NAMED = 100  # candidates still possible up to which each mark has its name
# where the features differ along one direction only
ROWS = {"recommended": 2.0, "possible": 1.0, "left": 0.0, "withdrawn": 0.0, "waiting": 0.0, "aside": 0.0}
TALL, FLAT = Frame(12.0, 628.0, 74.0, 470.0, below=36.0), Frame(12.0, 628.0, 74.0, 250.0, below=36.0)


@record
class Plane:
    """The candidates' places."""

    places: FloatArray  # shape (K, 2); the second column is 0 where one direction says all
    shares: tuple[float, float]  # of the differences between candidates that each direction holds

    @property
    def flat(self) -> bool:
        """Whether one direction says all."""
        return self.shares[1] == 0.0


@record
class Map:
    """The candidates as marks on their plane."""

    why: Literal["plane", "no-features", "equal-features"]  # "plane", or the reason why there is none
    frame: Frame | None = None
    plane: Plane | None = None
    small: bool = False
    dots: str = ""  # of the candidates that are out, as a path
    diamonds: tuple[tuple[str, str], ...] = ()  # (name, path) of those still possible; without a name, one path of all
    best: tuple[float, float] | None = None
    near: bool | None = None  # those still possible are nearer to the best one than most are; None if there are none
    listed: tuple[int, ...] = ()  # candidates in the table, the best and those still possible first
    written: tuple[list[str], ...] = ()  # their places along each direction


def candidate_map(study: StudyFacts, features: FloatArray) -> Map:
    """The candidates on the plane of their features."""
    plane = principal_plane(features)
    if plane is None:
        return Map("no-features" if features.shape[1] == 0 else "equal-features")
    fates = study.fates
    frame = FLAT if plane.flat else TALL
    left_to_right = plane.places[:, 0].tolist()
    upwards = [ROWS[fate] for fate in fates] if plane.flat else plane.places[:, 1].tolist()
    inner = Frame(frame.left + 14.0, frame.right - 14.0, frame.top + 14.0, frame.bottom - 14.0)
    across = inner.across(*spread_labels(left_to_right))
    up = frame.up(-0.5, 2.5) if plane.flat else inner.up(*spread_labels(upwards))
    where = [(across.at(x), up.at(y)) for x, y in zip(left_to_right, upwards, strict=True)]
    places: dict[Fate, list[int]] = {fate: [] for fate in get_args(Fate)}
    for candidate, fate in enumerate(fates):
        places[fate].append(candidate)
    gone = [*places["left"], *places["withdrawn"], *places["waiting"], *places["aside"]]
    listed = [*places["recommended"], *places["possible"], *gone][:MOST_ROWS]
    small, out, near, possible = len(fates) > MANY, sorted(gone), None, places["possible"]
    size, marks = 3.5 if small else 6.0, [(one, _apart([where[one]])[0]) for one in possible]
    diamonds = tuple((study.names[one], diamond(*mark, size)) for one, mark in marks)
    if len(possible) > NAMED:
        diamonds = (("", "".join(diamond(*mark, size) for mark in dict.fromkeys(mark for _, mark in marks))),)
    if study.best is not None and places["possible"]:
        distance = np.sqrt(((plane.places - plane.places[study.best]) ** 2).sum(axis=1))
        near = bool(np.median(distance[places["possible"]]) < np.median(distance))
    return Map(
        "plane",
        frame=frame,
        plane=plane,
        small=small,
        dots="".join(f"M{x:g} {y:g}h0" for x, y in _apart(where[candidate] for candidate in out)),
        diamonds=diamonds,
        best=None if study.best is None else where[study.best],
        near=near,
        listed=tuple(listed),
        written=(column(plane.places[listed, 0].tolist()), column(plane.places[listed, 1].tolist())),
    )


def _apart(where: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """The places on a fine grid, each once."""
    return list(dict.fromkeys((round(x * GRID) / GRID, round(y * GRID) / GRID) for x, y in where))


def principal_plane(features: FloatArray) -> Plane | None:
    """The places along the two directions of largest variance of the standardised features; None if all are equal."""
    if features.shape[1] == 0:
        return None
    centred = features - features.mean(axis=0)
    scales = centred.std(axis=0)
    varying = scales > 1e-12 * np.abs(features).max(axis=0, initial=0.0)
    if not varying.any():
        return None
    unit: FloatArray = centred[:, varying] / scales[varying]
    some = slice(None) if min(unit.shape) <= MOST_COLUMNS else np.linspace(0, len(unit) - 1, MOST_COLUMNS).astype(int)
    directions = _directions(unit[some])
    flip = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    places = (unit @ directions) * flip
    shares = (places**2).sum(axis=0) / (unit**2).sum()
    if places.shape[1] == 1 or shares[1] < TINY:
        places = np.column_stack([places[:, 0], np.zeros(len(places))])
        return Plane(places, (float(shares[0]), 0.0))
    return Plane(places, (float(shares[0]), float(shares[1])))


def _directions(rows: FloatArray) -> FloatArray:
    """The (at most two) unit vectors of largest variance, as columns, from the smaller of the two products."""
    if rows.shape[1] <= rows.shape[0]:
        return symmetric_spectrum(rows.T @ rows).vectors[:, :2]
    spectrum = symmetric_spectrum(rows @ rows.T)
    kept = spectrum.values[:2] > TINY * max(float(spectrum.values[0]), 1e-300)
    return rows.T @ spectrum.vectors[:, :2][:, kept] / np.sqrt(spectrum.values[:2][kept])
