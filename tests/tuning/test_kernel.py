"""The kernel that a pilot chooses: scores and norm against explicit inverses, scaling laws, doubts, and bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.embeddings import GaussianKernel
from surepick.tuning.kernel import CRITERIA, KernelChoice, choose_kernel


def gram(features, gamma):
    return GaussianKernel(gamma).gram(features, features)


def normal(value, mean, variance) -> float:
    return -0.5 * (math.log(2 * math.pi * variance) + (value - mean) ** 2 / variance)


def brute_score(matrix, noise, means, s2, criterion) -> float:
    """With explicit inverses; for cross-validation each mean is really left out."""
    whole = s2 * matrix + np.diag(noise)
    if criterion == "marginal-likelihood":
        sign, log_determinant = np.linalg.slogdet(whole)
        assert sign > 0
        return -0.5 * (means @ np.linalg.inv(whole) @ means + log_determinant + len(means) * math.log(2 * math.pi))
    total = 0.0
    for left in range(len(means)):
        rest = np.arange(len(means)) != left
        weights = np.linalg.inv(whole[np.ix_(rest, rest)]) @ whole[rest, left]
        total += normal(means[left], weights @ means[rest], whole[left, left] - weights @ whole[rest, left])
    return total


def brute_variance(matrix, noise, means, criterion) -> float:
    """The best signal variance, by search from several starts."""
    grid = np.linspace(-12.0, 8.0, 81)
    scores = [brute_score(matrix, noise, means, math.exp(log), criterion) for log in grid]
    best = grid[int(np.argmax(scores))]
    found = minimize_scalar(
        lambda log: -brute_score(matrix, noise, means, math.exp(log), criterion),
        bounds=(best - 0.5, best + 0.5),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return math.exp(found.x)


def pilot_of(means, counts) -> Observations:
    counts = np.asarray(counts)
    return Observations(counts, counts * np.asarray(means, np.float64))


def instance(seed: int, num_arms: int = 12):
    """A smooth function seen with a little noise, at uneven counts, on the first eight arms."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(-2, 2, size=(num_arms, 2))
    counts = np.where(np.arange(num_arms) < 8, rng.integers(1, 9, num_arms), 0)
    means = np.sin(features[:, 0]) + 0.5 * features[:, 1] + rng.normal(size=num_arms) * 0.05
    return features, pilot_of(means, counts)


@of_each("criterion", CRITERIA)
@of_each("seed", range(4))
def test_the_scores_are_those_of_explicit_inverses(seed, criterion):
    features, pilot = instance(seed)
    sigmas = np.random.default_rng(seed).uniform(0.1, 0.5, 12)
    gammas = [0.05, 0.3, 2.0]
    choice = choose_kernel(features, pilot, sp.SubGaussian(tuple(sigmas)), gammas=gammas, criterion=criterion)
    noise = (sigmas**2)[:8] / pilot.counts[:8]
    for gamma, score in zip(choice.gammas, choice.scores, strict=True):
        matrix = gram(features[:8], gamma)
        variance = brute_variance(matrix, noise, pilot.means[:8], criterion)
        best = max(brute_score(matrix, noise, pilot.means[:8], s2, criterion) for s2 in (1e-30, variance))
        assert score == pytest.approx(best, abs=2e-3)
    assert choice.gammas.tolist() == gammas
    assert choice.gamma == gammas[int(np.argmax(choice.scores))]


@of_each("seed", range(4))
def test_the_norm_is_the_expectation_given_the_pilot(seed):
    """E[h' G^-1 h] over all 12 arms, from the conditional mean and covariance of h, with explicit inverses."""
    features, pilot = instance(seed)
    noise = np.diag(0.2**2 / pilot.counts[:8])
    choice = choose_kernel(features, pilot, sp.SubGaussian(0.2), gammas=[2.0])
    whole = gram(features, 2.0)
    variance = brute_variance(whole[:8, :8], np.diag(noise), pilot.means[:8], "marginal-likelihood")
    gain = variance * whole[:, :8] @ np.linalg.inv(variance * whole[:8, :8] + noise)
    mean = gain @ pilot.means[:8]
    covariance = variance * whole - gain @ (variance * whole[:8])
    inverse = np.linalg.inv(whole)
    assert choice.norm_of_fit == pytest.approx(math.sqrt(mean @ inverse @ mean), rel=1e-2)
    expected = mean @ inverse @ mean + np.trace(inverse @ covariance)
    assert choice.norm_estimate == pytest.approx(math.sqrt(expected), rel=1e-2)


