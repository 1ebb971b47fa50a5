"""Files as tables: text with separators, spreadsheets, Parquet, Arrow, JSON, and Olympus folders."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from surepick.errors import InvalidInput
from surepick.tables.arrow import check_distinct, read_arrow_columns, read_columns
from surepick.tables.content import file_text
from surepick.tables.delimited import SEPARATORS, delimited_rows, read_delimited
from surepick.tables.spreadsheet import read_sheet, sheet_columns
from surepick.tables.table import Column, Table, header_hint

SHEETS = (".xlsx", ".xlsm", ".ods")
ARROW = (".feather", ".arrow", ".ipc")

EXACT_INTEGERS = 2**53


class ReadOptions(TypedDict, total=False):
    """How a table is read, for whatever reads one; each is explained at `read_table`."""

    sheet: str | None
    percent: bool
    drop_missing: bool


def read_table(
    path: str | Path, *, sheet: str | None = None, percent: bool = False, drop_missing: bool = False
) -> Table:
    """A table from a file, or from an Olympus folder (data.csv and config.json).

    Args:
        path: by its ending: `.parquet`; `.feather`, `.arrow` or `.ipc` (Arrow); `.xlsx` or `.ods` (a spreadsheet);
            `.jsonl` (one JSON object a line); `.json` (an array of such objects); a folder is read as Olympus' format.
            Anything else is text in UTF-8 (a byte-order mark is ignored) with a header; it is separated by commas,
            tabs or semicolons, which its first two rows show. Comment lines (# ...) above the header are skipped.
            `.gz` behind any of these is unpacked.
        sheet: the sheet of a spreadsheet; None: the first.
        percent: cells like 1.3% are the number 0.013.
        drop_missing: rows that miss a cell which is needed are left out where the table is used.

    Returns:
        The table. An apostrophe before = + - @ or a tab, by which texts are kept from being computed in a spreadsheet,
        is taken away from texts of separated files and spreadsheets (`write_table` puts it there).

    Raises:
        InvalidInput: the file is missing, damaged or no regular file, has no rows, ragged rows, repeated or empty
            column names, or bytes that are not UTF-8; there is no such sheet, or no cell is a percentage; each with
            its own message.

    Warns:
        TableWarning: separators that are not commas, comments that were skipped, sheets that were not read.
    """
    path = Path(path)
    kind = kind_of(path)
    if sheet is not None and kind not in SHEETS:
        raise InvalidInput(f"{path} has no sheets ({sheet!r} is asked for); .xlsx and .ods files have.")
    table = replace(_read(path, kind, sheet), percent=percent, drop_missing=drop_missing)
    if percent and not any(_has_percentages(cells) for cells in table.columns.values()):
        raise InvalidInput(
            f"{path}: percentages are asked for, and no cell ends in %, so nothing would be divided by 100. Leave the "
            "option away; a spreadsheet's own percentages are read as 0.013 without it."
        )
    return table


def kind_of(path: Path) -> str:
    """The ending that decides how a file is read, in small letters: ".csv" for arms.CSV.gz; "" for a folder."""
    try:
        if path.is_dir():
            return ""
    except (OSError, ValueError):  # said in words where the file is read
        pass
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return name.suffix.lower() or ".csv"


def _read(path: Path, kind: str, sheet: str | None) -> Table:
    if kind in SHEETS:
        return _read_spreadsheet(path, sheet)
    if kind in ARROW or kind == ".parquet":
        return _checked(path, read_columns(path) if kind == ".parquet" else read_arrow_columns(path))
    if kind in (".json", ".jsonl"):
        return _records_as_table(path, read_json_lines(path) if kind == ".jsonl" else _read_json_array(path))
    return _read_text(path) if kind else _read_olympus(path)


def _has_percentages(cells: Column) -> bool:
    return isinstance(cells, tuple) and any(cell.rstrip().endswith("%") for cell in cells)


def _read_text(path: Path) -> Table:
    found = read_delimited(path, file_text(path))
    (_, header), cells = found.rows[0], found.rows[1:]
    names = tuple(name.strip() for name in header)
    if not cells:
        raise _no_rows(path, names)
    table = _from_rows(path, names, cells, separator=found.separator)
    return replace(table, decimal=found.decimal)


def _no_rows(path: Path, names: Sequence[str]) -> InvalidInput:
    hint = header_hint(names)
    return InvalidInput(
        f"{path} has a header ({', '.join(names)}) and no rows; there is nothing to choose among.{' ' * bool(hint)}"
        f"{hint}"
    )


def _named(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    """Names of columns, of which every one has one and no two the same."""
    whole = tuple(name or f"column {position}" for position, name in enumerate(names, start=1))
    hint = header_hint(names)
    if hint and len(set(whole)) < len(whole):
        raise InvalidInput(f"{path} has columns of one name. {hint}")
    check_distinct(path, list(whole))
    return whole


def _from_rows(
    path: Path, names: tuple[str, ...], rows: list[tuple[int, list[str]]], separator: str = ",", **declared: Any
) -> Table:
    names = _named(path, names)
    for line, row in rows:
        if len(row) != len(names):
            mark = SEPARATORS[separator].removesuffix("s")
            raise InvalidInput(
                f"{path}, line {line}: {len(row)} cells where {len(names)} columns were expected. "
                f"Fill missing cells, and quote cells that contain a {mark}."
            )
    cells = zip(*(row for _, row in rows), strict=True)
    lines = np.array([line for line, _ in rows], dtype=np.int64)
    return Table(str(path), dict(zip(names, cells, strict=True)), first_row=rows[0][0], lines=lines, **declared)


def _read_spreadsheet(path: Path, name: str | None) -> Table:
    sheet = read_sheet(path, name)
    if not sheet.rows:
        raise _no_rows(path, sheet.header)
    table = _checked(path, sheet_columns(sheet, _named(path, sheet.header)))
    return replace(table, first_row=sheet.lines[0], lines=np.array(sheet.lines, dtype=np.int64))


def _read_olympus(folder: Path) -> Table:
    config_path = folder / "config.json"
    if not config_path.is_file() or not (folder / "data.csv").is_file():
        raise InvalidInput(f"{folder} is a folder without data.csv and config.json; give a file or an Olympus folder.")
    try:
        config = _json(file_text(config_path), str(config_path))
        parameters = tuple(str(column["name"]) for column in config["parameters"])
        measurements = tuple(str(column["name"]) for column in config["measurements"])
        goal = config["default_goal"]
        minimize = {"minimize": True, "maximize": False}[goal]
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"{config_path} is not an Olympus configuration ({type(error).__name__}: {error}). "
            "It must name the parameters, the measurements, and default_goal (minimize or maximize)."
        ) from error
    return _from_rows(
        folder / "data.csv",
        parameters + measurements,
        delimited_rows(folder / "data.csv", file_text(folder / "data.csv")),
        parameters=parameters,
        measurements=measurements,
        minimize=minimize,
    )


def cells_as_column(values: Sequence[Any]) -> Column:
    """Numbers when every value is one (missing: NaN), else text; whole numbers that no float holds are text, too."""
    if all(value is None or _is_number(value) for value in values):
        return np.array([np.nan if value is None else float(value) for value in values], dtype=np.float64)
    return tuple("" if value is None else str(value) for value in values)


def _is_number(value: object) -> bool:
    """Whether a float holds it exactly: a key or an id of 17 digits is the text that stands there."""
    return isinstance(value, float) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) <= EXACT_INTEGERS
    )


def _checked(path: Path, columns: Mapping[str, Sequence[Any]]) -> Table:
    if not columns or not len(next(iter(columns.values()))):
        raise InvalidInput(f"{path} has no rows; there is nothing to choose among.")
    return Table(str(path), {name: cells_as_column(values) for name, values in columns.items()})


def _json(text: str, where: str) -> Any:
    """A JSON value.

    Raises:
        InvalidInput: it is none, it is nested too deeply, or an integer has too many digits.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON: {error}.") from error


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object a line.

    Raises:
        InvalidInput: the file is missing or empty, or a line is not a JSON object (it is named).
    """
    objects = []
    for number, line in enumerate(file_text(Path(path)).split("\n"), start=1):
        if not line.strip():
            continue
        value = _json(line, f"{path}, line {number}")
        if not isinstance(value, dict):
            raise InvalidInput(f"{path}, line {number}: a JSON object is needed, not {line.strip()[:40]!r}.")
        objects.append(value)
    return objects


def _read_json_array(path: Path) -> list[dict[str, Any]]:
    needed = (
        'a table is an array of records, [{"id": "a", "x": 1}, ...], or one record a line in a file that ends in .jsonl'
    )
    try:
        value = _json(file_text(path), str(path))
    except InvalidInput as error:
        raise InvalidInput(f"{error} In JSON, {needed}.") from error
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return value
    held = "one object" if isinstance(value, dict) else "a single value"
    if isinstance(value, list):
        held = "an array of something else than records" if value else "an empty array"
    raise InvalidInput(f"{path} holds {held}; {needed}.")


def _records_as_table(path: Path, rows: list[dict[str, Any]]) -> Table:
    for number, row in enumerate(rows, start=1):
        if row.keys() != rows[0].keys():
            raise InvalidInput(
                f"{path}, object {number}: keys {sorted(row)} differ from the first's {sorted(rows[0])}."
            )
    return _checked(path, {name: [row[name] for row in rows] for name in rows[0]})
