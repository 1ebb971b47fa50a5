"""The Yahoo! R6A log: every fault of a line is named, the draw is that of the whole log, records are generated."""

import gzip
import re
from collections import Counter

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.errors import DatasetMissing, InvalidInput
from surepick_bench import datasets
from surepick_bench.datasets.yahoo import DistinctSample, YahooRecord, feature_row, read_lines

SEEDS = range(5)
USER = "user 2:0.100000 3:0.200000 4:0.300000 5:0.150000 6:0.250000 1:1.000000"
FIRST = "101 2:0.500000 3:0.125000 4:0.125000 5:0.125000 6:0.125000 1:1.000000"
SECOND = "102 1:1.000000 6:0.600000 2:0.100000 5:0.100000 4:0.100000 3:0.100000"
GOOD = f"1241160900 102 1 |{USER} |{FIRST} |{SECOND}"


def block(name, memberships):
    values = " ".join(f"{number}:{value:.6f}" for number, value in enumerate(memberships, start=2))
    return f"{name} {values} 1:1.000000"


def generated_lines(number, seed=0, *, users=None, click_rate=0.1):
    """Lines in the log's form: 12 articles, all offered; `users` different users, or a new one each time."""
    rng = np.random.default_rng(seed)
    articles = [block(900 + article, rng.dirichlet(np.ones(5))) for article in range(12)]
    everybody = rng.dirichlet(np.full(5, 0.4), size=number if users is None else users)
    lines = []
    for place in range(number):
        user = everybody[place if users is None else rng.integers(users)]
        click = int(rng.random() < click_rate)
        beginning = f"{1241160900 + place} {900 + rng.integers(12)} {click} |{block('user', user)}"
        lines.append(" |".join([beginning, *articles]))
    return lines


def written(path, lines):
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.fixture
def log(tmp_path):
    return written(tmp_path / "log.gz", generated_lines(400))


# lines


def test_a_line_is_read_whole_and_the_features_are_put_in_the_order_of_their_ids(tmp_path):
    (line,) = datasets.yahoo_records(written(tmp_path / "log", [GOOD]), strict=True)
    assert (line.number, line.timestamp, line.article, line.clicked) == (1, 1241160900, "102", True)
    assert line.user == (1.0, 0.1, 0.2, 0.3, 0.15, 0.25)
    assert dict(line.pool) == {"101": (1.0, 0.5, 0.125, 0.125, 0.125, 0.125), "102": (1.0, 0.1, 0.1, 0.1, 0.1, 0.6)}
    assert line.displayed == line.pool["102"]


BAD = {
    "": ("empty line", "the line is empty"),
    "1241160900 102 |" + USER: ("malformed beginning", "not with TIMESTAMP ARTICLE CLICK"),
    GOOD.replace("1241160900", "noon"): ("malformed beginning", "'noon 102 1'"),
    GOOD.replace("1241160900", "9" * 5000): ("malformed beginning", "it begins with '9999"),
    GOOD.replace(" 1 |user", " 2 |user"): ("click is neither 0 nor 1", "the click is '2'"),
    GOOD.replace("|user", "|usr"): ("no user block", "stands |usr"),
    GOOD.replace("0 102 1", "0 103 1"): (
        "displayed article not in the pool",
        "the displayed article 103 is not among the 2 articles of its pool",
    ),
    f"1241160900 102 1 |{USER}": ("article without id", "an article of the pool has no id"),
    f"{GOOD} |{FIRST}": ("article offered twice", "the article 101 stands twice"),
    f"{GOOD} | 1:1.0": ("article without id", r"has no id: \|1:1.0"),
    GOOD.replace("6:0.600000", "7:0.600000"): ("unknown feature", "article 102 has '7:0.600000'"),
    GOOD.replace("6:0.600000", "06:0.600000"): ("unknown feature", "article 102 has '06:0.600000'"),
    GOOD.replace("6:0.600000", "6"): ("unknown feature", "article 102 has '6'; features are 1:VALUE to 6:VALUE"),
    GOOD.replace("6:0.600000 ", ""): ("missing feature", "article 102 has 5 of 6 features: 6 not found"),
    GOOD[: GOOD.index(" 5:0.100000")]: ("missing feature", "article 102 has 3 of 6 features: 3, 4, 5 not found"),
    GOOD.replace("|user 2:0.100000", "|user 3:0.100000"): ("repeated feature", "the user has the feature 3 twice"),
    GOOD.replace("2:0.5", "2:abc"): ("value is not a number", "the feature 2 of the article 101 is 'abc00000'"),
    GOOD.replace("2:0.500000", "2:"): ("value is not a number", "the feature 2 of the article 101 is ''"),
    GOOD.replace("|user 2:0.100000", "|user 2:nan"): ("value is not finite", "the feature 2 of the user is nan"),
    GOOD.replace("|user 2:0.100000", "|user 2:1e999"): ("value is not finite", "the feature 2 of the user is 1e999"),
    GOOD.replace("|user 2:0.100000", "|user 2:0_1"): ("value is not finite", "the feature 2 of the user is 0_1"),
}


