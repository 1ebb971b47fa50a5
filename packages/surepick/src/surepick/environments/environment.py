"""The hidden truth that a simulated study is played against."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record, set_fields
from surepick.core.values import not_negative
from surepick.environments.rewards import MeasuresMore, RecordedRewards, RewardLaw, law_of
from surepick.errors import InvalidInput
from surepick.noise import Noise, PilotGaussian, known_scale, scales
from surepick.text import quoted

# --- What every arm answers to every one of a finite set of test items.


@frozen
class RecordedAnswers:
    """Scores of K arms on N items. A pull that is a draw takes a random item, with replacement."""

    scores: FloatArray  # in [0, 1], shape (K, N)

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or not self.scores.size:
            raise InvalidInput(f"scores have shape {self.scores.shape}; they must be (K, N), a row an arm.")
        if not np.all((self.scores >= 0.0) & (self.scores <= 1.0)):
            raise InvalidInput("scores of test items must lie between 0 and 1; divide them by the full score.")

    @property
    def as_draws(self) -> RecordedRewards:
        """The law of pulls that take a random item each."""
        num_arms, num_items = self.scores.shape
        return RecordedRewards(self.scores.ravel(), np.repeat(np.arange(num_arms), num_items))

    @property
    def means(self) -> FloatArray:
        """The mean score of each arm, shape (K,)."""
        return self.as_draws.means

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times, each a random item."""
        return self.as_draws.draw(counts, rng)


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
        law = law_of(truth, noise) if law is None else law
        set_fields(self, arms=arms, means=truth, noise=noise, minimize=bool(minimize), law=law)

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
        return np.asarray(np.abs(self.means - self.means[self.best]))

    def epsilon_best(self, epsilon: float, *, rounding: float = 1e-12) -> BoolArray:
        """Which arms are at most epsilon worse than the best one, shape (K,).

        Args:
            epsilon: in reward units; an arm exactly epsilon away counts.
            rounding: allowance for floating-point means, relative to the largest |mean| (.8 and .7 are stored
                1.1e-16 more than .1 apart).
        """
        return np.asarray(self.gaps <= epsilon + rounding * np.max(np.abs(self.means)))

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
        if pulls.shape != (self.num_arms,) or pulls.dtype.kind not in "iu" or pulls.min(initial=0) < 0:
            raise InvalidInput(
                f"counts of type {pulls.dtype} and shape {pulls.shape} for {self.num_arms} arms; "
                "give one non-negative integer per arm."
            )
        return self.law.draw(pulls.astype(np.int64, copy=False), rng)

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
        return self.law.scores[arms, items]


# --- What recorded measurements say against the noise that is declared for them, in sentences.

ENOUGH_RECORDS = 20  # of a candidate; draws from fewer values are far from normal
FEW_RECORDS = (
    "a rehearsal draws from the recorded measurements, and of some candidates there are only {few}. Draws from so few "
    "values are not normal, so its certificate shows what a study says and costs, not that the answer is right."
)
LARGEST = 1e150  # scale whose square is a number
QUIET = 0.7  # of the declared standard deviation; a study of rewards that vary less ends clearly earlier


def doubts_of_noise(recorded: Environment) -> list[str]:
    """Why the declared noise may be too small, so that a certificate is worthless; empty: nothing says so."""
    law, noise = recorded.law, recorded.noise
    if not isinstance(law, RecordedRewards):
        return []
    if isinstance(noise, PilotGaussian):
        return _doubts_of_pilot(recorded, law, noise)
    if not known_scale(noise):  # draws from a few records are not normal
        few = int(law.repeats.min())
        return [FEW_RECORDS.format(few=few)] if few < ENOUGH_RECORDS else []
    half, declared = law.half_ranges, scales(noise, recorded.num_arms)
    if not half.any():
        return ["every candidate has one measured value, so repeating a measurement gives the same number: no noise."]
    worst = int(np.argmax(half - declared))
    if half[worst] <= declared[worst]:
        return []
    return [
        f"the repeats of {recorded.arms.ids[worst]} span {2 * half[worst]:.4g}; half of that is more than the declared "
        f"noise scale {declared[worst]:.4g}. If that scale is too small, the certificate is worthless."
    ]


