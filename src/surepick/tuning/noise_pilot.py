"""A pilot before a study: the spread of repeated measurements bounds the scale of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.random_streams import stream
from surepick.core.validation import as_number
from surepick.environments import Environment, RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import PilotGaussian, pilot_noise

SHARE_OF_DELTA = 0.1


@dataclass(frozen=True, slots=True)
class NoisePilot:
    """What a pilot measured and found.

    Args:
        noise: normal noise with a bound on its standard deviation.
        pulls: measurements that it took.
        candidates: how many candidates they went to.
    """

    noise: PilotGaussian
    pulls: int
    candidates: int


def take_pilot(environment: Environment, pulls: int, *, delta: float, seed: int) -> NoisePilot:
    """Measure candidates chosen at random, two times each or more, and bound the noise from their spread.

    Args:
        environment: what is measured; its own noise is not used.
        pulls: measurements in all, 2 or more, spread as `spread_pulls` does.
        delta: the error probability of the study; the bound takes a tenth of it.
        seed: decides the candidates and their rewards.

    Raises:
        InvalidInput: delta is no probability, no candidate has two recorded measurements, or the repeats show no
            spread.
    """
    if not 0 < as_number("delta", delta) < 1:
        raise InvalidInput(
            f"delta is {delta!r}; it must lie strictly between 0 and 1: the probability of a wrong answer."
        )
    counts = spread_pulls(_repeatable(environment), pulls, environment.num_arms, stream(seed, "pilot"))
    sums, squares = _centred(environment, counts, stream(seed, "pilot", "rewards"))
    noise = pilot_noise(counts, sums, squares, failure=SHARE_OF_DELTA * delta)
    return NoisePilot(noise, pulls, int(np.count_nonzero(counts)))


def spread_pulls(candidates: IntArray, pulls: int, num_arms: int, rng: np.random.Generator) -> IntArray:
    """Pulls of each arm, shape (K,): two or more of each arm that is drawn, as evenly as whole numbers can be.

    Args:
        candidates: indices of the arms to draw from; at most pulls / 2 of them are drawn.
        pulls: how many in all, 2 or more.
        num_arms: K.
        rng: draws the arms.
    """
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
