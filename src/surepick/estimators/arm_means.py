"""Plain means of independent arms: least squares when A(n) is diagonal."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations


@record
class ArmMeansEstimate:
    """Mean reward of each arm; the difference of two arms has variance sigma^2 (1/n_a + 1/n_b).

    Args:
        scores: means, shape (K,), in reward units; 0 where nothing was measured.
        counts: n, shape (K,).
    """

    scores: FloatArray
    counts: IntArray

    def __post_init__(self) -> None:
        freeze(self, scores=np.float64, counts=np.int64)

    @property
    def comparable(self) -> BoolArray:
        return self.counts > 0

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def distances(self, left: IntArray, right: IntArray) -> FloatArray:
        """sqrt(1/n_a + 1/n_b); infinite where an arm was never measured, 0 for an arm and itself."""
        with np.errstate(divide="ignore"):
            inverse = 1.0 / self.counts
        distances: FloatArray = np.sqrt(inverse[left][:, None] + inverse[right][None, :])
        distances[left[:, None] == right[None, :]] = 0.0
        return distances


def arm_means(seen: Observations) -> ArmMeansEstimate:
    """The estimate for arms without structure; equals least squares on the K x K identity. Cost: O(K)."""
    return ArmMeansEstimate(seen.means, seen.counts)
