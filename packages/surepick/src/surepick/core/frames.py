"""Data frames of other libraries as plain columns; none of these libraries is loaded here but by its own objects."""

from typing import Any

from surepick.core.records import record
from surepick.errors import InvalidInput

SOURCE = "the data frame"


@record
class ForeignFrame:
    """The columns of a data frame."""

    columns: dict[str, list[Any]]  # name -> cells, as Python objects
    index: tuple[str, ...]  # the names of those columns that are its index; () where rows are only counted
    labels: list[Any]  # what a row is called by the frame itself, one object a row


def _has(value: object, *names: str) -> bool:
    """Whether its class has these attributes; none is looked at, since that may compute, warn or fail."""
    return all(hasattr(type(value), name) for name in names)


def is_frame(value: object) -> bool:
    """Whether the value is a table of some data frame library (one that speaks the Arrow or the dataframe protocol)."""
    if isinstance(value, type):
        return False
    if _lazy(value) or _has(value, "__dataframe__") or _has(value, "columns", "iloc"):
        return True
    return _has(value, "__arrow_c_stream__") and any(_has(value, name) for name in ("columns", "schema"))


def _lazy(value: object) -> bool:
    return _has(value, "collect", "columns") and not _has(value, "iloc")


def frame_of(value: Any) -> ForeignFrame:
    """The columns of a data frame, its index among them."""
    try:
        names, cells, index, labels = _read(value)
    except InvalidInput:
        raise
    except Exception as error:  # of another library
        raise InvalidInput(f"{SOURCE} cannot be read: {type(error).__name__}.") from error
    repeated = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if repeated is not None:
        raise InvalidInput(f"{SOURCE} has more than one column named {repeated!r}; give each its own name.")
    if not labels or len(names) == len(index) == 0:
        raise InvalidInput(f"{SOURCE} has no rows or no columns; there is nothing to choose among.")
    return ForeignFrame(dict(zip(names, cells, strict=True)), index, labels)


def _read(value: Any) -> tuple[list[str], list[list[Any]], tuple[str, ...], list[Any]]:
    """(names of all columns, their cells, those of the index, the label of each row)."""
    if _lazy(value):
        raise InvalidInput(f"{SOURCE} is a {type(value).__name__}, which holds no rows yet: collect() it first.")
    if _has(value, "columns", "iloc", "index"):
        names = [str(name) for name in value.columns.tolist()]
        cells = [value.iloc[:, place].tolist() for place in range(len(names))]
        labels = value.index.tolist()
        if labels == list(range(len(labels))):
            return names, cells, (), labels
        several = labels and isinstance(labels[0], tuple)
        levels = [list(level) for level in zip(*labels, strict=True)] if several else [labels]
        index = _index_names(list(value.index.names), names)
        return [*index, *names], [*levels, *cells], tuple(index), labels
    if _has(value, "get_columns", "columns"):
        columns = value.get_columns()
        names, cells = [str(one.name) for one in columns], [one.to_list() for one in columns]
    else:
        table = _arrow_table(value)
        names, cells = list(map(str, table.column_names)), [one.to_pylist() for one in table.columns]
    return names, cells, (), list(range(len(cells[0]))) if cells else []


def _index_names(given: list[Any], taken: list[str]) -> list[str]:
    """Names of the columns that hold an index, other than those of the columns."""
    found: list[str] = []
    for place, name in enumerate(given):
        own = "index" if name is None and len(given) == 1 else f"level_{place}" if name is None else str(name)
        while own in (*taken, *found):
            own += "_"
        found.append(own)
    return found


def _arrow_table(value: Any) -> Any:
    """Any speaker of the Arrow or the dataframe protocol as a table of pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415 (only where it is needed)
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f'to read a {type(value).__name__} we need pyarrow, which is absent: pip install "surepick[tables]".'
        ) from error
    if _has(value, "column_names", "columns") and isinstance(value, pa.Table | pa.RecordBatch):
        return value
    if _has(value, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(value).read_all()
    from pyarrow.interchange import from_dataframe  # noqa: PLC0415

    return from_dataframe(value)
