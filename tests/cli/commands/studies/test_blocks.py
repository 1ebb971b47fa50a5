"""Blocks on the command line: created, asked for with a column of blocks, told with it, refused without, verified."""

import csv
import json

import numpy as np
import pytest
from study_commands import surepick

from surepick.errors import InvalidInput

ARMS = "id\na\nb\nc\nd\n"
MEANS = {"a": 0.0, "b": 1.0, "c": 0.3, "d": 0.1}
GOAL = ("--noise", "subgaussian:0.5", "--epsilon", "0.6")
IN_BLOCKS = ("--blocks", "plate", "--block-size", "3", "--control", "d")


@pytest.fixture
def arms(write):
    return write(ARMS)


def create(url, arms, *options):
    return surepick("create", url, "lab", "--arms", arms, "--id", "id", *GOAL, *options)


def answer(*words, code=0) -> dict:
    found, output, errors = surepick(*words, "--format", "json")
    assert found == code, output + errors
    return json.loads(output)


def test_a_study_in_blocks(stored_at, arms, tmp_path):
    code, output, errors = create(stored_at, arms, *IN_BLOCKS, "--batch-size", "12")
    assert code == 0, output + errors
    rng, shift = np.random.default_rng(2), {}
    while True:
        plan = tmp_path / "plan.csv"
        surepick("ask", stored_at, "lab", "--worker", "anna", "--out", plan)
        if not plan.exists():
            break
        rows = list(csv.DictReader(plan.read_text().splitlines()))
        for row in rows:
            off = shift.setdefault(row["plate"], rng.normal(0.0, 10.0))
            row["reward"] = MEANS[row["id"]] + off + 0.5 * rng.standard_normal()
        told = tmp_path / "told.jsonl"
        told.write_text("".join(json.dumps(row) + "\n" for row in rows))
        plan.unlink()
        code, output, errors = surepick("tell", stored_at, "lab", told, "--worker", "anna")
        assert code == 0, output + errors
    assert answer("recommend", stored_at, "lab")["best_arm"] == "b"
    code, output, _ = surepick("certificate", stored_at, "lab", "--out", tmp_path / "lab.json")
    assert code == 0
    assert "same plate" in output
    assert surepick("verify", tmp_path / "lab.json")[0] == 0
    assert surepick("report", stored_at, "lab", "--out", tmp_path / "lab.html", "--forecast-up-to", 0)[0] == 0
    export = tmp_path / "all.csv"
    assert surepick("export", stored_at, "lab", "--out", export)[0] == 0
    assert {row["plate"] for row in csv.DictReader(export.read_text().splitlines())} == set(shift)


def test_results_without_their_block_are_refused(stored_at, arms, write):
    create(stored_at, arms, *IN_BLOCKS)
    results = write("id,reward\na,0.1\n")
    with pytest.raises(InvalidInput, match="names its plate"):
        surepick("tell", stored_at, "lab", results)
    named = write("id,reward,well\na,0.1,p1\n")
    assert surepick("tell", stored_at, "lab", named, "--block", "well")[0] == 0


def test_a_block_in_a_study_without_blocks_is_refused(stored_at, arms, write):
    create(stored_at, arms)
    with pytest.raises(InvalidInput, match="has no blocks"):
        surepick("tell", stored_at, "lab", write("id,reward,day\na,0.1,x\n"), "--block", "day")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--block-size", "8"), "only with blocks"),
        (("--blocks", "day", "--policy", "lucb"), "--blocks has no meaning for lucb"),
        (("--blocks", "day", "--noise", "normal", "--block-size", "8"), "has no option 'block_size'"),
    ],
)
def test_what_has_no_meaning_is_refused(stored_at, arms, words, said):
    with pytest.raises(InvalidInput, match=said):
        create(stored_at, arms, *words)
