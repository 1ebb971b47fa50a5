"""The intervals that decide: by how much each candidate could still be better, against the limit."""

import math
from typing import Any, Literal

from surepick.certificates.document import INLINE
from surepick.core.records import record
from surepick.errors import SurepickError
from surepick.forecasts import Forecast, forecast
from surepick.policies.base import Policy
from surepick.reports.study.facts import StudyFacts
from surepick.reports.study.lists import Frame, Histogram, Lanes, Scale, histogram, rows_shown, spread_labels, staircase

COMPARISONS_SHOWN = 30
RIGHT = 540.0  # where the rows end; the numbers stand beyond
COLUMNS = ("plans", "witnesses", "leads", "widths", "margins", "allowed")  # of the certificate, in the order of `Bound`
FARTHEST = 5.0  # times the upper quartile: bars that end beyond are cut, so that the others can be read
COMPARISONS_FRAME = Frame(78.0, 620.0, 34.0, 170.0)  # of the distribution


@record
class Bound:
    """What decides about one candidate, exactly as in the certificate."""

    candidate: int
    plan: int
    witness: int  # index of the candidate that it was compared with, negative if there is none
    lead: float  # it seemed worse than its witness by so much, ...
    width: float  # ... and it is not better than that by more than this
    margin: float  # room between the end of its bar and its limit; negative while it is still possible
    allowed: float

    @property
    def upper(self) -> float:
        """It is at most this much better than its witness; infinite where nothing is known."""
        return self.width - self.lead


@record
class Star:
    """The best candidate while another one is under test: why its row is missing."""

    tested: str  # the candidate under test
    earlier: str | None  # the one that `tested` was compared with before; None if `tested` has no bar either


@record
class Comparisons:
    """What decides about each candidate but the recommended one."""

    why: Literal["bars", "too-many", "no-intervals", "nothing-known"]  # the bars, or why there are none
    inline: int = 0
    known: tuple[Bound, ...] = ()  # the hardest to rule out first; closed batches only
    uppers: tuple[float | None, ...] = ()  # by how much each of these can be better at most; None: it says nothing
    unknown: tuple[int, ...] = ()
    shown: tuple[Bound, ...] = ()
    rows: Lanes | None = None
    across: Scale | None = None
    margins: Histogram | None = None  # of all candidates, where not all have a row
    crowd: int = 0  # how many candidates lie beyond the last column of `margins`
    limits: tuple[float, ...] = ()
    only: int | None = None  # the one candidate with which all rows are compared; None if there are several, or none
    star: Star | None = None  # set if the rows do not compare with the best so far
    crossing: int = 0
    ahead: bool = False  # a candidate that seemed better is proved to be better by no more than is tolerated
    tested_several: bool = False


def comparisons(study: StudyFacts) -> Comparisons | None:
    """The intervals of the candidates, or why there are none; None before a batch is complete."""
    document = study.document
    if not document["rounds"]:
        return None
    if document["arms"]["number"] > INLINE:
        return Comparisons("too-many", inline=INLINE)
    if document["intervals"] is None:
        return Comparisons("no-intervals")
    known, unknown = bounds_shown(study)
    if not known:
        return Comparisons("nothing-known")
    shown = known[:COMPARISONS_SHOWN]
    limits = sorted({bound.allowed for bound in shown})
    rows = rows_shown([study.names[bound.candidate] for bound in shown], right=RIGHT, top=62.0)
    all_of, of_shown = ({bound.witness for bound in bounds} for bounds in (known, shown))
    only = next(iter(all_of)) if len(all_of) == 1 else -1
    margins = [bound.margin for bound in known]
    last, distribution = margins[math.ceil(0.98 * len(margins)) - 1], None
    if len(known) > len(shown):  # one edge of a column is at 0
        low, high = spread_labels([margins[0], last, 0.0])
        width = (high - low) / 38
        across = COMPARISONS_FRAME.across(-math.ceil(-low / width) * width, math.ceil(high / width) * width)
        distribution = histogram(margins, COMPARISONS_FRAME, across, round((across.high - across.low) / width))
    return Comparisons(
        "bars",
        known=tuple(known),
        uppers=tuple(bound.upper if study.bounds(bound.upper) else None for bound in known),
        unknown=tuple(candidate for candidate in unknown if candidate != only),
        shown=tuple(shown),
        rows=rows,
        across=rows.frame.across(*_range(shown, [*limits, document["epsilon"]])),
        margins=distribution,
        crowd=sum(margin > last for margin in margins),
        limits=tuple(limits),
        only=max(of_shown) if len(of_shown) == 1 and max(of_shown) >= 0 else None,
        star=_star(study, known),
        crossing=sum(margin < 0 for margin in margins),
        ahead=any(bound.lead < 0 <= bound.margin for bound in shown),
        tested_several=len({look["candidate"] for look in study.looks} - {None}) > 1,
    )


