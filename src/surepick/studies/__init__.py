"""Studies: ask, measure, tell, on real measurements."""

from surepick.studies.log import INDEPENDENT_OF_VALUE, Abandoned, Entry, Log, MemoryLog, Planned, Told
from surepick.studies.study import Study

__all__ = ["INDEPENDENT_OF_VALUE", "Abandoned", "Entry", "Log", "MemoryLog", "Planned", "Study", "Told"]
