"""What was measured, added up for each arm."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from surepick.core.records import FloatArray, IntArray, freeze, frozen, own, record
from surepick.errors import ContractError

LEVEL_BITS = 24
EPS = float(np.finfo(np.float64).eps)
ROUNDING = 256.0 * EPS  # of a sum of squares that was added up from some hundred batches


@frozen
class Answers:
    """What arms answered to test items, one entry an answer."""

    arms: IntArray  # index of the arm, shape (m,)
    items: IntArray  # index of the item in the list of items, shape (m,)
    scores: FloatArray  # shape (m,), in reward units


@record
class BlockTotals:
    """What was measured in each block, one entry for each arm that a block has."""

    blocks: IntArray  # number of the entry's block, (m,); the record numbers those that it has 0, 1, ... in their order
    arms: IntArray  # index of its arm, (m,); no two entries have the same block and arm
    counts: IntArray  # pulls received, at least 1, (m,)
    sums: FloatArray  # their total reward, (m,), in reward units

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

    def plus(self, other: BlockTotals) -> BlockTotals:
        """With those of other blocks."""
        both = zip((self.arms, self.counts, self.sums), (other.arms, other.counts, other.sums), strict=True)
        return BlockTotals(np.append(self.blocks, other.blocks + self.number), *(np.append(*pair) for pair in both))

    @property
    def typical(self) -> float:
        """The median of the entries' mean rewards, in reward units: one of them; 0 without any."""
        means = np.sort(self.sums / self.counts)
        return float(means[(len(means) - 1) // 2]) if len(means) else 0.0

    def less(self, level: float) -> BlockTotals:
        """The same with that number taken from every reward."""
        return BlockTotals(self.blocks, self.arms, self.counts, self.sums - level * self.counts)

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


@frozen
class Quantity:
    """Totals of a quantity that is measured beside the reward, one entry an arm (or a row of results)."""

    counts: IntArray  # measurements that have a value of it, (K,)
    sums: FloatArray  # of these values, (K,), in the quantity's units
    squares: FloatArray  # of their squares, (K,)
    within: FloatArray | None = None  # of their squared deviations from their mean, as in `Observations`; None: unknown

    @property
    def observations(self) -> Observations:
        """The same as if it were the reward."""
        return Observations(self.counts, self.sums, self.squares, within=self.within)

    @property
    def means(self) -> FloatArray:
        """Mean value of each arm, shape (K,); 0 where nothing was measured."""
        return _means(self.sums, self.counts)

    def plus(self, other: Quantity) -> Quantity:
        """Both together."""
        totals = self.counts + other.counts, self.sums + other.sums, self.squares + other.squares
        return Quantity(*totals, _within_of_both(self, other))

    def rows(self, kept: IntArray) -> Quantity:
        """The entries at these positions."""
        within = None if self.within is None else self.within[kept]
        return Quantity(self.counts[kept], self.sums[kept], self.squares[kept], within)

    @staticmethod
    def nothing(num_arms: int) -> Quantity:
        """No measurement yet."""
        return Quantity(np.zeros(num_arms, np.int64), np.zeros(num_arms), np.zeros(num_arms))


@frozen
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
        within: sum of the squared deviations of each arm's rewards from their mean, shape (K,), formed without large
            numbers, so that an offset of all rewards costs no digit; None where totals alone were reported.
        rests: what rounding took from `sums`, shape (K,); None where it is little beside the spread of the rewards.
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray | None = None
    answers: Answers | None = None
    blocks: BlockTotals | None = None
    quantities: tuple[Quantity, ...] | None = None
    within: FloatArray | None = None
    rests: FloatArray | None = None

    @property
    def total(self) -> int:
        """Pulls received, all arms together."""
        return int(np.add.reduce(self.counts, axis=None))

    @property
    def means(self) -> FloatArray:
        """Mean reward of each arm, shape (K,); 0 where nothing was measured."""
        return _means(self.sums, self.counts)

    def level(self, least: float) -> float:
        """A number near the rewards that may be taken from all of them: the median of the arms' means, rounded to so
        few digits that its multiples are exact; 0 where rewards are below `least` and lose nothing."""
        means = np.sort(self.means[self.counts > 0])
        middle = float(means[(len(means) - 1) // 2]) if len(means) else 0.0
        if abs(middle) <= least:
            return 0.0
        digits, exponent = math.frexp(middle)
        return math.ldexp(round(digits * 2**LEVEL_BITS), exponent - LEVEL_BITS)

    @property
    def in_blocks(self) -> BlockTotals:
        """What each block had; without names of blocks the whole batch is one."""
        return BlockTotals.one(self.counts, self.sums) if self.blocks is None else self.blocks

    def less(self, level: float | FloatArray) -> Observations:
        """The same with that number taken from every reward, and what rounding took given back.

        Args:
            level: from `level`; for totals of many studies, (n, K), that of each, (n, 1), where no rewards have blocks.
        """
        if not np.any(level):
            return self
        sums = (self.sums - level * self.counts) + (0.0 if self.rests is None else self.rests)
        squares = self.squares
        if self.within is not None:
            squares = self.within + np.divide(sums**2, self.counts, out=np.zeros_like(sums), where=self.counts > 0)
        elif squares is not None:  # told as totals: digits that are lost stay lost, and the rounding allows for it
            squares = np.maximum(squares - 2.0 * level * self.sums + level**2 * self.counts, 0.0) + ROUNDING * squares
        blocks = None if self.blocks is None else self.blocks.less(float(level))
        return replace(self, sums=sums, squares=squares, blocks=blocks, rests=None)

    @property
    def rounding(self) -> FloatArray:
        """What rounding may have taken from `deviations`, shape (K,), in squared reward units.

        Raises:
            ContractError: as `deviations`.
        """
        if self.within is None:
            return np.asarray(ROUNDING * self._known_squares())
        resolution = 2.0 * EPS * np.abs(self.means)  # of a reward: equal ones may have means that differ by so much
        return np.asarray(ROUNDING * self.within + self.counts * resolution**2)

    @property
    def deviations(self) -> FloatArray:
        """sum (r - mean)^2 of each arm, shape (K,), in squared reward units; rounded as `rounding` says.

        Raises:
            ContractError: neither it nor the sums of squares were told.
        """
        if self.within is not None:
            return self.within
        return np.asarray(np.maximum(self._known_squares() - self.means * self.sums, 0.0))

    def _known_squares(self) -> FloatArray:
        if self.squares is None:
            raise ContractError("without sums of squares nothing is known of a variance.")
        return self.squares

    @staticmethod
    def nothing(num_arms: int) -> Observations:
        """No pull of any arm yet."""
        return Observations(np.zeros(num_arms, np.int64), np.zeros(num_arms), np.zeros(num_arms))

    def mapped(self, change: Callable[[Any], Any]) -> Observations:
        """The totals, each column of which was changed into a new one, without all else."""
        squares, within = (None if one is None else change(one) for one in (self.squares, self.within))
        return observed(change(self.counts), change(self.sums), squares, within=within)

    @staticmethod
    def together(batches: Iterable[Observations], num_arms: int) -> Observations:
        """All batches together, as `plus` has two."""
        return reduce(Observations.plus, batches, Observations.nothing(num_arms))

    def plus(self, other: Observations) -> Observations:
        """Both together, without the single answers and without what each block had."""
        both = self.squares is not None and other.squares is not None
        quantities = self.quantities or other.quantities
        if self.quantities and other.quantities:
            quantities = tuple(one.plus(more) for one, more in zip(self.quantities, other.quantities, strict=True))
        counts, within = self.counts + other.counts, _within_of_both(self, other)
        squares = self.squares + other.squares if both else None  # type: ignore[operator]
        return observed(counts, self.sums + other.sums, squares, quantities=quantities, within=within)


observed = own(Observations)  # for totals that were just worked out


def _means(sums: FloatArray, counts: IntArray) -> FloatArray:
    """Where nothing was measured, a sum is 0."""
    return np.asarray(sums / np.maximum(counts, 1))


def _within_of_both(one: Observations | Quantity, other: Observations | Quantity) -> FloatArray | None:
    """`within` of both together (Chan, Golub & LeVeque 1983); None where one of them does not say it."""
    for some, rest in ((one, other), (other, one)):
        if not np.logical_or.reduce(some.counts, axis=None):
            return rest.within
    if one.within is None or other.within is None:
        return None
    both = np.maximum(one.counts + other.counts, 1)
    apart = one.sums / np.maximum(one.counts, 1) - other.sums / np.maximum(other.counts, 1)
    between = one.counts * (other.counts / both) * apart**2
    return np.asarray(one.within + other.within + between)
