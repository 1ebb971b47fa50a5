"""Rows a block at a time: what is formed of a block stays in the cache, and takes no memory for all rows."""

import functools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from surepick.core.records import FloatArray, IntArray, record

Array = TypeVar("Array", bound=NDArray[Any])

# --- One thread for linear algebra: the matrices here are small, and threads that wait for each other cost more. The
# limits that a user has set with threadpoolctl come back when the block ends.


def one_thread() -> AbstractContextManager[Any]:
    """Limit every library with threads that is loaded by now to one."""
    limited: AbstractContextManager[Any] = _libraries(len(sys.modules)).limit(limits=1)
    return limited


def several_threads() -> bool:
    """Whether linear algebra may use more than one thread now."""
    return any(library["num_threads"] > 1 for library in _libraries(len(sys.modules)).info())


@functools.lru_cache(maxsize=1)
def _libraries(_modules: int) -> Any:
    """The libraries with threads. Finding them takes milliseconds, and no other is loaded until a module is."""
    from threadpoolctl import ThreadpoolController  # noqa: PLC0415 (only where something is computed)

    return ThreadpoolController()


class _OneBlasThread:
    """The limit is the process's, on BLAS libraries loaded by then: set by the first block, taken back by the last."""

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController  # noqa: PLC0415

        self._libraries = ThreadpoolController()
        self._lock, self._blocks = threading.Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._blocks == 0:
                self._limit = self._libraries.limit(limits=1, user_api="blas")
            self._blocks += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0 and self._limit is not None:
                self._limit.restore_original_limits()
                self._limit = None


@functools.cache
def one_blas_thread() -> AbstractContextManager[None]:
    """Limit the BLAS libraries of numpy and scipy to one thread; 20 microseconds, for use around a single solve."""
    return _OneBlasThread()


ROWS = 8192
EVEN = 8  # rows at a time that a matrix product works on, at most
MANY = 4 * ROWS  # rows from which on blocks are shared among threads
MOST_THREADS = 8  # more wait for the memory
FEW_THREADS = 2  # for work whose blocks need much of it


def row_blocks(num_rows: int, size: int = ROWS) -> list[slice]:
    """Consecutive blocks of rows. Few rows are one block, whose products are those of the whole to the last bit."""
    return [slice(top, min(top + size, num_rows)) for top in range(0, num_rows, size)]


def each_row_block(work: Callable[[slice], None], num_rows: int, size: int = ROWS, *, most: int = MOST_THREADS) -> None:
    """Do some work for each block of rows, of many on all processors of this process; no bit depends on that."""
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


def filled(found: Array, part: Callable[[slice], NDArray[Any]], size: int = ROWS) -> Array:
    """The array, whose blocks of rows are what a function gives for each; see `each_row_block`."""

    def fill(rows: slice) -> None:
        found[rows] = part(rows)

    each_row_block(fill, len(found), size)
    return found


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
    return filled(np.empty((len(rows), right.shape[1])), lambda some: rows[some] @ right)


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
    return filled(np.empty_like(matrix), lambda some: matrix[some])


@functools.cache
def processors() -> int:
    """Those that this process is bound to, at most MOST_THREADS and SUREPICK_THREADS; one in a worker of several."""
    from multiprocessing import parent_process  # noqa: PLC0415

    if parent_process() is not None:
        return 1
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    told = os.environ.get("SUREPICK_THREADS", "")
    return min(bound, MOST_THREADS, int(told) if told.isdecimal() and int(told) > 0 else MOST_THREADS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=processors.cache_clear)


def evenly(rows: IntArray) -> IntArray:
    """The rows, (n,), the last of them again up to a multiple of EVEN: products are then those of all rows."""
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % EVEN)])


# --- Which rows of a matrix are equal: exactly, in a few passes, without a sorted copy of the matrix. And
# which are near each other: by cells that are equal.

BLOCK_ENTRIES = 4_000_000
MULTIPLIER_SEED = 20_201
NARROW = 4
FOLD = np.uint64(32)


