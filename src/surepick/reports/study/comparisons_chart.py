"""The intervals that decide: by how much each candidate could still be better, against the limit."""

from __future__ import annotations

import math
from typing import Any

from surepick.certificates.document import INLINE
from surepick.core.arrays import record
from surepick.policies.base import current_name
from surepick.reports.study.format import listed, number, shortened, signed_column
from surepick.reports.study.sections import (
    SYMBOLS,
    Figure,
    Part,
    absent,
    beside_names,
    fate_words,
    fates_of,
    looks_of,
    names_of,
)
from surepick.reports.study.svg import (
    WIDTH,
    Drawing,
    Mark,
    Scale,
    across_axis,
    beside,
    bins,
    mark,
    name_mark,
    row_names,
    spread,
    upright_axis,
)
from surepick.reports.study.tables import MOST_ROWS, Table, row, table
from surepick.reports.study.verdict import (
    PROVED,
    Document,
    by_the_rule,
    is_unproved,
    out_word,
    says_something,
    tries_a_candidate,
    uses_features,
)
from surepick.studies.progress import times

SHOWN = 30
RIGHT, TOP, STEP = 540.0, 62.0, 26.0
NAMED = 16  # letters of a name in an axis
FEW = 3  # candidates that a sentence names
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
    "sequential-halving": "It spends a budget that was fixed beforehand, in a few rounds of equal cost; each round "
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
        return absent()
    if document["arms"]["number"] > INLINE:
        text = (
            f"There are no intervals: with more than {INLINE:,} candidates the certificate does not hold one for each."
        )
        return absent(text)
    if document["intervals"] is None:
        how = WITHOUT.get(
            current_name(document["algorithm"]), "It follows a rule of its own, which the list of rounds shows at work."
        )
        return Part("intervals", heading, (f"This algorithm decides without an interval for each candidate. {how}",))
    known, unknown = bounds_of(document)
    if not known:
        text = "Nothing is known yet of how the candidates compare: no batch has been judged that could tell."
        return Part("intervals", heading, (text,))
    shown = known[:SHOWN]
    sentences = [*_reading(document, known, shown), _counted(document, known, unknown)]
    figures = [Figure(_bars(document, shown), _table(document, known))]
    if len(known) > len(shown):
        figures.append(Figure(_strip(known)))
    return Part("intervals", heading, tuple(sentences), tuple(figures))


def bounds_of(document: Document) -> tuple[list[Bound], list[int]]:
    """(what is known of each candidate but the recommended one, the hardest to rule out first; those without a bound).

    What is known last: closed batches only.
    """
    found, fates = document["intervals"], document["candidates"]["fates"]
    known, unknown = [], []
    for candidate, numbers in enumerate(zip(*(found[column] for column in COLUMNS), strict=True)):
        if fates[candidate] == "recommended":
            continue
        if None in numbers:
            unknown.append(candidate)
            continue
        entry = dict(zip(COLUMNS.values(), numbers, strict=True))
        known.append(Bound(candidate, entry, entry["width"] - entry["lead"]))
    return sorted(known, key=lambda bound: (bound.entry["margin"], bound.candidate)), unknown


def _reading(document: Document, known: list[Bound], shown: list[Bound]) -> list[str]:
    """How to read the bars."""
    unproved = is_unproved(document)
    rule = by_the_rule(document) if unproved else "with the confidence stated above"
    so = "By that rule a" if unproved else "A"
    sentences = [
        f"Each row is a candidate. The dot is {_dot(document)}: by how much it seemed better (to the right) or worse "
        f"(to the left) than {_other(document, shown)}. Nobody knows the true difference. The end of the bar says how "
        f"much better it can be at most if it is the best of all, {rule}. {so} bar that ends left of 0 belongs to a "
        "candidate that is not the best. (Each bar speaks of its own candidate; do not read it as a ranking.)",
        *_star(document, known),
        _limits(document, shown),
    ]
    if document["verdict"] == "certified" and any(b.entry["lead"] < 0 <= b.entry["margin"] for b in shown):
        sentences.append(
            "A candidate whose dot is right of 0 seemed a little better; it is proved to be better by at most the "
            "tolerance, and the study stops as soon as one candidate is proved good enough."
        )
    return sentences


