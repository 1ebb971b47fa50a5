"""The intervals that decide: by how much each candidate could still be better, against the limit."""

from __future__ import annotations

import math
from typing import Literal

from surepick.certificates.document import INLINE
from surepick.core.arrays import record
from surepick.reports.study.facts import Facts
from surepick.reports.study.scales import Frame, Histogram, Rows, Scale, histogram, rows_of, spread

SHOWN = 30
RIGHT = 540.0  # where the rows end; the numbers stand beyond
COLUMNS = ("plans", "witnesses", "leads", "widths", "margins", "allowed")  # of the certificate, in the order of `Bound`
FARTHEST = 5.0  # times the upper quartile: bars that end beyond are cut, so that the others can be read
FRAME = Frame(78.0, 620.0, 34.0, 170.0)  # of the distribution


@record
class Bound:
    """What decides about one candidate, exactly as in the certificate.

    Args:
        candidate: its index.
        plan: the batch that decided.
        witness: index of the candidate that it was compared with, negative if there is none.
        lead, width: it seemed worse than its witness by `lead`, and it is not better than that by more than `width`.
        margin: room between the end of its bar and its limit; negative while it is still possible.
        allowed: its limit.
    """

    candidate: int
    plan: int
    witness: int
    lead: float
    width: float
    margin: float
    allowed: float

    @property
    def upper(self) -> float:
        """It is at most this much better than its witness; infinite where nothing is known."""
        return self.width - self.lead


@record
class Star:
    """The best candidate while another one is under test: why its row is missing.

    Args:
        tested: the candidate under test.
        earlier: the one that `tested` was compared with before; None if `tested` has no bar either.
    """

    tested: str
    earlier: str | None


@record
class Comparisons:
    """What decides about each candidate but the recommended one.

    Args:
        why: what there is to draw: "bars", or the reason why there are none.
        inline: candidates up to which a certificate has intervals.
        known: the hardest to rule out first; closed batches only.
        uppers: by how much each of these can be better at most; None where that says nothing.
        unknown: candidates without a bound.
        shown: those with a row.
        rows: where the rows lie.
        across: of the differences.
        margins: of all candidates, where not all have a row.
        crowd: how many candidates lie beyond the last column of `margins`.
        limits: of the rows, each once, ascending.
        only: the one candidate with which all rows are compared; None if there are several, or none.
        star: set if the rows do not compare with the best so far.
        crossing: how many candidates are beyond their limit.
        ahead: a candidate that seemed better is proved to be better by no more than is tolerated.
        tested_several: the candidate under test changed.
    """

    why: Literal["bars", "too-many", "no-intervals", "nothing-known"]
    inline: int = 0
    known: tuple[Bound, ...] = ()
    uppers: tuple[float | None, ...] = ()
    unknown: tuple[int, ...] = ()
    shown: tuple[Bound, ...] = ()
    rows: Rows | None = None
    across: Scale | None = None
    margins: Histogram | None = None
    crowd: int = 0
    limits: tuple[float, ...] = ()
    only: int | None = None
    star: Star | None = None
    crossing: int = 0
    ahead: bool = False
    tested_several: bool = False


def comparisons(study: Facts) -> Comparisons | None:
    """The intervals of the candidates, or why there are none; None before a batch is complete."""
    document = study.document
    if not document["rounds"]:
        return None
    if document["arms"]["number"] > INLINE:
        return Comparisons("too-many", inline=INLINE)
    if document["intervals"] is None:
        return Comparisons("no-intervals")
    known, unknown = bounds_of(study)
    if not known:
        return Comparisons("nothing-known")
    shown = known[:SHOWN]
    limits = sorted({bound.allowed for bound in shown})
    rows = rows_of([study.names[bound.candidate] for bound in shown], right=RIGHT, top=62.0)
    only = _only_witness(known)
    margins = [bound.margin for bound in known]
    last = margins[math.ceil(0.98 * len(margins)) - 1]
    several = len(known) > len(shown)
    return Comparisons(
        "bars",
        known=tuple(known),
        uppers=tuple(bound.upper if study.bounds(bound.upper) else None for bound in known),
        unknown=tuple(candidate for candidate in unknown if candidate != only),
        shown=tuple(shown),
        rows=rows,
        across=rows.frame.across(*_range(shown, [*limits, document["epsilon"]])),
        margins=_margins(margins, last) if several else None,
        crowd=sum(margin > last for margin in margins),
        limits=tuple(limits),
        only=_only_witness(shown),
        star=_star(study, known),
        crossing=sum(margin < 0 for margin in margins),
        ahead=any(bound.lead < 0 <= bound.margin for bound in shown),
        tested_several=len({look["candidate"] for look in study.looks} - {None}) > 1,
    )


def bounds_of(study: Facts) -> tuple[list[Bound], list[int]]:
    """(what is known of each candidate but the recommended one, the hardest to rule out first; those without a bound).

    What is known last: closed batches only.
    """
    found = study.document["intervals"]
    known, unknown = [], []
    for candidate, numbers in enumerate(zip(*(found[column] for column in COLUMNS), strict=True)):
        if candidate == study.best:
            continue
        if None in numbers:
            unknown.append(candidate)
        else:
            known.append(Bound(candidate, *numbers))
    return sorted(known, key=lambda bound: (bound.margin, bound.candidate)), unknown


def _star(study: Facts, known: list[Bound]) -> Star | None:
    under_test = [look["candidate"] for look in study.looks if look["candidate"] is not None]
    if not study.tests_one or study.proved or not under_test or under_test[-1] == study.document["best_arm"]:
        return None
    tested: str = under_test[-1]
    earlier = [study.names[bound.witness] for bound in known if study.names[bound.candidate] == tested]
    return Star(tested, earlier[0] if earlier else None)


def _only_witness(bounds: list[Bound]) -> int | None:
    witnesses = {bound.witness for bound in bounds}
    only = witnesses.pop() if len(witnesses) == 1 else -1
    return only if only >= 0 else None


def _range(shown: list[Bound], limits: list[float]) -> tuple[float, float]:
    """The differences that are drawn: all but those that would leave no room for the others."""
    ends = [*(bound.upper for bound in shown), *(-bound.lead for bound in shown)]
    sizes = sorted(map(abs, ends))
    most = FARTHEST * max(sizes[(3 * len(sizes)) // 4], *limits)
    low, high = spread([*(end for end in ends if abs(end) <= most), *limits, 0.0])
    room = 0.04 * (high - low)
    return low - room, high + room


def _margins(margins: list[float], last: float) -> Histogram:
    """Where the margins of all candidates lie; one edge of a column is at 0."""
    low, high = spread([margins[0], last, 0.0])
    width = (high - low) / 38
    across = FRAME.across(-math.ceil(-low / width) * width, math.ceil(high / width) * width)
    return histogram(margins, FRAME, across, round((across.high - across.low) / width))