@pytest.mark.parametrize(("line", "fault"), BAD.items(), ids=[str(number) for number in range(len(BAD))])
def test_a_line_that_is_no_record_is_refused_or_skipped_by_its_reason(tmp_path, line, fault):
    reason, words = fault
    path = written(tmp_path / "log.gz", [GOOD, line, GOOD])
    with pytest.raises(InvalidInput, match=rf"{re.escape(str(path))}, line 2: .*{words}.*strict=False"):
        datasets.yahoo_log(path, strict=True)
    held = datasets.yahoo_log(path)
    assert (held.records, held.clicks, dict(held.skipped)) == (2, 2, {reason: 1})
    assert [record.number for record in datasets.yahoo_records(path)] == [1, 3]


def test_every_faulty_case_has_a_message_of_its_own(shared_data, tmp_path):
    cases = [line.split("\t") for line in (shared_data / "r6a_generated" / "cases.tsv").read_text().splitlines()]
    messages = {}
    for name, line in cases:
        path = written(tmp_path / "case", [line])
        if name.startswith("ok"):
            assert len(list(datasets.yahoo_records(path, strict=True))) == 1
        else:
            with pytest.raises(InvalidInput, match=rf"^{re.escape(str(path))}, line 1: ") as caught:
                datasets.yahoo_log(path, strict=True)
            messages[name] = str(caught.value)
    assert len(cases) == 12
    assert len(set(messages.values())) == len(messages) == 9
    together = datasets.yahoo_log(written(tmp_path / "all", [line for _, line in cases]))
    assert (together.records, sum(together.skipped.values())) == (3, 9)
    assert "value is not finite: 1" in together.sentence


def test_pools_and_articles_that_come_again_are_read_alike(tmp_path, monkeypatch):
    path = written(tmp_path / "log", generated_lines(50))
    first = list(datasets.yahoo_records(path))
    monkeypatch.setattr("surepick_bench.datasets.yahoo.REMEMBERED", 0)
    assert list(datasets.yahoo_records(path)) == first


# files


def test_packed_plain_and_split_logs_hold_the_same(tmp_path):
    lines = generated_lines(60)
    whole, packed = written(tmp_path / "log", lines), written(tmp_path / "log.gz", lines)
    folder = tmp_path / "days"
    folder.mkdir()
    for name, part in (("b.gz", lines[25:]), ("a.gz", lines[:25])):
        written(folder / name, part)
    (folder / "README").write_text("not a part of the log")
    expected = list(datasets.yahoo_records(whole))
    assert len(expected) == 60
    assert list(datasets.yahoo_records(packed)) == list(datasets.yahoo_records(folder)) == expected


def test_a_fault_is_placed_by_its_file_and_the_line_there(tmp_path):
    written(tmp_path / "a.gz", [GOOD, GOOD])
    second = written(tmp_path / "b.gz", [GOOD, "nothing"])
    with pytest.raises(InvalidInput, match=rf"^{re.escape(str(second))}, line 2: "):
        list(datasets.yahoo_records(tmp_path, strict=True))


def test_an_absent_log_comes_with_the_recipe(tmp_path):
    for path, words in ((tmp_path / "log.gz", "no file or folder"), (tmp_path, r"no \*\.gz in")):
        with pytest.raises(DatasetMissing, match=rf"{words}.*R6A.*non-commercial") as caught:
            datasets.yahoo_r6a(path)
        assert "webscope" in caught.value.recipe


@pytest.mark.parametrize("damage", [lambda content: content[:-30], lambda content: b"plain text"])
def test_a_damaged_file_is_refused_also_when_lines_may_be_skipped(tmp_path, damage):
    path = tmp_path / "log.gz"
    path.write_bytes(damage(gzip.compress("".join(f"{line}\n" for line in generated_lines(300)).encode())))
    with pytest.raises(InvalidInput, match=r"log\.gz cannot be read beyond line \d+: .*obtain it again"):
        datasets.yahoo_log(path)