def bounds_shown(study: StudyFacts) -> tuple[list[Bound], list[int]]:
    """(what is known of each candidate but the recommended one, the hardest to rule out first; the unknown ones)."""
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


def _star(study: StudyFacts, known: list[Bound]) -> Star | None:
    under_test = [look["candidate"] for look in study.looks if look["candidate"] is not None]
    if not study.tests_one or study.proved or not under_test or under_test[-1] == study.document["best_arm"]:
        return None
    tested: str = under_test[-1]
    earlier = [study.names[bound.witness] for bound in known if study.names[bound.candidate] == tested]
    return Star(tested, earlier[0] if earlier else None)


def _range(shown: list[Bound], limits: list[float]) -> tuple[float, float]:
    """The differences that are drawn: all but those that would leave no room for the others."""
    ends = [*(bound.upper for bound in shown), *(-bound.lead for bound in shown)]
    sizes = sorted(map(abs, ends))
    most = FARTHEST * max(sizes[(3 * len(sizes)) // 4], *limits)
    low, high = spread_labels([*(end for end in ends if abs(end) <= most), *limits, 0.0])
    room = 0.04 * (high - low)
    return low - room, high + room


# --- What was spent, beside what was forecast before the first measurement.

ROUNDS, SECONDS = 1_000, 4.0  # that the forecast of a report may simulate, and take
FORECAST_FRAME = Frame(92.0, 620.0, 62.0, 310.0)


@record
class Foreseen:
    """A forecast, or why there is none."""

    forecast: Forecast | None
    why: Literal["", "not-asked", "too-many", "never-stops", "network", "failed"] = ""  # the reason then, "" otherwise
    limit: int = 0
    error: str = ""  # what the forecast said when it failed


def foreseen(policy: Policy[Any], *, most_arms: int) -> Foreseen:
    """The forecast of a policy, if it is cheap enough; a report never fails because of it."""
    if most_arms == 0:
        return Foreseen(None, "not-asked")
    if policy.problem.num_arms > most_arms:
        return Foreseen(None, "too-many", limit=most_arms)
    if policy.traits.stops == "never":
        return Foreseen(None, "never-stops")
    if policy.traits.network_depth:
        return Foreseen(None, "network")
    try:
        return Foreseen(forecast(policy, most_rounds=ROUNDS, most_seconds=SECONDS))
    except (SurepickError, ArithmeticError, LookupError, ValueError) as error:
        return Foreseen(None, "failed", error=str(error))


@record
class Spending:
    """Measurements after each step, beside the forecast."""

    frame: Frame
    across: Scale
    up: Scale
    total: int
    uniform: int
    actual: dict[int, int]  # step -> measurements up to its end
    ahead: dict[int, int]  # the same of the forecast
    spent: str
    forecast: str
    end: tuple[float, float]


def spending(study: StudyFacts, seen: Foreseen) -> Spending | None:
    """What was spent beside the forecast; None without one."""
    if seen.forecast is None:
        return None
    actual = {entry["round"]: entry["total_pulls"] for entry in study.document["rounds"]}
    ahead = {each.round: each.total for each in seen.forecast.rounds}
    across = FORECAST_FRAME.across(0.0, float(max([*actual, *ahead, 1])), whole=True)
    up = FORECAST_FRAME.up(0.0, float(max([*actual.values(), *ahead.values(), 1])), whole=True)
    lines = [[(across.at(step), up.at(total)) for step, total in {0: 0, **one}.items()] for one in (actual, ahead)]
    spent, expected = (staircase([*corners, corners[-1]]) for corners in lines)
    return Spending(
        frame=FORECAST_FRAME,
        across=across,
        up=up,
        total=seen.forecast.total,
        uniform=seen.forecast.uniform,
        actual=actual,
        ahead=ahead,
        spent=spent,
        forecast=expected,
        end=lines[0][-1],
    )
