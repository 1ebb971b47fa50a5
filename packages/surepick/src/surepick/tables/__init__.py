"""The only reader of tables (CSV, spreadsheets, Parquet, Arrow, JSON) and writer of them; and tables as arms.

path -read_table-> Table -grouped_arms-> Grouped(arms, arm_of_row)        read_arms: every row is an arm of its own
"""

from surepick.tables.arms import Grouped, grouped_arms, read_arms
from surepick.tables.delimited import write_json_lines, write_table
from surepick.tables.parquet import read_columns
from surepick.tables.reading import ReadOptions, is_olympus, read_json_lines, read_table
from surepick.tables.selection import Names, column_names, row_ids
from surepick.tables.table import Table, TableWarning, keeping_notes

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
