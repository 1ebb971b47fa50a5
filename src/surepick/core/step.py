"""What one plan came to: the new state and its row of the trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from surepick.core.arrays import IntArray, freeze, record
from surepick.core.comparisons import Deciding


@record
class RoundRecord:
    """What a human wants to know of a round: a row of the trace.

    Args:
        round, look, looks, dim, value, lower_bound, misspecification: as in the plan.
        pulls: pulls received in this round so far.
        total_pulls: pulls received since the start.
        active: indices of the arms not ruled out.
        leader: the arm that would be recommended now.
        certified_gap: with the stated confidence the leader is at most this much worse than the best arm, in reward
            units; None when nothing can be said yet.
        alarms: what the checks of the embedding found at this look, in words.
    """

    round: int
    look: int
    looks: int
    dim: int
    value: float | None
    lower_bound: float | None
    misspecification: float
    pulls: int
    total_pulls: int
    active: IntArray
    leader: int
    certified_gap: float | None
    alarms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """One transition of a policy: the next state, the trace row, and the intervals that decided.

    Args:
        state: the next state.
        record: the row of the trace.
        deciding: gives the intervals that decided, from those of the look before; computed only for whoever asks.
            None for policies that decide by no interval.
    """

    state: S
    record: RoundRecord
    deciding: Deciding | None = field(default=None, compare=False, repr=False)
