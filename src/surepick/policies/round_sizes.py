"""Whole pulls of a round: how many, and how they are spread over the arms."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.design import Design, Embedding, IndependentArms
from surepick.designs import allocate, round_design
from surepick.errors import ContractError

FLOORS = ("support", "published")
MOST_PULLS = 1e15


def whole_pulls(number: float) -> int:
    """The number of pulls rounded up, at least 1.

    Raises:
        ContractError: it is beyond what anybody could measure (10^15).
    """
    if not number < MOST_PULLS:
        raise ContractError(
            f"this round would need {number:.3g} pulls: epsilon is too small for this noise. Raise epsilon, or measure "
            "with less noise."
        )
    return max(1, math.ceil(number))


def rounded(
    floor: str, design: Design, embedded: Embedding | IndependentArms, active: IntArray, total: int, *, slack: float
) -> IntArray:
    """The pulls of each arm in a round of about `total`, shape (K,).

    floor "support": the realised allocation keeps N max ||y||^2_{A^-1} <= (1 + zeta) tau, raising N if it must.
    floor "published": N is at least 2 p / zeta for a design that supports p arms, as in the published code.

    Args:
        slack: zeta.
    """
    if floor == "published":
        least = math.ceil(2.0 * np.count_nonzero(design.weights) / slack)
        return round_design(design.weights, max(total, least))
    if isinstance(embedded, IndependentArms):
        counts = np.zeros(embedded.num_arms, np.int64)
        counts[active] = math.ceil(total / len(active))  # equal counts lose nothing to rounding
        return counts
    return allocate(design, embedded.features, total, slack=slack, active=active).counts