@of_each("criterion", CRITERIA)
@of_each("factor", [1e-3, 7.0, 1e4])
def test_rewards_in_another_unit(factor, criterion):
    features, pilot = instance(1)
    scaled = Observations(pilot.counts, factor * pilot.sums)
    plain = choose_kernel(features, pilot, sp.SubGaussian(0.2), criterion=criterion)
    other = choose_kernel(features, scaled, sp.SubGaussian(0.2 * factor), criterion=criterion)
    assert other.gamma == plain.gamma
    assert other.norm_estimate == pytest.approx(factor * plain.norm_estimate, rel=1e-6)
    assert other.scores == pytest.approx(plain.scores - 8 * math.log(factor), abs=1e-6)


@pytest.mark.parametrize("factor", [0.01, 30.0])
def test_features_in_another_unit(factor):
    features, pilot = instance(2)
    plain = choose_kernel(features, pilot, sp.SubGaussian(0.2))
    other = choose_kernel(factor * features, pilot, sp.SubGaussian(0.2))
    assert other.gamma == pytest.approx(plain.gamma / factor**2, rel=1e-9)
    assert other.norm_estimate == pytest.approx(plain.norm_estimate, rel=1e-6)


def test_the_order_of_the_arms_and_those_not_measured_do_not_matter_for_gamma():
    features, pilot = instance(3)
    plain = choose_kernel(features, pilot, sp.SubGaussian(0.2))
    order = np.random.default_rng(0).permutation(12)
    mixed = Observations(pilot.counts[order], pilot.sums[order])
    assert choose_kernel(features[order], mixed, sp.SubGaussian(0.2)).gamma == pytest.approx(plain.gamma)
    measured = Observations(pilot.counts[:8], pilot.sums[:8])
    alone = choose_kernel(features[:8], measured, sp.SubGaussian(0.2))
    assert alone.gamma == plain.gamma
    assert alone.norm_of_fit == plain.norm_of_fit
    assert alone.norm_estimate <= plain.norm_estimate  # nothing is unmeasured


@pytest.mark.cases(4)
@pytest.mark.parametrize("seed", range(8))
def test_the_gamma_of_the_process_that_drew_the_rewards_is_found(seed):
    """120 arms in the plane drawn with gamma 4; the likelihood knows it within a factor of 2.5 or so."""
    rng = np.random.default_rng(seed)
    features = rng.uniform(0, 2, size=(120, 2))
    values, vectors = np.linalg.eigh(gram(features, 4.0))
    means = vectors @ (np.sqrt(np.maximum(values, 0)) * rng.normal(size=120))
    pilot = pilot_of(means + 0.05 * rng.normal(size=120), np.full(120, 4))
    choice = choose_kernel(features, pilot, sp.SubGaussian(0.1))
    assert 4.0 / 2.5 < choice.gamma < 4.0 * 2.5
    assert choice.plausible[0] <= choice.gamma <= choice.plausible[1]
    assert not choice.silent
    assert choice.norm_of_fit < choice.norm_estimate


def test_the_grid_covers_six_decades_and_is_refined_around_the_best():
    features, pilot = instance(1)
    choice = choose_kernel(features, pilot, sp.SubGaussian(0.2))
    assert choice.gammas[-1] / choice.gammas[0] == pytest.approx(1e6)
    assert np.all(np.diff(choice.gammas) > 0)
    steps = np.diff(np.log10(choice.gammas))
    best = int(np.argmax(choice.scores))
    assert steps.max() == pytest.approx(0.25)
    assert steps[best - 1 : best + 1] == pytest.approx([1 / 16, 1 / 16])


def test_two_tight_clusters_are_not_taken_for_one():
    """Most distances are the width of a cluster; the grid is scaled by the mean, so that it sees the other ones."""
    rng = np.random.default_rng(0)
    features = np.repeat([[0.0, 0.0], [1.0, 0.0]], [9, 21], axis=0) + 1e-6 * rng.normal(size=(30, 2))
    means = np.repeat([0.2, 0.9], [9, 21])
    choice = choose_kernel(features, pilot_of(means, np.full(30, 50)), sp.SubGaussian(0.5))
    assert choice.gammas[0] < 1.0 < choice.gammas[-1]
    assert choice.gamma < 1e4


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_pilot_without_signal_says_nothing(criterion):
    features, pilot = instance(0)
    nothing = Observations(pilot.counts, np.zeros(12))
    choice = choose_kernel(features, nothing, sp.SubGaussian(1.0), criterion=criterion)
    assert choice.silent
    assert choice.norm_estimate == 0.0
    assert "says nothing about gamma" in choice.sentence
    assert any("no estimate of the norm" in warning for warning in choice.warnings)
    assert any("the choice is arbitrary" in warning for warning in choice.warnings)


