"""What is assumed of the rewards, its scale, and its text."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import surepick as sp
from surepick.noise import Noise, failure_probability, known_scale, largest_scale, scales

positive = st.floats(1e-100, 1e100)
finite = st.floats(allow_nan=False, allow_infinity=False, width=32)


def test_the_scales():
    assert sp.SubGaussian(2).sigma == 2.0
    assert sp.SubGaussian([1, 2.5]).sigma == (1.0, 2.5)
    assert sp.Bounded(-1, 5).sigma == 3.0
    assert sp.Bernoulli().sigma == 0.5
    assert (sp.SubGaussian(1).support, sp.Bounded(-1, 5).support, sp.Bernoulli().support) == (None, (-1, 5), (0, 1))


@pytest.mark.parametrize("noise", [sp.Bounded(-1.0, 5.0), sp.Bounded(0.0, 1e-6)])
@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 0.9])
def test_a_bounded_reward_has_the_sub_gaussian_scale(noise, share):
    """E exp(s (X - mu)) <= exp(s^2 sigma^2 / 2) for the most spread law on [low, high], and for no smaller scale."""
    width = noise.high - noise.low
    steps = np.linspace(-20, 20, 401) / width
    mean = share * width
    moments = (1 - share) * np.exp(-steps * mean) + share * np.exp(steps * (width - mean))
    assert np.all(moments <= np.exp(steps**2 * noise.sigma**2 / 2) * (1 + 1e-12))
    if share == 0.5:
        assert np.any(moments > np.exp(steps**2 * (0.99 * noise.sigma) ** 2 / 2))


def test_one_number_serves_all_arms_and_one_per_arm_is_checked():
    assert scales(sp.Bernoulli(), 3).tolist() == [0.5, 0.5, 0.5]
    assert scales(sp.SubGaussian((1.0, 2.0)), 2).tolist() == [1.0, 2.0]
    assert largest_scale(sp.SubGaussian((1.0, 3.0, 2.0))) == 3.0
    with pytest.raises(sp.InvalidInput, match="2 scales for 3 arms"):
        scales(sp.SubGaussian((1.0, 2.0)), 3)


@given(
    st.one_of(
        st.just(sp.Bernoulli()),
        positive.map(sp.SubGaussian),
        st.lists(positive, min_size=2, max_size=4).map(lambda each: sp.SubGaussian(tuple(each))),
        st.tuples(finite, finite).filter(lambda ends: ends[0] < ends[1]).map(lambda ends: sp.Bounded(*ends)),
    )
)
def test_the_text_gives_an_equal_noise(noise):
    assert isinstance(noise, Noise)
    assert sp.parse_noise(noise.spec) == noise


def test_texts():
    assert sp.parse_noise(" bernoulli ") == sp.Bernoulli()
    assert sp.parse_noise("bounded:-1:2.5") == sp.Bounded(-1, 2.5)
    assert sp.parse_noise("subgaussian:1e-3") == sp.SubGaussian(0.001)
    assert sp.parse_noise("normal") == sp.Normal()
    assert sp.parse_noise(sp.Normal(0.1).spec) == sp.Normal(0.1)
    assert sp.parse_noise("subgaussian:1,2") == sp.SubGaussian((1, 2))
    assert sp.parse_noise(sp.SubGaussian((1,)).spec) == sp.SubGaussian((1,))


@pytest.mark.parametrize(
    "text",
    ["", "normal:x", "bernoulli:1", "bounded:1", "bounded:0:1:2", "subgaussian", "subgaussian:", "subgaussian:1,,",
     "subgaussian:x", "Bernoulli"],
)  # fmt: skip
def test_texts_that_are_not_understood(text):
    with pytest.raises(sp.InvalidInput, match="not understood"):
        sp.parse_noise(text)


@pytest.mark.parametrize("sigma", [0, -1, math.nan, math.inf, (), (1.0, 0.0), ((1.0,),), None])
def test_scales_without_meaning_are_refused(sigma):
    with pytest.raises(sp.InvalidInput, match="sub-Gaussian scale must be"):
        sp.SubGaussian(sigma)


@pytest.mark.parametrize("text", ["subgaussian:-1", "subgaussian:nan", "subgaussian:1,0"])
def test_texts_of_scales_without_meaning_say_why(text):
    with pytest.raises(sp.InvalidInput, match="sub-Gaussian scale must be"):
        sp.parse_noise(text)


@pytest.mark.parametrize("bounds", [(1, 1), (2, 1), (0, math.inf), (-math.inf, 0), (math.nan, 1)])
def test_bounds_without_meaning_are_refused(bounds):
    with pytest.raises(sp.InvalidInput, match="low must be below high"):
        sp.Bounded(*bounds)


def test_noise_of_unknown_scale_has_no_scale_to_give():
    assert not known_scale(sp.Normal())
    with pytest.raises(sp.InvalidInput, match="no standard deviation that is known beforehand"):
        largest_scale(sp.Normal())
    with pytest.raises(sp.InvalidInput, match="share is 1"):
        sp.parse_noise("normal:1")
    assert failure_probability(sp.Normal(), 0.05) == pytest.approx(0.001)


def test_what_rests_on_a_known_scale_refuses_one_that_nobody_knows():
    arms = sp.Arms([[0.0], [1.0], [2.0]])
    asked = {"epsilon": 0.1, "delta": 0.05, "noise": "normal"}
    for name in sp.policy_names():
        if name in {"certified-independent", "certified-linear", "certified-kernel"} | {
            "certified-neural",
            "neural-embedding",
        }:
            continue
        with pytest.raises(sp.InvalidInput, match="rests on a scale that is known beforehand"):
            sp.make_policy(name, arms, **asked, **({"budget": 10} if name == "sequential-halving" else {}))
    for name, option in (
        ("certified-kernel", {"norm_bound": 1.0, "gamma": 1.0}),
        ("certified-linear", {"norm_bound": 1.0}),
    ):
        with pytest.raises(sp.InvalidInput, match="known beforehand"):
            sp.make_policy(name, arms, **asked, **option, evidence="readings")
    assert sp.make_policy("certified-independent", arms, **asked).spec["noise"] == "normal:0.02"
