"""What is assumed of a reward: one record per assumption, each with its sub-Gaussian scale.

A reward with mean mu is sigma-sub-Gaussian when E exp(s (X - mu)) <= exp(s^2 sigma^2 / 2) for every s. A reward in
[low, high] is so with sigma = (high - low) / 2 (Hoeffding's lemma), a 0/1 reward with sigma = 1/2, a normal one with
its standard deviation.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from surepick.core import values
from surepick.core.records import FloatArray
from surepick.errors import InvalidInput
from surepick.text import quoted

USUAL_NOISE = "normal"  # where nothing is declared
TOO_SMALL = "the bound on the standard deviation may be too small; we take this probability from delta."
ROUNDING = 8 * np.finfo(np.float64).eps  # of a bound: what a few operations lose


@runtime_checkable
class Noise(Protocol):
    """What a policy may assume of every single reward."""

    @property
    def sigma(self) -> float | tuple[float, ...]:
        """The sub-Gaussian scale, in reward units: one number, or one per arm."""

    @property
    def support(self) -> tuple[float, float] | None:
        """(low, high) when every reward lies there, else None."""

    @property
    def spec(self) -> str:
        """The one-line text from which `parse_noise` gives an equal noise."""


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
        wrong = f"sigma is {quoted(self.sigma)}; it must be a number, or one per arm"
        scales = values.real_numbers("sigma", self.sigma, wrong=wrong, truths=False)
        if scales.ndim > 1 or scales.size == 0 or not np.all(np.isfinite(scales)) or not np.all(scales > 0):
            raise InvalidInput(
                f"sigma is {quoted(self.sigma)}; a sub-Gaussian scale must be positive and finite, one number or one "
                "per arm. Every width of a certificate is proportional to it."
            )
        frozen = float(scales) if scales.ndim == 0 else tuple(float(scale) for scale in scales)
        values.check_size("sigma", float(scales.min()), float(scales.max()))
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
        low, high = values.as_number("low", self.low), values.as_number("high", self.high)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InvalidInput(
                f"the bounds are [{quoted(self.low)}, {quoted(self.high)}]; low must be below high, both finite."
            )
        if not np.isfinite(high - low):
            raise InvalidInput(f"the bounds are [{low:g}, {high:g}]; their distance is no number. Take a larger unit.")
        if max(abs(low), abs(high)) > values.LARGEST:
            raise InvalidInput(
                f"the bounds are [{low:g}, {high:g}]; rewards beyond {values.LARGEST:g} could not be added up. Take a "
                "larger unit."
            )
        values.check_size("the distance of the bounds", high - low)
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
        sigma = values.positive_number(
            "sigma", self.sigma, "an upper bound on the standard deviation of a measurement."
        )
        values.check_size("sigma", sigma)
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "failure", values.probability("failure", self.failure, TOO_SMALL))
        meaning = "degrees of freedom of the pilot. An arm that was measured once shows no spread."
        object.__setattr__(self, "repeats", values.whole_number("repeats", self.repeats, least=1, meaning=meaning))

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


@dataclass(frozen=True, slots=True)
class Normal:
    """Rewards are normal around their mean; each arm has a standard deviation of its own, which nobody knows.

    The repeats of an arm say how much its rewards vary, at all times. Only the certified policies with carried evidence
    can do with that; for others declare a scale.

    Args:
        share: of delta, in (0, 1), that may go wrong with the bounds on the variances. The rest is for the means.

    Raises:
        InvalidInput: the share is no probability.
    """

    share: float = 0.02

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "share", values.probability("share", self.share, "the part of delta for the variances.")
        )

    @property
    def sigma(self) -> float:
        """There is none.

        Raises:
            InvalidInput: always.
        """
        raise InvalidInput(
            "normal noise of unknown scale has no standard deviation that is known beforehand, and this needs one. "
            "Declare a bound, subgaussian:SIGMA."
        )

    @property
    def support(self) -> None:
        return None

    @property
    def spec(self) -> str:
        return f"normal:{self.share!r}"


def known_scale(noise: Noise) -> bool:
    """Whether a scale of the noise is known before the first measurement."""
    return not isinstance(noise, Normal)


def failure_probability(noise: Noise, delta: float) -> float:
    """The probability with which the scales that are used may be too small, a part of delta. A pilot's failure; the
    share of `Normal`; 0 for what is declared."""
    if isinstance(noise, Normal):
        return noise.share * delta
    return noise.failure if isinstance(noise, PilotGaussian) else 0.0


def scales(noise: Noise, num_arms: int) -> FloatArray:
    """The sub-Gaussian scale of each arm, shape (K,), in reward units."""
    if isinstance(noise.sigma, tuple) and len(noise.sigma) != num_arms:
        raise InvalidInput(
            f"the noise has {len(noise.sigma)} scales for {num_arms} arms; give one number or one per arm."
        )
    if isinstance(noise.sigma, tuple):
        return np.array(noise.sigma, np.float64)
    return np.ndarray((num_arms,), np.float64, np.float64(noise.sigma).tobytes(), strides=(0,))  # one number, so often


def largest_scale(noise: Noise) -> float:
    """The largest sub-Gaussian scale over the arms: valid for all of them."""
    return float(np.max(noise.sigma))


def unrounded(rewards: FloatArray, noise: Noise) -> FloatArray:
    """Rewards, of any shape, in which those that pass a bound of the noise by rounding alone are that bound. A share
    that a program computed may be 1.0000000000000002. Of 0 and 1 those that miss them so are they, too."""
    if noise.support is None:
        return rewards
    low, high = noise.support
    slack = ROUNDING * max(abs(low), abs(high))
    found = rewards
    for bound, passed in ((low, rewards < low), (high, rewards > high)):
        near = np.abs(rewards - bound) <= slack
        found = np.where(near if isinstance(noise, Bernoulli) else near & passed, bound, found)
    return found


def informative(gap: float | None, noise: Noise, gap_bound: float | None = None) -> float | None:
    """A bound on the difference of two means; None where as much is known without measuring."""
    known = [] if gap_bound is None else [gap_bound]
    if noise.support is not None:
        known.append(noise.support[1] - noise.support[0])
    return None if gap is None or any(gap >= one for one in known) else gap


def parse_noise(text: str) -> Noise:
    """The noise that a text names: "bernoulli", "bounded:0:1", "subgaussian:0.5", "subgaussian:0.5,0.2,0.3", "normal".

    What a pilot found has a text too, "pilot-gaussian:SIGMA:FAILURE:DEGREES"; it is written by `PilotGaussian.spec`.

    Raises:
        InvalidInput: the text is none of these.
    """
    kind, _, rest = values.storable_text("noise", text).strip().partition(":")
    if kind == "pilot":
        raise InvalidInput(
            f"noise {quoted(text)} has no scale yet: a pilot needs measurements, and here there are none. Give "
            "pilot_noise(counts, sums, squares, failure=...) in Python, take `surepick run --noise pilot`, or declare "
            "subgaussian:SIGMA."
        )
    try:
        if kind == "bernoulli" and not rest:
            return Bernoulli()
        if kind == "normal":
            return Normal(float(rest)) if rest else Normal()
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
        "range), subgaussian:SIGMA (e.g. a standard deviation of normal noise), or normal (normal, scales unknown)."
    )
