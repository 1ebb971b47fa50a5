from .logs.base import INDEPENDENT_OF_VALUE, Decision, Deviations, Event, Leased, Log, Planned, Results
from .logs.memory import MemoryLog
from .recording import Receipt
from .study import Study

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
