"""What users report, checked by itself: by the ids of the arms, without what is stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.observations import Quantity
from surepick.core.plan import Blocking
from surepick.core.values import check_order
from surepick.errors import InvalidInput
from surepick.items import ItemOrder
from surepick.noise import Noise
from surepick.questions import Constraint
from surepick.studies import validation as border
from surepick.studies.batch import Batch
from surepick.studies.logs.base import Results
from surepick.studies.logs.block_names import canonical_blocks
from surepick.studies.logs.item_keys import keys_of
from surepick.studies.logs.keys import canonical_keys, read_item_key
from surepick.studies.logs.quantities import single_values, split_values, total_values
from surepick.text import did_you_mean, quoted


class Entries:
    """What a study takes.

    Args:
        ids: ids of the arms, K of them.
        noise: what is assumed of a reward.
        blocks: gives what the study says of blocks.
        constraints: gives those on what else is measured.
        items: gives the order of the test items.
    """

    def __init__(
        self,
        ids: tuple[str, ...],
        noise: Noise,
        blocks: Callable[[], Blocking | None] = lambda: None,
        constraints: Callable[[], tuple[Constraint, ...]] = tuple,
        items: Callable[[], ItemOrder | None] = lambda: None,
    ) -> None:
        self.ids = ids
        self.noise = noise
        self._blocks = blocks
        self._constraints = constraints
        self._items = items
        self._index = {name: arm for arm, name in enumerate(ids)}

    @property
    def blocking(self) -> Blocking | None:
        """What the study says of blocks; None where measurements are independent."""
        return self._blocks()

    def arms_of(self, ids: Sequence[object]) -> tuple[IntArray, Sequence[str]]:
        """(indices, names) of the arms of these ids.

        Raises:
            InvalidInput: some are not arms of the study.
        """
        if ids is self.ids:
            return np.arange(len(self.ids)), self.ids
        names = border.names_of(ids)
        unknown = [name for name in names if name not in self._index]
        if unknown:
            raise InvalidInput(
                f"{len(unknown)} ids are not arms of this study, the first is {quoted(unknown[0])}."
                f"{did_you_mean(unknown[0], self.ids)}"
            )
        return np.array([self._index[name] for name in names], np.int64), names

    def keys_by_item(
        self, ids: Sequence[object] | Batch, keys: Sequence[object] | None, items: Sequence[object]
    ) -> list[str]:
        """The keys of answers of these arms to these items.

        Raises:
            InvalidInput: keys are given too, or a batch, which knows its items; or as `keys_of`.
        """
        if keys is not None or isinstance(ids, Batch):
            raise InvalidInput("an answer is known by its arm and its item: give ids and items, without keys or batch.")
        return keys_of(self._items(), border.names_of(ids), items)

    def singles(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None,
        worker: str | None,
        blocks: Sequence[object] | None = None,
        *,
        prior: bool = False,
    ) -> Results:
        """Results of one pull each; those that are kept apart name no block.

        Raises:
            InvalidInput: as in `Study.tell`.
        """
        arms, names = self.arms_of(ids)
        check_order("rewards", rewards, names)
        rewards, beside = split_values(rewards, self._constraints())
        values = border.check_rewards(rewards, self.noise, len(arms), names)
        labels = canonical_keys(keys, names)
        named = None if prior else canonical_blocks(self.blocking, blocks, len(arms))
        ones, who = np.ones(len(arms), np.int64), border.source(worker)
        quantities = single_values(beside)
        apart: dict[str, Any] = {"blocks": named, "items": self._items_in(labels), "quantities": quantities}
        return Results(arms, ones, values, values**2, labels, source=who, **apart)

    def totals(
        self,
        ids: Sequence[object],
        pulls: ArrayLike,
        sums: ArrayLike,
        squares: ArrayLike | None,
        keys: Sequence[object] | None,
        worker: str | None,
        blocks: Sequence[object] | None = None,
        quantities: Sequence[Quantity] | None = None,
        within: FloatArray | None = None,
    ) -> Results:
        """Results that add up several pulls; rows without pulls are left out.

        Args:
            within: squared deviations of each row's rewards from their mean, where they were simulated.

        Raises:
            InvalidInput: as in `Study.tell_totals`.
        """
        arms, names = self.arms_of(ids)
        seen = border.check_sums(pulls, sums, squares, self.noise, names)
        alone = seen.counts == 1  # its square is known, whatever was told
        energies = None if seen.squares is None else np.where(alone, seen.sums**2, seen.squares)
        labels = canonical_keys(keys, names)
        named = canonical_blocks(self.blocking, blocks, len(arms))
        who, beside = border.source(worker), total_values(quantities, self._constraints(), len(arms))
        apart: dict[str, Any] = {"blocks": named, "items": self._items_in(labels), "quantities": beside}
        rows = Results(arms, seen.counts, seen.sums, energies, labels, source=who, within=within, **apart)
        return rows.rows(np.flatnonzero(seen.counts))

    def _items_in(self, keys: Sequence[str | None] | None) -> IntArray | None:
        """The number of the item that each key names, shape (n,), -1 for none; None where results are draws."""
        items = np.array([read_item_key(key) for key in keys or ()], np.int64)
        return items if np.any(items >= 0) and self._items() is not None else None

    def owner_of(self, batch: Batch, worker: str | None, plan: int | None) -> tuple[str | None, int]:
        """(worker, number of the plan) of the results of a batch.

        Raises:
            InvalidInput: it is of another study.
        """
        if batch.ids != self.ids:
            raise InvalidInput("this batch is of another study: its candidates are others.")
        holder = batch.lease.worker if worker is None and batch.lease is not None else worker
        return holder, batch.number if plan is None else plan

    def told(
        self,
        ids: Sequence[object] | Batch,
        rewards: ArrayLike,
        keys: Sequence[object] | None,
        items: Sequence[object] | None,
        blocks: Sequence[object] | None,
        worker: str | None,
        plan: int | None,
    ) -> tuple[Results, str | None, int | None]:
        """(results, worker, plan) of what `Study.tell` was given, which has the arguments.

        Raises:
            InvalidInput: as in `Study.tell`.
        """
        if items is not None:
            ids = ids if isinstance(ids, Batch) else border.names_of(ids)
            keys = self.keys_by_item(ids, keys, items)
        if isinstance(ids, Batch):
            worker, plan = self.owner_of(ids, worker, plan)
            blocks = ids.blocks or None if blocks is None else blocks
            ids, keys = pulls_and_keys(ids, keys)
        return self.singles(ids, rewards, keys, worker, blocks), worker, plan


def pulls_and_keys(batch: Batch, keys: Sequence[object] | None) -> tuple[list[str], Sequence[object] | None]:
    """The ids of a batch, one a pull, and their keys: those of the lease where it has one.

    Raises:
        InvalidInput: keys are given for pulls that have some.
    """
    if batch.lease is None and batch.items is None:
        return batch.pulls(), keys
    if keys is not None:
        raise InvalidInput("the pulls of a leased batch have keys already; leave keys out, or give ids.")
    rows = batch.keys()
    return [name for name, _ in rows], [key for _, key in rows]
