"""What is assumed of a reward: one record per assumption, each with its sub-Gaussian scale.

A reward with mean mu is sigma-sub-Gaussian when E exp(s (X - mu)) <= exp(s^2 sigma^2 / 2) for every s. A reward in
[low, high] is so with sigma = (high - low) / 2 (Hoeffding's lemma), a 0/1 reward with sigma = 1/2, a normal one with
its standard deviation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.validation import as_number, positive_number, storable_text, whole_number
from surepick.errors import InvalidInput
from surepick.text import quoted


@runtime_checkable
class Noise(Protocol):
    """What a policy may assume of every single reward."""

    @property
    def sigma(self) -> float | tuple[float, ...]:
        """The sub-Gaussian scale, in reward units: one number, or one per arm."""
        ...

    @property
    def support(self) -> tuple[float, float] | None:
        """(low, high) when every reward lies there, else None."""
        ...

    @property
    def spec(self) -> str:
        """The one-line text from which `parse_noise` gives an equal noise."""
        ...


@dataclass(frozen=True, slots=True)
class SubGaussian:
    """Rewards are sigma-sub-Gaussian around their mean.

    Args:
        sigma: the scale in reward units, positive and finite: one number, or a sequence with one per arm.

    Raises:
        InvalidInput: a scale is not a positive finite number.
    """

    sigma: float | tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            scales = np.asarray(self.sigma, dtype=np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidInput(f"sigma is {quoted(self.sigma)}; it must be a number, or one per arm.") from error
        if scales.ndim > 1 or scales.size == 0 or not np.all(np.isfinite(scales)) or not np.all(scales > 0):
            raise InvalidInput(
                f"sigma is {quoted(self.sigma)}; a sub-Gaussian scale must be positive and finite, one number or one "
                "per arm. Every width of a certificate is proportional to it."
            )
        frozen = float(scales) if scales.ndim == 0 else tuple(float(scale) for scale in scales)
        object.__setattr__(self, "sigma", frozen)

    @property
    def support(self) -> None:
        return None

    @property
    def spec(self) -> str:
        if isinstance(self.sigma, float):
            return f"subgaussian:{self.sigma!r}"
        return "subgaussian:" + "".join(f"{scale!r}," for scale in self.sigma)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Every reward lies in [low, high].

    Args:
        low, high: the bounds in reward units, finite, low < high.

    Raises:
        InvalidInput: the bounds or their distance are not finite, or the bounds not in order.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        low, high = as_number("low", self.low), as_number("high", self.high)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InvalidInput(
                f"the bounds are [{quoted(self.low)}, {quoted(self.high)}]; low must be below high, both finite."
            )
        if not np.isfinite(high - low):
            raise InvalidInput(f"the bounds are [{low:g}, {high:g}]; their distance is no number. Take a larger unit.")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    @property
    def sigma(self) -> float:
        return (self.high - self.low) / 2.0

    @property
    def support(self) -> tuple[float, float]:
        return (self.low, self.high)

    @property
    def spec(self) -> str:
        return f"bounded:{self.low!r}:{self.high!r}"


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """Every reward is 0 or 1."""

    @property
    def sigma(self) -> float:
        return 0.5

    @property
    def support(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def spec(self) -> str:
        return "bernoulli"


@dataclass(frozen=True, slots=True)
class PilotGaussian:
    """Rewards are normal around their mean with one unknown standard deviation, which a pilot has bounded.

    A policy may assume the scale `sigma` only if it takes the pilot's failure probability from its delta: the
    certified policies do, `make_policy` refuses the others.

    Args:
        sigma: upper confidence bound on the standard deviation, in reward units, positive and finite.
        failure: the bound is too small with at most this probability, in (0, 1).
        repeats: nu, the degrees of freedom of the pilot, 1 or more: the sum over its arms of (pulls - 1).

    Raises:
        InvalidInput: a number has no meaning.
    """

    sigma: float
    failure: float
    repeats: int

    def __post_init__(self) -> None:
        sigma = positive_number("sigma", self.sigma, "an upper bound on the standard deviation of a measurement.")
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "failure", _checked_failure(self.failure))
        meaning = "degrees of freedom of the pilot. An arm that was measured once shows no spread."
        object.__setattr__(self, "repeats", whole_number("repeats", self.repeats, least=1, meaning=meaning))

    @property
    def support(self) -> None:
        return None

    @property
    def spec(self) -> str:
        return f"pilot-gaussian:{self.sigma!r}:{self.failure!r}:{self.repeats}"

    @property
    def assumption(self) -> str:
        """The sentence about the rewards that a certificate rests on."""
        degrees = "1 degree" if self.repeats == 1 else f"{self.repeats} degrees"
        return (
            "Every measurement is an independent draw, normally distributed around the mean of its candidate with the "
            f"same standard deviation for all; from {degrees} of freedom of a pilot it is at most {self.sigma:g}, "
            f"except with probability {self.failure:g}, which is part of delta."
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
    from scipy.special import gammaincinv  # noqa: PLC0415 - loaded on first use

    chance = _checked_failure(failure)
    pulls, totals, raw = _checked_pilot(counts, sums, squares)
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
    quantile = 2.0 * float(gammaincinv(repeats / 2.0, chance))
    if quantile < np.finfo(np.float64).tiny:
        raise InvalidInput(
            f"with {repeats} degrees of freedom no finite bound fails with probability {chance:g} only. Measure more "
            "repeats, or accept a larger failure probability."
        )
    return PilotGaussian(math.sqrt(spread + math.fsum(rounding)) / math.sqrt(quantile), chance, repeats)


def _checked_failure(failure: float) -> float:
    chance = as_number("failure", failure)
    if not 0.0 < chance < 1.0:
        raise InvalidInput(
            f"failure is {quoted(failure)}; it must lie strictly between 0 and 1: the probability with which the bound "
            "on the standard deviation may be too small, which is taken from delta."
        )
    return chance


def _checked_pilot(counts: ArrayLike, sums: ArrayLike, squares: ArrayLike) -> tuple[IntArray, FloatArray, FloatArray]:
    """(counts, sums, squares) of the arms that were pulled at least twice."""
    try:
        given = [np.asarray(column, dtype=np.float64) for column in (counts, sums, squares)]
    except (OverflowError, TypeError, ValueError) as error:
        raise InvalidInput(f"counts, sums and squares of a pilot are three lists of numbers: {error}.") from error
    pulls, totals, raw = given
    if pulls.ndim != 1 or totals.shape != pulls.shape or raw.shape != pulls.shape:
        raise InvalidInput(
            f"counts, sums and squares have shapes {pulls.shape}, {totals.shape}, {raw.shape}; give one number per arm "
            "in each."
        )
    if not all(np.all(np.isfinite(column)) for column in given) or np.any(pulls < 0) or np.any(pulls % 1 != 0):
        raise InvalidInput("counts must be whole numbers, 0 or more, and all sums and squares finite.")
    repeated = pulls > 1
    return pulls[repeated].astype(np.int64), totals[repeated], raw[repeated]


def failure_probability(noise: Noise) -> float:
    """The probability with which the noise's own scale may be too small: a pilot's failure, 0 for what is declared."""
    return noise.failure if isinstance(noise, PilotGaussian) else 0.0


def scales(noise: Noise, num_arms: int) -> FloatArray:
    """The sub-Gaussian scale of each arm, shape (K,), in reward units.

    Raises:
        InvalidInput: the noise has one scale per arm and their number is not K.
    """
    if isinstance(noise.sigma, tuple) and len(noise.sigma) != num_arms:
        raise InvalidInput(
            f"the noise has {len(noise.sigma)} scales for {num_arms} arms; give one number or one per arm."
        )
    return np.broadcast_to(np.asarray(noise.sigma, dtype=np.float64), (num_arms,))


def largest_scale(noise: Noise) -> float:
    """The largest sub-Gaussian scale over the arms: valid for all of them."""
    return float(np.max(noise.sigma))


def informative(gap: float | None, noise: Noise) -> float | None:
    """A bound on the difference of two means; None where the range of the rewards says as much without measuring."""
    if gap is None or noise.support is None:
        return gap
    low, high = noise.support
    return gap if gap < high - low else None


def parse_noise(text: str) -> Noise:
    """The noise that a text names: "bernoulli", "bounded:0:1", "subgaussian:0.5", "subgaussian:0.5,0.2,0.3".

    What a pilot found has a text too, "pilot-gaussian:SIGMA:FAILURE:DEGREES"; it is written by `PilotGaussian.spec`.

    Raises:
        InvalidInput: the text is none of these.
    """
    kind, _, rest = storable_text("noise", text).strip().partition(":")
    if kind == "pilot":
        raise InvalidInput(
            f"noise {quoted(text)} has no scale yet: a pilot needs measurements, and here there are none. Give "
            "pilot_noise(counts, sums, squares, failure=...) in Python, take `surepick run --noise pilot`, or declare "
            "subgaussian:SIGMA."
        )
    try:
        if kind == "bernoulli" and not rest:
            return Bernoulli()
        if kind == "bounded":
            low, high = rest.split(":")
            return Bounded(float(low), float(high))
        if kind == "subgaussian":
            if "," not in rest:
                return SubGaussian(float(rest))
            return SubGaussian(tuple(float(part) for part in rest.removesuffix(",").split(",")))
        if kind == "pilot-gaussian":
            sigma, failure, repeats = rest.split(":")
            return PilotGaussian(float(sigma), float(failure), int(repeats))
    except InvalidInput:
        raise
    except ValueError:
        pass
    raise InvalidInput(
        f"noise {quoted(text)} is not understood. Write bernoulli (rewards 0 or 1), bounded:LOW:HIGH (rewards in that "
        "range), or subgaussian:SIGMA (e.g. a standard deviation of normal noise)."
    )
