"""Where the measurements went: how often each candidate was measured."""

from __future__ import annotations

from surepick.core.arrays import record
from surepick.reports.study.facts import Facts
from surepick.reports.study.format import MOST_ROWS
from surepick.reports.study.scales import Frame, Histogram, Rows, Scale, histogram, rows_of

SHOWN = 20
MOST_COLUMNS = 36
WIDE_RATIO = 50  # most over least from which the axis counts factors
FRAME = Frame(78.0, 620.0, 34.0, 190.0)


@record
class Effort:
    """How often candidates were measured.

    Args:
        shown: those with a row, the most measured first; then the best, if it is not among them.
        most: how many of these are there because they were measured most.
        rows: where the rows lie.
        across: of their measurements.
        spread: of all candidates that were measured; None where all of them have a row.
        listed: those in the table.
        measured: how many were measured at all.
        least: fewest measurements of those that were measured.
        middle: the median of the measurements of a candidate.
        few: how many candidates `share` speaks of, the most measured ones.
        share: of all measurements that these took.
    """

    shown: tuple[int, ...]
    most: int
    rows: Rows
    across: Scale
    spread: Histogram | None
    listed: tuple[int, ...]
    measured: int
    least: int
    middle: int
    few: int
    share: float


def effort(study: Facts) -> Effort | None:
    """How often candidates were measured; None if none was."""
    pulls: list[int] = study.document["candidates"]["pulls"]
    total, measured = sum(pulls), sum(count > 0 for count in pulls)
    if total == 0:
        return None
    order = sorted(range(len(pulls)), key=lambda candidate: (-pulls[candidate], candidate))
    shown = order[: min(SHOWN, measured)]
    most = len(shown)
    listed = order[:MOST_ROWS]
    if study.best is not None:
        shown += [study.best] * (study.best not in shown)
        listed = listed if study.best in listed else [*listed[:-1], study.best]
    rows = rows_of([study.names[candidate] for candidate in shown], right=548.0, top=30.0)
    few = min(10, max(1, len(order) // 4))
    return Effort(
        shown=tuple(shown),
        most=most,
        rows=rows,
        across=rows.frame.across(0.0, float(max(pulls)), whole=True),
        spread=_spread(pulls) if len(pulls) > SHOWN else None,
        listed=tuple(listed),
        measured=measured,
        least=min(count for count in pulls if count > 0),
        middle=pulls[order[len(order) // 2]],
        few=few,
        share=sum(pulls[candidate] for candidate in order[:few]) / total,
    )


def _spread(pulls: list[int]) -> Histogram:
    measured = [float(count) for count in pulls if count > 0]
    low, high = min(measured), max(measured)
    if high > WIDE_RATIO * low:
        return histogram(measured, FRAME, FRAME.across(low, high, logarithmic=True), MOST_COLUMNS)
    across = FRAME.across(low - 0.5, high + 0.5, whole=True)
    return histogram(measured, FRAME, across, min(int(high - low) + 1, MOST_COLUMNS))
