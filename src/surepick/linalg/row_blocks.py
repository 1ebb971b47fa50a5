"""Rows a block at a time: what is formed of a block stays in the cache, and takes no memory for all rows."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import IntArray

ROWS = 8192
EVEN = 8  # rows at a time that a matrix product works on, at most


def row_blocks(num_rows: int) -> list[slice]:
    """Consecutive blocks of rows. Few rows are one block, whose products are those of the whole to the last bit."""
    return [slice(top, min(top + ROWS, num_rows)) for top in range(0, num_rows, ROWS)]


def evenly(rows: IntArray) -> IntArray:
    """The rows, shape (n,), and the last of them again until their number is a multiple of EVEN.

    A product of some rows of a matrix is then that of all rows, to the last bit, where products take EVEN rows at a
    time and the rows that are left over in another way.
    """
    return np.concatenate([rows, np.repeat(rows[-1:], -len(rows) % EVEN)])
