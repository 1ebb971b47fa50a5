"""Tables of results: the keys of their rows, and which rows have a reward, failed, or are still empty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from surepick.errors import InvalidInput
from surepick.tables.numbers import truth
from surepick.tables.table import Table, Understood

KEY = "key"  # the usual column of the keys
FAILED = "failed"  # in place of a reward: the measurement gave none and is asked again


@dataclass(frozen=True, slots=True)
class ResultRows:
    """The rows of a table of single measurements, by what is in the column of the reward.

    Args:
        measured: rows with a reward.
        rewards: theirs.
        failed: rows of measurements that failed.
        empty: how many rows have no reward yet.
    """

    measured: list[int]
    rewards: list[float]
    failed: list[int]
    empty: int


def row_keys(table: Table, key: str | None = None) -> Sequence[str | None] | None:
    """The keys of the rows, None for a row without; None when no column has them.

    Args:
        table: the results.
        key: the column of the keys; None: "key", if there is one.

    Raises:
        InvalidInput: there is no such column.
    """
    if key is None and KEY not in table.columns:
        return None
    cells, texts = table.column(key or KEY), table.text(key or KEY)
    if not isinstance(cells, tuple):  # a column of numbers, or one of a Parquet or JSON-lines file with nothing in it
        return [None if np.isnan(cell) else text for cell, text in zip(cells, texts, strict=True)]
    return [text if text.strip() else None for text in texts]


def result_rows(table: Table, reward: str) -> ResultRows:
    """The rows that have a reward, those that failed, and how many are empty.

    Raises:
        InvalidInput: a cell is neither a number, nor empty, nor "failed"; its row is named.
    """
    cells = table.column(reward)
    if not isinstance(cells, tuple):
        filled = np.flatnonzero(~np.isnan(cells)).tolist()
        return ResultRows(filled, cells[filled].tolist(), [], len(cells) - len(filled))
    failed = [row for row, cell in enumerate(cells) if cell.strip().lower() == FAILED]
    empty = [row for row, cell in enumerate(cells) if not cell.strip()]
    others = {*failed, *empty}
    measured = [row for row in range(len(cells)) if row not in others]
    rest = replace(table.without(sorted(others)), understood=Understood())
    passed = [
        cells[row] for row in measured if truth(cells[row]) is not None and cells[row].strip().lower()[:4] == "pass"
    ]
    if failed and passed:
        raise InvalidInput(
            f"{table.source}, row {table.line_of(failed[0])}: beside {passed[0]!r}, is {FAILED!r} a result, or a "
            "measurement that gave none and is asked again? Write 1 and 0 for results."
        )
    words = rest.notation(reward).truths
    bad = [measured[row] for row in rest.bad_rows(reward) if not (words and truth(cells[measured[row]]) is not None)]
    is_share = any(table.are_percentages(reward, [row]) for row in bad)
    cure = (
        "Write 0.013 for 1.3%, or give --percent." if is_share else "Leave a cell empty that is still to be measured,"
    )
    if bad and not table.are_percentages(reward, bad):  # these have their own words
        raise InvalidInput(
            f"{table.source}, row {table.line_of(bad[0])}: the reward {cells[bad[0]]!r} is not a number ({len(bad)} "
            f"such rows). {cure}{'' if is_share else f' and write {FAILED} where a measurement gave no result.'}"
        )
    return ResultRows(measured, rest.numbers(reward).tolist(), failed, len(empty))
