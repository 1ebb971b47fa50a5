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
class Observations:
    """Sufficient statistics of what was measured.

    Args:
        counts: pulls received of each arm, shape (K,).
        sums: sum of the rewards of each arm, shape (K,), in reward units.
        squares: sum of the squared rewards, shape (K,); None when only totals were reported.
        answers: the single scores, where test items are answered; None where pulls are draws.
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray | None = None
    answers: Answers | None = field(default=None, metadata=LATER)

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
        """Both together, without the single answers."""
        both = self.squares is not None and other.squares is not None
        return Observations(
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares if both else None,  # type: ignore[operator]
        )
