"""`surepick analyze`: a newcomer's table, with no option but the columns."""

import json

import numpy as np
import pytest
from command_line import surepick

ROWS = [
    f"{model},{question},{int(np.random.default_rng([model, question]).random() < chance)}"
    for model, chance in enumerate((0.9, 0.5, 0.1))
    for question in range(80)
]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text("\n".join(["model,question,right", *ROWS]))
    return str(path)


def test_tiers_by_one_command(table):
    code, shown, _ = surepick("analyze", table, "--id", "model", "--reward", "right", "--item", "question")
    assert code == 0
    assert "Best: 0 (mean 0." in shown
    tiers = [line.split()[:2] for line in shown.splitlines() if line.startswith("   ")]
    assert tiers == [["1", "0"], ["2", "1"], ["3", "2"]]


def test_a_file_is_written_and_checked(table, tmp_path):
    columns = ["--id", "model", "--reward", "right", "--item", "question"]
    stored = str(tmp_path / "verdict.json")
    _, shown, _ = surepick("analyze", table, *columns, "--out", stored, "--format", "json")
    assert json.loads(shown)["tiers"] == [["0"], ["1"], ["2"]]
    assert surepick("analyze", table, "--check", stored)[:2] == (0, "As stored.\n")
    changed = tmp_path / "changed.csv"
    changed.write_text("\n".join(["model,question,right", *ROWS[1:], "0,0,0" if ROWS[0].endswith("1") else "0,0,1"]))
    code, shown, _ = surepick("analyze", str(changed), "--check", stored)
    assert code == 1
    assert "results_sha256" in shown
