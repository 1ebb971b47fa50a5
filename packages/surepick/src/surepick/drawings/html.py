"""The pictures as HTML with SVG: no viewBox, so that no text is scaled; x in per cent, y in pixels; classes only.

A picture of candidates is a table: ids, columns and numbers are cells, and one cell of each row holds its marks. The
classes are those of `style.css`, which stands in reports and notebooks; pages have the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from surepick.drawings import sentences
from surepick.drawings.numbers import Scale, asked, in_points, nice_step, number, signed, tick_label, upper, with_unit
from surepick.drawings.records import Candidate, Candidates, State, Trace
from surepick.text import printable

Described = Mapping[str, Sequence[str]]  # id -> the candidate's own columns
Link = Callable[[str], str]  # id -> the address of its page
SIGNS: dict[State, str] = {"recommended": "★", "possible": "◇", "ruled out": "·", "withdrawn": "×", "waiting": "–"}
CLASSES: dict[State, str] = {"recommended": "best", "possible": "possible"}
RADIUS = {"best": 5.5, "possible": 4.5, "out": 3}
ROW, TOP = 28, 38  # height of a row's marks, and of the labels above them
SPACE = "\N{NO-BREAK SPACE}"
CLOSE = 15.0  # per cent: labels whose centres are nearer to an edge are aligned with it
MOST_FOLDED = 500  # rows of the fold
SHORT_ID = 14  # letters of an id that fit in a narrow column
MOST_OWN = 3  # columns of a candidate that stand beside it
CLOSEST_OUT = 3  # candidates that are ruled out, on the picture of who may still be the best
STYLE = Path(__file__).with_name("style.css")


def style() -> str:
    """The stylesheet of all pictures; everything in it is inside `.surepick`."""
    return STYLE.read_text("utf-8").strip()


@dataclass(frozen=True, slots=True)
class Words:
    """What the pictures call things.

    Args:
        unit: of a result, "%" for instance.
        columns: names of the candidates' own columns.
        described: id -> what stands in them.
        link: id -> address of the candidate's page.
        results: address of the results as a table.
    """

    unit: str = ""
    columns: Sequence[str] = ()
    described: Described | None = None
    link: Link | None = None
    results: str = ""


PLAIN = Words()


def text(value: object) -> str:
    """A text for HTML, with no character that is not printed but spaces that break no line."""
    return "&nbsp;".join(escape(printable(part)) for part in str(value).split(SPACE))


def place(value: float) -> str:
    """A place in per cent or pixels, as short as a hundredth can be written."""
    return f"{value:.2f}".rstrip("0").rstrip(".") or "0"


# --- Candidates by mean.


def means_table(found: Candidates, words: Words = PLAIN, *, bounds: bool = False) -> str:
    """The candidates by mean, best first: a table with marks; the others in a fold, with ticks of their own.

    Args:
        bounds: with a last column: by how much each can be better at most.
    """
    if not found.trace.rounds:
        return f'<p class="quiet">{sentences.NOTHING_YET}</p>'
    shown, others = found.shown()
    ends = [end for row in shown for end in _ends(row)]
    table = _Table(found, words, bounds, Scale.over([*ends, *_band(found)] or [0.0], mirrored=found.minimize))
    return table.whole(shown) + _fold(found, words, others, bounds=bounds)


def key(found: Candidates) -> str:
    """What the signs and marks mean."""
    kinds: list[State] = ["recommended", "possible", "ruled out"]
    spans = []
    for state in kinds:
        kind = CLASSES.get(state, "out")
        marks = '<line class="g-bar" x1="2" x2="32" y1="6" y2="6"/>'
        marks += f'<circle class="g-mark" cx="17" cy="6" r="{RADIUS[kind]}"/>'
        svg = f'<svg width="34" height="12" class="{kind}" aria-hidden="true">{marks}</svg>'
        spans.append(f"<span>{svg}{SIGNS[state]} {text(found.called[state])}</span>")
    return f'<div class="key">{"".join(spans)}</div>'


def means_note(found: Candidates, words: Words = PLAIN) -> str:
    """That the picture describes and does not promise, and why another one with a better mean is not recommended."""
    question, answer = sentences.why_not(found, unit=words.unit)
    why = f" <strong>{text(question)}</strong> {text(answer)}" if question else ""
    return f"<strong>{sentences.NOT_THE_PROMISE}</strong> {sentences.means_said(found)}{why}"


def _ends(row: Candidate) -> list[float]:
    return [end for end in (row.low, row.mean, row.high) if end is not None]


def _band(found: Candidates) -> tuple[float, ...]:
    """The tolerance around the mean of the recommended one; what others are compared with, where that is asked."""
    best = found.recommended
    if found.lines or found.listed:
        return tuple(line for line, _ in found.lines)
    if best is None or best.mean is None or not found.tolerance:
        return ()
    return best.mean - found.tolerance, best.mean + found.tolerance


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows of candidates on one scale."""

    found: Candidates
    words: Words
    bounds: bool
    scale: Scale

    def whole(self, rows: Sequence[Candidate], *, folded: bool = False) -> str:
        """The table of these rows."""
        own, longest = self.words.described, max((len(row.id) for row in rows), default=0)
        kinds = ["c-id" if own or longest <= SHORT_ID else "c-name", *(["c-made"] if own else []), "", "c-mean", "c-n"]
        kinds += ["c-most"] if self.bounds else []
        columns = "".join(f'<col class="{kind}">' if kind else "<col>" for kind in kinds)
        body = "".join(self.row(row) for row in rows)
        caption = f"{len(rows):,} more" if folded else sentences.means_heading(self.found)
        return (
            f'<table class="rows two-line">{_caption(caption)}<colgroup>{columns}</colgroup>\n'
            f"<thead>{self.head(folded=folded)}</thead>\n<tbody>{body}</tbody></table>"
        )

    def head(self, *, folded: bool) -> str:
        unit = f", {text(self.words.unit)}" if self.words.unit else ""
        names = [("", "Candidate")]
        if self.words.described:
            names.append(("desk", " · ".join(map(text, self.words.columns[:MOST_OWN])) or "Made of"))
        after = [("right", f"{'Estimate' if self.found.estimated else 'Mean'}{unit}"), ("right", "Times")]
        after += [("right", "Better, at most")] if self.bounds else []

        def cell(kind: str, name: str) -> str:
            side = ' class="right"' if kind == "right" else ""
            hidden = "unseen" if folded else "desk" if kind == "desk" else ""
            inside = f'<span class="{hidden}">{name}</span>' if hidden else name
            return f'<th scope="col"{side}>{inside}</th>'

        drawn = f'<th scope="col" class="draw">{self.axis(folded=folded)}{_unseen("Drawn")}</th>'
        return f"<tr>{''.join(cell(*one) for one in names)}{drawn}{''.join(cell(*one) for one in after)}</tr>"

    def axis(self, *, folded: bool) -> str:
        """The labels above the rows."""
        band = _band(self.found)
        said = ""
        if not folded and self.found.lines:
            said = "".join(_label(self.scale.at(line), 12, text(name), "said") for line, name in self.found.lines)
        elif not folded and band:
            near = with_unit(asked(self.found.tolerance), in_points(self.words.unit))
            said = _label((self.scale.at(band[0]) + self.scale.at(band[1])) / 2, 12, f"within {text(near)}", "said")
        height = 18 if folded else TOP
        ticks = "".join(
            f'<text class="mid" x="{place(self.scale.at(tick))}%" y="{height - 6}">{tick_label(tick)}</text>'
            for tick in self.scale.ticks()
        )
        return f'<svg class="plot" height="{height}" aria-hidden="true">{said}{ticks}</svg>'

    def row(self, row: Candidate) -> str:
        kind, found = CLASSES.get(row.state, "out"), self.found
        name = text(row.id)
        if self.words.link is not None:
            name = f'<a href="{text(self.words.link(row.id))}">{name}</a>'
        sign = f'<span class="sign" aria-hidden="true">{SIGNS.get(row.state, "–")}</span>'
        cells = [f'<th scope="row">{sign}{name}<span class="unseen">, {text(found.called[row.state])}</span></th>']
        if self.words.described:
            own = [str(one) for one in self.words.described.get(row.id, ())][:MOST_OWN]
            cells.append(f'<td class="made">{text(" · ".join(own))}</td>')
        cells.append(f'<td class="draw">{self.marks(row, kind)}</td>')
        if row.mean is None:
            cells.append('<td class="right quiet" colspan="2">never measured</td>')
        else:
            cells.append(f'<td class="right">{self.mean(row)}</td><td class="right">{row.times:,}</td>')
        if self.bounds:
            known = row.better_at_most is not None and row.state in ("possible", "ruled out")
            bound = signed(row.better_at_most or 0.0, found.decimals) if known else ""
            cells.append(f'<td class="right">{bound}</td>')
        return f'<tr class="{kind}">{"".join(cells)}</tr>\n'

    def mean(self, row: Candidate) -> str:
        """A candidate's mean, and for those who hear it the length of its line."""
        decimals = self.found.decimals
        said = number(row.mean or 0.0, decimals)
        if row.mean is None or row.low is None or row.high is None or row.error is None:
            return said
        to = f", from {number(row.low, decimals)} to {number(row.high, decimals)}"
        if abs((row.high - row.mean) - (row.mean - row.low)) <= 1e-9 * max(abs(row.high), abs(row.low)):
            to = f" plus or minus {number(row.high - row.mean, decimals)}"
        return f'{said}<span class="unseen">{to}</span>'

    def marks(self, row: Candidate, kind: str) -> str:
        """Band, grid, line and dot of one row."""
        band, drawn = _band(self.found), []
        if len(band) == 2 and not self.found.lines:
            left, right = sorted(map(self.scale.at, band))
            drawn.append(
                f'<rect class="g-band" x="{place(left)}%" width="{place(right - left)}%" y="0" height="{ROW}"/>'
            )
        drawn += [_upright(self.scale.at(tick), "g-grid", 0, ROW) for tick in self.scale.ticks()]
        drawn += [_upright(self.scale.at(line), "g-limit", 0, ROW) for line, _ in self.found.lines]
        if row.mean is not None:
            at = self.scale.at(row.mean)
            if row.low is not None and row.high is not None:
                left, right = sorted((self.scale.at(row.low), self.scale.at(row.high)))
                drawn.append(_across(left, right, "g-bar", ROW / 2))
            drawn.append(f'<circle class="g-mark" cx="{place(at)}%" cy="{ROW // 2}" r="{RADIUS[kind]}"/>')
        return f'<svg class="plot" height="{ROW}" aria-hidden="true">{"".join(drawn)}</svg>'