# the draw


@of_each("seed", SEEDS)
@of_each("size", [0, 1, 7, 40])
def test_the_sample_in_one_pass_is_that_of_all_lines_in_order(size, seed):
    rng = np.random.default_rng(seed)
    rows = [((float(rng.integers(12)),), (float(rng.integers(4)),)) for _ in range(300)]
    lines = [YahooRecord(number, 0, "a", False, user, {"a": shown}) for number, (user, shown) in enumerate(rows)]
    places = rng.permutation(300) / 300
    sample = DistinctSample(size)
    for place, line in zip(places, lines, strict=True):
        sample.offer(place, line)
        assert len(sample.seats) <= size
    excluded = {rows[0], rows[1]}
    for left_out in (set(), excluded):
        number = max(0, size - len(left_out))
        taken, repeated = [], 0
        for place in np.argsort(places):
            if len(taken) == number:
                break
            row = feature_row(lines[place])
            if row in left_out or row in [feature_row(line) for line in taken]:
                repeated += 1
            else:
                taken.append(lines[place])
        found, passed_over = sample.first(number, left_out)
        assert found == taken
        if len(taken) == number:
            assert passed_over == repeated


@pytest.mark.parametrize("seed", SEEDS)
def test_the_arms_are_different_lines_of_which_some_were_clicked(log, seed):
    drawn = datasets.draw_yahoo(log, 80, seed)
    assert sum(line.clicked for line in drawn.records) == 2  # round(.025 * 80)
    assert len({line.number for line in drawn.records}) == len({feature_row(line) for line in drawn.records}) == 80
    assert all(line in list(datasets.yahoo_records(log)) for line in drawn.records[:5])
    assert all(len(line.pool) == 12 for line in drawn.records)
    assert drawn.log == datasets.yahoo_log(log)
    env = datasets.yahoo_r6a(log, 80, seed)
    assert env.arms.ids == tuple(f"{line.article}-#{line.number}" for line in drawn.records)
    np.testing.assert_array_equal(env.means, [0.8 if line.clicked else 0.3 for line in drawn.records])
    assert env.noise == sp.SubGaussian(1.0)


def test_the_features_keep_the_geometry_of_the_products(log):
    lines = datasets.draw_yahoo(log, 60, 1).records
    products = np.array([np.outer(line.user, line.displayed).ravel() for line in lines])
    features = datasets.yahoo_r6a(log, 60, 1).arms.features
    np.testing.assert_allclose(features @ features.T, products @ products.T, atol=1e-4)
    exact = datasets.yahoo_r6a(log, 60, 1, rank_tolerance=1e-14).arms.features
    np.testing.assert_allclose(exact @ exact.T, products @ products.T, atol=1e-12)


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_fine_tolerance_takes_the_rounding_of_memberships_for_directions(shared_data, seed):
    ranks = [
        datasets.yahoo_r6a(shared_data / "r6a_generated", 200, seed, rank_tolerance=tolerance).arms.features.shape[1]
        for tolerance in (1e-4, 1e-9)
    ]
    assert ranks == [25, 35]
    env = datasets.yahoo_r6a(shared_data / "r6a_generated", seed=seed)
    assert (env.num_arms, int(np.sum(env.means == 0.8)), env.arms.features.shape[1]) == (200, 5, 25)


def test_lines_with_equal_features_are_one_arm_and_are_counted(tmp_path):
    lines = generated_lines(600, users=5)  # 60 different pairs, most of them both clicked and not
    path = written(tmp_path / "log", lines)
    for seed in SEEDS:
        drawn = datasets.draw_yahoo(path, 40, seed, num_rewarding=10)
        assert len({feature_row(line) for line in drawn.records}) == 40
        assert drawn.repeated > 0
    with pytest.raises(InvalidInput, match=r"distinct features, of 600 records; 61 arms need 2 and 59\. No line was"):
        datasets.draw_yahoo(path, 61)


