"""Answers to test items, what blocks had, and who was withdrawn, in a certificate: to JSON data and back."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick.core.observations import Answers, BlockTotals, Observations
from surepick.core.plans import Intervals, Plan
from surepick.core.records import FloatArray, IntArray, first_difference
from surepick.studies.logs.base import Addition, Correction, Withdrawal
from surepick.studies.replay import Closed

MOST = 2**53
ROUNDING = 1e-9  # of the sums of absolute values: each block's sum is rounded by itself
CORRECTED = ("arm", "typed", "read", "reason", "at")  # what is said of a correction beside the plan


def answers_entry(plan: Plan, seen: Observations) -> dict[str, Any]:
    """The items that a plan asked for, and each answer; nothing where measurements are draws."""
    if plan.first_items is None or seen.answers is None:
        return {}
    found = seen.answers
    columns = {"arms": found.arms.tolist(), "items": found.items.tolist(), "scores": found.scores.tolist()}
    return {"first_items": plan.first_items.tolist(), "answers": columns}


def with_answers(seen: Observations, look: Mapping[str, Any], num_arms: int) -> Observations:
    """What was received, with its single answers where the look has some."""
    if "answers" not in look:
        return seen
    columns = look["answers"]
    arms, items, scores = (columns[name] for name in ("arms", "items", "scores"))
    whole = all(type(entry) is int and entry >= 0 for entry in (*arms, *items))
    if not (whole and len(arms) == len(items) == len(scores) and all(arm < num_arms for arm in arms)):
        raise ValueError(f"plan {look['plan']}: the answers are not one candidate, item and score each")
    if not all(isinstance(score, float) and 0.0 <= score <= 1.0 for score in scores):
        raise ValueError(f"plan {look['plan']}: a score is no number between 0 and 1")
    own: list[list[float]] = [[] for _ in range(num_arms)]
    for arm, score in zip(arms, scores, strict=True):
        own[arm].append(score)
    sums = np.array([math.fsum(each) for each in own])
    if not (np.array_equal([len(each) for each in own], seen.counts) and np.array_equal(sums, seen.sums)):
        raise ValueError(f"plan {look['plan']}: the answers do not add up to the totals")
    answers = Answers(np.array(arms, np.int64), np.array(items, np.int64), np.array(scores))
    return replace(seen, answers=answers)


def blocks_entry(seen: Observations, *, minimize: bool) -> dict[str, Any]:
    """What each block had, in the user's sign; nothing where results name no blocks."""
    if seen.blocks is None:
        return {}
    found, sign = seen.blocks, -1.0 if minimize else 1.0
    columns = {"blocks": found.blocks, "arms": found.arms, "pulls": found.counts, "sums": sign * found.sums}
    return {"blocks": {name: column.tolist() for name, column in columns.items()}}


def with_blocks(seen: Observations, look: Mapping[str, Any], *, wanted: bool, minimize: bool) -> Observations:
    """What was received, with what each block had."""
    number = look["plan"]
    if ("blocks" in look) != (wanted and seen.total > 0):
        raise ValueError(f"plan {number}: results {'do not name their blocks' if wanted else 'name blocks'}")
    if "blocks" not in look:
        return seen
    columns = look["blocks"]
    blocks, arms, pulls, sums = (columns[name] for name in ("blocks", "arms", "pulls", "sums"))
    whole = all(type(entry) is int and entry >= 0 for entry in (*blocks, *arms, *pulls))
    cells = list(zip(blocks, arms, strict=True)) if len(blocks) == len(arms) == len(pulls) == len(sums) else []
    known = sorted(set(blocks)) == list(range(len(set(blocks)))) if whole else False
    if not (known and cells and cells == sorted(set(cells)) and max(arms) < len(seen.counts) and min(pulls) > 0):
        raise ValueError(f"plan {number}: what blocks had is not one block, candidate, number and sum each")
    if max(pulls) > MOST or not all(isinstance(total, float) and math.isfinite(total) for total in sums):
        raise ValueError(f"plan {number}: a sum of a block is no number")
    sign = -1.0 if minimize else 1.0
    totals = BlockTotals(np.array(blocks), np.array(arms), np.array(pulls), sign * np.array(sums))
    size = len(seen.counts)
    counts = np.bincount(totals.arms, totals.counts, minlength=size)
    added = np.bincount(totals.arms, totals.sums, minlength=size)
    scale = np.bincount(totals.arms, np.abs(totals.sums), minlength=size)
    if not (np.array_equal(counts, seen.counts) and np.all(np.abs(added - seen.sums) <= ROUNDING * scale)):
        raise ValueError(f"plan {number}: the blocks do not add up to the totals")
    return replace(seen, blocks=totals)


