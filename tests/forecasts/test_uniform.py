"""One batch of the same number of measurements for everybody, as large as the forecast says, answers each question."""

import math

import numpy as np
from bounds import failures_allowed
from together import of_each

import surepick as sp
from surepick.policies.dimension import uniform_pulls
from surepick.policies.uniform import uniform_pulls_for

EPSILON, DELTA, SIGMA, RUNS = 0.5, 0.1, 1.0, 2_000
HAIR = 1.001


def problem_of(num_arms, segments=None, **asked):
    arms = sp.Arms(ids=list(map(str, range(num_arms))), segments=segments)
    goal = {"epsilon": EPSILON, "delta": DELTA, "noise": f"subgaussian:{SIGMA}"}
    return sp.make_policy("certified-independent", arms, **goal, **asked).problem


def averages(means, each, scale=SIGMA):
    rng = np.random.default_rng(22)
    return np.asarray(means) + scale / math.sqrt(each) * rng.standard_normal((RUNS, len(means)))


def threshold(each, shrink):
    """Half of the arms are too low by a hair more than epsilon; each average says above or below."""
    means = np.r_[np.full(5, -HAIR * EPSILON), np.full(5, HAIR * EPSILON)]
    return ((averages(means, each / shrink) > 0.0) != (means > 0.0)).any(axis=1)


def control(each, shrink):
    means = np.r_[0.0, np.full(9, -HAIR * EPSILON)]
    found = averages(means, each / shrink)
    return (found[:, 1:] > found[:, :1]).any(axis=1)


def top(each, shrink):
    means = np.r_[np.zeros(3), np.full(7, -HAIR * EPSILON)]
    found = averages(means, each / shrink)
    return found[:, :3].min(axis=1) < found[:, 3:].max(axis=1)


def all_good(each, shrink):
    """The best, good ones at epsilon, bad ones at epsilon + slack; the line is in the middle."""
    means = np.r_[0.0, np.full(4, -EPSILON), np.full(5, -2.0 * HAIR * EPSILON)]
    found = averages(means, each / shrink)
    line = found.max(axis=1, keepdims=True) - 1.5 * EPSILON
    return ((found > line) != (means > -1.5 * EPSILON)).any(axis=1)


QUESTIONS = [
    (threshold, {"question": "above", "threshold": 0.0}),
    (control, {"question": "above", "control": "0"}),
    (top, {"question": "top", "m": 3}),
    (all_good, {"question": "all-good"}),
]


@of_each(("wrongly", "asked"), QUESTIONS)
def test_they_answer_the_question(wrongly, asked):
    total = uniform_pulls_for(problem_of(10, **asked), SIGMA)
    assert total % 10 == 0
    assert wrongly(total // 10, 1.0).sum() <= failures_allowed(RUNS, DELTA)


@of_each(("wrongly", "asked"), QUESTIONS)
def test_a_quarter_of_them_does_not(wrongly, asked):
    total = uniform_pulls_for(problem_of(10, **asked), SIGMA)
    assert wrongly(total // 10, 4.0).sum() > failures_allowed(RUNS, DELTA)


def test_which_is_the_best_costs_what_it_did():
    usual = uniform_pulls(10, sigma=SIGMA, epsilon=EPSILON, delta=DELTA)
    assert uniform_pulls_for(problem_of(10), SIGMA) == usual
    assert uniform_pulls_for(problem_of(10, question="top", m=1), SIGMA) == usual


def test_one_of_a_share_does_not_grow_with_the_list():
    short, long = (uniform_pulls_for(problem_of(k, question="one-of", share=0.05), SIGMA) for k in (1_000, 10_000))
    assert short == long < uniform_pulls_for(problem_of(1_000), SIGMA)


def test_a_bound_without_noise_is_free_and_a_noisy_one_costs():
    exact, noisy = (
        uniform_pulls_for(problem_of(10, constraints=[text]), SIGMA)
        for text in ("t<=1", "t<=1,tolerance=0.1,noise=subgaussian:1")
    )
    assert exact == uniform_pulls_for(problem_of(10), SIGMA)
    assert noisy == 10 * math.ceil(8.0 * math.log(10 / (DELTA / 2)) / 0.1**2)


def test_pairs_are_those_of_a_segment():
    assert uniform_pulls_for(problem_of(10, segments=[*"aaaaabbbbb"]), SIGMA) == 10 * math.ceil(
        4.0 * math.log(8 / DELTA) / EPSILON**2
    )
