"""Certified choice on a finite set of test items: every arm answers the same items, in one order, until it is out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Intervals, Plan, Step, against
from surepick.core.random_streams import Chooser, settled_seed
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record, set_fields
from surepick.errors import InvalidInput
from surepick.estimators.item_processes import (
    ItemProcesses,
    after_items,
    first_bets,
    leader_of,
    looks_of,
    next_bets,
    with_late_answers,
)
from surepick.items import ItemOrder, Items
from surepick.policies import options
from surepick.policies.base import Traits, trace_row
from surepick.policies.options import check_options, option
from surepick.policies.preference import Preference, checked_preference, liked_better, preferred
from surepick.policies.sequential.engine import SequentialTest

# --- What a study of test items has come to.


@frozen
class ItemBatch:
    """Successive items of the order, and who was asked to answer them."""

    size: int  # items
    asked: IntArray  # indices of the arms, ascending


@frozen
class Answered:
    """Answers of arms to items, each known by arm * N + the place of the item in the order."""

    at: IntArray  # ascending, (m,)
    scores: FloatArray  # (m,)

    @staticmethod
    def none() -> Answered:
        return Answered(np.empty(0, np.int64), np.empty(0))

    def plus(self, at: IntArray, scores: FloatArray) -> Answered:
        """With more of them, which must be others."""
        both = np.append(self.at, at)
        order = np.argsort(both, kind="stable")
        return Answered(both[order], np.append(self.scores, scores)[order])


@frozen
class ItemsState:
    """All answers, and what was decided from them. The processes are computed from it."""

    round: int  # number of the next plan
    batches: tuple[ItemBatch, ...]  # the items drawn so far, batch by batch
    answers: Answered  # those that came with the batch of their item
    late: Answered  # those to items that were drawn without the arm; they enter no bet
    beaten: IntArray  # indices of arms that are not the best
    open: IntArray  # indices of the arms that answer the next items, the leader among them
    leader: int  # index of the arm that would be recommended
    finished: str  # as in `Claim`
    num_arms: int  # K

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
        """The answers that came with their batch, shape (K, drawn), NaN where there is none."""
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


BY = {
    "program": "the order of the test items was drawn by the program when the study was set up",
    "user": "the order of the test items was given by whoever set the study up",
}


@record
class CertifiedItems(SequentialTest):
    """Which arm has the best mean score over N test items? Ask few of them, of few arms.

        E_{j,c}(e) = prod (1 + lambda_i (y_i - mu_i(c, e)))          y_i: mean score of others than j, minus that of j
        j is beaten once E_{j,c}(0) >= 1/delta
        recommend c once every other j is beaten or E_{j,c}(epsilon) >= 1/delta

    Items are drawn without replacement, so that mu moves with what was seen, and all items used are the exact answer. A
    wrong recommendation needs the process of one arm, the best one, to reach 1/delta: no union over arms, and none over
    candidates (docs/items.md, lines 1 to 6, has the proof).

    Each plan asks for the next items of the order, of every arm that is not out against the leader.

    Args:
        problem: what is asked; the noise must be Bernoulli() or Bounded(0, 1), the range of a score.
        items: the set, as `Items`, its ids, or their number.
        seed: of the order of the items, fixed before the first answer. None: it is drawn now, so that nobody can have
            prepared a candidate for the items that come first (docs/items.md, line 1); one that is given is for
            rehearsals.
        seed_by: "program" or "user", who chose the seed, as a study has stored it; None: whoever gives it.
        growth: a batch has so many items, as a share of those drawn.
        first_batch: items in the first batch, and the fewest in any.
        largest_batch: most items in a batch; None: no limit.
        prefer: a number of each arm, e.g. its price: of all that are certified at the end the one with the smallest is
            named; None: the one that looks best.

    Raises:
        InvalidInput: a setting has no meaning, or scores may lie outside [0, 1].

    Source: ours, after Waudby-Smith & Ramdas (2020) for betting without replacement, Ville (1939).
    """

    items: Items
    seed: int | None = None
    seed_by: Chooser | None = None
    growth: float = option(0.15, options.growth)
    first_batch: int = option(2, options.whole("a batch has at least one item."))
    largest_batch: int | None = option(None, options.whole("a batch has at least one item."))
    prefer: Preference = None

    def __post_init__(self) -> None:
        check_options(self)
        if not isinstance(self.items, Items):
            object.__setattr__(self, "items", Items(self.items))
        seed, by = settled_seed("seed", self.seed, self.seed_by, "it decides the order of the items.")
        set_fields(self, seed=seed, seed_by=by, prefer=checked_preference(self.problem, self.prefer))
        if self.problem.noise.support != (0.0, 1.0):
            raise InvalidInput(
                f"the noise is {self.problem.noise.spec}; scores of test items lie between 0 and 1: declare bernoulli "
                "for right or wrong, bounded:0:1 for shares of points, and divide other scores by the full one."
            )

    @property
    def order(self) -> ItemOrder:
        """The items in their order."""
        return ItemOrder(self.items, *settled_seed("seed", self.seed, self.seed_by, "it decides the order."))

    @property
    def traits(self) -> Traits:
        return Traits(eliminates=True, certifies="candidate", corrects=True, items=self.order)

    def init(self) -> ItemsState:
        finished, _ = self.problem.answer_without_pulls()
        nobody, everybody = np.empty(0, np.int64), np.arange(self.problem.num_arms)
        none = Answered.none()
        num_arms = self.problem.num_arms
        leader = preferred(range(num_arms), self.prefer) if finished == "given" else 0
        return ItemsState(1, (), none, none, nobody, everybody, leader, finished, num_arms)

    def ask(self, state: ItemsState) -> Plan:
        left = self.items.num_items - state.drawn
        counts, first = np.zeros((2, state.num_arms), np.int64)
        if left:
            size = max(self.first_batch, math.floor(self.growth * state.drawn))
            counts[state.open] = min(size, left, self.largest_batch or left)
            first[state.open] = state.drawn
        else:  # all items are used: the arms in question answer what they missed
            table = state.full_table(self.items.num_items)
            for arm in state.open.tolist():
                first[arm], counts[arm] = _first_gap(table[arm])
        candidate = state.leader if state.batches else None
        return Plan(round=state.round, counts=counts, candidate=candidate, first_items=first)

    def tell(self, state: ItemsState, plan: Plan, seen: Observations) -> Step[ItemsState]:
        if plan.total == 0:
            row = trace_row(plan, state, pulls=0, gap=self._gap(state))
            return Step(state, row, lambda _: self._intervals(state))
        at, scores = self._placed(plan, seen)
        processes = self._processes(state)
        if state.drawn < self.items.num_items:
            asked = plan.counts > 0
            batch = ItemBatch(int(plan.counts.max()), np.flatnonzero(asked))
            state = replace(state, batches=(*state.batches, batch), answers=state.answers.plus(at, scores))
            processes = self._after(processes, batch, state.table(self.items.num_items))
        else:
            state = replace(state, late=state.late.plus(at, scores))
            processes = with_late_answers(processes, at // self.items.num_items, scores)
        after = self._judged(state, processes)
        self._cache.of("processes", after, None, lambda: processes)
        row = trace_row(plan, after, pulls=seen.total, gap=self._gap(after))
        return Step(after, row, lambda _: self._intervals(after))

    def _answer(self, _: ItemsState) -> dict[str, Any]:
        assumptions = (
            f"The mean score of a candidate is that over the {self.items.num_items:,} items of the set "
            f"{self.items.digest[:16]}; what is claimed is of these items alone.",
            "What a candidate answers to an item does not depend on the item's place in the order, which is random and "
            f"was fixed before the first answer: {BY[self.order.by]} (seed {self.seed}).",
            "Scores lie between 0 and 1.",
        )
        return {"assumptions": assumptions, "of_draws": False}

    def _remark(self, state: ItemsState) -> str:
        return self._why_named(state)

    def _good_enough(self, state: ItemsState) -> Sequence[int]:
        if state.finished != "certified":
            return range(state.num_arms) if state.finished == "given" else ()
        return self._certified(self._processes(state), members(state.beaten, state.num_arms))

    def _certified(self, processes: ItemProcesses, beaten: BoolArray) -> list[int]:
        """The arms all of whose rivals are beaten, or better by at most epsilon."""
        found = []
        for arm in range(len(beaten)):
            out = beaten | processes.rejected(arm, self.problem.epsilon, self.problem.delta)
            out[arm] = True
            found += [arm] if out.all() else []
        return found

    def _placed(self, plan: Plan, seen: Observations) -> tuple[IntArray, FloatArray]:
        """(arm * N + place, score) of what came."""
        num_items = self.items.num_items
        if seen.answers is None or plan.places is None:
            if seen.total:
                raise InvalidInput(
                    f"{seen.total} results came as totals; of test items each answer is needed, with its item."
                )
            return np.empty(0, np.int64), np.empty(0)
        at = seen.answers.arms * num_items + self.order.places[seen.answers.items]
        asked = np.repeat(np.arange(len(plan.counts)), plan.counts) * num_items + plan.places
        wrong = np.flatnonzero(~np.isin(at, asked))
        if len(wrong) or len(np.unique(at)) < len(at):
            raise InvalidInput(
                f"{len(wrong)} answers are to items that were not asked of their candidate, or one was answered twice."
            )
        return at, seen.answers.scores

    def _after(self, processes: ItemProcesses, batch: ItemBatch, table: FloatArray) -> ItemProcesses:
        """The processes after the next batch, of which the table has the answers."""
        drawn, asked = processes.drawn, members(batch.asked, len(table))
        bets = first_bets(len(table))
        if drawn:
            left = 1.0 - drawn / self.items.num_items
            bets = next_bets(table[:, :drawn], asked, epsilon=self.problem.epsilon, left=left)
        return after_items(processes, bets, asked, table[:, drawn : drawn + batch.size])

    def _processes(self, state: ItemsState) -> ItemProcesses:
        """What the answers say; computed from the first item on where the state is not the one judged last."""
        kept: tuple[bool, ItemProcesses] = self._cache.known("processes", state)
        if kept[0]:
            return kept[1]
        processes, table = ItemProcesses.start(state.num_arms, self.items.num_items), state.table(self.items.num_items)
        for batch in state.batches:
            processes = self._after(processes, batch, table)
        return with_late_answers(processes, state.late.at // self.items.num_items, state.late.scores)

    def _judged(self, state: ItemsState, processes: ItemProcesses) -> ItemsState:
        """Who is out, who leads, and whether that is enough."""
        delta, was_open = self.problem.delta, members(state.open, state.num_arms)
        before, table = members(state.beaten, state.num_arms), state.full_table(self.items.num_items)
        beaten = before | processes.beaten(delta)
        if beaten.all():  # has a chance of at most delta
            beaten[leader_of(table, ~before)] = False
        leader = leader_of(table, was_open & ~beaten if np.any(was_open & ~beaten) else ~beaten)
        out = beaten | processes.rejected(leader, self.problem.epsilon, delta)
        out[leader] = True
        finished = bool(out.all())
        if self.prefer is not None and finished:
            leader = preferred(self._certified(processes, beaten), self.prefer)
            looks = looks_of(table)
            wanted = liked_better(leader, self.prefer, looks, np.zeros_like(beaten), self.problem.epsilon)
            if wanted is not None:  # answers are asked of it, and of all that are not out against it
                leader, finished = wanted, False
                out = beaten | processes.rejected(leader, self.problem.epsilon, delta)
        still = ~out
        still[leader] = True
        return replace(
            state,
            round=state.round + 1,
            beaten=np.flatnonzero(beaten),
            open=np.flatnonzero(still),
            leader=leader,
            finished="certified" if finished else "",
        )

    def _bounds(self, state: ItemsState) -> FloatArray:
        """By how much each arm is better than the leader at most, shape (K,); 0 for those that are beaten."""
        bounds = self._processes(state).upper_bounds(state.leader, self.problem.delta, epsilon=self.problem.epsilon)
        bounds[state.beaten] = 0.0
        return bounds

    def _gap(self, state: ItemsState) -> float | None:
        """By how much the leader is worse than the best arm at most; None before the first answer."""
        if not state.batches:
            return self.problem.answer_without_pulls()[1] if state.finished else None
        return float(self._bounds(state).max())

    def _intervals(self, state: ItemsState) -> Intervals:
        """The rivals of the leader."""
        bounds, rivals = self._bounds(state), np.setdiff1d(np.arange(state.num_arms), [state.leader])
        counts = np.isfinite(table := state.full_table(self.items.num_items)).sum(axis=1)
        means = np.nansum(table, axis=1) / np.maximum(counts, 1)
        leads = (means[state.leader] - means)[rivals]
        widths = bounds[rivals] + leads
        return against(state.leader, rivals, leads=leads, widths=widths, allowed=self.problem.epsilon)


def _first_gap(answers: FloatArray) -> tuple[int, int]:
    """(place, number) of the first successive items without an answer; (0, 0) if there is none."""
    missing = np.flatnonzero(~np.isfinite(answers))
    if not len(missing):
        return 0, 0
    breaks = np.flatnonzero(np.diff(missing) != 1)
    return int(missing[0]), int(breaks[0] + 1 if len(breaks) else len(missing))
