"""Forecasts of the best that keeps bounds: as if everybody were right at the bounds."""

import numpy as np
import pytest

import surepick as sp

MEANS = [0.0, 0.5, 1.0, 1.5]


def forecast_of(constraints, means=MEANS):
    asked = {"epsilon": 0.5, "delta": 0.1, "noise": "subgaussian:0.5"}
    given = {"constraints": constraints} if constraints else {}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*"abcd"]), **asked, **given)
    return sp.forecast(policy, means, rehearsals=4)


def test_a_bound_without_noise_that_all_keep_costs_what_the_usual_question_does():
    usual, bounded = forecast_of([]), forecast_of(["heat<=0"])
    assert bounded.total == pytest.approx(usual.total, rel=0.6)


@pytest.mark.parametrize("means", [MEANS, None])
def test_noise_of_the_bound_costs_and_tolerance_saves(means):
    quiet, noisy, easy = (
        forecast_of([f"heat<=0,tolerance={tolerance},noise=subgaussian:{scale}"], means).total
        for tolerance, scale in ((0.5, 0.1), (0.5, 2.0), (5.0, 2.0))
    )
    assert noisy > 1.5 * quiet
    assert easy < noisy


def test_the_same_seed_gives_the_same_forecast():
    bound = ["heat>=1,tolerance=0.5,noise=bounded:0:2"]
    found = forecast_of(bound).total
    assert found == forecast_of(bound).total
    assert np.isfinite(found)
