"""Files with more candidates than memory holds: rows that are read a block at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.chunks.sources import NpySource, RowBlocks, RowSource
from surepick.core.arms import is_nameless, may_count
from surepick.core.files import as_path, check_regular, is_folder
from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.tables.content import readable
from surepick.tables.numbers import is_missing, truth
from surepick.tables.parquet import ParquetSource, pyarrow_parquet
from surepick.tables.reading import SHEETS, kind_of
from surepick.tables.selection import Names, column_names, named_features
from surepick.tables.table import EXACT_INTEGERS, Table, Understood
from surepick.text import look_of, quoted

KINDS = (".npy", ".parquet")
KEPT_GROUPS = 2  # row groups that a process holds, since a block rarely ends where one does


@record
class ParquetRows:
    """Rows of a Parquet file, read a row group at a time."""

    name: str  # the path of the file
    columns: tuple[str, ...]  # the features, columns of numbers
    id: str | None  # the column of the ids, read when they are asked for; None: rows are named by their numbers
    starts: tuple[int, ...]  # the first row of each row group, and the number of rows
    single: bool  # the numbers are float32
    changed: int  # when the file was last written, in ns; a file that is written while it is used is refused

    @staticmethod
    def of(path: Path, id: str | None, features: Names | None) -> ParquetRows:  # noqa: A002 (as in read_arms)
        """Those of a file, of which only the schema is read."""
        changed = check_regular(path).st_mtime_ns
        with ParquetSource.open(path) as source:
            header = Table(source.name, dict.fromkeys(source.names, ()))
            named = () if id is None else column_names(header, id)
            scalars = [name for name, kind in source.numbers.items() if kind.num_fields == 0]
            chosen = [name for name in scalars if name not in named and not _numbers_rows(source, name)]
            if (wanted := named_features(header, features)) is not None:
                chosen = list(wanted)
                texts = [name for name in chosen if name not in scalars]
                if texts:
                    raise InvalidInput(f"{path}: {texts[0]!r} is no column of numbers; read in blocks, features are.")
            if not chosen:
                raise InvalidInput(f"{path} has no column of numbers; candidates need features.")
            if len(named) > 1:
                raise InvalidInput(f"{path}: ids of one column are read in blocks, not of {len(named)}.")
            groups = [source.file.metadata.row_group(group).num_rows for group in range(source.file.num_row_groups)]
            starts = tuple(np.cumsum([0, *groups]).tolist())
            single = source.in_single(chosen)
        return ParquetRows(str(path), tuple(chosen), named[0] if named else None, starts, single, changed)

    @property
    def spec(self) -> dict[str, Any]:
        columns = {"id": self.id, "features": list(self.columns)}
        return {"path": str(Path(self.name).resolve()), **columns, "changed": self.changed}

    @property
    def num_rows(self) -> int:
        return self.starts[-1]

    @property
    def num_columns(self) -> int:
        return len(self.columns)

    @property
    def row_bytes(self) -> int:
        """Of the numbers; compressed they take less in the file."""
        return (4 if self.single else 8) * len(self.columns)

    def read(self, start: int, stop: int) -> FloatArray:
        found = np.empty((stop - start, len(self.columns)), np.float32 if self.single else np.float64)
        for group, here in self._places(np.arange(start, stop)):
            values = _group(self.name, self.changed, group, self.columns, self.single)
            first = start + here.start - self.starts[group]
            found[here] = values[first : first + here.stop - here.start]
        return found

    def take(self, rows: IntArray) -> FloatArray:
        found = np.empty((len(rows), len(self.columns)))
        for group, here in self._places(rows):
            values = _group(self.name, self.changed, group, self.columns, self.single)
            found[here] = values[rows[here] - self.starts[group]]
        return found

    def ids(self, rows: IntArray) -> list[str] | None:
        """The ids of single rows, ascending; None where they have none of their own."""
        if self.id is None:
            return None
        found: list[str] = []
        for group, here in self._places(rows):
            with readable(self.name, "Parquet"):
                column = pyarrow_parquet().parquet.ParquetFile(self.name).read_row_group(group, columns=[self.id])[0]
                cells = column.take(rows[here] - self.starts[group]).to_pylist()
            if None in cells:
                raise InvalidInput(f"{self.name}, row {int(rows[here][cells.index(None)])} has no {self.id}.")
            found += [str(cell).strip() for cell in cells]
        return found

    def _places(self, rows: IntArray) -> Iterator[tuple[int, slice]]:
        """(row group, which of the rows are in it)."""
        ends = np.searchsorted(rows, self.starts)
        for group, (first, last) in enumerate(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)):
            if first < last:
                yield group, slice(first, last)


@functools.lru_cache(maxsize=KEPT_GROUPS)
def _group(path: str, changed: int, group: int, columns: tuple[str, ...], single: bool) -> FloatArray:
    """The numbers of a row group; a missing one is NaN."""
    if check_regular(Path(path)).st_mtime_ns != changed:
        raise InvalidInput(f"{path} was written to while it was used; what was found in it is worth nothing.")
    with readable(path, "Parquet"):
        file = pyarrow_parquet().parquet.ParquetFile(path, memory_map=True)
        table = file.read_row_group(group, columns=list(columns))
    values = np.empty((table.num_rows, len(columns)), np.float32 if single else np.float64)
    for place, name in enumerate(columns):
        values[:, place] = table[name].to_numpy()
    values.flags.writeable = False
    return values


def read_blocks(
    where: str | Path,
    id: str | None = None,  # noqa: A002 (as in read_arms)
    features: Names | None = None,
    **more: Any,
) -> RowBlocks:
    """Candidates in files, read a block at a time: what `read_arms` gives with blocks=True."""
    path = as_path(where, meaning="rows in blocks are files.")
    if is_folder(path):
        files = sorted(one for one in path.iterdir() if one.suffix in KINDS)
    elif "*" in path.name:
        files = sorted(path.parent.glob(path.name))
    else:
        files = [path]
    if not files:
        raise InvalidInput(f"{where} has no .npy and no .parquet file.")
    return RowBlocks([_source(one, id, features) for one in files], **more)


def read_again(spec: Mapping[str, Any]) -> tuple[RowBlocks, bool]:
    """(the rows whose `RowBlocks.spec` this is, whether a file was written to since)."""
    try:
        files = [(Path(one["path"]), one.get("id"), one.get("features")) for one in spec["files"]]
        entries = int(spec["block_entries"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"where the rows lie cannot be read: {error!r}.") from None
    rows = RowBlocks([_source(*one) for one in files], block_entries=entries)
    before, now = [[one.get("changed") for one in each["files"]] for each in (spec, rows.spec or spec)]
    for (path, named, _), was, is_now in zip(files, before, now, strict=True):
        if named is not None and was != is_now:
            raise InvalidInput(
                f"{path} was written to since the study was made, so its ids may be those of other rows. Put the file "
                "back as it was, with its time."
            )
    return rows, before != now


def _source(path: Path, id: str | None, features: Names | None) -> RowSource:  # noqa: A002 (as in read_arms)
    if path.suffix == ".npy":
        if id is not None or features is not None:
            raise InvalidInput(f"{path} has no named columns; leave out id and features, or give Parquet files.")
        return NpySource.of(path)
    if path.suffix == ".parquet":
        return ParquetRows.of(path, id, features)
    raise InvalidInput(f"{path} is read whole, not in blocks; write it as Parquet or .npy.")


def _numbers_rows(source: ParquetSource, name: str) -> bool:
    """Whether a column says the number of each row, by its name and its first cells; a later file goes on counting."""
    if is_nameless(source.names, name):
        return True
    if not may_count(name) or source.file.num_row_groups == 0:
        return False
    with readable(source.name, "Parquet"):
        cells = source.file.read_row_group(0, columns=[name])[name].to_numpy()
    return len(cells) > 1 and bool(np.all(np.diff(cells) == 1))


# --- Tables of results: the keys of their rows, and which rows have a reward, failed, or are still empty.

KEY = "key"  # the usual column of the keys
KEYS = frozenset({KEY, "keys"})  # in any spelling
SHEET_DIGITS = 1e15  # from here on a spreadsheet has put zeros in the place of digits
FAILED = "failed"  # in place of a reward: the measurement gave none and is asked again


@dataclass(frozen=True, slots=True)
class ResultRows:
    """The rows of a table of single measurements, by what is in the column of the reward."""

    measured: list[int]  # rows with a reward
    rewards: list[float]  # theirs
    failed: list[int]  # rows of measurements that failed
    empty: int  # how many rows have no reward yet


def key_column(source: str, columns: Iterable[str]) -> str | None:
    """The column of the keys, whose name is "key" or "keys" in any spelling; None: there is none."""
    found = [name for name in columns if look_of(name).strip("'\"").casefold() in KEYS]
    if len(found) > 1:
        raise InvalidInput(
            f"{source} has the columns {quoted(found[0])} and {quoted(found[1])}, and one of them holds the keys: name "
            "it with --key, or remove the other."
        )
    return found[0] if found else None


def row_keys(table: Table, key: str | None = None) -> Sequence[str | None] | None:
    """The keys of the rows, None for a row without; None when no column has them."""
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
    """The rows that have a reward, those that failed, and how many are empty."""
    cells = table.column(reward)
    if not isinstance(cells, tuple):
        filled = np.flatnonzero(~np.isnan(cells)).tolist()
        return ResultRows(filled, cells[filled].tolist(), [], len(cells) - len(filled))
    failed = [row for row, cell in enumerate(cells) if cell.strip().lower() == FAILED]
    empty = [row for row, cell in enumerate(cells) if not cell.strip()]
    others = {*failed, *empty}
    measured = [row for row in range(len(cells)) if row not in others]
    rest = replace(table.without(sorted(others)), understood=Understood())
    words = [cells[row] for row in measured if truth(cells[row]) is not None]
    passed = [word for word in words if word.strip().lower()[:4] == "pass"]
    if failed and passed:
        raise InvalidInput(
            f"{table.source}, row {table.line_of(failed[0])}: beside {passed[0]!r}, is {FAILED!r} a result, or a "
            "measurement that gave none and is asked again? Write 1 and 0 for results."
        )
    truths = rest.notation(reward).truths
    bad = [measured[row] for row in rest.bad_rows(reward) if not (truths and truth(cells[measured[row]]) is not None)]
    cure = f"Leave a cell empty that is still to be measured, and write {FAILED} where a measurement gave no result."
    if any(table.are_percentages(reward, [row]) for row in bad):
        cure = "Write 0.013 for 1.3%, or give --percent."
    if bad and not table.are_percentages(reward, bad):  # these have their own words
        raise InvalidInput(
            f"{table.source}, row {table.line_of(bad[0])}: the reward {cells[bad[0]]!r} is not a number ({len(bad)} "
            f"such rows). {cure}"
        )
    return ResultRows(measured, rest.numbers(reward).tolist(), failed, len(empty))
