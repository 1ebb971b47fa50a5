"""Synthetic instances have the properties that their definitions claim."""

import math

import numpy as np
import pytest
from sampled_rewards import SEEDS, assert_mean
from together import of_each

from surepick import environments
from surepick.environments.recorded import row_rank
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import power_of_two_scaled
from surepick.noise import Bernoulli, SubGaussian

# two clusters


SHAPES = [(4, 2), (4, 4), (50, 5), (250, 20), (200, 200), (250, 200)]


@of_each("reward", ["linear", "norm"])
@of_each(("num_arms", "dim"), SHAPES)
def test_two_clusters_are_what_the_definition_says(num_arms, dim, reward):
    for seed in SEEDS:
        env = environments.two_clusters(num_arms=num_arms, dim=dim, reward=reward, seed=seed)
        x = env.arms.features
        first, second = x[0], x[1]
        assert x.shape == (num_arms, dim)
        assert np.all(x[:2] >= 0)
        if reward == "linear":
            np.testing.assert_allclose([first @ first, second @ second], [0.8, 0.5], rtol=1e-12)
            assert 0.395 < first @ second < 0.405
            np.testing.assert_allclose(env.means, x @ first, rtol=1e-12)
        else:
            np.testing.assert_allclose([first @ first, second @ second], [0.8**2, 0.4**2], rtol=1e-12)
            np.testing.assert_allclose(env.means**2, np.sum(x**2, axis=1), rtol=1e-12)
        half = num_arms // 2 - 1
        steps = x[2:] - np.repeat([first, second], half, axis=0)
        np.testing.assert_array_equal(np.count_nonzero(steps, axis=1), 1)
        assert np.max(np.abs(steps)) < 6e-5
        assert env.noise == Bernoulli()
        assert np.linalg.matrix_rank(power_of_two_scaled(x), tol=1e-12) == dim


def test_the_steps_have_the_size_of_the_perturbation():
    env = environments.two_clusters(num_arms=20_000, dim=10, perturbation=1e-3, seed=1)
    x = env.arms.features
    steps = np.abs(x[2:] - np.repeat(x[:2], 9_999, axis=0)).max(axis=1) / 1e-3
    assert_mean(steps**2, 1.0, 2.0)


@pytest.mark.parametrize("perturbation", [1e-3, 1e-12])
def test_tiny_steps_span_every_direction(perturbation):
    env = environments.two_clusters(num_arms=250, dim=20, perturbation=perturbation, seed=2)
    x = env.arms.features
    steps = x[2:] - np.repeat(x[:2], 124, axis=0)
    assert np.all(np.any(steps != 0, axis=0))  # 248 steps on 20 axes: each axis is used
    assert np.linalg.matrix_rank(steps / perturbation) == 20


