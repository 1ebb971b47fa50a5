"""The best arm that was unlucky at first is found again, and no batch is built on a guess from few pulls."""

import numpy as np
import pytest

import surepick as sp
from surepick.policies.carried import means_rule
from surepick.policies.carried.means_rule import Known

FORTY = np.concatenate([[0.6], np.linspace(0.5, 0.2, 39)])


def known(counts, scores, squared_errors) -> Known:
    arrays = (np.array([one]) for one in (counts, scores, squared_errors))
    return Known(*arrays)


def test_where_every_arm_is_known_well_the_proportions_stay():
    weights = np.array([[0.5, 0.3, 0.2]])
    wanted, total = known([400, 300, 300], [1.0, 0.0, -1.0], [1e-3] * 3).fair_shares(weights, np.array([200.0]))
    assert total.tolist() == [200]
    assert np.allclose(wanted, 200.0 * weights)


def test_an_arm_that_few_pulls_show_as_bad_gets_more_of_them():
    """Six pulls, 1.25 errors behind the leader, beside arms with thousands."""
    counts, scores, errors = [6, 5000, 5000, 2000], [0.25, 0.6, 0.58, 0.0], [0.08, 5e-5, 5e-5, 1e-4]
    weights = np.array([[1e-4, 0.5, 0.4999, 0.0]])
    wanted, _ = known(counts, scores, errors).fair_shares(weights, np.array([2000.0]))
    spent = sum(counts) + 2000
    asked = 6 * 4.0 * np.log(spent / 4) * 0.08 / 0.35**2
    assert wanted[0, 0] == pytest.approx(asked - 6)
    assert wanted[0, 3] == 0.0, "an arm that is not asked for is not measured"


def test_such_arms_get_a_quarter_of_a_batch_at_most():
    counts = [2] * 50 + [5000]
    scores, errors = [0.5] * 50 + [0.6], [0.1] * 50 + [1e-4]
    weights = np.array([[1e-6] * 50 + [1.0 - 5e-5]])
    wanted, total = known(counts, scores, errors).fair_shares(weights, np.array([400.0]))
    assert total.tolist() == [400]
    assert wanted[0, :50].sum() == pytest.approx(100.0)


def test_a_batch_at_most_doubles_what_is_known_of_an_arm():
    """Half of 100,000 pulls were planned for an arm with 40, which looked nearly as good as the leader."""
    counts, weights = [40, 50_000, 50_000], np.array([[0.5, 0.5, 0.0]])
    _, total = known(counts, [0.59, 0.6, 0.5], [6e-3, 5e-6, 5e-6]).fair_shares(weights, np.array([100_000.0]))
    assert total.tolist() == [2001], "two in a hundred of those so far: a batch is not made smaller"
    _, total = known([40, 500, 500], [0.59, 0.6, 0.5], [6e-3] * 3).fair_shares(weights, np.array([1000.0]))
    assert total.tolist() == [88]


def dearest(seeds) -> float:
    """The largest of some studies, in medians."""
    world = sp.environments.Environment(arms=sp.Arms(ids=range(40)), means=FORTY, noise=sp.Bernoulli())
    policy = sp.make_policy("certified-independent", world.arms, epsilon=1e-4, delta=0.05, noise=sp.Bernoulli())
    pulls = sp.simulate_many(policy, world, seeds=seeds).pulls
    return float(pulls.max() / np.median(pulls))


def test_no_study_takes_many_times_as_long_as_others(monkeypatch):
    """Without the rule, one of these twenty takes thirty times as long: the best arm starves."""
    seeds = range(700_040, 700_060)
    assert dearest(seeds) < 8.0
    monkeypatch.setattr(means_rule, "HEURISTIC_UNLUCKY", 0.0)
    monkeypatch.setattr(means_rule, "HEURISTIC_AT_ONCE", 10**9)
    assert dearest(seeds) > 8.0