def _dot(document: Document) -> str:
    """What the estimates are: hardly ever the difference of the averages that the page shows."""
    if tries_a_candidate(document):
        return (
            "the estimate that the test used (measurements count with different weights, so it is not the difference "
            "of the averages below)"
        )
    if uses_features(document):
        return "an estimate from all results and the features (so it is not the difference of the averages below)"
    return "the difference of the averages when the bar was last drawn"


def _star(document: Document, known: list[Bound]) -> list[str]:
    """Why the bars do not compare with the best so far, if they do not, and who has no bar."""
    names = names_of(document)
    under_test = [look["candidate"] for look in looks_of(document) if look["candidate"] is not None]
    if not tries_a_candidate(document) or document["verdict"] in PROVED or not under_test:
        return []
    tested = under_test[-1]
    if tested == document["best_arm"]:
        return []
    best, other = shortened(document["best_arm"], 60), shortened(tested, 60)
    earlier = {names[bound.candidate]: bound.entry["witness"] for bound in known}.get(tested)
    neither = f"; nor has {other}, with which the others are compared."
    if earlier is not None:
        neither = f"; that of {other} compares it with {shortened(names[earlier], 60)}, which was under test before."
    return [
        f"The star, {best}, has the best estimate by now, but {other} was the one under test in the last batch that "
        f"was judged, and a test is not given up for a small lead. The star has no bar of its own{neither}"
    ]


def _limits(document: Document, shown: list[Bound]) -> str:
    out = out_word(document)
    then = "by that rule" if is_unproved(document) else "then"
    limits = limits_of(shown)
    if limits == [0.0]:
        return (
            f"The limit is the line at 0: a candidate is {out} once its bar ends before the line, for {then} it cannot "
            "be the best."
        )
    if len(limits) == 1:
        return (
            f"The limit is the line at {number(limits[0])}, the difference that is tolerated: a candidate is {out} "
            f"once its bar ends before the line, for {then} it cannot be better by more than that."
        )
    return (
        f"There are two lines. Candidates whose bar ended before 0 are {out}: {then} they cannot be the best. For the "
        f"others it is enough that their bar ends before {number(document['epsilon'])}, the difference that is "
        "tolerated."
    )


def limits_of(shown: list[Bound]) -> list[float]:
    """The limits of these candidates, each once, ascending."""
    return sorted({bound.entry["allowed"] for bound in shown})


def _only_witness(shown: list[Bound]) -> int | None:
    """The one candidate with which all are compared; None if there are several, or none."""
    witnesses = {bound.entry["witness"] for bound in shown}
    only: int = witnesses.pop() if len(witnesses) == 1 else -1
    return only if only >= 0 else None


def _other(document: Document, shown: list[Bound]) -> str:
    only = _only_witness(shown)
    if only is None:
        return "the candidate that it was compared with (the table below names it)"
    name = names_of(document)[only]
    if name != document["best_arm"]:
        called = "the candidate under test" if tries_a_candidate(document) else "the one that all were compared with"
        return f"{called}, {shortened(name, 60)}"
    words = {"recommended": "recommended candidate", "best so far": "best candidate so far"}
    word = words.get(fates_of(document)["recommended"], "candidate that is best by the rule")
    return f"the {word}, {shortened(name, 60)}"


def _counted(document: Document, known: list[Bound], unknown: list[int]) -> str:
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
    vague = sum(not says_something(document, bound.upper) for bound in known)
    if vague:
        parts.append(f"Of {times(vague, 'candidate')} nothing is proved yet: no two could differ by more anyway.")
    parts += _without_bar(document, known, unknown)
    parts.append(
        f"A candidate that was {out_word(document)} keeps the bar that it had then; only complete batches count."
    )
    if len({look["candidate"] for look in looks_of(document)} - {None}) > 1:
        parts.append("Where it was compared with another candidate later, the bar is the later one.")
    return " ".join(parts)


