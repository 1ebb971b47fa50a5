"""Where the measurements went: how often each candidate was measured."""

from __future__ import annotations

from surepick.policies.base import current_name
from surepick.reports.study.format import column, shortened
from surepick.reports.study.sections import (
    SYMBOLS,
    Figure,
    Part,
    absent,
    beside_names,
    best_place,
    fate_words,
    names_of,
)
from surepick.reports.study.svg import (
    WIDTH,
    Drawing,
    Scale,
    across_axis,
    beside,
    bins,
    mark,
    name_mark,
    row_names,
    upright_axis,
)
from surepick.reports.study.tables import MOST_ROWS, Table, row, table
from surepick.reports.study.verdict import Document, uses_features
from surepick.studies.progress import times

SHOWN = 20
RIGHT, TOP, STEP = 548.0, 30.0, 26.0
WIDE_RATIO = 50  # most over least from which the axis counts factors
MOST_BINS = 36
LEAST_SHARE = 0.01


def effort(document: Document) -> Part:
    """The part about measurements per candidate."""
    heading = "Where the measurements went"
    pulls = document["candidates"]["pulls"]
    total = sum(pulls)
    if total == 0:
        return absent()
    order = sorted(range(len(pulls)), key=lambda candidate: (-pulls[candidate], candidate))
    shown = [candidate for candidate in order[:SHOWN] if pulls[candidate] > 0]
    best = best_place(document)
    if best is not None and best not in shown:
        shown.append(best)
    figures = [Figure(_bars(document, shown), _table(document, order))]
    if len(pulls) > SHOWN:
        figures.append(Figure(_spread(pulls)))
    return Part("effort", heading, (_sentence(document, pulls, order, total),), tuple(figures))


def _sentence(document: Document, pulls: list[int], order: list[int], total: int) -> str:
    middle = pulls[order[len(order) // 2]]
    never = sum(count == 0 for count in pulls)
    few = min(10, max(1, len(order) // 4))
    share = sum(pulls[candidate] for candidate in order[:few]) / total
    who = "The most measured candidate" if few == 1 else f"The {few} most measured candidates"
    part = f"{share:.0%}" if share >= LEAST_SHARE else f"less than {LEAST_SHARE:.0%}"
    text = f"{_rule(document, pulls)} {who} took {part} of all {total:,} measurements."
    if middle:
        text += f" Half of the candidates were measured at most {times(middle, 'time')}."
    if never:
        text += f" {never:,} {'was' if never == 1 else 'were'} never measured."
    return text


def _rule(document: Document, pulls: list[int]) -> str:
    """Why some candidates were measured more often than others."""
    if min(pulls) == max(pulls):
        return "All candidates were measured equally often."
    if uses_features(document):
        return (
            "Measurements go to the candidates that are most informative about those still in question; with shared "
            "features these need not be good ones."
        )
    if current_name(document["algorithm"]) == "sequential-halving":
        return "Candidates that stay longer are measured more; in one round all that are left equally often."
    return "Candidates that stay in question are measured most; those that are clearly worse, seldom."


def _bars(document: Document, shown: list[int]) -> Drawing:
    pulls, names, fates = (document["candidates"]["pulls"], names_of(document), document["candidates"]["fates"])
    called = row_names([names[candidate] for candidate in shown])
    left = beside(called)
    across = Scale(0.0, float(max(pulls)), left, RIGHT, whole=True)
    bottom = TOP + STEP * len(shown)
    marks = across_axis(across, top=TOP, bottom=bottom, name="measurements of the candidate", most=3)
    marks.append(mark("text", "axis", "candidate", x=0.0, y=TOP - 12.0))
    for place, candidate in enumerate(shown):
        y, fate = TOP + STEP * place, fates[candidate]
        long = max(across.at(pulls[candidate]) - left, 0.0)
        marks += [
            name_mark(SYMBOLS[fate], called[place], names[candidate], y + 18.0),
            mark("rect", f"fill {fate}", x=left, y=y + 5.0, width=long, height=STEP - 10.0),
            mark("text", "tick", f"{pulls[candidate]:,}", x=float(WIDTH), y=y + 18.0, text_anchor="end"),
        ]
    first = shown[0]
    finding = f"The most measured candidate is {shortened(names[first], 60)}, {times(pulls[first], 'time')}."
    most = [candidate for candidate in shown[:SHOWN] if pulls[candidate] > 0]
    title = "The candidates that were measured"
    if sum(count > 0 for count in pulls) > len(most):
        title = f"The {len(most)} most measured candidates"
    if len(shown) > len(most):
        title += f", and {shortened(names[shown[-1]], 40)}"
    return Drawing("chart-effort", title, finding, bottom + 56.0, tuple(marks), beside_names(document))


def _spread(pulls: list[int]) -> Drawing:
    measured = [float(count) for count in pulls if count > 0]
    low, high = min(measured), max(measured)
    factors = high > WIDE_RATIO * low
    if factors:
        across, columns = Scale(low, high, 78.0, 620.0, logarithmic=True), MOST_BINS
    else:
        columns = int(high - low) + 1
        across = Scale(low - 0.5, high + 0.5, 78.0, 620.0, whole=True)
        columns = columns if columns <= MOST_BINS else MOST_BINS
    parts = bins(measured, across, columns)
    top, bottom = 34.0, 190.0
    up = Scale(0.0, float(max(part.count for part in parts)), bottom, top, whole=True)
    name = "times measured" + (" (each line: ten times as often)" if factors else "")
    marks = [
        *across_axis(across, top=top, bottom=bottom, name=name, most=5),
        *upright_axis(up, left=78.0, right=620.0, name="candidates", most=3),
    ]
    width = (across.end - across.start) / len(parts)
    for place, part in enumerate(parts):
        if part.count:
            y = min(up.at(part.count), bottom - 1.5)
            x = across.start + width * place
            marks.append(mark("rect", "fill left", x=x + 0.5, y=y, width=width - 1.0, height=bottom - y))
    finding = f"From {min(measured):,.0f} to {times(int(max(measured)), 'time')}."
    if len(measured) < len(pulls):
        finding += f" The {len(pulls) - len(measured):,} that were never measured are not drawn."
    title = "How often candidates were measured, all of them"
    return Drawing("chart-effort-all", title, finding, bottom + 56.0, tuple(marks))


def _table(document: Document, order: list[int]) -> Table:
    found, names = document["candidates"], names_of(document)
    words = fate_words(document)
    best = best_place(document)
    chosen = order[:MOST_ROWS]
    if best is not None and best not in chosen:
        chosen[-1] = best
    means = column([found["means"][candidate] for candidate in chosen], unknown="not measured")
    rows = [
        row(
            names[candidate],
            words[candidate],
            f"{found['pulls'][candidate]:,}",
            mean,
            candidate=candidate,
            pulls=found["pulls"][candidate],
            mean=found["means"][candidate],
        )
        for candidate, mean in zip(chosen, means, strict=True)
    ]
    caption = "Measurements of each candidate, the most measured first (few measurements make an uncertain average)"
    headers = ("candidate", "fate", "measurements", "average of them")
    return table(caption, headers, rows, total=len(order), words=(0, 1))
