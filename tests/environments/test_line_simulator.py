"""The simulated line: against events one after another, against the exact chain, and its random-number streams."""

import heapq
import math

import numpy as np
import pytest
from together import of_each

from surepick.core.random_streams import stream
from surepick.errors import InvalidInput
from surepick_bench import simulators
from surepick_bench.simulators import (
    SimulatedThroughputs,
    observation_mean,
    observe_line,
    simulated_production_line,
    throughput,
)

GOOD = (7, 7, 6, 8, 12)


def departures_event_by_event(design, services):
    """When each job leaves the line, from a calendar of events: stations serve, finish, block and are freed.

    Args:
        services: of job j at station k, shape (jobs, 3).
    """
    rooms = (math.inf, *design[3:])
    jobs, served = len(services), [0, 0, 0]
    present, busy, blocked = [jobs, 0, 0], [False] * 3, [False] * 3
    calendar, left = [], []

    def move(now, station):  # a job that was served goes on, if there is room
        if station < 2 and present[station + 1] >= rooms[station + 1]:
            blocked[station] = True
            return
        blocked[station], present[station] = False, present[station] - 1
        if station == 2:
            left.append(now)
        else:
            present[station + 1] += 1
            begin(now, station + 1)
        begin(now, station)
        if station > 0 and blocked[station - 1]:
            move(now, station - 1)

    def begin(now, station):
        if present[station] > 0 and not busy[station] and not blocked[station]:
            busy[station] = True
            heapq.heappush(calendar, (now + services[served[station], station], station))
            served[station] += 1

    begin(0.0, 0)
    while calendar:
        now, station = heapq.heappop(calendar)
        busy[station] = False
        move(now, station)
    return np.array(left)


@of_each("design", [GOOD, (6, 7, 7, 12, 8), (1, 18, 1, 3, 17), (5, 5, 10, 1, 19), (2, 2, 2, 1, 1), (9, 3, 4, 30, 70)])
@of_each("warm_up", [0, 130])
def test_the_recursion_is_the_line_event_by_event(design, warm_up):
    keys = [("common", 3), 17, "a text"]
    found = observe_line([design] * 3, keys, seed=4, warm_up=warm_up, jobs=50)
    for value, names in zip(found, [("common", 3), (17,), ("a text",)], strict=True):
        services = stream(4, "line", *names).standard_exponential((warm_up + 50, 3)) / design[:3]
        left = departures_event_by_event(design, services)
        began = left[warm_up - 1] if warm_up else 0.0
        assert value == pytest.approx(50 / (left[-1] - began), rel=1e-12)


def misses(means, design, *, runs=4_096, errors=5.0):
    """Which of these means the simulated observations rule out, by that many standard errors (5: 6e-7 a mean)."""
    values = observe_line(np.tile(design, (runs, 1)), range(runs), seed=1)
    return [abs(values.mean() - mean) > errors * values.std() / math.sqrt(runs) for mean in means]


@pytest.mark.parametrize("design", [pytest.param(GOOD, marks=pytest.mark.slow), (5, 6, 9, 18, 2)])
def test_simulated_observations_have_the_mean_of_the_chain_and_not_the_throughput(design):
    """The throughput is the saboteur: it is 1.5 % below the mean, 7 standard errors."""
    assert misses([observation_mean(design), throughput(*design)], design) == [False, True]


def by_uniform_steps(design, jobs):
    """The mean of an observation, from a chain in steps of rate s1 + s2 + s3: T is a gamma variable, K steps long.

    E[jobs / T] = sum over k of P(K = k) jobs rate / (k - 1).
    """
    first, second, third, before, after = design
    rate = float(first + second + third)
    states = [(i, j) for i in range(before + 2) for j in range(after + 2) if not (i == 0 and j == after + 1)]
    place = {state: number for number, state in enumerate(states)}
    stay, leave = np.zeros((len(states),) * 2), np.zeros((len(states),) * 2)
    for (i, j), here in place.items():
        idle = rate
        if i <= before:
            stay[here, place[i + 1, j]] += first
            idle -= first
        if i > 0 and j <= after:
            stay[here, place[(i - 1, j + 1) if j < after else (i, j + 1)]] += second
            idle -= second
        if j > 0:
            leave[here, place[(i, j - 1) if j <= after else (i - 1, j - 1)]] += third
            idle -= third
        stay[here, here] += idle
    stay, leave = stay / rate, leave / rate
    law = np.linalg.matrix_power(stay + leave, 2**14)[0] @ leave
    gone = np.zeros((jobs, len(states)))
    gone[0] = law / law.sum()
    mean = 0.0
    for step in range(1, 4_000):
        out = gone @ leave
        if step > 1:
            mean += jobs * rate / (step - 1) * out[-1].sum()
        gone = gone @ stay
        gone[1:] += out[:-1]
    return mean


@of_each("design", [(3, 5, 4, 2, 3), (2, 2, 2, 1, 1), (1, 4, 2, 3, 1), (4, 4, 2, 4, 2)])
def test_the_mean_of_an_observation_is_that_of_the_uniformised_chain(design):
    assert observation_mean(design, jobs=20) == pytest.approx(by_uniform_steps(design, 20), rel=1e-8)


def test_where_one_station_decides_the_mean_is_fifty_over_fortynine_of_the_throughput():
    assert observation_mean((1, 30, 30, 5, 5)) == pytest.approx(50 / 49 * throughput(1, 30, 30, 5, 5), rel=1e-6)


