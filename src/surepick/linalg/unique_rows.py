"""Which rows of a matrix are equal: exactly, in a few passes, without a sorted copy of the matrix."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surepick.core.arrays import IntArray, record
from surepick.linalg.row_blocks import each_row_block

BLOCK_ENTRIES = 4_000_000
MULTIPLIER_SEED = 20_201
NARROW = 4
FOLD = np.uint64(32)


@record
class EqualRows:
    """The classes of equal rows.

    Args:
        first: the first row of each class, ascending, shape (k,).
        group: for each of the K rows the number of its class, shape (K,).
    """

    first: IntArray
    group: IntArray

    @property
    def none(self) -> bool:
        """No two rows are equal."""
        return len(self.first) == len(self.group)


def equal_rows(matrix: NDArray[Any]) -> EqualRows:
    """Classes of rows that are equal as numbers (-0.0 equals 0.0), numbered in order of their first rows.

    Each row gets 64 bits, sum_j r_j fold(bits of x_j) modulo 2^64 with odd r_j; rows that share them are compared
    entry by entry, and the rare classes in which that fails are told apart by their bytes.

    Args:
        matrix: shape (K, D), finite, float32 or float64; may be memory-mapped: it is read in blocks.

    Source: ours (multilinear hashing). Cost: O(K D + K log K) time, 24 bytes a row and one block beyond the matrix.
    """
    num_rows = len(matrix)
    if matrix.size == 0:
        return EqualRows(np.zeros(min(num_rows, 1), np.int64), np.zeros(num_rows, np.int64))
    hashes = np.empty(num_rows, np.uint64)

    def hash_rows(rows: slice) -> None:
        hashes[rows] = _hashed(matrix[rows])

    each_row_block(hash_rows, num_rows, max(1, BLOCK_ENTRIES // matrix.shape[1]))
    ordered = np.sort(hashes)
    if not (ordered[1:] == ordered[:-1]).any():
        everybody = np.arange(num_rows, dtype=np.int64)
        return EqualRows(everybody, everybody)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    shared = np.flatnonzero(first[group] != np.arange(num_rows))
    step = max(1, BLOCK_ENTRIES // matrix.shape[1])
    for top in range(0, len(shared), step):
        rows = shared[top : top + step]
        if not np.array_equal(matrix[rows], matrix[first[group[rows]]]):
            return _by_bytes(matrix)
    return _in_order(first, group)


def places(order: IntArray) -> IntArray:
    """Where each number 0 .. n - 1 stands in a permutation of them, shape (n,)."""
    found = np.empty_like(order)
    found[order] = np.arange(len(order))
    return found


def blocks(matrix: NDArray[Any]) -> list[slice]:
    """Consecutive blocks of rows with at most BLOCK_ENTRIES entries."""
    step = max(1, BLOCK_ENTRIES // max(matrix.shape[1], 1))
    edges = [*range(0, len(matrix), step), len(matrix)]
    return [slice(*ends) for ends in pairwise(edges)]


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
    for rows in blocks(matrix):
        for number, row in enumerate(np.asarray(matrix[rows], dtype=np.float64) + 0.0, start=rows.start):
            group[number] = known.setdefault(row.tobytes(), len(known))
    _, first = np.unique(group, return_index=True)
    return EqualRows(first.astype(np.int64), group)


def _in_order(first: IntArray, group: IntArray) -> EqualRows:
    """The classes numbered by their first rows."""
    order = np.argsort(first)
    return EqualRows(first[order].astype(np.int64), places(order)[group].astype(np.int64))
