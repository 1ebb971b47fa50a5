"""One batch of evidence: its expectation under the hypothesis is at most 1, by enumeration of every outcome."""

import itertools
import math

import numpy as np
from budgets import budget
from evidence_cases import EPSILON, past
from hypothesis import given, settings, strategies as st
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, IndependentArms
from surepick.estimators import batch_evidence, noise_mgf_after, with_squares
from surepick.estimators.contrast_weights import ContrastWeights


def expectation(
    embedded, counts, means, *, rival, centre, margins, told, norm_bound, noise=None, sign=1.0, squared=True
) -> float:
    """E exp(gain of the rival) over all 0/1 outcomes of the batch, told with their sign or negated."""
    noise = sp.Bernoulli() if noise is None else noise
    noise_mgf = noise_mgf_after(noise, told)
    total = 0.0
    for sums in itertools.product(*(range(count + 1) for count in counts)):
        chance = math.prod(
            math.comb(int(n), s) * h**s * (1 - h) ** (n - s) for n, s, h in zip(counts, sums, means, strict=True)
        )
        ones = np.array(sums, float)
        seen = with_squares(noise, Observations(counts, sign * ones, ones if squared else None))
        found = batch_evidence(
            embedded,
            seen,
            centre=centre,
            epsilon=EPSILON,
            margins=margins,
            noise_mgf=noise_mgf,
            noise_scales=noise_mgf.noise_scales(EPSILON),
            norm_bound=norm_bound,
        )
        total += chance * math.exp(found.gains[rival])
    return total


@settings(max_examples=budget(60))
@given(st.integers(0, 10**6))
def test_evidence_against_a_true_hypothesis_has_expectation_at_most_one(seed):
    rng = np.random.default_rng(seed)
    num_arms = int(rng.integers(2, 5))
    means = rng.uniform(size=num_arms)
    centre = int(np.argmin(means))
    rival = int(np.argmax(means))
    if means[rival] - means[centre] <= EPSILON:
        return
    counts = rng.integers(0, 4, num_arms)
    margins = np.exp(rng.normal(-1.0, 1.0, num_arms))
    arms = IndependentArms(num_arms)
    mean = expectation(
        arms, counts, means, rival=rival, centre=centre, margins=margins, told=past(rng, num_arms), norm_bound=None
    )
    assert mean <= 1.0 + 1e-9


@settings(max_examples=budget(60))
@given(st.integers(0, 10**6))
def test_the_same_with_features_misspecification_and_directions_that_the_batch_cannot_see(seed):
    rng = np.random.default_rng(seed)
    num_arms, dim = int(rng.integers(3, 5)), int(rng.integers(1, 4))
    features = rng.normal(size=(num_arms, dim))
    theta = rng.normal(size=dim)
    theta *= rng.uniform() / np.linalg.norm(theta)
    gamma = float(rng.choice([0.0, 0.05]))
    means = 0.5 + 0.2 * (features @ theta) + gamma * rng.choice([-1.0, 1.0], num_arms)
    if means.min() < 0.0 or means.max() > 1.0 or np.ptp(means) <= EPSILON:
        return
    counts = rng.integers(0, 4, num_arms)
    whole = np.column_stack([features, np.ones(num_arms)])  # the constant is a feature, of coefficient 1/2
    mean = expectation(
        Embedding(whole, gamma),
        counts,
        means,
        rival=int(np.argmax(means)),
        centre=int(np.argmin(means)),
        margins=np.exp(rng.normal(-1.0, 1.0, num_arms)),
        told=past(rng, num_arms),
        norm_bound=math.hypot(0.5, 0.2 * float(np.linalg.norm(theta))) * (1.0 + 1e-9),
    )
    assert mean <= 1.0 + 1e-9


@settings(max_examples=budget(60))
@given(st.integers(0, 10**6), st.booleans(), st.booleans(), st.sampled_from([sp.Bernoulli(), sp.Bounded(0.0, 1.0)]))
def test_the_same_when_small_rewards_are_good(seed, squared, squares_before, noise):
    """A study that minimises negates what it is told; the declared range keeps the user's sign."""
    rng = np.random.default_rng(seed)
    means = rng.uniform(size=2)
    centre, rival = int(np.argmax(means)), int(np.argmin(means))
    if means[centre] - means[rival] <= EPSILON:
        return
    before = rng.integers(0, 60, 2)
    ones = rng.binomial(before, means).astype(float)
    told = Observations(before, -ones, ones if squares_before else None)
    mean = expectation(
        IndependentArms(2),
        rng.integers(0, 12, 2),
        means,
        rival=rival,
        centre=centre,
        margins=np.exp(rng.normal(-1.0, 1.0, 2)),
        told=told,
        norm_bound=None,
        noise=noise,
        sign=-1.0,
        squared=squared,
    )
    assert mean <= 1.0 + 1e-9


