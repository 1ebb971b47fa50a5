"""Bad input, each kind with its own error: its type, what was wrong, and what to do about it."""

import gzip
import json
import sys

import numpy as np
import pytest

import surepick as sp
from surepick.cli import main

NAN, INF = float("nan"), float("inf")
ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], ["a", "b", "c"])
NAMES = ("action-elimination", "certified-independent", "certified-linear", "fixed-linear", "linear-embedding", "rage")
LINEAR = ("certified-linear", "fixed-linear", "linear-embedding")


def make(name="action-elimination", arms=ARMS, **changes):
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": sp.Bernoulli()}
    if name in LINEAR:
        settings["norm_bound"] = 1.0
    return sp.make_policy(name, arms, **(settings | changes))


def open_study(**changes) -> sp.Study:
    study = sp.Study(ARMS, make(**changes))
    study.ask()
    return study


def refused(call, *words, kind=sp.InvalidInput):
    """The call is refused with an error of that kind, whose message has all the words."""
    with pytest.raises(kind) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message
    assert message.endswith(".")
    return message


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path."""

    def _write(content, name="table.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return _write


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command line on bad input: one message on standard error, nothing on standard output, exit code 2."""

    def _command(*arguments, says=()):
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        output, errors = capsys.readouterr()
        assert stop.value.code == 2
        assert output == ""
        assert errors.startswith("error: ")
        assert len(errors.splitlines()) == 1
        for word in says:
            assert word in errors

    return _command


TABLE = "id,x,y\na,1,0.5\nb,2,0.25\n"


@pytest.fixture
def run(command, write):
    """`surepick run` on a small sound table, with options changed to bad ones."""

    def _run(*options, says, content=TABLE):
        path = content if not isinstance(content, str | bytes) else write(content)
        given = {"--id": "id", "--reward": "y", "--noise": "bounded:0:1", "--epsilon": "0.1"}
        words = [word for name, value in given.items() if name not in options for word in (name, value)]
        command("run", path, *words, *options, says=says)

    return _run


def test_the_parents_of_the_errors():
    assert issubclass(sp.InvalidInput, ValueError)
    assert issubclass(sp.OutOfTurn, RuntimeError)
    for kind in (
        sp.InvalidInput,
        sp.OutOfTurn,
        sp.errors.ContractError,
        sp.errors.NotConverged,
        sp.StorageError,
        sp.errors.DatasetMissing,
    ):
        assert issubclass(kind, sp.SurepickError)


# arms


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_features_that_are_not_finite_name_their_rows(bad):
    features = np.ones((9, 2))
    features[[2, 5], [0, 1]] = bad
    refused(lambda: sp.Arms(features, list("abcdefghi")), "2 of 9 arms", "'c', 'f'", "Fill or drop these rows")


def test_many_bad_rows_are_not_all_listed():
    message = refused(lambda: sp.Arms(np.full((1000, 1), NAN)), "1000 of 1000", "and 995 more")
    assert len(message) < 300


@pytest.mark.parametrize(
    "call", [lambda: sp.Arms(np.empty((0, 3))), lambda: sp.Arms(ids=[]), lambda: sp.Arms(np.empty((0, 0)))]
)
def test_no_arm_at_all(call):
    refused(call, "no arm (K = 0)")


def test_neither_features_nor_ids():
    refused(sp.Arms, "features, or ids, or both")


@pytest.mark.parametrize("features", [[1.0, 2.0], 3.0, [[[1.0]]], []])
def test_features_of_another_shape(features):
    refused(lambda: sp.Arms(features), "have shape", "(K, D), one row an arm")


@pytest.mark.parametrize("features", [[["red"]], [[1, 2], [3]], [[None, 1, {}]]])
def test_features_that_are_not_numbers(features):
    refused(lambda: sp.Arms(features), "not a numeric (K, D) array")


def test_ids_repeated_in_memory():
    refused(lambda: sp.Arms(np.ones((3, 1)), ["x", "y", "x"]), "1 ids are repeated", "'x'", "must name one arm")


def test_ids_that_only_look_alike_as_text():
    refused(lambda: sp.Arms(np.ones((2, 1)), [1, "1"]), "'1'")


