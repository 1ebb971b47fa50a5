"""Networks, language models, and tables with added noise: the truth is what the files record."""

import csv
import gzip

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick import environments
from surepick.errors import DatasetMissing, InvalidInput
from surepick.noise import Bernoulli, Bounded, SubGaussian
from surepick_bench import datasets

# networks

NETWORKS = """arch,correct_run0,correct_run1,correct_run2,params,flops
00000000,5000,5100,5200,1,1
00000012,9000,9000,9300,1,1
"""


@pytest.fixture
def networks(tmp_path):
    (tmp_path / "nas_bench_macro_cifar10.csv").write_text(NETWORKS)
    return tmp_path


def test_a_network_is_its_layers_and_a_pull_one_of_its_trainings(networks):
    env = datasets.nasbench_macro(networks)
    assert env.arms.ids == ("00000000", "00000012")
    np.testing.assert_array_equal(env.arms.features[0], np.tile([1.0, 0, 0], 8))
    np.testing.assert_array_equal(env.arms.features[1], [*np.tile([1.0, 0, 0], 6), 0, 1, 0, 0, 0, 1])
    assert env.arms.columns[-2:] == ("7=1", "7=2")
    np.testing.assert_allclose(env.means, [0.51, 0.91])
    assert env.noise.sigma == pytest.approx(0.015)  # half of .93 - .9
    draws = {float(env.pull([0, 1], np.random.default_rng(seed)).sums[1]) for seed in range(60)}
    assert draws == {0.9, 0.93}


def test_a_pull_can_be_a_single_test_image(networks):
    env = datasets.nasbench_macro(networks, reward="image")
    assert env.noise == Bernoulli()
    seen = env.pull([1000, 1000], np.random.default_rng(0))
    assert seen.sums == pytest.approx([510, 910], abs=90)
    np.testing.assert_array_equal(seen.sums, seen.squares)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("00000012", "12", r"row 3: '12' is no network of 8 digits 0 to 2\. Leading zeros must be kept"),
        ("00000012", "00000013", "'00000013' is no network"),
        ("9300", "93000", r"row 3: .* no numbers of right answers among 10,000; 1 of 2 rows"),
        ("9300", "nan", "no numbers of right answers"),
        ("arch", "network", "no column 'arch'"),
        (
            "5000,5100,5200,1,1\n00000012,9000,9000,9300",
            "5,5,5,1,1\n00000012,9,9,9",
            "trainings of every network agree",
        ),
    ],
)
def test_another_table_of_networks_is_refused(networks, old, new, words):
    path = networks / "nas_bench_macro_cifar10.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidInput, match=words):
        datasets.nasbench_macro(networks)


def test_networks_that_are_not_there_come_with_the_recipe(tmp_path):
    with pytest.raises(DatasetMissing, match="xiusu/NAS-Bench-Macro"):
        datasets.nasbench_macro(tmp_path)
    with pytest.raises(InvalidInput, match="reward is 'time'; choose one of 'training', 'image'"):
        datasets.nasbench_macro(tmp_path, reward="time")


def test_all_networks_of_the_data_set(shared_data):
    env = datasets.make_environment("nasbench-macro", seed=0, data=shared_data)
    assert env.arms.features.shape == (6561, 24)
    assert np.linalg.matrix_rank(env.arms.features) == 17
    assert [env.arms.ids[arm] for arm in np.flatnonzero(env.epsilon_best(0.0))] == ["22212202", "22212220"]
    assert [int(env.epsilon_best(epsilon).sum()) for epsilon in (0.01, 0.005)] == [1081, 207]
    assert env.noise.sigma == pytest.approx(0.0097)
    assert np.all(env.law.half_ranges <= env.noise.sigma)


# language models


def scores(path, columns):
    rows = zip(*columns.values(), strict=True)
    lines = [
        ",".join(["item", "question_id", *columns]),
        *(f"{k},1,{','.join(map(str, r))}" for k, r in enumerate(rows)),
    ]
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def tasks(tmp_path):
    scores(tmp_path / "testgen.csv", {"A": [100.0, 0.0], "B": [50.0, 60.0], "C": [0.0, 10.0]})
    scores(tmp_path / "execution.csv", {"B": [0.0, 100.0, 100.0], "A": [100.0, 100.0, 100.0], "D": [0.0, 0.0, 10.0]})
    return tmp_path


