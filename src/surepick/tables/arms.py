"""Tables as arms: ids, features, and rows that share an id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Unpack

import numpy as np

from surepick.core.arms import Arms, checked_ids
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.errors import InvalidInput
from surepick.tables.parquet import ParquetSource
from surepick.tables.reading import ReadOptions, kind_of, read_table
from surepick.tables.selection import Names, Selection, column_names, feature_columns, row_ids, selected, warn_of_case
from surepick.tables.table import Table

SINGLE_ABOVE = 4_000_000
LIST = re.compile(r"(\[-?[0-9][-+0-9eE., ]*\])?")  # as Python writes a list of numbers, or a missing one
NO_SPREAD = "it has no standard deviation to divide by"
NO_NEWS = "it repeats the intercept, or adds nothing"


@record
class Grouped:
    """A table's rows gathered into arms: rows that share an id are one arm, in the order of first appearance.

    Args:
        arms: the K arms.
        arm_of_row: index of each row's arm, shape (rows,).
        table: the rows; those that miss a cell are not among them.
    """

    arms: Arms
    arm_of_row: IntArray
    table: Table


def read_arms(
    path: str | Path,
    id: Names | None = None,  # noqa: A002 (the public name)
    features: Names | None = None,
    *,
    standardize: bool = False,
    intercept: bool = False,
    **reading: Unpack[ReadOptions],
) -> Arms:
    """Arms from a file with one row an arm (CSV, spreadsheet, Parquet, Arrow, JSON), or from an Olympus folder.

    Args:
        path: as in `read_table`.
        id: the column of the ids, as written in the file but for spaces around them; several ("a,b" or a sequence)
            are joined by "/"; None: the row number, "0".."K-1" (in an Olympus folder: all parameters, rows with equal
            ones being one arm).
        features: the feature columns ("a,b" or a sequence). None: every other numeric column, else those of several
            id columns that are numeric (in an Olympus folder: the parameters). Text columns are one-hot encoded when
            named, as "column=value"; a column of lists of numbers in a Parquet file is a feature a number when named,
            as "column[0]", "column[1]", ...
        standardize: scale every feature to mean 0 and standard deviation 1 over the arms.
        intercept: append a column of ones, after standardizing.
        reading: sheet, percent and drop_missing, as in `read_table`.

    Returns:
        The arms; `.columns` names the features, `.preparation` says what was done to them.

    Raises:
        InvalidInput: the file cannot be read, a column is unknown, an id is repeated, a feature is not numeric, not
            finite, or constant where that is useless (with standardize or intercept); rows miss a cell that is used,
            and drop_missing is not given.

    Warns:
        TableWarning: as `read_table`; rows are left out, or two ids differ only in capital letters.

    Cost: of a Parquet file the numbers are held once, in the array that the arms keep. More than 4,000,000 that are
        float32 in the file stay so; `standardize` makes them float64. With percent or drop_missing it is read whole,
        and columns of lists are no features.
    """
    path = Path(path)
    if path.suffix.lower() == kind_of(path) == ".parquet" and not any(reading.values()):
        with closing(ParquetSource.open(path)) as source:
            return _parquet_arms(source, id, features, standardize=standardize, intercept=intercept)
    chosen = selected(read_table(path, **reading), id, features)
    if id is not None or not chosen.table.parameters:
        checked_ids(row_ids(chosen.table, id), chosen.table.num_rows)
    return _grouped(chosen, standardize=standardize, intercept=intercept).arms


def _parquet_arms(
    source: ParquetSource,
    id: Names | None,  # noqa: A002 (as in read_arms)
    features: Names | None,
    *,
    standardize: bool,
    intercept: bool,
) -> Arms:
    header = source.header()
    id_columns = () if id is None else column_names(header, id)
    named = None if features is None else column_names(header, features)
    table = source.outline(whole=id_columns, named=named)
    ids = None if id is None else checked_ids(row_ids(table, id), source.num_rows)
    warn_of_case(table.source, ids or ())
    names, places, known = _laid_out(source, table, feature_columns(table, id_columns, features))
    shape = (source.num_rows, len(names) + intercept)
    single = all(map(source.in_single, places)) and not known and not standardize
    matrix = np.empty(shape, np.float32 if single and shape[0] * shape[1] > SINGLE_ABOVE else np.float64)
    source.read_numbers(matrix, places)
    for column, values in known.values():
        matrix[:, column] = values
    if standardize:
        _refuse_constant(_views(matrix, names), NO_SPREAD)
        for column in range(len(names)):
            matrix[:, column] = _scaled(matrix[:, column])
    if intercept:
        _check_intercept(_views(matrix, names))
        matrix[:, -1] = 1.0
        names = (*names, "intercept")
    matrix.flags.writeable = False
    preparation = ("standardize",) * standardize + ("intercept",) * intercept
    return Arms(matrix, ids, columns=names, preparation=preparation)


def _views(matrix: FloatArray, names: Sequence[str]) -> dict[str, FloatArray]:
    return {name: matrix[:, column] for column, name in enumerate(names)}


def _laid_out(
    source: ParquetSource, table: Table, chosen: dict[str, bool]
) -> tuple[tuple[str, ...], dict[str, slice], dict[str, tuple[int, FloatArray]]]:
    """The names of the features; where columns still to be read go; and the features that the table already holds."""
    names: list[str] = []
    places: dict[str, slice] = {}
    known: dict[str, tuple[int, FloatArray]] = {}
    for name, numeric in chosen.items():
        if len(table.column(name)):
            for part, values in _encoded(table, name, numeric).items():
                known[part] = (len(names), values)
                names.append(part)
        else:
            parts = source.parts(name)
            places[name] = slice(len(names), len(names) + len(parts))
            names.extend(parts)
    return tuple(names), places, known


def grouped_arms(
    table: Table,
    id: Names | None = None,  # noqa: A002 (as in read_arms)
    features: Names | None = None,
    *,
    exclude: Sequence[str] = (),
    needed: Sequence[str] = (),
    standardize: bool = False,
    intercept: bool = False,
) -> Grouped:
    """The arms of a table in which an id may be repeated; arguments as in `read_arms`.

    Args:
        exclude: columns that are no features unless named (the rewards).
        needed: columns of numbers that are used besides; a row that misses one is treated as one without a feature.

    Raises:
        InvalidInput: as in `read_arms`, and rows of one id differ in a feature.
    """
    chosen = selected(table, id, features, exclude=exclude, needed=needed)
    return _grouped(chosen, standardize=standardize, intercept=intercept)


def _grouped(chosen: Selection, *, standardize: bool, intercept: bool) -> Grouped:
    table = chosen.table
    names = row_ids(table, chosen.ids or None)
    index: dict[str, int] = {}
    arm_of_row = np.array([index.setdefault(name, len(index)) for name in names], dtype=np.int64)
    warn_of_case(table.source, index if chosen.ids else ())
    _, first = np.unique(arm_of_row, return_index=True)

    columns: dict[str, FloatArray] = {}
    for name, numeric in chosen.features.items():
        columns.update(_encoded(table, name, numeric))
    _refuse_differing(table.source, columns, names, arm_of_row)
    prepared = {name: values[first] for name, values in columns.items()}
    if standardize:
        prepared = _standardized(prepared)
    if intercept:
        prepared = _with_intercept(prepared, len(index))
    matrix = np.column_stack(list(prepared.values())) if prepared else np.empty((len(index), 0))
    preparation = ("standardize",) * standardize + ("intercept",) * intercept
    return Grouped(Arms(matrix, list(index), columns=tuple(prepared), preparation=preparation), arm_of_row, table)


def _refuse_differing(source: str, columns: dict[str, FloatArray], names: Sequence[str], arm_of_row: IntArray) -> None:
    _, first = np.unique(arm_of_row, return_index=True)
    for name, values in columns.items():
        differs = np.flatnonzero((values != values[first][arm_of_row]) & np.isfinite(values))
        if differs.size:
            arm = arm_of_row[differs[0]]
            raise InvalidInput(
                f"{source}: rows of id {names[differs[0]]!r} differ in the feature {name!r} "
                f"({values[first[arm]]:g} and {values[differs[0]]:g}); an arm has one feature vector. "
                "Make the column part of the id, or leave it out of the features."
            )


def _encoded(table: Table, name: str, numeric: bool) -> dict[str, FloatArray]:
    """The column itself when numeric, else one 0/1 column for each of its values, in sorted order."""
    if numeric:
        return {name: table.numbers(name)}
    cells = np.array([cell.strip() for cell in table.text(name)])
    if any(cells.tolist()) and all(map(LIST.fullmatch, cells.tolist())):
        raise InvalidInput(
            f"{table.source}: column {name!r} holds lists of numbers; these become features only when a Parquet file "
            "is read without percent and drop_missing. Write a column for each number."
        )
    return {f"{name}={value}": (cells == value).astype(np.float64) for value in np.unique(cells).tolist()}


def _refuse_constant(columns: dict[str, FloatArray], why: str) -> None:
    for name, values in columns.items():
        if np.all(values == values[0]):
            raise InvalidInput(
                f"the feature column {name!r} is constant ({values[0]:g} for every arm): {why}. "
                "Leave it out of the features."
            )


def _standardized(columns: dict[str, FloatArray]) -> dict[str, FloatArray]:
    _refuse_constant(columns, NO_SPREAD)
    return {name: _scaled(values) for name, values in columns.items()}


def _scaled(values: FloatArray) -> FloatArray:
    if not np.all(np.isfinite(values)):
        return values  # refused by Arms, which can name the rows
    shifted = values - values[0]  # exact for close values, so that a tiny spread is not rounded away
    unit = shifted / np.max(np.abs(shifted))
    centred = unit - unit.mean()
    scaled: FloatArray = centred / centred.std()
    return scaled


def _with_intercept(columns: dict[str, FloatArray], num_arms: int) -> dict[str, FloatArray]:
    _check_intercept(columns)
    return columns | {"intercept": np.ones(num_arms)}


def _check_intercept(columns: dict[str, FloatArray]) -> None:
    _refuse_constant(columns, NO_NEWS)
    if "intercept" in columns:
        raise InvalidInput("a feature column is already named 'intercept'; rename it, or do not ask for an intercept.")
