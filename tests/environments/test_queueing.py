"""The production line: its exact throughputs against published and simulated ones."""

import numpy as np
import pytest
from budgets import few_and_all

from surepick.errors import InvalidInput
from surepick_bench.simulators import observation_mean, production_line, simulated_production_line, throughput


def test_the_line_of_twenty_has_the_published_best_designs():
    env = production_line(20, seed=1)
    assert env.num_arms == 3249
    assert env.means.max() == pytest.approx(5.776121751463529, rel=1e-12)
    best = {env.arms.ids[arm] for arm in np.flatnonzero(env.gaps < 1e-9)}
    assert best == {"6-7-7-12-8", "7-7-6-8-12"}
    assert np.count_nonzero(env.gaps <= 0.1) == 21
    np.testing.assert_array_equal(env.arms.features.sum(axis=1), 40)


@few_and_all("length", 7, 9)
def test_the_means_of_simulated_rewards_are_those_of_observations(length):
    """And so the good designs are those of observations, and good in the long run too."""
    env, exact = simulated_production_line(length, seed=4), production_line(length, seed=4)
    assert env.arms.ids == exact.arms.ids
    means = np.array([observation_mean(tuple(design)) for design in env.law.designs])
    assert env.best == np.argmax(means)
    good = means >= means.max() - 0.1
    assert np.array_equal(env.epsilon_best(0.1), good)
    assert exact.epsilon_best(0.1)[good].all()
    near = means >= means.max() - 1.0
    assert not near.all()
    np.testing.assert_array_equal(env.means[near], means[near])
    np.testing.assert_allclose(env.means[~near], 50 / 49 * exact.means[~near], rtol=1e-12)
    assert np.all(env.means > means - 1e-9)
    assert np.all(env.means < 1.01 * means)


@pytest.mark.slow
def test_simulated_rewards_of_twenty_have_the_best_designs_of_the_long_run():
    env, exact = simulated_production_line(20), production_line(20)
    assert env.arms.ids[env.best] == "7-7-6-8-12"
    assert env.means.max() == pytest.approx(5.868133403509, abs=1e-11)
    good, good_exact = env.epsilon_best(0.1), exact.epsilon_best(0.1)
    assert (np.count_nonzero(good), np.count_nonzero(good & good_exact)) == (19, 19)


@pytest.mark.slow
def test_the_line_of_fifty_has_the_published_best_designs():
    exact = production_line(50, seed=1)
    assert exact.num_arms == 57_624
    assert exact.arms.ids[exact.best] in ("17-17-16-21-29", "16-17-17-29-21")
    assert exact.means.max() == pytest.approx(15.69758482, abs=1e-8)
    assert np.count_nonzero(exact.gaps <= 0.1) == 43
    env = simulated_production_line(50, seed=1)
    assert env.arms.ids[env.best] == "17-17-16-20-30"
    assert env.means.max() == pytest.approx(16.000516971, abs=1e-8)
    good, good_exact = env.epsilon_best(0.1), exact.epsilon_best(0.1)
    assert (np.count_nonzero(good), np.count_nonzero(good & good_exact)) == (37, 37)


def test_the_best_design_of_fifty():
    assert throughput(17, 17, 16, 21, 29) == pytest.approx(15.69758482, abs=1e-8)


def test_a_reversed_line_has_the_same_throughput():
    rng = np.random.default_rng(0)
    for _ in range(40):
        first, second, third = (int(rate) for rate in rng.integers(1, 20, size=3))
        before, after = (int(room) for room in rng.integers(1, 20, size=2))
        assert throughput(first, second, third, before, after) == pytest.approx(
            throughput(third, second, first, after, before), rel=1e-9
        )


@pytest.mark.cases(2)
@pytest.mark.parametrize("design", [(3, 5, 4, 2, 3), (9, 1, 7, 1, 2), (1, 8, 8, 3, 1), (6, 6, 1, 2, 2)])
def test_a_simulated_line_agrees(design):
    """Jobs leave stations at D1, D2, D3; a station is free for the next job once its job has left it."""
    first, second, third, before, after = design
    rng, jobs = np.random.default_rng(3), 60_000
    service = [rng.exponential(1.0 / rate, jobs) for rate in (first, second, third)]
    left = np.zeros((3, jobs + 1))
    for job in range(jobs):
        now = job + 1
        left[0, now] = left[0, now - 1] + service[0][job]
        left[0, now] = max(left[0, now], left[1, now - before] if now > before else 0.0)
        left[1, now] = max(left[0, now], left[1, now - 1]) + service[1][job]
        left[1, now] = max(left[1, now], left[2, now - after] if now > after else 0.0)
        left[2, now] = max(left[1, now], left[2, now - 1]) + service[2][job]
    assert jobs / left[2, -1] == pytest.approx(throughput(*design), rel=0.03)


def test_a_line_without_room_is_refused():
    with pytest.raises(InvalidInput, match="length is 2"):
        production_line(2)
    with pytest.raises(InvalidInput, match="length is 2"):
        simulated_production_line(2)
    with pytest.raises(InvalidInput, match="high"):
        simulated_production_line(6, high=-1.0)
