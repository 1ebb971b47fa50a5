"""Parquet and Arrow files as columns, through pyarrow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from surepick.errors import InvalidInput
from surepick.tables.content import file_bytes, readable


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
        InvalidInput: the file is missing or no Parquet file, two columns have one name, or pyarrow is absent.
    """
    arrow = pyarrow_parquet()
    content = io.BytesIO(file_bytes(Path(path)))
    with readable(path, "Parquet"):
        return _columns(path, arrow.parquet.read_table(content))


def read_arrow_columns(path: Path) -> dict[str, list[Any]]:
    """The columns of an Arrow file (Feather, IPC file or stream): name -> cells, a missing one None.

    Raises:
        InvalidInput: the file is missing or no Arrow file, two columns have one name, or pyarrow is absent.
    """
    try:
        from pyarrow import ipc  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput('Arrow files need pyarrow, which is absent: pip install "surepick[tables]".') from error
    content = file_bytes(path)
    if content.startswith(b"FEA1"):
        raise InvalidInput(f"{path} is a Feather file of version 1, which is no longer read; write it in version 2.")
    with readable(path, "Arrow"):
        opened = ipc.open_file if content.startswith(b"ARROW1") else ipc.open_stream
        return _columns(path, opened(content).read_all())


def _columns(path: str | Path, found: Any) -> dict[str, list[Any]]:
    """The columns of a table of pyarrow, whose offsets and texts are checked first: damaged ones point anywhere."""
    found.validate(full=True)
    check_distinct(path, found.column_names)
    columns: dict[str, list[Any]] = found.to_pydict()
    return columns


def check_distinct(path: str | Path, names: list[str]) -> None:
    """Refuse columns of one name."""
    if len(set(names)) == len(names):
        return
    repeated = sorted({name for name in names if names.count(name) > 1})
    raise InvalidInput(f"{path} has more than one column named {repeated[0]!r}; rename them apart.")
