"""The hidden truth that a simulated study is played against."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.environments.answers import RecordedAnswers
from surepick.environments.rewards import MeasuresMore, RewardLaw, law_of
from surepick.errors import InvalidInput
from surepick.noise import Noise, known_scale, scales


@record
class Environment:
    """Arms with their true mean rewards, which can be pulled. A policy never sees one.

    Args:
        arms: the K arms.
        means: the true mean reward of each arm, shape (K,), in the user's sign and unit.
        noise: what is assumed of a reward, and what is drawn unless `law` says otherwise: SubGaussian normal with
            standard deviation sigma, Bounded low or high, Bernoulli 0 or 1. Normal names no scale to draw with, and
            needs a law.
        minimize: small rewards are good.
        law: how rewards are drawn; None: as the noise says.

    Raises:
        InvalidInput: the means are not K finite numbers, or lie outside the range of the noise, or the noise has
            scales for another number of arms, or none and there is no law.
    """

    arms: Arms
    means: FloatArray
    noise: Noise
    minimize: bool
    law: RewardLaw

    def __init__(
        self, *, arms: Arms, means: ArrayLike, noise: Noise, minimize: bool = False, law: RewardLaw | None = None
    ) -> None:
        try:
            truth = np.array(means, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"means are not an array of numbers: {error}.") from error
        if truth.shape != (arms.num_arms,):
            raise InvalidInput(f"means have shape {truth.shape} for {arms.num_arms} arms; give one mean per arm.")
        bad = np.flatnonzero(~np.isfinite(truth))
        if bad.size:
            raise InvalidInput(
                f"{bad.size} of {arms.num_arms} means are not finite (the first is that of arm {arms.ids[bad[0]]!r}); "
                "no arm could be called best."
            )
        if known_scale(noise):
            scales(noise, arms.num_arms)
        fields = {"arms": arms, "means": truth, "noise": noise, "minimize": bool(minimize)}
        for name, value in (fields | {"law": law_of(truth, noise) if law is None else law}).items():
            object.__setattr__(self, name, value)
        freeze(self, means=np.float64)

    @property
    def num_arms(self) -> int:
        return self.arms.num_arms

    @property
    def quantity_means(self) -> FloatArray | None:
        """The true means of what else is measured, shape (K, r); None where it is the reward alone."""
        return self.law.quantity_means if isinstance(self.law, MeasuresMore) else None

    @property
    def best(self) -> int:
        """Index of the best arm, the first of equals."""
        return int(np.argmin(self.means) if self.minimize else np.argmax(self.means))

    @property
    def gaps(self) -> FloatArray:
        """How much worse than the best arm each arm is, shape (K,), >= 0, in reward units."""
        gaps: FloatArray = np.abs(self.means - self.means[self.best])
        return gaps

    def epsilon_best(self, epsilon: float, *, rounding: float = 1e-12) -> BoolArray:
        """Which arms are at most epsilon worse than the best one, shape (K,).

        Args:
            epsilon: in reward units; an arm exactly epsilon away counts.
            rounding: allowance for floating-point means, relative to the largest |mean| (.8 and .7 are stored
                1.1e-16 more than .1 apart).
        """
        good: BoolArray = self.gaps <= epsilon + rounding * np.max(np.abs(self.means))
        return good

    def is_epsilon_best(self, arm: int, epsilon: float, *, rounding: float = 1e-12) -> bool:
        """Whether the arm is at most epsilon worse than the best one; see `epsilon_best`."""
        return bool(self.epsilon_best(epsilon, rounding=rounding)[arm])

    def pull(self, counts: ArrayLike, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times.

        Args:
            counts: shape (K,), non-negative integers.
            rng: the randomness; advanced by the call.

        Returns:
            Counts, sums and sums of squares of the rewards, in the user's sign and unit.

        Raises:
            InvalidInput: the counts are not K non-negative integers.

        Cost: O(K) whatever the counts; O(rows) for recorded rewards.
        """
        pulls = np.asarray(counts)
        if pulls.shape != (self.num_arms,) or not np.issubdtype(pulls.dtype, np.integer) or np.any(pulls < 0):
            raise InvalidInput(
                f"counts of type {pulls.dtype} and shape {pulls.shape} for {self.num_arms} arms; "
                "give one non-negative integer per arm."
            )
        return self.law.draw(pulls.astype(np.int64), rng)

    def answer(self, arms: IntArray, items: IntArray) -> FloatArray:
        """What arms score on test items, shape (m,).

        Args:
            arms: index of each answer's arm, shape (m,).
            items: index of its item, shape (m,).

        Raises:
            InvalidInput: the environment has no test items.
        """
        if not isinstance(self.law, RecordedAnswers):
            raise InvalidInput(
                "the policy asks for test items, and this environment has none; `environments.recorded_answers` has."
            )
        scores: FloatArray = self.law.scores[arms, items]
        return scores
