"""Experiments as data: their identity, their names, and settings that are refused."""

import json
from dataclasses import replace

import pytest
from small_experiments import LINEAR, MEANS, SMALL, SOARE
from together import of_each

import surepick as sp
from surepick_bench.experiments import experiment, experiments
from surepick_bench.runner import run_experiments, runner_tasks
from surepick_bench.spec import (
    SMOKE_PULLS,
    SMOKE_SECONDS,
    Cell,
    EnvironmentSpec,
    Experiment,
    PolicySpec,
    crossed,
    restricted,
    smoke,
)

# identity


@of_each(
    "change",
    [
        {"experiment": "other"},
        {"epsilon": 0.2},
        {"delta": 0.1},
        {"max_pulls": 10},
        {"gap_share": 0.1},
        {"max_seconds": 60.0},
        {"policy": replace(LINEAR, options={"norm_bound": 1.5})},
        {"policy": replace(LINEAR, noise="subgaussian:2")},
        {"policy": replace(LINEAR, max_pulls=7)},
        {"environment": replace(SOARE, options={"dim": 4, "angle": 0.6})},
        {"environment": replace(SOARE, reference_dim=2)},
    ],
)
def test_every_setting_is_part_of_the_identity(change):
    cell = Cell("small", SOARE, LINEAR)
    assert replace(cell, **change).digest != cell.digest


def test_the_identity_does_not_depend_on_the_order_of_options():
    one, other = (
        EnvironmentSpec("s", "soare", options) for options in ({"dim": 3, "angle": 1}, {"angle": 1, "dim": 3})
    )
    assert Cell("x", one, LINEAR).digest == Cell("x", other, LINEAR).digest
    assert json.loads(Cell("x", one, LINEAR).canonical)["policy"]["options"] == {"norm_bound": 1.0}


def test_keys_are_unique_and_sorted_by_seed():
    keys = [task.key for task in runner_tasks([SMALL], runs=12)]
    assert len(set(keys)) == 48
    one = [key for key in keys if key.startswith("small/soare/action-elimination")]
    assert sorted(one) == one


def test_names_are_resolved():
    assert [each.name for each in experiments(["paper", "mnist"])] == [
        "paper-linear",
        "paper-nonlinear",
        "mnist",
        "yahoo-like",
        "high-dimensional",
    ]
    assert [each.name for each in experiments(["peers"])] == ["peers", "small-epsilon", "slippage"]
    assert [each.name for each in experiments(["ranking-and-selection"])] == ["ranking-and-selection", "slippage"]
    with pytest.raises(sp.InvalidInput, match=r"no experiment 'paper-cubic'; choose from paper-linear, "):
        experiments(["paper-cubic"])


def test_policies_are_restricted_across_experiments():
    both = (experiment("paper-linear"), experiment("peers"))
    kept = restricted(both, ["lucb", "certified-linear"])
    assert [each.policies for each in kept] == [("certified-linear",), ("lucb", "certified-linear")]
    assert [each.name for each in restricted(both, ["lucb"])] == ["peers"]
    with pytest.raises(sp.InvalidInput, match="no policy 'lacb'; there is linear-embedding"):
        restricted(both, ["lacb"])


# running


def test_a_smoke_test_has_every_cell_and_few_pulls():
    small = smoke(experiment("peers"))
    assert [cell.title for cell in small.cells] == [cell.title for cell in experiment("peers").cells]
    assert {cell.max_pulls for cell in small.cells} == {SMOKE_PULLS}
    assert {cell.max_seconds for cell in small.cells} == {SMOKE_SECONDS}
    assert not {cell.digest for cell in small.cells} & {cell.digest for cell in experiment("peers").cells}
    generous = Cell("x", SOARE, replace(MEANS, max_pulls=10**6), max_pulls=10)
    (cell,) = smoke(Experiment("x", "", (generous,))).cells
    assert (cell.max_pulls, cell.policy.max_pulls) == (10, SMOKE_PULLS)


@pytest.mark.parametrize("name", ["r.csv", "r.rounds.parquet", "r"])
def test_the_name_of_the_results(name, tmp_path):
    with pytest.raises(sp.InvalidInput, match=r"written as NAME\.parquet"):
        run_experiments([SMALL], out=tmp_path / name, runs=1, jobs=1)


@pytest.mark.parametrize(
    ("settings", "words"), [({"runs": 0}, "runs is 0"), ({"runs": 1, "first_seed": -1}, "seed is -1")]
)
def test_bad_settings(settings, words, tmp_path):
    with pytest.raises(sp.InvalidInput, match=words):
        run_experiments([SMALL], out=tmp_path / "r.parquet", jobs=1, **settings)


def test_different_settings_need_different_names(tmp_path):
    other = crossed("small", "another epsilon", [SOARE], [MEANS], epsilon=0.4)
    with pytest.raises(sp.InvalidInput, match="2 different settings are all called small/soare/action-elimination"):
        run_experiments([SMALL, other], out=tmp_path / "r.parquet", runs=1, jobs=1)


@of_each(
    ("kind", "values", "words"),
    [
        (Cell, {"epsilon": "0.1"}, "epsilon is '0.1'; it must be a number"),
        (Cell, {"epsilon": -1}, "epsilon is -1; it must be positive"),
        (Cell, {"delta": float("nan")}, "delta is nan; it must lie strictly between"),
        (Cell, {"delta": 1}, "delta is 1; it must lie strictly between"),
        (Cell, {"max_pulls": "100"}, "max_pulls is '100'; it must be a number"),
        (Cell, {"gap_share": 0.0}, "gap_share is 0.0; it must be positive"),
        (Cell, {"max_seconds": float("inf")}, "max_seconds is inf; it must be positive and finite"),
        (Cell, {"experiment": 3}, "the name of an experiment is 3"),
        (PolicySpec, {"label": 3}, "label and name of a policy are 3"),
        (PolicySpec, {"options": [1]}, r"options of a policy, .p., are \[1\]"),
        (PolicySpec, {"noise": 1.0}, "noise of policy 'p' is 1.0"),
        (PolicySpec, {"max_pulls": -1}, "max_pulls is -1"),
        (EnvironmentSpec, {"reference_dim": 0}, "reference_dim is 0"),
        (EnvironmentSpec, {"label": ["a"]}, "label and name of an environment are"),
    ],
)
def test_settings_of_the_wrong_kind_are_refused_at_once(kind, values, words):
    usual = {
        Cell: {"experiment": "small", "environment": SOARE, "policy": MEANS},
        PolicySpec: {"label": "p", "name": "rage"},
        EnvironmentSpec: {"label": "e", "name": "soare"},
    }[kind]
    with pytest.raises(sp.InvalidInput, match=words):
        kind(**{**usual, **values})


@pytest.mark.parametrize(("jobs", "first_seed", "words"), [(0, 0, "jobs is 0"), (1, 2**63 - 1, r"from 0 to 2\^53")])
def test_numbers_out_of_range(jobs, first_seed, words, tmp_path):
    with pytest.raises(sp.InvalidInput, match=words):
        run_experiments([SMALL], out=tmp_path / "r.parquet", runs=1, jobs=jobs, first_seed=first_seed)


def test_an_experiment_of_ones_own_is_plain_data(tmp_path):
    own = Experiment("mine", "two deltas", tuple(Cell("mine", SOARE, MEANS, 0.5, delta) for delta in (0.05, 0.3)))
    results = run_experiments([own], out=tmp_path / "r.parquet", runs=1, jobs=1)
    assert [row["delta"] for row in results.replicates] == [0.05, 0.3]