def test_as_many_ids_as_arms():
    refused(lambda: sp.Arms(np.ones((3, 1)), ["x"]), "1 ids for 3 arms", "one id per arm")


@pytest.mark.parametrize("name", NAMES)
def test_one_arm_is_not_bad_input(name):
    arms = sp.Arms([[2.0, 1.0]], ["only"])
    study = sp.Study(arms, make(name, arms))
    assert study.ask() is None
    answer = study.certificate()
    assert (answer.best_arm, answer.pulls, answer.verdict) == ("only", 0, "certified")
    assert "only one arm" in answer.reason


def test_one_arm_in_a_table(write, monkeypatch, capsys):
    path = write("id,y\nonly,0.5\nonly,0.7\n")
    words = ["run", str(path), "--id", "id", "--reward", "y", "--noise", "bounded:0:1", "--format", "json"]
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    answer = json.loads(capsys.readouterr().out)
    assert (stop.value.code or 0, answer["best_arm"], answer["pulls"], answer["verdict"]) == (0, "only", 0, "certified")


# settings


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, NAN, INF])
def test_epsilon_must_be_positive(name, epsilon):
    refused(lambda: make(name, epsilon=epsilon), f"epsilon is {epsilon!r}", "must be positive", "reward units")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 5, NAN])
def test_delta_must_be_a_probability(name, delta):
    refused(lambda: make(name, delta=delta), f"delta is {delta!r}", "strictly between 0 and 1")


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("norm_bound", [0.0, -2.0, NAN, INF])
def test_the_norm_bound_must_be_positive(name, norm_bound):
    refused(lambda: make(name, norm_bound=norm_bound), f"norm_bound is {norm_bound!r}", "must be positive")
    refused(lambda: sp.LinearEmbedding(ARMS.features, norm_bound=norm_bound), f"norm_bound is {norm_bound!r}")


@pytest.mark.parametrize("name", LINEAR)
def test_a_norm_bound_is_needed(name):
    refused(
        lambda: sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise=sp.Bernoulli()), "norm_bound", "largest norm"
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("gap_bound", [0.0, -1.0, NAN, INF])
def test_the_gap_bound_must_be_positive(name, gap_bound):
    refused(lambda: make(name, gap_bound=gap_bound), f"gap_bound is {gap_bound!r}", "largest possible gap")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes", [{"gap_bound": 0.1}, {"noise": sp.Bounded(3.0, 3.05)}])
def test_a_gap_bound_below_epsilon_is_an_answer(name, changes):
    study = sp.Study(ARMS, make(name, **changes))
    answer = study.certificate()
    assert study.ask() is None
    assert (answer.pulls, answer.verdict) == (0, "certified")
    assert "every arm is epsilon-best" in answer.reason
    assert len(answer.assumptions) == 1
    assert answer.certified_gap == pytest.approx(changes.get("gap_bound", 0.05))


def test_a_gap_bound_above_epsilon_is_none():
    assert sp.Study(ARMS, make(gap_bound=0.11)).certificate().verdict == "not-yet"


@pytest.mark.parametrize("slack", [0.0, 1.5, NAN])
def test_the_slack_must_be_a_share(slack):
    refused(lambda: make("rage", slack=slack), f"slack is {slack!r}", "(0, 1]")


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("schedule", "hasty", "'convergent'"),
        ("union", "none", "'best-pairs'"),
        ("bound", "tight", "'row-tail'"),
        ("floor", "sky", "'support'"),
        ("stopping", "soon", "'certified'"),
        ("dimension", "large", "'cheapest'"),
    ],
)
def test_a_choice_that_does_not_exist_lists_those_that_do(option, value, known):
    refused(lambda: make("linear-embedding", **{option: value}), f"{option} is {value!r}", "choose one of", known)


def test_looks_must_be_one_or_more():
    refused(lambda: make("linear-embedding", looks=0), "looks is 0", "at least once")


@pytest.mark.parametrize("growth", [0.0, -1.0, NAN, INF])
def test_the_growth_must_be_positive(growth):
    refused(lambda: make(growth=growth), f"growth is {growth!r}", "must be positive")


@pytest.mark.parametrize("dim", [0, 3, -1])
def test_a_dimension_beyond_the_rank(dim):
    refused(lambda: make("linear-embedding", dim=dim), f"dimension {dim}", "use 1 .. 2")


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_lists_the_known(name):
    refused(lambda: make(name, colour="red"), f"{name} has no option 'colour'", "it knows", "gap_bound")


