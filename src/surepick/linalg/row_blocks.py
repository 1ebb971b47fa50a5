"""Rows a block at a time: what is formed of a block stays in the cache, and takes no memory for all rows."""

from __future__ import annotations

ROWS = 8192


def row_blocks(num_rows: int) -> list[slice]:
    """Consecutive blocks of rows. Few rows are one block, whose products are those of the whole to the last bit."""
    return [slice(top, min(top + ROWS, num_rows)) for top in range(0, num_rows, ROWS)]
