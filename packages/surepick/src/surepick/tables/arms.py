"""Tables as arms: ids, features, and rows that share an id."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy as np

from surepick.chunks.sources import RowBlocks
from surepick.core.arms import Arms, KnownIds, Originals, checked_ids, may_count
from surepick.core.files import as_path
from surepick.core.frames import SOURCE, is_frame
from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.tables import selection
from surepick.tables.described import described_columns, described_rows
from surepick.tables.parquet import ParquetSource, table_of_frame
from surepick.tables.reading import ReadOptions, kind_of, read_table
from surepick.tables.rows import read_blocks
from surepick.tables.table import Table, warn
from surepick.text import quoted

# --- The column of a table that says what one measurement of each candidate costs.

POSITIVE = "A cost is a positive number, in the same currency for all candidates"


def row_costs(table: Table, name: str, ids: Sequence[str]) -> FloatArray:
    """What one measurement costs, row by row."""
    if empty := table.missing_rows(name):
        raise _refused(table, name, ids, empty, f"{POSITIVE}. Fill the cell in, or leave the row out")
    if words := table.bad_rows(name):
        raise _refused(table, name, ids, words, f"{POSITIVE}, without a unit. Correct the cell")
    costs = table.numbers(name)
    wrong = np.flatnonzero(~((costs > 0.0) & np.isfinite(costs))).tolist()
    if wrong:
        raise _refused(table, name, ids, wrong, f"{POSITIVE}. Correct the cell, or leave the row out")
    return costs


def _refused(table: Table, name: str, ids: Sequence[str], rows: Sequence[int], cure: str) -> InvalidInput:
    row, more = rows[0], len(rows) - 1
    cell = table.text(name)[row].strip()
    others = f", and {more} more row{'s' * (more > 1)} cannot be used" if more else ""
    return InvalidInput(
        f"{table.source}, row {table.line_of(row)}: the cost of candidate {ids[row]!r} in column {name!r} is "
        f"{repr(cell) if cell else 'empty'}{others}. {cure}."
    )


# --- The columns of a table that say something of candidates and are no features: their cost and their segment.


@record
class ArmOptions:
    """Which columns these are, which are the features, and what is done to them."""

    features: selection.Names | selection.Unnamed | selection.Unused
    cost: str | None = None  # of what one measurement costs; None: measurements cost alike
    segments: str | None = None  # of the segment of each candidate; None: there is one list
    reward: str | None = None  # of the results, which the table need not have
    standardize: bool = False
    intercept: bool = False
    drop_candidates: bool = False
    describe: selection.Names | None = None  # the columns that are kept as text; None: all

    @staticmethod
    def of(features: selection.Names | selection.Unnamed | selection.Unused | None, **others: Any) -> ArmOptions:
        """Numbers that nobody named are needed where they are prepared."""
        if features is None:
            prepared = others.get("standardize") or others.get("intercept")
            features = selection.Unnamed.needed if prepared else selection.Unnamed.spare
        return ArmOptions(features, **others)

    def no_features(self, table: Table) -> tuple[str, ...]:
        """Those that are no features unless they are named as some."""
        return (*self.columns(table), *self.results(table))

    def results(self, table: Table) -> tuple[str, ...]:
        """The column of the results, if the table has it."""
        return () if self.reward is None or self.reward not in table.columns else (self.reward,)

    def columns(self, table: Table) -> tuple[str, ...]:
        """The columns, as the table names them."""
        given = [name for name in (self.cost, self.segments) if name is not None]
        return selection.column_names(table, given) if given else ()


def arms_apart(
    table: Table, asked: ArmOptions, ids: Sequence[str], first: IntArray, arm_of_row: IntArray
) -> dict[str, Any]:
    """`costs` and `segments` of `Arms`, as far as they are asked for, where rows that share an id are one candidate."""
    found: dict[str, Any] = {}
    if asked.cost is not None:
        name = selection.column_names(table, [asked.cost])[0]
        costs = row_costs(table, name, ids)
        found["costs"] = costs[first]
        differs = np.flatnonzero(costs != costs[first][arm_of_row])
        if differs.size:
            row = differs[0]
            raise InvalidInput(
                f"{table.source}, row {table.line_of(row)}: candidate {ids[row]!r} costs {costs[row]:g} in column "
                f"{name!r}, and {costs[first][arm_of_row[row]]:g} in an earlier row; a candidate has one cost. Write "
                "the same in all of its rows."
            )
    if asked.segments is not None:
        name = selection.column_names(table, [asked.segments])[0]
        rows = np.array(_row_segments(table, name, ids))
        differs = np.flatnonzero(rows != rows[first][arm_of_row])
        if differs.size:
            row = differs[0]
            raise InvalidInput(
                f"{table.source}, row {table.line_of(row)}: candidate {ids[row]!r} is in segment {str(rows[row])!r} of "
                f"column {name!r}, and in {str(rows[first][arm_of_row[row]])!r} in an earlier row; a candidate has one "
                "segment. Write the same in all of its rows, or make the column part of the id."
            )
        found["segments"] = rows[first].tolist()
    return found


def _row_segments(table: Table, name: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The segment of each row, without spaces around it."""
    cells = tuple(cell.strip() for cell in table.text(name))
    empty = [row for row, cell in enumerate(cells) if not cell]
    if empty:
        row, more = empty[0], len(empty) - 1
        others = f", and {more} more row{'s' * (more > 1)}" if more else ""
        raise InvalidInput(
            f"{table.source}, row {table.line_of(row)}: the segment of candidate {ids[row]!r} in column {name!r} is "
            f"empty{others}. Fill the cell in, or leave the row out."
        )
    return cells


