"""The elimination and stopping rules: which arms go, who leads, and by how much the leader can fall short.

For arms x, x' the width is omega(x', x) = offset + multiplier * ||z_x' - z_x||_{A^-1}. One score vector and one
seminorm make the relation "x' rules out x" transitive (triangle inequality), so it is enough to compare with
survivors of higher score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.estimators import Estimate
from surepick.records import BoolArray, IntArray, record

BLOCK = 512
HEAD = 32


@record
class Comparison:
    """What one look at an estimate says.

    Args:
        survivors: indices of the arms not ruled out, ascending.
        leader: the arm of highest score among them.
        gap: the leader is at most this much worse than the best arm (reward units, at least 0); infinite when some
            active arm cannot be compared with it.
    """

    survivors: IntArray
    leader: int
    gap: float


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
    Cost: O(|S| * survivors * d) at worst, blocks of bounded memory.
    """
    scores = estimate.scores
    comparable = estimate.comparable[active]
    if not comparable.any():
        return Comparison(active, int(active[0]), 0.0 if len(active) == 1 else np.inf)
    ranked = active[comparable]
    ranked = ranked[np.lexsort((ranked, -scores[ranked]))]
    leader = int(ranked[0])
    rounding = 16.0 * np.finfo(np.float64).eps * float(np.max(np.abs(scores[ranked])))
    kept = _not_ruled_out(Rule(estimate, offset, multiplier, rounding), ranked)
    survivors = np.sort(np.concatenate([kept, active[~comparable]]))
    return Comparison(survivors, leader, _gap(estimate, active, leader, offset, multiplier))


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
        lead = self.estimate.scores[rivals][:, None] - self.estimate.scores[arms][None, :]
        width = self.offset + self.multiplier * self.estimate.distances(rivals, arms)
        ruled_out: BoolArray = np.any((lead > self.rounding) & (lead >= width), axis=0)
        return ruled_out


def _not_ruled_out(rule: Rule, ranked: IntArray) -> IntArray:
    """The arms of `ranked` (decreasing score) that no arm of higher score rules out."""
    kept = ranked[:0]
    for start in range(0, len(ranked), BLOCK):
        block = ranked[start : start + BLOCK]
        block = block[~rule.rules_out(kept[:HEAD], block)]
        rivals = np.concatenate([kept[HEAD:], block])
        gone = np.zeros(len(block), bool)
        for first in range(0, len(rivals), 8 * BLOCK):
            gone |= rule.rules_out(rivals[first : first + 8 * BLOCK], block)
        kept = np.concatenate([kept, block[~gone]])
    return kept


def _gap(estimate: Estimate, active: IntArray, leader: int, offset: float, multiplier: float) -> float:
    others = active[active != leader]
    if len(others) == 0:
        return 0.0
    width = offset + multiplier * estimate.distances(others, np.array([leader]))[:, 0]
    return max(0.0, float(np.max(estimate.scores[others] - estimate.scores[leader] + width)))
