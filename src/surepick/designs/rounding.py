"""From weights to whole pulls, with a promise on what the rounding costs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.designs.objective import worth
from surepick.designs.problem import checked_weights, pose
from surepick.errors import InvalidInput
from surepick.records import Allocation, Design, FloatArray, IntArray

GROWTH = 1.1


def round_design(weights: ArrayLike, total: int) -> IntArray:
    """Efficient apportionment (Adams' divisor method): whole pulls in proportion to the weights.

        n_i = max(1, ceil((N - p/2) w_i)),  then single pulls are added or taken where they change least

    so that min_i n_i / w_i is as large as whole numbers allow, hence A(n) >= (N - p) A(w), p the support of w.

    Args:
        weights: w, shape (K,), non-negative; normalised here.
        total: N, number of pulls, at least the support.

    Returns:
        n, shape (K,), integers with sum N; n_i >= 1 exactly where w_i > 0.

    Raises:
        InvalidInput: total is below the support, or the weights are negative, not finite or all zero.

    Source: Pukelsheim, Optimal Design of Experiments, chapter 12.
    Cost: O(p) time.
    """
    lam = np.asarray(weights, dtype=np.float64)
    lam = checked_weights(lam, lam.size)
    support = np.flatnonzero(lam)
    size = len(support)
    if total < size:
        raise InvalidInput(
            f"{total} pulls cannot be spread over {size} supported arms: every one needs a pull, or the differences "
            f"that it carries are not measured. Ask for at least {size}."
        )
    shares = lam[support] / lam[support].sum()
    pulls = np.maximum(np.ceil((total - 0.5 * size) * shares), 1.0).astype(np.int64)
    counts = np.zeros(len(lam), np.int64)
    counts[support] = _corrected(pulls, shares, int(total))
    return counts


def _corrected(pulls: IntArray, shares: FloatArray, total: int) -> IntArray:
    """Pulls that sum to the total, by adding where n/w is smallest or taking where (n-1)/w is largest."""
    excess = int(pulls.sum()) - total
    while excess != 0:
        if excess < 0:
            rank, change = pulls / shares, 1
            movable = np.arange(len(pulls))
        else:
            rank, change = -(pulls - 1) / shares, -1
            movable = np.flatnonzero(pulls > 1)
        steps = min(abs(excess), len(movable))
        chosen = movable[np.argpartition(rank[movable], steps - 1)[:steps]]
        pulls[chosen] += change
        excess += change * steps
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

    holds for every N >= p (1 + slack)/slack, p the support; it usually does for about a quarter of that, so the
    allocation is evaluated and N raised by tenths, to that number at most.

    Args:
        design: of these features and active arms.
        features: x, shape (K, d), as the design was solved for.
        total: N asked, in pulls; below the support it is raised to it.
        slack: zeta, above 0.
        active: arms that are compared, as for the design.
        rank_tolerance: as for the design.

    Returns:
        Allocation: counts, their sum, and the left-hand side above.

    Raises:
        InvalidInput: slack not positive, or the design does not belong to these features.

    Source: Algorithm 1, lines 6-7.       Differs from the paper: the support in place of d(d+1)/2 + 1, and evaluated.
    Cost: a few evaluations of the objective.
    """
    if not slack > 0.0:
        raise InvalidInput(f"slack is {slack}; whole pulls cannot match a design exactly, .1 is usual.")
    problem = pose(features, active, rank_tolerance=rank_tolerance)
    weights = checked_weights(design.weights, len(problem.group))
    support = int(np.count_nonzero(weights))
    enough = math.ceil(support * (1.0 + slack) / slack)
    pulls = max(int(total), support)
    while True:
        counts = round_design(weights, pulls)
        value = pulls * worth(problem, problem.merged(counts.astype(np.float64)))
        if value <= (1.0 + slack) * design.value:
            return Allocation(counts, pulls, value)
        if pulls >= enough:
            raise InvalidInput(
                f"{pulls} pulls give {value:.6g}, above (1 + {slack}) * {design.value:.6g}, although {enough} suffice "
                "for a design of these features. Pass the features and active arms that the design was solved for."
            )
        pulls = min(math.ceil(pulls * GROWTH), enough)