SHOWN = 5  # columns that are no features, by name
SINGLE_ABOVE = 4_000_000
LIST = re.compile(r"(\[-?[0-9][-+0-9eE., ]*\])?")  # as Python writes a list of numbers, or a missing one


@record
class Grouped:
    """A table's rows gathered into arms: rows that share an id are one arm, in the order of first appearance."""

    arms: Arms  # the K arms
    arm_of_row: IntArray  # index of each row's arm, shape (rows,)
    table: Table  # the rows; those that miss a cell are not among them


@overload
def read_arms(
    path: str | Path,
    id: selection.Names | None = None,
    features: selection.Names | None = None,
    *,
    blocks: Literal[True],
) -> RowBlocks: ...
@overload
def read_arms(
    path: object,
    id: selection.Names | None = None,
    features: selection.Names | selection.Unnamed | selection.Unused | None = None,
    *,
    cost: str | None = None,
    segments: str | None = None,
    reward: str | None = None,
    standardize: bool = False,
    intercept: bool = False,
    drop_candidates: bool = False,
    describe: selection.Names | None = None,
    blocks: Literal[False] = False,
    **reading: Unpack[ReadOptions],
) -> Arms: ...
def read_arms(
    path: object,
    id: selection.Names | None = None,  # noqa: A002 (the public name)
    features: selection.Names | selection.Unnamed | selection.Unused | None = None,
    *,
    cost: str | None = None,
    segments: str | None = None,
    reward: str | None = None,
    standardize: bool = False,
    intercept: bool = False,
    drop_candidates: bool = False,
    describe: selection.Names | None = None,
    blocks: bool = False,
    **reading: Unpack[ReadOptions],
) -> Arms | RowBlocks:
    """Arms from a table with one row an arm: a file (CSV, spreadsheet, Parquet, Arrow, JSON), an Olympus folder, or a
    data frame.

    Args:
        path: as in `read_table`; or a data frame of pandas, polars, pyarrow, or of whatever speaks the Arrow or the
            dataframe protocol: its index, if it has one, is the id, or the columns that are named.
        id: the column of the ids, as written in the file but for spaces around them; several ("a,b" or a sequence)
            are joined by "/"; None: the column "id", if its cells are unlike and none is empty, else the row number,
            "0".."K-1" (in an Olympus folder: all parameters, rows with equal ones being one arm).
        features: the feature columns ("a,b" or a sequence); [] or "none": there are none. None: every other numeric
            column that can be one, else those of several id columns that are numeric (in an Olympus folder: the
            parameters). A column that numbers the rows ("Unnamed: 0", "index", one without a name) is none unless it
            is named; one that misses a cell, holds words or varies within an id is set aside (`Arms.aside`), which a
            policy that uses features refuses, and no other. Text columns are one-hot encoded when named, as
            "column=value"; a column of lists of numbers in a Parquet file is a feature a number when named, as
            "column[0]", "column[1]", ...
        cost: the column of what one measurement of each candidate costs, in any currency; it is no feature unless it
            is named as one. None: measurements cost alike.
        segments: the column of the segment of each candidate, e.g. "region"; it is no feature unless it is named as
            one. None: there is one list.
        reward: the column of results, if the table has one; it is no feature unless it is named as one.
        standardize: scale every feature to mean 0 and standard deviation 1 over the arms.
        intercept: append a column of ones, after standardizing.
        drop_candidates: with drop_missing, candidates of which no row is left may go; else they are named and refused.
        describe: the columns that say what a candidate is, for people (`Arms.described`); no policy sees them. None:
            all but those of the ids and of the results, at most 20; "none": none.
        blocks: read nothing now: more candidates than memory holds, as rows of .npy or Parquet files that are gone
            through block by block. `path` may be a folder of them, or a pattern ("library/*.parquet"). Costs, segments
            and prepared features are not known of these.
        reading: how to read the file, as in `read_table`: sheet, sheets_are_ids, header, skip_units, fill_down,
            decimal, thousands, percent, drop_missing.

    Returns:
        The arms; `.columns` names the features, `.preparation` says what was done to them. With blocks=True the rows,
        for `find_best`.

    Raises:
        InvalidInput: the file cannot be read, a column is unknown, an id is repeated, a feature is not numeric, not
            finite, or constant where that is useless (with standardize or intercept); a cost is not a positive number,
            or a segment is empty; rows miss a cell that is used, and drop_missing is not given, or a candidate would go
            with them, and drop_candidates is not given.

    Warns:
        TableWarning: as `read_table`; rows or candidates are left out, a column is set aside or numbers the rows, or
            two ids differ only in capital letters or look the same.

    Cost: of a Parquet file the numbers are held once, in the array that the arms keep. More than 4,000,000 that are
        float32 in the file stay so; `standardize` makes them float64. With percent or drop_missing it is read whole,
        and columns of lists are no features.
    """
    if blocks:
        if cost or segments or standardize or intercept or any(reading.values()):
            raise InvalidInput(
                "candidates in blocks are rows of numbers as they are: leave out cost, segments, standardize, "
                "intercept, and what says how to read a table, and prepare the files."
            )
        chosen = None if isinstance(features, selection.Unnamed | selection.Unused) else features
        where = as_path(path, meaning="rows in blocks are in files.")
        return read_blocks(where, id if id is None or isinstance(id, str) else ",".join(id), chosen)
    columns: dict[str, Any] = {"cost": cost, "segments": segments, "reward": reward}
    prepared: dict[str, Any] = {"standardize": standardize, "intercept": intercept, "drop_candidates": drop_candidates}
    prepared["describe"] = describe
    asked = ArmOptions.of(features, **columns, **prepared)
    if drop_candidates:
        reading["drop_missing"] = True
    if is_frame(path):
        drop = bool(reading.pop("drop_missing", False))
        if any(reading.values()):
            raise InvalidInput(f"{SOURCE} holds its numbers already; leave out {', '.join(sorted(reading))}.")
        framed, named, labels = table_of_frame(path, id, drop_missing=drop)
        found = _grouped(framed, named, asked, repeats=False)
        kept = [labels[found.table.line_of(row) - 1] for row in range(found.table.num_rows)]
        return found.arms.with_objects(Originals.of(selection.row_ids(found.table, named), kept))
    path = as_path(path, meaning="a table is read from a file or a data frame.")
    if path.suffix.lower() == kind_of(path) == ".parquet" and not any(reading.values()):
        with ParquetSource.open(path) as source:
            return _parquet_arms(source, id, asked)
    table = read_table(path, **reading)
    repeats = id is None and bool(table.parameters or table.usual_id)
    return _grouped(table, id, asked, repeats=repeats).arms


