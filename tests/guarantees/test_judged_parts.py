"""Studies that are judged as their results come keep delta, if what is in a part does not depend on values in it.

docs/certified-elimination.md, line 18. The saboteur lets values decide which results come first, and is noticed.
"""

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice
from certified_studies import CORRELATED, GAP
from judged_parts import HONEST, answer_in_parts, by_value, wrong_answers

import surepick as sp

DELTA = 0.1
QUICK = trials_to_notice(DELTA, 0.9)  # runs: the saboteur is always wrong
TWO = np.array([0.0, -GAP])
A_PART_AND_ALL = [QUICK, pytest.param(2_000, marks=pytest.mark.slow)]


def without_features(means: np.ndarray, sigma: float):
    noise = sp.SubGaussian(sigma)
    arms = sp.Arms(ids=range(len(means)))
    return sp.make_policy("certified-independent", arms, epsilon=1.0, delta=DELTA, noise=noise, evidence="carried")


def check_two_arms(arrives, runs: int) -> None:
    wrong = wrong_answers(without_features(TWO, 1.0), TWO, 1.0, arrives, runs)
    print(f"\n{wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong <= failures_allowed(runs, DELTA)


@pytest.mark.parametrize("name", HONEST)
def test_two_arms_just_outside_epsilon(name):
    check_two_arms(HONEST[name], QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST)
def test_two_arms_just_outside_epsilon_in_10000_runs(name):
    check_two_arms(HONEST[name], 10_000)


@pytest.mark.cases(1)
@pytest.mark.parametrize("runs", A_PART_AND_ALL)
@pytest.mark.parametrize("arrives", HONEST.values(), ids=HONEST)
def test_arms_with_features(arrives, runs):
    means = CORRELATED @ np.array([0.0, 1.0])
    asked = {"epsilon": 1.0, "delta": DELTA, "noise": sp.SubGaussian(0.8), "norm_bound": 1.0, "tolerance": 0.5}
    policy = sp.make_policy("certified-linear", sp.Arms(CORRELATED), evidence="carried", **asked)
    wrong = wrong_answers(policy, means, 0.8, arrives, runs)
    print(f"\n{wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong <= failures_allowed(runs, DELTA)


def test_parts_that_values_decide_are_noticed():
    runs = 10
    wrong = wrong_answers(without_features(TWO, 1.0), TWO, 1.0, by_value, runs)
    print(f"\n{wrong} wrong of {runs}, {failures_allowed(runs, DELTA)} allowed")
    assert wrong > failures_allowed(runs, DELTA)


def test_small_parts_come_to_an_end():
    """Two results at a time, of arms whose processes owe flows to former candidates."""
    means = np.array([0.0, -GAP, -GAP, -GAP])
    policy = without_features(means, 0.6)
    assert all(answer_in_parts(policy, means, 0.6, HONEST["a few"], seed) is not None for seed in range(10))
