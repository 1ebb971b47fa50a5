"""The intervals that decide: by how much each candidate could still be better, against the limit."""

from __future__ import annotations

import math
from typing import Any

from surepick.records import record
from surepick.reports.study_drawing import (
    LETTERS,
    WIDTH,
    Drawing,
    Mark,
    Scale,
    across_axis,
    bins,
    mark,
    spread,
    upright_axis,
)
from surepick.reports.study_sections import (
    PROVED,
    SYMBOLS,
    Document,
    Figure,
    Part,
    beside_names,
    fate_words,
    names_of,
)
from surepick.reports.study_tables import MOST_ROWS, Table, row, table
from surepick.reports.study_words import labels, listed, number, shortened, signed
from surepick.studies.certificate import INLINE
from surepick.studies.progress import times

SHOWN = 30
LEFT, RIGHT, TOP, STEP = 214.0, 540.0, 62.0, 26.0
COLUMNS = {  # of the certificate, and what one entry is called here
    "plans": "plan",
    "witnesses": "witness",
    "leads": "lead",
    "widths": "width",
    "margins": "margin",
    "allowed": "allowed",
}
FARTHEST = 5.0  # times the upper quartile: bars that end beyond are cut, so that the others can be read
WITHOUT = {  # how algorithms decide that compare no interval of each candidate with a limit
    "successive-halving": "It spends a budget that was fixed beforehand, in a few rounds of equal cost; each round "
    "measures all candidates that are left equally often and keeps the better half.",
    "neural-embedding": "After each round it trains a neural network on the results, gives each candidate a score, and "
    "drops those whose score is lower than the best one by more than the threshold of that round.",
    "means-neural-rule": "After each round it drops the candidates whose mean is lower than the best mean by more than "
    "the threshold of that round.",
    "unknown-misspecification": "After each round it drops the candidates whose estimate is lower than the best one by "
    "more than the threshold of that round.",
    "lingame": "It stops when no explanation of the results under which another candidate is clearly better fits them "
    "well enough; that is one question for all candidates together.",
}


@record
class Bound:
    """What decides about one candidate.

    Args:
        candidate: its index.
        entry: plan, witness, lead, width, margin and allowed (its limit), exactly as in the certificate.
        upper: it is at most this much better than its witness: width - lead; infinite where nothing is known.
    """

    candidate: int
    entry: dict[str, Any]
    upper: float


def intervals(document: Document) -> Part:
    """The part about the intervals that decide."""
    heading = "What decided about each candidate"
    if not document["rounds"]:
        return Part("intervals", heading, ("Nothing yet: no batch has been judged.",))
    if document["arms"]["number"] > INLINE:
        text = f"With more than {INLINE:,} candidates the certificate holds no interval for each of them."
        return Part("intervals", heading, (text,))
    if document["intervals"] is None:
        how = WITHOUT.get(
            document["algorithm"], "It follows a rule of its own, which the list of rounds shows at work."
        )
        return Part("intervals", heading, (f"This algorithm decides without an interval for each candidate. {how}",))
    known, unknown = bounds_of(document)
    if not known:
        text = "Nothing is known yet of how the candidates compare: no batch has been judged that could tell."
        return Part("intervals", heading, (text,))
    shown = known[:SHOWN]
    sentences = [*_reading(document, shown), _counted(known, unknown)]
    figures = [Figure(_bars(document, shown), _table(document, known))]
    if len(known) > len(shown):
        figures.append(Figure(_strip(known)))
    return Part("intervals", heading, tuple(sentences), tuple(figures))


def bounds_of(document: Document) -> tuple[list[Bound], int]:
    """(what is known of each candidate but the recommended one, the hardest to rule out first; of how many nothing is).

    What is known last: closed batches only.
    """
    found, fates = document["intervals"], document["candidates"]["fates"]
    known, unknown = [], 0
    for candidate, numbers in enumerate(zip(*(found[column] for column in COLUMNS), strict=True)):
        if fates[candidate] == "recommended":
            continue
        if None in numbers:
            unknown += 1
            continue
        entry = dict(zip(COLUMNS.values(), numbers, strict=True))
        known.append(Bound(candidate, entry, entry["width"] - entry["lead"]))
    return sorted(known, key=lambda bound: (bound.entry["margin"], bound.candidate)), unknown