def _parquet_arms(source: ParquetSource, id: selection.Names | None, asked: ArmOptions) -> Arms:  # noqa: A002
    """The arms of a Parquet file, whose numbers go from the file into the array of the arms."""
    header = Table(source.name, dict.fromkeys(source.names, ()))
    id_columns = () if id is None else selection.column_names(header, id)
    named = asked.columns(header)
    counting = [name for name in source.numbers if may_count(name)]
    wanted = selection.named_features(header, asked.features)
    table = source.outline((*id_columns, *named, *(counting if wanted is None else ())), wanted)
    ids = None if id is None else checked_ids(selection.row_ids(table, id), source.num_rows)
    selection.warn_of_look(table.source, ids or ())
    rows = ids or selection.row_ids(table, None)
    every = np.arange(source.num_rows)
    more = arms_apart(table, asked, rows, every, every)
    names: list[str] = []
    places: dict[str, slice] = {}
    known: dict[int, FloatArray] = {}
    for name, numeric in selection.feature_columns(table, id_columns, asked.features, asked.no_features(table)).items():
        first = len(names)
        if name in source.numbers:
            names += source.parts(name)
            places[name] = slice(first, len(names))
        else:
            encoded = _encoded(table, name, numeric)
            known |= dict(enumerate(encoded.values(), start=first))
            names += encoded
    width = len(names) + asked.intercept
    in_single = source.in_single(places) and not known and not asked.standardize
    large = source.num_rows * width > SINGLE_ABOVE
    matrix = np.empty((source.num_rows, width), np.float32 if in_single and large else np.float64)
    source.read_numbers(matrix, places)
    for column, values in known.items():
        matrix[:, column] = values
    if asked.features is selection.Unnamed.spare:
        found = {name: _why_not_finite(source.name, name, matrix[:, row], rows) for row, name in enumerate(names)}
        aside = {name: why for name, why in found.items() if why}
        more |= _set_aside(aside)
        if aside:
            matrix = np.delete(matrix, [column for column, name in enumerate(names) if name in aside], axis=1)
            names = [name for name in names if name not in aside]
    apart = {*id_columns, *asked.results(header), *(name for name in source.names if source.in_lists(name))}
    said = described_columns(header, asked.describe, apart, source.num_rows)
    described = described_rows(source.outline(said, ()), said)
    return _prepared(matrix, names, ids, more, asked).with_description(described)


