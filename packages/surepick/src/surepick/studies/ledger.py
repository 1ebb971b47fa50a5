"""The log of a study as users see it, by ids; it explains why a plan takes no results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Blocking
from surepick.core.records import IntArray
from surepick.core.values import storable_text, whole_number
from surepick.errors import InvalidInput, OutOfTurn
from surepick.noise import Noise
from surepick.questions import Constraint
from surepick.studies.batch import Batch
from surepick.studies.logs import base
from surepick.studies.logs.keys import item_key
from surepick.studies.logs.open_plan import LeaseProgress, OpenPlan
from surepick.studies.replay import Replay, refusal_of
from surepick.studies.validation import ResultParser
from surepick.text import quoted

MOST_DEALT = 50_000_000  # measurements of a batch, each with the name of its block


class StudyLog(ResultParser):
    """The log of a study, with the ids of its arms.

    Args:
        replay: the log, as far as it was replayed.
        ids: ids of the arms, K of them.
        noise: what is assumed of a reward.
        judge, surplus: when results are judged, and what becomes of those beyond what was asked, as in `Study`.
        blocks: gives what the study says of blocks.
        constraints: gives those on what else is measured.
    """

    def __init__(
        self,
        replay: Replay,
        ids: tuple[str, ...],
        noise: Noise,
        judge: base.Judge = base.CLOSED_ROUNDS,
        blocks: Callable[[], Blocking | None] = lambda: None,
        constraints: Callable[[], tuple[Constraint, ...]] = tuple,
        surplus: base.Surplus = base.COUNT,
    ) -> None:
        super().__init__(ids, noise, blocks, constraints, lambda: replay.policy.traits.items)
        self.replay = replay
        self._minimize = replay.minimize
        self.in_parts = judge == base.AS_THEY_COME
        self.no_surplus = surplus == base.REFUSE

    @property
    def log(self) -> base.Log:
        """Where plans and results are kept."""
        return self.replay.log

    @property
    def unlike(self) -> bool:
        """Whether repeats differ for other reasons than noise: by their block, or because each answers another item."""
        return self.blocking is not None or self._items() is not None

    def judged(self) -> Observations | None:
        """All that the judged plans gave, in the user's sign; None before the first."""
        last = self.log.last_decision()
        told = None if last is None else self.replay.told(last.plan)
        return told if told is None or not self._minimize else replace(told, sums=-told.sums)

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
            batch = Batch.of(planned.plan, self.ids, planned.number, counts=counts)
            return self.in_blocks(batch, 0 if counts is None else int(self.replay.look(planned).recorded.sum()))
        return self._items_left(planned, planned.plan.counts if counts is None else counts, lease)

    def in_blocks(self, batch: Batch, before: int, asked: IntArray | None = None) -> Batch:
        """The batch with a block for each of its pulls, where the study has blocks.

        A block that can be gone back to is dealt once for the whole plan, whoever measures in it. Others are those of
        the lease: nobody can be asked to measure on another's plate. No name is a number: a spreadsheet would write
        "1.10" as 1.1, which is another.

        Args:
            asked: pulls of the plan that the lease is of, shape (K,); None: nothing is leased.
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
            names = _dealt_in(batch, blocking, asked)
        else:
            whose = f"{batch.number}" if batch.lease is None else f"{batch.number}.{batch.lease.number}"
            names = [f"b{whose}.{before + block + 1}" for block in blocking.dealt(batch.counts).tolist()]
        return replace(batch, blocks=tuple(names), block_name=blocking.name)

    def _items_left(self, planned: base.Planned, wanted: IntArray, lease: base.Lease | None) -> Batch:
        """The items of the plan that the wanted arms did not answer."""
        plan, order = planned.plan, self.replay.item_order
        arms = np.repeat(np.arange(len(plan.counts)), plan.counts)
        items = order.order[plan.places]
        keys = [item_key(item, self.ids[arm]) for arm, item in zip(arms.tolist(), items.tolist(), strict=True)]
        known = self.log.recorded(keys)
        left = np.array([key not in known for key in keys], bool) & (wanted[arms] > 0)
        counts: IntArray = np.bincount(arms[left], minlength=len(self.ids)).astype(np.int64)
        names = tuple(order.items.ids[item] for item in items[left].tolist())
        return Batch.of(plan, self.ids, planned.number, counts=counts, lease=lease, items=items[left], item_ids=names)


def _dealt_in(batch: Batch, blocking: Blocking, asked: IntArray) -> list[str]:
    """The block of each leased pull as the plan deals it; a pull that is asked for once more has one of its own."""
    arms, ordinals = np.repeat(np.arange(len(asked)), batch.counts), np.asarray(batch.ordinals)
    first = np.cumsum(asked) - asked
    dealt = blocking.dealt(asked)[first[arms] + np.minimum(ordinals, asked[arms] - 1)]
    again = ordinals >= asked[arms]
    return [
        f"b{batch.number}.{block + 1}" + f"+{ordinal}" * bool(anew)
        for block, ordinal, anew in zip(dealt.tolist(), ordinals.tolist(), again.tolist(), strict=True)
    ]


# --- Parts of an open plan, given to workers.

USUAL_LEASE = "8h"
BACKWARDS = 120.0  # seconds that the clock of one writer may be behind that of another
LONGEST_PAUSE = 366 * 86_400.0  # seconds without an entry; a clock that is ahead by years takes all leases of others


def lease_terms(max_pulls: int | None, worker: str | None, lease: str | float | None) -> tuple[str, float]:
    """(worker, seconds) of a lease that is asked for."""
    if max_pulls is not None:
        whole_number("max_pulls", max_pulls, least=1, meaning="the pulls that are leased.")
    name = base.ANYONE if worker is None else worker
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"worker is {quoted(worker)}; give a name, so that we know who holds the lease.")
    return storable_text("worker", name), base.parse_duration(USUAL_LEASE if lease is None else lease)


def checked_time(log: base.Log) -> float:
    """The time, if leases can be judged by it."""
    now, latest = log.clock(), log.latest_time()
    if now < latest - BACKWARDS:
        raise OutOfTurn(
            f"Clock skew: it is {base.format_time(now)}, but the latest entry of this study is from "
            f"{base.format_time(latest)}. Leases need consistent clocks, so none was granted. Fix the clock (results "
            "can still be reported), or pass --trust-clock (lease(..., trust_clock=True)) if the earlier entries are "
            "wrong."
        )
    if latest > 0.0 and now > latest + LONGEST_PAUSE:
        raise OutOfTurn(
            f"Clock skew: it is {base.format_time(now)} here, more than a year after the latest entry of this study "
            f"({base.format_time(latest)}), so every lease of others would have run out. None was granted. Fix the "
            "clock, or pass --trust-clock (lease(..., trust_clock=True)) if the study rested for so long."
        )
    return now


def part(log: base.Log, open_plan: OpenPlan, held: LeaseProgress, ids: tuple[str, ...]) -> Batch:
    """The rest of a lease, as a batch of the keys without a result."""
    planned, left = open_plan.planned, open_plan.wanted_of(held)
    ordinals = []
    for arm in np.flatnonzero(left).tolist():
        first, number = int(held.leased.first[arm]), int(held.leased.counts[arm])
        mine = np.arange(first, first + number)
        if held.done[arm]:
            keys = [base.pull_key(planned.number, ordinal, ids[arm]) for ordinal in mine.tolist()]
            recorded = {*log.recorded(keys), *open_plan.failed_keys}
            mine = mine[[key not in recorded for key in keys]]
        ordinals.append(mine[: left[arm]])
        left[arm] = len(ordinals[-1])
    flat = np.concatenate(ordinals) if ordinals else np.empty(0, np.int64)
    return Batch.of(planned.plan, ids, planned.number, counts=left, lease=held.lease, ordinals=flat)


def lease_part(
    ledger: StudyLog, planned: base.Planned, most: int | None, worker: str, seconds: float, trusted: bool
) -> Batch | None:
    """A lease on a part of the plan, or the rest of the worker's lease; None if the plan was closed meanwhile."""
    log = ledger.log
    with ledger.turn():
        now = log.clock() if trusted else checked_time(log)
        open_plan = ledger.replay.look(planned)
        held = open_plan.held_by(worker, now)
        if not open_plan.takes_results:
            return None
        if held is None:
            if most is not None and planned.plan.first_items is not None:
                most = whole_arms(open_plan.free(now), most)
            leased = open_plan.grant(worker, most, now=now, until=now + seconds, alike=ledger.blocking is not None)
            if leased is None:
                return ledger.batch(planned, np.zeros_like(open_plan.asked))
            log.add_lease(leased, now)
            held = LeaseProgress(leased, np.zeros_like(open_plan.asked))
        return _rest(ledger, open_plan, held)


