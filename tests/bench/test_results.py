"""Results are resumed and extended, never mixed, and written by one run at a time."""

import subprocess
import sys

import pytest
from small_experiments import LINEAR, SMALL, SOARE, same

import surepick as sp
from surepick.tables import read_columns, write_table
from surepick_bench.results import Place, Replicate, column_kinds, read_results
from surepick_bench.runner import run_experiments, runner_tasks
from surepick_bench.spec import crossed


def test_the_files_hold_what_was_returned(undisturbed, tmp_path):
    out = tmp_path / "r.parquet"
    returned = run_experiments([SMALL], out=out, runs=3, jobs=1)
    assert same(read_results(out), returned)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.parquet", "r.rounds.parquet"]
    assert type(read_columns(out)["success"][0]) is bool


def test_parts_are_used_and_nothing_is_run_twice(undisturbed, tmp_path, monkeypatch):
    from surepick_bench import runner

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
    tasks = runner_tasks([SMALL], runs=3)
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


def test_a_table_that_lacks_a_column_is_refused(tmp_path):
    out = tmp_path / "r.parquet"
    run_experiments([SMALL], out=out, runs=1, jobs=1)
    kinds = {name: kind for name, kind in column_kinds(Replicate).items() if name != "proved"}
    columns = read_columns(out)
    write_table(out, {name: columns[name] for name in kinds}, kinds=kinds)
    with pytest.raises(sp.InvalidInput, match="has no column 'proved'"):
        read_results(out)


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
    from surepick_bench import runner

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
    from surepick_bench import results

    out, real = tmp_path / "r.parquet", results.simulate

    def broken(*_args, **_options):
        raise MemoryError("for a moment")

    monkeypatch.setattr(results, "simulate", broken)
    first = run_experiments([SMALL], out=out, runs=3, jobs=1)
    assert all(row["failure"] == "MemoryError: for a moment" for row in first.replicates)
    monkeypatch.setattr(results, "simulate", real)
    assert same(run_experiments([SMALL], out=out, runs=3, jobs=1), undisturbed)


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
