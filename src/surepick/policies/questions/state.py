"""Where a study of a question stands."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.policies.questions.sheets import Sheets


@record
class Lists:
    """What is answered of each arm; an arm on neither list is undecided, or not asked about.

    Args:
        inside: shape (K,).
        outside: shape (K,).
    """

    inside: BoolArray
    outside: BoolArray

    def __post_init__(self) -> None:
        freeze(self, inside=np.bool_, outside=np.bool_)

    @staticmethod
    def empty(num_arms: int) -> Lists:
        """Nothing is decided."""
        return Lists(np.zeros(num_arms, bool), np.zeros(num_arms, bool))

    @property
    def decided(self) -> BoolArray:
        """Which arms are on a list, shape (K,)."""
        return np.asarray(self.inside | self.outside)


@record
class QuestionState:
    """Where the study stands.

    Args:
        round: the next batch, from 1.
        seen: everything told so far; it steers, and never enters a later batch's evidence.
        sheets: the evidence.
        lists: what is answered so far.
        dim: dimension of the last batch's embedding; 0 before the first.
        active: the arms that are asked about and on no list, ascending.
        leader: the arm that looks best now.
        finished: why it stopped: "" while it runs, or "certified".
        compressed: some batch used the features, so that the evidence rests on what the embedding assumes.
        alarms: what the checks of the embedding found so far, in words.
    """

    round: int
    seen: Observations
    sheets: Sheets
    lists: Lists
    dim: int
    active: IntArray
    leader: int
    finished: str
    compressed: bool = False
    alarms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total
