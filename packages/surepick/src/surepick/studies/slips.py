"""Slips of the finger: results that are implausible beside what is known, asked about before they are stored.

    beside repeats     a result of a candidate against its other results: of honest ones 1 in 10,000 is asked about
    beside the others  the first result of a candidate against those of at least five others, which are alike in size:
                       a guess about their means, with no promise (decision 41 has what was measured)

What is known are the judged rounds, and of the open one what the same reporter brought, in this call or before it: so
a question tells nobody anything of another's results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from surepick.core.descriptions import Scale
from surepick.core.observations import ROUNDING, Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.core.special_functions import special
from surepick.errors import UnusualResult
from surepick.estimators.goodness_of_fit import most_of_spread, spread_of, surprises, with_least_squares
from surepick.noise import Noise, Normal, known_scale, scales
from surepick.policies.base import Policy
from surepick.questions import constraints_of
from surepick.studies.logs.base import Reported, Results
from surepick.text import quoted

LIMITED = -1
FALSE_ALARM = 1e-4  # of an honest result beside repeats
ENOUGH_REPEATS = 4  # beside a result of a candidate whose scale nobody knows
ENOUGH_OTHERS = 5
ENOUGH_ALIKE = 8  # results of 0 and 1
ALIKE = 1.5  # at most, the largest of the others over the smallest, but for NOISE_SCALES of each
NOISE_SCALES = 2.0
SLIPPED = 4  # of so many others one may be a slip as well
UNLIKE = 8  # of so many others one may be unlike
SHIFTS = (0.001, 0.01, 0.1, 10.0, 100.0, 1000.0, -1.0)  # times what was meant: a point or a sign in the wrong place
FAR = 50.0  # times the largest of the others: whatever the digits
SCALES_APART = 10.0
FEW = 16  # rows that are added up one by one


@record
class Unusual:
    """A result that stands out."""

    row: int  # its place in the call; -1: it was reported before
    number: int  # of the row in the log, where it was; 0: it was not
    arm: int
    value: float  # the result, or the mean of a row that adds up several
    against: float  # the mean of what it is compared with, or the nearest of it
    # other results of the candidate that it is compared with; 0: it is compared with other candidates; LIMITED: with a
    repeats: int  # limit that was declared


@frozen
class _Rows:
    """Results that are looked at: of the call, and open ones of the same reporter; each entry has shape (n,)."""

    arms: IntArray
    pulls: IntArray  # how many results it adds up
    means: FloatArray
    within: FloatArray  # squared distances from their mean, added up
    places: IntArray  # in the call; -1: before it
    numbers: IntArray  # in the log; 0: not in it

    def of(self, kept: BoolArray | IntArray) -> _Rows:
        """Some of them."""
        return _Rows(*(getattr(self, name)[kept] for name in self.__dataclass_fields__))


@dataclass(slots=True)
class _Base:
    """What each candidate is known to give beside the rows that are looked at: counts, means, sums of squares."""

    counts: FloatArray
    means: FloatArray
    within: FloatArray

    def add(self, rows: _Rows) -> None:
        """Take rows in, without loss by rounding (Chan, Golub and LeVeque 1983)."""
        order = np.argsort(rows.arms, kind="stable")
        ordered = rows.arms[order]
        turns = np.empty(len(order), np.int64)  # the first row of each candidate, then the second of each, ...
        turns[order] = np.arange(len(order)) - np.searchsorted(ordered, ordered)
        in_turn = np.split(np.argsort(turns, kind="stable"), np.cumsum(np.bincount(turns)))
        few = next((place for place, one in enumerate(in_turn) if len(one) < FEW), len(in_turn))
        for one in in_turn[:few]:
            self._add(rows.arms[one], rows.pulls[one], rows.means[one], rows.within[one])
        left = rows.of(np.concatenate([np.empty(0, np.int64), *in_turn[few:]]))
        for row in zip(left.arms, left.pulls, left.means, left.within, strict=True):
            self._add(*row)

    def _add(self, arms: Any, pulls: Any, means: Any, within: Any) -> None:
        """A row, or the columns of rows of different candidates."""
        number, apart = self.counts[arms] + pulls, means - self.means[arms]
        self.within[arms] += within + apart * apart * (self.counts[arms] * pulls / number)
        self.means[arms] += apart * (pulls / number)
        self.counts[arms] = number


def asks(noise: Noise) -> bool:
    """Whether any result can be implausible: none between declared bounds, beyond which they are refused anyway."""
    return noise.support is None


def doubt_of_kind(noise: Noise, results: Results) -> str:
    """What to say of results of 0 and 1 that are taken for normal; "" of others, and of few."""
    single = len(results.arms) >= ENOUGH_ALIKE and bool(np.all(results.pulls == 1))
    if not isinstance(noise, Normal) or not single or not np.isin(results.sums, (0.0, 1.0)).all():
        return ""
    return (
        "all of these results are 0 or 1, and this study takes them for normally distributed. If each is one success "
        "or failure, begin it anew with --noise bernoulli (in Python noise='bernoulli')."
    )


def outside(scale: Scale, new: Results) -> list[Unusual]:
    """The results beyond the limits that were declared for typing errors; a row that adds up several by its mean."""
    means = (new.sums / new.pulls).tolist()
    found = [(row, mean, scale.outside(mean)) for row, mean in enumerate(means)]
    return [
        Unusual(row=row, number=0, arm=int(new.arms[row]), value=mean, against=limit, repeats=LIMITED)
        for row, mean, limit in found
        if limit is not None
    ]


def unusual(
    noise: Noise, num_arms: int, closed: Observations | None, own: Sequence[Reported], new: Results
) -> list[Unusual]:
    """The results that stand out, those of the call first."""
    before = _rows_before([one for one in own if not one.unusual])
    means = new.sums / new.pulls
    squares = np.zeros(len(means)) if new.squares is None else new.squares - new.sums * means
    within = np.where(new.pulls > 1, np.maximum(squares, 0.0), 0.0)
    now = _Rows(new.arms, new.pulls, means, within, np.arange(len(means)), np.zeros(len(means), np.int64))
    names = now.__dataclass_fields__
    rows = _Rows(*(np.concatenate([getattr(now, name), getattr(before, name)]) for name in names))
    base = _Base(np.zeros(num_arms), np.zeros(num_arms), np.zeros(num_arms))
    if closed is not None:
        spread = np.where(closed.counts > 1, closed.deviations + closed.rounding, 0.0)
        base = _Base(closed.counts.astype(np.float64), np.array(closed.means), spread)
    base.add(_rows_before([one for one in own if one.unusual]))
    found = _beside_repeats(noise, num_arms, base, rows)
    found += _beside_others(noise, num_arms, base, rows, {one.arm for one in found})
    return sorted(found, key=lambda one: (one.row < 0, one.row, one.number))


def _rows_before(own: Sequence[Reported]) -> _Rows:
    pulls = np.array([one.pulls for one in own], np.int64)
    sums = np.array([one.total for one in own], np.float64)
    means = sums / pulls
    squares = np.array(
        [total if one.squares is None else one.squares for one, total in zip(own, sums * means, strict=True)]
    )
    within = np.where(pulls > 1, np.maximum(squares - sums * means, 0.0), 0.0)
    arms, numbers = np.array([one.arm for one in own]), np.array([one.number for one in own])
    return _Rows(arms, pulls, means, within, np.full(len(own), -1), numbers)


# beside repeats


def _beside_repeats(noise: Noise, num_arms: int, base: _Base, rows: _Rows) -> list[Unusual]:
    """The rows that stand out from the other results of their candidate, at most one in 10,000 honest ones. Every row
    is compared with all others. Of those that stand out of one candidate the worst goes first, and the rest are only
    asked about if they still stand out without it (docs/certified-elimination.md, line 36)."""
    far = _far(noise, num_arms, base, rows)[0]
    found = []
    for arm in np.unique(rows.arms[far > 0.0]).tolist():
        left = np.flatnonzero(rows.arms == arm)
        doubted = set(np.flatnonzero((rows.arms == arm) & (far > 0.0)).tolist())
        while doubted:
            now, against, number = _far(noise, num_arms, base, rows.of(left))
            doubted &= set(left[now > 0.0].tolist())
            if not doubted:
                break
            order = left.tolist()
            worst = max(doubted, key=lambda one: now[order.index(one)])
            pair = [worst] if len(left) != 2 or base.counts[arm] > 0 else order  # nobody can say which of two it is
            found += [_unusual(rows, one, against[order.index(one)], number[order.index(one)]) for one in pair]
            doubted.difference_update(pair)
            left = left[left != worst]
    return found


def _unusual(rows: _Rows, one: int, against: float, number: float) -> Unusual:
    return Unusual(
        row=int(rows.places[one]),
        number=int(rows.numbers[one]),
        arm=int(rows.arms[one]),
        value=float(rows.means[one]),
        against=float(against),
        repeats=int(number),
    )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _far(noise: Noise, num_arms: int, base: _Base, rows: _Rows) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(by how much each row stands out, at most 0 if it does not; the mean of the others; how many they are), (n,)."""
    arms, pulls = rows.arms, rows.pulls.astype(np.float64)
    shift = base.means[arms]
    fresh = base.counts[arms] == 0
    first = np.zeros(num_arms)
    first[arms[::-1]] = rows.means[::-1]
    shift = np.where(fresh, first[arms], shift)
    moved = rows.means - shift
    counts = base.counts[arms] + np.bincount(arms, pulls, num_arms)[arms] - pulls
    sums = np.bincount(arms, pulls * moved, num_arms)[arms] - pulls * moved
    squares = np.bincount(arms, pulls * moved**2 + rows.within, num_arms)[arms] - pulls * moved**2 - rows.within
    mean = np.divide(sums, counts, out=np.zeros_like(sums), where=counts > 0)
    distance, against = np.abs(moved - mean), shift + mean
    within = np.maximum(base.within[arms] + squares - counts * mean**2, 0.0)
    if known_scale(noise):
        scale = scales(noise, num_arms)[arms]
        evidence = surprises(pulls, counts, distance / scale) - math.log(num_arms / FALSE_ALARM)
        settled = (base.counts[arms] > 1) & _contradictory(base, arms, scale)
        return np.where((counts > 0) & ~settled, evidence, -np.inf), against, counts
    enough = counts >= ENOUGH_REPEATS
    deviation = np.sqrt(within / np.maximum(counts - 1.0, 1.0) * (1.0 / pulls + 1.0 / np.maximum(counts, 1.0)))
    limit = np.full(len(arms), np.inf)
    limit[enough] = _student(counts[enough] - 1.0, FALSE_ALARM / num_arms)
    floor = 4.0 * math.sqrt(ROUNDING) * np.abs(against)  # below it rounding is all that there is
    away = distance - np.maximum(limit * deviation, floor)
    return np.where(enough & (deviation > 0.0), away, -np.inf), against, counts


