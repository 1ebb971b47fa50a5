"""Environments: pulls follow the law that they claim, instances are what their formulas say, bad input is named."""

import builtins
import gzip
import math
import subprocess
import sys

import numpy as np
import pytest

from surepick import environments
from surepick.bench import datasets
from surepick.core.arms import Arms
from surepick.environments.digits import REWARDS, row_rank
from surepick.environments.rewards import NormalRewards, RecordedRewards, TwoPointRewards
from surepick.errors import DatasetMissing, InvalidInput
from surepick.linalg.factorisations import power_of_two_scaled
from surepick.noise import Bernoulli, Bounded, SubGaussian

SAMPLES = 40_000
SEEDS = range(3)


def environment(means=(0.2, 0.9, 0.8), noise=Bernoulli(), **options):  # noqa: B008 (frozen)
    return environments.Environment(
        arms=Arms(None, [f"a{k}" for k in range(len(means))]), means=means, noise=noise, **options
    )


def many_pulls(noise, mean, pulls, seed):
    """SAMPLES independent draws of (sum, squares) of `pulls` rewards: as many equal arms, pulled once together."""
    env = environment(np.full(SAMPLES, mean), noise)
    seen = env.pull(np.full(SAMPLES, pulls), np.random.default_rng(seed))
    np.testing.assert_array_equal(seen.counts, pulls)
    return seen.sums, seen.squares


def assert_mean(values, expected, variance):
    """The sample mean is within 5.5 standard errors (false alarm 4e-8) of what is expected."""
    error = math.sqrt(variance / len(values))
    assert abs(np.mean(values) - expected) <= 5.5 * error + 1e-12 * abs(expected)


# the record


def test_importing_the_environments_loads_neither_sklearn_nor_pyarrow():
    code = "import sys, surepick.environments; print([m for m in ('sklearn', 'pyarrow', 'torch') if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "[]"


def test_the_best_arm_and_the_gaps():
    env = environment()
    assert (env.num_arms, env.best) == (3, 1)
    np.testing.assert_allclose(env.gaps, [0.7, 0, 0.1])


def test_minimizing_turns_the_gaps_but_not_the_rewards():
    env = environment(minimize=True)
    assert env.best == 0
    np.testing.assert_allclose(env.gaps, [0, 0.7, 0.6])
    seen = env.pull([1000, 1000, 1000], np.random.default_rng(0))
    assert np.all(seen.sums > 0)


def test_of_equal_arms_the_first_is_best():
    assert environment((0.1, 0.5, 0.5)).best == 1


def test_an_arm_exactly_epsilon_away_is_epsilon_best():
    env = environment((0.8, 0.7, 0.69))  # .8 - .7 is .10000000000000009
    assert env.gaps[1] > 0.1
    assert [env.is_epsilon_best(arm, 0.1) for arm in range(3)] == [True, True, False]
    assert not env.is_epsilon_best(1, 0.1, rounding=0.0)


def test_the_means_are_a_read_only_copy():
    means = np.array([0.2, 0.4])
    env = environment(means)
    means[0] = 0.9
    assert env.means[0] == 0.2
    with pytest.raises(ValueError, match="read-only"):
        env.means[0] = 0.9


def test_the_constructor_is_keyword_only():
    with pytest.raises(TypeError):
        environments.Environment(Arms([[1.0]]), [0.5], Bernoulli())


@pytest.mark.parametrize(
    ("means", "noise", "words"),
    [
        ([[0.1]], Bernoulli(), r"means have shape \(1, 1\) for 1 arms"),
        (["x"], Bernoulli(), "not an array of numbers"),
        ([0.1, np.nan], Bernoulli(), "1 of 2 means are not finite .*'a1'"),
        ([0.1, 1.5], Bernoulli(), r"1 of 2 mean rewards lie outside \[0, 1\].*'bernoulli'.*1.5, arm 1"),
        ([-3.0, 1.5], Bounded(-2, 2), r"outside \[-2, 2\].*-3, arm 0"),
        ([0.1, 1.5], SubGaussian([1.0, 2.0, 3.0]), "3 scales for 2 arms"),
    ],
)
def test_an_impossible_truth_is_refused(means, noise, words):
    with pytest.raises(InvalidInput, match=words):
        environment(means, noise)


