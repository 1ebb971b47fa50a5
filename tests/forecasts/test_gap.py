"""What a budget can show is what it then shows, said beforehand."""

import numpy as np
import pytest

import surepick as sp
from surepick.forecasts.gap import ALIKE, GUESS, SPREAD, forecast_gap

ARMS = sp.Arms(ids=[*"abcdef"])


def policy_for(noise: str = "subgaussian:0.5", budget: int = 60, **asked):
    return sp.make_policy("certified-independent", ARMS, delta=0.05, noise=noise, budget=budget, **asked)


def test_a_guess_that_is_right_has_the_gaps_of_studies():
    means, policy = [0.9, 0.6, 0.5, 0.2, 0.1, 0.0], policy_for()
    (row,) = forecast_gap(policy, means, studies=60).rows
    world = sp.environments.Environment(arms=ARMS, means=means, noise=sp.SubGaussian(0.5))
    gaps = [sp.simulate(policy, world, seed=1_000 + seed).certificate.certified_gap for seed in range(60)]
    assert row.kind == GUESS
    assert row.low <= np.median(gaps) <= row.high
    assert np.quantile(gaps, 0.05) <= row.typical <= np.quantile(gaps, 0.95)


def test_small_measurements_may_be_good_ones():
    means = np.array([0.9, 0.6, 0.5, 0.2, 0.1, 0.0])
    (large,), (small,) = (
        forecast_gap(policy_for(), guess, minimize=minimize).rows
        for guess, minimize in ((means, False), (-means, True))
    )
    assert small.low <= large.typical <= small.high
    assert small.right > 0.4


@pytest.mark.parametrize("noise", ["subgaussian:0.5", "bernoulli", "bounded:0:10"])
def test_typical_means_are_in_the_range_and_alike_is_the_hardest(noise):
    found = forecast_gap(policy_for(noise, budget=120))
    rows = {row.kind: row for row in found.rows}
    assert rows[ALIKE].typical >= rows[SPREAD].typical
    assert all(row.low <= row.typical <= row.high for row in found.rows)
    assert found.rows[0].typical < 1.5 * found.uniform
    assert "120 measurements of 6 candidates" in str(found)
    assert str(found).count("\n") == len(found.rows) + 1


def test_an_unknown_scale_is_guessed():
    found = forecast_gap(policy_for("normal", budget=120), assume_scale=0.5)
    assert found.rows[0].typical > forecast_gap(policy_for(budget=120)).rows[0].typical
    with pytest.raises(sp.InvalidInput, match="assume"):
        forecast_gap(policy_for("normal"))


def test_a_policy_without_a_budget_has_none():
    plain = sp.make_policy("certified-independent", ARMS, epsilon=0.1, delta=0.05, noise="bernoulli")
    with pytest.raises(sp.InvalidInput, match="budget"):
        forecast_gap(plain)
