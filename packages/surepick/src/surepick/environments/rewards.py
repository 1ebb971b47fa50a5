"""How rewards are drawn: one record per law, each giving sufficient statistics exactly and at once.

The sum and the sum of squares of n rewards of an arm are drawn from their joint law, never reward by reward, so that
a call costs the same for one pull and for a million.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from surepick.core.observations import Observations, Quantity, observed
from surepick.core.records import FloatArray, IntArray, frozen, record, set_fields, unwritable
from surepick.errors import InvalidInput
from surepick.noise import Noise, known_scale, scales


class RewardLaw(Protocol):
    """What decides the rewards of a simulated pull."""

    @property
    def means(self) -> FloatArray:
        """The mean reward of each arm, shape (K,), in the user's sign and unit."""

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times."""


@runtime_checkable
class MeasuresMore(Protocol):
    """A law that draws other quantities with each reward: `draw` gives their totals too."""

    @property
    def quantity_means(self) -> FloatArray | None:
        """The mean of each quantity of each arm, shape (K, r); None where there are none."""


@runtime_checkable
class DrawsMany(Protocol):
    """A law that draws for many studies at once."""

    def draw_many(self, counts: IntArray, rngs: Iterable[np.random.Generator]) -> Observations:
        """Pull arm k `counts[i, k]` times in study i, with its randomness; as `draw` of each row, (n, K)."""


@runtime_checkable
class StreamedRewards(Protocol):
    """A law whose rewards are functions of an arm and a stream of random numbers that arms can share."""

    def observe(self, arms: IntArray, streams: Sequence[str], *, seed: int) -> FloatArray:
        """One reward for each arm and key of a stream, shape (n,); equal keys and seeds give arms the same numbers."""


@frozen
class NormalRewards:
    """Rewards N(means, scales^2).

    sum = n mu + sigma sqrt(n) Z,    squares = sum^2 / n + sigma^2 W,    Z ~ N(0, 1), W ~ chi2(n - 1), independent
    """

    means: FloatArray  # mu, shape (K,)
    scales: FloatArray  # sigma, shape (K,), the standard deviation of each arm's rewards

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times: sums and squares, jointly exact in law, with squares >= sum^2 / n."""
        pulled = np.flatnonzero(counts)
        n, sigma = counts[pulled].astype(np.float64), self.scales[pulled]
        sums = n * self.means[pulled] + sigma * np.sqrt(n) * rng.standard_normal(len(pulled))
        chi_squared = 2.0 * rng.standard_gamma((n - 1.0) / 2.0)  # 0 for n = 1
        return _scattered(counts, pulled, sums, sums**2 / n + sigma**2 * chi_squared, sigma**2 * chi_squared)

    def draw_many(self, counts: IntArray, rngs: Iterable[np.random.Generator]) -> Observations:
        """As `draw` of each row of counts, (n, K), with its own randomness."""
        study, arm = np.nonzero(counts)
        n, sigma = counts[study, arm].astype(np.float64), self.scales[arm]
        normal, shapes, gamma = np.empty(len(n)), (n - 1.0) / 2.0, np.empty(len(n))
        for part, rng in zip(_parts_of(study, len(counts)), rngs, strict=True):
            rng.standard_normal(out=normal[part])
            rng.standard_gamma(shapes[part], out=gamma[part])
        sums = n * self.means[arm] + sigma * np.sqrt(n) * normal
        chi_squared = 2.0 * gamma
        columns = sums, sums**2 / n + sigma**2 * chi_squared, sigma**2 * chi_squared
        return _scattered(counts, (study, arm), *columns)


@frozen
class TwoPointRewards:
    """Every reward is `low` or `high`, with the given means: the law of largest variance in [low, high]."""

    means: FloatArray  # (K,), in [low, high]
    low: float
    high: float

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times: the number of `high` rewards is binomial."""
        pulled = np.flatnonzero(counts)
        n, chance = counts[pulled], self._chances[pulled]
        return _scattered(counts, pulled, *self._totals(n, rng.binomial(n, chance)))

    def draw_many(self, counts: IntArray, rngs: Iterable[np.random.Generator]) -> Observations:
        """As `draw` of each row of counts, (n, K), with its own randomness."""
        study, arm = np.nonzero(counts)
        n, chance = counts[study, arm], self._chances[arm]
        parts = zip(_parts_of(study, len(counts)), rngs, strict=True)
        highs = np.concatenate([rng.binomial(n[part], chance[part]) for part, rng in parts])
        return _scattered(counts, (study, arm), *self._totals(n, highs))

    @property
    def _chances(self) -> FloatArray:
        return np.clip((self.means - self.low) / (self.high - self.low), 0.0, 1.0)

    def _totals(self, n: IntArray, highs: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(sums, sums of squares, squared deviations) of n rewards of which so many are high."""
        within = (self.high - self.low) ** 2 * ((n - highs) * (highs / n))
        squares = self.low**2 * (n - highs) + self.high**2 * highs
        return self.low * (n - highs) + self.high * highs, squares, within


