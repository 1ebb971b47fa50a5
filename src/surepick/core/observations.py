"""What was measured, added up for each arm."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from surepick.core.arrays import LATER, FloatArray, IntArray, freeze, record


@record
class Answers:
    """What arms answered to test items, one entry an answer.

    Args:
        arms: index of the arm, shape (m,).
        items: index of the item in the list of items, shape (m,).
        scores: shape (m,), in reward units.
    """

    arms: IntArray
    items: IntArray
    scores: FloatArray

    def __post_init__(self) -> None:
        freeze(self, arms=np.int64, items=np.int64, scores=np.float64)


@record
class BlockTotals:
    """What was measured in each block, one entry for each arm that a block has.

    Args:
        blocks: number of the entry's block, shape (m,); the record numbers those that it has 0, 1, ... in their order.
        arms: index of its arm, shape (m,); no two entries have the same block and arm.
        counts: pulls received, at least 1, shape (m,).
        sums: their total reward, shape (m,), in reward units.
    """

    blocks: IntArray
    arms: IntArray
    counts: IntArray
    sums: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", np.unique(self.blocks, return_inverse=True)[1].reshape(-1))
        freeze(self, blocks=np.int64, arms=np.int64, counts=np.int64, sums=np.float64)

    @property
    def number(self) -> int:
        """How many blocks there are."""
        return int(self.blocks.max(initial=-1)) + 1

    @staticmethod
    def one(counts: IntArray, sums: FloatArray) -> BlockTotals:
        """A single block with these pulls and total rewards, both of shape (K,)."""
        arms = np.flatnonzero(counts)
        return BlockTotals(np.zeros_like(arms), arms, counts[arms], sums[arms])

    def per_block(self, values: FloatArray) -> FloatArray:
        """Sums of the entries' values over each block, shape (number,)."""
        return np.asarray(np.bincount(self.blocks, values, minlength=self.number), np.float64)

    def centred(self, rows: FloatArray, weights: FloatArray) -> FloatArray:
        """The entries' rows, shape (m, r), each less the weighted mean of its block's; weights of shape (m,)."""
        found = rows
        for _ in range(2):  # the second time takes what rounding of the first has left
            totals = np.zeros((self.number, rows.shape[1]))
            np.add.at(totals, self.blocks, weights[:, None] * found)
            found = found - (totals / self.per_block(weights)[:, None])[self.blocks]
        return found

    @property
    def centred_means(self) -> FloatArray:
        """The mean reward of each entry less that of its block, shape (m,): what rewards share is gone."""
        centres = self.per_block(self.sums) / self.per_block(self.counts.astype(np.float64))
        return np.asarray(self.sums / self.counts - centres[self.blocks])


@record
class Quantity:
    """Totals of a quantity that is measured beside the reward, one entry an arm (or a row of results).

    Args:
        counts: measurements that have a value of it, shape (K,).
        sums: of these values, shape (K,), in the quantity's units.
        squares: of their squares, shape (K,).
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, sums=np.float64, squares=np.float64)

    @property
    def means(self) -> FloatArray:
        """Mean value of each arm, shape (K,); 0 where nothing was measured."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)

    def plus(self, other: Quantity) -> Quantity:
        """Both together."""
        return Quantity(self.counts + other.counts, self.sums + other.sums, self.squares + other.squares)

    def rows(self, kept: IntArray) -> Quantity:
        """The entries at these positions."""
        return Quantity(self.counts[kept], self.sums[kept], self.squares[kept])

    @staticmethod
    def nothing(num_arms: int) -> Quantity:
        """No measurement yet."""
        return Quantity(np.zeros(num_arms, np.int64), np.zeros(num_arms), np.zeros(num_arms))


@record
class Observations:
    """Sufficient statistics of what was measured.

    Args:
        counts: pulls received of each arm, shape (K,).
        sums: sum of the rewards of each arm, shape (K,), in reward units.
        squares: sum of the squared rewards, shape (K,); None when only totals were reported.
        answers: the single scores, where test items are answered; None where pulls are draws.
        blocks: the counts and sums of each block, where measurements have blocks; None: nothing is said of blocks.
        quantities: what else was measured, in the order of the question's constraints, in the user's sign; None:
            nothing.
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray | None = None
    answers: Answers | None = field(default=None, metadata=LATER)
    blocks: BlockTotals | None = field(default=None, metadata=LATER)
    quantities: tuple[Quantity, ...] | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64, sums=np.float64, squares=np.float64)

    @property
    def total(self) -> int:
        """Pulls received, all arms together."""
        return int(self.counts.sum())

    @property
    def means(self) -> FloatArray:
        """Mean reward of each arm, shape (K,); 0 where nothing was measured."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.counts > 0)

    @staticmethod
    def nothing(num_arms: int) -> Observations:
        """No pull of any arm yet."""
        return Observations(np.zeros(num_arms, np.int64), np.zeros(num_arms), np.zeros(num_arms))

    def plus(self, other: Observations) -> Observations:
        """Both together, without the single answers and without what each block had."""
        both = self.squares is not None and other.squares is not None
        quantities = self.quantities or other.quantities
        if self.quantities and other.quantities:
            quantities = tuple(one.plus(more) for one, more in zip(self.quantities, other.quantities, strict=True))
        return Observations(
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares if both else None,  # type: ignore[operator]
            quantities=quantities,
        )