def test_an_unknown_policy_lists_the_known():
    refused(lambda: make("thompson"), "no policy 'thompson'", *sp.policy_names())
    refused(lambda: sp.paper_settings("thompson"), "no policy 'thompson'", *sp.policy_names())


def test_a_matrix_is_not_arms():
    refused(lambda: make(arms=np.eye(3)), "arms is a ndarray", "Arms(features, ids)")


@pytest.mark.parametrize("name", ["rage", *LINEAR])
def test_arms_without_features_suit_only_policies_that_ignore_them(name):
    arms = sp.Arms(ids=["a", "b"])
    refused(lambda: make(name, arms), "feature")
    for ignoring in ("action-elimination", "certified-independent"):
        assert make(ignoring, arms).problem.num_arms == 2


def test_features_that_are_all_zero():
    refused(lambda: make("linear-embedding", sp.Arms(np.zeros((3, 2)))), "all features are zero")


# what is assumed of the rewards


@pytest.mark.parametrize("sigma", [0.0, -1.0, NAN, INF, (), (1.0, 0.0), ((1.0,),)])
def test_a_scale_must_be_positive(sigma):
    refused(lambda: sp.SubGaussian(sigma), f"sigma is {sigma!r}", "must be positive")


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.0), (0.0, 0.0), (NAN, 1.0), (0.0, INF)])
def test_bounds_must_be_in_order(low, high):
    refused(lambda: sp.Bounded(low, high), f"[{low!r}, {high!r}]", "low must be below high")


@pytest.mark.parametrize("name", NAMES)
def test_as_many_scales_as_arms(name):
    refused(lambda: make(name, noise=sp.SubGaussian((1.0, 2.0))), "2 scales for 3 arms", "one per arm")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gauss:1",
        "bernoulli:0.5",
        "bounded",
        "bounded:0",
        "bounded:0:1:2",
        "bounded:a:b",
        "subgaussian",
        "subgaussian:",
    ],
)
def test_a_noise_that_is_not_understood_shows_the_forms(text):
    refused(lambda: sp.parse_noise(text), repr(text), "bernoulli", "bounded:LOW:HIGH", "subgaussian:SIGMA")
    refused(lambda: make(noise=text), "is not understood")


@pytest.mark.parametrize("text", ["subgaussian:0", "subgaussian:nan", "bounded:1:0", "bounded:0:inf"])
def test_a_noise_that_is_understood_and_impossible_says_why(text):
    refused(lambda: sp.parse_noise(text), "finite")


# results


def test_tell_before_ask():
    study = sp.Study(ARMS, make())
    refused(lambda: study.tell(["a"], [1.0]), "nothing has been asked yet", "call ask() first", kind=sp.OutOfTurn)


@pytest.mark.parametrize("bad", [NAN, INF, -INF, None])
def test_rewards_that_are_not_finite(bad):
    study = open_study(noise=sp.SubGaussian(1.0))
    refused(lambda: study.tell(["a", "b"], [1.0, bad]), "1 rewards are not finite", "arm 'b'", "measure again")
    assert study.missing.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("noise", "reward"),
    [("bernoulli", 0.5), ("bernoulli", 2.0), ("bernoulli", -1.0), ("bounded:0:1", 1.0001), ("bounded:-1:0", 0.5)],
)
def test_rewards_outside_what_was_declared(noise, reward):
    study = open_study(noise=noise)
    refused(lambda: study.tell(["c"], [reward]), "outside what was declared", f"{reward:g} of arm 'c'", "declaration")
    assert study.missing.tolist() == [1, 1, 1]


@pytest.mark.parametrize("noise", ["bernoulli", "bounded:0:1"])
@pytest.mark.parametrize("total", [1.5, -0.5])
def test_totals_outside_what_was_declared(noise, total):
    study = open_study(noise=noise)
    refused(
        lambda: study.tell_totals(study.ids, [1, 1, 1], [0.0, 0.0, total]),
        "the totals of 1 arms are outside",
        "arm 'c'",
    )
    assert study.missing.tolist() == [1, 1, 1]