@record
class RecordedRewards:
    """A pull of an arm draws one of its recorded rewards, each equally likely, with replacement.

    Args:
        rewards: every recorded reward, shape (rows,).
        arm_of_row: the arm that each belongs to, shape (rows,); every arm 0 .. K-1 has at least one.
        beside: other quantities of each row, shape (rows, r), NaN where one was not measured; None: there are none.

    Cost: O(rows) whatever the counts.
    """

    rewards: FloatArray
    arm_of_row: IntArray
    beside: FloatArray | None = None

    def __post_init__(self) -> None:
        order = np.argsort(self.arm_of_row, kind="stable")
        beside = None if self.beside is None else np.asarray(self.beside, dtype=np.float64)[order]
        set_fields(self, rewards=np.asarray(self.rewards, dtype=np.float64)[order], beside=beside)
        set_fields(self, arm_of_row=np.asarray(self.arm_of_row, dtype=np.int64)[order])

    @property
    def quantity_means(self) -> FloatArray | None:
        """The mean of each quantity over the rows of each arm that have it, shape (K, r); NaN where none has."""
        if self.beside is None:
            return None
        every = self._beside(np.ones(len(self.rewards), np.int64)) or ()
        return np.stack([np.where(one.counts > 0, one.means, np.nan) for one in every], axis=1)

    def _beside(self, times: IntArray) -> tuple[Quantity, ...] | None:
        """Totals of the quantities where each row came so often, shape (rows,)."""
        if self.beside is None:
            return None
        found = []
        for column in self.beside.T:
            there, known = (times * ~np.isnan(column)).astype(np.float64), np.nan_to_num(column)
            away = known - np.nan_to_num(column[self._first])[self.arm_of_row]
            columns = (np.ones_like(known), known, known**2, away, away**2)
            totals = (np.bincount(self.arm_of_row, there * one) for one in columns)
            counts, sums, squares, shifted, apart = (np.asarray(one, np.float64) for one in totals)
            within = np.maximum(apart - shifted**2 / np.maximum(counts, 1.0), 0.0)
            found.append(Quantity(counts.astype(np.int64), sums, squares, within))
        return tuple(found)

    @property
    def repeats(self) -> IntArray:
        """Recorded rewards of each arm, shape (K,)."""
        return np.bincount(self.arm_of_row).astype(np.int64)

    @property
    def _first(self) -> IntArray:
        """Place of the first recorded reward of each arm, shape (K,)."""
        return np.cumsum(self.repeats) - self.repeats

    @property
    def half_ranges(self) -> FloatArray:
        """Half the spread of the recorded rewards of each arm, shape (K,): a sub-Gaussian scale that holds here."""
        most, least = (extreme.reduceat(self.rewards, self._first) for extreme in (np.maximum, np.minimum))
        return (most - least) / 2.0

    @property
    def means(self) -> FloatArray:
        return np.bincount(self.arm_of_row, weights=self.rewards) / self.repeats

    @property
    def variances(self) -> FloatArray:
        """Variance of one drawn reward of each arm, shape (K,); 0 for an arm with one recorded reward."""
        away = self.rewards - self.means[self.arm_of_row]
        return np.bincount(self.arm_of_row, weights=away**2) / self.repeats

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times: how often each of its rewards comes is multinomial.

        Arms pulled less often than they have rewards are drawn pull by pull; for the others the multinomial counts
        are drawn reward by reward, each binomial given the earlier ones, for all arms at once.
        """
        repeats, first, left = self.repeats, self._first, counts.copy()
        rarely = np.where(left < repeats, left, 0)
        arm_of_pull = np.repeat(np.arange(len(counts)), rarely)
        drawn_rows = first[arm_of_pull] + rng.integers(repeats[arm_of_pull])
        times = np.bincount(drawn_rows, minlength=len(self.rewards))
        left -= rarely
        arms, step = np.flatnonzero(left), 0
        while arms.size:
            drawn = rng.binomial(left[arms], 1.0 / (repeats[arms] - step))
            times[first[arms] + step] = drawn
            left[arms] -= drawn
            step += 1
            arms = arms[left[arms] > 0]
        sums: FloatArray = np.bincount(self.arm_of_row, weights=times * self.rewards).astype(np.float64)
        squares: FloatArray = np.bincount(self.arm_of_row, weights=times * self.rewards**2).astype(np.float64)
        away = self.rewards - self.rewards[first][self.arm_of_row]  # an offset of all rewards costs no digit
        shifted, apart = (np.bincount(self.arm_of_row, weights=times * one) for one in (away, away**2))
        within = np.maximum(apart - shifted**2 / np.maximum(counts, 1), 0.0)
        return Observations(counts, sums, squares, quantities=self._beside(times), within=within)


def law_of(means: FloatArray, noise: Noise) -> RewardLaw:
    """The law that an assumed noise is simulated by: normal for sub-Gaussian, two-point for bounded rewards."""
    if not known_scale(noise):
        raise InvalidInput(
            "normal noise of unknown scale does not say how much to scatter the rewards that are simulated. Give the "
            "environment a known scale, SubGaussian(SIGMA), and the policy noise='normal'."
        )
    if noise.support is None:
        return NormalRewards(means, scales(noise, len(means)))
    low, high = noise.support
    outside = np.flatnonzero((means < low) | (means > high))
    if outside.size:
        raise InvalidInput(
            f"{outside.size} of {len(means)} mean rewards lie outside [{low:g}, {high:g}], the range of the noise "
            f"{noise.spec!r} (the first is {means[outside[0]]:g}, arm {outside[0]}). No such rewards exist: correct "
            "the means or declare another noise."
        )
    return TwoPointRewards(means, low, high)


def _parts_of(studies: IntArray, number: int) -> Iterator[slice]:
    """Where the entries of each study are, which come one after the other."""
    ends = np.searchsorted(studies, np.arange(1, number + 1)).tolist()
    return map(slice, [0, *ends[:-1]], ends)


def _scattered(
    counts: IntArray,
    pulled: IntArray | tuple[IntArray, IntArray],
    sums: FloatArray,
    squares: FloatArray,
    within: FloatArray,
) -> Observations:
    columns = [np.zeros(counts.shape) for _ in range(3)]
    for column, values in zip(columns, (sums, squares, within), strict=True):
        column[pulled] = values
    return observed(counts if unwritable(counts) else np.array(counts), columns[0], columns[1], within=columns[2])
