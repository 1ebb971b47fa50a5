"""Tables of results: the keys of their rows, and which rows have a reward, failed, or are still empty."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from surepick.errors import InvalidInput
from surepick.tables.numbers import is_missing, truth
from surepick.tables.reading import SHEETS, kind_of
from surepick.tables.table import EXACT_INTEGERS, Table, Understood
from surepick.text import look_of, quoted

KEY = "key"  # the usual column of the keys
KEYS = frozenset({KEY, "keys"})  # in any spelling
SHEET_DIGITS = 1e15  # from here on a spreadsheet has put zeros in the place of digits
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


def key_column(source: str, columns: Iterable[str]) -> str | None:
    """The column of the keys, whose name is "key" or "keys" in any spelling; None: there is none.

    Databases and spreadsheets write headers in their own way, and results whose keys are not seen count twice.

    Args:
        source: where the table is from, for messages.
        columns: the names of its columns.

    Raises:
        InvalidInput: there are several.
    """
    found = [name for name in columns if look_of(name).strip("'\"").casefold() in KEYS]
    if len(found) > 1:
        raise InvalidInput(
            f"{source} has the columns {quoted(found[0])} and {quoted(found[1])}, and one of them holds the keys: name "
            "it with --key, or remove the other."
        )
    return found[0] if found else None


def row_keys(table: Table, key: str | None = None) -> Sequence[str | None] | None:
    """The keys of the rows, None for a row without; None when no column has them.

    Args:
        table: the results.
        key: the column of the keys; None: as `key_column` finds it.

    Raises:
        InvalidInput: there is no such column, or several that may be it; a key is a number that has lost digits.
    """
    name = key_column(table.source, table.columns) if key is None else key
    if name is None:
        return None
    cells, texts = table.column(name), table.text(name)
    if isinstance(cells, tuple):
        return [None if is_missing(text) else text for text in texts]
    most = SHEET_DIGITS if kind_of(Path(table.source)) in SHEETS else EXACT_INTEGERS
    lost = np.flatnonzero(np.abs(cells) >= most)
    if len(lost):
        raise InvalidInput(
            f"{table.source}, row {table.line_of(int(lost[0]))}: the key {texts[lost[0]]} is a number of more digits "
            "than the file keeps, so that several keys may have become one. Write the column as text, or leave the "
            "keys away. Nothing was stored."
        )
    return [None if np.isnan(cell) else text for cell, text in zip(cells, texts, strict=True)]


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
