"""Where the candidates stand, for answers by lists: averages beside what the question compares them with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from surepick.core.arrays import record
from surepick.questions import Above, AllGood, BestFeasible, Question, TopM, parse_question
from surepick.reports.study.facts import Facts
from surepick.reports.study.scales import Rows, Scale, rows_of, spread

SHOWN = 30
ERRORS = 2.0  # standard errors to either side
MOST_ROOM = 1.0  # of the range of averages, that bars may take beyond it


@record
class Point:
    """A candidate on the picture.

    Args:
        candidate: its position.
        average: of its measurements.
        error: the standard error of that; None where one measurement does not show it.
        pulls: measurements.
    """

    candidate: int
    average: float
    error: float | None
    pulls: int


@record
class Panel:
    """One quantity of the candidates.

    Args:
        name: of the quantity; "" for the reward.
        points: those with a row, the highest average first.
        rows: where the rows lie.
        across: of the averages.
        lines: (number, what it is) of what candidates are compared with, ascending.
        known: candidates that were measured.
    """

    name: str
    points: tuple[Point, ...]
    rows: Rows
    across: Scale
    lines: tuple[tuple[float, str], ...]
    known: int


def standings(study: Facts) -> tuple[Panel, ...]:
    """The reward, and each quantity with a bound; () where the answer is no list, or nothing was measured."""
    if study.lists is None or study.document["arms"]["ids"] is None:
        return ()
    asked = parse_question((study.document["policy"] or {}).get("question"), {})
    told = _points(study, [look["told"] for look in study.looks])
    panels = [_panel(study, "", told, _lines(study, asked, told))]
    constraints = asked.constraints if isinstance(asked, BestFeasible) else ()
    for place, one in enumerate(constraints):
        parts = [look["quantities"][place] for look in study.looks if look.get("quantities")]
        lines = [(one.bound, f"{'at most' if one.at_most else 'at least'} {one.bound:g}")]
        if one.tolerance:
            lines.append((one.bound + (one.tolerance if one.at_most else -one.tolerance), "with the tolerance"))
        panels.append(_panel(study, one.name, _points(study, parts), lines))
    return tuple(one for one in panels if one is not None)


def _points(study: Facts, parts: Sequence[dict[str, Any]]) -> list[Point]:
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


def _lines(study: Facts, asked: Question | None, told: Sequence[Point]) -> list[tuple[float, str]]:
    """What the averages are compared with."""
    sign = -1.0 if study.document["minimize"] else 1.0
    ranked = sorted((sign * point.average for point in told), reverse=True)
    if isinstance(asked, Above):
        if asked.threshold is not None:
            return [(sign * (sign * asked.threshold + asked.by), "what is wanted" if asked.by else "the threshold")]
        control = [point.average for point in told if study.names[point.candidate] == asked.control]
        return [(value + sign * asked.by, "what is wanted" if asked.by else "the control") for value in control]
    segmented = bool((study.lists or {}).get("segments"))
    if isinstance(asked, TopM) and asked.m < len(ranked) and not segmented:
        return [(sign * 0.5 * (ranked[asked.m - 1] + ranked[asked.m]), f"below place {asked.m}")]
    if isinstance(asked, AllGood) and ranked and not segmented:
        epsilon = float(study.document["epsilon"])
        slack = epsilon if asked.slack is None else asked.slack
        good, bad = sign * (ranked[0] - epsilon), sign * (ranked[0] - epsilon - slack)
        return [(good, f"{epsilon:g} from the best"), (bad, f"{epsilon + slack:g} from the best")]
    return []


def _panel(study: Facts, name: str, told: Sequence[Point], lines: Sequence[tuple[float, str]]) -> Panel | None:
    if not told:
        return None
    near = [(min((abs(point.average - line) for line, _ in lines), default=-point.average), point) for point in told]
    shown = [point for _, point in sorted(near, key=lambda one: (one[0], one[1].candidate))[:SHOWN]]
    shown.sort(key=lambda point: (-point.average, point.candidate))
    low, high = spread([*(point.average for point in shown), *(line for line, _ in lines)])
    room = MOST_ROOM * (high - low)
    ends = [point.average + side * ERRORS * (point.error or 0.0) for point in shown for side in (-1.0, 1.0)]
    rows = rows_of([study.names[point.candidate] for point in shown], right=560.0, top=62.0)
    across = rows.frame.across(*spread([max(min([low, *ends]), low - room), min(max([high, *ends]), high + room)]))
    return Panel(name, tuple(shown), rows, across, tuple(sorted(lines)), len(told))