def grouped_arms(
    table: Table,
    id: selection.Names | None = None,  # noqa: A002 (as in read_arms)
    features: selection.Names | selection.Unnamed | selection.Unused | None = None,
    *,
    exclude: Sequence[str] = (),
    needed: Sequence[str] = (),
    **asked: Any,
) -> Grouped:
    """The arms of a table in which an id may be repeated; arguments as in `read_arms`, but for `exclude`, columns that
    are no features, and `needed`, columns in which a row has a cell."""
    return _grouped(table, id, ArmOptions.of(features, **asked), exclude, needed, repeats=True)


def _grouped(
    table: Table,
    id: selection.Names | None,  # noqa: A002 (as in read_arms)
    asked: ArmOptions,
    exclude: Sequence[str] = (),
    needed: Sequence[str] = (),
    *,
    repeats: bool,
) -> Grouped:
    """As `grouped_arms`; without `repeats` an id must not be repeated, and a column "id" of unlike cells has them."""
    usual = table.usual_id or table.parameters or (() if repeats else selection.column_of_ids(table))
    id_columns = selection.column_names(table, id or usual) if id is not None or usual else ()
    named = asked.columns(table)
    numeric = selection.feature_columns(table, id_columns, asked.features, (*exclude, *asked.no_features(table)))
    spare = asked.features is selection.Unnamed.spare and not table.parameters
    needed = [*needed, *named] if table.drop_missing else needed  # else `arms_apart` names the candidate, too
    whole = [*(name for name, is_number in numeric.items() if is_number and not spare), *needed]
    gone = selection.candidates_gone(table, id_columns, whole, accepted=asked.drop_candidates)
    table = selection.complete_rows(table, id_columns, whole, also=gone)
    names = selection.row_ids(table, id_columns or None)
    if not repeats:
        checked_ids(names, table.num_rows)
    index: dict[str, int] = {}
    arm_of_row = np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64)
    selection.warn_of_look(table.source, index if id_columns else ())
    _, first = np.unique(arm_of_row, return_index=True)
    columns: dict[str, FloatArray] = {}
    aside: dict[str, str] = {}
    for name, is_number in numeric.items():
        if spare and (why := _why_no_feature(table, name, names, first[arm_of_row])):
            aside[name] = why
        else:
            columns |= _encoded(table, name, is_number)
    matrix = np.empty((len(index), len(columns) + asked.intercept))
    for column, (name, values) in enumerate(columns.items()):
        matrix[:, column] = values[first]
        if (row := _first_that_differs(values, first[arm_of_row])) is not None:
            raise InvalidInput(
                f"{table.source}: rows of id {names[row]!r} differ in the feature {name!r} "
                f"({matrix[arm_of_row[row], column]:g} and {values[row]:g}); an arm has one feature vector. "
                "Make the column part of the id, or leave it out of the features."
            )
    more = arms_apart(table, asked, names, first, arm_of_row) | _set_aside(aside)
    said = described_columns(table, asked.describe, {*id_columns, *exclude, *asked.results(table)}, table.num_rows)
    described = described_rows(table, said, first, None if asked.describe else arm_of_row)
    made = _prepared(matrix, list(columns), list(index), more, asked).with_description(described)
    return Grouped(made, arm_of_row, table)


