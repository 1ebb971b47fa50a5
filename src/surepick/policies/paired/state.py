"""What a study of differences within blocks has come to."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from surepick.core.arrays import IntArray, record
from surepick.core.observations import BlockTotals, Observations
from surepick.errors import ContractError
from surepick.estimators.mean_processes import MeanProcesses
from surepick.policies.carried.state import CarriedState
from surepick.policies.paired.pairs import Pairs, pairs_with


@record
class PairedState:
    """Where the study stands.

    Args:
        carried: round, evidence, candidates and verdict; what it has seen is without the effects of blocks.
        opening: what the blocks of the first batch with results had; None before it.
        pairs: those with each arm that was a candidate.
    """

    carried: CarriedState
    opening: BlockTotals | None = None
    pairs: tuple[Pairs, ...] = ()

    @property
    def round(self) -> int:
        """The next batch, from 1."""
        return self.carried.round

    @property
    def active(self) -> IntArray:
        """The arms that may still be the best, ascending."""
        return self.carried.active

    @property
    def leader(self) -> int:
        """The arm that would be recommended now."""
        return self.carried.leader

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.carried.pulls

    @property
    def seen(self) -> Observations:
        """Everything told so far, without the effects of blocks."""
        return self.carried.seen

    def levelled(self, blocks: BlockTotals) -> BlockTotals:
        """Blocks less the typical reward of the first batch: only differences are used, and so they lose no digit."""
        return blocks.less((blocks if self.opening is None else self.opening).typical)

    @property
    def processes(self) -> MeanProcesses:
        """The evidence.

        Raises:
            ContractError: nothing was told yet.
        """
        if self.carried.means is None:
            raise ContractError("nothing was told yet.")
        return self.carried.means

    def pairs_of(self, centre: int) -> Pairs:
        """Those with an arm while it was a candidate, and in the opening.

        Raises:
            ContractError: nothing was told yet.
        """
        known = next((one for one in self.pairs if one.centre == centre), None)
        if known is not None:
            return known
        if self.opening is None:
            raise ContractError("nothing was told yet.")
        return pairs_with(self.levelled(self.opening), centre, len(self.carried.beaten))


def with_more(pairs: tuple[Pairs, ...], now: Pairs) -> tuple[Pairs, ...]:
    """The pairs of all candidates, those of one of them as they are now.

    None is forgotten: a list that began anew would have a bound, and a chance to fail, of its own.
    """
    return (*(one for one in pairs if one.centre != now.centre), now)


T = TypeVar("T")


class Kept:
    """What was worked out of the last state, so as not to form it again: bit by bit the same. Copied as empty."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[PairedState | None, dict[Hashable, Any]] = (None, {})

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()

    def of(self, state: PairedState, name: Hashable, form: Callable[[], T]) -> T:
        """What `form` gives for that very state."""
        last, known = self._last
        if last is not state:
            known = {}
            self._last = (state, known)  # one assignment: another thread sees the old or the new
        if name not in known:
            known[name] = form()
        return cast(T, known[name])
