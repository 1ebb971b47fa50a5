"""Normal noise whose standard deviation a pilot has bounded: the formula, its text, and who may use it."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import chi2

import surepick as sp
from surepick.noise import Noise, failure_probability
from surepick.policies.verdict import noise_assumption

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
positive = st.floats(min_value=1e-100, max_value=1e100)


def statistics(*rewards):
    """(counts, sums, squares) of lists of rewards, one an arm."""
    return (
        [len(each) for each in rewards],
        [sum(each) for each in rewards],
        [sum(x * x for x in each) for each in rewards],
    )


def pilot(*rewards, failure=0.05):
    return sp.pilot_noise(*statistics(*rewards), failure=failure)


# the formula


def test_the_bound_by_hand():
    """SS = (1 - 2)^2 + (3 - 2)^2 + (5 - 5)^2 * 3 = 2 with 1 + 2 degrees of freedom; 0.352 is in every table."""
    noise = pilot([1, 3], [5, 5, 5], [7], [])
    assert noise.repeats == 3
    assert noise.failure == 0.05
    assert noise.sigma == pytest.approx(math.sqrt(2 / 0.3518463), rel=1e-6)


@pytest.mark.parametrize("failure", [1e-9, 0.005, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("sizes", [(2,), (2,) * 20, (5, 3, 1, 2), (1000, 1000)])
def test_the_bound_is_the_chi_square_bound(sizes, failure):
    rng = np.random.default_rng(len(sizes))
    rewards = [rng.normal(arm, 3.0, size) for arm, size in enumerate(sizes)]
    spread = sum(np.sum((each - each.mean()) ** 2) for each in rewards)
    noise = pilot(*rewards, failure=failure)
    assert noise.repeats == sum(sizes) - len(sizes)
    assert noise.sigma == pytest.approx(math.sqrt(spread / chi2.ppf(failure, noise.repeats)), rel=1e-9)
    assert chi2.cdf(spread / noise.sigma**2, noise.repeats) == pytest.approx(failure, rel=1e-6)


def test_the_bound_does_not_depend_on_the_means_and_scales_with_the_unit():
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=(10, 3))
    plain = pilot(*rewards).sigma
    assert pilot(*(rewards + np.arange(10)[:, None])).sigma == pytest.approx(plain, rel=1e-9)
    assert pilot(*(1000 * rewards)).sigma == pytest.approx(1000 * plain, rel=1e-9)


@given(st.integers(0, 1000), st.floats(0.0, 9.0))
def test_lost_digits_never_make_the_bound_smaller(seed, magnitude):
    """However far from 0 the rewards are: a bound of at least the exact one, or a refusal."""
    rewards = np.random.default_rng(seed).normal(size=(5, 4)) + 10**magnitude
    exact = pilot(*(rewards - rewards[:, :1])).sigma  # differences of close numbers are exact
    try:
        assert pilot(*rewards).sigma >= exact * (1 - 1e-12)
    except sp.InvalidInput:
        assert magnitude > 5


# what is refused


@pytest.mark.parametrize("rewards", [([1.0], [2.0]), ([],), ([1.0], [], [3.0])])
def test_without_a_repeat_there_is_no_bound(rewards):
    with pytest.raises(sp.InvalidInput, match="no arm of the pilot was measured twice"):
        pilot(*rewards)


@pytest.mark.parametrize("value", [0.0, 2.0, 0.1, 1e9 / 3])
def test_equal_repeats_are_no_measure_of_noise(value):
    with pytest.raises(sp.InvalidInput, match="all equal, or equal to within rounding"):
        pilot([value] * 3, [7 * value] * 10)


def test_a_spread_below_rounding_is_refused():
    with pytest.raises(sp.InvalidInput, match="subtract a constant"):
        pilot([1e9, 1e9 + 1], [1e9, 1e9 + 2])
    assert pilot([0, 1], [0, 2]).sigma > 0


def test_a_bound_that_nothing_can_be_computed_with_is_refused():
    with pytest.raises(sp.InvalidInput, match="no float holds the square"):
        pilot([0, 10], failure=1e-100)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (([2], [2.0], [1.0]), "squares are smaller than its sums allow"),
        (([2], [1e300], [1.0]), "squares are smaller than its sums allow"),
        (([2], [0.0], [-1.0]), "squares are smaller than its sums allow"),
        (([2, 2], [2.0], [3.0]), r"shapes \(2,\), \(1,\), \(1,\)"),
        ((2, 2.0, 3.0), "shapes"),
        (([2], [math.nan], [3.0]), "finite"),
        (([2], [1.0], [math.inf]), "finite"),
        (([-2], [1.0], [1.0]), "whole numbers"),
        (([2.5], [1.0], [1.0]), "whole numbers"),
        (([1e300], [1.0], [1.0]), r"from 0 to 2\^53"),
        ((["two"], [1.0], [1.0]), "three lists of numbers"),
        (([2], [1.0], None), "three lists|shapes"),
    ],
)
def test_statistics_without_meaning_are_refused(columns, words):
    with pytest.raises(sp.InvalidInput, match=words):
        sp.pilot_noise(*columns, failure=0.05)


@pytest.mark.parametrize("failure", [0, 1, -0.1, 2, math.nan, "0.1", None])
def test_a_failure_that_is_no_probability_is_refused(failure):
    with pytest.raises(sp.InvalidInput, match="failure is"):
        pilot([1, 3], failure=failure)
    with pytest.raises(sp.InvalidInput, match="failure is"):
        sp.PilotGaussian(1.0, failure, 3)


@pytest.mark.parametrize(("sigma", "repeats"), [(0, 3), (-1, 3), (math.inf, 3), (None, 3), (1, 0), (1, 2.5), (1, "2")])
def test_records_without_meaning_are_refused(sigma, repeats):
    with pytest.raises(sp.InvalidInput, match=r"(sigma|repeats) is"):
        sp.PilotGaussian(sigma, 0.005, repeats)


# its text, and who may use it


@given(positive, st.floats(min_value=1e-100, max_value=1 - 1e-6), st.integers(1, 10**9))
def test_the_text_gives_an_equal_noise(sigma, failure, repeats):
    noise = sp.PilotGaussian(sigma, failure, repeats)
    assert isinstance(noise, Noise)
    assert noise.support is None
    assert sp.parse_noise(noise.spec) == noise


def test_the_text_as_published():
    assert sp.PilotGaussian(17, 0.005, 20).spec == "pilot-gaussian:17.0:0.005:20"


@pytest.mark.parametrize("text", ["pilot-gaussian", "pilot-gaussian:1:0.1", "pilot-gaussian:1:0.1:2.5", "pilots"])
def test_texts_that_are_not_understood(text):
    with pytest.raises(sp.InvalidInput, match="not understood"):
        sp.parse_noise(text)


@pytest.mark.parametrize("text", ["pilot", " pilot:40", "pilot:"])
def test_a_pilot_needs_measurements(text):
    with pytest.raises(sp.InvalidInput, match=r"a pilot needs measurements.*pilot_noise.*surepick run --noise pilot"):
        sp.parse_noise(text)
    with pytest.raises(sp.InvalidInput, match="a pilot needs measurements"):
        sp.make_policy("action-elimination", ARMS, epsilon=0.1, delta=0.05, noise=text)


def test_only_a_pilot_may_fail():
    assert failure_probability(sp.PilotGaussian(17.3, 0.005, 20), 0.05) == 0.005
    declared = (sp.SubGaussian(1), sp.Bounded(0, 1), sp.Bernoulli())
    assert {failure_probability(noise, 0.05) for noise in declared} == {0.0}


def test_the_certificate_says_what_is_assumed():
    def said(freedom):
        return noise_assumption(sp.Problem(2, 0.1, 0.05, sp.PilotGaussian(17.3, 0.005, freedom)))

    assert said(20) == (
        "Every measurement is an independent draw, normally distributed around the mean of its candidate with the same "
        "standard deviation for all; from 20 degrees of freedom of a pilot it is at most 17.3, except with probability "
        "0.005, which is part of delta."
    )
    assert "from 1 degree of freedom" in said(1)


def options_of(name):
    more = {"norm_bound": 1.0} if any(word in name for word in ("linear", "kernel", "ling")) else {}
    more |= {"budget": 100} if "halving" in name else {}
    return more | ({"gamma": 1.0} if "kernel" in name else {})


@pytest.mark.parametrize("name", [name for name in sp.policy_names() if not name.startswith("certified-")])
def test_policies_that_would_not_pay_for_the_pilot_refuse_it(name):
    for noise in (sp.PilotGaussian(0.5, 0.005, 20), "pilot-gaussian:0.5:0.005:20"):
        with pytest.raises(sp.InvalidInput, match=f"taken from delta; {name} does not, only the certified"):
            sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise=noise, **options_of(name))
    sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(0.5), **options_of(name))


@pytest.mark.cases(3)
@pytest.mark.parametrize("name", [name for name in sp.policy_names() if name.startswith("certified-")])
def test_certified_policies_take_it_and_say_so(name):
    noise = sp.PilotGaussian(0.5, 0.005, 20)
    policy = sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise=noise, **options_of(name))
    assert sp.make_policy(arms=ARMS, **policy.spec).problem.noise == noise
    world = sp.environments.Environment(arms=ARMS, means=[0.1, 0.2, 0.3], noise=sp.SubGaussian(0.5))
    assert noise.assumption in sp.simulate(policy, world).certificate.assumptions
