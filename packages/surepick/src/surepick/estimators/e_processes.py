"""What a test has collected: log e-values of many nulls, one e-process for each arm, and so for each kind of null."""

from __future__ import annotations

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, frozen


@frozen
class EProcesses:
    """One e-process for each arm, all against nulls of one kind."""

    name: str  # which kind
    values: FloatArray  # log of each process now, (K,)
    peaks: FloatArray  # log of the largest that each has been, (K,)

    def after(self, gains: FloatArray) -> EProcesses:
        """The processes after one more batch, whose log e-values these are; they may fall."""
        values = self.values + gains
        return EProcesses(self.name, values, np.maximum(self.peaks, values))

    def rejected(self, threshold: float) -> BoolArray:
        """The nulls that are rejected, (K,), for good: Ville's inequality is about the largest value of a process."""
        return np.asarray(self.peaks >= threshold)

    def beaten(self, threshold: float) -> IntArray:
        """Where nulls are rejected, ascending."""
        return np.flatnonzero(self.rejected(threshold))

    def open_rivals(self, threshold: float) -> IntArray:
        """Where the nulls compare with the arm that names them: the other arms that are not rejected, ascending."""
        still_open = ~self.rejected(threshold)
        still_open[int(self.name)] = False
        return np.flatnonzero(still_open)


Collected = tuple[EProcesses, ...]


def processes_of(collected: Collected, name: str | int, num_arms: int, log_weight: float = 0.0) -> EProcesses:
    """Those of that name; where there are none, new ones that start with that weight."""
    found = next((one for one in collected if one.name == str(name)), None)
    start = np.full(num_arms, log_weight)
    return EProcesses(str(name), start, start) if found is None else found


def with_processes(collected: Collected, own: EProcesses) -> Collected:
    """All, those in the place of their former selves, or added."""
    if all(one.name != own.name for one in collected):
        return (*collected, own)
    return tuple(own if one.name == own.name else one for one in collected)