def test_a_model_is_worth_its_mean_score_and_a_pull_is_a_question(tasks):
    env = datasets.livecodebench(tasks)
    assert env.arms.ids == ("A", "B", "C")
    assert env.arms.features.shape == (3, 0)
    np.testing.assert_allclose(env.means, [0.5, 0.55, 0.05])
    assert env.noise == Bounded(0.0, 1.0)
    draws = {float(env.pull([0, 1, 0], np.random.default_rng(seed)).sums[1]) for seed in range(40)}
    assert draws == {0.5, 0.6}
    assert datasets.livecodebench(tasks, "execution").arms.ids == ("B", "A", "D")


def test_models_of_both_tasks_are_described_by_their_scores_on_the_other(tasks):
    env = datasets.livecodebench(tasks, features_from="execution", dim=2)
    assert env.arms.ids == ("A", "B")
    np.testing.assert_allclose(env.means, [0.5, 0.55])
    np.testing.assert_allclose(env.arms.features @ env.arms.features.T, [[1, 2 / 3], [2 / 3, 2 / 3]], atol=1e-12)
    one = datasets.livecodebench(tasks, features_from="execution", dim=1)
    np.testing.assert_allclose(one.arms.features, env.arms.features[:, :1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"task": "repair"}, "task is 'repair'; choose one of 'testgen', 'execution'"),
        ({"features_from": "repair"}, "features_from is 'repair'"),
        ({"features_from": "testgen"}, "the task itself: the features would hold the rewards"),
        ({"features_from": "execution", "dim": 0}, "dim is 0"),
        ({"features_from": "execution"}, "dim is 5; 2 models on 3 questions have no more than 2 directions"),
    ],
)
def test_options_of_the_models_that_make_no_sense_are_refused(tasks, options, words):
    with pytest.raises(InvalidInput, match=words):
        datasets.livecodebench(tasks, **options)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"A": [100.5, 0.0]}, r"row 2: the score of 'A' is 100.5, outside \[0, 100\]"),
        ({"A": ["nan", 0.0]}, r"the score of 'A' is nan"),
        ({}, "no column of a model"),
        ({"E": [1.0]}, "no model of testgen in .* is also in execution"),
    ],
)
def test_tables_of_models_that_are_not_are_refused(tasks, columns, words):
    scores(tasks / "testgen.csv", columns or {"": [1.0]})
    if not columns:
        (tasks / "testgen.csv").write_text("item,question_id\n0,1\n")
    with pytest.raises(InvalidInput, match=words):
        datasets.livecodebench(tasks, features_from="execution")


def test_models_that_are_not_there_come_with_the_recipe(tmp_path):
    with pytest.raises(DatasetMissing, match=r"neither testgen\.csv\.gz nor .*livecodebench\.github\.io"):
        datasets.livecodebench(tmp_path)


