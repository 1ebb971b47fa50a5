"""A line of three stations, simulated job by job: many designs and random-number streams at once."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.core.values import positive_number, whole_number
from surepick.environments.environment import Environment
from surepick.errors import ContractError, InvalidInput
from surepick.noise import Bounded, SubGaussian

WARM_UP, JOBS = 2_000, 50
LINES = 2_048  # simulated at once; with CHUNK they bound the memory to some 10 MB
CHUNK = 64  # jobs whose services are drawn at once

StreamKey = str | int | tuple[str | int, ...]


def observe_line(
    designs: ArrayLike, streams: Sequence[StreamKey], *, seed: int = 0, warm_up: int = WARM_UP, jobs: int = JOBS
) -> FloatArray:
    """Observations of the throughput: jobs / (time between the departures of job warm_up and job warm_up + jobs).

        D1[j] = max(D1[j-1] + S1[j],                D2[j-b2])
        D2[j] = max(max(D1[j], D2[j-1]) + S2[j],    D3[j-b3])
        D3[j] =     max(D2[j], D3[j-1]) + S3[j]

    Dk[j] is when job j leaves station k, and Sk[j] its exponential service of mean 1/sk. Station 1 never waits for a
    job; a job that finds the next buffer full stays and blocks its station. The line starts empty.

    Args:
        designs: (s1, s2, s3, b2, b3) of each observation, shape (n, 5), whole numbers of at least 1: rates, and buffers
            that count the job in service.
        streams: n keys, each a text, a whole number, or several. Observations of one key share the random numbers, job
            for job and station for station (common random numbers); those of different keys are independent.
        seed: a non-negative whole number; all streams change with it.
        warm_up: jobs before the clock starts, at least 0.
        jobs: at least 1.

    Returns:
        Shape (n,). An observation is a function of (design, key, seed, warm_up, jobs), whatever else is asked for.

    Raises:
        InvalidInput: an argument is out of range, or there are not as many streams as designs.

    Source: Pichitlamken, Nelson & Hong (2006); the recursion is the blocking one of tandem queues.
    Cost: 6,150 exponential draws and as many steps for each observation, about 10,000 observations a second on a core.
    """
    several, keys = _designs(designs), list(streams)
    whole_number("warm_up", warm_up, least=0, meaning="jobs before the clock starts.")
    whole_number("jobs", jobs, least=1, meaning="of which the time is taken.")
    if len(keys) != len(several):
        raise InvalidInput(f"{len(several)} designs and {len(keys)} streams; give one stream for each design.")
    values = np.empty(len(several))
    for start in range(0, len(several), LINES):
        block = slice(start, start + LINES)
        values[block] = jobs / _times(several[block], keys[block], seed, warm_up, jobs)
    return values


@frozen
class SimulatedThroughputs:
    """Observations of simulated lines, the i-th of an arm in a call from a stream named after the design and i."""

    designs: IntArray  # (s1, s2, s3, b2, b3) of each arm, shape (K, 5)
    means: FloatArray  # the mean of an observation of each arm, shape (K,)

    def draw(self, counts: IntArray, rng: np.random.Generator) -> Observations:
        """Pull arm k `counts[k]` times; costs a simulation for each pull."""
        seed = int(rng.integers(2**62))
        names = ["-".join(map(str, design)) for design in self.designs]
        last = np.cumsum(counts)
        arm_of_pull = np.repeat(np.arange(len(counts)), counts)
        sums, squares = np.zeros(len(counts)), np.zeros(len(counts))
        for start in range(0, len(arm_of_pull), LINES):
            arms = arm_of_pull[start : start + LINES]
            ordinals = np.arange(start, start + len(arms)) - (last - counts)[arms]
            keys = [(names[arm], int(ordinal)) for arm, ordinal in zip(arms, ordinals, strict=True)]
            values = observe_line(self.designs[arms], keys, seed=seed)
            sums += np.bincount(arms, weights=values, minlength=len(counts))
            squares += np.bincount(arms, weights=values**2, minlength=len(counts))
        return Observations(counts, sums, squares)

    def observe(self, arms: IntArray, streams: Sequence[str], *, seed: int) -> FloatArray:
        """An observation for each arm and stream, shape (n,); costs a simulation each."""
        return observe_line(self.designs[arms], streams, seed=seed)


def _designs(designs: ArrayLike) -> IntArray:
    several = np.asarray(designs)
    if several.ndim != 2 or several.shape[1] != 5 or not np.issubdtype(several.dtype, np.integer):
        raise InvalidInput(
            f"designs of type {several.dtype} and shape {several.shape}; give whole numbers s1, s2, s3, b2, b3 for "
            "each observation."
        )
    if several.size and several.min() < 1:
        raise InvalidInput(f"a design has a {several.min()}; rates and buffers must be at least 1.")
    return several.astype(np.int64)


def _times(designs: IntArray, keys: Sequence[StreamKey], seed: int, warm_up: int, jobs: int) -> FloatArray:
    """Time between two departures of each line, shape (n,): those of job warm_up (0: the start) and warm_up + jobs."""
    lines, depth = len(designs), int(designs[:, 3:].max(initial=1))
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    drawn = [stream(seed, "line", *(key if isinstance(key, tuple) else (key,))) for key in place]
    row_of_line = np.array([place[key] for key in keys], dtype=np.int64)
    means = 1.0 / designs[:, :3].T  # of a service, shape (3, n)
    before, after = ((depth - designs[:, column]) * lines + np.arange(lines) for column in (3, 4))
    left_two, left_three = np.zeros((depth + CHUNK, lines)), np.zeros((depth + CHUNK, lines))
    left_one, began, free = np.zeros(lines), np.zeros(lines), np.empty(lines)
    for start in range(0, warm_up + jobs, CHUNK):
        number = min(CHUNK, warm_up + jobs - start)
        for left in (left_two, left_three):  # what the last jobs did, before the first row of this chunk
            left[:depth] = left[CHUNK:].copy()
        services = _services(drawn, row_of_line, number)
        services *= means
        for job, (one, two, three) in enumerate(services):
            row, flat = job + depth, slice(job * lines, None)
            left_one += one
            np.take(left_two.reshape(-1)[flat], before, out=free, mode="clip")
            np.maximum(left_one, free, out=left_one)
            second, third = left_two[row], left_three[row]
            np.maximum(left_one, left_two[row - 1], out=second)
            second += two
            np.take(left_three.reshape(-1)[flat], after, out=free, mode="clip")
            np.maximum(second, free, out=second)
            np.maximum(second, left_three[row - 1], out=third)
            third += three
            if start + job + 1 == warm_up:
                began = third.copy()
    return np.asarray(third - began)


def _services(drawn: Sequence[np.random.Generator], row_of_line: IntArray, number: int) -> FloatArray:
    """The next exponential draws of each line, shape (number, 3, n)."""
    rows = np.empty((len(drawn), number, 3))
    for row, generator in zip(rows, drawn, strict=True):
        generator.standard_exponential(out=row)
    if len(drawn) < len(row_of_line):
        rows = rows[row_of_line]
    return np.ascontiguousarray(rows.transpose(1, 2, 0))


# --- The stationary Markov chain of a line of three stations: its throughput, and the mean of a finite observation.
#
# A design is (s1, s2, s3, b2, b3): the rates of the stations, and the most jobs at stations 2 and 3, those in service
# included. The states are the pairs (jobs at station 2, jobs at station 3), where one job more than there is room for
# stands for a station before it that is blocked.

Design = tuple[int, int, int, int, int]
NODES = 6  # of the quadrature; 4 leave 3e-9 of the mean


@record
class _Chain:
    """Moves of the chain, and how likely each state is in the long run."""

    width: int  # states of station 3; state i * width + j has i jobs at station 2 and j at station 3
    possible: BoolArray  # states that can occur
    within: tuple[tuple[BoolArray, int, int], ...]  # where no job leaves: from where, at what rate, how many states on
    leaving: tuple[tuple[BoolArray, int, int], ...]  # moves in which one does
    chances: FloatArray  # of each state, in the long run

    @property
    def band(self) -> int:
        return self.width + 1

    @property
    def departures(self) -> FloatArray:
        """Rate at which jobs leave the line and find it in that state, in the long run."""
        found = np.zeros(self.chances.size)
        for able, rate, step in self.leaving:
            places = np.flatnonzero(able)
            found[places + step] += rate * self.chances[places]
        return found


def throughput(first: int, second: int, third: int, before: int, after: int) -> float:
    """Jobs that leave the line in a unit of time, in the long run.

    Args:
        first, second, third: rates of the stations.
        before, after: the most jobs at station 2 and at station 3, those in service included.

    Raises:
        InvalidInput: a number is no whole number, or below 1.

    Source: the stationary distribution of the chain. The reversed line has the same throughput.
    Cost: a banded linear system of (before + 2)(after + 2) states, of half width after + 2 (of the smaller buffer).
    """
    design = checked_design((first, second, third, before, after))
    return float(_chain(_narrow(design)).departures.sum())


def observation_mean(design: Design, *, jobs: int = 50) -> float:
    """The mean of one observation, jobs / (time that `jobs` jobs take to leave), of a line in its long-run state.

        E[n / T] = n int_0^inf E exp(-u T) du,   E exp(-u T) = w ((u - Q0)^-1 Q1)^n 1

    with Q0 the moves within, Q1 those in which a job leaves, and w the state that a job leaves behind. It exceeds the
    throughput n / E[T], because 1/T is convex. The integral is a Gauss-Jacobi sum for the weight (1 + u E[T] / n)^-n,
    exact if T is a gamma variable; 6 nodes leave an error near 1e-11 of the mean.

    Args:
        design: (s1, s2, s3, b2, b3).
        jobs: n, at least 3.

    Raises:
        InvalidInput: the design or the number of jobs is out of range.

    Source: ours. Cost: 6 banded factorisations and 6 n solves; about 5 ms for L = 20 and 20 ms for L = 50.
    """
    from scipy.special import roots_jacobi  # noqa: PLC0415 - loaded on first use

    whole_number("jobs", jobs, least=3, meaning="of which the time is taken.")
    chain = _chain(checked_design(design))
    leaving = chain.departures
    rate = float(leaving.sum())
    nodes, weights = roots_jacobi(NODES, 0.0, jobs - 2.0)
    nodes, weights = (1.0 + nodes) / 2.0, weights / 2.0 ** (jobs - 1)
    total = 0.0
    for node, weight in zip(nodes, weights, strict=True):
        transform = _transform(chain, leaving / rate, rate * (1.0 / float(node) - 1.0), jobs)
        total += float(weight) * transform / float(node) ** jobs
    return jobs * rate * total


def checked_design(design: object) -> Design:
    """The design as five whole numbers."""
    values = np.asarray(design)
    if values.shape != (5,) or not np.issubdtype(values.dtype, np.integer) or np.any(values < 1):
        raise InvalidInput(
            f"the design is {design!r}; give (s1, s2, s3, b2, b3), whole numbers of at least 1: three rates and two "
            "buffers."
        )
    first, second, third, before, after = (int(value) for value in values)
    return first, second, third, before, after


def _narrow(design: Design) -> Design:
    """The line or its reverse, whichever has the smaller band; both have one throughput."""
    first, second, third, before, after = design
    return design if after <= before else (third, second, first, after, before)


def _chain(design: Design) -> _Chain:
    first, second, third, before, after = design
    levels, width = before + 2, after + 2  # a further job at station 2: station 1 is blocked; at 3: station 2 is
    size = levels * width
    at_two, at_three = np.divmod(np.arange(size), width)
    possible = ~((at_two == 0) & (at_three == width - 1))  # a blocked station 2 has a job
    works = possible & (at_two > 0) & (at_three < width - 1)
    leaves = possible & (at_three > 0)
    within = (
        (possible & (at_two < levels - 1), first, width),
        (works & (at_three < after), second, 1 - width),
        (works & (at_three == after), second, 1),
    )
    leaving = ((leaves & (at_three < width - 1), third, -1), (leaves & (at_three == width - 1), third, -1 - width))
    band = width + 1
    matrix = np.zeros((2 * band + 1, size))
    for able, rate, step in within + leaving:
        places = np.flatnonzero(able)
        matrix[band, places] -= float(rate)
        matrix[band + step, places] += float(rate)
    matrix[band, ~possible] = 1.0
    likely = size - 1 if third == min(first, second, third) else size - width if second < first else 0
    for place in range(max(0, likely - band), min(size, likely + band + 1)):  # its balance follows from the others
        matrix[band + likely - place, place] = float(place == likely)
    ones = np.zeros(size)
    ones[likely] = 1.0
    chances = scipy.linalg.solve_banded((band, band), matrix, ones, check_finite=False)
    chances[~possible] = 0.0
    return _Chain(width, possible, within, leaving, chances / chances.sum())


def _transform(chain: _Chain, left: FloatArray, rate: float, jobs: int) -> float:
    """E exp(-rate T): the chance that no event of that rate occurs until `jobs` jobs have left."""
    band, size = chain.band, chain.chances.size
    matrix = np.zeros((3 * band + 1, size), order="F")  # LAPACK: `band` rows more for the factors
    diagonal = 2 * band
    matrix[diagonal] = np.where(chain.possible, rate, 1.0)
    for able, speed, _ in chain.within + chain.leaving:
        matrix[diagonal, np.flatnonzero(able)] += speed
    for able, speed, step in chain.within:
        places = np.flatnonzero(able)
        matrix[diagonal - step, places + step] -= speed
    factors, pivots, failed = lapack.dgbtrf(matrix, band, band, overwrite_ab=1)
    _solved(failed)
    stays = np.where(chain.possible, 1.0, 0.0)
    for _ in range(jobs):
        after = np.zeros(size)
        for able, speed, step in chain.leaving:
            places = np.flatnonzero(able)
            after[places] += speed * stays[places + step]
        stays, failed = lapack.dgbtrs(factors, band, band, after, pivots, overwrite_b=1)
        _solved(failed)
    return float(left @ stays)


def _solved(failed: int) -> None:
    if failed != 0:
        raise ContractError(f"the matrix of the chain is singular (LAPACK says {failed}), which no line's is.")


# --- Ranking and selection's standard test: how to share servers and buffers of a production line.

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
    """All designs of a line, shape (K, 5), with their rates and buffers in ascending order."""
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
