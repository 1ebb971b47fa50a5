"""Experiments: identity, resumption, equal results for any number of workers, failures kept."""

import json
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.bench.paper_experiments import experiment, experiments
from surepick.bench.results import Place, read_results
from surepick.bench.runner import run_experiments, tasks_of
from surepick.bench.spec import (
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
from surepick.bench.tables import LATER_COLUMNS, Replicate, column_kinds
from surepick.tables import read_columns, write_table

SOARE = EnvironmentSpec("soare", "soare", {"dim": 3, "angle": 0.6})
SPHERE = EnvironmentSpec("sphere", "sphere", {"num_arms": 8, "dim": 2})
LINEAR = PolicySpec("certified-linear", "certified-linear", {"norm_bound": 1.0})
MEANS = PolicySpec("action-elimination", "action-elimination", {"growth": 0.5})
SMALL = crossed("small", "a small one", [SOARE, SPHERE], [LINEAR, MEANS], epsilon=0.5)


def without_seconds(rows) -> list[dict]:
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def same(left, right) -> bool:
    return all(
        without_seconds(getattr(left, table)) == without_seconds(getattr(right, table))
        for table in ("replicates", "rounds")
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The small experiment, three seeds, one process."""
    return run_experiments([SMALL], out=tmp_path_factory.mktemp("whole") / "r.parquet", runs=3, jobs=1)


# identity


@pytest.mark.parametrize(
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


def test_settings_that_came_later_leave_the_identity_of_earlier_cells():
    identity = json.loads(Cell("x", SOARE, LINEAR).canonical)
    assert set(identity) == {"experiment", "environment", "policy", "epsilon", "delta", "max_pulls", "surepick"}
    assert json.loads(Cell("x", SOARE, LINEAR, gap_share=2).canonical)["gap_share"] == 2.0


def test_keys_are_unique_and_sorted_by_seed():
    keys = [task.key for task in tasks_of([SMALL], runs=12)]
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
        "certified-linear", environment.arms, epsilon=0.5, delta=0.05, noise=environment.noise, norm_bound=1.0
    )
    run = sp.simulate(policy, environment, seed=2)
    row = next(
        row
        for row in undisturbed.replicates
        if (row["environment"], row["policy"], row["seed"]) == ("soare", "certified-linear", 2)
    )
    assert (row["pulls"], row["best_arm"], row["success"]) == (run.pulls, run.best_arm, run.success)


def test_two_processes_give_the_same_rows(undisturbed, tmp_path):
    assert same(run_experiments([SMALL], out=tmp_path / "r.parquet", runs=3, jobs=2), undisturbed)


def test_the_files_hold_what_was_returned(undisturbed, tmp_path):
    out = tmp_path / "r.parquet"
    returned = run_experiments([SMALL], out=out, runs=3, jobs=1)
    assert same(read_results(out), returned)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.parquet", "r.rounds.parquet"]
    assert type(read_columns(out)["success"][0]) is bool


def test_parts_are_used_and_nothing_is_run_twice(undisturbed, tmp_path, monkeypatch):
    from surepick.bench import runner

    out = tmp_path / "r.parquet"
    played = []
    real = runner.play

    def interrupted(cell, seed, data):
        played.append((cell.title, seed))
        if len(played) == 8:
            raise KeyboardInterrupt
        return real(cell, seed, data)

    monkeypatch.setattr(runner, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiments([SMALL], out=out, runs=3, jobs=1)
    assert not out.exists()
    assert len(list(Place(out).parts.glob("*.json"))) == 7
    with pytest.raises(sp.InvalidInput, match="did not finish"):
        read_results(out)
    starts = []
    again = run_experiments([SMALL], out=out, runs=3, jobs=1, on_result=lambda done, _all, _row: starts.append(done))
    assert starts[0] == 7
    assert len(played) == 8 + 5
    assert same(again, undisturbed)


def test_a_part_that_is_torn_or_of_another_key_is_run_again(undisturbed, tmp_path, monkeypatch):
    out = tmp_path / "r.parquet"
    place = Place(out)
    place.open_parts()
    tasks = tasks_of([SMALL], runs=3)
    place.part(tasks[0].digest, tasks[0].seed).write_text('{"replicate": {"key": "')
    place.part(tasks[1].digest, tasks[1].seed).write_text('{"replicate": {"key": "other"}, "rounds": []}')
    assert same(run_experiments([SMALL], out=out, runs=3, jobs=1), undisturbed)


def test_more_seeds_are_added_and_the_old_ones_kept(undisturbed, tmp_path):
    out = tmp_path / "r.parquet"
    run_experiments([SMALL], out=out, runs=1, jobs=1)
    before = read_results(out).replicates[0]["seconds"]
    assert same(run_experiments([SMALL], out=out, runs=3, jobs=1), undisturbed)
    assert read_results(out).replicates[0]["seconds"] == before


def test_results_of_something_else_are_not_mixed_in(tmp_path):
    out = tmp_path / "r.parquet"
    run_experiments([SMALL], out=out, runs=1, jobs=1)
    other = crossed("small", "another epsilon", [SOARE], [LINEAR], epsilon=0.4)
    with pytest.raises(sp.InvalidInput, match="holds 4 replicates that this command does not ask for"):
        run_experiments([other], out=out, runs=1, jobs=1)


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


def test_a_budget_is_a_verdict_not_a_failure(tmp_path):
    short = crossed("small", "short of pulls", [SOARE], [MEANS], epsilon=0.01, max_pulls=50)
    (row,) = run_experiments([short], out=tmp_path / "r.parquet", runs=1, jobs=1).replicates
    assert (row["verdict"], row["success"], row["failure"]) == ("budget-exhausted", False, "")
    assert row["pulls"] <= 50


def test_epsilon_as_a_share_of_the_gap_is_that_of_each_instance(tmp_path):
    shares = Experiment("small", "half the gap", (Cell("small", SPHERE, MEANS, gap_share=0.5),))
    rows = run_experiments([shares], out=tmp_path / "r.parquet", runs=3, jobs=1).replicates
    gaps = [np.sort(sp.environments.sphere(8, 2, seed).gaps)[1] for seed in range(3)]
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


def test_results_from_before_later_columns_are_read_and_extended(tmp_path):
    out = tmp_path / "r.parquet"
    whole = run_experiments([SMALL], out=out, runs=1, jobs=1)
    columns = read_columns(out)
    kinds = {name: kind for name, kind in column_kinds(Replicate).items() if name not in LATER_COLUMNS}
    write_table(out, {name: columns[name] for name in kinds}, kinds=kinds)
    assert [row.get("proved") for row in read_results(out).replicates] == [None] * 4
    longer = run_experiments([SMALL], out=out, runs=2, jobs=1)
    assert [row["key"] for row in longer.replicates if row["seed"] == 0] == [row["key"] for row in whole.replicates]
    assert [row["proved"] for row in longer.replicates] == [None, True] * 4


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


HOLD = """
import fcntl, os, time
folder = os.open({parts!r}, os.O_RDONLY)
fcntl.flock(folder, fcntl.LOCK_EX)
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def held(tmp_path):
    """Results that another process is writing."""
    place = Place(tmp_path / "r.parquet")
    place.open_parts()
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(parts=str(place.parts))], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    yield place
    holder.kill()
    holder.communicate()


def test_two_runs_do_not_write_the_same_files(held):
    with pytest.raises(sp.InvalidInput, match="another process is writing"):
        run_experiments([SMALL], out=held.out, runs=1, jobs=1)


def test_a_finished_file_is_not_touched_while_another_process_extends_it(held):
    """Nothing is read or removed before the lock is held."""
    (held.parts / "0123456789abcdef-000009.json").write_text("{}")
    with pytest.raises(sp.InvalidInput, match="another process is writing"):
        run_experiments([SMALL], out=held.out, runs=1, jobs=1)
    assert (held.parts / "0123456789abcdef-000009.json").exists()


def test_parts_of_a_larger_run_survive_a_smaller_one(undisturbed, tmp_path, monkeypatch):
    from surepick.bench import runner

    out, real, played = tmp_path / "r.parquet", runner.play, []

    def interrupted(cell, seed, data):
        played.append(seed)
        if len(played) > 9:
            raise KeyboardInterrupt
        return real(cell, seed, data)

    monkeypatch.setattr(runner, "play", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_experiments([SMALL], out=out, runs=3, jobs=1)
    monkeypatch.setattr(runner, "play", real)
    run_experiments([SMALL], out=out, runs=1, jobs=1)
    assert len(list(Place(out).parts.glob("*.json"))) == 5
    assert same(run_experiments([SMALL], out=out, runs=3, jobs=1), undisturbed)
    assert not Place(out).parts.exists()


def test_what_failed_is_tried_again(undisturbed, tmp_path, monkeypatch):
    from surepick.bench import replicate

    out, real = tmp_path / "r.parquet", replicate.simulate

    def broken(*_args, **_options):
        raise MemoryError("for a moment")

    monkeypatch.setattr(replicate, "simulate", broken)
    first = run_experiments([SMALL], out=out, runs=3, jobs=1)
    assert all(row["failure"] == "MemoryError: for a moment" for row in first.replicates)
    monkeypatch.setattr(replicate, "simulate", real)
    assert same(run_experiments([SMALL], out=out, runs=3, jobs=1), undisturbed)


def test_an_experiment_named_twice_is_run_once(tmp_path):
    results = run_experiments([SMALL, SMALL], out=tmp_path / "r.parquet", runs=1, jobs=1)
    assert len(results.replicates) == 4


def test_different_settings_need_different_names(tmp_path):
    other = crossed("small", "another epsilon", [SOARE], [MEANS], epsilon=0.4)
    with pytest.raises(sp.InvalidInput, match="2 different settings are all called small/soare/action-elimination"):
        run_experiments([SMALL, other], out=tmp_path / "r.parquet", runs=1, jobs=1)


def test_rounds_that_are_gone_are_said_before_anything_is_run(tmp_path):
    out = tmp_path / "r.parquet"
    run_experiments([SMALL], out=out, runs=1, jobs=1)
    Place(out).rounds.unlink()
    with pytest.raises(sp.InvalidInput, match=r"rounds\.parquet is missing.*move r\.parquet away"):
        run_experiments([SMALL], out=out, runs=2, jobs=1)


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / "r.parquet").mkdir()
    with pytest.raises(sp.InvalidInput, match="is in the way"):
        run_experiments([SMALL], out=tmp_path / "r.parquet", runs=1, jobs=1)


@pytest.mark.parametrize(
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


def test_an_experiment_of_ones_own_is_plain_data(tmp_path):
    own = Experiment("mine", "two deltas", tuple(Cell("mine", SOARE, MEANS, 0.5, delta) for delta in (0.05, 0.3)))
    results = run_experiments([own], out=tmp_path / "r.parquet", runs=1, jobs=1)
    assert [row["delta"] for row in results.replicates] == [0.05, 0.3]
