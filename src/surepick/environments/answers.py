"""What every arm answers to every one of a finite set of test items."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.environments.rewards import RecordedRewards
from surepick.errors import InvalidInput


@record
class RecordedAnswers:
    """Scores of K arms on N items. A pull that is a draw takes a random item, with replacement.

    Args:
        scores: in [0, 1], shape (K, N).

    Raises:
        InvalidInput: they are no table of such numbers.
    """

    scores: FloatArray

    def __post_init__(self) -> None:
        freeze(self, scores=np.float64)
        if self.scores.ndim != 2 or not self.scores.size:
            raise InvalidInput(f"scores have shape {self.scores.shape}; they must be (K, N), a row an arm.")
        if not np.all((self.scores >= 0.0) & (self.scores <= 1.0)):
            raise InvalidInput("scores of test items must lie between 0 and 1; divide them by the full score.")

    @property
    def as_draws(self) -> RecordedRewards:
        """The law of pulls that take a random item each."""
        num_arms, num_items = self.scores.shape
        return RecordedRewards(self.scores.ravel(), np.repeat(np.arange(num_arms), num_items))

    @property
    def means(self) -> FloatArray:
        """The mean score of each arm, shape (K,)."""
        return self.as_draws.means

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times, each a random item."""
        return self.as_draws.draw(counts, rng)