def additions_of(look: Mapping[str, Any], waiting: set[int]) -> tuple[Addition, ...]:
    """The candidates that came after a look."""
    found: list[Addition] = []
    for entry in look["added"]:
        arm, at = entry["arm"], entry["at"]
        known = type(arm) is int and arm in waiting and isinstance(at, float) and math.isfinite(at)
        if not known or set(entry) != {"arm", "at"} or (found and arm <= found[-1].arm):
            raise ValueError(f"plan {look['plan']}: who came is not one of those who may, and a time, ascending")
        found.append(Addition(arm, at))
    waiting.difference_update(one.arm for one in found)
    return tuple(found)


def withdrawals_of(look: Mapping[str, Any], num_arms: int, before: set[int]) -> tuple[Withdrawal, ...]:
    """The candidates that were withdrawn after a look."""
    number = look.get("plan", "that was open")
    found: list[Withdrawal] = []
    for entry in look["withdrawn"]:
        arm, reason, at = entry["arm"], entry["reason"], entry["at"]
        known = type(arm) is int and 0 <= arm < num_arms and arm not in before
        if not known or set(entry) != {"arm", "reason", "at"} or (found and arm <= found[-1].arm):
            raise ValueError(f"plan {number}: who was withdrawn is not one candidate, reason and time each, ascending")
        if not (isinstance(reason, str) and reason and isinstance(at, float) and math.isfinite(at)):
            raise ValueError(f"plan {number}: a withdrawal has no reason or no time")
        found.append(Withdrawal(arm, reason, at))
    before.update(one.arm for one in found)
    return tuple(found)


def corrections_entry(look: Closed, *, minimize: bool) -> dict[str, Any]:
    """What was corrected with a look, and the totals of its plans with what was read; nothing where nothing was."""
    if not look.past:
        return {}
    made = look.deviations.corrected
    texts = [{"plan": one.of, **{name: getattr(one, name) for name in CORRECTED}} for one in made]
    retold = []
    for one in (look.past[number - 1] for number in sorted({one.of for one in made})):
        beside = answers_entry(one.plan, one.seen) | blocks_entry(one.seen, minimize=minimize)
        beside.pop("first_items", None)
        retold.append({"plan": one.number, "told": totals_of(one.seen, minimize=minimize), **beside})
    return {"corrections": texts, "retold": retold}


def corrections_of(look: Mapping[str, Any], num_arms: int) -> tuple[Correction, ...]:
    """What was corrected with a look."""
    found: list[Correction] = []
    for entry in look.get("corrections", ()):
        of, arm, typed, read, at = (entry[name] for name in ("plan", "arm", "typed", "read", "at"))
        known = type(of) is int and 1 <= of < look["plan"] and type(arm) is int and 0 <= arm < num_arms
        numbers = all(isinstance(one, float) and math.isfinite(one) for one in (typed, read, at))
        if not (known and numbers and isinstance(entry["reason"], str) and set(entry) == {"plan", *CORRECTED}):
            raise ValueError(
                f"plan {look['plan']}: a correction is not an earlier plan, a candidate, two values, reason and time"
            )
        found.append(Correction(look["plan"], 0, of, arm, typed, read, entry["reason"], at=at))
    return tuple(found)


