"""A rough price of a tolerance, by a formula: what is said before anybody has chosen one."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.environments.environment import Environment
from surepick.environments.rewards import RecordedRewards

LADDER = (1.0, 2.0, 5.0)


@record
class Spread:
    """How far recorded measurements lie apart.

    Args:
        repeats: standard deviation of the repeats of a candidate, typically; None where nothing was measured twice.
        low, high: the smallest and the largest average of a candidate.
    """

    repeats: float | None
    low: float
    high: float


def spread_of(environment: Environment) -> Spread:
    """That of recorded measurements; of other environments the scale of their noise stands for the repeats."""
    law, means = environment.law, environment.means
    low, high = float(means.min()), float(means.max())
    if not isinstance(law, RecordedRewards):
        return Spread(float(np.median(environment.noise.sigma)), low, high)
    again = law.repeats > 1
    if not again.any():
        return Spread(None, low, high)
    variances = law.variances[again] * law.repeats[again] / (law.repeats[again] - 1)
    return Spread(float(np.sqrt(np.median(variances))), low, high)


def tolerances_near(size: float) -> tuple[float, ...]:
    """Three round numbers about a size: that below it, the nearest one (by ratio), and that above; () of no size."""
    if not (math.isfinite(size) and 1e-300 < size < 1e300):
        return ()
    power = math.floor(math.log10(size))
    steps = [step * 10.0**each for each in range(power - 1, power + 2) for step in LADDER]
    nearest = min(range(1, len(steps) - 1), key=lambda place: abs(math.log(steps[place] / size)))
    return tuple(float(f"{step:.1g}") for step in steps[nearest - 1 : nearest + 2])


def rough_pulls(means: FloatArray, sigma: float, epsilon: float, delta: float, *, least: float = 1.0) -> int:
    """Measurements that an epsilon-best answer may take, within a factor of two or so.

        sum_i max(least, 4 sigma^2 log((K - 1) / delta) / (gap_i + epsilon)^2)

    Args:
        means: shape (K,), large ones good; all equal where nothing is known of them.
        sigma: the scale of a measurement.
        epsilon, delta: the promise.
        least: measurements of each candidate that are needed anyway.

    Returns:
        To two digits.

    Source: ours. Each candidate is told from the best, up to epsilon; compared with runs in tests/forecasts.
    """
    if len(means) < 2:
        return 0
    gaps = means.max() - means
    gaps[np.argmax(means)] = np.sort(gaps)[1]  # the best one is measured as often as its closest rival
    each = 4.0 * sigma**2 * math.log((len(means) - 1) / delta) / (gaps + epsilon) ** 2
    return int(float(f"{min(float(np.sum(np.maximum(each, least))), 1e18):.2g}"))