def _without_bar(document: Document, known: list[Bound], unknown: list[int]) -> list[str]:
    """Who is not drawn, by name if they are few."""
    names, tested = names_of(document), _only_witness(known)
    others = [candidate for candidate in unknown if candidate != tested]
    if not others:
        return []
    who = listed(shortened(names[candidate], 40) for candidate in others)
    called = who if len(others) <= FEW else times(len(others), "candidate")
    return [f"Of {called} nothing is known yet that could be drawn."]


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
    names, fates = names_of(document), document["candidates"]["fates"]
    called = row_names([names[bound.candidate] for bound in shown])
    left = beside(called)
    across = Scale(low, high, left, RIGHT)
    bottom = TOP + STEP * len(shown)
    only = _only_witness(shown)
    other = "the other" if only is None else shortened(names[only], NAMED)
    axis = f"can be better than {other} by (unit of the rewards)"
    marks = across_axis(across, top=TOP, bottom=bottom, name=axis, most=4, middle=0.5 * WIDTH)
    marks.append(mark("text", "axis", "candidate", x=0.0, y=TOP - 10.0))
    marks.append(mark("text", "axis", "at most", x=float(WIDTH), y=TOP - 10.0, text_anchor="end"))
    limits = limits_of(shown)
    for limit in limits:
        marks.append(mark("line", "limit", x1=across.at(limit), x2=across.at(limit), y1=TOP - 6.0, y2=bottom))
    words = f"limit{'s' * (len(limits) > 1)}: {listed(number(limit) for limit in limits)}"
    middle = min(max(across.at(limits[-1]), left), RIGHT)
    marks.append(mark("text", "label", words, x=middle, y=TOP - 34.0, text_anchor="middle"))
    most = signed_column(_uppers(document, shown), 3)
    for place, bound in enumerate(shown):
        y = TOP + STEP * (place + 0.5)
        fate = fates[bound.candidate]
        marks.append(name_mark(SYMBOLS[fate], called[place], names[bound.candidate], y + 5.0))
        marks += _bar(across, bound, fate, y)
        marks.append(mark("text", "tick", most[place], x=float(WIDTH), y=y + 5.0, text_anchor="end"))
    crossing = sum(bound.entry["margin"] < 0 for bound in shown)
    finding = f"{times(len(shown), 'bar')}, hardest first; {words}. "
    finding += f"{crossing:,} of them cross their limit." if crossing else "None crosses its limit."
    title = "By how much each candidate could still be better"
    return Drawing("chart-intervals", title, finding, bottom + 58.0, tuple(marks), beside_names(document))


def _uppers(document: Document, shown: list[Bound]) -> list[float | None]:
    """By how much each can be better at most; None where that says nothing."""
    return [bound.upper if says_something(document, bound.upper) else None for bound in shown]


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
    kept = known[:MOST_ROWS]
    leads = signed_column([-bound.entry["lead"] for bound in kept])
    uppers = signed_column(_uppers(document, kept), unknown="nothing proved")
    margins = signed_column([bound.entry["margin"] for bound in kept])
    rows = [
        row(
            names[bound.candidate],
            words[bound.candidate],
            names[bound.entry["witness"]] if bound.entry["witness"] >= 0 else "none",
            leads[place],
            uppers[place],
            margins[place],
            str(bound.entry["plan"]),
            candidate=bound.candidate,
            **bound.entry,
        )
        for place, bound in enumerate(kept)
    ]
    certifying = tries_a_candidate(document)
    headers = (
        "candidate",
        "fate",
        "compared with",
        "better by, as the test estimates" if certifying else "seemed better by",
        "can be better by at most",
        "room to the limit",
        "decided by batch",
    )
    caption = "The intervals that decide, the hardest first"
    return table(caption, headers, rows, total=len(known), words=(0, 1, 2))
