"""What a study wants measured next: a plan with the ids of its arms, or the part of it that a worker leased."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from surepick.core.plans import Plan
from surepick.core.records import IntArray, encode, freeze, from_json, record
from surepick.errors import OutOfTurn
from surepick.studies.logs.base import Lease, pull_key
from surepick.studies.logs.keys import item_key
from surepick.text import html_table


@record
class Batch(Plan):
    """A plan, or a part of it, as those who measure need it.

    Args:
        ids: ids of the arms, K of them.
        number: number of the plan in its study, from 1.
        lease: who measures these pulls, if they were leased.
        ordinals: number of each leased pull among all that were ever leased of its arm in the plan, from 0, arm by
            arm, shape (total,); a pull that is leased again has a new one. None if nothing is leased.
        items: index of the test item of each pull, arm by arm, shape (total,); None where pulls are draws.
        item_ids: the ids of these items, `total` of them.
        blocks: the name of the block of each pull, arm by arm, `total` of them; () where measurements have no blocks.
        block_name: what a block is called there.
        (the others): as in `Plan`; `counts` are the pulls of this part.
    """

    ids: tuple[str, ...] = ()
    number: int = 0
    lease: Lease | None = None
    ordinals: IntArray | None = None
    items: IntArray | None = None
    item_ids: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    block_name: str = ""

    def __post_init__(self) -> None:
        Plan.__post_init__(self)
        freeze(self, ordinals=np.int64, items=np.int64)

    @staticmethod
    def of(
        plan: Plan,
        ids: tuple[str, ...],
        number: int,
        *,
        counts: IntArray | None = None,
        lease: Lease | None = None,
        ordinals: IntArray | None = None,
        items: IntArray | None = None,
        item_ids: tuple[str, ...] = (),
    ) -> Batch:
        """The batch of a plan: all of it, or the part with these counts."""
        decided = {field.name: getattr(plan, field.name) for field in fields(Plan)}
        if counts is not None:
            decided["counts"] = counts
        return Batch(**decided, ids=ids, number=number, lease=lease, ordinals=ordinals, items=items, item_ids=item_ids)

    def table(self) -> list[tuple[str, int]]:
        """[(id, pulls)] of the arms to be pulled."""
        return [(self.ids[arm], int(self.counts[arm])) for arm in np.flatnonzero(self.counts).tolist()]

    def pulls(self) -> list[str]:
        """The ids, one a pull, arm by arm: `tell(batch, rewards)` takes the rewards in this order."""
        return [self.ids[arm] for arm in np.repeat(np.arange(len(self.counts)), self.counts).tolist()]

    def _repr_html_(self) -> str:
        """What to measure, for notebooks."""
        whose = "" if self.lease is None else f", leased to {self.lease.worker}"
        caption = f"round {self.round}: {self.total:,} pulls{whose}"
        arms = np.flatnonzero(self.counts)
        rows = ((self.ids[arm], int(self.counts[arm])) for arm in arms.tolist())
        return html_table(("arm", "pulls"), rows, caption, total=len(arms))

    def keys(self) -> list[tuple[str, str]]:
        """[(id, key)], one row a pull, of a leased batch or of test items: report each result with its key, and it
        counts once.

        Raises:
            OutOfTurn: the batch is not leased.
        """
        if self.total == 0:
            return []
        if self.items is not None:
            pulled = zip(self.pulls(), self.items.tolist(), strict=True)
            return [(name, item_key(item, name)) for name, item in pulled]
        if self.lease is None or self.ordinals is None:
            raise OutOfTurn("only leased pulls have keys; lease(worker=...) gives some.")
        plan, ordinals = self.lease.plan, self.ordinals.tolist()
        return [(name, pull_key(plan, ordinal, name)) for name, ordinal in zip(self.pulls(), ordinals, strict=True)]

    def sent(self) -> dict[str, Any]:
        """As plain JSON data, without the ids of the arms, which whoever receives it has."""
        plan = Plan(**{field.name: getattr(self, field.name) for field in fields(Plan)})
        own = {field.name for field in fields(Batch)} - {field.name for field in fields(Plan)} - {"ids"}
        return {"decided": encode(plan, sparse=True)} | {name: encode(getattr(self, name)) for name in sorted(own)}

    @staticmethod
    def received(data: Mapping[str, Any], ids: tuple[str, ...]) -> Batch:
        """The batch that was `sent`."""
        plan, lease = from_json(Plan, json.dumps(data["decided"])), data["lease"]
        whole = Batch.of(plan, ids, data["number"], lease=None if lease is None else Lease(**lease))
        return replace(
            whole,
            ordinals=None if data["ordinals"] is None else np.array(data["ordinals"], np.int64),
            items=None if data["items"] is None else np.array(data["items"], np.int64),
            item_ids=tuple(data["item_ids"]),
            blocks=tuple(data["blocks"]),
            block_name=data["block_name"],
        )
