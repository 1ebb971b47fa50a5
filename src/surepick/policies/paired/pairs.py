"""Rewards of an arm beside those of a centre in the same block: normal pairs, alike and independent between blocks."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.observations import BlockTotals, Observations


@record
class Pairs:
    """What was seen of (d, r) = (r_j - r_c, r_c) in the blocks that had both the arm j and a centre c.

    Args:
        centre: c.
        counts: n, blocks that had both, shape (K,); 0 for the centre itself.
        sums, squares: of d and of d^2, shape (K,), in reward units and their squares.
        centre_sums, centre_squares: of r and of r^2 over the same blocks, shape (K,).
        products: of d r, shape (K,).
    """

    centre: int
    counts: IntArray
    sums: FloatArray
    squares: FloatArray
    centre_sums: FloatArray
    centre_squares: FloatArray
    products: FloatArray

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, sums=np.float64, squares=np.float64)
        freeze(self, centre_sums=np.float64, centre_squares=np.float64, products=np.float64)

    @property
    def differences(self) -> Observations:
        """As if each difference were a reward of its arm."""
        return Observations(self.counts, self.sums, self.squares)

    def plus(self, other: Pairs) -> Pairs:
        """With more pairs of the same centre."""
        return Pairs(
            self.centre,
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares,
            self.centre_sums + other.centre_sums,
            self.centre_squares + other.centre_squares,
            self.products + other.products,
        )

    def at(self, arms: IntArray) -> Pairs:
        """Those of some arms, shape (m,)."""
        return Pairs(
            self.centre,
            self.counts[arms],
            self.sums[arms],
            self.squares[arms],
            self.centre_sums[arms],
            self.centre_squares[arms],
            self.products[arms],
        )

    def totals(self, on_difference: FloatArray, on_centre: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(sum of y, sum of (y - ybar)^2, what rounding may have taken from it), y = u d + v r, each of shape (K,).

        Args:
            on_difference: u, shape (K,).
            on_centre: v, shape (K,).
        """
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


def pairs_with(seen: BlockTotals, centre: int, num_arms: int) -> Pairs:
    """The pairs of each arm with a centre, in the blocks that have one measurement of both.

    Args:
        seen: the blocks.
        centre: c.
        num_arms: K.
    """
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
    return Pairs(centre, counts, added(apart), added(apart**2), added(beside), added(beside**2), added(apart * beside))


def alone(seen: BlockTotals, centre: int) -> tuple[int, float, float]:
    """(number, sum, sum of squares) of an arm's single measurements."""
    entries = single(seen)
    own = entries.sums[entries.arms == centre]
    return len(own), float(own.sum()), float(np.sum(own**2))
