"""Olympus folders as tables."""

import json
from pathlib import Path

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.tables import read_arms, read_table


@pytest.fixture
def olympus(tmp_path):
    def olympus(rows: str, goal: str = "minimize", kind: str = "continuous") -> Path:
        folder = tmp_path / "dataset"
        folder.mkdir()
        (folder / "data.csv").write_text(rows)
        config = {
            "parameters": [{"name": "solvent", "type": kind}, {"name": "heat", "type": "continuous"}],
            "measurements": [{"name": "loss", "type": "continuous"}],
            "default_goal": goal,
        }
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return olympus


def test_an_olympus_folder_pools_rows_of_equal_parameters(olympus):
    folder = olympus("water,1.0,5\noil,2.0,6\nwater,1.0,7\n", kind="categorical")
    table = read_table(folder)
    assert (table.parameters, table.measurements, table.minimize) == (("solvent", "heat"), ("loss",), True)
    arms = read_arms(folder)
    assert arms.ids == ("water/1.0", "oil/2.0")
    assert arms.columns == ("solvent=oil", "solvent=water", "heat")
    np.testing.assert_array_equal(arms.features, [[0, 1, 1], [1, 0, 2]])


@pytest.mark.parametrize("goal", ["maximise", None, ["minimize"]])
def test_an_olympus_folder_without_a_known_goal_is_refused(olympus, goal):
    with pytest.raises(InvalidInput, match="not an Olympus configuration"):
        read_table(olympus("water,1.0,5\n", goal=goal))


def test_an_olympus_folder_with_too_many_columns_is_refused(olympus):
    with pytest.raises(InvalidInput, match=r"data\.csv, line 1: 4 cells where 3 columns"):
        read_table(olympus("water,1.0,5,6\n"))


@pytest.mark.parametrize(
    ("name", "arms", "columns"),
    [("photo_wf3", 1020, 4), ("oer_plate_3496", 2121, 6), ("suzuki", 247, 4), ("fullerenes", 216, 3)],
)
def test_the_olympus_data_sets_have_the_published_sizes(shared_data, name, arms, columns):
    assert read_arms(shared_data / "olympus" / name).features.shape == (arms, columns)


def test_categorical_olympus_parameters_are_one_hot_encoded(shared_data):
    arms = read_arms(shared_data / "olympus" / "buchwald_a")
    assert arms.features.shape == (792, 32)
    assert set(np.unique(arms.features)) == {0.0, 1.0}
    np.testing.assert_array_equal(arms.features.sum(axis=1), 4)