def _reading(document: Document, shown: list[Bound]) -> list[str]:
    """How to read the bars."""
    epsilon = number(document["epsilon"])
    unproved = document["verdict"] == "heuristic" or document["algorithm"] in WITHOUT
    rule = "if its rule can be believed" if unproved else "with the confidence stated above"
    sentences = [
        "Each row is a candidate. The dot says by how much it seemed better (to the right) or worse (to the left) than "
        f"{_other(document, shown)}. Nobody knows the true difference. The end of the bar says how much better it can "
        f"be at most if it is the best of all, {rule}. A bar that ends left of 0 belongs to a candidate that is not "
        "the best. (Each bar speaks of its own candidate; do not read it as a ranking.)"
    ]
    limits = limits_of(shown)
    if limits == [0.0]:
        sentences.append(
            "The limit is the line at 0: a candidate is ruled out once its bar ends before the line, for then it "
            "cannot be the best."
        )
    elif len(limits) == 1:
        sentences.append(
            f"The limit is the line at {number(limits[0])}, the difference that is tolerated: a candidate is ruled out "
            "once its bar ends before the line, for then it cannot be better by more than that."
        )
    else:
        sentences.append(
            f"There are two lines. Candidates whose bar ended before 0 are ruled out: they cannot be the best. For the "
            f"others it is enough that their bar ends before {epsilon}, the difference that is tolerated."
        )
    return sentences


def limits_of(shown: list[Bound]) -> list[float]:
    """The limits of these candidates, each once, ascending."""
    return sorted({bound.entry["allowed"] for bound in shown})


def _other(document: Document, shown: list[Bound]) -> str:
    names = names_of(document)
    witnesses = {bound.entry["witness"] for bound in shown}
    if len(witnesses) == 1 and (only := witnesses.pop()) >= 0 and names[only] == document["best_arm"]:
        called = "recommended candidate" if document["verdict"] in PROVED else "best candidate so far"
        return f"the {called}, {shortened(names[only], 60)}"
    return "the candidate that it was compared with (the table below names it)"


def _counted(known: list[Bound], unknown: int) -> str:
    open_ones = sum(bound.entry["margin"] < 0 for bound in known)
    parts = []
    if len(known) > SHOWN:
        parts.append(
            f"The {SHOWN} of {times(len(known), 'candidate')} that are hardest to rule out are drawn; the "
            f"{len(known) - SHOWN:,} others have more room, and the second picture shows where all of them lie."
        )
    elif len(known) > 1:
        parts.append(f"All {len(known):,} are drawn, those that are hardest to rule out first.")
    if open_ones:
        parts.append(f"{times(open_ones, 'bar')} cross{'es' if open_ones == 1 else ''} the limit.")
    else:
        parts.append("No bar crosses its limit.")
    if unknown:
        parts.append(f"Of {times(unknown, 'candidate')} nothing is known yet that could be drawn.")
    parts.append("A candidate that was ruled out keeps the bar that it had then; only complete batches count.")
    return " ".join(parts)