def _doubts_of_pilot(recorded: Environment, law: RecordedRewards, noise: PilotGaussian) -> list[str]:
    """That candidates vary more than the bound that a pilot found for all of them."""
    off = (law.rewards - law.means[law.arm_of_row]) ** 2
    deviations = np.sqrt(np.bincount(law.arm_of_row, weights=off) / law.repeats)
    larger, worst = int(np.count_nonzero(deviations > noise.sigma)), int(np.argmax(deviations))
    if larger == 0:
        return []
    return [
        f"the recorded measurements of {recorded.arms.ids[worst]} have standard deviation {deviations[worst]:.4g}, and "
        f"the pilot's bound is {noise.sigma:.4g}, which {larger:,} of {recorded.num_arms:,} candidates exceed. A "
        "rehearsal draws from these records. They share no such standard deviation, so its certificate may be "
        "worthless."
    ]


def recorded_totals(recorded: Environment) -> Observations | None:
    """What the repeats on record say of spreads, as if each was measured once; None of an environment without."""
    law = recorded.law
    if not isinstance(law, RecordedRewards):
        return None
    return Observations(law.repeats, law.means * law.repeats, within=law.variances * law.repeats)


def check_kind(recorded: Environment) -> None:
    """Refuse results of 0 and 1 for whose noise nobody has spoken."""
    law = recorded.law
    if isinstance(law, RecordedRewards) and np.isin(law.rewards, (0.0, 1.0)).all():
        raise InvalidInput(
            "all results are 0 or 1. If each is one success or failure, confirm that with --noise bernoulli; if they "
            "are numbers that happen to be so, --noise normal."
        )


def check_recorded_repeats(recorded: Environment, *, features: bool) -> None:
    """Refuse a rehearsal that could not end: repeats alone show a scale, and those of candidates that decide do not."""
    law = recorded.law
    if known_scale(recorded.noise) or not isinstance(law, RecordedRewards):
        return
    equal = np.flatnonzero(law.half_ranges == 0.0)
    if len(equal) == 0 or (features and 2 * len(equal) <= recorded.num_arms):
        return
    raise InvalidInput(
        f"{len(equal):,} of {recorded.num_arms:,} candidates have no two measured values that differ (the first is "
        f"{quoted(recorded.arms.ids[equal[0]])}). With noise normal, as it is where nothing else is declared, repeats "
        "alone show how much measurements vary, so that this rehearsal would not end. Say how much with --noise "
        "subgaussian:SIGMA, SIGMA the standard deviation of repeats; or bounded:LOW:HIGH, if rewards have a range; or "
        "leave these candidates out."
    )


def quieter_records(recorded: Environment) -> list[str]:
    """Why a study of the records may end clearly earlier than a forecast with the declared noise says, if it may."""
    if not isinstance(recorded.law, RecordedRewards) or not known_scale(recorded.noise):
        return []
    assumed = np.minimum(scales(recorded.noise, recorded.num_arms), LARGEST) ** 2
    if recorded.noise.support is not None:  # simulated rewards are low or high, the widest law with that mean
        low, high = recorded.noise.support
        assumed = (recorded.means - low) * (high - recorded.means)
    drawn, simulated = (float(np.sqrt(np.mean(variances))) for variances in (recorded.law.variances, assumed))
    if drawn >= QUIET * simulated:
        return []
    return [
        f"the guess simulates measurements with the declared noise (standard deviation {simulated:.3g}); repeats in "
        f"this table vary by {drawn:.3g}. surepick run draws from the table, so it may end after half as many "
        "measurements or fewer. Expect the guess where the noise is as declared; if it is smaller, declare less."
    ]


# --- Rewards with an effect that all measurements of a block share, for simulations.


@record
class BlockRewards:
    """Rewards of another law, and on all of a call the same effect, drawn from N(0, scale^2): a call is a block."""

    law: RewardLaw  # the rewards without effects
    scale: float  # standard deviation of the effects, in reward units

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
    return replace(environment, law=BlockRewards(environment.law, float(scale)))
