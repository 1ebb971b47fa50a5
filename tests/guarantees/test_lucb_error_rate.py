"""LUCB1 keeps (epsilon, delta): wrong answers stay within the exact binomial bound."""

import numpy as np
import pytest
from bounds import failures_allowed, until_clear

import surepick as sp

EPSILON, DELTA, TRIALS = 0.2, 0.05, 40


def wrong_answers(*, believed_sigma: float, trials: int = TRIALS) -> int:
    """Runs out of `trials` that end with an arm worse by more than epsilon; two are, by 2 % more."""
    means = np.full(3, 0.5 - 1.02 * EPSILON)
    means[2] = 0.5
    environment = sp.environments.Environment(arms=sp.Arms(np.eye(3)), means=means, noise=sp.SubGaussian(1.0))
    noise = sp.SubGaussian(believed_sigma)
    policy = sp.make_policy("lucb", environment.arms, epsilon=EPSILON, delta=DELTA, noise=noise, growth=0.5)
    wrong = (not sp.simulate(policy, environment, seed=seed).success for seed in range(trials))
    return until_clear(wrong, trials, DELTA)


def test_wrong_answers_stay_within_delta():
    assert wrong_answers(believed_sigma=1.0) <= failures_allowed(TRIALS, DELTA)


@pytest.mark.slow
@pytest.mark.parametrize("believed_sigma", [1.0, 0.5])
def test_wrong_answers_stay_within_delta_over_400_runs(believed_sigma):
    """With the noise's own scale and with half of it, which the width of LUCB1 has to spare."""
    wrong = wrong_answers(believed_sigma=believed_sigma, trials=400)
    print(f"\nlucb that believes sigma {believed_sigma}: {wrong} wrong of 400")
    assert wrong <= failures_allowed(400, DELTA)


def test_the_error_test_would_notice_a_quarter_of_the_width():
    """The saboteur. The union of LUCB1 is so generous that half the width still keeps delta."""
    assert wrong_answers(believed_sigma=0.25) > failures_allowed(TRIALS, DELTA)
