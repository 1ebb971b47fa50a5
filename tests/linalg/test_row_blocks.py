"""Blocks of rows that several threads share: the same numbers with any number of threads."""

import multiprocessing
import threading

import numpy as np
import pytest

from surepick.linalg import row_blocks
from surepick.linalg.row_blocks import MANY, ROWS, each_row_block, processors, product_of_rows, some_rows

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
    blocks = [rows[top : top + ROWS] @ right for top in range(0, COUNT, ROWS)]
    assert (product_of_rows(rows, right) == np.concatenate(blocks)).all()
    assert (some_rows(rows, order) == rows[order]).all()


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
    monkeypatch.setenv("SUREPICK_THREADS", "3")
    assert ask() == 3
    for nothing in ("", "0", "many"):
        monkeypatch.setenv("SUREPICK_THREADS", nothing)
        assert 1 <= ask() <= row_blocks.MOST_THREADS
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: "somebody")
    assert ask() == 1
