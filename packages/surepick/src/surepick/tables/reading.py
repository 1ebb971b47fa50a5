"""Files as tables: text with separators, spreadsheets, Parquet, Arrow, JSON, and Olympus folders."""

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from surepick.core.files import as_path, is_file, is_folder
from surepick.core.records import each_once
from surepick.errors import InvalidInput
from surepick.tables.content import file_text
from surepick.tables.delimited import Rows, delimited_rows, read_delimited, seeming_header
from surepick.tables.numbers import OTHER, Written, cell_number, declared_decimal
from surepick.tables.parquet import read_columns
from surepick.tables.selection import Names, filled_down
from surepick.tables.spreadsheet import read_all_sheets, read_sheet, sheet_column
from surepick.tables.table import Column, Table, cells_as_column, check_distinct, header_hint, warn

SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
SHEET_ID = "id"  # the column of the names of sheets
ARROW = (".feather", ".arrow", ".ipc")
RECORDS = (
    'a table is an array of records, [{"id": "a", "x": 1}, ...], or one record a line in a file that ends in .jsonl'
)
LINES = "An array of records is read from a file that ends in .json."


class ReadOptions(TypedDict, total=False):
    """How we read a table; `read_table` explains each."""

    sheet: str | None
    sheets_are_ids: bool
    header: int | None
    skip_units: bool
    fill_down: Names | None
    decimal: str | None
    thousands: str | None
    percent: bool
    drop_missing: bool


def read_table(
    path: str | Path,
    *,
    sheet: str | None = None,
    sheets_are_ids: bool = False,
    header: int | None = None,
    skip_units: bool = False,
    fill_down: Names | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    percent: bool = False,
    drop_missing: bool = False,
) -> Table:
    """A table from a file, or from an Olympus folder (data.csv and config.json).

    Warns:
        TableWarning: separators that are not commas, lines or sheets that were skipped, cells that were filled.
    """
    path = as_path(path, meaning="a table is read from a file.")
    kind = kind_of(path)
    if sheet is not None and kind not in SHEETS:
        raise InvalidInput(f"{path} has no sheets, so we cannot read {sheet!r}; only .xlsx and .ods files have sheets.")
    if sheets_are_ids and (kind not in SHEETS or sheet is not None):
        why = "no sheets" if sheet is None else "one sheet that is named"
        raise InvalidInput(f"{path} has {why}, so sheets cannot be ids; leave out --sheets-are-ids.")
    if (header is not None or skip_units) and kind in ("", ".json", ".jsonl", ".parquet", *ARROW):
        raise InvalidInput(f"{path} has no lines that name columns or units; leave out --header and --skip-units.")
    if header is not None and header < 1:
        raise InvalidInput(f"header is {header}; it is the number of a line, from 1.")
    mark = declared_decimal(decimal, thousands)
    table = _read(path, kind, sheet=sheet, sheets_are_ids=sheets_are_ids, header=header, skip_units=skip_units)
    written = replace(table.written, decimal=mark, percent=percent)
    table = replace(table, written=written, drop_missing=drop_missing)
    if fill_down is not None:
        table = filled_down(table, fill_down)
    texts = (cells for cells in table.columns.values() if isinstance(cells, tuple))
    if percent and not any(cell.rstrip().endswith(("%", "\uff05")) for cells in texts for cell in cells):
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


