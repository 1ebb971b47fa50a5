"""`design` shows the shares that the library computes."""

import json
import re

import numpy as np
from command_line import surepick

import surepick as sp

# design


def test_design_shows_the_shares(table, tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("name,x\nlow,0\nmiddle,0.5\nhigh,1\n")
    code, output, errors = surepick("design", path, "--id", "name", "--intercept")
    assert (code, errors) == (0, "")
    assert re.search(r"low.*0\.5000", output)
    assert re.search(r"high.*0\.5000", output)
    assert "Measure 2 of 3 candidates. Design value 4;" in output


def test_design_as_json_is_the_librarys(tmp_path):
    path = tmp_path / "arms.csv"
    features = np.random.default_rng(0).normal(size=(12, 3)).round(3)
    path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in features) + "\n")
    code, output, errors = surepick("design", path, "--format", "json", "--tolerance", 0.001)
    found = json.loads(output)
    design = sp.solve_design(features, tolerance=0.001)
    assert (code, errors) == (0, "")
    assert found.keys() == {"value", "lower_bound", "gap", "rank", "weights"}
    assert (found["value"], found["lower_bound"], found["rank"]) == (design.value, design.lower_bound, 3)
    assert 0 <= found["gap"] <= 0.001
    assert {int(name): share for name, share in found["weights"].items()} == {
        arm: design.weights[arm] for arm in np.flatnonzero(design.weights)
    }


# help, and the process


def test_a_design_that_is_not_proved_is_a_failure(run_main, monkeypatch, table):
    def unproved(features, tolerance):
        raise sp.errors.NotConverged("design gap 3% > tolerance 1%", best=sp.Design([1.0], 1.0, 0.9, 1), gap=0.03)

    monkeypatch.setattr("surepick.cli.commands.forecast.solve_design", unproved)
    assert run_main("design", table) == (1, "", "error: design gap 3% > tolerance 1%\n")
