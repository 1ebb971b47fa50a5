"""Studies: ask, measure, tell, on real measurements.

study.py    what users call            telling.py, parts.py   what becomes of results, and what a lease covers
fold.py     closed plans -> decisions  board.py               an open plan, without its rewards
log.py      the rows, and a log in memory; sql_log.py, sql_schema.py, sql_engine.py, migrate.py: the same in a database
durable.py  create, open, list         audit.py               everything decided, computed again
leases.py   keys, durations, the clock results.py             what is refused; exact totals
progress.py, circumstances.py          in words               export.py              as a table
command.py, measuring.py               the loop closed with a program
"""

from surepick.studies.log import (
    INDEPENDENT_OF_VALUE,
    Circumstances,
    Decision,
    Event,
    Leased,
    Log,
    MemoryLog,
    Planned,
    Results,
)
from surepick.studies.study import Study
from surepick.studies.telling import Receipt

__all__ = [
    "INDEPENDENT_OF_VALUE",
    "Circumstances",
    "Decision",
    "Event",
    "Leased",
    "Log",
    "MemoryLog",
    "Planned",
    "Receipt",
    "Results",
    "Study",
]
