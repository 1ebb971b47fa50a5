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
Leading = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray]]  # rivals, arms -> leads, widths of each pair
BLOCK_PAIRS = 4_000_000


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


def intervals_after(
    leading: Leading | None, leader: int, active: IntArray, survivors: IntArray, *, epsilon: float | None
) -> Deciding:
    """Gives what decided for each arm: the comparator that rules it out most clearly, or the leader that it might beat.

    Args:
        leading: what was compared; None where nothing could be.
        leader: the arm that would be recommended, a survivor.
        active: the arms in question before the look, ascending.
        survivors: those that stayed.
        epsilon: the leader is certified when nobody can be better by more; None where only ruling out counts.

    Cost: O(|active| |survivors| d) at worst, blocks of bounded memory.
    """

    def deciding(_: Intervals | None) -> Intervals:
        if leading is None:
            nothing = np.full(len(active), np.nan)
            return Intervals(active, np.full(len(active), -1), nothing, nothing, nothing, np.zeros(len(active)))
        arms = active[active != leader]
        staying = np.isin(arms, survivors) & (epsilon is not None)
        comparators, leads, widths = np.full(len(arms), leader), np.empty(len(arms)), np.empty(len(arms))
        leads[staying], widths[staying] = (row[0] for row in leading(np.array([leader]), arms[staying]))
        comparators[~staying], leads[~staying], widths[~staying] = _clearest(leading, survivors, arms[~staying])
        allowed = np.where(staying, epsilon or 0.0, 0.0)
        return Intervals(arms, comparators, leads, widths, leads - widths + allowed, allowed)

    return deciding


def _clearest(leading: Leading, rivals: IntArray, arms: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """(comparator of the largest lead - width, lead, width) of each arm; -1 where no rival has the higher score."""
    comparators, leads, widths = np.empty(len(arms), np.int64), np.empty(len(arms)), np.empty(len(arms))
    step = max(1, BLOCK_PAIRS // max(len(rivals), 1))
    for first in range(0, len(arms), step):
        block = slice(first, first + step)
        lead, width = leading(rivals, arms[block])
        best = np.argmax(np.where(lead > 0.0, lead - width, -np.inf), axis=0)
        lead, width = (np.take_along_axis(pairs, best[None], axis=0)[0] for pairs in (lead, width))
        comparators[block] = np.where(lead > 0.0, rivals[best], -1)
        leads[block], widths[block] = (np.where(lead > 0.0, values, np.nan) for values in (lead, width))
    return comparators, leads, widths