@pytest.mark.parametrize(
    ("task", "other", "best", "mean"),
    [("testgen", "execution", "GPT-4O-2024-05-13", 0.735), ("execution", "testgen", "Dracarys-72B-Instruct", 0.630)],
)
def test_the_leaderboard_is_as_recorded(shared_data, task, other, best, mean):
    folder = shared_data / "livecodebench"
    env = datasets.livecodebench(folder, task)
    with gzip.open(folder / f"{task}.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    for arm in (0, 17, 36):
        assert env.means[arm] == pytest.approx(np.mean([float(row[env.arms.ids[arm]]) for row in rows]) / 100)
    assert (env.num_arms, env.arms.ids[env.best]) == (37, best)
    assert env.means.max() == pytest.approx(mean, abs=5e-4)
    found = datasets.make_environment("livecodebench", seed=0, data=shared_data, task=task, features_from=other)
    assert found.arms.features.shape == (28, 5)
    assert np.all(np.linalg.norm(found.arms.features, axis=1) <= 1.0)


# tables with added noise


@pytest.mark.parametrize(("minimize", "means"), [(False, [0.0, 1.0, 0.75]), (True, [1.0, 0.0, 0.25])])
def test_the_best_value_becomes_one_and_the_worst_zero(tmp_path, minimize, means):
    path = tmp_path / "values.csv"
    path.write_text("sku,x,y\na,1,-2\nb,2,6\nc,3,3\nc,3,5\n")
    env = environments.table_with_added_noise(path, "sku", "y", sigma=0.2, minimize=minimize, intercept=True)
    np.testing.assert_allclose(env.means, means)
    np.testing.assert_array_equal(env.arms.features, [[1, 1], [2, 1], [3, 1]])
    assert (env.minimize, env.noise) == (False, SubGaussian(0.2))
    seen = env.pull([2000] * 3, np.random.default_rng(0))
    variances = seen.squares / 2000 - (seen.sums / 2000) ** 2
    np.testing.assert_allclose(seen.sums / 2000, means, atol=6 * 0.2 / 2000**0.5)
    np.testing.assert_allclose(variances, 0.04, rtol=0.2)


def test_an_olympus_folder_says_what_is_good(shared_data):
    folder = shared_data / "olympus" / "photo_wf3"
    measured = environments.table(folder, noise=SubGaussian(1.0))
    env = environments.table_with_added_noise(folder, sigma=0.1)
    assert (measured.minimize, env.best) == (True, measured.best)
    np.testing.assert_allclose(env.gaps, measured.gaps / np.ptp(measured.means), atol=1e-12)
    turned = environments.table_with_added_noise(folder, sigma=0.1, minimize=False)
    np.testing.assert_allclose(turned.means, 1 - env.means, atol=1e-12)


@pytest.mark.parametrize(("sigma", "words"), [(0.0, "sigma is 0.0"), (float("nan"), "sigma is nan")])
def test_noise_that_is_none_is_refused(tmp_path, sigma, words):
    with pytest.raises(InvalidInput, match=words):
        environments.table_with_added_noise(tmp_path / "values.csv", "sku", "y", sigma=sigma)


def test_arms_that_are_all_alike_are_refused(tmp_path):
    path = tmp_path / "values.csv"
    path.write_text("sku,y\na,2\nb,2\n")
    with pytest.raises(InvalidInput, match=r"all 2 arms of .* have the value 2"):
        environments.table_with_added_noise(path, "sku", "y", sigma=0.1)


def test_the_registry_knows_every_environment_and_its_options():
    for name in ("livecodebench", "nasbench-macro", "open-bandit", "yahoo-like", "yahoo-r6a"):
        assert name in datasets.environment_names()
        with pytest.raises(InvalidInput, match=f"environment {name} has no option 'colour'; it knows"):
            datasets.make_environment(name, seed=0, colour="red")
    with pytest.raises(sp.SurepickError, match="xiusu"):
        datasets.make_environment("nasbench-macro", seed=0, data="nowhere")


@of_each(
    ("name", "given", "words"),
    [
        ("sphere", {}, "^sphere needs num_arms and dim, which have no default; add them to the options"),
        ("sphere", {"dim": 3}, "^sphere needs num_arms, which has no default; add it to the options"),
        ("soare", {}, "^soare needs dim and angle"),
        ("high-dimensional", {"dim": 4}, "^high-dimensional needs epsilon"),
    ],
)
def test_an_option_without_default_that_is_missing_is_named(name, given, words):
    with pytest.raises(InvalidInput, match=words):
        datasets.make_environment(name, seed=0, **given)


# crossed barrels


def test_a_barrel_is_a_design_and_a_pull_one_of_its_parts(tmp_path):
    rows = ["n,theta,r,t,toughness", "6,0,1.5,0.7,1.0", "6,0,1.5,0.7,4.0", "8,0,1.5,0.7,2.5"]
    (tmp_path / "Crossed_barrel_dataset.csv").write_text("\n".join(rows) + "\n")
    env = datasets.crossed_barrel(tmp_path)
    assert env.arms.ids == ("6/0/1.5/0.7", "8/0/1.5/0.7")
    assert env.means.tolist() == [2.5, 2.5]
    assert env.noise == SubGaussian(19.0)
    assert {float(env.pull([1, 0], np.random.default_rng(seed)).sums[0]) for seed in range(40)} == {1.0, 4.0}
    with pytest.raises(DatasetMissing, match="Crossed_barrel_dataset"):
        datasets.crossed_barrel(tmp_path / "elsewhere")


def test_the_noise_of_the_barrels_is_true(shared_data):
    env = datasets.crossed_barrel(shared_data / "pvlab")
    with (shared_data / "pvlab" / "Crossed_barrel_dataset.csv").open() as file:
        rows = list(csv.DictReader(file))
    spread: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        spread.setdefault(tuple(row[name] for name in ("n", "theta", "r", "t")), []).append(float(row["toughness"]))
    assert len(spread) == env.num_arms == 600
    assert max(np.ptp(values) for values in spread.values()) / 2 <= env.noise.sigma
