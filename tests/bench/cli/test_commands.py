"""`surepick bench`: run, summary, grid and figures, as somebody who types them sees them."""

import json
import re

import pytest
from together import of_each
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app
from surepick_bench.commands import number
from surepick_bench.results import read_results

RUN = [
    "bench",
    "run",
    "high-dimensional",
    "--policies",
    "linear-embedding,certified-linear",
    "--runs",
    "1",
    "--jobs",
    "1",
]


def typed(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("bench") / "r.parquet"
    answer = typed(*RUN, "--out", out)
    assert answer.exit_code == 0, answer.output
    return out, answer


def test_run_tells_what_it_did(results):
    out, answer = results
    assert "high-dimensional: the paper's example" in answer.stderr
    assert "8 of 8 replicates" in answer.stderr
    assert f"Replicates: {out}" in answer.stdout
    assert len(read_results(out).replicates) == 8


def test_own_stop_and_oracle_are_told_apart(results):
    _, answer = results
    own, oracle = answer.stdout.split("ORACLE: ")
    assert "own stop: pulls until the policy stopped by itself, which is what a user pays" in own
    assert "needs the truth, so that nobody can stop there" in oracle
    assert "certified-linear" in own
    assert "certified-linear" not in oracle.partition("rounds: ")[0]


def test_running_again_runs_nothing(results):
    out, _ = results
    before = out.read_bytes()
    again = typed(*RUN, "--out", out)
    assert again.exit_code == 0
    assert "replicates," not in again.stderr
    assert out.read_bytes() == before


def test_summary_is_the_same_table(results):
    out, answer = results
    again = typed("bench", "summary", out)
    assert again.exit_code == 0
    assert again.stdout.strip() in answer.stdout


def test_the_json_summary_lists_what_needs_the_truth(results):
    out, _ = results
    answer = json.loads(typed("bench", "summary", out, "--format", "json").stdout)
    assert {"oracle", "reached", "best_eliminated", "reference"} <= set(answer["needs_the_truth"])
    cell = answer["cells"][0]
    assert (cell["environment"], cell["policy"], cell["runs"]) == ("D=5", "linear-embedding", 1)
    assert cell["own"]["mean"] > 0


def test_generated_data_are_announced(tmp_path):
    answer = typed(
        "bench",
        "run",
        "yahoo-like",
        "--policies",
        "means-neural-rule",
        "--runs",
        1,
        "--jobs",
        1,
        "--out",
        tmp_path / "y.parquet",
    )
    assert answer.exit_code == 0, answer.output
    assert "Generated data: the records are random numbers" in answer.stdout


def test_a_smoke_test_says_what_every_budget_ended(tmp_path):
    out = tmp_path / "s.parquet"
    described = {
        "name": "mine",
        "environments": [{"label": "s", "name": "soare", "options": {"dim": 3, "angle": 0.1}}],
        "policies": [
            {"label": "slow", "name": "lucb"},
            {"label": "halving", "name": "sequential-halving", "options": {"budget": 100}},
        ],
        "gap_share": 1e-6,
    }
    (tmp_path / "mine.json").write_text(json.dumps(described))
    words = ["bench", "run", tmp_path / "mine.json", "--runs", 7, "--smoke", "--jobs", 1, "--out", out]
    answer = typed(*words)
    assert answer.exit_code == 0, answer.output
    own = answer.stdout.partition("ORACLE")[0]
    slow, halving = (next(line for line in own.splitlines() if name in line) for name in ("slow", "halving"))
    assert re.search(r"proved +(budget-exhausted|out of time) +0 of 1 .*> \S+", slow)
    assert "heuristic" in halving
    assert ">" not in halving
    assert {row["seed"] for row in read_results(out).replicates} == {0}


def test_runs_that_are_out_of_time_are_told_from_those_out_of_pulls(results):
    from dataclasses import replace

    from surepick_bench.commands import own_row
    from surepick_bench.summary import AtLeast, share, summarize

    (cell, *_) = summarize(read_results(results[0]))
    mixed = {"certified": 1, "budget-exhausted": 3}
    shown = own_row(
        replace(
            cell,
            runs=4,
            verdicts=mixed,
            cut={"seconds": 2, "pulls": 1},
            median_of_all=AtLeast(25_000.0, exact=False),
            proved=share(3, 4),
        )
    )
    assert shown["verdict"] == "1 certified, 1 budget-exhausted, 2 out of time"
    assert (shown["median of all"], shown["stop"]) == ("> 25k", "3 of 4 proved")
    assert own_row(replace(cell, median_of_all=AtLeast(25_000.0, exact=True)))["median of all"] == "25k"


def test_failures_are_reported(tmp_path, monkeypatch):
    from surepick_bench import results as replicate

    def broken(*_args, **_options):
        raise ArithmeticError("no luck")

    monkeypatch.setattr(replicate, "simulate", broken)
    answer = typed(*RUN, "--out", tmp_path / "r.parquet")
    assert answer.exit_code == 1
    assert "8 of 8 replicates failed; they count as not right, and the same command tries them again:" in answer.stderr
    assert "ArithmeticError: no luck" in answer.stderr
    assert "and 3 more" in answer.stderr
    assert "0/1 (0%-98%)" in answer.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "paper-cubic"], "there is no experiment 'paper-cubic'"),
        (["run", "peers", "--policies", "lacb"], "no policy 'lacb'"),
        (["run", "peers", "--out", "r.csv"], "written as NAME.parquet"),
        (["summary", "absent.parquet"], "there is no file absent.parquet"),
        (["figures", "absent.parquet"], "there is no file absent.parquet"),
        (["grid", "mnist"], "whose constants? Give --policy with one of fixed-linear"),
        (["grid", "mnist", "--policy", "rage"], "rage has none of the constants"),
        (["grid", "paper-linear", "--policy", "linear-embedding", "--environment", "K=3"], "no environment 'K=3'"),
        (
            ["grid", "paper-linear", "--policy", "certified-neural", "--environment", "K=250, D=25"],
            "no environment 'K=",
        ),
        (["grid", "paper", "--policy", "rage"], "paper stands for five experiments"),
        (["grid", "mnist", "--policy", "fixed-linear", "--norm-bounds", "nan"], "'nan' is not a list of numbers"),
        (["grid", "mnist", "--policy", "fixed-linear", "--norm-bounds", ","], "',' is not a list of numbers"),
        (["run", "peers", "--runs", "1", "--jobs", "0"], "jobs is 0"),
        (["grid", "mnist", "--policy", "fixed-linear", "--norm-bounds", "a"], "'a' is not a list of numbers"),
        (["run", "soare"], "there is no experiment 'soare'"),
    ],
)
def test_bad_input(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    answer = typed("bench", *words)
    assert isinstance(answer.exception, sp.InvalidInput)
    assert message in str(answer.exception)
    assert not list(tmp_path.iterdir())


def test_another_table_is_refused(tmp_path):
    from surepick.tables import write_table

    write_table(tmp_path / "t.parquet", {"a": [1.0]})
    answer = typed("bench", "summary", tmp_path / "t.parquet")
    assert "no column 'key'" in str(answer.exception)


def test_missing_data_tell_where_to_get_them(tmp_path):
    options = ["--policies", "rage", "--data", tmp_path, "--runs", 1, "--jobs", 1, "--out", tmp_path / "m.parquet"]
    answer = typed("bench", "run", "mnist", *options)
    assert "t10k-images-idx3-ubyte.gz" in str(answer.exception)


def test_the_grid_says_that_it_uses_the_truth(tmp_path):
    out = tmp_path / "g.parquet"
    answer = typed(
        *("bench", "grid", "high-dimensional", "--policy", "linear-embedding", "--environment", "D=10"),
        *("--norm-bounds", "1e-5,1", "--runs", 2, "--jobs", 1, "--out", out),
    )
    assert answer.exit_code == 0, answer.output
    assert "THIS SEARCH USES THE TRUTH" in answer.stdout
    assert "THIS SEARCH USES THE TRUTH" in answer.stderr
    best, worst = re.findall(r"linear-embedding norm_bound=(\S+)", answer.stdout)
    assert (best, worst) == ("1", "1e-05")
    again = typed(
        *("bench", "grid", "high-dimensional", "--policy", "linear-embedding", "--environment", "D=10"),
        *("--norm-bounds", "1e-5,1", "--runs", 2, "--jobs", 1, "--out", out, "--format", "json"),
    )
    assert json.loads(again.stdout)["uses_the_truth"] is True


@of_each(
    ("value", "text"),
    [
        (None, ""),
        (0, "0"),
        (53.4, "53"),
        (3215, "3,215"),
        (9999, "9,999"),
        (10_000, "10k"),
        (60_231, "60.2k"),
        (999_600, "1M"),
        (2_883_000, "2.88M"),
        (12_345_678, "12.3M"),
    ],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_labels_are_printed_as_they_are(tmp_path):
    """Square brackets are no markup, dollars no formula."""
    described = {
        "name": "mine [/b]",
        "environments": [{"label": "s [bold]", "name": "soare", "options": {"dim": 3, "angle": 0.6}}],
        "policies": [
            {"label": label, "name": "action-elimination", "options": {"growth": growth}}
            for label, growth in (("a [fast]", 0.5), ("a [slow]", 0.3), ("$\\foo$", 0.4))
        ],
        "epsilon": 0.5,
    }
    (tmp_path / "mine.json").write_text(json.dumps(described))
    out = tmp_path / "r.parquet"
    answer = typed("bench", "run", tmp_path / "mine.json", "--runs", 1, "--jobs", 1, "--out", out)
    assert answer.exit_code == 0, answer.output
    for text in ("mine [/b]", "s [bold]", "a [fast]", "a [slow]", "$\\foo$"):
        assert text in answer.stdout
    assert typed("bench", "figures", out, "--out", tmp_path / "figures").exit_code == 0


def test_the_grid_keeps_the_settings_of_its_experiment(tmp_path):
    described = {
        "name": "mine",
        "environments": [{"label": "s", "name": "soare", "options": {"dim": 3, "angle": 0.6}}],
        "policies": [{"label": "p", "name": "certified-linear", "options": {"norm_bound": 9.0}}],
        "epsilon": 0.5,
        "delta": 0.2,
        "max_pulls": 1234,
    }
    (tmp_path / "mine.json").write_text(json.dumps(described))
    out = tmp_path / "g.parquet"
    words = ["bench", "grid", tmp_path / "mine.json", "--policy", "p", "--norm-bounds", "2,2,2.0000001"]
    answer = typed(*words, "--runs", 1, "--jobs", 1, "--out", out)
    assert answer.exit_code == 0, answer.output
    rows = read_results(out).replicates
    assert {(row["epsilon"], row["delta"], row["max_pulls"]) for row in rows} == {(0.5, 0.2, 1234)}
    assert sorted(row["policy"] for row in rows) == ["p norm_bound=2", "p norm_bound=2.0000001"]
