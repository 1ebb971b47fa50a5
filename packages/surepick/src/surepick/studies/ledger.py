"""What a study says and takes, by the ids of its arms: results as users report them, and the log behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.descriptions import Scale
from surepick.core.observations import Observations, Quantity
from surepick.core.plans import Blocking, Plan
from surepick.core.records import FloatArray, IntArray, encode, from_json, frozen
from surepick.core.values import check_order, texts_of
from surepick.errors import InvalidInput, OutOfTurn
from surepick.noise import Noise
from surepick.policies.base import Policy
from surepick.questions import Constraint
from surepick.studies.logs import base, keys as keyed
from surepick.studies.logs.base import Lease, pull_key
from surepick.studies.logs.keys import item_key
from surepick.studies.logs.open_plan import OpenPlan
from surepick.studies.replay import Replay, refusal_of
from surepick.studies.validation import check_rewards, check_sums, single_values, source, split_values, total_values
from surepick.text import did_you_mean, html_table, quoted

# --- What a study wants measured next: a plan with the ids of its arms, or the part of it that a worker leased.


@frozen
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

    @staticmethod
    def of(plan: Plan, ids: tuple[str, ...], number: int, **part: Any) -> Batch:
        """The batch of a plan: all of it, or the part with these counts, and other fields."""
        decided = {field.name: getattr(plan, field.name) for field in fields(Plan)}
        return Batch(**decided | part, ids=ids, number=number)

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


MOST_DEALT = 50_000_000  # measurements of a batch, each with the name of its block


class Measured(Protocol):
    """What must be known of a study to read its results; all but ids and noise is asked for when it is needed."""

    ids: tuple[str, ...]
    noise: Noise

    @property
    def blocking(self) -> Blocking | None: ...
    @property
    def constraints(self) -> tuple[Constraint, ...]: ...
    @property
    def scale(self) -> Scale: ...
    @property
    def policy(self) -> Policy[Any]: ...


class ResultParser:
    """What a study takes, checked without what is stored."""

    def __init__(self, study: Measured) -> None:
        self._study = study
        self.ids = study.ids
        self.noise = study.noise
        self._index = {name: arm for arm, name in enumerate(study.ids)}

    @property
    def scale(self) -> Scale:
        """How numbers are measured."""
        return self._study.scale

    @property
    def blocking(self) -> Blocking | None:
        """What the study says of blocks; None where measurements are independent."""
        return self._study.blocking

    def arms_of(self, ids: Sequence[object]) -> tuple[IntArray, Sequence[str]]:
        """(indices, names) of the arms of these ids."""
        if ids is self.ids:
            return np.arange(len(self.ids)), self.ids
        names = texts_of("ids", ids)
        unknown = [name for name in names if name not in self._index]
        if unknown:
            raise InvalidInput(
                f"{len(unknown)} ids are not arms of this study, the first is {quoted(unknown[0])}."
                f"{did_you_mean(unknown[0], self.ids)}"
            )
        return np.array([self._index[name] for name in names], np.int64), names

    def single_results(
        self,
        ids: Sequence[object] | Batch,
        rewards: ArrayLike,
        keys: Sequence[object] | None,
        items: Sequence[object] | None,
        blocks: Sequence[object] | None,
        worker: str | None,
        plan: int | None,
    ) -> tuple[base.Results, str | None, int | None]:
        """(results, worker, plan) of what `Study.tell` was given."""
        if items is not None:
            names = ids if isinstance(ids, Batch) else list(texts_of("ids", ids))
            if keys is not None or isinstance(names, Batch):
                raise InvalidInput(
                    "an answer is known by its arm and its item: give ids and items, without keys or batch."
                )
            ids, keys = names, keyed.keys_of(self._study.policy.traits.items, names, items)
        if isinstance(ids, Batch):
            worker, plan = self.owner_of(ids, worker, plan)
            blocks = ids.blocks or None if blocks is None else blocks
            if ids.lease is not None or ids.items is not None:
                if keys is not None:
                    raise InvalidInput("the pulls of a leased batch have keys already; leave keys out, or give ids.")
                rows = ids.keys()
                keys = [key for _, key in rows]
            ids = ids.pulls()
        return self.singles(ids, rewards, keys, worker, blocks), worker, plan

    def owner_of(self, batch: Batch, worker: str | None, plan: int | None) -> tuple[str | None, int]:
        """(worker, number of the plan) of the results of a batch."""
        if batch.ids != self.ids:
            raise InvalidInput("this batch is of another study: its candidates are others.")
        holder = batch.lease.worker if worker is None and batch.lease is not None else worker
        return holder, batch.number if plan is None else plan

    def singles(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None,
        worker: str | None,
        blocks: Sequence[object] | None = None,
        *,
        prior: bool = False,
    ) -> base.Results:
        """Results of one pull each; those that are kept apart name no block."""
        arms, names = self.arms_of(ids)
        check_order("rewards", rewards, names)
        rewards, beside = split_values(rewards, self._study.constraints)
        values = check_rewards(rewards, self.noise, len(arms), names)
        labels = keyed.canonical_keys(keys, names)
        named = None if prior else keyed.canonical_blocks(self.blocking, blocks, len(arms))
        apart: dict[str, Any] = {"source": source(worker), "blocks": named, "items": self._items_in(labels)}
        apart["quantities"] = single_values(beside)
        return base.Results(arms, np.ones(len(arms), np.int64), values, values**2, labels, **apart)

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
    ) -> base.Results:
        """Results that add up several pulls; rows without pulls are left out."""
        arms, names = self.arms_of(ids)
        seen = check_sums(pulls, sums, squares, self.noise, names)
        alone = seen.counts == 1  # its square is known, whatever was told
        energies = None if seen.squares is None else np.where(alone, seen.sums**2, seen.squares)
        labels = keyed.canonical_keys(keys, names)
        apart: dict[str, Any] = {"blocks": keyed.canonical_blocks(self.blocking, blocks, len(arms))}
        apart |= {"source": source(worker), "items": self._items_in(labels), "within": within}
        apart["quantities"] = total_values(quantities, self._study.constraints, names)
        rows = base.Results(arms, seen.counts, seen.sums, energies, labels, **apart)
        return rows.rows(np.flatnonzero(seen.counts))

    def _items_in(self, keys: Sequence[str | None] | None) -> IntArray | None:
        """The number of the item that each key names, shape (n,), -1 for none; None where results are draws."""
        items = np.array([keyed.read_item_key(key) for key in keys or ()], np.int64)
        return items if np.any(items >= 0) and self._study.policy.traits.items is not None else None


class StudyLog(ResultParser):
    """The log of a study, with the ids of its arms; it explains why a plan takes no results."""

    def __init__(self, study: Measured, replay: Replay, *, in_parts: bool, no_surplus: bool) -> None:
        super().__init__(study)
        self.replay, self.log = replay, replay.log
        self.in_parts = in_parts  # results are judged as they come
        self.no_surplus = no_surplus  # results beyond what was asked are refused

    @property
    def unlike(self) -> bool:
        """Whether repeats differ for other reasons than noise: by their block, or because each answers another item."""
        return self.blocking is not None or self.replay.policy.traits.items is not None

    def judged(self) -> Observations | None:
        """All that the judged plans gave, in the user's sign; None before the first."""
        last = self.log.last_decision()
        known = None if last is None else self.replay.seen_up_to(last.plan)
        return replace(known, sums=-known.sums) if known is not None and self.replay.minimize else known

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The log's turn; if it fails, we forget what we saw inside."""
        try:
            with self.log.turn():
                yield
        except BaseException:
            self.replay.forget()
            raise

    def open_plan(self) -> base.Planned | None:
        """The open plan; a new one if there is none; None once stopped."""
        head = self.replay.settle()
        if head.decision.stopped or self.log.ended() is not None:
            return None
        if head.refusal:
            raise OutOfTurn(head.refusal)
        if head.planned is not None:
            return head.planned
        plan = self.replay.policy.ask(self.replay.state_of(head.decision))  # no lock is held while we design
        return self.log.add_plan(base.Planned(head.decision.plan + 1, plan, self.log.clock()))

    def taking(self) -> tuple[base.Planned, OpenPlan]:
        """The plan that takes results, and where it stands."""
        planned = self.log.last_plan()
        if planned is not None and (open_plan := self.replay.look(planned)).takes_results:
            return planned, open_plan
        raise OutOfTurn(self.why_closed())

    def why_closed(self) -> str:
        """Why no plan takes results."""
        ended, decision = self.log.ended(), self.log.last_decision()
        if ended is not None:
            why = f" ({ended.reason})." if ended.reason else "."
            return f"the study was closed on {base.format_time(ended.at)}{why} No more results are needed."
        if decision is not None and decision.stopped:
            return "the study has stopped; no more results are needed."
        planned = self.log.last_plan()
        if planned is not None and (open_plan := self.replay.look(planned)).refused:
            return refusal_of(open_plan)
        return (
            "no plan is open: nothing has been asked yet, or all results are in; call ask() first, "
            "measure that batch, then tell."
        )

    def batch(self, planned: base.Planned, counts: IntArray | None = None, *, lease: base.Lease | None = None) -> Batch:
        """The plan with the ids of the arms; with `counts`, that part of it.

        Of test items, all that the arms of that part did not answer; a lease of them is one of whole arms.
        """
        if planned.plan.places is None:
            batch = Batch.of(planned.plan, self.ids, planned.number, **({} if counts is None else {"counts": counts}))
            return self.in_blocks(batch, 0 if counts is None else int(self.replay.look(planned).recorded.sum()))
        plan, order = planned.plan, self.replay.item_order
        arms, items = np.repeat(np.arange(len(plan.counts)), plan.counts), order.order[plan.places]
        keys = [keyed.item_key(item, self.ids[arm]) for arm, item in zip(arms.tolist(), items.tolist(), strict=True)]
        known = self.log.recorded(keys)
        wanted = plan.counts if counts is None else counts
        left = np.array([key not in known for key in keys], bool) & (wanted[arms] > 0)
        some: IntArray = np.bincount(arms[left], minlength=len(self.ids)).astype(np.int64)
        names = tuple(order.items.ids[item] for item in items[left].tolist())
        return Batch.of(plan, self.ids, planned.number, counts=some, lease=lease, items=items[left], item_ids=names)

    def in_blocks(self, batch: Batch, before: int, asked: IntArray | None = None) -> Batch:
        """The batch with a block for each of its pulls, where the study has blocks.

        A block that can be gone back to is dealt once for the whole plan, whoever measures in it. Others are those of
        the lease: nobody can be asked to measure on another's plate. No name is a number: a spreadsheet would write
        "1.10" as 1.1, which is another.
        """
        blocking = self.blocking
        if blocking is None:
            return batch
        if batch.total > MOST_DEALT:
            raise OutOfTurn(
                f"plan {batch.number} asks for {batch.total:,} measurements, and more than {MOST_DEALT:,} cannot be "
                "dealt into blocks. Close the study (surepick close): its certificate rests on what was told."
            )
        if asked is not None and batch.ordinals is not None and blocking.again:
            arms, ordinals = np.repeat(np.arange(len(asked)), batch.counts), np.asarray(batch.ordinals)
            first = np.cumsum(asked) - asked
            dealt = blocking.dealt(asked)[first[arms] + np.minimum(ordinals, asked[arms] - 1)]
            extra = ordinals >= asked[arms]  # a pull that is asked for once more has a block of its own
            names = [
                f"b{batch.number}.{block + 1}" + f"+{ordinal}" * bool(more)
                for block, ordinal, more in zip(dealt.tolist(), ordinals.tolist(), extra.tolist(), strict=True)
            ]
        else:
            whose = f"{batch.number}" if batch.lease is None else f"{batch.number}.{batch.lease.number}"
            names = [f"b{whose}.{before + block + 1}" for block in blocking.dealt(batch.counts).tolist()]
        return replace(batch, blocks=tuple(names), block_name=blocking.name)
