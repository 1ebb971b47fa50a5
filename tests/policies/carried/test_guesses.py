"""How far repeats say that the noise is less than declared, and what the leader shown makes of it."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators.posterior import HEURISTIC_DECLARED, measured_share

DECLARED = np.full(40, 4.0)


def seen(sigma: float, pulls: int) -> Observations:
    rewards = np.random.default_rng(5).normal(3.0, sigma, size=(40, pulls))
    return Observations(np.full(40, pulls), rewards.sum(axis=1), np.sum(rewards**2, axis=1))


def test_repeats_show_the_noise_scale():
    assert measured_share(seen(1.0, 9), DECLARED) == pytest.approx(0.25, abs=0.06)
    assert measured_share(seen(4.0, 9), DECLARED) == pytest.approx(1.0, abs=0.1)
    assert measured_share(seen(8.0, 9), DECLARED) == 1.0


def test_the_declared_scale_counts_where_nothing_is_repeated():
    assert measured_share(seen(1.0, 1), DECLARED) == 1.0
    totals = seen(1.0, 9)
    assert measured_share(Observations(totals.counts, totals.sums), DECLARED) == 1.0
    two = Observations(np.array([2, 0]), np.array([6.0, 0.0]), np.array([18.0, 0.0]))  # 3 and 3
    assert measured_share(two, DECLARED[:2]) == pytest.approx(np.sqrt(HEURISTIC_DECLARED / (HEURISTIC_DECLARED + 1)))


def test_an_arm_that_repeats_show_to_be_best_leads_though_the_declared_noise_is_large():
    """Three measurements of arm 0 are alike and best; with the declared scale that would be chance, and arm 1 led."""
    means = np.concatenate([[12.0, 9.0], np.linspace(-10.0, 10.0, 58)])
    counts = np.full(60, 3)
    counts[1] = 12
    told = Observations(counts, counts * means, counts * (means**2 + 0.3**2))
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=range(60)), epsilon=0.5, delta=0.1, noise=sp.SubGaussian(19.0)
    )
    state = policy.init()
    assert policy.tell(state, policy.ask(state), told).state.leader == 0
    totals = Observations(counts, counts * means)  # without squares nothing is known of the noise
    assert policy.tell(state, policy.ask(state), totals).state.leader == 1
