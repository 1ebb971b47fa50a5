"""Repeats that are all equal, where they alone say how much measurements vary: such a study would go on for ever."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from surepick.core.arrays import BoolArray, IntArray
from surepick.core.observations import Observations
from surepick.noise import known_scale
from surepick.policies.base import Problem
from surepick.text import quoted

FEWEST = 3  # equal repeats of a candidate that are worth a word
ENDLESS = 30  # after so many we expect no other
SHOWN = 3  # names in a message


def equal_repeats(problem: Problem, seen: Observations, least: int = FEWEST) -> IntArray:
    """The arms with so many repeats or more that are all equal, to within rounding; none where a scale is declared."""
    if known_scale(problem.noise) or (seen.within is None and seen.squares is None):
        return np.empty(0, np.int64)
    return np.flatnonzero((seen.counts >= least) & (seen.deviations <= 2.0 * seen.rounding))


def endless(problem: Problem, seen: Observations, asked: BoolArray, *, features: bool) -> bool:
    """Whether no end is in sight: an arm that must be decided shows no scale, so that no bet on it is possible.

    Args:
        asked: the arms that must still be decided, shape (K,).
        features: others may speak for an arm; then every arm that was repeated must be such a one.
    """
    equal = equal_repeats(problem, seen, ENDLESS)
    if not features:
        return bool(asked[equal].any())
    return len(equal) > 0 and int(np.count_nonzero(seen.counts >= FEWEST)) == len(equal_repeats(problem, seen))


def all_equal(names: Sequence[str]) -> str:
    """What is said of them."""
    shown = ", ".join(quoted(name) for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN:,} others" if len(names) > SHOWN else ""
    return (
        f"All repeats of {shown}{more} are equal, and equal repeats show no scale: with noise normal nothing can be "
        "proved of such a candidate. Start a study with bounded:LOW:HIGH, if rewards have a range, or "
        "subgaussian:SIGMA; or report single results with more digits."
    )


def said(problem: Problem, arms: IntArray) -> str:
    """The same of the arms of a problem; "" of none."""
    if len(arms) == 0:
        return ""
    return all_equal([str(arm) if problem.arms is None else problem.arms.ids[arm] for arm in arms.tolist()])