def _contradictory(base: _Base, arms: IntArray, scale: FloatArray) -> BoolArray:
    """Whether what is known of a candidate disagrees with itself already: then it says nothing of another result."""
    freedom, margin = np.maximum(base.counts[arms] - 1.0, 1.0), math.log(1.0 / FALSE_ALARM)
    return np.asarray(base.within[arms] > scale**2 * (freedom + 2.0 * np.sqrt(freedom * margin) + 2.0 * margin))


def _student(freedom: FloatArray, level: float) -> FloatArray:
    """The distance, in standard deviations, that a t variable exceeds with that probability, on either side."""
    each, places = np.unique(freedom, return_inverse=True)
    return np.asarray(-special.stdtrit(each, level / 2.0), np.float64)[places]


# beside other candidates


def _beside_others(noise: Noise, num_arms: int, base: _Base, rows: _Rows, known: set[int]) -> list[Unusual]:
    """The rows of candidates that have one result, which looks like those of the others with its point elsewhere.

    Asked about is a result v that times 10, 100, 1000 or -1, or divided by them, is as large as the others are, or that
    is FAR times as large; and SCALES_APART scales away; if there are at least ENOUGH_OTHERS others, of one sign, whose
    largest is at most ALIKE times the smallest, and that is SCALES_APART scales. One in SLIPPED of the others may be a
    slip as well, one in UNLIKE anything. Nobody is asked about 0.
    """
    everything = _Base(base.counts.copy(), base.means.copy(), base.within.copy())
    everything.add(rows)
    there = np.flatnonzero(everything.counts > 0)
    if len(there) <= ENOUGH_OTHERS:
        return []
    middle = float(np.median(everything.means[there]))
    signed = everything.means[there] * math.copysign(1.0, middle)
    scale = np.asarray(scales(noise, num_arms))[there] if known_scale(noise) else np.zeros(len(there))
    alone = (everything.counts[there] == 1) & (base.counts[there] == 0) & (signed != 0.0)
    odd = alone & ((signed > 2.0 * abs(middle)) | (signed < 0.5 * abs(middle)))
    if middle == 0.0 or np.count_nonzero(odd) > 1 + len(there) // SLIPPED:
        return []
    found = []
    for place in np.flatnonzero(odd).tolist():
        arm = int(there[place])
        nearest = None if arm in known else _nearest_of_alike(np.delete(signed, place), signed[place], scale[place])
        if nearest is not None:
            against = math.copysign(nearest, middle)
            found += [_unusual(rows, one, against, 0) for one in np.flatnonzero(rows.arms == arm).tolist()]
    return found