def _read(
    path: Path, kind: str, *, sheet: str | None, sheets_are_ids: bool, header: int | None, skip_units: bool
) -> Table:
    if not kind:
        return _read_olympus(path)
    if kind in ARROW or kind == ".parquet":
        return _from_columns(path, read_columns(path, "Arrow" if kind in ARROW else "Parquet"))
    if kind in (".json", ".jsonl"):
        records = read_json_lines(path) if kind == ".jsonl" else _read_json_array(path)
        fields = dict.fromkeys(itertools.chain.from_iterable(records))  # a record without one misses that cell
        return _from_columns(path, {name: [one.get(name) for one in records] for name in fields})
    if sheets_are_ids:
        rows = _joined(path, read_all_sheets(path, header=header), skip_units=skip_units)
        return _from_rows(path, rows[0][1], rows[1:], column=sheet_column, has_header=True, usual_id=SHEET_ID)
    declared: dict[str, Any] = {"has_header": True}
    if kind in SHEETS:
        rows, declared["column"] = read_sheet(path, sheet, header=header), sheet_column
    else:
        found = read_delimited(path, file_text(path), header=header)
        rows, declared["mark"] = found.rows, found.mark
        declared["written"] = Written(continental=found.separator == ";")
    names = [name.strip() for name in rows[0][1]]
    return _from_rows(path, names, _below_units(path, rows) if skip_units else rows[1:], **declared)


def _joined(path: Path, sheets: Mapping[str, Rows], *, skip_units: bool) -> Rows:
    """The rows of all sheets below one header, with the name of the sheet first."""
    first = next(iter(sheets))
    line, names = sheets[first][0]
    if SHEET_ID in names:
        raise InvalidInput(
            f"{path}: the sheets have a column {SHEET_ID!r} of their own, where their names would stand; rename it, or "
            "leave out --sheets-are-ids."
        )
    check_distinct(path, names)
    found: Rows = [(line, [SHEET_ID, *names])]
    for sheet, rows in sheets.items():
        header = rows[0][1]
        if sorted(header) != sorted(names):
            raise InvalidInput(
                f"{path}: sheet {sheet[:60]!r} has other columns than {first[:60]!r}; candidates on sheets need the "
                "same ones. Hide or delete a sheet that is none."
            )
        order = [header.index(name) for name in names]
        below = _below_units(path, rows) if skip_units else rows[1:]
        found += [(at, [sheet.strip(), *(row[place] for place in order)]) for at, row in below]
    return found


def _below_units(path: Path, rows: Rows) -> Rows:
    """The rows below the header and the line of units, with a warning of what we skip."""
    if len(rows) < 2:
        raise InvalidInput(f"{path} has no line below its header.")
    line, cells = rows[1]
    texts = [str(cell).strip() for cell in cells if cell is not None]
    if any(cell_number(text, decimal=mark, percent=True) is not None for text in texts for mark in OTHER):
        raise InvalidInput(f"{path}, line {line}: it has numbers, so it is no line of units; leave out --skip-units.")
    warn(f"{path}: we skip line {line}, which has units ({', '.join(filter(None, texts))[:60]}).")
    return rows[2:]


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
            place = seeming_header([(1, header), *rows])
            cure = (
                f"The header seems to be line {place}; give --header {place} (in Python: header={place})."
                if place
                else f"Fill missing cells, and quote cells that contain a {mark}."
            )
            raise InvalidInput(
                f"{path}, line {line}: {len(row)} cells where {len(names)} columns were expected. {cure}"
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


def _json(text: str, where: str, hint: str = "") -> Any:
    """A JSON value."""
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON: {error}.{hint}") from error


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object a line."""
    objects = []
    for number, line in enumerate(file_text(Path(path)).split("\n"), start=1):
        if not line.strip():
            continue
        value = _json(line, f"{path}, line {number}")
        if not isinstance(value, dict):
            raise InvalidInput(f"{path}, line {number}: a JSON object is needed, not {line.strip()[:40]!r}. {LINES}")
        objects.append(value)
    return objects


def _read_json_array(path: Path) -> list[dict[str, Any]]:
    value = _json(file_text(path), str(path), f" In JSON, {RECORDS}.")
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return value
    kinds: dict[type, str] = {dict: "one object", list: "an array of something else than records"}
    held = kinds.get(type(value), "a single value") if value != [] else "an empty array"
    raise InvalidInput(f"{path} holds {held}; {RECORDS}.")
