"""Ranking and selection's standard test: how to share servers and buffers of a production line."""

from __future__ import annotations

from itertools import product

import numpy as np
import scipy.linalg

from surepick.core.arms import Arms
from surepick.core.random_streams import stream
from surepick.core.validation import positive_number, whole_number
from surepick.environments.environment import Environment
from surepick.noise import SubGaussian

COLUMNS = ("rate 1", "rate 2", "rate 3", "buffer 2", "buffer 3")


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
    Cost: a banded linear system of (b2 + 2)(b3 + 2) states for each design: seconds for L = 20, minutes for L = 50.
    """
    whole_number("length", length, least=3, meaning="each rate and each buffer is at least 1.")
    positive_number("sigma", sigma, "the standard deviation of a reward.")
    rates = [(a, b, length - a - b) for a, b in product(range(1, length), repeat=2) if a + b < length]
    designs = np.array([(*each, first, length - first) for each in rates for first in range(1, length)])
    designs = designs[stream(seed, "production_line", length).permutation(len(designs))]
    known: dict[tuple[int, ...], float] = {}
    means = np.array([_remembered(known, tuple(int(one) for one in design)) for design in designs])
    arms = Arms(designs.astype(np.float64), ["-".join(map(str, design)) for design in designs], columns=COLUMNS)
    return Environment(arms=arms, means=means, noise=SubGaussian(sigma))


def _remembered(known: dict[tuple[int, ...], float], design: tuple[int, ...]) -> float:
    """The throughput, which is the same for the reversed line."""
    first, second, third, before, after = design
    if (third, second, first, after, before) in known:
        return known[third, second, first, after, before]
    found = throughput(first, second, third, before, after)
    known[design] = found
    return found


def throughput(first: int, second: int, third: int, before: int, after: int) -> float:
    """Jobs that leave the line in a unit of time, in the long run.

    Args:
        first, second, third: rates of the stations.
        before, after: the most jobs at station 2 and at station 3, those in service included.
    """
    levels, width = before + 2, after + 2  # a further job at station 2: station 1 is blocked; at 3: station 2 is
    size = levels * width
    at_two, at_three = np.divmod(np.arange(size), width)
    possible = ~((at_two == 0) & (at_three == width - 1))  # a blocked station 2 has a job
    works = possible & (at_two > 0) & (at_three < width - 1)
    leaves = possible & (at_three > 0)
    flows = (  # (from where, at what rate, how many states on)
        (possible & (at_two < levels - 1), first, width),
        (works & (at_three < after), second, 1 - width),
        (works & (at_three == after), second, 1),
        (leaves & (at_three < width - 1), third, -1),
        (leaves & (at_three == width - 1), third, -1 - width),
    )
    band = width + 1
    matrix = np.zeros((2 * band + 1, size))
    for able, rate, step in flows:
        places = np.flatnonzero(able)
        np.add.at(matrix, (np.full(len(places), band), places), -float(rate))
        np.add.at(matrix, (np.full(len(places), band + step), places), float(rate))
    matrix[band, ~possible] = 1.0
    likely = size - 1 if third == min(first, second, third) else size - width if second < first else 0
    for place in range(max(0, likely - band), min(size, likely + band + 1)):  # its balance follows from the others
        matrix[band + likely - place, place] = float(place == likely)
    ones = np.zeros(size)
    ones[likely] = 1.0
    chances = scipy.linalg.solve_banded((band, band), matrix, ones, check_finite=False)
    chances[~possible] = 0.0
    return float(third * chances[leaves].sum() / chances.sum())
