"""The pictures for terminals: 60 columns of Unicode, or of ASCII where the encoding has no more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from surepick.drawings import sentences
from surepick.drawings.numbers import Scale, asked, in_points, number, tick_label, upper, with_unit
from surepick.drawings.records import Candidate, Candidates, State, Trace
from surepick.text import printable

WIDTH, NARROWEST = 60, 50
IDS, LONGEST_ID, LEAST_PLOT = 8, 16, 24  # columns of an id, at most, where the plot still has so many
ROWS, POSSIBLE = 10, 20  # that are shown at least, and at most
ROUND_BAR, SPARK = 24, 32
KINDS: dict[State, str] = {"recommended": "best", "possible": "possible"}


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters of a picture."""

    of: dict[str, str]  # kind of candidate -> sign
    dots: dict[str, str]
    band: str
    line: str
    limit: str
    levels: str  # of a spark, from low to high
    nothing: str  # of a spark, where nothing is proved
    bar: str  # of a round: in, in hand, free
    cut: str


UNICODE = Signs(
    of={"best": "★", "possible": "◇", "out": "·"},
    dots={"best": "●", "possible": "○", "out": "•"},
    band="░",
    line="─",
    limit="│",
    levels="▁▂▃▄▅▆▇█",
    nothing="·",
    bar="█▒░",
    cut="…",
)
ASCII = Signs(
    of={"best": "*", "possible": "o", "out": "-"},
    dots={"best": "@", "possible": "o", "out": "."},
    band=":",
    line="-",
    limit="|",
    levels="12345678",
    nothing=".",
    bar="#+.",
    cut="~",
)
TO_ASCII = str.maketrans({"\N{NO-BREAK SPACE}": " ", "\N{MINUS SIGN}": "-", "…": "~"})


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a picture, and the kind of the candidate that it is about, for its colour."""

    text: str
    kind: str = ""


def signs_for(encoding: str | None) -> Signs:
    """The characters that an encoding has."""
    return UNICODE if "utf" in (encoding or "").lower() else ASCII


def means_lines(found: Candidates, *, width: int = WIDTH, signs: Signs = UNICODE, unit: str = "") -> list[Line]:
    """The candidates by mean, a line each, with the tolerance around the recommended one as a band."""
    if not found.trace.rounds:
        return [Line(sentences.NOTHING_YET)]
    shown, others = found.shown(least=ROWS, most=POSSIBLE)
    means = ["" if row.mean is None else number(row.mean, found.decimals) for row in shown]
    times = [f"{row.times:,}" for row in shown]
    right = max(8, *(len(text) + 2 for text in means)), max(5, *(len(text) + 2 for text in times))
    width = min(width, WIDTH)
    longest = max((len(printable(row.id)) for row in shown), default=IDS)
    ids = min(max(IDS, longest + 1), LONGEST_ID + 1, max(width - 2 - sum(right) - LEAST_PLOT, IDS))
    room = width - 2 - ids - sum(right)
    plot = _Plot.of(found, shown, room, signs, unit) if width >= NARROWEST and room >= 12 else None
    head = "mean" if not found.estimated else "est."
    lines = [] if plot is None else [Line(" " * (2 + ids) + plot.label)] if plot.label.strip() else []
    ticks = " " * max(room, 0) if plot is None else plot.ticks
    lines.append(Line(f"{' ' * (2 + ids)}{ticks}{head:>{right[0]}}{'n':>{right[1]}}"))
    for row, mean, count in zip(shown, means, times, strict=True):
        kind = KINDS.get(row.state, "out")
        drawn = " " * max(room, 0) if plot is None else plot.row(row, kind)
        name = _cut(printable(row.id), ids - (ids > IDS), signs)
        lines.append(Line(f"{signs.of[kind]} {name:<{ids}}{drawn}{mean:>{right[0]}}{count:>{right[1]}}", kind))
    if others:
        called = {found.called[row.state] for row in others}
        kinds = f"all {called.pop()}" if len(called) == 1 else ""
        possible = sum(row.state == "possible" for row in others)
        kinds = kinds or (f"{possible:,} of them {found.called['possible']}" if possible else "")
        lines.append(Line(f"and {len(others):,} more{f', {kinds}' if kinds else ''}"))
    return [_plain(line, signs) for line in lines]


@dataclass(frozen=True, slots=True)
class _Plot:
    """The columns in which marks lie."""

    scale: Scale
    room: int
    signs: Signs
    band: tuple[int, int] | None
    limits: tuple[int, ...]
    label: str
    ticks: str

    @staticmethod
    def of(found: Candidates, rows: Sequence[Candidate], room: int, signs: Signs, unit: str) -> _Plot:
        """For these rows."""
        ends = [end for row in rows for end in (row.low, row.mean, row.high) if end is not None]
        best = found.recommended
        limits = [line for line, _ in found.lines]
        band = None
        if best is not None and best.mean is not None and found.tolerance and not limits:
            band = (best.mean - found.tolerance, best.mean + found.tolerance)
        scale = Scale.over([*ends, *(band or ()), *limits] or [0.0], mirrored=found.minimize)

        def column(value: float) -> int:
            return min(int(scale.at(value) / 100.0 * room), room - 1)

        where = None if band is None else tuple(sorted(map(column, band)))
        label = ""
        if where is not None:
            near = f"within {with_unit(asked(found.tolerance), in_points(unit))}"
            label = _written(room, [((where[0] + where[1] + 1) // 2, near)])
        elif limits:
            label = _written(room, [(column(line), name) for line, name in found.lines])
        ticks = _written(room, [(column(tick), tick_label(tick)) for tick in scale.ticks(4)])
        two = None if where is None else (where[0], where[1])
        return _Plot(scale, room, signs, two, tuple(map(column, limits)), label, ticks)

    def row(self, row: Candidate, kind: str) -> str:
        """Band, line and dot of one candidate."""
        cells = [" "] * self.room
        if self.band is not None:
            cells[self.band[0] : self.band[1] + 1] = self.signs.band * (self.band[1] + 1 - self.band[0])
        for at in self.limits:
            cells[at] = self.signs.limit

        def column(value: float) -> int:
            return min(int(self.scale.at(value) / 100.0 * self.room), self.room - 1)

        if row.low is not None and row.high is not None:
            left, right = sorted((column(row.low), column(row.high)))
            cells[left : right + 1] = self.signs.line * (right + 1 - left)
        if row.mean is not None:
            cells[column(row.mean)] = self.signs.dots[kind]
        return "".join(cells)


def trace_lines(
    trace: Trace, decimals: int, *, signs: Signs = UNICODE, unit: str = "", eliminates: bool = True
) -> list[Line]:
    """The gap and the field over the rounds as sparks; nothing before the first round."""
    if not trace.rounds:
        return []
    rounds = _spaced(len(trace.rounds), SPARK)
    lines, gaps = [], [trace.rounds[at].gap for at in rounds]
    known = [one for one in trace.rounds if one.gap is not None]
    if known:
        most = max(gap for gap in gaps if gap is not None) if any(gap is not None for gap in gaps) else 0.0
        first, last = known[0], known[-1]
        said = f"{upper(first.gap or 0.0, decimals)} after {first.measurements:,}"
        if last is not first:
            said += f", now {with_unit(upper(last.gap or 0.0, decimals), in_points(unit))}"
        lines.append(Line(f"gap     {_spark(gaps, most, signs)}  {said}"))
    counts = [float(trace.rounds[at].possible) for at in rounds]
    if eliminates and min(counts) < trace.asked_about:
        spark = _spark(counts, float(max(trace.asked_about, *counts)), signs)
        lines.append(Line(f"field   {spark}  {trace.asked_about:,}, now {trace.rounds[-1].possible:,}"))
    return [_plain(line, signs) for line in lines]


def round_line(told: int, held: int, wanted: int, *, round_number: int, signs: Signs = UNICODE) -> str:
    """How much of the open round is in, in hand, and free. Nothing about values."""
    whole = max(wanted, 1)
    inside = int(ROUND_BAR * min(told, whole) / whole)
    with_held = min(int(ROUND_BAR * min(told + held, whole) / whole), ROUND_BAR)
    if held and with_held == inside < ROUND_BAR:
        with_held += 1
    bar = signs.bar[0] * inside + signs.bar[1] * (with_held - inside) + signs.bar[2] * (ROUND_BAR - with_held)
    in_hand = f", {held:,} in hand" if held else ""
    return f"{f'round {round_number}':<8}{bar}  {told:,} of {wanted:,} in{in_hand}"


def _spark(values: Sequence[float | None], most: float, signs: Signs) -> str:
    """Levels from 0 to the highest."""
    top = len(signs.levels) - 1

    def level(value: float | None) -> str:
        if value is None:
            return signs.nothing
        return signs.levels[min(max(-(-int(1e9 * value * (top + 1) / most) // 10**9) - 1, 0), top) if most > 0 else 0]

    return "".join(map(level, values))


def _spaced(total: int, most: int) -> list[int]:
    """Positions, evenly spaced, the first and the last among them."""
    return list(range(total)) if total <= most else [round(at * (total - 1) / (most - 1)) for at in range(most)]


def _written(room: int, labels: Sequence[tuple[int, str]]) -> str:
    """Labels centred at their columns on one line; one that would touch another is left out."""
    cells = [" "] * room
    for at, said in labels:
        label = said[:room]
        start = min(max(at - len(label) // 2, 0), room - len(label))
        around = cells[max(start - 1, 0) : start + len(label) + 1]
        if all(cell == " " for cell in around):
            cells[start : start + len(label)] = label
    return "".join(cells)


def _cut(name: str, most: int, signs: Signs) -> str:
    """The name, the middle of a longer one left out: names often differ at their ends."""
    if len(name) <= most:
        return name
    head = most // 2
    return f"{name[:head]}{signs.cut}{name[len(name) - (most - 1 - head) :]}"


def _plain(line: Line, signs: Signs) -> Line:
    """The line with characters that its encoding has."""
    if signs is not ASCII:
        return line
    return Line(line.text.translate(TO_ASCII).encode("ascii", "replace").decode("ascii"), line.kind)