def column_of_arms(table: Table, arms: Arms, id: selection.Names | None, column: str) -> FloatArray:  # noqa: A002
    """What a column of numbers says of each arm, (K,): a row of it, or all of them alike."""
    usual = table.usual_id or table.parameters
    id_columns = selection.column_names(table, id or usual) if id is not None or usual else ()
    name = selection.column_names(table, [column])[0]
    places, found = {arm: place for place, arm in enumerate(arms.ids)}, np.full(arms.num_arms, np.nan)
    rows = zip(selection.row_ids(table, id_columns or None), table.numbers(name).tolist(), strict=True)
    for row, (arm, value) in enumerate(rows):
        place = places.get(arm)
        if place is None:
            continue
        if np.isfinite(found[place]) and found[place] != value:
            raise InvalidInput(
                f"{table.source}, row {table.line_of(row)}: column {name!r} says {value:g} of candidate {arm!r}, and "
                f"{found[place]:g} in an earlier row. Write the same in all of its rows."
            )
        found[place] = value
    return found


def _first_that_differs(values: FloatArray, first_of_row: IntArray) -> int | None:
    """The first row whose value is another one than that of the first row of its arm; None where there is none."""
    differs = np.flatnonzero((values != values[first_of_row]) & np.isfinite(values))
    return int(differs[0]) if differs.size else None