def test_the_ends_of_the_range_are_inside():
    study = open_study(noise=sp.Bounded(0.1, 0.3))
    study.tell(["a", "b"], [0.1, 0.3])
    study.tell_totals(study.ids, [0, 0, 3], [0.0, 0.0, 0.1 + 0.1 + 0.1])
    assert study.trace[0].pulls == 5


def test_rewards_of_arms_that_were_not_asked():
    study = sp.Study(ARMS, make(noise=sp.Bernoulli(), epsilon=0.01))
    while (plan := study.ask()).counts[1] > 0:
        study.tell_totals(study.ids, plan.counts, plan.counts * [1.0, 0.0, 1.0])  # b is ruled out, a and c are alike
    assert plan.counts[0] > 0
    before = study.missing
    refused(lambda: study.tell(["a", "b"], [1.0, 1.0]), "1 results", "did not ask for", "'b'")
    refused(lambda: study.tell_totals(study.ids, [0, 1, 0], [0.0, 1.0, 0.0]), "did not ask for", "'b'")
    np.testing.assert_array_equal(study.missing, before)


def test_rewards_of_arms_that_do_not_exist():
    refused(lambda: open_study().tell(["a", "zebra"], [1.0, 0.0]), "1 ids are not arms of this study", "'zebra'")


@pytest.mark.parametrize("rewards", [[1.0], [1.0, 0.0, 1.0], [[1.0], [0.0]], 1.0])
def test_as_many_rewards_as_ids(rewards):
    refused(lambda: open_study().tell(["a", "b"], rewards), "2 ids", "one reward per id")


@pytest.mark.parametrize("rewards", [["high", "low"], [1j, 0], [[1], [1, 2]], [{}, {}]])
def test_rewards_that_are_not_numbers(rewards):
    refused(lambda: open_study().tell(["a", "b"], rewards), "rewards are not numbers")


@pytest.mark.parametrize(
    ("counts", "sums", "squares", "words"),
    [
        ([1, 1], [0, 0], None, "counts has shape (2,)"),
        ([1, 1, 1], [0, 0], None, "sums has shape (2,)"),
        ([1, 1, 1], [0, 0, 0], [0], "squares has shape (1,)"),
        ([1, -1, 1], [0, 0, 0], None, "whole numbers"),
        ([1, 0.5, 1], [0, 0, 0], None, "whole numbers"),
        ([1, NAN, 1], [0, 0, 0], None, "counts of arm 'b' is nan"),
        ([1, 1, 1], [0, 0, INF], None, "sums of arm 'c' is inf"),
        ([1, 1, 1], [0, 0, 0], [NAN, 0, 0], "squares of arm 'a' is nan"),
        ([1, 0, 1], [0, 1, 0], None, "belong to no pull"),
        ([2, 2, 2], [2, 0, 0], [0.5, 0, 0], "squares smaller than their totals imply"),
        ("abc", [0, 0, 0], None, "counts are not numbers"),
    ],
)
def test_totals_that_cannot_be(counts, sums, squares, words):
    study = open_study(noise=sp.SubGaussian(1.0))
    refused(lambda: study.tell_totals(study.ids, counts, sums, squares), words)
    assert study.missing.tolist() == [1, 1, 1]


# the design


@pytest.mark.parametrize("tolerance", [0.0, -0.1, NAN])
def test_a_tolerance_must_be_positive(tolerance):
    refused(lambda: sp.solve_design(np.eye(3), tolerance=tolerance), f"tolerance is {tolerance!r}", "positive")


def test_features_of_a_design_must_be_finite():
    refused(lambda: sp.solve_design([[1.0, NAN], [0.0, 1.0]]), "NaN or infinite", "drop")


def test_too_few_pulls_to_round():
    refused(lambda: sp.round_design([0.5, 0.3, 0.2], 2), "2 pulls", "at least 3")


# tables


def test_a_byte_order_mark_is_no_part_of_a_name(write):
    arms = sp.read_arms(write(b"\xef\xbb\xbf" + TABLE.encode()), "id")
    assert (arms.ids, arms.columns) == (("a", "b"), ("x", "y"))


