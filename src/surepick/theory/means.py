"""Checks of the true means, which only complexity measures have; no policy does."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray
from surepick.core.validation import not_negative
from surepick.errors import InvalidInput


def checked_means(means: ArrayLike, num_arms: int) -> FloatArray:
    """h as K finite floats, large is good.

    Raises:
        InvalidInput: another shape, or entries that are NaN or infinite.
    """
    try:
        values = np.asarray(means, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"means are not an array of numbers: {error}.") from error
    if values.shape != (num_arms,):
        raise InvalidInput(f"means have shape {values.shape} for {num_arms} arms; give one mean per arm.")
    if not np.isfinite(values).all():
        raise InvalidInput(f"the mean of arm {int(np.flatnonzero(~np.isfinite(values))[0])} is not finite.")
    return values


def checked_accuracy(epsilon: float) -> float:
    """epsilon as a finite float that is not negative."""
    return not_negative("epsilon", epsilon, "a shortfall, in reward units.")


def checked_gaps(means: ArrayLike, num_arms: int, gap_bound: float) -> FloatArray:
    """Delta_x = max h - h(x) for every arm.

    Raises:
        InvalidInput: as `checked_means`, or a gap exceeds the bound that the rounds start from.
    """
    values = checked_means(means, num_arms)
    gaps: FloatArray = values.max() - values
    if not gaps.max() <= gap_bound * (1.0 + 1e-9):
        raise InvalidInput(
            f"gap_bound is {gap_bound:g}, but these means have a gap of {gaps.max():g}: the first round would not be "
            "covered. Give a larger gap_bound."
        )
    return gaps
