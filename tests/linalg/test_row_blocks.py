"""Blocks of rows that several threads share: the same numbers with any number of threads."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from surepick.linalg import rows as row_blocks
from surepick.linalg.rows import (
    MANY,
    ROWS,
    copied,
    each_row_block,
    one_blas_thread,
    processors,
    product_of_rows,
    some_rows,
)

COUNT = MANY + 1234


@pytest.fixture(params=[1, 2, 5])
def threads(request, monkeypatch) -> int:
    monkeypatch.setattr(row_blocks, "processors", lambda: request.param)
    return int(request.param)


def test_each_row_is_worked_on_once(threads):
    times, workers = np.zeros(COUNT, int), set()

    def work(rows: slice) -> None:
        workers.add(threading.get_ident())
        assert rows.stop - rows.start <= ROWS
        times[rows] += 1

    each_row_block(work, COUNT)
    assert (times == 1).all()
    assert (threading.get_ident() in workers) == (threads == 1)


def test_products_and_copies_are_those_of_one_thread(threads):
    rng = np.random.default_rng(1)
    rows, right, order = rng.standard_normal((COUNT, 30)), rng.standard_normal((30, 20)), rng.permutation(COUNT)
    np.testing.assert_allclose(product_of_rows(rows, right), rows @ right, rtol=1e-13, atol=1e-12)
    with one_blas_thread():
        blocks = [rows[top : top + ROWS] @ right for top in range(0, COUNT, ROWS)]
    assert (product_of_rows(rows, right) == np.concatenate(blocks)).all()
    assert (some_rows(rows, order) == rows[order]).all()
    assert (copied(rows) == rows).all()
    assert copied(rows) is not rows


def test_bits_are_the_same_where_linear_algebra_has_threads_of_its_own(monkeypatch):
    """Large products of two threads of BLAS have other last bits than those of one."""
    rng = np.random.default_rng(2)
    rows, right = rng.standard_normal((MANY, 200)), rng.standard_normal((200, 200))
    found = []
    with threadpool_limits(2):
        for threads in (1, 3):
            monkeypatch.setattr(row_blocks, "processors", lambda threads=threads: threads)
            found.append(product_of_rows(rows, right))
            libraries: list[int] = []

            def note(_: slice, libraries=libraries) -> None:
                libraries.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")

            each_row_block(note, MANY)
            assert set(libraries) == {1}
    assert (found[0] == found[1]).all()


def test_after_an_error_no_other_block_is_begun(monkeypatch):
    monkeypatch.setattr(row_blocks, "processors", lambda: 2)
    begun = []

    def work(rows: slice) -> None:
        begun.append(rows.start)
        if rows.start == 0:
            raise ArithmeticError("here")
        time.sleep(0.01)

    with pytest.raises(ArithmeticError, match="here"):
        each_row_block(work, 50 * ROWS)
    assert len(begun) < 25


def test_a_thread_that_outlives_the_program_goes_on_alone():
    program = """
import threading, time
import numpy as np
from surepick.linalg import rows as row_blocks
row_blocks.processors = lambda: 4

def late():
    time.sleep(.5)
    times = np.zeros(row_blocks.MANY)
    def work(rows): times[rows] += 1.0
    row_blocks.each_row_block(work, len(times))
    print(times.min(), times.max())

threading.Thread(target=late).start()
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["1.0", "1.0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_worker_takes_one_thread():
    assert processors() >= 1
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(processors) == 1


def test_an_error_of_one_block_reaches_the_caller(threads):
    def work(rows: slice) -> None:
        if rows.start == 2 * ROWS:
            raise ArithmeticError("here")

    with pytest.raises(ArithmeticError, match="here"):
        each_row_block(work, COUNT)


def test_what_the_caller_says_of_errors_of_numbers_holds(threads):
    zeros = np.zeros(COUNT)

    def work(rows: slice) -> None:
        zeros[rows] / zeros[rows]

    with np.errstate(invalid="ignore"):
        each_row_block(work, COUNT)
    with np.errstate(invalid="raise"), pytest.raises(FloatingPointError):
        each_row_block(work, COUNT)


def test_few_rows_need_no_thread(monkeypatch):
    monkeypatch.setattr(row_blocks, "processors", lambda: pytest.fail("not asked"))
    each_row_block(lambda rows: None, MANY - 1)


def test_how_many_threads(monkeypatch):
    ask = processors.__wrapped__
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(40)), raising=False)
    monkeypatch.setenv("SUREPICK_THREADS", "3")
    assert ask() == 3
    monkeypatch.setenv("SUREPICK_THREADS", "90")
    assert ask() == row_blocks.MOST_THREADS
    for nothing in ("", "0", "many"):
        monkeypatch.setenv("SUREPICK_THREADS", nothing)
        assert 1 <= ask() <= row_blocks.MOST_THREADS
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "somebody")
    assert ask() == 1
