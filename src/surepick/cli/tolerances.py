"""What is said to somebody who gave no tolerance: how far measurements lie apart, and what some tolerances cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.environments import Environment
from surepick.forecasts.rough import rough_pulls, spread_of, tolerances_near
from surepick.noise import Noise, known_scale, largest_scale

LARGEST = 1e100  # scale
UNKNOWN = 3.0  # measurements of each candidate that a scale takes
ASK = (
    "say with --epsilon how much worse than the best the answer may be, in the unit of the measurements; there is no "
    "usual value."
)


def advice_from(environment: Environment, *, declared: bool = True) -> Callable[[float], str]:
    """What to say where measurements are there.

    Args:
        environment: the recorded measurements, or an example.
        declared: its noise is the one that was declared; else the repeats say how large it is.
    """
    spread = spread_of(environment)
    known = declared and known_scale(environment.noise)
    sigma = largest_scale(environment.noise) if known else spread.repeats or 0.0
    means = -environment.means if environment.minimize else environment.means
    sizes = [one for one in ((spread.high - spread.low) / 10.0, sigma / 2.0) if one > 0.0]
    apart = "No candidate was measured twice"
    if spread.repeats is not None:
        apart = f"Repeats of a candidate typically vary by {spread.repeats:.3g} (standard deviation)"
    seen = f" {apart}; the averages of candidates go from {spread.low:.4g} to {spread.high:.4g}."

    def advice(delta: float) -> str:
        return ASK + seen + _prices(means, sigma, sizes[0] if sizes else 0.0, delta, least=1.0 if known else UNKNOWN)

    return advice


def advice_for(num_arms: int, noise: Noise) -> Callable[[float], str]:
    """What to say where nothing was measured.

    Args:
        num_arms: how many candidates there are.
        noise: what is assumed of a measurement.
    """
    sigma = largest_scale(noise) if known_scale(noise) else 0.0

    def advice(delta: float) -> str:
        if not sigma:
            return f"{ASK} What difference would change a decision? surepick forecast says what a tolerance costs."
        return ASK + _prices(np.zeros(num_arms), sigma, sigma / 2.0, delta, ", if all candidates are equally good")

    return advice


def _prices(means: FloatArray, sigma: float, size: float, delta: float, when: str = "", *, least: float = 1.0) -> str:
    chosen = tolerances_near(size)
    if not (chosen and 0.0 < delta < 1.0 and 0.0 < sigma < LARGEST):
        return ""
    prices = [f"{one:g} takes {rough_pulls(means, sigma, one, delta, least=least):,}" for one in chosen]
    said = f"--epsilon {prices[0]} measurements, {', '.join(prices[1:])}"
    return f" Very roughly{when} (surepick forecast knows better): {said}."
