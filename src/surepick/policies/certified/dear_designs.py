"""Where a design takes seconds: many directions, and many arms. What is asked of it then."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.core.design import Embedding, IndependentArms
from surepick.policies.dimension import DEAR

HEURISTIC_MANY = 3000  # arms beyond which the first design compares all with a central one, not with each other
HEURISTIC_ROUGH = 0.3  # gap that is proved where designs take long; what is true is mostly a few per cent
HEURISTIC_SURE = 0.67  # of the pulls of a batch on few arms: so many must be predicted to be enough


def tolerance_of(embedded: Embedding | IndependentArms, tolerance: float) -> float:
    """Relative gap that is asked of a design: where designs take long more than is asked of others."""
    return max(tolerance, HEURISTIC_ROUGH) if is_dear(embedded) else tolerance


def is_dear(embedded: Embedding | IndependentArms) -> bool:
    """Whether a design takes seconds: many directions, and many arms."""
    return isinstance(embedded, Embedding) and embedded.dim >= DEAR and embedded.num_arms > HEURISTIC_MANY


@record
class FewArms:
    """Whether a design may be one on few arms: where designs take long, if a batch with one pull of each is predicted
    to be enough, in spite of its bias.

    Args:
        unit: pulls that a value of 1 stands for; None: the tolerance alone decides.
        accept: whether given weights, shape (K,), are enough.
    """

    unit: float | None
    accept: Callable[[FloatArray], bool] | None

    @staticmethod
    def of(needed: Callable[[FloatArray], float] | None, embedded: Embedding | IndependentArms) -> FewArms:
        """For designs whose value is in pulls.

        Args:
            needed: the pulls in given proportions that are predicted to be needed, their bias included; None: pulls
                cost unlike amounts, so that the number of arms is not what counts.
        """
        if needed is None or not is_dear(embedded):
            return FewArms(None, None)

        def accept(weights: FloatArray) -> bool:
            once = (weights > 0.0).astype(np.float64)
            return needed(once / once.sum()) <= HEURISTIC_SURE * float(once.sum())

        return FewArms(1.0, accept)
