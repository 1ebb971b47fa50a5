"""Studies: ask, measure, report, on real measurements."""

from surepick.studies.logs.base import (
    INDEPENDENT_OF_VALUE,
    Decision,
    Deviations,
    Event,
    Leased,
    Log,
    Planned,
    Results,
)
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.recording import Receipt
from surepick.studies.study import Study

__all__ = [
    "INDEPENDENT_OF_VALUE",
    "Decision",
    "Deviations",
    "Event",
    "Leased",
    "Log",
    "MemoryLog",
    "Planned",
    "Receipt",
    "Results",
    "Study",
]
