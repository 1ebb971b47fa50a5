"""Experiments that a JSON file describes."""

import json

import pytest

import surepick as sp
from surepick_bench.experiments import experiment, experiments

GOOD = {
    "name": "mine",
    "environments": [{"label": "s", "name": "soare", "options": {"dim": 3, "angle": 0.6}}],
    "policies": [
        {"label": "a", "name": "action-elimination"},
        {"label": "b", "name": "rage", "noise": "subgaussian:2"},
    ],
}


def written(tmp_path, described) -> str:
    path = tmp_path / "mine.json"
    path.write_text(described if isinstance(described, str) else json.dumps(described))
    return str(path)


def test_it_crosses_environments_and_policies(tmp_path):
    found = experiment(written(tmp_path, GOOD | {"epsilon": 0.3, "max_pulls": 1000, "title": "t", "note": "n"}))
    assert (found.name, found.title, found.note) == ("mine", "t", "n")
    assert [(cell.policy.label, cell.policy.noise) for cell in found.cells] == [("a", None), ("b", "subgaussian:2")]
    assert {(cell.epsilon, cell.delta, cell.max_pulls) for cell in found.cells} == {(0.3, 0.05, 1000)}


def test_it_stands_beside_those_with_names(tmp_path):
    assert [each.name for each in experiments(["mnist", written(tmp_path, GOOD)])] == ["mnist", "mine"]


@pytest.mark.parametrize(
    ("described", "message"),
    [
        ("{", "is not JSON"),
        ([], "holds a list; an experiment is a JSON object"),
        ({"name": "x"}, "'environments' is missing"),
        (GOOD | {"environments": []}, "give a list of at least one"),
        (GOOD | {"colour": 1}, "'colour' is not known; there is name, title"),
        (GOOD | {"policies": [{"label": "a"}]}, "policy: 'name' is missing"),
        (GOOD | {"policies": ["rage"]}, "'rage' is not an object with a label and a name"),
        (GOOD | {"policies": [{"label": "a", "name": "ragge"}]}, "policy: its name is 'ragge'; choose one of"),
        (GOOD | {"environments": [{"label": "a", "name": "soar"}]}, "environment: its name is 'soar'; choose one of"),
        (GOOD | {"policies": [{"label": "a", "name": "rage"}] * 2}, "two entries have the same label"),
        (
            GOOD | {"environments": [{"label": "a", "name": "soare", "reference": "x"}]},
            "reference is 'x'; choose one of 'linear', 'independent'",
        ),
    ],
)
def test_bad_files(described, message, tmp_path):
    with pytest.raises(sp.InvalidInput, match=message):
        experiment(written(tmp_path, described))


def test_an_absent_file(tmp_path):
    with pytest.raises(sp.InvalidInput, match=r"absent\.json cannot be read"):
        experiment(str(tmp_path / "absent.json"))
