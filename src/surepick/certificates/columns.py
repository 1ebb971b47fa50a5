"""Columns of a certificate: numbers of all candidates or of some, to JSON data and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.comparisons import Intervals
from surepick.core.observations import Observations


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


def plain_number(value: float | None) -> float | None:
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


def sparse(counts: IntArray) -> dict[str, Any]:
    """Counts as {"arms": ..., "pulls": ...}: those that are not 0; `dense` reads them."""
    arms = np.flatnonzero(counts)
    return {"arms": arms.tolist(), "pulls": counts[arms].tolist()}


def widths_of(intervals: Intervals | None) -> dict[str, float] | None:
    """The narrowest and the widest interval of a look."""
    known = np.empty(0) if intervals is None else intervals.widths[np.isfinite(intervals.widths)]
    return None if len(known) == 0 else {"least": float(known.min()), "largest": float(known.max())}


def dense(columns: Mapping[str, Any], num_arms: int) -> IntArray:
    """Counts of all arms from {"arms": ..., "pulls": ...}.

    Raises:
        ValueError: arms out of range, twice or not ascending, or counts below 1 or too large to add up.
    """
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
