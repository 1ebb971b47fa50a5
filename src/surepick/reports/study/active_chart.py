"""How the field narrowed: candidates that were still possible, over the measurements spent."""

from __future__ import annotations

from surepick.reports.study.format import shortened
from surepick.reports.study.sections import Figure, Part, absent, looks_of
from surepick.reports.study.svg import Drawing, Mark, Scale, across_axis, mark, staircase, upright_axis
from surepick.reports.study.tables import Table, row, table
from surepick.reports.study.verdict import Document, is_unproved, out_word, proved_gap, standing_of, step_word
from surepick.studies.progress import times

WIDE = 60  # candidates from which the axis counts factors
APART = 20.0  # least distance of two numbers beside an axis
TURNS = 3  # rises that are explained in the picture
LEFT, RIGHT, TOP, BOTTOM = 78.0, 620.0, 34.0, 290.0


def narrowing(document: Document) -> Part:
    """The part about candidates still possible."""
    heading = "How the field narrowed"
    number_of, looks = document["arms"]["number"], looks_of(document)
    if not looks:
        return absent()
    points = [(0, number_of)]
    for look in looks:
        points.append((points[-1][0] + sum(look["told"]["pulls"]), look["active"]))
    sentences = [
        f"All {times(number_of, 'candidate')} were possible at the start; after {times(points[-1][0], 'measurement')}, "
        f"{times(points[-1][1], 'candidate')} {'is' if points[-1][1] == 1 else 'are'} left. The measurements come in "
        "batches, and the line moves only where a batch was complete and judged."
    ]
    if any(look["joined"] for look in looks):
        sentences.append(
            "The line can rise: when another candidate becomes the one to be proved best, those that could be better "
            "than it come back into question."
        )
    return Part(
        "narrowing", heading, tuple(sentences), (Figure(_drawing(points, _turns(document, points)), _table(document)),)
    )


def _turns(document: Document, points: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """The largest rises that came with another candidate under test: (measurements, candidates, its name)."""
    found, before = [], None
    for (_, earlier), (spent, count), look in zip(points, points[1:], looks_of(document), strict=False):
        if count > earlier and look["candidate"] not in {None, before}:
            found.append((count - earlier, spent, count, look["candidate"]))
        before = look["candidate"]
    largest = sorted(found, key=lambda turn: -turn[0])[:TURNS]
    return [(spent, count, name) for _, spent, count, name in sorted(largest, key=lambda turn: turn[1])]


def _drawing(points: list[tuple[int, int]], turns: list[tuple[int, int, str]]) -> Drawing:
    total, largest = points[-1][0], max(count for _, count in points)
    factors = largest >= WIDE
    across = Scale(0.0, float(max(total, 1)), LEFT, RIGHT, whole=True)
    up = Scale(1.0 if factors else 0.0, float(largest), BOTTOM, TOP, logarithmic=factors, whole=True)
    name = "candidates still possible" + (" (each line: ten times as many)" if factors else "")
    path = staircase([(across.at(spent), up.at(max(count, 1))) for spent, count in points])
    end = points[-1]
    level = up.at(end[1])
    beside = level + 26.0 if level + 34.0 < BOTTOM else level - 14.0
    marks: list[Mark] = [
        *across_axis(across, top=TOP, bottom=BOTTOM, name="measurements spent", most=4),
        *upright_axis(up, left=LEFT, right=RIGHT, name=name),
        mark("path", "line main", d=path),
        mark("circle", "dot main", cx=across.at(end[0]), cy=level, r=5.0),
        mark("text", "label halo", f"{end[1]:,} left", x=RIGHT - 12.0, y=beside, text_anchor="end"),
    ]
    marks += _turn_marks(across, up, turns)
    start = up.at(points[0][1])
    if all(abs(up.at(tick) - start) > APART for tick in up.ticks()):
        marks.append(mark("text", "tick", f"{points[0][1]:,}", x=LEFT - 8.0, y=start + 5.0, text_anchor="end"))
    half = next((spent for spent, count in points if 2 * count <= points[0][1]), None)
    finding = f"From {points[0][1]:,} candidates to {end[1]:,} in {total:,} measurements."
    if half is not None and points[0][1] > 2 and half < total:
        finding += f" Half of them were out after {half:,}."
    return Drawing("chart-narrowing", "Candidates still possible", finding, BOTTOM + 56.0, tuple(marks))


def _turn_marks(across: Scale, up: Scale, turns: list[tuple[int, int, str]]) -> list[Mark]:
    """What made the line rise, where there is room for it."""
    marks: list[Mark] = []
    taken: list[tuple[float, float]] = []
    for spent, count, name in turns:
        x, y = across.at(spent), max(up.at(count) - 9.0, TOP + 14.0)
        if any(abs(x - one) < 250.0 and abs(y - other) < 24.0 for one, other in taken):
            continue
        taken.append((x, y))
        side = ("end", -4.0) if x > 0.5 * (LEFT + RIGHT) else ("start", 4.0)
        words = f"now testing {shortened(name, 16)}"
        marks.append(mark("text", "label halo", words, x=x + side[1], y=y, text_anchor=side[0]))
    return marks


def _table(document: Document) -> Table:
    rows, spent, word = [], 0, step_word(document)
    for entry in document["rounds"]:
        for look in entry["looks"]:
            pulls = sum(look["told"]["pulls"])
            spent += pulls
            part = f", part {look['look']} of {look['looks']}" if look["looks"] > 1 else ""
            rows.append(
                row(
                    f"{entry['round']}{part}",
                    f"{pulls:,}",
                    f"{spent:,}",
                    f"{look['active']:,}",
                    f"{look['left']['number']:,}",
                    look["leader"],
                    proved_gap(document, look["certified_gap"]),
                    plan=look["plan"],
                    spent=spent,
                    active=look["active"],
                )
            )
    headers = (
        word,
        "measured",
        "in all",
        "still possible",
        f"{out_word(document)} here",
        "best so far",
        f"it is worse than the best by at most{_doubt(document)}",
    )
    return table("Candidates still possible after each batch", headers, rows, words=(0, 5))


def _doubt(document: Document) -> str:
    if not is_unproved(document):
        return ""
    why = "the results contradict it" if standing_of(document) == "contradicted" else "not proved"
    return f" (by the rule; {why})"
