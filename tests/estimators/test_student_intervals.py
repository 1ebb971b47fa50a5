"""Student's intervals at all times at once: how often a mean is ever outside, and that two results are enough."""

import numpy as np
import pytest
from bounds import failures_allowed
from scipy import stats

from surepick.core.observations import Observations
from surepick.estimators.student_intervals import StudentIntervals

ALPHA, DELTA, LENGTH = 0.1, 0.1, 60
INTERVALS = StudentIntervals(DELTA, 2, 20.0)
QUICK_AND_ALL = [1_000, pytest.param(20_000, marks=pytest.mark.slow)]


def totals_of(rewards: np.ndarray) -> Observations:
    """Those of the first n results of each sequence, (sequences, n): each sequence is a study, each n an arm."""
    counts = np.broadcast_to(np.arange(1, rewards.shape[1] + 1), rewards.shape)
    sums = rewards.cumsum(axis=1)
    before = np.concatenate([rewards[:, :1], (sums / counts)[:, :-1]], axis=1)
    within = ((rewards - before) * (rewards - sums / counts)).cumsum(axis=1)  # Welford's sum
    return Observations(counts, sums, within=np.maximum(within, 0.0))


def sequences(runs: int, seed: int = 0) -> np.ndarray:
    """Normal rewards of mean 0, whose scale is another one in each."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((runs, LENGTH)) * 10.0 ** rng.uniform(-3, 3, (runs, 1))


@pytest.mark.parametrize("runs", QUICK_AND_ALL)
def test_the_mean_is_hardly_ever_outside(runs):
    seen = totals_of(sequences(runs))
    ever = (np.abs(seen.means) > INTERVALS.half_widths(seen, ALPHA)).any(axis=1)
    print(f"\n{np.count_nonzero(ever)} of {runs}, {failures_allowed(runs, ALPHA)} allowed")
    assert np.count_nonzero(ever) <= failures_allowed(runs, ALPHA)


def test_quantiles_of_student_are_not_enough():
    """The saboteur: the interval of one number of results, looked at after each."""
    seen = totals_of(sequences(1_000))
    freedom = np.maximum(seen.counts - 1, 1)
    width = stats.t.ppf(1.0 - ALPHA / 2.0, freedom) * np.sqrt(seen.deviations / freedom / seen.counts)
    ever = ((np.abs(seen.means) > width) & (seen.counts > 1)).any(axis=1)
    assert np.count_nonzero(ever) > failures_allowed(1_000, ALPHA)


def test_two_results_are_enough_and_equal_ones_are_not():
    seen = totals_of(np.array([[0.3, 0.4, 0.2], [0.3, 0.3, 0.3]]))
    width = INTERVALS.half_widths(seen, ALPHA)
    assert np.isinf(width[0, 0])
    assert np.isfinite(width[0, 1:]).all()
    assert np.isinf(width[1]).all()


def test_near_the_planned_number_they_are_not_much_wider_than_those_of_one_look():
    rewards = np.random.default_rng(1).standard_normal((1, 40))
    width = INTERVALS.half_widths(totals_of(rewards), ALPHA / 20.0)[0, 19]
    once = stats.t.ppf(1.0 - ALPHA / 40.0, 19) * rewards[0, :20].std(ddof=1) / np.sqrt(20)
    assert once < width < 1.6 * once


def test_bounds_are_between_the_ends_of_two_intervals():
    rng = np.random.default_rng(2)
    rewards = rng.standard_normal((3, 12)) + np.array([[5.0], [0.0], [0.1]])
    seen = Observations(np.full((1, 3), 12), rewards.sum(axis=1)[None], None, within=12.0 * rewards.var(axis=1)[None])
    three = StudentIntervals(DELTA, 3, 12.0)
    bounds, beaten = three.upper_bounds(seen, np.ones((1, 3), bool))
    above, below = (three.half_widths(seen, DELTA / part)[0] for part in (2.0, 4.0))
    assert bounds[0, 1, 2] == pytest.approx(seen.means[0, 1] + above[1] - seen.means[0, 2] + below[2])
    assert beaten.tolist() == [[False, True, True]]
    _, alone = three.upper_bounds(seen, np.array([[False, True, True]]))  # who is no rival beats nobody
    assert not alone.any()
