"""Repeats against a declared scale: both rules are silent, at their level, for whatever the scale allows.

The candidates are measured as somebody would who wants to raise an alarm: again and again the one whose repeats, or
whose mean, stray most. A scale that is too small is noticed.
"""

import math

import numpy as np
import pytest
from bounds import failures_allowed

from surepick.core.observations import Observations
from surepick.estimators.goodness_of_fit import spread_of, surprises

ARMS, PULLS, LEVEL = 4, 40, 0.05
LAWS = {  # all 1-sub-Gaussian, with mean 0
    "normal": lambda rng, n: rng.normal(size=n),
    "signs": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "uniform": lambda rng, n: rng.uniform(-1.0, 1.0, n),
    "mostly nothing": lambda rng, n: rng.choice([0.0, 1.0, -1.0], n, p=[0.9, 0.05, 0.05]),
    "skewed": lambda rng, n: 2.0 * ((rng.random(n) < 0.1) - 0.1),
}


def strays_most(counts, sums, squares, rng) -> int:
    if (counts < 2).any():
        return int(np.argmin(counts))
    within = squares - sums**2 / counts
    return int(np.argmax(within - counts)) if rng.random() < 0.8 else int(rng.integers(ARMS))


def alarms_of_spread(law, *, declared: float, trials: int, seed: int) -> int:
    """Studies in which the evidence reaches 1 / LEVEL at any time."""
    rng, found, scales = np.random.default_rng(seed), 0, np.full(ARMS, declared)
    for _ in range(trials):
        counts, sums, squares = np.zeros(ARMS, np.int64), np.zeros(ARMS), np.zeros(ARMS)
        means = rng.normal(0.0, 50.0, ARMS)
        for reward in law(rng, PULLS):
            arm = strays_most(counts, sums - counts * means, squares, rng)  # squares are around the means
            counts[arm] += 1
            sums[arm] += reward + means[arm]
            squares[arm] += reward**2
            seen = Observations(counts, sums - counts * means, squares)
            if spread_of(seen, scales).evidence >= math.log(1.0 / LEVEL):
                found += 1
                break
    return found


@pytest.mark.cases(3)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_repeats_within_the_scale_raise_no_alarm(law):
    assert alarms_of_spread(law, declared=1.0, trials=60, seed=1) <= failures_allowed(60, LEVEL)


def test_a_scale_that_is_too_small_is_noticed():
    assert alarms_of_spread(LAWS["normal"], declared=0.6, trials=60, seed=2) > failures_allowed(60, LEVEL)


def asked_about(law, *, declared: float, arms: int, trials: int, seed: int, level: float = LEVEL) -> tuple[int, int]:
    """(questions, results that could be asked about): the candidate is measured whose mean strays most from its own."""
    rng, found, asked = np.random.default_rng(seed), 0, 0
    for _ in range(trials):
        counts, sums = np.ones(arms, np.int64), law(rng, arms)
        for reward in law(rng, 3):
            arm = int(np.argmax(np.sqrt(counts) * np.abs(sums / counts)))
            distance = np.array([reward - sums[arm] / counts[arm]]) / declared
            evidence = surprises(np.ones(1), counts[[arm]].astype(float), distance)[0]
            found += evidence >= math.log(arms / level)
            asked += 1
            counts[arm] += 1
            sums[arm] += reward
    return found, asked


@pytest.mark.cases(3)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS.keys())
def test_an_honest_result_is_seldom_asked_about(law):
    found, asked = asked_about(law, declared=1.0, arms=10, trials=1500, seed=3)
    assert found <= failures_allowed(asked, LEVEL)


def test_a_rule_for_too_small_a_scale_would_ask_too_often():
    found, asked = asked_about(LAWS["normal"], declared=0.4, arms=10, trials=1000, seed=4)
    assert found > failures_allowed(asked, LEVEL)


def test_a_rule_without_the_number_of_candidates_would_ask_more_often():
    with_it = asked_about(LAWS["normal"], declared=0.8, arms=200, trials=1500, seed=5)[0]
    without = asked_about(LAWS["normal"], declared=0.8, arms=200, trials=1500, seed=5, level=200 * LEVEL)[0]
    assert without > 3 * max(with_it, 1)


@pytest.mark.parametrize("pulls", [1, 3])
@pytest.mark.parametrize("others", [1, 2, 30])
def test_the_evidence_is_the_least_product_over_all_means(pulls, others):
    """Brute force over the mean of the candidate."""
    mean, others_mean, scale, prior, share = 2.5, -0.5, 1.7, 0.1, 0.9
    means = np.linspace(-10.0, 10.0, 200_001)
    weight = others**2 / (others + prior)
    logs = 0.5 * math.log(prior / (others + prior)) + 0.5 * weight * ((others_mean - means) / scale) ** 2
    logs += 0.5 * math.log1p(-share) + 0.5 * share * pulls * ((mean - means) / scale) ** 2
    distance = (mean - others_mean) / scale
    found = surprises(*(np.array([each]) for each in (float(pulls), float(others), distance)))
    assert found == pytest.approx(logs.min(), abs=1e-6)


def test_two_results_far_apart_are_enough():
    seen = Observations(np.array([2, 1]), np.array([3.0 - 999.0, 1.0]), np.array([9.0 + 999.0**2, 1.0]))
    found = spread_of(seen, np.array([0.5, 0.5]))
    assert found.evidence > math.log(1e6)
    assert found.worst == 0


def test_large_numbers_that_are_close_raise_no_alarm():
    rewards = 101325.0 + 0.003 * np.random.default_rng(6).normal(size=200)
    seen = Observations(np.array([200, 0]), np.array([rewards.sum(), 0.0]), np.array([(rewards**2).sum(), 0.0]))
    assert spread_of(seen, np.array([0.003, 0.003])).evidence < math.log(1e6)


def test_totals_without_squares_count_as_equal_results():
    seen = Observations(np.array([10]), np.array([70.0]))
    assert spread_of(seen, np.array([1.0])).within[0] == 0.0
