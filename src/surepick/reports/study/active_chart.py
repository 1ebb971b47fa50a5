"""How the field narrowed: candidates that were still possible, over the measurements spent."""

from __future__ import annotations

from itertools import accumulate

from surepick.core.arrays import record
from surepick.reports.study.facts import Facts
from surepick.reports.study.scales import Frame, Scale, staircase

WIDE = 60  # candidates from which the axis counts factors
APART = 20.0  # least distance of two numbers beside an axis
MOST_TURNS = 3  # rises that are explained in the picture
FRAME = Frame(78.0, 620.0, 34.0, 290.0)


@record
class Turn:
    """A rise of the line because another candidate was tested: its name, and where it is written."""

    name: str
    x: float
    y: float
    at_end: bool


@record
class Narrowing:
    """The line of candidates that were still possible.

    Args:
        points: (measurements spent, candidates possible), from the start on.
        path: the line.
        start: where the first number stands beside the axis; None if a tick of the axis is too near.
        level: where the line ends, and `label` where that is written.
        half: measurements after which half of the candidates were out; None if that says nothing.
        turns: rises with room for an explanation.
        rises: candidates came back into question.
    """

    frame: Frame
    across: Scale
    up: Scale
    points: tuple[tuple[int, int], ...]
    path: str
    start: float | None
    level: float
    label: float
    half: int | None
    turns: tuple[Turn, ...]
    rises: bool


def narrowing(study: Facts) -> Narrowing | None:
    """The line of candidates that were still possible; None before a batch is complete."""
    if not study.looks:
        return None
    after = [look["active"] for look in study.looks]
    asked = len(study.names)
    if study.lists is not None:
        asked = max(sum(len(study.lists[part]) for part in ("inside", "outside", "undecided")), after[0])
    active = [asked, *after]
    spent = accumulate((sum(look["told"]["pulls"]) for look in study.looks), initial=0)
    points = tuple(zip(spent, active, strict=True))
    total, largest = points[-1][0], max(active)
    factors = largest >= WIDE
    across = FRAME.across(0.0, float(max(total, 1)), whole=True)
    up = FRAME.up(1.0 if factors else 0.0, float(largest), logarithmic=factors, whole=True)
    start, level = up.at(active[0]), up.at(active[-1])
    half = next((pulls for pulls, count in points if 2 * count <= active[0]), total)
    return Narrowing(
        frame=FRAME,
        across=across,
        up=up,
        points=points,
        path=staircase([(across.at(pulls), up.at(count)) for pulls, count in points]),
        start=start if all(abs(up.at(tick) - start) > APART for tick in up.ticks()) else None,
        level=level,
        label=level + 26.0 if level + 34.0 < FRAME.bottom else level - 14.0,
        half=half if active[0] > 2 and half < total else None,
        turns=_turns(study, points, across, up),
        rises=any(look["joined"] for look in study.looks),
    )


def _turns(study: Facts, points: tuple[tuple[int, int], ...], across: Scale, up: Scale) -> tuple[Turn, ...]:
    """The largest rises that came with another candidate under test, where there is room for a name."""
    rises, before = [], None
    for (_, earlier), (spent, count), look in zip(points, points[1:], study.looks, strict=False):
        if count > earlier and look["candidate"] not in {None, before}:
            rises.append((count - earlier, spent, count, look["candidate"]))
        before = look["candidate"]
    largest = sorted(rises, key=lambda rise: -rise[0])[:MOST_TURNS]
    found: list[Turn] = []
    for _, spent, count, name in sorted(largest, key=lambda rise: rise[1]):
        x, y = across.at(spent), max(up.at(count) - 9.0, FRAME.top + 14.0)
        if all(abs(x - one.x) >= 250.0 or abs(y - one.y) >= 24.0 for one in found):
            found.append(Turn(name, x, y, x > 0.5 * (FRAME.left + FRAME.right)))
    return tuple(found)
