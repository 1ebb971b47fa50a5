"""The elimination and stopping rules: which arms go, who leads, and by how much the leader can fall short.

For arms x, x' the width is omega(x', x) = offset + multiplier * ||z_x' - z_x||_{A^-1}. One score vector and one
seminorm make the relation "x' rules out x" transitive (triangle inequality), so it is enough to compare with
survivors of higher score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, record
from surepick.core.comparisons import Deciding, Intervals
from surepick.estimators import Estimate
from surepick.policies.elimination.pair_screening import screen_of

BLOCK = 512
HEAD = 32
BLOCK_PAIRS = 4_000_000


Leading = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray]]


@record
class Comparison:
    """What one look at an estimate says.

    Args:
        survivors: indices of the arms not ruled out, ascending.
        leader: the arm of highest score among them.
        gap: the leader is at most this much worse than the best arm (reward units, at least 0); infinite when some
            active arm cannot be compared with it.
        leading: (rivals, arms) -> by how much each rival leads each arm, and how uncertain that is, each of shape
            (len(rivals), len(arms)); None where nothing could be compared.
    """

    survivors: IntArray
    leader: int
    gap: float
    leading: Leading | None = field(default=None, compare=False)


def compare(estimate: Estimate, active: IntArray, *, offset: float, multiplier: float) -> Comparison:
    """Eliminate, recommend, and bound the leader's shortfall (Algorithm 1, line 10, and the epsilon-stop).

        x goes when some x' in S has score(x') > score(x) and score(x') - score(x) >= omega(x', x)
        gap = max over x' in S of score(x') - score(leader) + omega(x', leader)

    On the event that no score difference to the best arm errs beyond omega, the best arm stays, and the leader is
    within `gap` of it.

    Args:
        estimate: scores and distances of one batch.
        active: S, indices of the arms in question.
        offset: the part of the width that every pair has, 2 gamma-tilde, in reward units.
        multiplier: the part per unit of distance, gamma-tilde sqrt(N) + sigma sqrt(2 L).

    Source: Algorithm 1, line 10.
    Differs from the paper: strictly higher score is required, so that equal arms cannot rule out one another; scores
    closer than their rounding count as equal. The set can never become empty: the leader has no higher score above it.
    Cost: O(|S| * survivors * d) at worst, which is one matrix product for least squares (`Screen`); blocks of bounded
        memory.
    """
    scores = estimate.scores
    comparable = estimate.comparable[active]
    if not comparable.any():
        return Comparison(active, int(active[0]), 0.0 if len(active) == 1 else np.inf)
    ranked = active[comparable]
    ranked = ranked[np.lexsort((ranked, -scores[ranked]))]
    leader = int(ranked[0])
    rounding = 16.0 * np.finfo(np.float64).eps * float(np.max(np.abs(scores[ranked])))
    rule = Rule(estimate, offset, multiplier, rounding)
    kept = _not_ruled_out(rule, ranked)
    survivors = np.sort(np.concatenate([kept, active[~comparable]]))
    return Comparison(survivors, leader, _gap(estimate, active, leader, offset, multiplier), rule.leading)


@dataclass(frozen=True, slots=True)
class Rule:
    """lead > rounding and lead >= offset + multiplier * distance."""

    estimate: Estimate
    offset: float
    multiplier: float
    rounding: float

    def rules_out(self, rivals: IntArray, arms: IntArray) -> BoolArray:
        """Which of `arms` some arm of `rivals` rules out, shape (len(arms),)."""
        if len(rivals) == 0 or len(arms) == 0:
            return np.zeros(len(arms), bool)
        leads, widths = self.leading(rivals, arms)
        ruled_out: BoolArray = np.any((leads > self.rounding) & (leads >= widths), axis=0)
        return ruled_out

    def leading(self, rivals: IntArray, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        """(leads, widths) of each rival over each arm, shape (len(rivals), len(arms))."""
        leads = self.estimate.scores[rivals][:, None] - self.estimate.scores[arms][None, :]
        return leads, self.offset + self.multiplier * self.estimate.distances(rivals, arms)


def _not_ruled_out(rule: Rule, ranked: IntArray) -> IntArray:
    """The arms of `ranked` (decreasing score) that no arm of higher score rules out."""
    kept = ranked[:0]
    screen = screen_of(rule.estimate, ranked, offset=rule.offset, multiplier=rule.multiplier)
    for start in range(0, len(ranked), BLOCK):
        block = ranked[start : start + BLOCK]
        block = block[~rule.rules_out(kept[:HEAD], block)]
        rivals = np.concatenate([kept[HEAD:], block])
        gone = np.zeros(len(block), bool)
        for first in range(0, len(rivals), 8 * BLOCK):
            some = rivals[first : first + 8 * BLOCK]
            left = np.flatnonzero(~gone)
            if screen is not None:
                rows, columns = screen.possible(some, block[left])
                some, left = some[rows], left[columns]
            gone[left] = rule.rules_out(some, block[left])
        kept = np.concatenate([kept, block[~gone]])
    return kept


def _gap(estimate: Estimate, active: IntArray, leader: int, offset: float, multiplier: float) -> float:
    others = active[active != leader]
    if len(others) == 0:
        return 0.0
    width = offset + multiplier * estimate.distances(others, np.array([leader]))[:, 0]
    return max(0.0, float(np.max(estimate.scores[others] - estimate.scores[leader] + width)))


def intervals_after(
    comparison: Comparison, active: IntArray, survivors: IntArray, *, epsilon: float | None
) -> Deciding:
    """Gives the intervals of a look: `intervals_of` what was compared, with the leader that it found."""
    leading, leader = comparison.leading, comparison.leader
    return lambda _: intervals_of(leading, active=active, survivors=survivors, leader=leader, epsilon=epsilon)


def intervals_of(
    leading: Leading | None, *, active: IntArray, survivors: IntArray, leader: int, epsilon: float | None
) -> Intervals:
    """What decided for each arm: the comparator that rules it out most clearly, or the leader that it might beat.

    Args:
        leading: what was compared (`Comparison`).
        active: the arms in question before the look.
        survivors: those that stayed.
        leader: the arm that would be recommended.
        epsilon: the leader is certified when nobody can be better by more; None where only ruling out counts.

    Cost: O(|active| |survivors| d) at worst, blocks of bounded memory.
    """
    left = np.setdiff1d(active, survivors)
    staying = survivors[survivors != leader]
    nothing = np.full(len(active), np.nan)
    if leading is None:
        return Intervals(active, np.full(len(active), -1), nothing, nothing, nothing, np.zeros(len(active)))
    if epsilon is None:
        parts = [_clearest(leading, survivors, np.union1d(left, staying))]
    else:
        parts = [_clearest(leading, survivors, left)]
        leads, widths = (part[0] for part in leading(np.array([leader]), staying))
        parts.append((staying, np.full(len(staying), leader), leads, widths, np.full(len(staying), epsilon)))
    arms, comparators, leads, widths, allowed = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(arms)
    margins = leads - widths + allowed
    return Intervals(arms[order], comparators[order], leads[order], widths[order], margins[order], allowed[order])


def _clearest(
    leading: Leading, rivals: IntArray, arms: IntArray
) -> tuple[IntArray, IntArray, FloatArray, FloatArray, FloatArray]:
    """(arms, comparator of the largest lead - width, lead, width, 0) of each arm; a comparator has the higher score."""
    comparators, found = np.full(len(arms), -1), [np.full(len(arms), np.nan), np.full(len(arms), np.inf)]
    step = max(1, BLOCK_PAIRS // max(len(rivals), 1))
    for first in range(0, len(arms), step):
        block = arms[first : first + step]
        leads, widths = leading(rivals, block)
        margins = np.where(leads > 0.0, leads - widths, -np.inf)
        best, columns = np.argmax(margins, axis=0), np.arange(len(block))
        some = leads[best, columns] > 0.0
        comparators[first : first + step] = np.where(some, rivals[best], -1)
        for kept, values in zip(found, (leads, widths), strict=True):
            kept[first : first + step] = np.where(some, values[best, columns], np.nan)
    return arms, comparators, found[0], found[1], np.zeros(len(arms))
