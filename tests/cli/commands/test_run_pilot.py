"""`surepick run --noise pilot`: the noise is measured first, and what that costs is counted."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app
from surepick.cli.commands.run import pilot_pulls
from surepick.tuning.noise_pilot import take_pilot

POLICY = ("--policy", "certified-independent")


def surepick(*arguments) -> tuple[int, str, str]:
    words = ["run", *map(str, arguments)]
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def rows(arms: int, repeats: int, *, offset: float = 0.0) -> str:
    """Candidates with normal repeats of standard deviation 1; their means are their numbers plus the offset."""
    rng = np.random.default_rng(0)
    lines = [f"{arm},{offset + arm + rng.normal()}" for arm in range(arms) for _ in range(repeats)]
    return "\n".join(["name,worth", *lines]) + "\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "paint.csv"
    path.write_text(rows(30, 50))
    return path


def rehearse(path, *more):
    return surepick(path, "--id", "name", "--reward", "worth", "--epsilon", 2, "--noise", *(more or ("pilot",)))


def pilot_of(path, pulls, *, seed=0):
    world = sp.environments.table(path, "name", "worth", noise=sp.SubGaussian(1))
    return take_pilot(world, pulls, delta=0.05, seed=seed)


def test_the_pilot_is_paid_and_told(table):
    code, output, _ = rehearse(table, "pilot", *POLICY)
    assert code == 0
    told = re.search(
        r"^Pilot: 40 measurements on 20 candidates; standard deviation at most ([\d.]+) "
        r"\(except with probability 0\.005\)\.\n",
        output,
        re.MULTILINE,
    )
    assert 1.0 < float(told[1]) < 3.0
    assert f"from 20 degrees of freedom of a pilot it is at most {told[1]}, except with probability 0.005" in output
    answer = json.loads(rehearse(table, "pilot", *POLICY, "--format", "json")[1])
    assert f"Measurements spent: {answer['pulls']:,}" in output


def test_the_pilot_as_json(table):
    code, output, _ = rehearse(table, "pilot:60", *POLICY, "--format", "json")
    answer = json.loads(output)
    assert code == 0
    assert (answer["verdict"], answer["success"], answer["pilot_pulls"]) == ("certified", True, 60)
    assert answer["pulls"] == 60 + sum(row["pulls"] for row in answer["rounds"]) == answer["rounds"][-1]["total_pulls"]
    assert answer["delta"] == 0.05
    found = sp.parse_noise(answer["policy"]["noise"])
    assert found == pilot_of(table, 60).noise
    assert (found.failure, found.repeats) == (pytest.approx(0.005), 30)


def test_without_a_pilot_nothing_is_said_of_one(table):
    code, output, _ = rehearse(table, "subgaussian:1.5", *POLICY, "--format", "json")
    assert code == 0
    assert "pilot" not in output


def test_the_seed_decides_the_pilot(table):
    assert pilot_of(table, 40) == pilot_of(table, 40)
    assert pilot_of(table, 40).noise != pilot_of(table, 40, seed=1).noise


@pytest.mark.parametrize(
    ("pulls", "candidates", "degrees"), [(2, 1, 1), (3, 1, 2), (41, 20, 21), (60, 30, 30), (100, 30, 70)]
)
def test_pulls_are_spread_over_the_candidates(table, pulls, candidates, degrees):
    found = pilot_of(table, pulls, seed=3)
    assert (found.pulls, found.candidates, found.noise.repeats) == (pulls, candidates, degrees)


def test_candidates_with_one_record_are_left_out(tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_text(rows(3, 20) + "".join(f"single-{number},0\n" for number in range(50)))
    assert pilot_of(path, 40).candidates == 3


def test_no_digit_is_lost_far_from_zero(tmp_path):
    near, far = tmp_path / "near.csv", tmp_path / "far.csv"
    near.write_text(rows(10, 20))
    far.write_text(rows(10, 20, offset=1e9))
    assert pilot_of(far, 40).noise.sigma == pytest.approx(pilot_of(near, 40).noise.sigma, rel=1e-5)


def test_records_that_share_no_standard_deviation_are_noted(tmp_path):
    path = tmp_path / "uneven.csv"
    path.write_text(rows(10, 20) + "wild,-500\nwild,500\n")
    _, _, errors = surepick(
        path,
        "--id",
        "name",
        "--reward",
        "worth",
        "--noise",
        "pilot:6",
        *POLICY,
        "--epsilon",
        1,
        "--max-pulls",
        100,
        "--seed",
        2,
    )
    assert "the recorded measurements of wild have standard deviation 500" in errors
    assert "which 1 of 11 candidates exceed" in errors


def test_the_budget_includes_the_pilot(table):
    code, output, _ = rehearse(table, "pilot", *POLICY, "--max-pulls", 60)
    assert code == 3
    assert "The pilot had taken 40 pulls of the budget before." in output
    answer = json.loads(rehearse(table, "pilot", *POLICY, "--max-pulls", 60, "--format", "json")[1])
    assert 40 <= answer["pulls"] <= 60
    with pytest.raises(sp.InvalidInput, match="the pilot takes 40 measurements and --max-pulls is 39"):
        rehearse(table, "pilot", *POLICY, "--max-pulls", 39)


def test_candidates_measured_once_have_no_pilot(tmp_path):
    path = tmp_path / "once.csv"
    path.write_text(rows(30, 1))
    with pytest.raises(sp.InvalidInput, match="every candidate of this table was measured once"):
        rehearse(path, "pilot", *POLICY)


def test_copies_of_one_record_have_no_pilot(tmp_path):
    path = tmp_path / "copies.csv"
    path.write_text("name,worth\na,0.1\na,0.1\nb,0.7\nb,0.7\n")
    with pytest.raises(sp.InvalidInput, match="all equal"):
        rehearse(path, "pilot", *POLICY)


def test_other_policies_refuse_the_pilot(table):
    with pytest.raises(sp.InvalidInput, match="action-elimination does not, only the certified policies do"):
        rehearse(table, "pilot", "--policy", "action-elimination")
    assert rehearse(table)[0] == 0  # the default is one of those that do


def test_the_pilots_text():
    assert (pilot_pulls("pilot"), pilot_pulls(" pilot:12 "), pilot_pulls("bernoulli")) == (40, 12, None)
    assert pilot_pulls("pilot-gaussian:1:0.1:5") is None
    for text in ("pilot:", "pilot:many"):
        with pytest.raises(sp.InvalidInput, match="not understood"):
            pilot_pulls(text)
    for text in ("pilot:1", "pilot:2.5", "pilot:-3", "pilot:inf"):
        with pytest.raises(sp.InvalidInput, match="whole number, 2 or more"):
            pilot_pulls(text)


def test_a_delta_that_is_no_probability_is_refused_before_the_pilot(table):
    with pytest.raises(sp.InvalidInput, match="delta is 20"):
        rehearse(table, "pilot", *POLICY, "--delta", 20)


def test_a_forecast_has_no_pilot(table):
    words = ["forecast", str(table), "--id", "name", "--reward", "worth", "--noise", "pilot"]
    with pytest.raises(sp.InvalidInput, match="a pilot needs measurements"):
        CliRunner().invoke(app, words, catch_exceptions=False)
