"""Noise of unknown scale on the command line: from the candidates to a certificate that is verified, and a report."""

import csv
import json

import numpy as np
import pytest
from study_commands import surepick

ARMS = "id\na\nb\nc\nd\n"
MEANS, SCALES = {"a": 0.0, "b": 2.0, "c": 1.0, "d": -1.0}, {"a": 0.1, "b": 0.5, "c": 0.2, "d": 0.1}
GOAL = ("--id", "id", "--noise", "normal", "--epsilon", "0.5")


def answer(*words, code=0) -> dict:
    found, output, errors = surepick(*words, "--format", "json")
    assert found == code, output + errors
    return json.loads(output)


def test_a_study_of_candidates_that_vary_unequally(stored_at, write, tmp_path):
    code, output, _ = surepick("create", stored_at, "dough", "--arms", write(ARMS), *GOAL, "--batch-size", "20")
    assert code == 0, output
    rng, document = np.random.default_rng(7), tmp_path / "c.json"
    first = answer("ask", stored_at, "dough")
    assert [row["pulls"] for row in first["table"]] == [5] * 4
    while not answer("ask", stored_at, "dough")["stopped"]:
        plan, told = tmp_path / "plan.csv", tmp_path / "told.jsonl"
        surepick("ask", stored_at, "dough", "--worker", "anna", "--out", plan)
        rows = list(csv.DictReader(plan.read_text().splitlines()))
        for row in rows:
            row["reward"] = rng.normal(MEANS[row["id"]], SCALES[row["id"]])
        told.write_text("".join(json.dumps(row) + "\n" for row in rows))
        plan.unlink()
        code, output, errors = surepick("tell", stored_at, "dough", told, "--worker", "anna")
        assert code == 0, output + errors
    assert answer("status", stored_at, "dough")["verdict"] == "certified"
    code, output, _ = surepick("certificate", stored_at, "dough", "--out", document)
    assert code == 0
    assert "normally distributed with a standard deviation of the candidate's own" in " ".join(output.split())
    stored = json.loads(document.read_text())
    assert stored["best_arm"] == "b"
    code, output, errors = surepick("verify", document)
    assert code == 0, output + errors
    code, output, errors = surepick(
        "report", stored_at, "dough", "--out", tmp_path / "report.html", "--forecast-up-to", 0
    )
    assert code == 0, output + errors
    assert "repeats lie farther apart" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("words", [("--policy", "lucb"), ("--policy", "action-elimination")])
def test_what_needs_a_known_scale_says_so(words, sqlite_url, write, refused):
    table = write("id,x\na,1\nb,2\nc,3\n")
    assert "known beforehand" in refused("create", sqlite_url, "dough", "--arms", table, *GOAL, *words)


def test_a_forecast_says_that_it_needs_a_scale_and_takes_a_guess(write, refused):
    assert "--assume-scale SIGMA" in refused("forecast", write(ARMS), *GOAL)
    found = answer("forecast", write(ARMS), *GOAL, "--assume-scale", "0.2", "--policy", "certified-independent")
    assert found["assume_scale"] == 0.2
    assert found["rows"][0]["worst"]["total"] >= 20
    assert "that you guessed" in " ".join(found["rows"][0]["warnings"])


def test_totals_without_squares_are_refused(sqlite_url, write, tmp_path, refused):
    surepick("create", sqlite_url, "dough", "--arms", write(ARMS), *GOAL)
    told = tmp_path / "told.csv"
    told.write_text("id,pulls,sum\n" + "".join(f"{one},5,{5 * mean}\n" for one, mean in MEANS.items()))
    assert "come without squares" in refused("tell", sqlite_url, "dough", told)


def test_a_question_of_scales_that_nobody_knows(write):
    rows = [f"{name},{mean + away}" for name, mean in zip("abcd", (0, 2, 4, 6), strict=True) for away in (-0.3, 0, 0.3)]
    table = write("\n".join(["id,y", *rows]))
    wanted = ("--id", "id", "--reward", "y", "--noise", "normal", "--epsilon", "1", "--question", "top", "--m", "2")
    code, output, errors = surepick("run", table, *wanted)
    assert code == 0, output + errors
    assert "first list, the 2 best (2): c, d" in output
    assert "except with probability 0.001, which is part of delta" in output
    code, output, errors = surepick("forecast", table, *wanted, "--assume-scale", "0.3")
    assert code == 0, output + errors
    assert "Which candidates are the 2 best?" in output
