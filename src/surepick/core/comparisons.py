"""The intervals that decide: what an algorithm compared, candidate by candidate, when it judged a batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record


@record
class CandidateBounds:
    """What the test of one candidate of a certifying policy says of each rival, since it was opened.

    Args:
        candidate: c.
        bets: sum of t over the batches, shape (K,), in 1 / reward units.
        drawn: sum of t xhat over the batches, shape (K,).
        bounds: the smallest U_j so far: h_j - h_c is at most this, shape (K,); infinite where nothing is known.
        leads: the estimate of h_c - h_j when that bound was reached, shape (K,).
        log_e_values: log of p_c E_j with the bets of every batch, on rejected rivals too, shape (K,).

    Source: docs/certified-elimination.md, line 10.
    """

    candidate: int
    bets: FloatArray
    drawn: FloatArray
    bounds: FloatArray
    leads: FloatArray
    log_e_values: FloatArray

    def __post_init__(self) -> None:
        freeze(self, bets=np.float64, drawn=np.float64, bounds=np.float64, leads=np.float64, log_e_values=np.float64)


@record
class Intervals:
    """What was compared at one look.

        an arm no longer stands in the way when   lead - width >= -allowed,   that is when its margin >= 0

    lead - width is the lower end of the interval for h_comparator - h_arm; so the arm is at most width - lead better
    than its comparator. What an elimination proves is "not the best", not that the comparator is better than others;
    what the test of a candidate proves is "not better than it by more than epsilon". Each holds for one arm at a time.

    Args:
        arms: the arms compared, ascending, shape (m,).
        comparators: what each was compared with, shape (m,); -1 if with nothing.
        leads: estimates of h_comparator - h_arm, shape (m,), in reward units; none lies below lead - width.
        widths: their uncertainty, not negative, shape (m,), infinite where nothing is known.
        margins: lead - width + allowed, shape (m,).
        allowed: the shortfall that is tolerated in each comparison, shape (m,): 0 where arms are ruled out, epsilon
            where the answer is certified.
        candidates: what a certifying policy needs for the next look.
    """

    arms: IntArray
    comparators: IntArray
    leads: FloatArray
    widths: FloatArray
    margins: FloatArray
    allowed: FloatArray
    candidates: tuple[CandidateBounds, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, arms=np.int64, comparators=np.int64)
        freeze(self, leads=np.float64, widths=np.float64, margins=np.float64, allowed=np.float64)


Deciding = Callable[[Intervals | None], Intervals]  # the intervals of the look before -> those of this one


def against(
    comparator: int, arms: IntArray, *, leads: FloatArray, widths: FloatArray, allowed: float | FloatArray
) -> Intervals:
    """Intervals of arms that were all compared with one comparator.

    Args:
        arms: the arms compared, ascending, shape (m,).
        leads, widths: shape (m,).
        allowed: one number, or one per arm.
    """
    tolerated = np.broadcast_to(np.asarray(allowed, np.float64), arms.shape)
    return Intervals(arms, np.full(len(arms), comparator), leads, widths, leads - widths + tolerated, tolerated)
