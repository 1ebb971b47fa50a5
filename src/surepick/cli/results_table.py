"""Tables of results: `surepick ask --out` writes one with empty rewards, `surepick tell` reads it filled in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from surepick.core.files import is_file
from surepick.errors import InvalidInput
from surepick.studies.batch import Batch
from surepick.studies.progress import times
from surepick.studies.study import Study
from surepick.tables.reading import read_table
from surepick.tables.selection import row_ids
from surepick.tables.table import Table
from surepick.tables.writing import write_table

ID, KEY, REWARD = "id", "key", "reward"
FAILED = "failed"  # in place of a reward: the measurement gave none and is asked again
Keys = Sequence[str | None]


def write_plan(plan: Batch, out: Path) -> None:
    """A table with one row a measurement, whose rewards are to be filled in."""
    ids, keys = zip(*plan.keys(), strict=True)
    columns = {ID: ids, KEY: keys, REWARD: [None] * len(ids)}
    write_table(out, columns, kinds={ID: str, KEY: str, REWARD: float})


def check_table_name(path: Path) -> None:
    """Refuse a file of a kind that no table is written as."""
    if path.suffix not in (".csv", ".parquet", ".jsonl"):
        raise InvalidInput(f"{path} is no table that can be written; its name must end in .csv, .parquet or .jsonl.")


def keep_rewards(study: Study, out: Path) -> None:
    """Refuse to write over a file with rewards that the study does not have.

    Raises:
        InvalidInput: the file is there, and has such rewards or is no table of results.
    """
    if not is_file(out):
        return
    table = read_table(out)
    if not {ID, KEY, REWARD} <= table.columns.keys():
        raise InvalidInput(f"{out} is there already, and is not a table that ask wrote; give another name.")
    filled = [row for row, cell in enumerate(table.text(REWARD)) if cell.strip() not in ("", "nan")]
    ids, keys = row_ids(table, ID), keys_of(table, KEY) or []
    lost = study.recorded([ids[row] for row in filled], [keys[row] for row in filled]).count(False)
    if lost:
        raise InvalidInput(
            f"{out} has results that were not told ({times(lost, 'row')}), and would be written over. Tell it first, "
            "or give another name."
        )


def keys_of(table: Table, key: str | None) -> Keys | None:
    """The keys of the rows, None for a row without; None when no column has them."""
    if key is None and KEY not in table.columns:
        return None
    cells, texts = table.column(key or KEY), table.text(key or KEY)
    if not isinstance(cells, tuple):  # a column of numbers, or one of a Parquet or JSON-lines file with nothing in it
        return [None if np.isnan(cell) else text for cell, text in zip(cells, texts, strict=True)]
    return [text if text.strip() else None for text in texts]


@dataclass(frozen=True, slots=True)
class Sorted:
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


def sorted_rows(table: Table, reward: str) -> Sorted:
    """The rows that have a reward, those that failed, and how many are empty.

    Raises:
        InvalidInput: a cell is neither a number, nor empty, nor "failed"; its row is named.
    """
    cells = table.column(reward)
    if not isinstance(cells, tuple):
        filled = np.flatnonzero(~np.isnan(cells)).tolist()
        return Sorted(filled, cells[filled].tolist(), [], len(cells) - len(filled))
    failed = [row for row, cell in enumerate(cells) if cell.strip().lower() == FAILED]
    empty = [row for row, cell in enumerate(cells) if not cell.strip()]
    others = {*failed, *empty}
    bad = [row for row in table.bad_rows(reward) if row not in others]
    if bad and not table.are_percentages(reward, bad):  # these have their own words
        raise InvalidInput(
            f"{table.source}, row {table.line_of(bad[0])}: the reward {cells[bad[0]]!r} is not a number ({len(bad)} "
            f"such rows). Leave a cell empty that is still to be measured, and write {FAILED} where a measurement gave "
            "no result."
        )
    measured = [row for row in range(len(cells)) if row not in others]
    return Sorted(measured, table.without(sorted(others)).numbers(reward).tolist(), failed, len(empty))
