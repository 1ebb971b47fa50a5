"""Experiments on any number of processes: equal results, failures kept."""

import pickle

import pytest
from small_experiments import MEANS, SMALL, SOARE, same

import surepick as sp
from surepick_bench.experiments import experiment
from surepick_bench.runner import run_experiments
from surepick_bench.spec import PolicySpec, crossed, restricted


def test_two_processes_give_the_same_rows(undisturbed, tmp_path):
    assert same(run_experiments([SMALL], out=tmp_path / "r.parquet", runs=3, jobs=2), undisturbed)


def test_a_failure_is_kept_and_the_others_go_on(tmp_path):
    hopeless = PolicySpec("hopeless", "rage", {"tolerance": -1.0})
    both = crossed("small", "one fails", [SOARE], [hopeless, MEANS], epsilon=0.5)
    results = run_experiments([both], out=tmp_path / "r.parquet", runs=2, jobs=1)
    failed = [row for row in results.replicates if row["failure"]]
    assert [row["policy"] for row in failed] == ["hopeless", "hopeless"]
    assert all(row["failure"].startswith("InvalidInput: tolerance is -1.0") for row in failed)
    assert all(row["pulls"] is None and row["success"] is None for row in failed)
    assert sum(bool(row["success"]) for row in results.replicates) == 2


def test_a_missing_data_set_is_no_failure_of_a_policy(tmp_path):
    with pytest.raises(sp.errors.DatasetMissing, match="t10k-images"):
        run_experiments(
            restricted([experiment("mnist")], ["rage"]), out=tmp_path / "r.parquet", runs=1, jobs=1, data=tmp_path
        )


def test_an_experiment_named_twice_is_run_once(tmp_path):
    results = run_experiments([SMALL, SMALL], out=tmp_path / "r.parquet", runs=1, jobs=1)
    assert len(results.replicates) == 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_missing_data_are_said_by_worker_processes_too(jobs, tmp_path):
    with pytest.raises(sp.errors.DatasetMissing, match="t10k-images"):
        run_experiments(
            restricted([experiment("mnist")], ["rage"]), out=tmp_path / "r.parquet", runs=2, jobs=jobs, data=tmp_path
        )


def test_errors_survive_the_way_from_a_worker():
    missing = pickle.loads(pickle.dumps(sp.errors.DatasetMissing("No file.", recipe="Ask for it.")))
    assert (str(missing), missing.recipe) == ("No file. Ask for it.", "Ask for it.")
    design = sp.solve_design([[1.0, 0.0], [0.0, 1.0]])
    short = pickle.loads(pickle.dumps(sp.errors.NotConverged("too few steps", best=design, gap=0.5)))
    assert (str(short), short.best, short.gap) == ("too few steps", design, 0.5)