def _why_no_feature(table: Table, name: str, ids: Sequence[str], first_of_row: IntArray) -> str:
    """Why a column of numbers that nobody named can be no feature, a sentence; "" where it can."""
    column = f"{table.source}: column {name!r}"
    try:
        missing = table.missing_rows(name)
        values = table.without(missing).numbers(name) if missing else table.numbers(name)
    except InvalidInput as error:
        return str(error)
    if missing:
        return f"{column} misses a cell of {ids[missing[0]]!r} (row {table.line_of(missing[0])})."
    if why := _why_not_finite(table.source, name, values, ids):
        return why
    row = _first_that_differs(values, first_of_row)
    return "" if row is None else f"{column} differs between rows of id {ids[row]!r}."


def _why_not_finite(source: str, name: str, values: FloatArray, ids: Sequence[str]) -> str:
    bad = np.flatnonzero(~np.isfinite(values))
    return f"{source}: column {name!r} has no finite number of {ids[bad[0]]!r}." if bad.size else ""


def _set_aside(aside: Mapping[str, str]) -> dict[str, Any]:
    """`aside` of `Arms`, from the columns and why they are no features, with a warning."""
    if not aside:
        return {}
    names = list(map(quoted, aside))
    others = f" (nor {', '.join(names[1:SHOWN])}{' and more' * (len(names) > SHOWN)})" if len(names) > 1 else ""
    warn(
        f"{next(iter(aside.values()))} So {names[0]} is no feature{others}, which concerns only policies that use "
        "features: for one of these correct it, or name the features."
    )
    return {"aside": tuple(aside.values())}


def _encoded(table: Table, name: str, numeric: bool) -> dict[str, FloatArray]:
    """The column itself when numeric, else one 0/1 column for each of its values, in sorted order."""
    if numeric:
        return {name: table.numbers(name)}
    cells = np.array([cell.strip() for cell in table.text(name)])
    if any(cells.tolist()) and all(map(LIST.fullmatch, cells.tolist())):
        raise InvalidInput(
            f"{table.source}: column {name!r} holds lists of numbers. We read lists as features only from a Parquet "
            "file, without percent and drop_missing. Write a column for each number."
        )
    return {f"{name}={value}": (cells == value).astype(np.float64) for value in np.unique(cells).tolist()}


def _prepared(
    matrix: FloatArray, names: list[str], ids: Sequence[str] | None, more: dict[str, Any], asked: ArmOptions
) -> Arms:
    """Arms with the features of an array, (K, D) or, with an intercept, (K, D + 1); `more` is from `arms_apart`."""
    if asked.standardize:
        _refuse_constant(matrix, names, "it has no standard deviation to divide by")
        for column in range(len(names)):
            matrix[:, column] = _scaled(matrix[:, column])
    if asked.intercept:
        _refuse_constant(matrix, names, "it repeats the intercept, or adds nothing")
        if "intercept" in names:
            raise InvalidInput("a feature column is already named 'intercept'; rename it, or do not add an intercept.")
        matrix[:, -1] = 1.0
        names = [*names, "intercept"]
    matrix.flags.writeable = False
    preparation = ["standardize"] * asked.standardize + ["intercept"] * asked.intercept
    return Arms(matrix, None if ids is None else KnownIds(ids), columns=names, preparation=preparation, **more)


def _refuse_constant(matrix: FloatArray, names: Sequence[str], why: str) -> None:
    for column, name in enumerate(names):
        if np.all(matrix[:, column] == matrix[0, column]):
            raise InvalidInput(
                f"the feature column {name!r} is constant ({matrix[0, column]:g} for every arm): {why}. "
                "Leave it out of the features."
            )


def _scaled(values: FloatArray) -> FloatArray:
    """Values with mean 0 and standard deviation 1, shape (K,); those that are not finite as they are."""
    if not np.all(np.isfinite(values)):
        return values  # Arms refuses them, and can name the rows
    shifted = values - values[0]  # exact for close values, so that a tiny spread is not rounded away
    unit = shifted / np.max(np.abs(shifted))
    centred = unit - unit.mean()
    return np.asarray(centred / centred.std())
