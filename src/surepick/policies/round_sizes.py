"""Whole pulls of a round."""

from __future__ import annotations

import math

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
