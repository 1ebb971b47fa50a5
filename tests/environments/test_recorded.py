"""Environments of recorded measurements."""

import math

import numpy as np
import pytest

from surepick import environments
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, Bounded, SubGaussian


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
        environments.table(path, "sku", "y", "x", noise=noise)


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
