"""Files as tables: CSV, Parquet, JSON lines, and Olympus folders."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surepick.errors import InvalidInput
from surepick.tables.table import Column, Table

EXACT_INTEGERS = 2**53


def read_table(path: str | Path) -> Table:
    """A table from a file, or from an Olympus folder (data.csv and config.json).

    Args:
        path: `*.parquet` is read as Parquet, `*.jsonl` as one JSON object a line, a folder as Olympus' format,
            anything else as comma-separated text in UTF-8 (a byte-order mark is ignored; `*.gz` is unpacked).

    Raises:
        InvalidInput: the file is missing, empty, has a header only, ragged rows, repeated or empty column names, or
            bytes that are not UTF-8; each with its own message.
    """
    path = Path(path)
    if path.is_dir():
        return _read_olympus(path)
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.suffix == ".jsonl":
        return _read_json_table(path)
    rows = _csv_rows(path)
    (_, header), cells = rows[0], rows[1:]
    if not cells:
        raise InvalidInput(f"{path} has a header ({', '.join(header)}) and no rows; there is nothing to choose among.")
    return _from_rows(path, tuple(name.strip() for name in header), cells)


def no_such_file(path: Path) -> InvalidInput:
    """What is raised where a file is missing."""
    return InvalidInput(f"there is no file {path}; check the path (it is relative to {Path.cwd()}).")


def _bytes(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise no_such_file(path) from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{path} is not a complete gzip file: {error}. Obtain it again.") from error
    return content


def _decoded(path: Path) -> str:
    content = _bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{path} is not UTF-8 text: byte 0x{content[error.start]:02x} in line {line}. Save the table as UTF-8 "
            "(spreadsheets call it CSV UTF-8)."
        ) from error
    if "\0" in text:
        raise InvalidInput(f"{path} is not text (it holds zero bytes); a table is CSV, Parquet or JSON lines.")
    if not text.strip():
        raise InvalidInput(f"{path} is empty; a table needs a header and at least one row.")
    return text


def _csv_rows(path: Path) -> list[tuple[int, list[str]]]:
    """(line number, cells) of every line that is not blank."""
    reader = csv.reader(io.StringIO(_decoded(path), newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise InvalidInput(f"{path}, line {reader.line_num}: not comma-separated text: {error}.") from error


def _from_rows(path: Path, names: tuple[str, ...], rows: list[tuple[int, list[str]]], **declared: Any) -> Table:
    names = tuple(name or f"column {position}" for position, name in enumerate(names, start=1))
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise InvalidInput(f"{path} has more than one column named {repeated[0]!r}; rename them apart.")
    if len(names) == 1 and names[0].count(";"):
        raise InvalidInput(
            f"{path} is separated by semicolons, as spreadsheets of some languages write it. Save it with commas "
            "between the columns and points in the numbers (CSV UTF-8, comma delimited)."
        )
    for line, row in rows:
        if len(row) != len(names):
            raise InvalidInput(
                f"{path}, line {line}: {len(row)} cells where {len(names)} columns were expected. "
                "Fill missing cells, and quote cells that contain a comma."
            )
    cells = zip(*(row for _, row in rows), strict=True)
    return Table(str(path), dict(zip(names, cells, strict=True)), first_row=rows[0][0], **declared)


def _read_olympus(folder: Path) -> Table:
    config_path = folder / "config.json"
    if not config_path.is_file() or not (folder / "data.csv").is_file():
        raise InvalidInput(f"{folder} is a folder without data.csv and config.json; give a file or an Olympus folder.")
    try:
        config = json.loads(_decoded(config_path))
        parameters = tuple(str(column["name"]) for column in config["parameters"])
        measurements = tuple(str(column["name"]) for column in config["measurements"])
        goal = config["default_goal"]
        minimize = {"minimize": True, "maximize": False}[goal]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise InvalidInput(
            f"{config_path} is not an Olympus configuration ({type(error).__name__}: {error}). "
            "It must name the parameters, the measurements, and default_goal (minimize or maximize)."
        ) from error
    return _from_rows(
        folder / "data.csv",
        parameters + measurements,
        _csv_rows(folder / "data.csv"),
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


def pyarrow_parquet() -> Any:
    """The package pyarrow with its Parquet module loaded; InvalidInput with the pip command when absent."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput('Parquet files need pyarrow, which is absent: pip install "surepick[tables]".') from error
    return pyarrow


def read_columns(path: str | Path) -> dict[str, list[Any]]:
    """The columns of a Parquet file as they were written: name -> cells, a missing one None.

    Raises:
        InvalidInput: the file is missing or no Parquet file, or pyarrow is absent.
    """
    arrow = pyarrow_parquet()
    try:
        columns: dict[str, list[Any]] = arrow.parquet.read_table(io.BytesIO(_bytes(Path(path)))).to_pydict()
    except arrow.ArrowException as error:
        raise InvalidInput(f"{path} is not a readable Parquet file: {error}.") from error
    return columns


def _read_parquet(path: Path) -> Table:
    return _checked(path, read_columns(path))


def read_json_lines(path: str | Path) -> list[dict[str, Any]]:
    """The objects of a file with one JSON object a line.

    Raises:
        InvalidInput: the file is missing or empty, or a line is not a JSON object (it is named).
    """
    objects = []
    for number, line in enumerate(_decoded(Path(path)).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{path}, line {number}: not JSON: {error}.") from error
        if not isinstance(value, dict):
            raise InvalidInput(f"{path}, line {number}: a JSON object is needed, not {line.strip()[:40]!r}.")
        objects.append(value)
    return objects


def _read_json_table(path: Path) -> Table:
    rows = read_json_lines(path)
    for number, row in enumerate(rows, start=1):
        if row.keys() != rows[0].keys():
            raise InvalidInput(
                f"{path}, object {number}: keys {sorted(row)} differ from the first's {sorted(rows[0])}."
            )
    return _checked(path, {name: [row[name] for row in rows] for name in rows[0]})
