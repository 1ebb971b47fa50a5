"""Files as tables: text with separators, spreadsheets, Parquet, Arrow, JSON, and Olympus folders."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from surepick.core.files import is_file, is_folder
from surepick.core.json import each_once
from surepick.errors import InvalidInput
from surepick.tables.content import file_text
from surepick.tables.delimited import SEPARATORS, Rows, delimited_rows, read_delimited
from surepick.tables.parquet import read_columns
from surepick.tables.spreadsheet import read_sheet, sheet_column
from surepick.tables.table import Column, Table, cells_as_column, check_distinct, header_hint

SHEETS = (".xlsx", ".xlsm", ".ods")
ARROW = (".feather", ".arrow", ".ipc")
RECORDS = (
    'a table is an array of records, [{"id": "a", "x": 1}, ...], or one record a line in a file that ends in .jsonl'
)


class ReadOptions(TypedDict, total=False):
    """How we read a table; `read_table` explains each."""

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
        raise InvalidInput(f"{path} has no sheets, so we cannot read {sheet!r}; only .xlsx and .ods files have sheets.")
    table = replace(_read(path, kind, sheet), percent=percent, drop_missing=drop_missing)
    texts = (cells for cells in table.columns.values() if isinstance(cells, tuple))
    if percent and not any(cell.rstrip().endswith("%") for cells in texts for cell in cells):
        raise InvalidInput(
            f"{path}: no cell ends in %, so --percent (in Python: percent=True) has nothing to divide by 100. Leave it "
            "out; what a spreadsheet shows as 1.3% we read as 0.013 anyway."
        )
    return table


def kind_of(path: Path) -> str:
    """The ending that decides how we read a file, in small letters: ".csv" for arms.CSV.gz; "" for a folder."""
    if is_folder(path):
        return ""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return name.suffix.lower() or ".csv"


def _read(path: Path, kind: str, sheet: str | None) -> Table:
    if not kind:
        return _read_olympus(path)
    if kind in SHEETS:
        rows = read_sheet(path, sheet)
        return _from_rows(path, rows[0][1], rows[1:], column=sheet_column, has_header=True)
    if kind in ARROW or kind == ".parquet":
        return _from_columns(path, read_columns(path, "Arrow" if kind in ARROW else "Parquet"))
    if kind in (".json", ".jsonl"):
        return _from_records(path, read_json_lines(path) if kind == ".jsonl" else _read_json_array(path))
    found = read_delimited(path, file_text(path))
    header = [name.strip() for name in found.rows[0][1]]
    mark = SEPARATORS[found.separator]
    return _from_rows(path, header, found.rows[1:], mark=mark, decimal=found.decimal, has_header=True)


def _from_rows(
    path: Path,
    header: Sequence[str],
    rows: Rows,
    *,
    mark: str = "comma",
    column: Callable[[tuple[Any, ...]], Column] = tuple,
    **declared: Any,
) -> Table:
    hint = header_hint(header)
    if not rows:
        raise InvalidInput(f"{path} has a header ({', '.join(header)}) and no rows below it. {hint}".rstrip())
    names = [name or f"column {place}" for place, name in enumerate(header, start=1)]
    if hint and len(set(names)) < len(names):
        raise InvalidInput(f"{path} has columns of one name. {hint}")
    check_distinct(path, names)
    for line, row in rows:
        if len(row) != len(names):
            raise InvalidInput(
                f"{path}, line {line}: {len(row)} cells where {len(names)} columns were expected. "
                f"Fill missing cells, and quote cells that contain a {mark}."
            )
    columns = zip(names, zip(*(row for _, row in rows), strict=True), strict=True)
    lines = np.array([line for line, _ in rows], dtype=np.int64)
    return Table(str(path), {name: column(cells) for name, cells in columns}, lines=lines, **declared)


def is_olympus(folder: str | Path) -> bool:
    """Whether a folder is one table in Olympus' format."""
    return is_file(Path(folder) / "config.json") and is_file(Path(folder) / "data.csv")


def _read_olympus(folder: Path) -> Table:
    config_path, data = folder / "config.json", folder / "data.csv"
    if not is_olympus(folder):
        raise InvalidInput(f"{folder} is a folder without data.csv and config.json; give a file or an Olympus folder.")
    try:
        config = _json(file_text(config_path), str(config_path))
        parameters = tuple(str(column["name"]) for column in config["parameters"])
        measurements = tuple(str(column["name"]) for column in config["measurements"])
        minimize = {"minimize": True, "maximize": False}[config["default_goal"]]
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"{config_path} is not an Olympus configuration ({type(error).__name__}: {error}). "
            "It must name the parameters, the measurements, and default_goal (minimize or maximize)."
        ) from error
    declared: dict[str, Any] = {"parameters": parameters, "measurements": measurements, "minimize": minimize}
    return _from_rows(data, parameters + measurements, delimited_rows(data, file_text(data)), **declared)


def _from_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> Table:
    if not any(map(len, columns.values())):
        raise InvalidInput(f"{path} has no rows; there is nothing to choose among.")
    return Table(str(path), {name: cells_as_column(values) for name, values in columns.items()})


def _from_records(path: Path, rows: list[dict[str, Any]]) -> Table:
    for number, row in enumerate(rows, start=1):
        if row.keys() != rows[0].keys():
            raise InvalidInput(
                f"{path}, object {number}: keys {sorted(row)} differ from the first's {sorted(rows[0])}."
            )
    return _from_columns(path, {name: [row[name] for row in rows] for name in rows[0]})


def _json(text: str, where: str, hint: str = "") -> Any:
    """A JSON value.

    Raises:
        InvalidInput: it is none, it is nested too deeply, or an integer has too many digits.
    """
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON: {error}.{hint}") from error


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object a line.

    Raises:
        InvalidInput: the file is missing or empty, or a line is not a JSON object (the message names it).
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
    value = _json(file_text(path), str(path), f" In JSON, {RECORDS}.")
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return value
    kinds: dict[type, str] = {dict: "one object", list: "an array of something else than records"}
    held = kinds.get(type(value), "a single value") if value != [] else "an empty array"
    raise InvalidInput(f"{path} holds {held}; {RECORDS}.")
