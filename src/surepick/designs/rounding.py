"""From weights to whole pulls, with a promise on what the rounding costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.design import Allocation, Design
from surepick.core.validation import LEAST_SLACK, positive_number, whole_number
from surepick.core.values import real_numbers
from surepick.designs.objective import Objective
from surepick.designs.problem import checked_weights, normalised, pose
from surepick.errors import InvalidInput

GROWTH = 1.1
SUM_SAFETY = 1e-12
SAME_VALUE = 1e-6


def round_design(weights: ArrayLike, total: int) -> IntArray:
    """Efficient apportionment (Adams' divisor method): whole pulls in proportion to the weights.

        n_i = max(1, ceil(nu w_i)),  nu such that the sum is N; ties go to the smallest n_i / w_i

    so that min_i n_i / w_i is as large as whole numbers allow, hence A(n) >= (N - p) A(w), p the support of w.

    Args:
        weights: w, shape (K,), non-negative; normalised here.
        total: N, number of pulls, at least the support.

    Returns:
        n, shape (K,), integers with sum N; n_i >= 1 exactly where w_i > 0.

    Raises:
        InvalidInput: total is below the support, or the weights are negative, not finite or all zero.

    Source: Pukelsheim, Optimal Design of Experiments, chapter 12.
    Cost: O(p log p) time: nu is bracketed by N - p and N, and halved until one pull an arm is left open.
    """
    lam = real_numbers("weights", weights)
    lam = checked_weights(lam, lam.size)
    support = np.flatnonzero(lam)
    size = len(support)
    total = whole_number("total", total, least=0, meaning="the pulls that are rounded to.")
    if total < size:
        raise InvalidInput(
            f"{total} pulls cannot be spread over {size} supported arms: every one needs a pull, or the differences "
            f"that it carries are not measured. Ask for at least {size}."
        )
    shares = normalised(lam[support] / lam.max())
    counts = np.zeros(len(lam), np.int64)
    counts[support] = _apportioned(shares, total)
    return counts


def _apportioned(shares: FloatArray, total: int) -> IntArray:
    """Adams' apportionment of `total` >= p pulls among p positive shares of sum 1."""
    low, high = (total - len(shares)) * (1.0 - SUM_SAFETY), total * (1.0 + SUM_SAFETY)
    while (high - low) * float(shares.max()) >= 1.0:  # below, no arm gains two pulls between low and high
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break  # so many pulls that no number lies between
        if np.maximum(np.ceil(middle * shares), 1.0).sum() <= total:
            low = middle
        else:
            high = middle
    pulls = np.maximum(np.ceil(low * shares), 1.0).astype(np.int64)
    left = total - int(pulls.sum())
    if left > 0:
        pulls[np.argpartition(pulls / shares, left - 1)[:left]] += 1
    return pulls


def allocate(
    design: Design,
    features: ArrayLike,
    total: int,
    *,
    slack: float = 0.1,
    active: ArrayLike | None = None,
    rank_tolerance: float | None = None,
) -> Allocation:
    """Whole pulls whose realised value is within the slack of the design's, adding pulls until it is.

        N * max over active a, b of ||x_a - x_b||^2 in A(n)^-1  <=  (1 + slack) * design.value

    holds for every N >= p (1 + slack)/slack, p the support, because A(n) >= min_i (n_i / w_i) A(w). It usually does
    for about a quarter of that, so the allocation is evaluated and N raised by tenths, to that number at most.

    Args:
        design: of these features and active arms.
        features: x, shape (K, d), as the design was solved for.
        total: N asked, in pulls; below the support it is raised to it.
        slack: zeta, above 0.
        active: arms that are compared, as for the design.
        rank_tolerance: as for the design.

    Returns:
        Allocation: counts, their sum, and the left-hand side above (where rounding hides a direction that is measured
        very weakly: its bound by max_i N w_i / n_i).

    Raises:
        InvalidInput: slack not positive, or the design does not belong to these features.

    Source: Algorithm 1, lines 6-7.       Differs from the paper: the support in place of d(d+1)/2 + 1, and evaluated.
    Cost: a few evaluations of the objective.
    """
    slack = positive_number("slack", slack, "whole pulls cannot match a design exactly, .1 is usual.")
    if slack < LEAST_SLACK:
        raise InvalidInput(f"slack is {slack:g}; below {LEAST_SLACK:g} no number of pulls is enough, .1 is usual.")
    total = whole_number("total", total, least=0, meaning="the pulls that are asked.")
    problem = pose(features, active, rank_tolerance=rank_tolerance)
    weights = checked_weights(design.weights, len(problem.group))
    support = int(np.count_nonzero(weights))
    objective = Objective(problem)
    own = objective.value(problem.merged(weights))
    if not math.isclose(own, design.value, rel_tol=SAME_VALUE):
        raise InvalidInput(
            f"the design is worth {own:.6g} here, not {design.value:.6g}; the slack would refer to another problem. "
            "Pass the features and active arms that the design was solved for."
        )
    enough = math.ceil(support * (1.0 + slack) / slack)
    pulls = max(total, support)
    while True:
        counts = round_design(weights, pulls)
        proven = design.value * pulls * float(np.max(weights[weights > 0] / counts[weights > 0]))
        value = min(pulls * objective.value(problem.merged(counts.astype(np.float64))), proven)
        if value <= (1.0 + slack) * design.value:
            return Allocation(counts, pulls, value)
        pulls = pulls + 1 if pulls >= enough else min(math.ceil(pulls * GROWTH), enough)