@pytest.mark.parametrize("counts", [[1, 2], [1, 2, -1], [1.0, 2.0, 3.0], [[1, 2, 3]]])
def test_counts_that_are_not_whole_numbers_per_arm_are_refused(counts):
    with pytest.raises(InvalidInput, match="one non-negative integer per arm"):
        environment().pull(counts, np.random.default_rng(0))


# the laws of the rewards


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


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pulls", [1, 2, 3, 20])  # below, at and above the number of recorded rewards
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


# recorded measurements


@pytest.fixture
def repeats(tmp_path):
    path = tmp_path / "repeats.csv"
    path.write_text("sku,x,y\nb,2,0\na,1,1\nb,2,1\nb,2,0.5\n")
    return path


def test_a_table_gives_arms_with_their_average(repeats):
    env = environments.table(repeats, "sku", "y", noise=Bounded(0, 1))
    assert env.arms.ids == ("b", "a")
    assert env.arms.columns == ("x",)  # the rewards are no feature
    np.testing.assert_array_equal(env.means, [0.5, 1.0])
    assert not env.minimize
    seen = env.pull([1, 4], np.random.default_rng(0))
    assert seen.sums[0] in (0.0, 0.5, 1.0)
    assert seen.sums[1] == 4.0


def test_the_rewards_are_a_feature_only_when_named(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("sku,x,y\na,1,1\nb,2,0\n")
    assert environments.table(path, "sku", "y", "x,y", noise=Bernoulli()).arms.columns == ("x", "y")


def test_preparation_and_direction_are_passed_on(repeats):
    env = environments.table(repeats, "sku", "y", noise=Bounded(0, 1), minimize=True, standardize=True, intercept=True)
    assert env.arms.preparation == ("standardize", "intercept")
    np.testing.assert_array_equal(env.arms.features, [[1, 1], [-1, 1]])
    assert (env.minimize, env.best) == (True, 0)


@pytest.mark.parametrize(
    ("rows", "noise", "words"),
    [
        ("a,1,low\nb,2,.5\n", SubGaussian(1.0), r"'y' is not numeric: 1 of 2 cells .*row 2: 'low'"),
        ("a,1,1\nb,2,nan\n", SubGaussian(1.0), r"1 of 2 rows miss a cell \(row 3: 'y' is 'nan'\)"),
        ("a,1,1\nb,2,inf\n", SubGaussian(1.0), r"1 rewards in column 'y' are not finite \(rows 3\)"),
        ("a,1,1\nb,2,7\n", Bounded(0, 5), r"row 3: the reward 7 lies outside \[0, 5\].*'bounded:0.0:5.0'"),
        ("a,1,1\nb,2,.5\n", Bernoulli(), "row 3: the reward 0.5 is neither 0 nor 1"),
        ("a,1,1\na,2,1\n", Bernoulli(), "rows of id 'a' differ in the feature 'x'"),
    ],
)
def test_rewards_that_cannot_be_are_refused(tmp_path, rows, noise, words):
    path = tmp_path / "arms.csv"
    path.write_text("sku,x,y\n" + rows)
    with pytest.raises(InvalidInput, match=words):
        environments.table(path, "sku", "y", noise=noise)


def test_a_table_needs_as_many_scales_as_arms(repeats):
    with pytest.raises(InvalidInput, match="3 scales for 2 arms"):
        environments.table(repeats, "sku", "y", noise=SubGaussian([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("columns", [{"id": "sku"}, {"id": "sku", "reward": "z"}, {"id": "SKU", "reward": "y"}])
def test_a_column_that_is_not_there_is_answered_with_the_known(repeats, columns):
    with pytest.raises(InvalidInput, match="'sku', 'x', 'y'"):
        environments.table(repeats, **columns, noise=Bounded(0, 1))


@pytest.mark.parametrize(
    ("name", "columns", "reward", "arms", "repeats", "first"),
    [
        ("Crossed_barrel", "n,theta,r,t", "toughness", 600, (3, 3), "6/0/1.5/0.7"),
        ("Perovskite", "CsPbI,FAPbI,MAPbI", "Instability index", 94, (1, 7), "0/1/0"),
        (
            "AgNP",
            "QAgNO3(%),Qpva(%),Qtsc(%),Qseed(%),Qtot(uL/min)",
            "loss",
            164,
            (4, 48),
            "13.10132159/32.99559471/5.603524229/4.528634361/227",
        ),
    ],
)
def test_the_laboratory_data_sets_are_tables_of_repeats(shared_data, name, columns, reward, arms, repeats, first):
    path = shared_data / "pvlab" / f"{name}_dataset.csv"
    env = environments.table(path, columns, reward, noise=SubGaussian(19.0))
    assert env.num_arms == arms
    assert env.arms.ids[0] == first
    assert env.arms.columns == tuple(columns.split(","))
    assert (env.law.repeats.min(), env.law.repeats.max()) == repeats
    seen = env.pull(np.full(arms, 50_000), np.random.default_rng(0))
    spread = max(np.ptp(env.law.rewards[env.law.arm_of_row == arm]) for arm in range(arms))
    np.testing.assert_allclose(seen.means, env.means, atol=6 * spread / 2 / math.sqrt(50_000))


@pytest.mark.parametrize(("name", "minimize"), [("photo_wf3", True), ("suzuki", False)])
def test_an_olympus_folder_knows_its_direction(shared_data, name, minimize):
    env = environments.table(shared_data / "olympus" / name, noise=SubGaussian(1.0))
    assert env.minimize is minimize
    assert environments.table(
        shared_data / "olympus" / name, noise=SubGaussian(1.0), minimize=not minimize
    ).minimize is (not minimize)


def test_repeats_in_an_olympus_folder_are_pooled(shared_data):
    env = environments.table(shared_data / "olympus" / "photo_wf3", noise=SubGaussian(1.0))
    assert (env.num_arms, len(env.law.rewards)) == (1020, 1040)


# two clusters

SHAPES = [(4, 2), (4, 4), (50, 5), (250, 20), (200, 200), (250, 200)]


@pytest.mark.parametrize("reward", ["linear", "norm"])
@pytest.mark.parametrize(("num_arms", "dim"), SHAPES)
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(("dim", "epsilon"), [(1, 0.2), (2, 0.01), (10, 0.1), (50, 0.249)])
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


@pytest.mark.parametrize(("dim", "epsilon"), [(0, 0.1), (5, 0.25), (5, 0.0), (5, math.nan)])
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
}


@pytest.mark.parametrize("name", CLASSICS)
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


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: environments.falling_means(1), "num_arms is 1"),
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


# digits


def test_digits_are_sixty_real_images_on_which_the_rewards_are_linear():
    for seed in SEEDS:
        env = environments.digits(seed)
        labels = np.array([int(name.split("-#")[0]) for name in env.arms.ids])
        np.testing.assert_array_equal(np.bincount(labels), 6)
        np.testing.assert_array_equal(env.means, REWARDS[labels])
        assert set(labels[env.gaps == 0]) == {7}
        assert np.linalg.matrix_rank(env.arms.features) == env.num_arms == 60
        assert env.arms.features.min() == 0
        assert env.arms.features.max() == 1
        assert env.noise == SubGaussian(1.0)


def test_the_products_of_neighbours_are_what_makes_the_digits_linear():
    env = environments.digits(0)
    pixels, theta_of = env.arms.features[:, :64], lambda x: np.linalg.lstsq(x, env.means)[0]
    assert np.max(np.abs(pixels @ theta_of(pixels) - env.means)) > 0.02
    full = env.arms.features
    assert np.max(np.abs(full @ theta_of(full) - env.means)) < 1e-10


def test_digits_show_the_images_that_their_ids_name():
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    env = environments.digits(4, per_digit=2)
    for name, features in zip(env.arms.ids, env.arms.features, strict=True):
        digit, number = (int(part) for part in name.split("-#"))
        assert labels[number] == digit
        image = images[number].reshape(8, 8) / 16
        np.testing.assert_array_equal(features[:64], image.ravel())
        assert features[64 + 7 * 3 + 2] == image[3, 2] * image[3, 3]  # across
        assert features[64 + 56 + 8 * 3 + 2] == image[3, 2] * image[4, 2]  # down


def test_the_seed_decides_the_images():
    assert environments.digits(1) == environments.digits(1)
    assert environments.digits(1) != environments.digits(2)


def test_more_images_than_dimensions_stand_as_drawn():
    env = environments.digits(0, per_digit=18)
    assert env.num_arms == 180 > row_rank(env.arms.features)


@pytest.mark.parametrize("per_digit", [0, 175])
def test_more_digits_than_there_are_is_refused(per_digit):
    with pytest.raises(InvalidInput, match=f"per_digit is {per_digit}; it must be 1 to 174"):
        environments.digits(0, per_digit)


def test_digits_without_sklearn_name_the_command(monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidInput, match=r'pip install "surepick\[demo\]"'):
        environments.digits(0)


# MNIST

IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"


def test_mnist_keeps_the_geometry_of_the_images(mnist_directory):
    env = datasets.mnist(mnist_directory, seed=1)
    labels, numbers = np.array([[int(part) for part in name.split("-#")] for name in env.arms.ids]).T
    np.testing.assert_array_equal(np.bincount(labels), 20)
    np.testing.assert_array_equal(env.means, REWARDS[labels])
    assert env.arms.features.shape == (200, 200)
    raw = np.frombuffer(gzip.decompress((mnist_directory / f"{IMAGES}.gz").read_bytes()), np.uint8, offset=16)
    pixels = raw.reshape(10_000, 784)[numbers] / 255
    np.testing.assert_allclose(env.arms.features @ env.arms.features.T, pixels @ pixels.T, atol=1e-10)
    truth = np.frombuffer(gzip.decompress((mnist_directory / f"{LABELS}.gz").read_bytes()), np.uint8, offset=8)
    np.testing.assert_array_equal(truth[numbers], labels)


def test_unpacked_files_give_the_same_instance(mnist_directory, tmp_path):
    for name in (IMAGES, LABELS):
        (tmp_path / name).write_bytes(gzip.decompress((mnist_directory / f"{name}.gz").read_bytes()))
    assert datasets.mnist(tmp_path, 3, 2) == datasets.mnist(mnist_directory, 3, 2)


def test_absent_files_come_with_the_recipe(tmp_path):
    with pytest.raises(
        DatasetMissing, match=rf"neither {IMAGES}\.gz nor {IMAGES} in .*md5 9fb629c4189551a2d022fa330f9573f3"
    ) as caught:
        datasets.mnist(tmp_path)
    assert LABELS in caught.value.recipe


def test_a_damaged_packed_file_is_refused(tmp_path):
    (tmp_path / f"{IMAGES}.gz").write_bytes(gzip.compress(b"not these"))
    with pytest.raises(InvalidInput, match=r"has md5 \w{32}, not 9fb629c4189551a2d022fa330f9573f3"):
        datasets.mnist(tmp_path)


@pytest.mark.parametrize("content", [b"", b"\0\0\x08\x03" + b"\0" * 100])
def test_an_unpacked_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / IMAGES).write_bytes(content)
    with pytest.raises(InvalidInput, match="not MNIST's test half"):
        datasets.mnist(tmp_path)


def test_more_mnist_images_than_there_are_is_refused(mnist_directory):
    with pytest.raises(InvalidInput, match="it must be 1 to 892"):
        datasets.mnist(mnist_directory, per_digit=893)
