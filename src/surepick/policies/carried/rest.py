"""What is still to be measured for a candidate, as it looks from the past."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.errors import ContractError

HEURISTIC_FIRST_START = 0.95  # weight of the first start of a process; the others halve what is left
HEURISTIC_NEAR = 0.5  # units of evidence by which a plan exceeds what is needed: all must get there together
HEURISTIC_SPREAD = 1.04  # sqrt(2) .7 / sqrt(.91), of the evidence of a bet whose mean is the square


@record
class Goal:
    """What a plan is to reach.

    Args:
        candidate: c.
        rivals: the arms that are neither rejected nor known not to be the best, ascending, shape (m,).
        margins: guesses of epsilon + h_c - h_j for planning, positive, shape (m,).
        epsilon: in reward units.
        threshold: log(1/delta) of each rival, shape (m,), or of all alike.
        scores: guesses of the means, shape (K,).
        noise_scales: s, shape (K,), in reward units.
        quantile: z; a plan is to reach the goal with that normal quantile's probability for each rival; None: about
            every other time, because another batch may follow.
        costs: of a pull of each arm, in units of the cheapest, shape (K,); None: all alike.
        away: arms that cannot be measured any more, shape (K,); None: all can.
    """

    candidate: int
    rivals: IntArray
    margins: FloatArray
    epsilon: float
    threshold: FloatArray | float
    scores: FloatArray
    noise_scales: FloatArray
    quantile: float | None = None
    costs: FloatArray | None = None
    away: BoolArray | None = None

    def __post_init__(self) -> None:
        freeze(self, rivals=np.int64, margins=np.float64, scores=np.float64, noise_scales=np.float64)

    @property
    def priced_scales(self) -> FloatArray:
        """s sqrt(cost), shape (K,): money m for an arm buys the information m / (s^2 cost) of m pulls at that scale."""
        return self.noise_scales if self.costs is None else self.noise_scales * np.sqrt(self.costs)

    def among(self, rows: slice) -> Goal:
        """The same for some of the rivals."""
        threshold = self.threshold if isinstance(self.threshold, float) else self.threshold[rows]
        return replace(self, rivals=self.rivals[rows], margins=self.margins[rows], threshold=threshold)

    def pulls_for(self, money: FloatArray) -> FloatArray:
        """The pulls, whole or not, that so much money for each arm buys, shape (K,)."""
        return money if self.costs is None else money / self.costs

    def aimed(self, need: FloatArray) -> FloatArray:
        """The evidence that a plan aims at, where that much is needed: a little more, as all must get there together.

            g - z sd(g) = need,     sd(g) = HEURISTIC_SPREAD sqrt(g)     for a quantile z

        Source: evidence of mean g from the best bet on a normal difference has variance 2 g; kappa = .7 times that bet
        has .91 of the mean and .7 of the deviation.
        """
        if self.quantile is None:
            return np.asarray(need + HEURISTIC_NEAR * np.clip(need, 1e-3, 1.0))
        spread = self.quantile * HEURISTIC_SPREAD
        return np.asarray((0.5 * (spread + np.sqrt(spread**2 + 4.0 * np.maximum(need, 0.0)))) ** 2)


@record
class Rest:
    """What is still to be measured.

    Args:
        candidate: c.
        dim: of the embedding that it is planned in.
        pulls: predicted pulls of each arm, shape (K,); their sum is what certifying c is predicted to take.
        lower_bound: of what they cost, for any design.
        restarts: arms whose processes had better start anew.
        bias_limited: rivals whose margin the bias nearly or fully eats.
        costs: of a pull of each arm, in units of the cheapest, shape (K,); None: all alike.
    """

    candidate: int
    dim: int
    pulls: FloatArray
    lower_bound: float
    restarts: IntArray
    bias_limited: IntArray
    costs: FloatArray | None = None

    def __post_init__(self) -> None:
        freeze(self, pulls=np.float64, restarts=np.int64, bias_limited=np.int64)

    @property
    def total(self) -> float:
        """V, what the predicted pulls cost, in pulls of the cheapest arm; at least 1."""
        return self.num_pulls if self.costs is None else max(float(self.pulls @ self.costs), 1.0)

    @property
    def num_pulls(self) -> float:
        """Predicted pulls, all arms together; at least 1."""
        return max(float(self.pulls.sum()), 1.0)

    @property
    def effort(self) -> float:
        """What they cost, and one more pull of each of these arms: a batch has that many, however few are needed."""
        once = self.pulls > 0.0
        return self.total + float(np.count_nonzero(once) if self.costs is None else self.costs[once].sum())

    @property
    def dearest_pull(self) -> float:
        """What the dearest of the pulls costs, or all of them where that is less: a batch of less would wait for it."""
        dearest = 1.0 if self.costs is None else float(self.costs[self.pulls > 0.0].max(initial=1.0))
        return min(dearest, self.total)

    @property
    def least_pulls(self) -> float:
        """Lower bound on the pulls of any design: what it costs at least, all of it on the dearest arm."""
        return self.lower_bound if self.costs is None else self.lower_bound / float(self.costs.max())


def start_weights(starts: IntArray) -> FloatArray:
    """log p_k of the k-th start of a process: p_1 = r, p_k = (1 - r) 2^-(k-1), which sum to 1.

    Source: docs/certified-elimination.md, line 13.

    Raises:
        ContractError: a number of a start is not positive.
    """
    if np.any(starts < 1):
        raise ContractError("starts are numbered from 1.")
    first = math.log(HEURISTIC_FIRST_START)
    later = math.log1p(-HEURISTIC_FIRST_START) - math.log(2.0) * (starts - 1.0)
    return np.maximum(np.where(starts == 1, first, later), math.log(sys.float_info.min))
