"""By how much the best candidate so far can be worse than the best one at most, over the measurements spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

from surepick.core.arrays import record
from surepick.reports.study.facts import Facts
from surepick.reports.study.scales import Frame, Scale, staircase

FACTORS = 10.0  # ratio of the numbers from which the axis counts factors
HEADROOM, FOOTROOM = 1.04, 0.4  # of the axis beyond the largest number, and beyond the smallest if it counts factors
ABOVE, BELOW = 12.0, 22.0  # of a label above or below its mark
FRAME = Frame(78.0, 620.0, 34.0, 290.0)
Run = list[tuple[int, float]]  # (measurements, gap), ...


@record
class Proved:
    """What a batch proved of the best candidate so far.

    Args:
        spent: measurements up to its end.
        gap: it is at most this much worse than the best, in reward units; None where nothing is proved.
        leader: its name.
    """

    spent: int
    gap: float | None
    leader: str


@record
class Gaps:
    """The line of the certified gap.

    Args:
        known: the batches that proved something, in order.
        paths: the line; it is interrupted while nothing is proved of the best candidate so far.
        kept: across the interruptions, at the smallest that was proved of an earlier one.
        changes: places where the line goes on for another candidate.
        end: where it ends, and `label` where the last number is written.
        epsilon: where the line of what was asked lies, and `limit` where its name is written.
        rises: it is larger somewhere than before.
    """

    frame: Frame
    across: Scale
    up: Scale
    known: tuple[Proved, ...]
    paths: tuple[str, ...]
    kept: tuple[str, ...]
    changes: tuple[tuple[float, float], ...]
    end: tuple[float, float]
    label: float
    epsilon: float
    limit: float
    rises: bool


def gaps(study: Facts) -> Gaps | None:
    """The line of the certified gap; None where fewer than two batches prove something about their best candidate, or
    all of them were given up."""
    if study.guesses or study.unproved:
        return None
    proved = proofs(study)
    known = tuple(one for one in proved if one.gap is not None)
    if len(known) < 2 or proved[-1].spent == 0:
        return None
    epsilon, values = float(study.document["epsilon"]), [one.gap or 0.0 for one in known]
    across = FRAME.across(0.0, float(proved[-1].spent), whole=True)
    up = _upright([*values, epsilon])

    def path(run: Run) -> str:
        return staircase([(across.at(spent), up.at(gap)) for spent, gap in run])

    paths, kept = _runs(proved)
    (spent, gap), limit = (known[-1].spent, values[-1]), up.at(epsilon)
    end = (across.at(spent), up.at(gap))
    return Gaps(
        frame=FRAME,
        across=across,
        up=up,
        known=known,
        paths=tuple(map(path, paths)),
        kept=tuple(map(path, kept)),
        changes=tuple(
            (across.at(after.spent), up.at(after.gap))
            for before, after in pairwise(proved)
            if after.gap is not None and after.leader != before.leader
        ),
        end=end,
        label=end[1] + BELOW if end[1] + BELOW < FRAME.bottom else end[1] - ABOVE,
        epsilon=limit,
        limit=limit - 7.0 if limit - BELOW > FRAME.top else limit + BELOW,
        rises=any(after > before for before, after in pairwise(values)),
    )


def proofs(study: Facts) -> tuple[Proved, ...]:
    """What each batch proved of the candidate that was the best so far after it."""
    spent = accumulate(sum(look["told"]["pulls"]) for look in study.looks)
    return tuple(
        Proved(total, look["certified_gap"] if study.bounds(look["certified_gap"]) else None, look["leader"])
        for total, look in zip(spent, study.looks, strict=True)
    )


def _runs(proved: Sequence[Proved]) -> tuple[list[Run], list[Run]]:
    """(stretches in which something is proved, those between and after them); each ends where the next one begins."""
    runs: tuple[list[Run], list[Run]] = ([], [])
    smallest, before = math.inf, None
    for one in proved:
        smallest = min(smallest, math.inf if one.gap is None else one.gap)
        if math.isinf(smallest):
            continue
        unknown = one.gap is None
        if before is None or unknown != before:
            if before is not None:
                runs[before][-1].append((one.spent, runs[before][-1][-1][1]))
            runs[unknown].append([])
        runs[unknown][-1].append((one.spent, smallest if one.gap is None else one.gap))
        before = unknown
    return runs


def _upright(values: Sequence[float]) -> Scale:
    """From 0, or by factors where the numbers differ by many."""
    high, positive = HEADROOM * max(values), [value for value in values if value > 0]
    if high > FACTORS * min(positive):
        return FRAME.up(FOOTROOM * min(positive), high, logarithmic=True)
    return FRAME.up(0.0, high)
