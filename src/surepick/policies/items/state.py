"""What a study of test items has come to."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, freeze, record
from surepick.estimators.item_processes import ItemProcesses


@record
class ItemBatch:
    """Successive items of the order, and who was asked to answer them.

    Args:
        size: items.
        asked: indices of the arms, ascending.
    """

    size: int
    asked: IntArray

    def __post_init__(self) -> None:
        freeze(self, asked=np.int64)


@record
class Answered:
    """Answers of arms to items, each known by arm * N + the place of the item in the order.

    Args:
        at: ascending, shape (m,).
        scores: shape (m,).
    """

    at: IntArray
    scores: FloatArray

    def __post_init__(self) -> None:
        freeze(self, at=np.int64, scores=np.float64)

    @staticmethod
    def none() -> Answered:
        return Answered(np.empty(0, np.int64), np.empty(0))

    def plus(self, at: IntArray, scores: FloatArray) -> Answered:
        """With more of them, which must be others."""
        both = np.append(self.at, at)
        order = np.argsort(both, kind="stable")
        return Answered(both[order], np.append(self.scores, scores)[order])


@record
class ItemsState:
    """All answers, and what was decided from them. The processes are computed from it.

    Args:
        round: number of the next plan.
        batches: the items drawn so far, batch by batch.
        answers: those that came with the batch of their item.
        late: those to items that were drawn without the arm; they enter no bet.
        beaten: indices of arms that are not the best.
        open: indices of the arms that answer the next items, the leader among them.
        leader: index of the arm that would be recommended.
        finished: as in `Claim`.
        num_arms: K.
    """

    round: int
    batches: tuple[ItemBatch, ...]
    answers: Answered
    late: Answered
    beaten: IntArray
    open: IntArray
    leader: int
    finished: str
    num_arms: int

    def __post_init__(self) -> None:
        freeze(self, beaten=np.int64, open=np.int64)

    @property
    def drawn(self) -> int:
        """Items drawn."""
        return sum(batch.size for batch in self.batches)

    @property
    def pulls(self) -> int:
        """Answers received."""
        return len(self.answers.at) + len(self.late.at)

    @property
    def active(self) -> IntArray:
        """Indices of the arms that are not beaten."""
        return np.setdiff1d(np.arange(self.num_arms), self.beaten)

    def table(self, num_items: int) -> FloatArray:
        """The answers that came with their batch, shape (K, drawn), NaN where there is none.

        Args:
            num_items: N.
        """
        return _table(self.answers, self.num_arms, num_items)[:, : self.drawn]

    def full_table(self, num_items: int) -> FloatArray:
        """All answers, shape (K, N), NaN where there is none."""
        late = _table(self.late, self.num_arms, num_items)
        return np.where(np.isfinite(late), late, _table(self.answers, self.num_arms, num_items))


def _table(answered: Answered, num_arms: int, num_items: int) -> FloatArray:
    table = np.full(num_arms * num_items, np.nan)
    table[answered.at] = answered.scores
    return table.reshape(num_arms, num_items)


def members(indices: IntArray, num_arms: int) -> BoolArray:
    """Which arms these are, shape (K,)."""
    found = np.zeros(num_arms, bool)
    found[indices] = True
    return found


class Memo:
    """The processes of the state that was judged last: what would be computed anew, bit by bit. Copied as empty."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[ItemsState, ItemProcesses] | None = None

    def __reduce__(self) -> tuple[type[Memo], tuple[()]]:
        return Memo, ()

    def of(self, state: ItemsState) -> ItemProcesses | None:
        """The processes of that very state; None where they are not kept."""
        return self._last[1] if self._last is not None and self._last[0] is state else None

    def keep(self, state: ItemsState, processes: ItemProcesses) -> None:
        self._last = state, processes