def check_corrected(before: Observations, after: Observations, made: Sequence[Correction], *, minimize: bool) -> None:
    """Refuse totals of a plan that its corrections do not lead to."""
    arms, sign = [one.arm for one in made], -1.0 if minimize else 1.0
    others = np.setdiff1d(np.arange(len(before.counts)), arms)
    same = np.array_equal(before.counts, after.counts) and np.array_equal(before.sums[others], after.sums[others])
    for arm in set(arms):
        values = [(one.typed, one.read) for one in made if one.arm == arm]
        scale = sum(abs(typed) + abs(read) for typed, read in values) + abs(before.sums[arm])
        moved = sign * sum(read - typed for typed, read in values)
        same &= bool(abs(after.sums[arm] - before.sums[arm] - moved) <= ROUNDING * scale)
    if not same:
        raise ValueError(f"the corrections of plan {made[0].of} do not lead to the totals that are said to follow")


# --- Where a certificate differs from the computed one, in words.

PARTS = ("leads", "widths", "margins")  # of an interval


@dataclass(frozen=True, slots=True)
class DocumentComparison:
    """How values are compared; the parts of an interval on the scale of the largest of them and of epsilon."""

    tolerance: float
    epsilon: float

    def difference(self, stored: Any, again: Any, where: str) -> str:
        """Where they differ, "" where they agree."""
        if isinstance(stored, dict) and isinstance(again, dict):
            return self._fields_differ(stored, again, where)
        if isinstance(stored, list) and isinstance(again, list) and any(isinstance(one, dict) for one in again):
            if len(stored) != len(again):
                return f"{where} has {len(stored)} entries, and {len(again)} are computed"
            pairs = enumerate(zip(stored, again, strict=True))
            return next(filter(None, (self.difference(*pair, f"{where}[{row}]") for row, pair in pairs)), "")
        return first_difference(stored, again, self.tolerance, where)

    def _fields_differ(self, stored: dict[str, Any], again: dict[str, Any], where: str) -> str:
        scales = self._scales(again)
        for name in [*stored, *(name for name in again if name not in stored)]:
            place = f"{where}.{name}"
            if name not in stored or name not in again:
                return f"{place} is {'unknown' if name in stored else 'missing'}"
            if name in PARTS and isinstance(again[name], list):
                wrong = self._parts_differ(stored[name], again[name], scales, place)
            else:
                wrong = self.difference(stored[name], again[name], place)
            if wrong:
                return wrong
        return ""

    def _scales(self, entry: Mapping[str, Any]) -> list[float]:
        columns = [entry[name] for name in PARTS if isinstance(entry.get(name), list)]
        return [
            max([self.epsilon, *(abs(one) for one in row if one is not None)]) for row in zip(*columns, strict=False)
        ]

    def _parts_differ(self, stored: Any, again: list[float | None], scales: list[float], where: str) -> str:
        if not isinstance(stored, list) or len(stored) != len(again):
            return f"{where} is not a list of {len(again)} numbers"
        for row, (theirs, ours, scale) in enumerate(zip(stored, again, scales, strict=True)):
            if ours is None or theirs is None:
                same = ours is theirs
            else:
                near = isinstance(theirs, float) and abs(theirs - ours) <= self.tolerance * scale
                same = near and (not where.endswith("margins") or (theirs < 0.0) == (ours < 0.0))
            if not same:
                return f"{where}[{row}] is stored as {theirs!r} and computed as {ours!r}"
        return ""


# --- Columns of a certificate: numbers of all candidates or of some, to JSON data and back.


class LastIntervals:
    """For every arm the interval of the last look at which it was in question, or was compared with another witness."""

    def __init__(self, num_arms: int) -> None:
        self.known = False
        self._plans = np.zeros(num_arms, np.int64)
        self._witnesses = np.full(num_arms, -1)
        self._numbers = {name: np.full(num_arms, np.nan) for name in ("leads", "widths", "margins", "allowed")}

    def add(self, plan: int, intervals: Intervals, in_question: IntArray) -> None:
        self.known = True
        fresh = np.isin(intervals.arms, in_question) | (self._witnesses[intervals.arms] != intervals.comparators)
        arms = intervals.arms[fresh]
        self._plans[arms] = plan
        self._witnesses[arms] = intervals.comparators[fresh]
        for name, column in self._numbers.items():
            column[arms] = getattr(intervals, name)[fresh]

    def entry(self) -> dict[str, Any]:
        columns = {name: plain_numbers(column) for name, column in self._numbers.items()}
        return {"plans": self._plans.tolist(), "witnesses": self._witnesses.tolist(), **columns}


