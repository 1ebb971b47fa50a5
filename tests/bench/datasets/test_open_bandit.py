"""Open Bandit: arms are items or pairs, never single displays, and their means are the recorded click rates."""

import csv
import gzip
from collections import defaultdict

import numpy as np
import pytest

from surepick.errors import DatasetMissing, InvalidInput
from surepick.noise import Bernoulli
from surepick_bench import datasets

DISPLAYS = """,item_id,click,user_feature_0,user_feature_1,user_feature_2,user_feature_3
0,7,1,a,x,p,s
1,7,0,a,x,p,s
2,3,0,a,x,p,s
3,7,0,b,x,q,s
4,3,1,b,x,q,s
5,7,0,b,x,q,s
6,9,0,b,x,q,s
"""
CONTEXT = """,item_id,item_feature_0,item_feature_1,item_feature_2,item_feature_3
0,3,-0.5,m,n,o
1,7,0.25,m,r,o
2,9,0.25,m,r,o
3,11,0.5,m,r,z
"""


@pytest.fixture
def sample(tmp_path):
    folder = tmp_path / "random" / "men"
    folder.mkdir(parents=True)
    (folder / "men.csv").write_text(DISPLAYS)
    (folder / "item_context.csv").write_text(CONTEXT)
    return tmp_path


def test_items_have_their_click_rate_and_their_context(sample):
    env = datasets.open_bandit(sample)
    assert env.arms.ids == ("7", "3", "9")
    np.testing.assert_array_equal(env.means, [1 / 4, 1 / 2, 0])
    assert env.noise == Bernoulli()
    number, categories = env.arms.features[:, 0], env.arms.features[:, 1:]
    np.testing.assert_array_equal(number, [0.25, -0.5, 0.25])
    np.testing.assert_array_equal(categories @ categories.T, [[3, 2, 3], [2, 3, 2], [3, 2, 3]])  # shared categories


def test_pairs_pool_the_displays_of_equal_users(sample):
    env = datasets.open_bandit(sample, arm="pair")
    assert env.arms.ids == ("0/7", "0/3", "1/7", "1/3", "1/9")
    np.testing.assert_array_equal(env.means, [1 / 2, 0, 0, 1, 0])
    np.testing.assert_array_equal(env.law.repeats, [2, 1, 2, 1, 1])
    same_item = np.array([name.split("/")[1] for name in env.arms.ids])
    same_user = np.array([name.split("/")[0] for name in env.arms.ids])
    shared = 2.0 + 2.0 * (same_user[:, None] == same_user)  # x and s are everybody's, the other two are the user's
    np.testing.assert_array_equal(env.arms.features @ env.arms.features.T, shared * (same_item[:, None] == same_item))


def test_a_pull_draws_a_recorded_click(sample):
    seen = datasets.open_bandit(sample, arm="pair").pull([500, 9, 9, 9, 0], np.random.default_rng(0))
    assert 150 < seen.sums[0] < 350
    np.testing.assert_array_equal(seen.sums[1:], [0, 0, 9, 0])


def test_arms_with_few_displays_can_be_left_out(sample):
    env = datasets.open_bandit(sample, arm="pair", min_records=2)
    assert env.arms.ids == ("0/7", "1/7")
    np.testing.assert_array_equal(env.means, [1 / 2, 0])
    with pytest.raises(InvalidInput, match=r"no arm has 5 recorded displays; the most is 4 \(of 3 arms\)"):
        datasets.open_bandit(sample, min_records=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"policy": "greedy"}, "policy is 'greedy'; choose one of 'random', 'bts'"),
        ({"arm": "record"}, "arm is 'record'; choose one of 'item', 'pair'"),
        ({"min_records": 0}, "min_records is 0"),
    ],
)
def test_options_that_are_not_there_are_refused(sample, options, words):
    with pytest.raises(InvalidInput, match=words):
        datasets.open_bandit(sample, **options)


def test_files_that_are_not_there_come_with_the_recipe(sample):
    with pytest.raises(DatasetMissing, match=r"neither women\.csv\.gz nor women\.csv in .*random/women.*zr-obp"):
        datasets.open_bandit(sample, campaign="women")
    (sample / "random" / "men" / "item_context.csv").unlink()
    assert datasets.open_bandit(sample, arm="pair").num_arms == 5
    with pytest.raises(DatasetMissing, match=r"item_context\.csv"):
        datasets.open_bandit(sample)


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("men", "0,7,1,a", "0,7,2,a", r"men\.csv, row 2: the click is 2, as in 1 of 7 rows neither 0 nor 1"),
        ("men", ",click,", ",clicks,", "no column 'click'"),
        ("item_context", "2,9,", "2,8,", r"no row for 1 of 3 displayed items \(the first is '9'\)"),
    ],
)
def test_files_of_another_kind_are_refused(sample, name, old, new, words):
    path = sample / "random" / "men" / f"{name}.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidInput, match=words):
        datasets.open_bandit(sample)


@pytest.mark.parametrize(
    ("policy", "pairs", "clicks"), [pytest.param("random", 2929, 46, marks=pytest.mark.slow), ("bts", 2146, 69)]
)
def test_the_sample_gives_the_click_rates_of_its_file(shared_data, policy, pairs, clicks):
    folder = shared_data / "obd"
    with gzip.open(folder / policy / "men" / "men.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    by_item, by_pair = defaultdict(list), defaultdict(list)
    for row in rows:
        by_item[row["item_id"]].append(int(row["click"]))
        by_pair[(*(row[f"user_feature_{number}"] for number in range(4)), row["item_id"])].append(int(row["click"]))
    items = datasets.open_bandit(folder, policy)
    assert dict(zip(items.arms.ids, items.means, strict=True)) == pytest.approx(
        {item: np.mean(recorded) for item, recorded in by_item.items()}
    )
    assert (items.num_arms, items.arms.features.shape[1], items.law.rewards.sum()) == (34, 28, clicks)
    assert len(np.unique(items.arms.features, axis=0)) == 33  # two items share their context
    both = datasets.open_bandit(folder, policy, arm="pair")
    np.testing.assert_allclose(both.means, [np.mean(recorded) for recorded in by_pair.values()])
    assert both.num_arms == len(np.unique(both.arms.features, axis=0)) == pairs
    assert datasets.make_environment("open-bandit", seed=1, data=shared_data, policy=policy) == items
