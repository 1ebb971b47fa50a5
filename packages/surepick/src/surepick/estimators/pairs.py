"""Rewards of an arm beside those of a centre in the same block: normal pairs, alike and independent between blocks.

docs/certified-elimination.md, line 27: the differences of a fixed pair are a list of independent normal numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.records import FloatArray, IntArray, frozen


@frozen
class ArmPairs:
    """What was seen of (d, r) = (r_j - r_c, r_c) in the blocks that had both the arm j and a centre c."""

    centre: int  # c
    counts: IntArray  # n, blocks that had both, (K,); 0 for the centre itself
    sums: FloatArray  # of d and of d^2, (K,), in reward units and their squares
    squares: FloatArray
    centre_sums: FloatArray  # of r and of r^2 over the same blocks, (K,)
    centre_squares: FloatArray
    products: FloatArray  # of d r, (K,)

    @property
    def differences(self) -> Observations:
        """As if each difference were a reward of its arm."""
        return Observations(self.counts, self.sums, self.squares)

    def plus(self, other: ArmPairs) -> ArmPairs:
        """With more pairs of the same centre."""
        return ArmPairs(self.centre, *(mine + more for mine, more in zip(self._columns, other._columns, strict=True)))

    def at(self, arms: IntArray) -> ArmPairs:
        """Those of some arms, shape (m,)."""
        return ArmPairs(self.centre, *(column[arms] for column in self._columns))

    @property
    def _columns(self) -> tuple[Any, ...]:
        return (self.counts, self.sums, self.squares, self.centre_sums, self.centre_squares, self.products)

    def totals(self, on_difference: FloatArray, on_centre: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(sum of y, of (y - ybar)^2, what rounding may take from it), y = on_difference d + on_centre r; each (K,)."""
        number = np.maximum(self.counts, 1)
        apart = np.maximum(self.squares - self.sums**2 / number, 0.0)
        moves = np.maximum(self.centre_squares - self.centre_sums**2 / number, 0.0)
        both = self.products - self.sums * self.centre_sums / number
        within = on_difference**2 * apart + 2.0 * on_difference * on_centre * both + on_centre**2 * moves
        size = on_difference**2 * self.squares + on_centre**2 * self.centre_squares
        return on_difference * self.sums + on_centre * self.centre_sums, np.maximum(within, 0.0), size


def single(seen: BlockTotals) -> BlockTotals:
    """The entries of one measurement: with several a mean would have another variance."""
    kept = seen.counts == 1
    if np.all(kept):
        return seen
    return BlockTotals(seen.blocks[kept], seen.arms[kept], seen.counts[kept], seen.sums[kept])


def pairs_with(seen: BlockTotals, centre: int, num_arms: int) -> ArmPairs:
    """The pairs of each arm with a centre, in the blocks that have one measurement of both."""
    entries = single(seen)
    values = np.full(entries.number, np.nan)
    own = entries.arms == centre
    values[entries.blocks[own]] = entries.sums[own]
    beside = values[entries.blocks]
    paired = np.isfinite(beside) & ~own
    arms, beside = entries.arms[paired], beside[paired]
    apart = entries.sums[paired] - beside

    def added(each: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(arms, each, minlength=num_arms))

    counts = np.bincount(arms, minlength=num_arms).astype(np.int64)
    return ArmPairs(
        centre, counts, added(apart), added(apart**2), added(beside), added(beside**2), added(apart * beside)
    )


def alone(seen: BlockTotals, centre: int) -> tuple[int, float, float]:
    """(number, sum, sum of squares) of an arm's single measurements."""
    entries = single(seen)
    own = entries.sums[entries.arms == centre]
    return len(own), float(own.sum()), float(np.sum(own**2))


def without_pair_effects(seen: BlockTotals, past: Observations) -> Observations:
    """A batch as it would have been if no block had an effect, as far as this can be told. For steering only.

    The effect of a block is how far its rewards lie above the earlier means of their arms, on average.

    Returns:
        Counts, sums and sums of squares, shape (K,).
    """
    num_arms = len(past.counts)
    known = past.counts[seen.arms] > 0
    away = seen.sums / seen.counts - past.means[seen.arms]
    use = known if known.any() else np.ones(len(known), bool)
    number = seen.per_block(use.astype(np.float64))
    effects = np.divide(seen.per_block(np.where(use, away, 0.0)), number, out=np.zeros(seen.number), where=number > 0.0)
    if not known.any():
        effects -= effects.mean() if len(effects) else 0.0
    return pooled(seen, effects, num_arms)


def pooled(seen: BlockTotals, effects: FloatArray, num_arms: int) -> Observations:
    """What the arms of a batch got, less the effects of their blocks, shape (K,)."""
    left = seen.sums / seen.counts - effects[seen.blocks]
    return Observations(
        np.bincount(seen.arms, seen.counts, minlength=num_arms).astype(np.int64),
        np.asarray(np.bincount(seen.arms, seen.counts * left, minlength=num_arms), np.float64),
        np.asarray(np.bincount(seen.arms, seen.counts * left**2, minlength=num_arms), np.float64),
    )
