"""A pilot before a study: the spread of repeated measurements bounds the scale of the noise."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, IntArray
from surepick.core.special_functions import scipy
from surepick.core.values import LARGEST_WHOLE, probability, real_numbers
from surepick.environments import Environment, RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import TOO_SMALL, PilotGaussian
from surepick.policies.prices import Costs

SHARE_OF_DELTA = 0.1


@dataclass(frozen=True, slots=True)
class NoisePilot:
    """What a pilot measured and found."""

    noise: PilotGaussian  # normal noise with a bound on its standard deviation
    pulls: int  # measurements that it took
    candidates: int  # how many candidates they went to
    cost: float  # money that they took, 1 each where the candidates have no costs

    def __str__(self) -> str:
        return (
            f"Pilot: {self.pulls:,} measurements on {self.candidates:,} candidate{'s' * (self.candidates > 1)}; "
            f"standard deviation at most {self.noise.sigma:g} (except with probability {self.noise.failure:g})."
        )


def pilot_noise(counts: ArrayLike, sums: ArrayLike, squares: ArrayLike, *, failure: float) -> PilotGaussian:
    """Normal noise whose standard deviation is bounded by the spread of repeated measurements.

        sigma = sqrt(SS / chi2_quantile(failure, nu)),  SS = sum_i (squares_i - sums_i^2 / n_i),  nu = sum_i (n_i - 1)

    over the arms i with n_i >= 2 pulls. If every measurement is normal around the mean of its arm with one standard
    deviation s, SS / s^2 is chi-square with nu degrees of freedom whatever the means are (Cochran's theorem), so
    sigma < s, which is SS / s^2 < chi2_quantile(failure, nu), has probability exactly `failure`. SS is also independent
    of the means of the pilot. Which arms are measured how often must be fixed beforehand, and a study must not use
    these measurements again; then it errs with probability at most `failure` more than if s were known.

    Args:
        counts: n, shape (K,), pulls of each arm in the pilot, whole numbers; arms with 0 or 1 add nothing.
        sums: sum of the rewards of each arm, shape (K,), in reward units.
        squares: sum of their squares, shape (K,). Subtract a constant from all rewards of an arm beforehand (its
            first one, say) if they are large against their spread: no bound changes, and fewer digits are lost.
        failure: probability with which the bound may be too small, in (0, 1); a tenth of delta is a good choice.

    Returns:
        The noise, with failure and nu. SS is taken with the most that rounding can have hidden, so that lost digits
        make the bound larger, never smaller.

    Raises:
        InvalidInput: shapes differ, a number has no meaning, no arm was measured twice, no spread is left beyond
            rounding, or squares are smaller than the sums allow.

    Source: ours; the distribution of SS is Cochran's theorem.
    """
    chance = probability("failure", failure, TOO_SMALL)
    pulls, totals, raw = _checked_columns(counts, sums, squares)
    repeats = int(pulls.sum()) - len(pulls)
    if repeats < 1:
        raise InvalidInput(
            "no arm of the pilot was measured twice. The spread of a measurement shows in repeats of the same arm "
            "only. Measure some arms twice or more."
        )
    with np.errstate(over="ignore"):
        within = raw - totals / pulls * totals
    rounding = 2.0 * np.finfo(np.float64).eps * (pulls + 1.0) * raw
    if np.any(within < -rounding):
        raise InvalidInput(
            "an arm's squares are smaller than its sums allow: the sum of the squares of n rewards is at least their "
            "sum squared / n. Give the sums of the squared rewards."
        )
    spread = math.fsum(np.maximum(within, 0.0))
    if spread <= math.fsum(rounding):
        raise InvalidInput(
            f"the repeats of the pilot ({repeats} degrees of freedom) are all equal, or equal to within rounding, so "
            "they bound no standard deviation: they are rounded, copies of one record, or far from 0 with a small "
            "spread. Measure afresh with more digits, subtract a constant from all rewards first, or declare "
            "subgaussian:SIGMA."
        )
    quantile = 2.0 * float(scipy.special.gammaincinv(repeats / 2.0, chance))
    return PilotGaussian(math.sqrt(spread + math.fsum(rounding)) / math.sqrt(quantile), chance, repeats)


def _checked_columns(counts: ArrayLike, sums: ArrayLike, squares: ArrayLike) -> tuple[IntArray, FloatArray, FloatArray]:
    """(counts, sums, squares) of the arms that were pulled at least twice."""
    wrong = "counts, sums and squares of a pilot are three lists of numbers"
    given = [real_numbers("one", column, wrong=wrong, truths=False) for column in (counts, sums, squares)]
    pulls, totals, raw = given
    if pulls.ndim != 1 or totals.shape != pulls.shape or raw.shape != pulls.shape:
        raise InvalidInput(
            f"counts, sums and squares have shapes {pulls.shape}, {totals.shape}, {raw.shape}; give one number per arm "
            "in each."
        )
    counted = (pulls >= 0) & (pulls <= LARGEST_WHOLE) & (pulls == np.floor(pulls))
    if not np.all(counted) or not all(np.all(np.isfinite(column)) for column in (totals, raw)):
        raise InvalidInput("counts must be whole numbers from 0 to 2^53, and all sums and squares finite.")
    repeated = pulls > 1
    return pulls[repeated].astype(np.int64), totals[repeated], raw[repeated]


def take_pilot(environment: Environment, pulls: int, *, delta: float, seed: int) -> NoisePilot:
    """Measure candidates chosen at random, two times each or more, and bound the noise from their spread."""
    probability("delta", delta, "the probability of a wrong answer.")
    counts = repeated_pulls(_repeatable(environment), pulls, environment.num_arms, stream(seed, "pilot"))
    sums, squares = _centred(environment, counts, stream(seed, "pilot", "rewards"))
    noise = pilot_noise(counts, sums, squares, failure=SHARE_OF_DELTA * delta)
    cost = Costs(environment.arms.costs).total(counts, batches=0)
    return NoisePilot(noise, pulls, int(np.count_nonzero(counts)), cost)


def repeated_pulls(candidates: IntArray, pulls: int, num_arms: int, rng: np.random.Generator) -> IntArray:
    """Pulls of each arm, shape (K,): two or more of each arm that is drawn, as evenly as whole numbers can be."""
    taken = rng.choice(candidates, size=min(pulls // 2, len(candidates)), replace=False)
    counts = np.zeros(num_arms, dtype=np.int64)
    counts[taken] = pulls // len(taken)
    counts[taken[: pulls % len(taken)]] += 1
    return counts


def _repeatable(environment: Environment) -> IntArray:
    """The candidates whose repeats can differ: those with two recorded measurements or more."""
    if not isinstance(environment.law, RecordedRewards):
        return np.arange(environment.num_arms)
    several = np.flatnonzero(environment.law.repeats >= 2)
    if several.size == 0:
        raise InvalidInput(
            "a pilot compares repeated measurements of one candidate, and every candidate of this table was measured "
            "once: drawing the same row again shows no noise. Name the columns of the id if rows repeat a candidate, "
            "or declare the noise, e.g. subgaussian:SIGMA."
        )
    return several


def _centred(environment: Environment, counts: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Sums and sums of squares of the rewards minus the first of their arm, measured one by one: no digit is lost."""
    first = environment.pull(np.minimum(counts, 1), rng).sums
    sums, squares = np.zeros(len(counts)), np.zeros(len(counts))
    for repeat in range(1, int(counts.max())):
        pulled = counts > repeat
        beyond = np.where(pulled, environment.pull(pulled.astype(np.int64), rng).sums - first, 0.0)
        sums, squares = sums + beyond, squares + beyond**2
    return sums, squares
