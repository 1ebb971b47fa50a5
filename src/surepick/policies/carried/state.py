"""Where a certified elimination with carried-on evidence stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.estimators.mean_processes import MeanProcesses
from surepick.estimators.vector_processes import UNKNOWN, VectorProcesses

FAR = 2.0**20  # times epsilon: rewards as large lose digits that matter
Processes = MeanProcesses | VectorProcesses


@record
class Tested:
    """What is known of a candidate: by how much each other arm is better than it at most.

    Args:
        candidate: c.
        bounds: the smallest U_jc of all batches, in reward units, shape (K,); UNKNOWN where nothing is known.
    """

    candidate: int
    bounds: FloatArray

    def __post_init__(self) -> None:
        freeze(self, bounds=np.float64)

    def rejected(self, epsilon: float) -> BoolArray:
        """Which arms are better than it by at most epsilon, shape (K,)."""
        return np.asarray(self.bounds <= epsilon)


@record
class Roster:
    """Arms that went, and arms that come later.

    Args:
        away: neither measured nor recommended any more, shape (K,).
        dropped: of these, no rivals of the others either, shape (K,).
        groups: 0 for the arms of the first list, g for those that came as the g-th, -1 for those that may still come,
            shape (K,); None: nobody comes.
    """

    away: BoolArray
    dropped: BoolArray
    groups: IntArray | None = None

    def __post_init__(self) -> None:
        freeze(self, away=np.bool_, dropped=np.bool_, groups=np.int64)

    @property
    def withdrawn(self) -> IntArray:
        """The arms that went."""
        return np.flatnonzero(self.away if self.groups is None else self.away & (self.groups >= 0))

    @property
    def waiting(self) -> int:
        """How many arms may still come."""
        return 0 if self.groups is None else int(np.count_nonzero(self.groups < 0))


@record
class CarriedState:
    """Where the study stands.

    Args:
        round: the next batch, from 1.
        seen: everything told so far.
        means: one e-process an arm, without structure; None before the first batch and with vectors.
        vectors: the same with vectors.
        tested: the candidates so far, in the order in which they were last looked at.
        beaten: which arms some candidate has shown not to be the best, shape (K,); an arm stays so.
        candidate: the arm that the last batch was for; -1 in the opening.
        dim: dimension of the last batch's embedding; 0 before the first.
        leader: the arm that would be recommended now.
        finished: why it stopped: "" while it runs, "certified", "single", "given", "budget" or "withdrawn": only arms
            that were withdrawn are not ruled out.
        compressed: some batch used the features, so that the evidence rests on what the embedding assumes.
        alarms: what the checks of the embedding found so far, in words.
        roster: the arms that went, or come later; None: there are none.
        level: what was taken from every reward, since differences alone count; None: nothing.
    """

    round: int
    seen: Observations
    means: MeanProcesses | None
    vectors: VectorProcesses | None
    tested: tuple[Tested, ...]
    beaten: BoolArray
    candidate: int
    dim: int
    leader: int
    finished: str
    compressed: bool = False
    alarms: tuple[str, ...] = ()
    roster: Roster | None = None
    level: float | None = None

    def __post_init__(self) -> None:
        freeze(self, beaten=np.bool_)

    def levelled(self, seen: Observations, epsilon: float) -> tuple[Observations, float | None]:
        """(a batch less a level near the rewards, the level): that of the first batch, where digits would be lost."""
        level = seen.level(FAR * epsilon) if self.seen.total == 0 else self.level or 0.0
        return seen.less(level), level or None

    @property
    def processes(self) -> Processes | None:
        """The one of the two that there is."""
        return self.means if self.vectors is None else self.vectors

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total

    @property
    def active(self) -> IntArray:
        """The arms that may still be the best of those that were not dropped, ascending."""
        return np.flatnonzero(~(self.beaten | self.dropped))

    @property
    def away(self) -> BoolArray:
        """The arms that are neither measured nor recommended any more, shape (K,)."""
        return np.zeros(len(self.beaten), bool) if self.roster is None else self.roster.away

    @property
    def dropped(self) -> BoolArray:
        """Those of them that the others need not be compared with, shape (K,)."""
        return np.zeros(len(self.beaten), bool) if self.roster is None else self.roster.dropped

    def bounds_of(self, candidate: int) -> FloatArray:
        """The candidate's smallest U so far, shape (K,); UNKNOWN where it was never tried."""
        known = next((one.bounds for one in self.tested if one.candidate == candidate), None)
        return np.full(len(self.beaten), UNKNOWN) if known is None else known


def open_rivals(state: CarriedState, candidate: int, bounds: FloatArray, epsilon: float) -> IntArray:
    """The arms that are neither rejected against a candidate nor beaten, ascending; one of them where there is none.

    Args:
        bounds: U of every arm against it now, shape (K,).
    """
    still_open = ~(state.beaten | state.away | (np.minimum(state.bounds_of(candidate), bounds) <= epsilon))
    still_open[candidate] = False
    if not still_open.any():
        others = ~state.away
        others[candidate] = False
        still_open[int(np.argmax(others)) if others.any() else 0 if candidate else 1] = True
    return np.flatnonzero(still_open)


def concluded(state: CarriedState, epsilon: float) -> CarriedState:
    """The state with its candidate and why it is over, if one of those tested is good enough.

    Every rival must be beaten, or better by at most epsilon: also one that was withdrawn, unless it was dropped. Where
    only such rivals are left, nothing that may be measured says more.

    Source: docs/certified-elimination.md, line 15, and docs/changing-candidates.md, lines 29 and 30.
    """
    for unopposed, why in ((state.dropped, "certified"), (state.away, "withdrawn")):
        for one in state.tested:
            if not state.away[one.candidate] and np.all(state.beaten | one.rejected(epsilon) | unopposed):
                return replace(state, candidate=one.candidate, leader=one.candidate, finished=why)
    return state


MOST_TESTED = 6  # candidates whose bounds are kept; to forget one only costs what it showed


def tightened(tested: tuple[Tested, ...], candidate: int, bounds: FloatArray) -> tuple[Tested, ...]:
    """The candidates with the bounds of one more batch for one of them."""
    known = next((one.bounds for one in tested if one.candidate == candidate), bounds)
    others = tuple(one for one in tested if one.candidate != candidate)[1 - MOST_TESTED :]
    return (*others, Tested(candidate, np.minimum(known, bounds)))


def gap_of(state: CarriedState, candidate: int) -> float:
    """max of U over the arms that may be the best, at least 0: the candidate is at most this much worse than the best.

    Source: docs/certified-elimination.md, line 15: unless the process of the best arm x* has reached 1/delta it is not
    beaten, and it is better than c by at most its own U.
    """
    others = ~(state.beaten | state.dropped)
    others[candidate] = False
    return max(0.0, float(state.bounds_of(candidate)[others].max(initial=0.0)))
