"""Studies: ask, measure, tell, on real measurements."""

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
