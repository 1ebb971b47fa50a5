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
        round, look, looks, dim, design_value, predicted_pulls, lower_bound, misspecification: as in the plan.
        pulls: pulls received in this round so far.
        total_pulls: pulls received since the start.
        active: indices of the arms not ruled out.
        leader: the arm that would be recommended now.
        certified_gap: with the stated confidence the leader is at most this much worse than the best arm, in reward
            units; None when nothing can be said yet.
        alarms: what the checks of the embedding found at this look, in words.
        withdrawn: indices of the arms that were withdrawn so far; None: none was.
        waiting: how many arms may still come; None: none was declared to.
        rows_left: of a long list that is made shorter, how many rows may still be the best; None: there is no list.
        equal: indices of the arms whose repeats are all equal, where repeats alone show a scale; None: none.
    """

    round: int
    look: int
    looks: int
    dim: int
    design_value: float | None
    predicted_pulls: float | None
    lower_bound: float | None
    misspecification: float
    pulls: int
    total_pulls: int
    active: IntArray
    leader: int
    certified_gap: float | None
    alarms: tuple[str, ...] = ()
    withdrawn: IntArray | None = None
    waiting: int | None = None
    rows_left: int | None = None
    equal: IntArray | None = None

    def __post_init__(self) -> None:
        freeze(self, active=np.int64, withdrawn=np.int64, equal=np.int64)

    @property
    def value(self) -> float | None:
        """The design value, or the prediction where pulls are predicted: what `lower_bound` is a lower bound of."""
        return self.design_value if self.predicted_pulls is None else self.predicted_pulls


S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """One transition of a policy: the next state, the trace row, and the intervals that decided.

    Args:
        state: the next state.
        record: the row of the trace.
        deciding: gives the intervals that decided, from those of the look before; computed only on request.
            None for policies that decide by no interval.
    """

    state: S
    record: RoundRecord
    deciding: Deciding | None = field(default=None, compare=False, repr=False)

    @staticmethod
    def at(state: S) -> Step[S]:
        """A step that only stands at a state: nothing was told."""
        nothing = RoundRecord(0, 1, 1, 0, None, None, None, 0.0, 0, 0, np.empty(0, np.int64), 0, None)
        return Step(state, nothing)