def test_the_seed_decides_the_draw_and_the_place_of_an_arm_tells_nothing(log):
    assert datasets.yahoo_r6a(log, 40, 3) == datasets.yahoo_r6a(log, 40, 3)
    assert datasets.yahoo_r6a(log, 40, 3) != datasets.yahoo_r6a(log, 40, 4)
    best = Counter(datasets.yahoo_r6a(log, 20, seed, num_rewarding=1).best >= 10 for seed in range(40))
    assert min(best.values()) >= 4  # each half has 4 or more of 40, but for 1 in 5 million


def test_too_few_clicks_are_told_with_the_skipped_lines(tmp_path):
    lines = [line for line in generated_lines(300) if line.split()[2] == "0"][:100]
    path = written(tmp_path / "log", [*lines, GOOD, "", "rubbish"])
    with pytest.raises(
        InvalidInput,
        match=r"1 clicked and 78 other lines .*of 101 records; 80 arms need 2 and 78\. 2 lines were skipped "
        r"\(empty line: 1, malformed beginning: 1\)\. Ask for fewer arms",
    ):
        datasets.yahoo_r6a(path, 80)
    assert datasets.yahoo_r6a(path, 40).num_arms == 40


def test_strict_reaches_the_environment(tmp_path):
    path = written(tmp_path / "log", [*generated_lines(100), ""])
    assert datasets.yahoo_r6a(path, 20).num_arms == 20
    with pytest.raises(InvalidInput, match="line 101: the line is empty"):
        datasets.yahoo_r6a(path, 20, strict=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_arms": 1}, "num_arms is 1"),
        ({"num_arms": 10, "num_rewarding": 0}, "num_rewarding is 0"),
        ({"num_arms": 10, "num_rewarding": 11}, "num_rewarding is 11, more than the 10 arms"),
        ({"num_arms": 10, "rank_tolerance": 0.0}, "rank_tolerance is 0.0"),
        ({"num_arms": 10, "rank_tolerance": 1.0}, "rank_tolerance is 1.0"),
    ],
)
def test_settings_out_of_range_are_refused(log, options, words):
    with pytest.raises(InvalidInput, match=words):
        datasets.yahoo_r6a(log, **options)
    with pytest.raises(InvalidInput, match=words):
        datasets.yahoo_like(**options)


def test_a_line_is_a_record_or_a_fault(tmp_path):
    kinds = [type(line).__name__ for line in read_lines(written(tmp_path / "log", [GOOD, "x"]), strict=False)]
    assert kinds == ["YahooRecord", "str"]


# generated records


@of_each("seed", range(20))
def test_generated_records_have_the_form_and_say_that_they_are_generated(seed):
    env = datasets.yahoo_like(seed=seed)
    assert env.arms.ids == tuple(f"generated-{arm}" for arm in range(200))
    assert (int(np.sum(env.means == 0.8)), int(np.sum(env.means == 0.3))) == (5, 195)
    assert env.arms.features.shape == (200, 35)
    assert datasets.yahoo_like(seed=seed, rank_tolerance=1e-4).arms.features.shape == (200, 25)
    assert env.noise == sp.SubGaussian(1.0)
    assert env == datasets.yahoo_like(seed=seed) != datasets.yahoo_like(seed=seed + 1)


@of_each("seed", range(20))
def test_which_arms_are_rewarding_is_no_linear_function_of_the_features(seed):
    env = datasets.yahoo_like(seed=seed)
    with_constant = np.column_stack([env.arms.features, np.ones(200)])
    fitted = with_constant @ np.linalg.lstsq(with_constant, env.means)[0]
    assert np.max(np.abs(fitted - env.means)) > 0.2  # of the .5 that lies between the two rewards


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_action_elimination_takes_as_long_as_on_the_real_log(seed):
    env = datasets.yahoo_like(seed=seed)
    policy = sp.make_policy(
        "action-elimination",
        env.arms,
        epsilon=0.1,
        delta=0.05,
        noise=env.noise,
        **sp.paper_settings("action-elimination"),
    )
    assert 5e4 < sp.simulate(policy, env, seed=seed).oracle_pulls < 3e5  # the paper: about 1.15e5


def test_names_lead_to_the_environments(shared_data, tmp_path):
    assert datasets.make_environment("yahoo-like", seed=2, num_arms=40) == datasets.yahoo_like(40, 2)
    (tmp_path / "yahoo_r6a").mkdir()
    path = written(tmp_path / "yahoo_r6a" / "day.gz", generated_lines(100))
    found = datasets.make_environment("yahoo-r6a", seed=2, data=tmp_path, num_arms=20)
    assert found == datasets.yahoo_r6a(path, 20, 2)