def plain_numbers(values: FloatArray) -> list[float | None]:
    """The numbers, None in place of those that are not finite."""
    return [value if known else None for value, known in zip(values.tolist(), np.isfinite(values), strict=True)]


def plain_cell(value: float | None) -> float | None:
    """The number as a plain one."""
    return None if value is None else float(value)


def totals_of(seen: Observations, *, minimize: bool) -> dict[str, Any]:
    """What was received, in the user's sign."""
    arms = np.flatnonzero(seen.counts)
    sign = -1.0 if minimize else 1.0
    apart = {} if seen.within is None else {"deviations": seen.within[arms].tolist()}
    apart |= {} if seen.rests is None else {"rests": (sign * seen.rests[arms]).tolist()}
    return {
        "arms": arms.tolist(),
        "pulls": seen.counts[arms].tolist(),
        "sums": (sign * seen.sums[arms]).tolist(),
        "squares": None if seen.squares is None else seen.squares[arms].tolist(),
        **apart,
    }


def measured_in(looks: Iterable[Observations]) -> dict[int, int]:
    """Pulls of all looks together, by arm; arms without any are left out."""
    pulls: Counter[int] = Counter()
    for seen in looks:
        arms = np.flatnonzero(seen.counts)
        pulls.update(dict(zip(arms.tolist(), seen.counts[arms].tolist(), strict=True)))
    return dict(pulls)


def sparse_column(counts: IntArray) -> dict[str, Any]:
    """Counts as {"arms": ..., "pulls": ...}: those that are not 0; `dense` reads them."""
    arms = np.flatnonzero(counts)
    return {"arms": arms.tolist(), "pulls": counts[arms].tolist()}


def widths_of(intervals: Intervals | None) -> dict[str, float] | None:
    """The narrowest and the widest interval of a look."""
    known = np.empty(0) if intervals is None else intervals.widths[np.isfinite(intervals.widths)]
    return None if len(known) == 0 else {"least": float(known.min()), "largest": float(known.max())}


def dense(columns: Mapping[str, Any], num_arms: int) -> IntArray:
    """Counts of all arms from {"arms": ..., "pulls": ...}."""
    arms, pulls = _whole(columns["arms"]), _whole(columns["pulls"])
    if len(arms) != len(pulls) or np.any(np.diff(arms) <= 0) or np.any(pulls < 1):
        raise ValueError("candidates must be ascending, each with at least one measurement")
    if len(arms) and not (arms[0] >= 0 and arms[-1] < num_arms):
        raise ValueError(f"there is no candidate {max(arms.tolist(), key=abs)}")
    if sum(columns["pulls"]) > np.iinfo(np.int64).max:
        raise ValueError("there are more measurements than can be counted")
    counts = np.zeros(num_arms, np.int64)
    counts[arms] = pulls
    return counts


def _whole(values: Sequence[int]) -> IntArray:
    if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        raise ValueError("counts and positions must be whole numbers")
    return np.array(values, np.int64).reshape(-1)


def quantities_entry(seen: Observations) -> dict[str, Any]:
    """The totals of what else was measured, one a constraint; nothing where it was the reward alone."""
    if seen.quantities is None:
        return {}
    return {"quantities": [totals_of(one.observations, minimize=False) for one in seen.quantities]}


def check_deviations(counts: IntArray, sums: FloatArray, squares: FloatArray | None, within: FloatArray) -> None:
    """Refuse deviations from the mean that do not go with the other totals, each of shape (K,)."""
    wrong = (within < 0.0) | ~np.isfinite(within) | ((counts < 2) & (within != 0.0))
    if squares is not None:
        implied = within + np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
        wrong |= np.abs(implied - squares) > 1e-6 * squares + ROUNDING
    if wrong.any():
        raise ValueError("deviations of a candidate's results from their mean do not go with their squares")


# --- A line of a verification: what was checked, whether it holds, and what was found.


@dataclass(frozen=True, slots=True)
class Line:
    """One thing that was checked."""

    what: str
    holds: bool
    words: str