@record
class EqualRows:
    """The classes of equal rows."""

    first: IntArray  # the first row of each class, ascending, (k,)
    group: IntArray  # for each of the K rows the number of its class, (K,)

    @property
    def none(self) -> bool:
        """No two rows are equal."""
        return len(self.first) == len(self.group)


def equal_rows(matrix: NDArray[Any]) -> EqualRows:
    """Classes of rows of floats that are equal as numbers (-0.0 equals 0.0), numbered in order of their first rows.
    Each row gets 64 bits, sum_j r_j fold(bits of x_j) modulo 2^64 with odd r_j; rows that share them are compared entry
    by entry, and the rare classes in which that fails are told apart by their bytes (multilinear hashing)."""
    num_rows = len(matrix)
    if matrix.size == 0:
        return EqualRows(np.zeros(min(num_rows, 1), np.int64), np.zeros(num_rows, np.int64))
    step = max(1, BLOCK_ENTRIES // matrix.shape[1])
    hashes = filled(np.empty(num_rows, np.uint64), lambda rows: _hashed(matrix[rows]), step)
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        everybody = np.arange(num_rows, dtype=np.int64)
        return EqualRows(everybody, everybody)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    shared = np.flatnonzero(first[group] != np.arange(num_rows))
    for top in range(0, len(shared), step):
        rows = shared[top : top + step]
        if not np.array_equal(matrix[rows], matrix[first[group[rows]]]):
            return _by_bytes(matrix)
    order = np.argsort(first)
    return EqualRows(first[order].astype(np.int64), places(order)[group].astype(np.int64))


COORDINATES = 4  # of a projection, whose cells are looked at
HEURISTIC_CELL = 0.25  # the side of a cell, of what a coordinate of unit vectors spreads
HEURISTIC_LOOKS = 6  # projections at most
HEURISTIC_JOINED = 0.02  # of the classes: a projection that joins fewer is the last
HEURISTIC_ALONE = 0.8  # of the rows: where after two projections so many are classes of their own, most stay it


def near_rows(matrix: FloatArray, lengths: FloatArray, share: float, least: float) -> EqualRows | None:
    """Classes of rows, (n, d), longest first, that are near each other; None of fewer than `least` rows on average.

    The first of the rows in a cell of a grid takes up those of its cell that are within a share of its length of it;
    the grids are those of fixed projections of row / length and log length, of one after the other for the rows that
    stand for a class. So a row is within a few times the share of its first one, and a class may come in parts."""
    everybody = np.arange(len(matrix))
    first, heads = everybody, everybody  # of each class, and of each row
    for look in range(HEURISTIC_LOOKS):
        found = equal_rows(_cells(matrix[first], lengths[first], look))
        joined = first[found.first[found.group]]
        alike = np.flatnonzero(joined != first)
        apart = matrix[first[alike]] - matrix[joined[alike]]
        far = alike[np.einsum("ij,ij->i", apart, apart) > (share * lengths[joined[alike]]) ** 2]
        joined[far] = first[far]
        step, before = everybody.copy(), len(first)
        step[first] = joined
        heads = step[heads]
        first = np.flatnonzero(heads == everybody)
        few = before - len(first) < HEURISTIC_JOINED * before
        if look > 0 and (few or len(first) > HEURISTIC_ALONE * len(matrix)):
            break
    if least * len(first) > len(matrix):
        return None
    return EqualRows(first, np.searchsorted(first, heads))


def _cells(matrix: FloatArray, lengths: FloatArray, look: int) -> FloatArray:
    """The cell of each row, shape (n, COORDINATES + 1)."""
    generator = np.random.Generator(np.random.PCG64(MULTIPLIER_SEED + look))
    directions = generator.standard_normal((matrix.shape[1], COORDINATES)) / HEURISTIC_CELL
    sizes = np.maximum(lengths, np.finfo(np.float64).tiny)[:, None]
    found = np.concatenate([(matrix @ directions) / sizes, np.log(sizes) / HEURISTIC_CELL], axis=1)
    found += generator.random(COORDINATES + 1)
    return np.asarray(np.floor(found))


def places(order: IntArray) -> IntArray:
    """Where each number 0 .. n - 1 stands in a permutation of them, shape (n,)."""
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found


def _hashed(rows: NDArray[Any]) -> NDArray[np.uint64]:
    bits = np.ascontiguousarray(rows, dtype=np.float64) + 0.0  # -0.0 becomes 0.0: equal numbers get equal bits
    words = bits.view(np.uint64)
    words ^= words >> FOLD  # short numbers have zeros below, which no product would move
    words *= _multipliers(rows.shape[1])
    sums: NDArray[np.uint64] = words.sum(axis=1, dtype=np.uint64) if words.shape[1] > NARROW else words[:, 0].copy()
    for column in range(1, words.shape[1] if words.shape[1] <= NARROW else 0):  # faster than short sums
        sums += words[:, column]
    sums ^= sums >> FOLD
    return sums


@functools.cache
def _multipliers(count: int) -> NDArray[np.uint64]:
    generator = np.random.Generator(np.random.PCG64(MULTIPLIER_SEED))
    drawn: NDArray[np.uint64] = generator.integers(0, 2**63, count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    drawn.flags.writeable = False
    return drawn


def _by_bytes(matrix: NDArray[Any]) -> EqualRows:
    """The same by comparing whole rows; for sets in which different rows share their 64 bits."""
    known: dict[bytes, int] = {}
    group = np.empty(len(matrix), np.int64)
    for rows in row_blocks(len(matrix), max(1, BLOCK_ENTRIES // max(matrix.shape[1], 1))):
        for number, row in enumerate(np.asarray(matrix[rows], dtype=np.float64) + 0.0, start=rows.start):
            group[number] = known.setdefault(row.tobytes(), len(known))
    _, first = np.unique(group, return_index=True)
    return EqualRows(first.astype(np.int64), group)


# --- Bounds on lengths by products in single precision, which take half the time of those in double precision.

LEAST_DIRECTIONS = 48  # from so many on it saves time
UNIT = 2.0**-24  # what rounding may be of a number
NOTHING = 2.0**-50  # of the longest row times the largest entry: more than what is lost of too small numbers

Single = NDArray[np.float32]


class SingleRows:
    """Rows z, (n, d), with ||z|| to a relative 1e-9, as 2^k z in single precision, of length at most 2: `rows`."""

    def __init__(self, rows: FloatArray, lengths: FloatArray) -> None:
        _, exponent = np.frexp(float(lengths.max(initial=0.0)))
        self.exponent, shrink = 1 - int(exponent), np.ldexp(1.0, 1 - int(exponent))
        self.rows: Single = filled(np.empty(rows.shape, np.float32), lambda some: shrink * rows[some])
        self._lengths = np.ldexp(lengths, self.exponent)

    def squares_at_most(self, right: FloatArray, count: int | None = None) -> FloatArray:
        """Upper bounds on ||z'R||^2 of the first rows, (count,), for R of (d, r) (docs/design-solver.md, line 14)."""
        largest = float(np.abs(right).max(initial=0.0))
        _, exponent = np.frexp(largest)
        scaled = np.ldexp(right, -int(exponent))
        terms = (sum(right.shape) + 4) * UNIT
        share, single = terms / (1.0 - terms), scaled.astype(np.float32)
        off = share * (1.0 + 1e-6) * float(np.sqrt(np.sum(scaled**2)))

        def squares(some: slice) -> Single:
            found = self.rows[some] @ single
            return np.asarray(np.einsum("ij,ij->i", found, found))

        bounds = filled(np.empty(len(self.rows) if count is None else count), squares)
        np.sqrt(bounds, out=bounds)
        bounds *= 1.0 + 2.0 * share
        bounds += off * self._lengths[: len(bounds)] + NOTHING
        bounds *= bounds
        return np.ldexp(bounds, 2 * (int(exponent) - self.exponent))