def _range(document: Document, shown: list[Bound]) -> tuple[float, float]:
    limits = [*limits_of(shown), document["epsilon"]]
    ends = [bound.upper for bound in shown]
    starts = [-bound.entry["lead"] for bound in shown]
    sizes = sorted(abs(place) for place in (*ends, *starts))
    reach = sizes[(3 * len(sizes)) // 4]
    most = FARTHEST * max(reach, *limits)
    low, high = spread([*(end for end in (*ends, *starts) if abs(end) <= most), *limits, 0.0])
    room = 0.04 * (high - low)
    return low - room, high + room


def _bars(document: Document, shown: list[Bound]) -> Drawing:
    low, high = _range(document, shown)
    across = Scale(low, high, LEFT, RIGHT)
    bottom = TOP + STEP * len(shown)
    names, fates = names_of(document), document["candidates"]["fates"]
    marks = across_axis(across, top=TOP, bottom=bottom, name="better than the other by (unit of the rewards)", most=4)
    marks.append(mark("text", "axis", "candidate", x=0.0, y=TOP - 10.0))
    marks.append(mark("text", "axis", "at most", x=float(WIDTH), y=TOP - 10.0, text_anchor="end"))
    limits = limits_of(shown)
    for limit in limits:
        marks.append(mark("line", "limit", x1=across.at(limit), x2=across.at(limit), y1=TOP - 6.0, y2=bottom))
    words = f"limit{'s' * (len(limits) > 1)}: {listed(number(limit) for limit in limits)}"
    middle = min(max(across.at(limits[-1]), LEFT), RIGHT)
    marks.append(mark("text", "label", words, x=middle, y=TOP - 34.0, text_anchor="middle"))
    called = labels([names[bound.candidate] for bound in shown], LETTERS)
    for place, bound in enumerate(shown):
        y = TOP + STEP * (place + 0.5)
        fate = fates[bound.candidate]
        marks.append(mark("text", "tick", f"{SYMBOLS[fate]} {called[place]}", x=0.0, y=y + 5.0))
        marks += _bar(across, bound, fate, y)
        marks.append(mark("text", "tick", signed(bound.upper), x=float(WIDTH), y=y + 5.0, text_anchor="end"))
    crossing = sum(bound.entry["margin"] < 0 for bound in shown)
    finding = f"{times(len(shown), 'bar')}, hardest first; {words}. "
    finding += f"{crossing:,} of them cross their limit." if crossing else "None crosses its limit."
    title = "By how much each candidate could still be better"
    return Drawing("chart-intervals", title, finding, bottom + 58.0, tuple(marks), beside_names(document))


def _bar(across: Scale, bound: Bound, fate: str, y: float) -> list[Mark]:
    """One bar with its exact numbers; an arrow where it goes on beyond the picture."""
    middle, end = across.at(-bound.entry["lead"]), across.at(bound.upper)
    exact = {"candidate": bound.candidate, **bound.entry}
    data = {f"data-{name}": repr(value) for name, value in exact.items()}
    marks = [Mark("line", {**mark("line", f"bar {fate}", x1=middle, x2=end, y1=y, y2=y).attributes, **data})]
    if bound.upper > across.high:
        marks.append(mark("path", f"dot {fate}", d=_arrow(across.end, -8.0, y)))
    elif bound.upper >= across.low:
        marks.append(mark("line", f"bar {fate}", x1=end, x2=end, y1=y - 6.0, y2=y + 6.0))
    if -bound.entry["lead"] < across.low:
        marks.append(mark("path", f"dot {fate}", d=_arrow(across.start, 8.0, y)))
    elif -bound.entry["lead"] <= across.high:
        marks.append(mark("circle", f"dot {fate}", cx=middle, cy=y, r=4.0))
    return marks


def _arrow(x: float, back: float, y: float) -> str:
    return f"M{x + back:.2f} {y - 5:.2f}L{x:.2f} {y:.2f}L{x + back:.2f} {y + 5:.2f}Z"


def _strip(known: list[Bound]) -> Drawing:
    """Where the margins of all candidates lie."""
    margins = [bound.entry["margin"] for bound in known]
    last = margins[math.ceil(0.98 * len(margins)) - 1]
    low, high = spread([margins[0], last, 0.0])
    width = (high - low) / 38
    across = Scale(-math.ceil(-low / width) * width, math.ceil(high / width) * width, 78.0, 620.0)
    parts = bins(margins, across, round((across.high - across.low) / width))
    top, bottom = 34.0, 170.0
    up = Scale(0.0, float(max(part.count for part in parts)), bottom, top, whole=True)
    marks = [
        *across_axis(across, top=top, bottom=bottom, name="room between the end of the bar and the limit", most=4),
        *upright_axis(up, left=78.0, right=620.0, name="candidates", most=3),
    ]
    width = (across.end - across.start) / len(parts)
    for place, part in enumerate(parts):
        if part.count == 0:
            continue
        y = min(up.at(part.count), bottom - 1.5)
        fate = "possible" if part.low + part.high < 0 else "left"
        x = across.start + width * place
        marks.append(mark("rect", f"fill {fate}", x=x + 0.5, y=y, width=width - 1.0, height=bottom - y))
    marks.append(mark("line", "limit", x1=across.at(0.0), x2=across.at(0.0), y1=top, y2=bottom))
    out = sum(margin >= 0 for margin in margins)
    finding = f"{out:,} of {len(margins):,} bars end before the limit, {len(margins) - out:,} beyond it."
    beyond = sum(margin > last for margin in margins)
    if beyond:
        finding += f" The last column holds {times(beyond, 'candidate')} with more room still."
    title = "Room between bar and limit, all candidates (left of the line: not settled)"
    return Drawing("chart-margins", title, finding, bottom + 56.0, tuple(marks))


def _table(document: Document, known: list[Bound]) -> Table:
    names, words = names_of(document), fate_words(document)
    rows = [
        row(
            names[bound.candidate],
            words[bound.candidate],
            names[bound.entry["witness"]] if bound.entry["witness"] >= 0 else "none",
            signed(-bound.entry["lead"], 6),
            signed(bound.upper, 6),
            signed(bound.entry["margin"], 6),
            str(bound.entry["plan"]),
            candidate=bound.candidate,
            **bound.entry,
        )
        for bound in known[:MOST_ROWS]
    ]
    headers = (
        "candidate",
        "fate",
        "compared with",
        "seemed better by",
        "is better by at most",
        "room to the limit",
        "decided by batch",
    )
    caption = "The intervals that decide, the hardest first (a minus sign in the fourth column: it seemed worse)"
    return table(caption, headers, rows, total=len(known), words=(0, 1, 2))
