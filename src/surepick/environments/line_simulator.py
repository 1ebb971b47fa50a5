"""A line of three stations, simulated job by job: many designs and random-number streams at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.core.validation import whole_number
from surepick.errors import InvalidInput

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


@record
class SimulatedThroughputs:
    """Observations of simulated lines.

    The i-th observation of an arm in a call has a random-number stream of its own, named after the design and i.

    Args:
        designs: (s1, s2, s3, b2, b3) of each arm, shape (K, 5).
        means: the mean of an observation of each arm, shape (K,).
    """

    designs: IntArray
    means: FloatArray

    def __post_init__(self) -> None:
        freeze(self, designs=np.int64, means=np.float64)

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
    ended: FloatArray = third - began
    return ended


def _services(drawn: Sequence[np.random.Generator], row_of_line: IntArray, number: int) -> FloatArray:
    """The next exponential draws of each line, shape (number, 3, n)."""
    rows = np.empty((len(drawn), number, 3))
    for row, generator in zip(rows, drawn, strict=True):
        generator.standard_exponential(out=row)
    if len(drawn) < len(row_of_line):
        rows = rows[row_of_line]
    return np.ascontiguousarray(rows.transpose(1, 2, 0))
