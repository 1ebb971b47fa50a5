"""Ranking and selection's standard test: how to share servers and buffers of a production line."""

from __future__ import annotations

from itertools import product

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray, IntArray
from surepick.core.random_streams import stream
from surepick.core.validation import positive_number, whole_number
from surepick.environments.environment import Environment
from surepick.environments.line_chain import observation_mean, throughput
from surepick.environments.line_simulator import JOBS, SimulatedThroughputs
from surepick.noise import Bounded, SubGaussian

COLUMNS = ("rate 1", "rate 2", "rate 3", "buffer 2", "buffer 3")
RATIO = JOBS / (JOBS - 1.0)  # of observation mean to throughput, where one station alone decides; else it is smaller
NEAR = 1.0  # designs whose mean may come so close to the best one have theirs computed


def production_line(length: int = 20, *, sigma: float = 2.5, seed: int = 0) -> Environment:
    """Designs of a line of three stations, with normal rewards around their exact throughputs.

        rates s1 + s2 + s3 = L,   buffers b2 + b3 = L,   whole numbers, at least 1:   K = (L-1)(L-2)/2 (L-1)

    Service times are exponential; station 1 never waits for a job; a job that finds the next buffer full stays where it
    is and blocks its station. A buffer counts the job in service. K is 3,249 for L = 20 and 57,624 for L = 50.

    Args:
        length: L, at least 3.
        sigma: standard deviation of a reward, positive; that of a simulated one of 50 jobs is near 2.5 for L = 50.
        seed: decides the order of the designs.

    Raises:
        InvalidInput: an argument is out of range.

    Source: Pichitlamken, Nelson & Hong (2006); the throughputs are those of the stationary Markov chain.
    Cost: a banded linear system of (b2 + 2)(b3 + 2) states for each design and its reverse: half a second for L = 20,
        10 s for L = 50.
    """
    positive_number("sigma", sigma, "the standard deviation of a reward.")
    designs, throughputs = _line(length, seed)
    return Environment(arms=_arms(designs), means=throughputs, noise=SubGaussian(sigma))


def simulated_production_line(length: int = 20, *, high: float | None = None, seed: int = 0) -> Environment:
    """The same designs, each reward an observation of a simulated line: 50 / (time of jobs 2,001 to 2,050).

    The means are those of an observation, which exceed the throughput: by .087 to .092 at the best designs for L = 20,
    by .30 for L = 50. They are exact (`observation_mean`) for all designs whose mean could be within 1 of the best one.
    The others, which no answer depends on, have 50/49 of their throughput, the ratio where one station alone decides;
    that is at most 1 % too much.

    Args:
        length: L, at least 3.
        high: rewards are declared to lie in [0, high]; None: .9 L. Exponential services have no bound: a larger
            observation has a chance below 1e-9 at the best designs, and less elsewhere.
        seed: decides the order of the designs.

    Raises:
        InvalidInput: an argument is out of range.

    Source: Pichitlamken, Nelson & Hong (2006); see `observe_line` for the simulation, which is the cost of a pull.
    Cost: that of `production_line`, and of the exact means: 5 s for L = 20, half a minute for L = 50.
    """
    if high is not None:
        positive_number("high", high, "no reward is above it.")
    designs, throughputs = _line(length, seed)
    means = RATIO * throughputs
    best = int(np.argmax(throughputs))
    least = observation_mean(tuple(designs[best])) - NEAR
    for arm in np.flatnonzero(means >= least):
        means[arm] = observation_mean(tuple(designs[arm]))
    noise = Bounded(0.0, 0.9 * length if high is None else high)
    return Environment(arms=_arms(designs), means=means, noise=noise, law=SimulatedThroughputs(designs, means))


def line_designs(length: int) -> IntArray:
    """All designs of a line, shape (K, 5), with their rates and buffers in ascending order.

    Raises:
        InvalidInput: length is below 3.
    """
    whole_number("length", length, least=3, meaning="each rate and each buffer is at least 1.")
    rates = [(a, b, length - a - b) for a, b in product(range(1, length), repeat=2) if a + b < length]
    return np.array([(*each, first, length - first) for each in rates for first in range(1, length)])


def _line(length: int, seed: int) -> tuple[IntArray, FloatArray]:
    """The designs in the order of the seed, and their throughputs."""
    designs = line_designs(length)
    designs = designs[stream(seed, "production_line", length).permutation(len(designs))]
    known: dict[tuple[int, ...], float] = {}
    return designs, np.array([_remembered(known, tuple(int(one) for one in design)) for design in designs])


def _arms(designs: IntArray) -> Arms:
    return Arms(designs.astype(np.float64), ["-".join(map(str, design)) for design in designs], columns=COLUMNS)


def _remembered(known: dict[tuple[int, ...], float], design: tuple[int, ...]) -> float:
    """The throughput, which is the same for the reversed line."""
    first, second, third, before, after = design
    if (third, second, first, after, before) in known:
        return known[third, second, first, after, before]
    found = throughput(first, second, third, before, after)
    known[design] = found
    return found