def test_a_byte_order_mark_on_the_command_line(write, monkeypatch, capsys):
    path = write(b"\xef\xbb\xbf" + TABLE.encode())
    words = ["run", path, "--id", "id", "--reward", "y", "--noise", "bounded:0:1", "--format", "json"]
    monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert json.loads(capsys.readouterr().out)["best_arm"] == "a"


@pytest.mark.parametrize("content", ["", "\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file(run, write, content):
    refused(lambda: sp.read_arms(write(content)), "table.csv is empty", "a header and at least one row")
    run(content=content, says=["table.csv is empty"])


def test_a_header_alone(run, write):
    refused(lambda: sp.read_arms(write("id,x,y\n")), "no rows", "id, x, y")
    run(content="id,x,y\n", says=["no rows"])


def test_a_missing_file(run, tmp_path):
    path = tmp_path / "nowhere.csv"
    refused(lambda: sp.read_arms(path), "there is no file", "nowhere.csv", "check the path")
    run(content=path, says=["there is no file", "nowhere.csv"])


def test_a_folder_that_is_not_olympus(run, tmp_path):
    refused(lambda: sp.read_arms(tmp_path), "a folder without data.csv and config.json", "give a file")
    run(content=tmp_path, says=["a folder without data.csv"])


def test_an_olympus_folder_without_its_data(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    refused(lambda: sp.read_arms(tmp_path), "without data.csv")


def test_an_olympus_folder_with_a_broken_description(tmp_path):
    (tmp_path / "data.csv").write_text("1,2\n")
    (tmp_path / "config.json").write_text('{"parameters": 3}')
    refused(lambda: sp.read_arms(tmp_path), "not an Olympus configuration", "default_goal")


def test_repeated_ids_in_a_table_of_arms(write, command):
    path = write("id,x\na,1\nb,2\na,1\n")
    refused(lambda: sp.read_arms(path, "id"), "1 ids are repeated", "'a'", "repeated measurements")
    command("design", path, "--id", "id", says=["1 ids are repeated", "'a'"])


def test_repeats_that_differ_in_a_feature(run):
    run(content="id,x,y\na,1,0\na,2,0\n", says=["rows of id 'a' differ in the feature 'x' (1 and 2)", "part of the id"])


def test_a_reward_column_that_is_not_numeric(run, write):
    content = "id,x,y\na,1,0.5\nb,2,good\nc,2,\n"
    call = lambda: sp.environments.table(write(content), "id", "y", noise=sp.Bounded(0, 1))  # noqa: E731
    refused(call, "column 'y' is not numeric", "2 of 3 cells", "row 3: 'good'", "Correct or drop")
    run(content=content, says=["column 'y' is not numeric", "row 3: 'good'"])


MISSED = ("1 of 2 rows miss a cell (row 3: '{}' is 'nan')", "--drop-missing")


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf"])
def test_recorded_rewards_that_are_not_finite(run, cell):
    says = ["1 rewards in column 'y'", "not finite", "rows 3", "Drop these"]
    says = [word.format("y") for word in MISSED] if cell == "nan" else says
    run(content=f"id,x,y\na,1,0.5\nb,2,{cell}\n", says=says)


@pytest.mark.parametrize("cell", ["nan", "inf"])
def test_recorded_features_that_are_not_finite(run, cell):
    says = ["1 of 2 arms have NaN or infinite features: 'b'"]
    says = [word.format("x") for word in MISSED] if cell == "nan" else says
    run(content=f"id,x,y\na,1,0.5\nb,{cell},0.5\n", says=says)


def test_recorded_rewards_outside_what_was_declared(run):
    run(content="id,y\na,0.5\nb,7\n", says=["row 3: the reward 7 lies outside [0, 1]", "subgaussian:SIGMA"])
    run("--noise", "bernoulli", says=["row 2: the reward 0.5 is neither 0 nor 1"])


@pytest.mark.parametrize("option", ["--standardize", "--intercept"])
def test_a_constant_feature_column(run, write, option):
    content = "id,x,z,y\na,1,4,0\nb,2,4,1\n"
    flag = {option.removeprefix("--"): True}
    refused(
        lambda: sp.read_arms(write(content), "id", "x,z", **flag), "'z' is constant (4 for every arm)", "Leave it out"
    )
    run(option, content=content, says=["the feature column 'z' is constant (4 for every arm)"])


def test_missing_columns_are_answered_with_those_that_are_there(run, write):
    for option, name in (("--id", "sku"), ("--reward", "gain"), ("--features", "x,weight")):
        run(option, name, says=[f"has no column {name.rpartition(',')[2]!r}; it has 'id', 'x', 'y'"])
    refused(lambda: sp.read_arms(write(TABLE), "sku"), "has no column 'sku'", "'id', 'x', 'y'")


def test_the_reward_must_be_named(command, write):
    command(
        "run", write(TABLE), "--noise", "bernoulli", says=["which column of", "holds the rewards", "'id', 'x', 'y'"]
    )


def test_rows_of_unequal_length(run):
    run(content="id,x,y\na,1,0\nb,2\n", says=["line 3: 2 cells where 3 columns were expected"])


def test_bytes_that_are_no_text(run):
    run(content=b"id,x,y\na,1,\xff\n", says=["not UTF-8 text: byte 0xff in line 2"])


def test_a_file_that_is_not_what_its_name_says(run, write):
    run(content=write(b"not gzip", "t.csv.gz"), says=["not a complete gzip file"])
    run(content=write(gzip.compress(TABLE.encode())[:-9], "t.csv.gz"), says=["not a complete gzip file"])
    run(content=write("not json", "t.jsonl"), says=["line 1: not JSON"])


# options of the command line


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--epsilon", "0"), ["epsilon is 0.0", "must be positive"]),
        (("--epsilon", "nan"), ["epsilon is nan"]),
        (("--delta", "1"), ["delta is 1.0", "strictly between 0 and 1"]),
        (("--noise", "gauss:1"), ["noise 'gauss:1' is not understood", "bernoulli", "bounded:LOW:HIGH"]),
        (("--noise", ""), ["--noise", "bernoulli, bounded:LOW:HIGH, or subgaussian:SIGMA"]),
        (("--noise", "subgaussian:1,2,3"), ["3 scales for 2 arms"]),
        (("--policy", "thompson"), ["there is no policy 'thompson'", "action-elimination"]),
        (("--policy", "linear-embedding"), ["needs norm_bound"]),
        (("--norm-bound", "-1"), ["norm_bound is -1.0"]),
        (("--gap-bound", "0"), ["gap_bound is 0.0"]),
        (("--policy", "rage", "--norm-bound", "1"), ["--norm-bound has no meaning for rage"]),
        (("--id", "x,x"), ["columns 'x,x'", "each of them once"]),
    ],
)
def test_options_without_a_meaning(run, options, says):
    run(*options, says=says)


def test_a_design_without_features(command, write):
    command("design", write("id,kind\na,red\nb,blue\n"), "--id", "id", says=["no feature column", "--features"])


def test_a_design_with_a_tolerance_of_nothing(command, write):
    command("design", write(TABLE), "--id", "id", "--tolerance", "0", says=["tolerance is 0.0"])


# known faults: each mark falls with the fault


def test_a_total_that_no_rewards_of_zero_and_one_have():
    study = open_study(noise=sp.Bernoulli())
    refused(lambda: study.tell_totals(study.ids, [2, 1, 1], [0.7, 0.0, 0.0]), "'a'")


def test_one_id_without_brackets():
    study = open_study()
    refused(lambda: study.tell("ab", [1.0, 0.0]), "'ab'")


def test_complex_features():
    refused(lambda: sp.Arms(np.array([[1j]])), "not a numeric")


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": "0.1"},
        {"epsilon": None},
        {"delta": "5%"},
        {"norm_bound": "1"},
        {"gap_bound": "1"},
        {"noise": 0.5},
        {"noise": None},
        {"noise": sp.Bernoulli},
        {"looks": NAN},
        {"looks": 1.5},
        {"tolerance": NAN},
        {"dim": 1.5},
    ],
    ids=str,
)
def test_settings_of_another_type(changes):
    refused(lambda: make("linear-embedding", **changes), next(iter(changes)))


@pytest.mark.parametrize("call", [lambda: sp.SubGaussian("loud"), lambda: sp.Bounded("a", "b")])
def test_a_noise_of_text(call):
    refused(call, "must be a number")


def test_arms_and_policy_exchanged():
    refused(lambda: sp.Study(make(), ARMS), "Study(arms, policy)")
