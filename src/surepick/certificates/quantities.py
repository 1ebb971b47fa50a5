"""What was measured beside the reward, in a certificate: to JSON data and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.certificates.columns import dense, totals_of
from surepick.core.arrays import FloatArray, IntArray
from surepick.core.observations import Observations, Quantity

ROUNDING = 1e-9


def quantities_entry(seen: Observations) -> dict[str, Any]:
    """The totals of what else was measured, one a constraint; nothing where it was the reward alone."""
    if seen.quantities is None:
        return {}
    return {"quantities": [totals_of(one.observations, minimize=False) for one in seen.quantities]}


def with_quantities(seen: Observations, look: Mapping[str, Any], *, wanted: int) -> Observations:
    """What was received, with the totals of what else was measured.

    Args:
        seen: the totals of the rewards.
        wanted: how many constraints the policy has.

    Raises:
        ValueError: quantities are missing or not wanted, or are totals that cannot be.
    """
    number, found = look["plan"], look.get("quantities", [])
    if len(found) != (wanted if seen.total > 0 else 0):
        raise ValueError(
            f"plan {number}: {len(found)} quantities beside the reward, and there are {wanted} constraints"
        )
    if not found:
        return seen
    read = []
    for one in found:
        counts = dense(one, len(seen.counts))
        arms = np.flatnonzero(counts)
        columns = (one["sums"], one["squares"], *([one["deviations"]] if "deviations" in one else []))
        if any(len(column) != len(arms) or not all(map(_finite, column)) for column in columns):
            raise ValueError(f"plan {number}: totals of a quantity are not one number for each candidate that has some")
        placed = np.zeros((len(columns), len(counts)))
        placed[:, arms] = columns
        sums, squares, within = placed[0], placed[1], placed[2] if len(placed) > 2 else None
        least = np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
        if np.any(counts > seen.counts) or np.any(squares < least * (1.0 - 1e-6) - ROUNDING):
            raise ValueError(f"plan {number}: totals of a quantity are none that its measurements can have")
        if within is not None:
            check_deviations(counts, sums, squares, within)
        read.append(Quantity(counts, sums, squares, within))
    return replace(seen, quantities=tuple(read))


def check_deviations(counts: IntArray, sums: FloatArray, squares: FloatArray | None, within: FloatArray) -> None:
    """Refuse deviations from the mean that do not go with the other totals, each of shape (K,).

    Raises:
        ValueError: no values have them.
    """
    wrong = (within < 0.0) | ~np.isfinite(within) | ((counts < 2) & (within != 0.0))
    if squares is not None:
        implied = within + np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
        wrong |= np.abs(implied - squares) > 1e-6 * squares + ROUNDING
    if wrong.any():
        raise ValueError("deviations of a candidate's results from their mean do not go with their squares")


def _finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
