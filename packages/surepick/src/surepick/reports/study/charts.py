"""The intervals that decide: by how much each candidate could still be better, against the limit."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any, Literal

from surepick.certificates.document import INLINE
from surepick.core.records import record
from surepick.errors import SurepickError
from surepick.forecasts import Forecast, forecast
from surepick.policies.base import Policy
from surepick.reports.study.facts import MOST_ROWS, StudyFacts
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


# --- Where the measurements went: how often each candidate was measured.

PULLS_SHOWN = 20
MOST_COLUMNS = 36
WIDE_RATIO = 50  # most over least from which the axis counts factors
PULLS_FRAME = Frame(78.0, 620.0, 34.0, 190.0)


@record
class EffortChart:
    """How often candidates were measured."""

    shown: tuple[int, ...]  # those with a row, the most measured first; then the best, if it is not among them
    most: int  # how many of these are there because they were measured most
    rows: Lanes
    across: Scale
    spread: Histogram | None  # of all candidates that were measured; None where all of them have a row
    listed: tuple[int, ...]
    measured: int
    least: int
    middle: int
    few: int  # how many candidates `share` speaks of, the most measured ones
    share: float  # of all measurements that these took


def effort(study: StudyFacts) -> EffortChart | None:
    """How often candidates were measured; None if none was."""
    pulls: list[int] = study.document["candidates"]["pulls"]
    total, measured = sum(pulls), sum(count > 0 for count in pulls)
    if total == 0:
        return None
    order = sorted(range(len(pulls)), key=lambda candidate: (-pulls[candidate], candidate))
    shown = order[: min(PULLS_SHOWN, measured)]
    most = len(shown)
    listed = order[:MOST_ROWS]
    if study.best is not None:
        shown += [study.best] * (study.best not in shown)
        listed = listed if study.best in listed else [*listed[:-1], study.best]
    rows = rows_shown([study.names[candidate] for candidate in shown], right=548.0, top=30.0)
    few = min(10, max(1, len(order) // 4))
    counts = [float(count) for count in pulls if count > 0]
    low, high, columns = min(counts), max(counts), MOST_COLUMNS
    spread = PULLS_FRAME.across(low, high, logarithmic=True) if high > WIDE_RATIO * low else None
    if spread is None:
        spread = PULLS_FRAME.across(low - 0.5, high + 0.5, whole=True)
        columns = min(int(high - low) + 1, MOST_COLUMNS)
    return EffortChart(
        shown=tuple(shown),
        most=most,
        rows=rows,
        across=rows.frame.across(0.0, float(max(pulls)), whole=True),
        spread=histogram(counts, PULLS_FRAME, spread, columns) if len(pulls) > PULLS_SHOWN else None,
        listed=tuple(listed),
        measured=measured,
        least=int(low),
        middle=pulls[order[len(order) // 2]],
        few=few,
        share=sum(pulls[candidate] for candidate in order[:few]) / total,
    )


# --- By how much the best candidate so far can be worse than the best one at most, over the measurements spent.

FACTORS = 10.0  # ratio of the numbers from which the axis counts factors
HEADROOM, FOOTROOM = 1.04, 0.4  # of the axis beyond the largest number, and beyond the smallest if it counts factors
ABOVE, BELOW = 12.0, 22.0  # of a label above or below its mark
GAP_FRAME = Frame(78.0, 620.0, 34.0, 290.0)
Run = list[tuple[int, float]]  # (measurements, gap), ...


@record
class Proved:
    """What a batch proved of the best candidate so far."""

    spent: int  # measurements up to its end
    gap: float | None  # it is at most this much worse than the best, in reward units; None where nothing is proved
    leader: str


@record
class Gaps:
    """The line of the certified gap."""

    frame: Frame
    across: Scale
    up: Scale
    known: tuple[Proved, ...]
    paths: tuple[str, ...]  # the line; it is interrupted while nothing is proved of the best candidate so far
    kept: tuple[str, ...]  # across the interruptions, at the smallest that was proved of an earlier one
    changes: tuple[tuple[float, float], ...]
    end: tuple[float, float]  # where it ends, and `label` where the last number is written
    label: float
    epsilon: float  # where the line of what was asked lies, and `limit` where its name is written
    limit: float
    rises: bool


def gaps(study: StudyFacts) -> Gaps | None:
    """The line of the certified gap; None where fewer than two batches prove something, or all were given up."""
    if study.guesses or study.unproved:
        return None
    proved = proofs(study)
    known = tuple(one for one in proved if one.gap is not None)
    if len(known) < 2 or proved[-1].spent == 0:
        return None
    epsilon, values = float(study.document["epsilon"]), [one.gap or 0.0 for one in known]
    across = GAP_FRAME.across(0.0, float(proved[-1].spent), whole=True)
    high, least = HEADROOM * max(*values, epsilon), min(value for value in (*values, epsilon) if value > 0)
    factors = high > FACTORS * least  # the axis counts factors where the numbers differ by many
    up = GAP_FRAME.up(FOOTROOM * least if factors else 0.0, high, logarithmic=factors)

    def path(run: Run) -> str:
        return staircase([(across.at(spent), up.at(gap)) for spent, gap in run])

    paths, kept = _runs(proved)
    (spent, gap), limit = (known[-1].spent, values[-1]), up.at(epsilon)
    end = (across.at(spent), up.at(gap))
    return Gaps(
        frame=GAP_FRAME,
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
        label=end[1] + BELOW if end[1] + BELOW < GAP_FRAME.bottom else end[1] - ABOVE,
        epsilon=limit,
        limit=limit - 7.0 if limit - BELOW > GAP_FRAME.top else limit + BELOW,
        rises=any(after > before for before, after in pairwise(values)),
    )


def proofs(study: StudyFacts) -> tuple[Proved, ...]:
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


# --- How the field narrowed: candidates that were still possible, over the measurements spent.

WIDE = 60  # candidates from which the axis counts factors
APART = 20.0  # least distance of two numbers beside an axis
MOST_TURNS = 3  # rises that are explained in the picture
ACTIVE_FRAME = Frame(78.0, 620.0, 34.0, 290.0)


@record
class Turn:
    """A rise of the line because another candidate was tested: its name, and where it is written."""

    name: str
    x: float
    y: float
    at_end: bool


@record
class Narrowing:
    """The line of candidates that were still possible."""

    frame: Frame
    across: Scale
    up: Scale
    points: tuple[tuple[int, int], ...]  # (measurements spent, candidates possible), from the start on
    path: str
    start: float | None  # where the first number stands beside the axis; None if a tick of the axis is too near
    level: float  # where the line ends, and `label` where that is written
    label: float
    half: int | None  # measurements after which half of the candidates were out; None if that says nothing
    turns: tuple[Turn, ...]  # rises with room for an explanation
    rises: bool


def narrowing(study: StudyFacts) -> Narrowing | None:
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
    across = ACTIVE_FRAME.across(0.0, float(max(total, 1)), whole=True)
    up = ACTIVE_FRAME.up(1.0 if factors else 0.0, float(largest), logarithmic=factors, whole=True)
    start, level = up.at(active[0]), up.at(active[-1])
    half = next((pulls for pulls, count in points if 2 * count <= active[0]), total)
    return Narrowing(
        frame=ACTIVE_FRAME,
        across=across,
        up=up,
        points=points,
        path=staircase([(across.at(pulls), up.at(count)) for pulls, count in points]),
        start=start if all(abs(up.at(tick) - start) > APART for tick in up.ticks()) else None,
        level=level,
        label=level + 26.0 if level + 34.0 < ACTIVE_FRAME.bottom else level - 14.0,
        half=half if active[0] > 2 and half < total else None,
        turns=_turns(study, points, across, up),
        rises=any(look["joined"] for look in study.looks),
    )


def _turns(study: StudyFacts, points: tuple[tuple[int, int], ...], across: Scale, up: Scale) -> tuple[Turn, ...]:
    """The largest rises that came with another candidate under test, where there is room for a name."""
    rises, before = [], None
    for (_, earlier), (spent, count), look in zip(points, points[1:], study.looks, strict=False):
        if count > earlier and look["candidate"] not in {None, before}:
            rises.append((count - earlier, spent, count, look["candidate"]))
        before = look["candidate"]
    largest = sorted(rises, key=lambda rise: -rise[0])[:MOST_TURNS]
    found: list[Turn] = []
    for _, spent, count, name in sorted(largest, key=lambda rise: rise[1]):
        x, y = across.at(spent), max(up.at(count) - 9.0, ACTIVE_FRAME.top + 14.0)
        if all(abs(x - one.x) >= 250.0 or abs(y - one.y) >= 24.0 for one in found):
            found.append(Turn(name, x, y, x > 0.5 * (ACTIVE_FRAME.left + ACTIVE_FRAME.right)))
    return tuple(found)


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
