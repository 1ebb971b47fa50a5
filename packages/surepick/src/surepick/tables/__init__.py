"""The only reader of tables (CSV, spreadsheets, Parquet, Arrow, JSON) and writer of them; and tables as arms.

path -read_table-> Table -grouped_arms-> Grouped(arms, arm_of_row)        read_arms: every row is an arm of its own
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
