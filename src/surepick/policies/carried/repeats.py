"""Which arms get repeats where scales are unknown and features are used. Validity rests on none of it.

A pull of an arm whose variance has no bound is no evidence, so that few arms are measured, each often enough.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import scipy.linalg

from surepick.core.arrays import BoolArray, FloatArray, IntArray
from surepick.estimators.normal_mgf import joint_failure, least_chi_squares
from surepick.linalg.farthest_first import farthest_first
from surepick.noise import failure_probability, known_scale
from surepick.policies.base import Problem

HEURISTIC_CRUDE = 40.0  # times the usual variance of repeats: a bound that is worth having
HEURISTIC_WORTH = 2.0  # times the repeats for a bound: what an arm without one must be planned to get in all
MOST_REPEATS = 100
MOST_CHECK_PULLS = 64
AVOIDED = 100.0  # times its scale: what makes a design avoid an arm
CUT = 1e-6  # of the longest direction: below it an arm adds none


@lru_cache(maxsize=64)
def repeats_for(failure: float) -> int:
    """Pulls of an arm after which the bound on its variance is usually at most 40 times the variance.

    Args:
        failure: of the bound, in (0, 1).
    """
    freedom = np.arange(1, MOST_REPEATS)
    enough = HEURISTIC_CRUDE * least_chi_squares(freedom, failure) >= freedom
    return int(np.argmax(enough)) + 2 if enough.any() else MOST_REPEATS


def least(problem: Problem) -> int:
    """Pulls of an arm after which its pulls may enter the processes of others."""
    if known_scale(problem.noise):
        return 1
    return repeats_for(joint_failure(failure_probability(problem.noise, problem.delta), problem.num_arms))


def spanning(rows: FloatArray) -> IntArray:
    """As few of the rows as span them all, each the one that adds most to those before it, ascending.

    Args:
        rows: shape (p, r).

    Source: QR with column pivoting (Businger and Golub 1965). Cost: O(p r^2).
    """
    if len(rows) == 0:
        return np.empty(0, np.int64)
    triangle, order = scipy.linalg.qr(rows.T, mode="r", pivoting=True)
    lengths = np.abs(np.diag(triangle))
    rank = int(np.count_nonzero(lengths > CUT * lengths.max(initial=0.0)))
    return np.sort(order[:rank]).astype(np.int64)


def spans(rows: FloatArray) -> bool:
    """Whether rows of r entries span all r directions."""
    return bool(len(spanning(rows)) == rows.shape[1])


def unworthy(pulls: FloatArray, bounded: BoolArray, white: FloatArray, needed: int) -> BoolArray:
    """The arms without a bound that had better stay so, shape (K,); none where the others do not see every direction.

    Args:
        pulls: that are planned for all that is still to come, shape (K,).
        bounded: which arms have a bound, shape (K,).
        white: coordinates in which the arms span all directions, shape (K, r).
        needed: repeats for a bound.
    """
    few = ~bounded & (pulls < HEURISTIC_WORTH * needed)
    if not np.any(few & (pulls > 0.0)) or not spans(white[~few]):
        return np.zeros(len(few), bool)
    return few


def completed(counts: IntArray, seen: IntArray, bounded: BoolArray, needed: int, limit: int | None) -> IntArray:
    """The pulls of a plan in which each arm without a bound gets the repeats that it lacks.

    Args:
        counts: shape (K,).
        seen: pulls so far, shape (K,).
        bounded: which arms have a bound, shape (K,).
        needed: repeats for a bound.
        limit: most pulls, or those that were planned if these are more: arms that were to get fewest wait; None: none.
    """
    short = np.flatnonzero((counts > 0) & ~bounded)
    found = np.array(counts)
    found[short] = np.maximum(counts[short], needed - seen[short])
    for arm in short[np.argsort(counts[short], kind="stable")].tolist():
        if limit is None or found.sum() <= max(limit, counts.sum()):
            break
        found[arm] = counts[arm]
    return found


def lacking(seen: IntArray, white: FloatArray, needed: int) -> IntArray:
    """What some arms that were begun lack, as few of them as span what all of those span, shape (K,).

    Those with the most pulls are preferred.
    """
    chosen = np.flatnonzero(seen)
    chosen = chosen[spanning(np.sqrt(seen[chosen])[:, None] * white[chosen])]
    left = np.zeros_like(seen)
    left[chosen] = np.maximum(needed - seen[chosen], 0)
    return left


def check_repeats(
    vectors: FloatArray,
    counts: IntArray,
    seen: IntArray,
    bounded: BoolArray,
    needed: int,
    share: float,
    costs: FloatArray | None,
) -> IntArray:
    """Pulls of arms apart from a plan's, so that a lack of fit can show: at most `share` of its pulls, and their cost.

    Half of them are single ones of arms that have a bound, spread over the set; the others go on with one arm without
    until it has one, since a lack of fit can show only against a bound.

    Args:
        vectors: of the arms, shape (K, d).
        counts: the plan, shape (K,).
        seen: pulls so far, shape (K,).
        bounded: which arms have a bound, shape (K,).
        needed: repeats for a bound.
        share: in [0, 1).
        costs: of a pull of each arm, shape (K,); None: all alike.

    Returns:
        Extra pulls, shape (K,).
    """
    extra, pulled = np.zeros_like(counts), counts > 0
    room = min(int(share * counts.sum()), MOST_CHECK_PULLS)
    money = math.inf if costs is None else share * float(counts @ costs)
    price = np.ones(len(counts)) if costs is None else costs
    if room == 0:
        return extra
    known = farthest_first(vectors, np.flatnonzero(pulled), ~pulled & bounded, (room + 1) // 2)
    for arm in known[np.cumsum(price[known]) <= money].tolist():
        extra[arm] = 1
    money -= float(extra @ price)
    room -= int(extra.sum())
    free = ~pulled & ~bounded
    while room > 0 and free.any():
        begun = np.where(free, seen, 0)
        arm = int(np.argmax(begun))
        if begun[arm] == 0:
            arm = int(farthest_first(vectors, np.flatnonzero(pulled), free, 1)[0])
        free[arm] = False
        number = min(room, max(needed - int(seen[arm]), 1), math.floor(min(money / price[arm], room)))
        if number < 1:
            break
        extra[arm] = number
        room, money = room - number, money - number * float(price[arm])
    return extra
