"""Squared deviations from a mean, added up so that an offset of all values costs no digit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np

from surepick.core.arrays import FloatArray, IntArray

Columns = tuple[IntArray, IntArray, FloatArray, FloatArray | None]


def known_deviations(pulls: IntArray, within: FloatArray | None) -> FloatArray | None:
    """What rows of so many pulls say of their own deviations, shape (n,): 0 of single ones; None: not all say it."""
    return np.zeros(len(pulls)) if within is None and np.all(pulls <= 1) else within


def deviations_of(parts: Iterable[Columns], num_arms: int) -> FloatArray | None:
    """sum (r - mean)^2 of each arm, shape (K,), the same in any order of the rows; None where some row does not say it.

    Differences from the median row are added up: so equal rewards have exactly 0, and an offset of all costs no digit.

    Args:
        parts: (arm, pulls, total, squared deviations from the row's own mean or None) of rows.
        num_arms: K.
    """
    rows: dict[int, list[tuple[float, int, float]]] = defaultdict(list)
    for arms, pulls, sums, within in parts:
        own = known_deviations(pulls, within)
        if own is None:
            return None
        means = np.divide(sums, pulls, out=np.zeros(len(sums)), where=pulls > 0)
        for arm, mean, number, apart in zip(arms.tolist(), means.tolist(), pulls.tolist(), own.tolist(), strict=True):
            if number:
                rows[arm].append((mean, number, apart))
    found = np.zeros(num_arms)
    for arm, several in rows.items():
        middle = sorted(several)[(len(several) - 1) // 2][0]
        away = [(mean - middle, number, apart) for mean, number, apart in several]
        first = math.fsum(number * one for one, number, _ in away)
        second = math.fsum(apart + number * one * one for one, number, apart in away)
        found[arm] = max(second - first * first / sum(number for _, number, _ in away), 0.0)
    return found
