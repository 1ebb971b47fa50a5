"""Tables with one value an arm: the truth is theirs, the noise is added."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from surepick.core.validation import positive_number
from surepick.environments.environment import Environment
from surepick.environments.recorded import table
from surepick.errors import InvalidInput
from surepick.noise import SubGaussian
from surepick.tables import Names


def table_with_added_noise(
    path: str | Path,
    id: Names | None = None,  # noqa: A002 (the public name)
    reward: str | None = None,
    features: Names | None = None,
    *,
    sigma: float,
    minimize: bool | None = None,
    standardize: bool = False,
    intercept: bool = False,
) -> Environment:
    """A recorded table whose measurements were not repeated, made noisy: means scaled to [0, 1], noise N(0, sigma^2).

        mean = (value - worst)/(best - worst)

    Only the truth is recorded; the noise is invented, and says nothing about the instrument. Use `table` where
    measurements were repeated.

    Args:
        path, id, reward, features, standardize, intercept: as in `table`; several rows of an arm are averaged first.
        sigma: standard deviation of the added noise, in units of the distance from the worst arm to the best.
        minimize: small values are good; None: as an Olympus folder says, else False.

    Returns:
        An environment in which large rewards are good whatever the direction was: the best arm has mean 1, the worst 0.

    Raises:
        InvalidInput: as `table` does, sigma is not positive, or all arms have the same value.
    """
    positive_number("sigma", sigma, "the noise that is added.")
    recorded = table(
        path,
        id,
        reward,
        features,
        noise=SubGaussian(sigma),
        minimize=minimize,
        standardize=standardize,
        intercept=intercept,
    )
    distance = float(np.ptp(recorded.means))
    if distance == 0.0:
        raise InvalidInput(
            f"all {recorded.num_arms} arms of {path} have the value {recorded.means[0]:g}; nothing could be chosen."
        )
    means = 1.0 - recorded.gaps / distance
    return Environment(arms=recorded.arms, means=np.clip(means, 0.0, 1.0), noise=SubGaussian(sigma))
