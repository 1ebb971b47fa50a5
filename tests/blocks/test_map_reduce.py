"""Passes: the same sum to the last bit whoever does the work, also where workers die."""

import itertools
import logging
from functools import partial, reduce

import numpy as np
import pytest
from block_functions import added, killed_once, sums, written
from hypothesis import given, strategies as st

from surepick.chunks.passes import Meter, Passes, Processes, Serial, executor_of, runs_for, runs_of, tree
from surepick.chunks.sources import ArraySource, RowBlocks, rows_of
from surepick.errors import InvalidInput

RNG = np.random.default_rng(6)
FEATURES = RNG.standard_normal((3000, 3)) * 10.0 ** RNG.integers(-8, 8, (3000, 1))


@given(st.lists(st.text("abc", max_size=2), min_size=1, max_size=70))
def test_the_tree_keeps_the_order(texts):
    assert tree(texts, lambda left, right: left + right) == "".join(texts)


@given(st.integers(1, 200))
def test_the_tree_is_as_deep_as_it_must_be(number):
    depth = tree([0] * number, lambda left, right: 1 + max(left, right))
    assert depth <= (number - 1).bit_length() + 1


def test_the_tree_depends_on_nothing_but_the_number():
    shape = tree(map(str, range(7)), lambda left, right: f"({left}{right})")
    assert shape == "(((01)(23))((45)6))"


def nested(left, right):
    return f"({left} {right})"


@given(st.integers(1, 70), st.sampled_from([1, 2, 4, 8, 16]))
def test_the_tree_of_runs_is_the_tree_of_blocks(number, size):
    names = [str(block) for block in range(number)]
    assert tree((tree(run, nested) for run in runs_of(names, size)), nested) == tree(names, nested)


def test_the_tree_of_other_runs_is_another_one():
    """The saboteur: three blocks are no node of the tree."""
    names = [str(block) for block in range(7)]
    assert tree((tree(run, nested) for run in runs_of(names, 3)), nested) != tree(names, nested)


@pytest.mark.parametrize(
    ("blocks", "workers", "size"), [(77, 2, 8), (77, 0, 16), (3, 2, 1), (770, 100, 1), (770, 2, 64)]
)
def test_each_worker_has_several_runs(blocks, workers, size):
    runs = runs_for(range(blocks), workers)
    assert [len(run) for run in runs[:-1]] == [size] * (len(runs) - 1)
    assert sum(map(len, runs)) == blocks
    assert len(runs) >= min(blocks, 4 * workers)


def test_few_values_are_held_at_a_time():
    alive = 0
    most = 0

    def born():
        nonlocal alive, most
        for _ in range(1000):
            alive += 1
            most = max(most, alive)
            yield 1

    def combine(left, right):
        nonlocal alive
        alive -= 1
        return left + right

    assert tree(born(), combine) == 1000
    assert most <= 11


def test_the_order_of_a_sum_matters_here_at_all():
    """The saboteur: if these sums did not depend on the order, equal bits would say nothing."""
    blocks = [sums(FEATURES[top : top + 64], 0)[0] for top in range(0, 3000, 64)]
    one_after_the_other = reduce(np.add, blocks)
    assert (tree(blocks, np.add) != one_after_the_other).any()


def serial(rows):
    return Passes(rows).map_reduce("sums", sums, added)


def test_processes_have_the_same_bits(tmp_path):
    rows = written(tmp_path, FEATURES, [1000, 1, 1999])
    found = Passes(rows, Processes(2)).map_reduce("sums", sums, added)
    assert np.array_equal(found[0], serial(rows)[0])
    assert found[1] == 3000


@pytest.mark.cases(2)
@pytest.mark.parametrize("at", [0, 64 * 11, 64 * 40])
def test_a_process_that_is_killed_costs_time_only(tmp_path, at):
    rows = rows_of(FEATURES, block_entries=64 * 3)
    mark = str(tmp_path / "mark")
    found = Passes(rows, Processes(2)).map_reduce("sums", partial(killed_once, mark, at), added)
    assert (tmp_path / "mark").exists()
    assert np.array_equal(found[0], serial(rows)[0])


@pytest.mark.parametrize("executor", [Serial(), Processes(2)], ids=["serial", "processes"])
def test_what_is_wrong_with_a_block_is_said_by_every_executor(tmp_path, executor):
    broken = FEATURES.copy()
    broken[2500, 2] = np.nan
    rows = written(tmp_path, broken, [2000, 1000])
    with pytest.raises(InvalidInput, match=r"001\.npy, row 500 has NaN"):
        Passes(rows, executor).map_reduce("sums", sums, added)


def test_a_pass_says_how_far_it_is():
    told = []
    rows = RowBlocks([ArraySource(FEATURES)], block_entries=64 * 3)
    meter = Meter(watch=lambda *what: told.append(what))
    Passes(rows, meter=meter).map_reduce("sums", sums, added)
    assert [one[1] for one in told] == [*range(64, 3000, 64), 3000]
    assert {(one[0], one[2]) for one in told} == {("sums", 3000)}
    assert told[-1][3] == 0.0
    assert meter.num_bytes == FEATURES.nbytes


@pytest.mark.parametrize("what", [None, "serial", Serial()])
def test_this_process_is_the_usual_executor(what):
    assert executor_of(what) == Serial()


def test_executors_by_name():
    assert executor_of("processes:3") == Processes(3)


@pytest.mark.parametrize("what", ["processes", "processes:x", "threads:2", "dask:", 3])
def test_executors_that_there_are_none_of_are_refused(what):
    with pytest.raises(InvalidInput, match="give serial, processes:N or dask:tcp://HOST:PORT"):
        executor_of(what)


def test_no_processes_are_refused():
    with pytest.raises(InvalidInput, match="processes"):
        executor_of("processes:0")


def test_a_long_pass_is_announced_once(caplog, monkeypatch):
    rows = RowBlocks([ArraySource(np.ones((640, 1)))], block_entries=64)
    clock = itertools.count(0, 10)  # ten seconds a look at it
    monkeypatch.setattr("surepick.chunks.passes.time.monotonic", lambda: next(clock))
    with caplog.at_level(logging.INFO, logger="surepick"):
        Passes(rows).map_reduce("design", sums, added)
    assert [record.getMessage() for record in caplog.records] == ["Going through 640 rows (design). About 90 s to go."]
