"""`surepick forecast` prints a table that a newcomer can act on, and the same as JSON."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app
from surepick.cli.tables import in_files
from surepick.environments import table as read_table
from surepick.environments.environment import quieter_records
from surepick.environments.rewards import law_of
from surepick.errors import InvalidInput
from surepick.simulation import simulate

ROW = {"name", "policy", "options", "spec", "worst", "guess", "warnings", "believable", "refusal"}
FORECAST = {
    "rounds",
    "total",
    "lowest",
    "highest",
    "batches",
    "fewest_batches",
    "most_batches",
    "rehearsals",
    "guess",
    "uniform",
    "guess_norm",
    "warnings",
}
ROUND = {"round", "dim", "value", "misspecification", "bias", "accuracy", "pulls", "total", "active", "reached"}


def surepick(*arguments) -> tuple[int, str, str]:
    words = ["forecast", *map(str, arguments)]
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def answer(*arguments) -> dict:
    code, output, _ = surepick(*arguments, "--format", "json")
    assert code == 0
    return json.loads(output)


@pytest.fixture
def table(tmp_path) -> Path:
    path = tmp_path / "paint.csv"
    path.write_text("colour,red,blue,gloss\na,1,0,0.1\na,1,0,0.2\nb,0,1,0.5\nb,0,1,0.4\nc,1,1,0.9\nc,1,1,1.0\n")
    return path


OPTIONS = ("--id", "colour", "--noise", "subgaussian:0.3", "--epsilon", 0.6)


def test_a_table_with_rewards_has_a_guess(table):
    found = answer(table, *OPTIONS, "--reward", "gloss", "--norm-bound", "1.5,3", "--rehearsals", 4)
    assert [row["name"] for row in found["rows"]] == [
        "certified-linear norm_bound=1.5",
        "certified-linear norm_bound=3",
        "certified-independent",
    ]
    assert found["num_arms"] == 3
    assert found["uniform_pulls"] > 0
    for row in found["rows"]:
        assert row.keys() == ROW
        assert row["worst"].keys() >= FORECAST
        assert row["guess"].keys() >= FORECAST
        assert row["worst"]["rounds"][0].keys() == ROUND
        assert 0 < row["guess"]["total"] <= row["worst"]["total"]
        policy = sp.make_policy(arms=sp.read_arms(table, id=None, features="red,blue"), **row["spec"])
        assert policy.problem.epsilon == 0.6
    assert any(row["name"] in found["advice"] for row in found["rows"])


def test_sizes_of_batches_are_compared(table):
    words = (*OPTIONS, "--reward", "gloss", "--policy", "certified-independent", "--batch-size", "4,8")
    rows = answer(table, *words)["rows"]
    assert [row["name"] for row in rows] == [f"certified-independent batch_size={size}" for size in (4, 8)]
    for row, size in zip(rows, (4, 8), strict=True):
        assert row["guess"]["lowest"] == size * row["guess"]["fewest_batches"]
    output = surepick(table, *words)[1]
    assert output.count("batches") == 2  # the header, and the advice
    for wrong, said in (
        (("--policy", "lucb", "--batch-size", 4), "--batch-size has no meaning for lucb; leave it out"),
        (("--batch-size", "many"), "give a whole number"),
    ):
        with pytest.raises(InvalidInput, match=said):
            surepick(table, *OPTIONS, "--reward", "gloss", *wrong)


def test_without_rewards_there_is_the_worst_case_only(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("sku,weight,size\nx,1,2\ny,2,1\nz,1,1\n")
    found = answer(path, "--id", "sku", "--noise", "bernoulli", "--epsilon", 0.6, "--norm-bound", 1)
    assert all(row["guess"] is None and row["worst"]["total"] > 0 for row in found["rows"])
    code, output, _ = surepick(path, "--id", "sku", "--noise", "bernoulli", "--epsilon", 0.6)
    assert code == 0
    assert "at worst" in output
    assert "guess" not in output


def test_the_table_fits_and_its_notes_are_explained():
    code, output, errors = surepick(
        "two-clusters", "--epsilon", 0.3, "--norm-bound", "1e-6,1", "--policy", "linear-embedding"
    )
    assert (code, errors) == (0, "")
    lines = output.splitlines()
    rows = [line for line in lines if re.match(r" ?(linear-embedding|uniform sampling)", line)]
    assert len(rows) == 3
    assert all(len(line.rstrip()) <= 80 for line in rows)
    used = {number for line in rows for number in re.split(r"\d,\d+|\s{3,}", line)[-1].split() if number.isdigit()}
    explained = {match[1] for match in (re.match(r"\[(\d+)\] ", line) for line in lines) if match}
    assert explained
    assert used - {"1e-06", "1"} <= explained
    assert "no two candidates differ by more than" in output
    assert "Cheapest credible option: linear-embedding norm_bound=1." in output
    assert "give the smallest that you are sure of" in output


def test_a_built_in_example_brings_its_noise_its_norm_and_its_truth():
    found = answer("two-clusters", "--epsilon", 0.9, "--rehearsals", 1)
    assert found["noise"] == "bernoulli"
    assert found["num_arms"] == 250
    assert [row["options"] for row in found["rows"]] == [{"norm_bound": 1.0}, {}]
    assert found["rows"][0]["guess"]["guess_norm"] == pytest.approx(0.8**0.5, rel=1e-3)


def test_a_policy_without_room_is_a_row_and_not_the_end(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("sku,weight,size\nx,1,2\ny,2,1\nz,1,1\n")
    found = answer(
        path, "--id", "sku", "--noise", "subgaussian:1e9", "--epsilon", 1e-6, "--policy", "action-elimination,rage"
    )
    refused = found["rows"][1]
    assert refused["worst"] is None
    assert "epsilon is too small" in refused["refusal"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--noise"),
        (("--noise", "bounded:0:1", "--norm-bound", "1,x"), "--norm-bound"),
        (("--noise", "bounded:0:1", "--gamma", "1"), "--norm-bound"),
        (("--noise", "bounded:0:1", "--policy", "rage", "--norm-bound", "1"), "--norm-bound has no meaning"),
        (("--noise", "bounded:0:1", "--policy", "rage,nonsense"), "no policy 'nonsense'"),
        (("--noise", "loud"), "not understood"),
        (("--noise", "normal"), "--assume-scale SIGMA"),
    ],
)
def test_bad_input_is_named(table, arguments, words):
    with pytest.raises(sp.InvalidInput, match=words):
        surepick(table, "--id", "colour", "--reward", "gloss", *arguments)


def test_options_of_tables_mean_nothing_to_a_built_in_example():
    with pytest.raises(sp.InvalidInput, match="built-in example"):
        surepick("digits", "--id", "sku")


def test_a_figure_needs_its_extra(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(sp.InvalidInput, match=r"pip install \"surepick\[reports\]\""):
        surepick(table, *OPTIONS, "--reward", "gloss", "--rehearsals", 1, "--figure", tmp_path / "cost.png")


def test_a_figure_is_drawn(table, tmp_path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "cost.png"
    words = (*OPTIONS, "--reward", "gloss", "--norm-bound", 2, "--rehearsals", 1, "--figure")
    code, _, _ = surepick(table, *words, path)
    assert code == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    with pytest.raises(sp.InvalidInput, match="cannot be written"):
        surepick(table, *words, tmp_path / "cost.nonsense")


def rows(spread: float) -> str:
    """Two repeats of each of 30 candidates, `spread` above and below their mean."""
    means = [0.02 * number for number in range(30)]
    return "id,y\n" + "".join(f"{n},{m + spread}\n{n},{m - spread}\n" for n, m in enumerate(means))


@pytest.mark.parametrize(
    ("noise", "spread", "noted"),
    [
        pytest.param("subgaussian:0.5", 0.0, True, marks=pytest.mark.slow),
        ("subgaussian:0.5", 0.34, True),
        ("subgaussian:0.5", 0.36, False),
    ],
)
def test_a_guess_says_where_the_table_varies_less_than_the_noise_that_it_simulates(tmp_path, noise, spread, noted):
    path = tmp_path / "quiet.csv"
    path.write_text(rows(spread))
    words = ("--id", "id", "--reward", "y", "--noise", noise, "--epsilon", 0.5, "--rehearsals", 1)
    words += ("--policy", "certified-independent")
    code, _, heard = surepick(path, *words)
    assert code == 0
    assert ("declared noise (standard deviation 0.5)" in heard) == noted
    assert (f"vary by {spread:.3g}." in heard) == noted


def test_the_largest_noise_scale_is_compared_too(tmp_path):
    path = tmp_path / "quiet.csv"
    path.write_text(rows(0.3))
    found = quieter_records(sp.environments.table(path, id="id", reward="y", noise=sp.SubGaussian(1e100)))
    assert "vary by 0.3." in found[0]


def test_rewards_of_a_range_are_simulated_as_wide_as_they_can_be(tmp_path):
    path = tmp_path / "clicks.csv"
    path.write_text("id,y\n" + "a,0\na,1\nb,1\nb,1\nb,0\n")
    options = ("--id", "id", "--reward", "y", "--epsilon", 0.4, "--rehearsals", 1, "--noise")
    assert "declared noise" not in surepick(path, *options, "bernoulli")[2]
    path.write_text("id,y\n" + "a,0.5\nb,0.6\n")
    assert "declared noise (standard deviation 0.495)" in surepick(path, *options, "bounded:0:1")[2]


def test_a_guess_is_what_a_study_with_the_declared_noise_spends(tmp_path):
    """The reason in the note: with drawn noise the study costs what the guess says; on the bare table it is cheaper."""
    path = tmp_path / "quiet.csv"
    path.write_text(rows(0.0))
    noise = sp.SubGaussian(0.5)
    recorded = read_table(path, id="id", reward="y", noise=noise)
    policy = sp.make_policy("certified-independent", recorded.arms, epsilon=0.2, delta=0.05, noise=noise)
    noisy = replace(recorded, law=law_of(recorded.means, noise))
    guess = sp.forecast(policy, recorded.means, rehearsals=4).total
    spent = np.mean([simulate(policy, noisy, seed=seed).pulls for seed in range(4)])
    assert 0.7 * spent < guess < 1.4 * spent
    assert simulate(policy, recorded).pulls < 0.7 * guess


def test_an_olympus_folder_is_one_table_and_no_list_in_files(shared_data, tmp_path):
    assert not in_files(str(shared_data / "olympus" / "photo_wf3"))
    assert in_files(str(tmp_path))