def _fold(found: Candidates, words: Words, others: Sequence[Candidate], *, bounds: bool) -> str:
    """The candidates without a row in the picture, closed."""
    if not others:
        return ""
    states = [state for state in found.called if any(row.state == state for row in others)]
    left = [(found.called[state], sum(row.state == state for row in others)) for state in states]
    best = next((row.mean for row in others if row.mean is not None), None)
    mean = "" if best is None else with_unit(number(best, found.decimals), words.unit)
    total, kinds = sentences.others_said(left, mean)
    summary = f"{total} <span>{text(kinds)}</span>"
    ends = [end for row in others for end in _ends(row)]
    if len(others) > MOST_FOLDED or not ends:
        more = f'<a href="{text(words.results)}">{total}</a>' if words.results else total
        return f'<p class="quiet small others">{more}, {text(kinds)}.</p>'
    table = _Table(found, words, bounds, Scale.over(ends, mirrored=found.minimize))
    return f'<details class="fold"><summary>{summary}</summary>{table.whole(others, folded=True)}</details>'


# --- Who may still be the best.


def who_table(found: Candidates, words: Words = PLAIN) -> str:
    """By how much each candidate can be better than the recommended one at most; "" where the policy has no bounds."""
    best = found.recommended
    if best is None or best.mean is None:
        return ""
    known = [row for row in found.rows if row.better_at_most is not None and row.mean is not None]
    possible = sorted((row for row in known if row.state == "possible"), key=_bound, reverse=True)
    out = sorted((row for row in known if row.state == "ruled out"), key=_bound, reverse=True)[:CLOSEST_OUT]
    rows = [*possible[:30], *out]
    if not rows:
        return ""
    sign = -1.0 if found.minimize else 1.0
    leads = {row.id: sign * ((row.mean or 0.0) - best.mean) for row in rows}
    right = max([0.0, 1.4 * found.tolerance, *(1.05 * _bound(row) for row in rows)])
    sizes = sorted(leads[row.id] for row in rows)
    low = min(0.0, *(_bound(row) for row in rows), sizes[len(sizes) // 4])
    scale = Scale.over([max(low, -6.0 * right) if right else low, right])
    columns = "".join(f'<col class="{kind}">' if kind else "<col>" for kind in _who_kinds(words))
    head = ['<th scope="col">Candidate</th>']
    if words.described:
        head.append(f'<th scope="col"><span class="desk">{" · ".join(map(text, words.columns[:MOST_OWN]))}</span></th>')
    said = ""
    if found.tolerance:
        said = f'<text class="said end" x="{place(scale.at(found.tolerance))}%" y="12">tolerance</text>'
    ticks = "".join(
        f'<text class="mid" x="{place(scale.at(tick))}%" y="32">{"+" if tick > 0 else ""}{tick_label(tick)}</text>'
        for tick in scale.ticks()
    )
    drawn = f'<svg class="plot" height="{TOP}" aria-hidden="true">{said}{ticks}</svg>'
    head.append(f'<th scope="col" class="draw">{drawn}{_unseen("Drawn")}</th>')
    head.append('<th scope="col" class="right">Better, at most</th>')
    body = "".join(_who_row(found, words, scale, row, leads[row.id]) for row in rows)
    more = len(possible) - 30
    after = ""
    if more > 0:
        bound = signed(_bound(possible[30]), found.decimals)
        after = f'<p class="quiet small others">and {more:,} more, none above {bound}</p>'
    return (
        f'<table class="rows two-line">{_caption("Who may still be the best")}<colgroup>{columns}</colgroup>\n'
        f"<thead><tr>{''.join(head)}</tr></thead>\n<tbody>{body}</tbody></table>{after}"
    )


def _bound(row: Candidate) -> float:
    return 0.0 if row.better_at_most is None else row.better_at_most


def _who_kinds(words: Words) -> list[str]:
    return ["c-id", *(["c-made"] if words.described else []), "", "c-most"]


def _who_row(found: Candidates, words: Words, scale: Scale, row: Candidate, lead: float) -> str:
    kind, bound, middle = CLASSES.get(row.state, "out"), _bound(row), ROW / 2
    drawn = [_upright(scale.at(tick), "g-grid", 0, ROW) for tick in scale.ticks()]
    drawn.append(_upright(scale.at(0.0), "g-axis", 0, ROW))
    if found.tolerance:
        drawn.append(_upright(scale.at(found.tolerance), "g-limit", 0, ROW))
    start, end = scale.at(lead), scale.at(bound)
    drawn.append(_across(min(start, end), end, "g-bar", middle))
    drawn.append(_upright(end, "g-bar", middle - 5, middle + 5))
    if lead < scale.low:
        drawn.append(f'<text class="end" x="{place(start)}%" dx="-3" y="{place(middle + 4)}">‹</text>')
    else:
        drawn.append(f'<circle class="g-mark" cx="{place(start)}%" cy="{place(middle)}" r="{RADIUS[kind]}"/>')
    sign = f'<span class="sign" aria-hidden="true">{SIGNS.get(row.state, "–")}</span>'
    cells = [f'<th scope="row">{sign}{text(row.id)}<span class="unseen">, {text(found.called[row.state])}</span></th>']
    if words.described:
        own = [str(one) for one in words.described.get(row.id, ())][:MOST_OWN]
        cells.append(f'<td class="made">{text(" · ".join(own))}</td>')
    svg = f'<svg class="plot" height="{ROW}" aria-hidden="true">{"".join(drawn)}</svg>'
    cells.append(f'<td class="draw">{svg}</td><td class="right">{signed(bound, found.decimals)}</td>')
    return f'<tr class="{kind}">{"".join(cells)}</tr>\n'


# --- The gap over time, and how the field narrowed.

MOST_TIMES = 6.0  # the tolerance, beyond which the gap is cut at first
LEFT, RIGHT = 5.0, 84.0  # per cent of the width between which the plot lies
PLOT_TOP, BELOW = 10, 28  # pixels above the plot, and below it for its numbers
NARROW = 14.0  # per cent, in which words do not fit
APART = 16.0  # pixels between two labels at the right
MOST_COLUMNS = 24  # rounds with a column each


def gap_chart(
    trace: Trace, decimals: int, *, named: str = "gap", height: int = 210, most_ticks: int = 5, start: float = LEFT
) -> str:
    """The gap after each closed round, as a step line; "" where fewer than two rounds prove something.

    Args:
        trace: the closed rounds.
        decimals: in which the gap is written.
        named: its heading has the id "<named>-title", and the sentence about it "<named>-says".
        height: of the drawing, in pixels.
        most_ticks: on an axis.
        start: per cent of the width at which the plot begins: more where numbers are long or the drawing is narrow.
    """
    known = [(one.measurements, one.gap) for one in trace.rounds if one.gap is not None]
    if len(known) < 2:
        return ""
    asked_for, bottom = trace.tolerance, float(height - BELOW)
    largest = max(gap for _, gap in known)
    cut = MOST_TIMES * asked_for if asked_for and largest > MOST_TIMES * asked_for and known[-1][1] < largest else None
    high = 1.18 * max(min(largest, cut or largest), asked_for) or 1.0
    total = trace.rounds[-1].measurements

    def across(spent: float) -> float:
        return start + (RIGHT - start) * spent / max(total, 1)

    def up(gap: float) -> float:
        return bottom - (bottom - PLOT_TOP) * min(gap, high / 1.18 if cut else high) / high

    drawn = []
    for tick in Scale(0.0, high).ticks(most_ticks - 1):
        y = place(up(tick))
        if tick <= high:
            drawn.append(_across(start, RIGHT, "g-axis" if tick == 0 else "g-grid", up(tick)))
            drawn.append(
                f'<text class="end" x="{place(start - 1)}%" y="{place(float(y) + 4)}">{tick_label(tick)}</text>'
            )
    if known[0][0] > 0:
        width, tall = across(known[0][0]) - start, place(bottom - PLOT_TOP)
        drawn.append(
            f'<rect class="g-none" x="{place(start)}%" width="{place(width)}%" y="{PLOT_TOP}" height="{tall}"/>'
        )
        if width >= NARROW:
            middle = place(start + width / 2)
            drawn.append(f'<text x="{middle}%" y="26" class="mid">nothing</text>')
            drawn.append(f'<text x="{middle}%" y="40" class="mid">proved yet</text>')
    step = max(nice_step(max(total, 1) / most_ticks), 1.0)
    marks = [count * step for count in range(int(total / step) + 1)]
    drawn += [
        f'<text class="mid" x="{place(across(mark))}%" y="{place(bottom + 18)}">{tick_label(mark)}</text>'
        for mark in marks
    ]
    if asked_for:
        drawn.append(_across(start, RIGHT, "g-limit dash", up(asked_for)))
    before = known[0]
    for spent, gap in [*known[1:], (total, known[-1][1])]:
        drawn.append(_across(across(before[0]), across(spent), "g-step", up(before[1])))
        if gap != before[1]:
            drawn.append(_upright(across(spent), "g-step", up(before[1]), up(gap)))
        before = (spent, gap)
    if cut is not None and known[0][1] > cut:
        first = upper(known[0][1], decimals)
        drawn.append(f'<text class="said" dx="4" x="{place(across(known[0][0]))}%" y="{PLOT_TOP + 6}">▲ {first}</text>')
    drawn.append(f'<circle class="g-dot" cx="{place(RIGHT)}%" cy="{place(up(known[-1][1]))}" r="4.5"/>')
    drawn += _labels_at_right(up(known[-1][1]), upper(known[-1][1], decimals), asked_for, up)
    labelled = f'role="img" aria-labelledby="{named}-title" aria-describedby="{named}-says"'
    return f'<svg class="plot" height="{height}" {labelled}>{"".join(drawn)}</svg>'


def _labels_at_right(value: float, said: str, asked_for: float, up: Callable[[float], float]) -> list[str]:
    """The last gap and what was asked, pushed apart if they are near."""
    wanted = up(asked_for) if asked_for else value
    if asked_for and abs(value - wanted) < APART:
        middle, side = (value + wanted) / 2, 1.0 if value >= wanted else -1.0
        value, wanted = middle + side * APART / 2, middle - side * APART / 2
    found = [f'<text class="said" dx="9" x="{place(RIGHT)}%" y="{place(value + 4)}">{said}</text>']
    if asked_for:
        found.append(f'<text dx="9" x="{place(RIGHT)}%" y="{place(wanted + 4)}">asked {asked(asked_for)}</text>')
    return found


def field_chart(trace: Trace, *, named: str = "left", height: int = 210) -> str:
    """How many candidates were still possible after each round, a column each; "" if none was ever ruled out."""
    counts = [one.possible for one in trace.rounds]
    if not counts or all(count >= trace.asked_about for count in counts):
        return ""
    most, bottom, drawn = max([*counts, trace.asked_about]), float(height - BELOW), list[str]()
    width = 90.0 / len(counts)
    few = len(counts) <= MOST_COLUMNS
    before: float | None = None
    for at, count in enumerate(counts):
        left, tall = 5.0 + at * width, (bottom - 20.0) * count / most
        top, last = bottom - tall, at == len(counts) - 1
        if few:
            kind = "g-fill" if last else "g-col"
            x, thick = place(left + 0.14 * width), place(0.72 * width)
            drawn.append(
                f'<rect class="{kind}" x="{x}%" width="{thick}%" y="{place(top)}" height="{place(tall)}" rx="2"/>'
            )
            middle = place(left + width / 2)
            bold = " said" if last else ""
            drawn.append(f'<text class="mid{bold}" x="{middle}%" y="{place(top - 5)}">{count:,}</text>')
            drawn.append(f'<text class="mid" x="{middle}%" y="{place(bottom + 18)}">{trace.rounds[at].round}</text>')
        else:
            drawn.append(_across(left, left + width, "g-step", top))
            if before is not None and before != top:
                drawn.append(_upright(left, "g-step", before, top))
            before = top
            if last:
                drawn.append(f'<text class="said" dx="6" x="95%" y="{place(top + 4)}">{count:,}</text>')
            if at == 0:
                drawn.append(f'<text x="5%" y="{place(top - 5)}">{count:,}</text>')
    drawn.append(_across(5.0, 95.0, "g-axis", bottom))
    labelled = f'role="img" aria-labelledby="{named}-title" aria-label="{sentences.field_said(trace)}"'
    return f'<svg class="plot" height="{height}" {labelled}>{"".join(drawn)}</svg>'


def round_meter(told: int, held: int, wanted: int, *, round_number: int, tall: bool = False) -> str:
    """How much of the open round is in, in hand, and free. Nothing about values."""
    free = max(wanted - told - held, 0)
    whole = max(wanted, 1)
    inside, with_held = 100.0 * min(told, whole) / whole, 100.0 * min(held, whole) / whole
    label = f"Round {round_number}: {told:,} of {wanted:,} results are in, {held:,} are in hand, {free:,} are free"
    return (
        f'<svg class="meter{" tall" if tall else ""}" role="img" aria-label="{label}">'
        '<rect class="g-track" width="100%" height="100%"/>'
        f'<rect class="g-fill" x="0%" width="{place(inside)}%" height="100%"/>'
        f'<rect class="g-held" x="{place(inside)}%" width="{place(with_held)}%" height="100%"/></svg>'
    )


# --- marks


def _unseen(said: str) -> str:
    """Words for those who hear the page."""
    return f'<span class="unseen">{said}</span>'


def _caption(said: str) -> str:
    return f'<caption class="unseen">{text(said)}</caption>'


def _across(left: float, right: float, kind: str, y: float) -> str:
    return f'<line class="{kind}" x1="{place(left)}%" x2="{place(right)}%" y1="{place(y)}" y2="{place(y)}"/>'


def _upright(x: float, kind: str, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{place(x)}%" x2="{place(x)}%" y1="{place(top)}" y2="{place(bottom)}"/>'


def _label(at: float, y: int, said: str, kind: str) -> str:
    """A label centred at a place, or aligned with the edge that it would cross."""
    side = " mid" if CLOSE <= at <= 100.0 - CLOSE else " end" if at > 50.0 else ""
    at = at if side == " mid" else 100.0 if side else 0.0
    return f'<text class="{kind}{side}" x="{place(at)}%" y="{y}">{said}</text>'