def test_the_edges_of_the_grid_are_reported():
    features = np.linspace(0, 1, 40)[:, None]
    constant = choose_kernel(features, pilot_of(np.full(40, 5.0), np.full(40, 5)), sp.SubGaussian(0.5))
    assert constant.gamma == constant.gammas[0]
    assert "is the smallest tried" in constant.warnings[0]
    saw = (-1.0) ** np.arange(40)
    rough = choose_kernel(features, pilot_of(saw, np.full(40, 500)), sp.SubGaussian(0.5), gammas=[0.1, 1.0, 10.0])
    assert rough.gamma == 10.0
    assert "is the largest tried" in rough.warnings[0]
    one = choose_kernel(features, pilot_of(saw, np.full(40, 500)), sp.SubGaussian(0.5), gammas=[10.0])
    assert not one.silent
    assert not any("tried" in warning for warning in one.warnings)


def test_the_norm_is_called_an_estimate():
    features, pilot = instance(1)
    choice = choose_kernel(features, pilot, sp.SubGaussian(0.2))
    assert isinstance(choice, KernelChoice)
    assert "The norm is an estimate, not a bound" in choice.sentence
    assert "heuristic unless you can vouch for it" in choice.sentence


def test_equal_features_are_no_obstacle():
    features, pilot = instance(1)
    doubled = np.concatenate([features, features])
    twice = Observations(np.tile(pilot.counts, 2), np.tile(pilot.sums, 2))
    choice = choose_kernel(doubled, twice, sp.SubGaussian(0.2))
    assert math.isfinite(choice.norm_estimate)
    single = choose_kernel(features, Observations(2 * pilot.counts, 2 * pilot.sums), sp.SubGaussian(0.2))
    assert choice.gamma == pytest.approx(single.gamma, rel=0.5)
    assert choice.norm_of_fit == pytest.approx(single.norm_of_fit, rel=0.1)


@of_each("size", [1e-100, 1e100])
@of_each("unit", [1e-99, 1e100])  # of which a fifth is the scale of the noise
def test_other_units_within_what_squares_can_hold_change_only_the_units(size, unit):
    features, pilot = instance(0)
    usual = choose_kernel(features, pilot, sp.SubGaussian(0.2))
    other = choose_kernel(size * features, Observations(pilot.counts, unit * pilot.sums), sp.SubGaussian(0.2 * unit))
    assert other.gamma * size**2 == pytest.approx(usual.gamma, rel=1e-6)
    assert other.norm_estimate / unit == pytest.approx(usual.norm_estimate, rel=1e-6)


@pytest.mark.cases(73)  # every fifth
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("noise", [1e-300, 1e-145, 1e-100, 1e100, 1e145, 1e300])
@pytest.mark.parametrize("size", [1.0, 1e-100, 1e-145, 1e-200, 1e145, 1e200])
@pytest.mark.parametrize("reward", [1.0, 1e-200, 1e100, 1e150, 1e200])
def test_of_any_size_the_answer_is_finite_or_refused(criterion, noise, size, reward):
    features, pilot = instance(0)
    scaled = Observations(pilot.counts, reward * pilot.sums)
    try:
        choice = choose_kernel(size * features, scaled, sp.SubGaussian(noise), criterion=criterion)
    except sp.InvalidInput:
        return
    numbers = [choice.gamma, choice.norm_estimate, *choice.gammas, *choice.scores, *choice.norms_of_fit]
    assert np.all(np.isfinite(numbers))


@of_each(
    ("changes", "message"),
    [
        ({"criterion": "taste"}, "criterion is 'taste'; choose one of 'marginal-likelihood', 'cross-validation'"),
        ({"gammas": [1.0, 0.0]}, "gamma is 0.0; it must be positive"),
        ({"gammas": [math.nan]}, "gamma is nan"),
        ({"gammas": []}, "gammas is empty"),
        ({"noise": sp.SubGaussian((1.0, 2.0))}, "2 scales for 12 arms"),
        ({"features": np.zeros((12, 0))}, "no feature column"),
        ({"features": np.zeros((11, 2))}, "results for 12 arms and there are features of 11"),
        ({"features": np.zeros((12, 2))}, "the pilot measured 1 candidates that differ in features"),
        ({"pilot": Observations.nothing(12)}, "the pilot measured 0 candidates"),
        ({"pilot": pilot_of([np.nan] * 12, [1] * 12)}, "a sum of rewards of the pilot is not finite"),
        ({"pilot": pilot_of(np.linspace(0.0, 1e200, 12), [1] * 12)}, "mean rewards of up to 1e.200 beside noise"),
        ({"features": 1e200 * np.eye(12)}, "differ by up to 1e.200 in a feature"),
        ({"features": 1e-200 * np.eye(12)}, "differ by up to 1e-200 in a feature"),
        ({"features": 1.7e308 * np.linspace(-1.0, 1.0, 12)[:, None]}, "differ by up to inf in a feature"),
    ],
)
def test_bad_input_is_named(changes, message):
    features, pilot = instance(0)
    given = {"features": features, "pilot": pilot, "noise": sp.SubGaussian(0.2)} | changes
    with pytest.raises(sp.InvalidInput, match=message):
        choose_kernel(given.pop("features"), given.pop("pilot"), given.pop("noise"), **given)
