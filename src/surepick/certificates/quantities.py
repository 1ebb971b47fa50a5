"""What was measured beside the reward, in a certificate: to JSON data and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.certificates.columns import dense, totals_of
from surepick.core.observations import Observations, Quantity

ROUNDING = 1e-9


def quantities_entry(seen: Observations) -> dict[str, Any]:
    """The totals of what else was measured, one a constraint; nothing where it was the reward alone."""
    if seen.quantities is None:
        return {}
    told = [Observations(one.counts, one.sums, one.squares) for one in seen.quantities]
    return {"quantities": [totals_of(one, minimize=False) for one in told]}


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
        columns = (one["sums"], one["squares"])
        if any(len(column) != len(arms) or not all(map(_finite, column)) for column in columns):
            raise ValueError(f"plan {number}: totals of a quantity are not one number for each candidate that has some")
        sums, squares = np.zeros(len(counts)), np.zeros(len(counts))
        sums[arms], squares[arms] = columns
        least = np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0)
        if np.any(counts > seen.counts) or np.any(squares < least * (1.0 - 1e-6) - ROUNDING):
            raise ValueError(f"plan {number}: totals of a quantity are none that its measurements can have")
        read.append(Quantity(counts, sums, squares))
    return replace(seen, quantities=tuple(read))


def _finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)