def test_the_mean_of_an_observation_exceeds_the_throughput_by_at_most_a_fortyninth():
    """What `simulated_production_line` takes for designs that no answer depends on."""
    rng = np.random.default_rng(0)
    designs = simulators.line_designs(20)
    for design in designs[rng.choice(len(designs), 40, replace=False)]:
        ratio = observation_mean(tuple(design)) / throughput(*map(int, design))
        assert 1.011 < ratio < 50 / 49 + 1e-9


def correlation(designs, streams):
    pairs = [observe_line(np.tile(design, (400, 1)), streams[k], seed=2) for k, design in enumerate(designs)]
    return float(np.corrcoef(pairs)[0, 1])


def test_designs_on_one_stream_are_correlated_and_on_different_streams_are_not():
    designs = [GOOD, (7, 7, 6, 9, 11)]
    common, other = range(400), range(400, 800)
    assert correlation(designs, [common, common]) > 0.9
    assert abs(correlation(designs, [common, other])) < 5 / math.sqrt(400)


def mean_correlation(designs, streams):
    values = observe_line(np.repeat(designs, streams, axis=0), list(range(streams)) * len(designs))
    table = np.corrcoef(values.reshape(len(designs), streams))
    return table[np.triu_indices(len(designs), 1)].mean()


def test_common_random_numbers_correlate_the_good_designs_of_twenty():
    designs = [GOOD, (6, 7, 7, 12, 8), (7, 7, 6, 7, 13), (7, 7, 6, 10, 10), (6, 8, 6, 10, 10), (7, 6, 7, 10, 10)]
    assert all(throughput(*design) > 5.6 for design in designs)
    assert 0.6 < mean_correlation(designs, 150) < 0.9


@pytest.mark.slow
def test_common_random_numbers_correlate_the_good_designs_of_fifty():
    env = simulated_production_line(50)
    good = env.law.designs[np.flatnonzero(env.gaps <= 0.1)]
    assert 0.8 < mean_correlation(good[:12], 400) < 0.95


def test_an_observation_does_not_depend_on_what_else_is_asked_for(monkeypatch):
    designs = np.array([GOOD, (3, 5, 4, 2, 3), GOOD, (6, 7, 7, 12, 8), GOOD])
    keys = [1, 1, ("a", 2), 1, 1]
    together = observe_line(designs, keys, seed=3, warm_up=90)
    assert together[0] == together[4]
    monkeypatch.setattr(simulators, "LINES", 2)
    monkeypatch.setattr(simulators, "CHUNK", 17)
    np.testing.assert_array_equal(observe_line(designs, keys, seed=3, warm_up=90), together)
    one_by_one = [
        observe_line([design], [key], seed=3, warm_up=90)[0] for design, key in zip(designs, keys, strict=True)
    ]
    np.testing.assert_array_equal(one_by_one, together)
    assert not np.any(observe_line(designs, keys, seed=4, warm_up=90) == together)


def test_pulls_have_streams_of_their_own(monkeypatch):
    designs = np.array([GOOD, (6, 7, 7, 12, 8), (3, 5, 4, 2, 3)])
    law = SimulatedThroughputs(designs, np.ones(3))
    seen = law.draw(np.array([3, 0, 2]), np.random.default_rng(5))
    seed = int(np.random.default_rng(5).integers(2**62))
    first = observe_line([GOOD] * 3, [("7-7-6-8-12", ordinal) for ordinal in range(3)], seed=seed)
    third = observe_line([designs[2]] * 2, [("3-5-4-2-3", ordinal) for ordinal in range(2)], seed=seed)
    assert len(set(first)) == 3
    np.testing.assert_allclose(seen.sums, [first.sum(), 0.0, third.sum()], rtol=1e-14)
    np.testing.assert_allclose(seen.squares, [(first**2).sum(), 0.0, (third**2).sum()], rtol=1e-14)
    monkeypatch.setattr(simulators, "LINES", 2)
    again = law.draw(np.array([3, 0, 2]), np.random.default_rng(5))
    np.testing.assert_allclose(again.sums, seen.sums, rtol=1e-14)


@of_each(
    ("designs", "streams", "settings", "said"),
    [
        ([(1, 2, 3, 4)], [0], {}, r"shape \(1, 4\)"),
        ([(1, 2, 3, 4, 0)], [0], {}, "has a 0"),
        ([(1.5, 2, 3, 4, 1)], [0], {}, "float64"),
        ([GOOD], [0, 1], {}, "1 designs and 2 streams"),
        ([GOOD], [0], {"seed": -1}, "seed is -1"),
        ([GOOD], [0], {"warm_up": -1}, "warm_up is -1"),
        ([GOOD], [0], {"jobs": 0}, "jobs is 0"),
    ],
)
def test_what_is_no_line_is_refused(designs, streams, settings, said):
    with pytest.raises(InvalidInput, match=said):
        observe_line(designs, streams, **settings)


def test_no_observations_are_none():
    assert observe_line(np.empty((0, 5), dtype=int), []).shape == (0,)


def test_what_has_no_mean_is_refused():
    with pytest.raises(InvalidInput, match="the design is"):
        observation_mean((1, 2, 3, 4, 0))
    with pytest.raises(InvalidInput, match="jobs is 2"):
        observation_mean(GOOD, jobs=2)
