"""`surepick tune` prints a choice that can be pasted into the next command, and the same as JSON."""

import json
import shlex

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app

KEYS = {
    "gamma",
    "plausible",
    "silent",
    "norm_estimate",
    "norm_of_fit",
    "criterion",
    "scores",
    "pilot_pulls",
    "pilot_candidates",
    "sentence",
    "warnings",
    "command",
}


def surepick(*arguments) -> tuple[int, str, str]:
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(
        app, [str(argument) for argument in arguments], catch_exceptions=False
    )
    return result.exit_code, result.stdout, result.stderr


def answer(*arguments) -> dict:
    code, output, _ = surepick("tune", *arguments, "--format", "json")
    assert code == 0
    return json.loads(output)


@pytest.fixture
def table(tmp_path):
    """60 candidates on a line, six noisy records of each, in a file whose name needs quotes."""
    rng = np.random.default_rng(0)
    path = tmp_path / "my paint.csv"
    lines = [f"{arm},{arm / 60},{np.sin(arm / 10) + 0.2 * rng.normal()}" for arm in range(60) for _ in range(6)]
    path.write_text("\n".join(["sku,share,gloss", *lines]) + "\n")
    return path


OPTIONS = ("--id", "sku", "--reward", "gloss", "--noise", "subgaussian:0.3")


def test_the_choice_as_json(table):
    found = answer(table, *OPTIONS, "--pulls", 100)
    assert found.keys() == KEYS
    assert (found["pilot_pulls"], found["pilot_candidates"]) == (100, 50)
    assert found["plausible"][0] <= found["gamma"] <= found["plausible"][1]
    assert 0 < found["norm_of_fit"] < found["norm_estimate"]
    best = max(found["scores"], key=lambda row: row["score"])
    assert best["gamma"] == found["gamma"]
    assert found["silent"] is False


def test_the_command_can_be_pasted(table):
    """It is quoted, keeps the options, and runs to a right answer that claims no theorem: its norm is an estimate."""
    found = answer(table, *OPTIONS, "--pulls", 100, "--features", "share")
    words = shlex.split(found["command"])
    assert words[:3] == ["surepick", "run", str(table)]
    assert words[-4:] == ["--gamma", f"{found['gamma']:.4g}", "--norm-estimate", f"{found['norm_estimate']:.4g}"]
    assert "--features" in words
    code, output, _ = surepick(*words[1:], "--epsilon", 0.5, "--format", "json")
    run = json.loads(output)
    assert code == 3
    assert (run["verdict"], run["success"]) == ("heuristic", True)
    assert "The norm bound was estimated" in run["reason"]


def test_flags_are_kept(table):
    words = shlex.split(answer(table, *OPTIONS, "--minimize", "--standardize", "--intercept")["command"])
    assert {"--minimize", "--standardize", "--intercept"} <= set(words)
    assert not {"--minimize", "--standardize", "--intercept"} & set(answer(table, *OPTIONS)["command"].split())


def test_the_text_says_what_the_numbers_are_worth(table):
    code, output, errors = surepick("tune", table, *OPTIONS, "--pulls", 100)
    assert (code, errors) == (0, "")
    assert "Pilot: 100 measurements on 50 of 60 candidates, 1 features." in output
    assert "chosen" in output
    assert "The norm is an estimate, not a bound" in output
    assert "heuristic unless you can vouch for it" in output
    assert "The pilot's measurements are extra" in output
    found = answer(table, *OPTIONS, "--pulls", 100)
    assert output.rstrip().endswith(found["command"])
    rows = output[output.index("gamma ") : output.index("Compared by")].splitlines()
    assert 5 <= len([row for row in rows if row.strip()]) <= 14
    assert all(len(row) <= 80 for row in rows)


def test_the_seed_decides_the_pilot(table):
    first, again, other = (answer(table, *OPTIONS, "--seed", seed) for seed in (1, 1, 2))
    assert first == again
    assert first["scores"] != other["scores"]


def test_the_criterion_is_a_choice(table):
    left_out = answer(table, *OPTIONS, "--criterion", "cross-validation")
    assert left_out["criterion"] == "cross-validation"
    assert left_out["scores"] != answer(table, *OPTIONS)["scores"]


def test_a_built_in_example_brings_its_noise():
    found = answer("two-clusters", "--pulls", 100, "--seed", 3)
    words = shlex.split(found["command"])
    assert words[:3] == ["surepick", "forecast", "two-clusters"]
    assert words[words.index("--seed") + 1] == "3"  # the same example
    assert found["pilot_candidates"] == 50


def test_one_record_per_candidate_is_noted(tmp_path):
    path = tmp_path / "once.csv"
    path.write_text("sku,x,y\n" + "".join(f"{arm},{arm},{arm % 7}\n" for arm in range(20)))
    found = answer(path, "--id", "sku", "--reward", "y", "--noise", "subgaussian:1")
    assert any("one measured value" in warning for warning in found["warnings"])


def test_without_signal_there_is_no_command(tmp_path):
    path = tmp_path / "zero.csv"
    path.write_text("sku,x,y\n" + "".join(f"{arm},{arm},0\n{arm},{arm},0\n" for arm in range(20)))
    found = answer(path, "--id", "sku", "--reward", "y", "--noise", "subgaussian:1")
    assert found["command"] is None
    assert found["norm_estimate"] == 0.0
    assert found["silent"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--id", "sku", "--reward", "gloss"), "--noise"),
        ((*OPTIONS, "--pulls", "6", "--features", "gloss,sku2"), "sku2"),
        (("--id", "sku", "--reward", "shine", "--noise", "bernoulli"), "shine"),
        (("--id", "sku", "--reward", "gloss", "--noise", "loud"), "not understood"),
        (("--id", "sku", "--reward", "gloss", "--noise", "pilot"), "has no scale yet"),
        (("--id", "sku", "--reward", "gloss", "--noise", "subgaussian:1e-300"), "no float holds the square"),
        (("--id", "sku", "--reward", "gloss", "--noise", "subgaussian:1e300"), "no float holds the square"),
    ],
)
def test_bad_input_is_named(table, arguments, words):
    with pytest.raises(sp.InvalidInput, match=words):
        surepick("tune", table, *arguments)


@pytest.mark.parametrize(("features", "reward"), [(1e200, 1.0), (1e-200, 1.0), (1.0, 1e200)])
def test_values_whose_squares_are_lost_are_named(tmp_path, features, reward):
    path = tmp_path / "units.csv"
    rows = [f"{arm},{features * arm},{reward * (arm + repeat)}" for arm in range(20) for repeat in range(2)]
    path.write_text("\n".join(["sku,x,y", *rows]) + "\n")
    with pytest.raises(sp.InvalidInput, match=r"differ by up to|beyond 1e\+50"):
        surepick("tune", path, "--id", "sku", "--reward", "y", "--noise", "subgaussian:0.3")


def test_options_of_tables_mean_nothing_to_a_built_in_example():
    with pytest.raises(sp.InvalidInput, match="built-in example"):
        surepick("tune", "digits", "--id", "sku")


def test_a_pilot_of_a_few_pulls_is_refused(table):
    code, _, errors = surepick("tune", table, *OPTIONS, "--pulls", 5)
    assert code == 2
    assert "--pulls" in errors
