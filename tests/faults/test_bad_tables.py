"""Bad tables and options on the command line: one sentence that says what was wrong, and what to do about it."""

import gzip
import json
import sys

import pytest
from refusals import refused

import surepick as sp
from surepick.cli import main

TABLE = "id,x,y\na,1,0.5\nb,2,0.25\n"
BY_FEATURES = ("--policy", "certified-linear", "--norm-bound", "3")  # else no column of features is looked at


@pytest.fixture
def run(command, write):
    """`surepick run` on a small sound table, with options changed to bad ones."""

    def _run(*options, says, content=TABLE):
        path = content if not isinstance(content, str | bytes) else write(content, "table.csv")
        given = {"--id": "id", "--reward": "y", "--noise": "bounded:0:1", "--epsilon": "0.1"}
        words = [word for name, value in given.items() if name not in options for word in (name, value)]
        command("run", path, *words, *options, says=says)

    return _run


def test_a_byte_order_mark_is_no_part_of_a_name(write):
    arms = sp.read_arms(write(b"\xef\xbb\xbf" + TABLE.encode()), "id")
    assert (arms.ids, arms.columns) == (("a", "b"), ("x", "y"))


def test_a_byte_order_mark_on_the_command_line(write, monkeypatch, capsys):
    path = write(b"\xef\xbb\xbf" + TABLE.encode())
    words = [
        "run",
        path,
        "--id",
        "id",
        "--reward",
        "y",
        "--noise",
        "bounded:0:1",
        "--epsilon",
        "0.1",
        "--format",
        "json",
    ]
    monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    assert not stop.value.code
    assert json.loads(capsys.readouterr().out)["best_arm"] == "a"


@pytest.mark.parametrize("content", ["", "\n \n", b"\xef\xbb\xbf"])
def test_an_empty_file(run, write, content):
    refused(lambda: sp.read_arms(write(content, "table.csv")), "table.csv is empty", "a header and at least one row")
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
    says = ["rows of id 'a' differ in the feature 'x' (1 and 2)", "part of the id"]
    run(*BY_FEATURES, content="id,x,y\na,1,0\na,2,0\n", says=says)


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
    run(*BY_FEATURES, content=f"id,x,y\na,1,0.5\nb,{cell},0.5\n", says=says)


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
    run(*BY_FEATURES, option, content=content, says=["the feature column 'z' is constant (4 for every arm)"])


def test_missing_columns_are_answered_with_those_that_are_there(run, write):
    for option, name in (("--id", "sku"), ("--reward", "gain"), ("--features", "x,weight")):
        run(option, name, says=[f"has no column {name.rpartition(',')[2]!r}; it has 'id', 'x', 'y'"])
    assert sp.read_arms(write(TABLE), "id", iter(["x"])).columns == ("x",)
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
        (("--noise", ""), ["no two measured values that differ", "--noise subgaussian:SIGMA"]),
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