def test_a_synthetic_instance_depends_on_its_arguments_and_seed_alone():
    first, again, other = (environments.two_clusters(num_arms=50, dim=5, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert first != other


@of_each(
    ("options", "words"),
    [
        ({"num_arms": 251}, "num_arms is 251.*even"),
        ({"num_arms": 2, "dim": 2}, "num_arms is 2.*at least 4"),
        ({"dim": 1}, "dim is 1.*2 or more"),
        ({"num_arms": 30, "dim": 31}, "num_arms is 30.*span 31 dimensions.*at least 32"),
        ({"perturbation": 0.0}, "perturbation is 0.0"),
        ({"perturbation": math.nan}, "perturbation is nan"),
        ({"perturbation": 1e-20}, "lost in the rounding"),
        ({"perturbation": 5.0}, r"outside \[0, 1\]"),
        ({"reward": "cubic"}, "reward is 'cubic'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_impossible_clusters_are_refused(options, words):
    with pytest.raises(InvalidInput, match=words):
        environments.two_clusters(**options)


# the other instances


@of_each(("dim", "epsilon"), [(1, 0.2), (2, 0.01), (10, 0.1), (50, 0.249)])
def test_the_high_dimensional_example_meets_the_papers_four_conditions(dim, epsilon):
    env = environments.high_dimensional(dim, epsilon, seed=3)
    x = dict(zip(env.arms.ids, env.arms.features, strict=True))
    first = x["x1"]
    assert env.num_arms == 2 * dim + 1
    assert first @ first == pytest.approx(1.0, rel=1e-12)  # (1)
    assert np.all(first < 0)  # (3)
    np.testing.assert_allclose(env.arms.features @ first, env.means, rtol=1e-12)
    eta = x["x1+e1"][0] - first[0]
    assert 8 * math.sqrt(2) * (2 + math.sqrt(5 * dim)) * dim * eta == pytest.approx(epsilon, rel=1e-6)  # (4)
    for axis in range(dim):
        unit = eta * np.eye(dim)[axis]
        np.testing.assert_allclose(x[f"x1+e{axis + 1}"] - unit, first, rtol=1e-12)
        second = x[f"x2+e{axis + 1}"] - unit
        assert second @ first == pytest.approx(1 - 2 * epsilon, rel=1e-9)  # (2)
    assert env.arms.ids[env.best] == "x1"
    for name, gap in zip(env.arms.ids, env.gaps, strict=True):
        assert gap <= epsilon if name.startswith("x1") else epsilon < gap < 3 * epsilon
    assert env.noise == SubGaussian(1.0)


def test_the_seed_shuffles_the_high_dimensional_arms_only():
    first, other = (environments.high_dimensional(20, 0.1, seed) for seed in (0, 1))
    assert first.arms.ids != other.arms.ids
    assert sorted(first.arms.ids) == sorted(other.arms.ids)
    assert first == environments.high_dimensional(20, 0.1, 0)


@of_each(("dim", "epsilon"), [(0, 0.1), (5, 0.25), (5, 0.0), (5, math.nan)])
def test_an_impossible_high_dimensional_example_is_refused(dim, epsilon):
    with pytest.raises(InvalidInput, match="0 < epsilon < 1/4"):
        environments.high_dimensional(dim, epsilon)


def test_the_sphere_is_uniform_and_linear():
    env = environments.sphere(20_000, 4, seed=5)
    x = env.arms.features
    np.testing.assert_allclose(np.sum(x**2, axis=1), 1.0)
    assert row_rank(np.column_stack([x, env.means])) == 4  # the means are linear in the features ...
    theta = np.linalg.lstsq(x, env.means)[0]
    assert theta @ theta == pytest.approx(1.0)  # ... with a unit theta
    for column in x.T:
        assert_mean(column, 0.0, 1 / 4)
        assert_mean(column**2, 1 / 4, 1 / 8 - 1 / 16)
    assert env.noise == SubGaussian(1.0)


def test_soare_has_unit_vectors_and_one_close_to_the_best():
    env = environments.soare(5, 0.1, seed=2)
    x = dict(zip(env.arms.ids, env.arms.features, strict=True))
    for axis in range(5):
        np.testing.assert_array_equal(x[f"e{axis + 1}"], np.eye(5)[axis])
    np.testing.assert_allclose(x["near-e1"], [math.cos(0.1), math.sin(0.1), 0, 0, 0])
    np.testing.assert_array_equal(env.means, env.arms.features[:, 0])
    assert env.arms.ids[env.best] == "e1"


CLASSICS = {
    "sphere": lambda **options: environments.sphere(6, 3, 4, **options),
    "soare": lambda **options: environments.soare(3, 0.1, 4, **options),
    "one_better": lambda **options: environments.one_better(6, 0.1, 4, **options),
    "some_better": lambda **options: environments.some_better(6, 2, 0.1, seed=4, **options),
}


@of_each("name", CLASSICS)
def test_sigma_is_the_noise_of_the_classics_and_nothing_else(name):
    usual, quiet = CLASSICS[name](), CLASSICS[name](sigma=0.5)
    assert usual.noise == SubGaussian(1.0)
    assert quiet.noise == SubGaussian(0.5)
    np.testing.assert_array_equal(quiet.law.scales, 0.5)
    assert quiet.arms == usual.arms
    np.testing.assert_array_equal(quiet.means, usual.means)
    with pytest.raises(InvalidInput, match="sigma is 0"):
        CLASSICS[name](sigma=0)


def test_in_the_slippage_configuration_all_others_are_worse_by_the_gap():
    env = environments.one_better(500, 0.1, 3, sigma=0.5)
    assert np.sort(env.gaps)[0] == 0.0
    np.testing.assert_allclose(np.sort(env.gaps)[1:], 0.1, rtol=1e-12)
    assert env.epsilon_best(0.1).all()
    assert env.epsilon_best(0.099).sum() == 1


def test_some_are_better_by_the_shift_and_the_control_is_none_of_them():
    env = environments.some_better(50, 20, 0.4, rest=-0.1, control=True, seed=3)
    assert (env.num_arms, env.arms.ids[-1], env.means[-1]) == (51, "control", 0.0)
    values, counts = np.unique(env.means[:-1], return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([-0.1, 0.4], [30, 20])
    assert env == environments.some_better(50, 20, 0.4, rest=-0.1, control=True, seed=3)
    assert env.means.tolist() != environments.some_better(50, 20, 0.4, rest=-0.1, control=True, seed=4).means.tolist()
    assert environments.some_better().num_arms == 100


def test_given_means_are_those_of_the_places():
    env = environments.given_means([0.5, 0.1, 0.3], seed=1)
    assert dict(zip(env.arms.ids, env.means, strict=True)) == {"1": 0.5, "2": 0.1, "3": 0.3}
    assert env.noise == Bernoulli()
    assert environments.given_means([-3.0, 2.0], sigma=2.0).noise == SubGaussian(2.0)
    assert len({environments.given_means([0.5, 0.1, 0.3], seed=seed).arms.ids for seed in range(20)}) > 1


def test_falling_means_fall_by_their_power_law():
    env = environments.falling_means(101, best=0.9, spread=0.4, power=2.0, seed=3)
    ranks = np.array([int(name) for name in env.arms.ids])
    np.testing.assert_allclose(env.means, 0.9 - 0.4 * ((ranks - 1) / 100) ** 2)
    assert sorted(ranks) == list(range(1, 102))
    assert env.arms.features.shape == (101, 0)
    assert env.noise == Bernoulli()
    assert env.arms.ids[env.best] == "1"


def test_the_seed_shuffles_falling_means_only():
    first, again, other = (environments.falling_means(20, seed=seed) for seed in (7, 7, 8))
    assert first == again
    assert first.arms.ids != other.arms.ids
    np.testing.assert_array_equal(np.sort(first.means), np.sort(other.means))
    assert (first.means.max(), first.means.min()) == (0.5, 0.0)


@of_each(
    ("make", "words"),
    [
        (lambda: environments.falling_means(1), "num_arms is 1"),
        (lambda: environments.some_better(1), "num_arms is 1"),
        (lambda: environments.some_better(better=0), "better is 0"),
        (lambda: environments.some_better(5, 5), "better is 5 of 5 arms"),
        (lambda: environments.some_better(shift=0.1, rest=0.1), "positive shift"),
        (lambda: environments.given_means([]), "number of means is 0"),
        (lambda: environments.given_means([0.5, 1.5]), r"outside \[0, 1\]"),
        (lambda: environments.given_means([0.5, math.nan], sigma=1.0), "not finite"),
        (lambda: environments.falling_means(spread=0.0), "spread is 0"),
        (lambda: environments.falling_means(power=-1.0), "power is -1"),
        (lambda: environments.falling_means(best=0.3), r"outside \[0, 1\]"),
        (lambda: environments.falling_means(best=math.nan), "not finite"),
        (lambda: environments.sphere(0, 3), "num_arms is 0"),
        (lambda: environments.sphere(3, 0), "dim is 0"),
        (lambda: environments.soare(1, 0.1), "dim is 1"),
        (lambda: environments.soare(3, 0.0), "angle 0.0"),
        (lambda: environments.soare(3, 2.0), "angle 2.0"),
    ],
)
def test_impossible_classics_are_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()
