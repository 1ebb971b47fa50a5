from .arms import Grouped, grouped_arms, read_arms
from .delimited import write_json_lines, write_table
from .parquet import read_columns
from .reading import ReadOptions, is_olympus, read_json_lines, read_table
from .selection import Names, column_names, row_ids
from .table import Table, TableWarning, keeping_notes

__all__ = [
    "Grouped",
    "Names",
    "ReadOptions",
    "Table",
    "TableWarning",
    "column_names",
    "grouped_arms",
    "is_olympus",
    "keeping_notes",
    "read_arms",
    "read_columns",
    "read_json_lines",
    "read_table",
    "row_ids",
    "write_json_lines",
    "write_table",
]
