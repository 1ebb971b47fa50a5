"""From e-values of hypotheses to answers. docs/finished-tables.md has the proof; lines are those of that page."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.estimators.table_evidence import TableEvidence

LARGEST_LOG = 600.0  # of an e-value that is added up
HALVINGS = 30
DOUBLINGS = 40


def proved(logs: FloatArray, delta: float) -> BoolArray:
    """Which of "c is better than j" are proved together, (K, K) at [c, j], from logs of e-values of their opposites.

    Of each pair of candidates one opposite at least is true. So of all sets that may be the true ones, each has a mean
    e-value of at most 1 on average, and what no such set with a mean below 1/delta has is proved (line 9). Pairs whose
    log is -inf both ways are not asked.
    """
    first, second = np.triu_indices(len(logs), 1)
    asked = np.isfinite(logs[first, second]) | np.isfinite(logs[second, first])
    one, other = (np.exp(np.minimum(logs[pair], LARGEST_LOG))[asked] for pair in ((first, second), (second, first)))
    low, high = np.minimum(one, other), np.maximum(one, other)
    needed = 1.0 / delta
    threshold = needed + np.sum(np.maximum(needed - low, 0.0)) + np.sum(np.maximum(needed - high, 0.0))
    found: BoolArray = logs >= math.log(threshold)
    return found


def tiers(means: FloatArray, better: BoolArray) -> list[IntArray]:
    """Indices of candidates, tier after tier: the first of each is proved better than all in the tiers below it.

    Args:
        means: larger is better, (K,).
        better: what is proved, as `proved` says it.
    """
    order, found, start = np.argsort(-means, kind="stable"), [], 0
    while start < len(order):
        undecided = np.flatnonzero(~better[order[start], order[start + 1 :]])
        end = start + 1 + (int(undecided[-1]) + 1 if len(undecided) else 0)
        found.append(order[start:end])
        start = end
    return found


def tiers_of_share(means: FloatArray, logs: FloatArray, delta: float) -> list[IntArray]:
    """As `tiers`: of the claims that they make a share of at most delta is wrong on average; logs as in `proved`.

    Each of the r claims has an e-value of at least K (K - 1) / (delta r); K (K - 1) are asked (line 14).
    """
    asked = len(logs) * (len(logs) - 1)
    claims = asked
    while True:
        found = tiers(means, logs >= math.log(asked / (delta * max(claims, 1))))
        made = _claims(found)
        if made >= claims or made == 0:
            return found
        claims = made


def _claims(found: list[IntArray]) -> int:
    """How many "c is better than j" the tiers say: the first of each against all in those below."""
    sizes = [len(tier) for tier in found]
    return sum(sum(sizes[place + 1 :]) for place in range(len(sizes)))


def top(logs: FloatArray, number: int, delta: float) -> tuple[IntArray, IntArray]:
    """(candidates that are surely among the m best, and that are surely not), ascending (line 10)."""
    num_arms = len(logs)
    better = logs >= math.log(number * (num_arms - number) / delta)
    inside = better.sum(axis=1) >= num_arms - number
    return np.flatnonzero(inside), np.flatnonzero(better.sum(axis=0) >= number)


def certified_gap(
    evidence: TableEvidence, candidate: int, rivals: Sequence[int], delta: float, *, range_of_means: float | None
) -> float | None:
    """By how much the candidate is worse than the best at most, if that is a rival or itself (line 5); None: unknown.

    Found by halving, from above, so that what is returned was rejected.
    """
    who = np.array(rivals, np.int64)
    if not len(who):
        return 0.0
    num_arms, threshold = len(evidence.log_best()), math.log(1.0 / delta)
    high = np.full(num_arms, range_of_means or 1.0)
    if range_of_means is None:
        for _ in range(DOUBLINGS):
            short = evidence.log_against(candidate, high)[who] < threshold
            if not short.any():
                break
            high[who[short]] *= 2.0
        else:
            return None
    low = np.zeros(num_arms)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        out = evidence.log_against(candidate, middle) >= threshold
        high, low = np.where(out, middle, high), np.where(out, low, middle)
    return float(high[who].max())
