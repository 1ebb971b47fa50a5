"""A replicate is the simulation of its seed, and says how it ended."""

import numpy as np
import pytest
from small_experiments import EPSILON, MEANS, SOARE, SPHERE

import surepick as sp
from surepick_bench.runner import run_experiments
from surepick_bench.spec import Cell, EnvironmentSpec, Experiment, PolicySpec, crossed


def test_a_row_per_replicate_and_per_round(undisturbed):
    assert len(undisturbed.replicates) == 12
    assert [row["key"] for row in undisturbed.replicates] == sorted(row["key"] for row in undisturbed.replicates)
    for row in undisturbed.replicates:
        mine = [each for each in undisturbed.rounds if each["key"] == row["key"]]
        assert mine[-1]["total_pulls"] == row["pulls"]
        assert mine[-1]["round"] == row["num_rounds"]
        assert (row["oracle_pulls"] is not None) <= row["eliminates"]
        assert row["reference_pulls"] > 0


def test_a_replicate_is_the_simulation_of_its_seed(undisturbed):
    environment = sp.environments.soare(3, 0.6, seed=2)
    policy = sp.make_policy(
        "certified-linear", environment.arms, epsilon=EPSILON, delta=0.05, noise=environment.noise, norm_bound=1.0
    )
    run = sp.simulate(policy, environment, seed=2)
    row = next(
        row
        for row in undisturbed.replicates
        if (row["environment"], row["policy"], row["seed"]) == ("soare", "certified-linear", 2)
    )
    assert (row["pulls"], row["best_arm"], row["success"]) == (run.pulls, run.best_arm, run.success)


def test_a_budget_is_a_verdict_not_a_failure(tmp_path):
    short = crossed("small", "short of pulls", [SOARE], [MEANS], epsilon=0.01, max_pulls=50)
    (row,) = run_experiments([short], out=tmp_path / "r.parquet", runs=1, jobs=1).replicates
    assert (row["verdict"], row["success"], row["failure"]) == ("budget-exhausted", False, "")
    assert row["pulls"] <= 50


def test_epsilon_as_a_share_of_the_gap_is_that_of_each_instance(tmp_path):
    shares = Experiment("small", "half the gap", (Cell("small", SPHERE, MEANS, gap_share=0.5),))
    rows = run_experiments([shares], out=tmp_path / "r.parquet", runs=3, jobs=1).replicates
    gaps = [np.sort(sp.environments.sphere(5, 2, seed).gaps)[1] for seed in range(3)]
    assert [row["epsilon"] for row in rows] == pytest.approx([gap / 2 for gap in gaps])
    assert len(set(gaps)) == 3
    assert all(row["success"] and row["true_gap"] == 0.0 for row in rows)


def test_equal_arms_have_no_gap(tmp_path):
    equal = EnvironmentSpec("equal", "falling-means", {"num_arms": 3, "spread": 1e-300})
    shares = Experiment("small", "no gap", (Cell("small", equal, MEANS, gap_share=0.5),))
    (row,) = run_experiments([shares], out=tmp_path / "r.parquet", runs=1, jobs=1).replicates
    assert "all arms are equally good" in row["failure"]


HALVING = PolicySpec("halving", "sequential-halving", {"budget": 1000})


@pytest.mark.parametrize(
    ("budget", "ended_by"), [({"max_pulls": 1}, "pulls"), ({"max_seconds": 1e-9}, "seconds"), ({}, "policy")]
)
def test_what_ended_a_run_and_whether_its_stop_is_proved(budget, ended_by, tmp_path):
    """Of a run that a budget ended as well."""
    cells = tuple(Cell("small", SOARE, policy, 0.5, **budget) for policy in (MEANS, HALVING))
    rows = run_experiments([Experiment("small", "", cells)], out=tmp_path / "r.parquet", runs=1, jobs=1).replicates
    assert {row["policy"]: (row["ended_by"], row["proved"]) for row in rows} == {
        "action-elimination": (ended_by, True),
        "halving": (ended_by, False),
    }


def test_a_threshold_that_nothing_backs_is_no_proof_even_if_time_is_over(tmp_path):
    stylised = PolicySpec("stylised", "lingame", {"threshold": "stylised"})
    short = crossed("small", "", [SOARE], [stylised], epsilon=0.001, max_pulls=50)
    (row,) = run_experiments([short], out=tmp_path / "r.parquet", runs=1, jobs=1).replicates
    assert (row["verdict"], row["proved"]) == ("budget-exhausted", False)
