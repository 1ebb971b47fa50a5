"""The only reader and writer of CSV, Parquet and JSON lines; and tables as arms.

path -read_table-> Table -grouped_arms-> Grouped(arms, arm_of_row)        read_arms: every row is an arm of its own
"""

from surepick.tables.arms import Grouped, Names, column_names, grouped_arms, read_arms, row_ids
from surepick.tables.reading import read_columns, read_json_lines, read_table
from surepick.tables.table import Table
from surepick.tables.writing import write_json_lines, write_table

__all__ = [
    "Grouped",
    "Names",
    "Table",
    "column_names",
    "grouped_arms",
    "read_arms",
    "read_columns",
    "read_json_lines",
    "read_table",
    "row_ids",
    "write_json_lines",
    "write_table",
]
