"""Rewards with an effect that all measurements of a block share, for simulations."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.observations import Observations
from surepick.core.validation import not_negative
from surepick.environments.environment import Environment
from surepick.environments.rewards import RewardLaw


@record
class BlockRewards:
    """Rewards of another law, and on all of a call the same effect, drawn from N(0, scale^2): a call is a block.

    Args:
        law: the rewards without effects.
        scale: standard deviation of the effects, in reward units.
    """

    law: RewardLaw
    scale: float

    @property
    def means(self) -> FloatArray:
        """The mean reward of each arm over all blocks, shape (K,)."""
        return self.law.means

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times in one block."""
        effect = self.scale * float(rng.standard_normal())
        seen = self.law.draw(counts, rng)
        squares = None if seen.squares is None else seen.squares + effect * (2.0 * seen.sums + counts * effect)
        return Observations(seen.counts, seen.sums + counts * effect, squares, within=seen.within)


def with_block_effects(environment: Environment, scale: float) -> Environment:
    """The environment with an effect on each block of measurements: `simulate` pulls a block at a time.

    Args:
        environment: the truth; its noise is that of measurements in the same block.
        scale: standard deviation of the effects, in reward units, >= 0.

    Raises:
        InvalidInput: the scale is negative or no number.
    """
    not_negative("scale", scale, "how much the effects of blocks differ, in reward units.")
    return Environment(
        arms=environment.arms,
        means=environment.means,
        noise=environment.noise,
        minimize=environment.minimize,
        law=BlockRewards(environment.law, float(scale)),
    )