def _nearest_of_alike(others: FloatArray, value: float, scale: float) -> float | None:
    """The one of the others that is nearest to a value that looks like a slip of them; None if it does not."""
    number, ordered = len(others), np.sort(others)
    if number < ENOUGH_OTHERS:
        return None
    spare = NOISE_SCALES * scale
    ends = np.searchsorted(ordered, ALIKE * (ordered + spare) + spare, side="right")
    sizes = np.where(ordered > 0.0, ends - np.arange(number), 0)
    first = int(np.argmax(sizes))
    alike = ordered[first : first + int(sizes[first])]
    if len(alike) < max(ENOUGH_OTHERS - 1, number - number // SLIPPED):  # with one slip in five
        return None
    low, high = float(alike[0]), float(alike[-1])
    if low < SCALES_APART * scale:  # noise alone changes the size
        return None
    rest = np.concatenate([ordered[:first], ordered[first + len(alike) :]])
    if number - len(alike) - sum(_slipped(float(one), low, high, scale) for one in rest) > number // UNLIKE:
        return None
    nearest = low if value < low else high
    return nearest if _slipped(value, low, high, scale) and abs(value - nearest) > SCALES_APART * scale else None


def _slipped(value: float, low: float, high: float, scale: float) -> bool:
    """Whether a result looks like one between those two with its point, or its sign, in the wrong place."""
    least, most = min(low, high / ALIKE) - NOISE_SCALES * scale, max(high, ALIKE * low) + NOISE_SCALES * scale
    return abs(value) > FAR * high or any(least <= value / shift <= most for shift in SHIFTS)


# words


def refusal(found: Sequence[Unusual], ids: Sequence[str]) -> UnusualResult:
    """The question, as the error that `Study.tell` raises."""
    worst = found[0]
    before = ", reported before in this round," if worst.row < 0 else ""
    found_here = f"{worst.value:.6g} of {quoted(ids[worst.arm])}{before}"
    more = f"; {len(found) - 1} more stand out" if len(found) > 1 else ""
    mend = "undo it (surepick undo)" if worst.row < 0 else "correct it"
    return UnusualResult(
        f"{found_here} stands out: {_beside(worst)}{more}. Is it a typing error? Nothing of this call was "
        f"stored. If it is one, {mend}; if it is what was read, give the same again with --accept-unusual "
        "(accept_unusual=True).",
        rows=tuple(one.row for one in found if one.row >= 0),
        beside=tuple((one.against, _beside(one)) for one in found if one.row >= 0),
    )


def _beside(one: Unusual) -> str:
    """Beside what it stands out."""
    what = "the nearest of the other candidates is at"
    if one.repeats == LIMITED:
        what = "no result is above" if one.value > one.against else "no result is below"
    elif one.repeats:
        what = "its other result is" if one.repeats == 1 else f"its {one.repeats} other results average"
    return f"{what} {one.against:.6g}"


# --- When the repeats of a study speak against the scale that it declares: in every policy, from what was told.

FALSE_CONTRADICTION = 1e-6  # of a study, at all times together


def _declared(policy: Policy[Any]) -> list[tuple[str, int, FloatArray]]:
    """(name, place, scales) of what declares a scale, the reward at -1; () where repeats differ for other reasons."""
    if policy.traits.blocks is not None or policy.traits.items is not None:
        return []
    problem = policy.problem
    constraints = enumerate(constraints_of(problem.question))
    found = [("", -1, problem.noise), *((one.name, place, one.noise) for place, one in constraints)]
    return [
        (name, place, np.asarray(scales(noise, problem.num_arms)))
        for name, place, noise in found
        if noise is not None and known_scale(noise) and noise.support is None  # else a policy looks, or bounds hold
    ]


def doubtful_repeats(policy: Policy[Any], seen: Observations) -> IntArray:
    """In which of n studies without constraints `Repeats` may find something in all that was told, (n, K)."""
    declared = _declared(policy)
    if not declared:
        return np.empty(0, np.int64)
    return np.flatnonzero(most_of_spread(seen, declared[0][2]) >= -math.log(FALSE_CONTRADICTION))


class Repeats:
    """All that was told in the judged plans of a study, and what was found in it against declared scales."""

    def __init__(self, policy: Policy[Any], seen: Observations | None = None, found: str = "") -> None:
        self._policy = policy
        self._declared = _declared(policy)
        self._seen = seen
        self.found = found

    def forget(self) -> None:
        """Begin anew: what was told is another."""
        self._seen, self.found = None, ""

    def after(self, seen: Observations) -> str:
        """What was found so far, with one more plan; "" for nothing (docs/certified-elimination.md, line 35)."""
        if self.found or not self._declared:
            return self.found
        news = with_least_squares(seen)
        self._seen = news if self._seen is None else self._seen.plus(news)
        for name, place, each in self._declared:
            beside = () if place < 0 else self._seen.quantities or ()
            totals = self._seen if place < 0 else beside[place].observations if place < len(beside) else None
            least = -math.log(FALSE_CONTRADICTION / len(self._declared))
            if totals is None or most_of_spread(totals, each) < least:
                continue
            spread = spread_of(totals, each)
            if spread.evidence >= least:
                self.found = self._words(name, totals, spread.worst, float(spread.within[spread.worst]), each)
                break
        return self.found

    def _words(self, name: str, totals: Observations, arm: int, within: float, each: FloatArray) -> str:
        arms, number = self._policy.problem.arms, int(totals.counts[arm])
        who = f"number {arm}" if arms is None else quoted(arms.ids[arm])
        what = f" of {quoted(name)}" if name else ""
        deviation = math.sqrt(within / max(number - 1, 1))
        return (
            f"repeats{what} lie farther apart than the declared noise allows, most of all {number} results of {who}, "
            f"whose standard deviation is {deviation:.4g} where a scale of {each[arm]:g} is declared"
        )