def test_without_the_bias_the_expectation_exceeds_one(monkeypatch):
    """The saboteur: two pulled arms whose misspecification hides the lead of a third."""
    monkeypatch.setattr(ContrastWeights, "bias", lambda contrast, rows, weights: np.zeros(len(rows)))
    features = np.array([[1.0], [0.0], [0.5]])
    means = np.array([0.2, 0.2, 0.35])  # linear in the first two; the third is gamma = .15 above
    told = Observations(np.full(3, 20), np.array([4.0, 4.0, 7.0]), np.array([4.0, 4.0, 7.0]))
    margins = np.array([0.5, 0.5, 0.5])
    mean = expectation(
        Embedding(features, 0.15),
        np.array([6, 6, 0]),
        means,
        rival=2,
        centre=0,
        margins=margins,
        told=told,
        norm_bound=1.0,
    )
    assert mean > 1.0


@of_each("mean", [0.01, 0.2, 0.5, 0.9])
@of_each("tilt", [0.05, 0.3, 0.7, 2.0])
@of_each("variance", [1e-4, 0.1, 0.25])
def test_an_allowance_covers_the_growth_of_a_tilted_reward(mean, tilt, variance):
    """Both signs of the tilt, by both outcomes of a 0/1 reward; the guessed variance only chooses the bound."""
    from surepick.estimators import NoiseMgf

    noise_mgf = NoiseMgf(np.array([0.5]), 1.0, np.array([0.3]), np.array([True]), np.array([variance]))
    for sign in (-1.0, 1.0):
        total = 0.0
        for reward, chance in ((0.0, 1.0 - mean), (1.0, mean)):
            seen = Observations(np.array([1]), np.array([reward]), np.array([reward]))
            cost = float(noise_mgf.total(np.array([tilt]), np.array([0]), seen)[0])
            total += chance * math.exp(sign * tilt * (reward - mean) - cost)
        assert total <= 1.0 + 1e-9


def test_rewards_that_hardly_vary_cost_little():
    told = Observations(np.array([50]), np.array([25.0]), np.array([12.5]))
    noise_mgf = noise_mgf_after(sp.Bounded(0.0, 1.0), told)
    assert noise_mgf.noise_scales(0.01)[0] < 0.15
    batch = Observations(np.array([100]), np.array([50.0]), np.array([25.0]))
    tilts, arms = np.array([0.2]), np.array([0])
    assert noise_mgf.total(tilts, arms, batch)[0] < 1e-3 < 100 * 0.5 * 0.2**2 * 0.25


def test_unknown_squares_are_taken_for_the_largest_possible():
    noise = sp.Bounded(-1.0, 3.0)
    rewards = np.array([-1.0, 0.5, 2.0, 3.0])
    without = Observations(np.array([4]), np.array([rewards.sum()]))
    assert with_squares(noise, without).squares[0] >= np.sum(rewards**2)
    assert with_squares(noise, Observations(np.array([4]), -without.sums)).squares[0] >= np.sum(rewards**2)
    told = Observations(np.array([4]), np.array([rewards.sum()]), np.array([np.sum(rewards**2)]))
    assert with_squares(noise, told) == told
    assert with_squares(sp.SubGaussian(1.0), without) == without


def test_squares_that_lost_digits_are_not_taken_for_a_small_scatter():
    """The border lets squares fall short by a millionth; far from 0 that is more than all the scatter there is."""
    from surepick.estimators.noise_mgf import scatter_around

    rewards = 2000.0 + np.array([0.0, 1.0] * 20)
    sums, squares = np.array([rewards.sum()]), np.array([np.sum(rewards**2) * (1.0 - 1e-6)])
    scatter = scatter_around(Observations(np.array([40]), sums, squares), np.array([2000.5]), 1.0)
    assert 10.0 <= scatter[0] <= 40.0


def test_linearly_independent_arms_need_no_features():
    """The same batch by least squares on a basis and by means: equal evidence but for the rounding allowances."""
    rng = np.random.default_rng(0)
    basis = rng.normal(size=(4, 4))
    counts, sums = np.array([3, 5, 2, 7]), rng.normal(size=4)
    noise = sp.SubGaussian((0.5, 1.0, 2.0, 0.7))
    noise_mgf = noise_mgf_after(noise, Observations.nothing(4))
    shared = {
        "centre": 1,
        "epsilon": EPSILON,
        "margins": np.array([0.2, 0.1, 0.5, 0.3]),
        "noise_mgf": noise_mgf,
        "noise_scales": noise_mgf.noise_scales(EPSILON),
    }
    seen = Observations(counts, sums, sums**2)
    plain = batch_evidence(IndependentArms(4), seen, norm_bound=None, **shared)
    by_features = batch_evidence(Embedding(basis, 0.0), seen, norm_bound=1.0, **shared)
    assert np.allclose(plain.gains, by_features.gains, rtol=1e-6)
    assert np.allclose(plain.bets, by_features.bets, rtol=1e-6)
    assert np.allclose(plain.drawn, by_features.drawn, rtol=1e-6)


def test_arms_that_a_batch_cannot_compare_gain_nothing():
    features = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    seen = Observations(np.array([50, 0, 0]), np.array([50.0, 0.0, 0.0]), None)
    noise_mgf = noise_mgf_after(sp.SubGaussian(1.0), Observations.nothing(3))
    found = batch_evidence(
        Embedding(features, 0.0),
        seen,
        centre=0,
        epsilon=EPSILON,
        margins=np.full(3, 0.3),
        noise_mgf=noise_mgf,
        noise_scales=noise_mgf.noise_scales(EPSILON),
        norm_bound=5.0,
    )
    assert np.array_equal(found.gains, np.zeros(3))
