"""Rows a block at a time: what is formed of a block stays in the cache, and takes no memory for all rows."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from contextvars import copy_context

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.linalg.blas_threads import one_blas_thread

ROWS = 8192
EVEN = 8  # rows at a time that a matrix product works on, at most
MANY = 4 * ROWS  # rows from which on blocks are shared among threads
MOST_THREADS = 8  # more wait for the memory
FEW_THREADS = 2  # for work whose blocks need much of it


def row_blocks(num_rows: int, size: int = ROWS) -> list[slice]:
    """Consecutive blocks of rows. Few rows are one block, whose products are those of the whole to the last bit."""
    return [slice(top, min(top + size, num_rows)) for top in range(0, num_rows, size)]


def each_row_block(work: Callable[[slice], None], num_rows: int, size: int = ROWS, *, most: int = MOST_THREADS) -> None:
    """Do some work for each block of rows; where there are many rows, on all processors that this process may use.

    What the work writes of its own block does not depend on the others, nor on the number of threads, to the last bit:
    numpy lets other threads run while it computes, and the linear algebra behind it takes one thread for each block.

    Args:
        work: writes what belongs to its block, and nothing else.
        size: rows of a block.
        most: threads at most, for work that needs much memory.
    """
    blocks = row_blocks(num_rows, size)
    if num_rows < MANY:
        for rows in blocks:
            work(rows)
        return
    with one_blas_thread():
        threads = min(processors(), most, len(blocks))
        if threads > 1 and threading.main_thread().is_alive():  # later no thread can be started
            _shared(work, blocks, threads)
        else:
            for rows in blocks:
                work(rows)


def _shared(work: Callable[[slice], None], blocks: list[slice], threads: int) -> None:
    """The work for each block, by some threads; after an error no other block is begun."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 (only where much is computed)

    pool = ThreadPoolExecutor(threads)
    try:
        for done in [pool.submit(copy_context().run, work, rows) for rows in blocks]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)


def product_of_rows(rows: FloatArray, right: FloatArray) -> FloatArray:
    """The product of a matrix of many rows, shape (n, d), with another, shape (d, r)."""
    if len(rows) < MANY:
        return np.asarray(rows @ right)
    found = np.empty((len(rows), right.shape[1]))

    def multiply(some: slice) -> None:
        np.matmul(rows[some], right, out=found[some])

    each_row_block(multiply, len(rows))
    return found


def some_rows(matrix: FloatArray, rows: IntArray) -> FloatArray:
    """Rows of a matrix, shape (n, d), in any order, shape (m,): a copy, shape (m, d)."""
    if len(rows) < MANY:
        return matrix.take(rows, axis=0)
    taken = np.empty((len(rows), matrix.shape[1]))

    def take(block: slice) -> None:
        np.take(matrix, rows[block], axis=0, out=taken[block], mode="clip")  # which needs no copy in between

    each_row_block(take, len(rows))
    return taken


def copied(matrix: FloatArray) -> FloatArray:
    """A copy of a matrix of many rows, shape (n, d)."""
    found = np.empty_like(matrix)

    def copy(some: slice) -> None:
        found[some] = matrix[some]

    each_row_block(copy, len(matrix))
    return found


@functools.cache
def processors() -> int:
    """How many processors this process may use: those it is bound to, at most MOST_THREADS and SUREPICK_THREADS; one
    where multiprocessing has started it, as one of several workers."""
    from multiprocessing import parent_process  # noqa: PLC0415

    if parent_process() is not None:
        return 1
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("SUREPICK_THREADS", "")
    return min(bound, MOST_THREADS, int(told) if told.isdecimal() and int(told) > 0 else MOST_THREADS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=processors.cache_clear)


def evenly(rows: IntArray) -> IntArray:
    """The rows, shape (n,), and the last of them again until their number is a multiple of EVEN.

    A product of some rows of a matrix is then that of all rows, to the last bit, where products take EVEN rows at a
    time and the rows that are left over in another way.
    """
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % EVEN)])