def _rest(ledger: StudyLog, open_plan: OpenPlan, held: LeaseProgress) -> Batch:
    """What is left of a lease."""
    planned = open_plan.planned
    if planned.plan.first_items is not None:
        return ledger.batch(planned, open_plan.wanted_of(held), lease=held.lease)
    batch = part(ledger.log, open_plan, held, ledger.ids)
    return ledger.in_blocks(batch, int(held.done.sum()), planned.plan.counts)


def free_part(ledger: StudyLog) -> Batch | None:
    """As `Study.free_part`."""
    planned = ledger.open_plan()
    if planned is None:
        return None
    return ledger.batch(planned, ledger.replay.look(planned).free(ledger.log.clock()))


def held_part(ledger: StudyLog, worker: str) -> Batch | None:
    """As `Study.held`, which has the arguments."""
    planned = ledger.log.last_plan()
    open_plan = None if planned is None else ledger.replay.look(planned)
    if open_plan is None or not open_plan.takes_results:
        return None
    held = open_plan.held_by(worker, ledger.log.clock())
    return None if held is None else _rest(ledger, open_plan, held)


def whole_arms(free: IntArray, most: int) -> int:
    """The pulls of the first arms that together need at most so many; of one arm at least.

    Whoever answers test items for an arm answers all that the plan asks of it.

    Args:
        free: pulls that nobody holds, shape (K,).
    """
    ends = np.cumsum(free[free > 0])
    fitting = ends[ends <= most]
    return int(fitting[-1] if len(fitting) else ends[0]) if len(ends) else most


def release_leases(ledger: StudyLog, worker: str) -> int:
    """As `Study.release`, which has the arguments."""
    pulls = 0
    with ledger.turn():
        (planned, open_plan), now = ledger.taking(), ledger.log.clock()
        for held in open_plan.running(now):
            if held.lease.worker != worker and not held.lease.worker.startswith(f"{worker}/"):
                continue
            left, number = held.left, held.lease.number
            for arm in np.flatnonzero(left).tolist():
                pulls += int(left[arm])
                ledger.log.add_event(base.Event(base.FAILED, planned.number, arm, int(left[arm]), number, "", now))
    return pulls
