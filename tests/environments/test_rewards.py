"""Pulls follow the law that an environment claims."""

import math

import numpy as np
import pytest
from sampled_rewards import SEEDS, assert_mean, environment
from together import of_each

from surepick.environments.rewards import NormalRewards, RecordedRewards, TwoPointRewards
from surepick.noise import Bernoulli, Bounded, SubGaussian

SAMPLES = 40_000


def many_pulls(noise, mean, pulls, seed):
    """SAMPLES independent draws of (sum, squares) of `pulls` rewards: as many equal arms, pulled once together."""
    env = environment(np.full(SAMPLES, mean), noise)
    seen = env.pull(np.full(SAMPLES, pulls), np.random.default_rng(seed))
    np.testing.assert_array_equal(seen.counts, pulls)
    return seen.sums, seen.squares


@pytest.mark.cases(6)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pulls", [1, 2, 7, 10**9])
def test_normal_rewards_have_the_joint_law_of_sum_and_squares(pulls, seed):
    mu, sigma = 1.5, 2.0
    sums, squares = many_pulls(SubGaussian(sigma), mu, pulls, seed)
    assert np.all(squares >= sums**2 / pulls)
    standard = (sums - pulls * mu) / (sigma * math.sqrt(pulls))
    assert_mean(standard, 0.0, 1.0)
    assert_mean(standard**2, 1.0, 2.0)
    assert_mean(standard**4, 3.0, 96.0)
    if pulls == 1:
        np.testing.assert_array_equal(squares, sums**2)
    elif pulls < 100:
        chi_squared = (squares - sums**2 / pulls) / sigma**2
        freedom = pulls - 1
        assert_mean(chi_squared, freedom, 2 * freedom)
        fourth = 12 * freedom**2 + 48 * freedom - 4 * freedom**2  # variance of (W - freedom)^2
        assert_mean((chi_squared - freedom) ** 2, 2 * freedom, fourth)
        assert_mean(standard * (chi_squared - freedom), 0.0, 2 * freedom)


def test_each_arm_has_its_own_scale():
    scales = np.repeat([0.1, 3.0], SAMPLES)
    env = environment(np.zeros(2 * SAMPLES), SubGaussian(tuple(scales)))
    seen = env.pull(np.full(2 * SAMPLES, 4), np.random.default_rng(1))
    for part, scale in ((slice(0, SAMPLES), 0.1), (slice(SAMPLES, None), 3.0)):
        assert_mean((seen.sums[part] / (2 * scale)) ** 2, 1.0, 2.0)
        assert_mean((seen.squares[part] - seen.sums[part] ** 2 / 4) / scale**2, 3.0, 6.0)


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("noise", "low", "high", "mean"), [(Bernoulli(), 0, 1, 0.3), (Bounded(-3, 5), -3, 5, 4.0)])
def test_bounded_rewards_are_low_or_high(noise, low, high, mean, seed):
    pulls, chance = 9, (mean - low) / (high - low)
    sums, squares = many_pulls(noise, mean, pulls, seed)
    highs = (sums - pulls * low) / (high - low)
    np.testing.assert_array_equal(highs, np.round(highs))
    np.testing.assert_allclose(squares, low**2 * (pulls - highs) + high**2 * highs)
    variance = pulls * chance * (1 - chance)
    assert_mean(highs, pulls * chance, variance)
    assert_mean((highs - pulls * chance) ** 2, variance, 3 * variance**2)


def test_means_at_the_ends_of_the_range_have_no_noise():
    seen = environment((0.0, 1.0)).pull([50, 60], np.random.default_rng(0))
    np.testing.assert_array_equal(seen.sums, [0, 60])


def test_billions_of_pulls_are_drawn_at_once():
    seen = environment().pull([10**12, 10**12, 0], np.random.default_rng(0))
    np.testing.assert_allclose(seen.means[:2], [0.2, 0.9], atol=5e-6)
    assert seen.sums[2] == seen.squares[2] == 0


@pytest.mark.parametrize("noise", [Bernoulli(), SubGaussian(1.0)])
def test_a_pull_depends_on_the_generator_alone(noise):
    env = environment(noise=noise)
    first, again, other = (env.pull([5, 0, 900], np.random.default_rng(seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


RECORDED = np.array([1.0, 2.0, 6.0])


@of_each("seed", SEEDS)
@of_each("pulls", [1, 2, 3, 20])  # below, at and above the number of recorded rewards
def test_recorded_rewards_are_drawn_with_replacement(pulls, seed):
    law = RecordedRewards(np.tile(RECORDED, SAMPLES), np.repeat(np.arange(SAMPLES), 3))
    seen = law.draw(np.full(SAMPLES, pulls), np.random.default_rng(seed))
    mean, variance = RECORDED.mean(), RECORDED.var()
    central = np.mean((RECORDED - mean) ** 4)
    assert_mean(seen.sums, pulls * mean, pulls * variance)
    of_square = pulls * central + pulls * (3 * pulls - 3) * variance**2 - (pulls * variance) ** 2
    assert_mean((seen.sums - pulls * mean) ** 2, pulls * variance, of_square)
    assert_mean(seen.squares, pulls * np.mean(RECORDED**2), pulls * np.var(RECORDED**2))
    assert np.all(seen.squares * pulls - seen.sums**2 >= -1e-9)
    if pulls == 1:
        np.testing.assert_array_equal(seen.squares, seen.sums**2)
        shares = [np.mean(seen.sums == reward) for reward in RECORDED]
        np.testing.assert_allclose(shares, 1 / 3, atol=5.5 * math.sqrt(2 / 9 / SAMPLES))


def test_recorded_rewards_stay_with_their_arm_whatever_the_order_of_rows():
    law = RecordedRewards(np.array([10.0, 1.0, 10.0, 5.0]), np.array([2, 0, 2, 1]))
    np.testing.assert_array_equal(law.means, [1, 5, 10])
    np.testing.assert_array_equal(law.repeats, [1, 1, 2])
    seen = law.draw(np.array([3, 0, 7]), np.random.default_rng(0))
    np.testing.assert_array_equal(seen.sums, [3, 0, 70])
    np.testing.assert_array_equal(seen.squares, [3, 0, 700])


def test_the_laws_are_chosen_by_the_noise():
    assert isinstance(environment().law, TwoPointRewards)
    assert isinstance(environment(noise=SubGaussian(1.0)).law, NormalRewards)
