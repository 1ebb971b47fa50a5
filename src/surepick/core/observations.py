"""What was measured, added up for each arm."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record


@record
class Observations:
    """Sufficient statistics of what was measured.

    Args:
        counts: pulls received of each arm, shape (K,).
        sums: sum of the rewards of each arm, shape (K,), in reward units.
        squares: sum of the squared rewards, shape (K,); None when only totals were reported.
    """

    counts: IntArray
    sums: FloatArray
    squares: FloatArray | None = None

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
        """Both together."""
        both = self.squares is not None and other.squares is not None
        return Observations(
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares if both else None,  # type: ignore[operator]
        )
