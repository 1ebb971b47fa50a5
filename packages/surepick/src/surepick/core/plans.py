"""What a policy wants measured next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np

from surepick.core.records import FloatArray, IntArray, frozen, record


@record
class Blocking:
    """What a study says of its blocks."""

    name: str  # what a block is called ("plate", "day"), and the column of results that names each row's block
    size: int | None = None  # most measurements in a block; None: not known
    control: int | None = None  # index of an arm that every block is to measure; None: no arm is
    once: bool = False  # an arm is measured at most once in a block
    anew: bool = False  # a block that an earlier plan had does not go on in a later one
    again: bool = False  # a block can be gone back to, as a stream of random numbers can; a plate that is done cannot

    @staticmethod
    def stored_in(spec: Mapping[str, Any]) -> Blocking | None:
        """What a policy's spec says of blocks, but for the control, whose index it does not know; None: no blocks."""
        name, normal = spec.get("blocks") or spec.get("streams"), str(spec.get("noise")).startswith("normal")
        if name is None:
            return None
        once, streams = normal or bool(spec.get("once_a_block")), spec.get("streams") is not None
        return Blocking(name, spec.get("block_size"), None, once, anew=normal, again=streams)

    def number_for(self, counts: IntArray) -> int:
        """How many blocks a plan with these counts fills, shape (K,)."""
        number = 1 if self.size is None else -(-int(counts.sum()) // self.size)
        return max(number, int(counts.max(initial=0)) if self.once else 1, 1)

    def dealt(self, counts: IntArray) -> IntArray:
        """The block of each pull, arm by arm, shape (total,): like cards, so that no two differ by more than one."""
        return np.arange(int(counts.sum())) % self.number_for(counts)


@frozen
class Plan:
    """What to measure next, as the policy decided it.

    Args:
        round: 1, 2, ...
        counts: pulls of each arm, shape (K,).
        look: which look inside the round this is, 1 .. looks.
        looks: looks in the round; results are judged after each, with the error probability divided among them.
        allocation: pulls of the whole round, shape (K,); fixed when the round opens.
        dim: dimension of the embedding used, 0 for policies without one.
        design_value: tau, the value of the design; None without a design, and where pulls are predicted instead.
        predicted_pulls: pulls that certifying the candidate will still take, as predicted; None without a candidate.
        lower_bound: certified lower bound on the best possible design value (or prediction); None without one.
        misspecification: gamma-tilde of the embedding, in reward units.
        candidate: the arm that the batch is to certify, for policies that certify one.
        predicted_cost: what the predicted pulls cost, in the currency of `Arms.costs`, without what a batch costs
            beside its pulls; None where all pulls cost alike.
        first_items: where test items are answered, the place in their order (from 0) of the first that each arm
            answers, shape (K,); arm k answers the counts[k] items from there on. None: pulls are draws.
    """

    round: int
    counts: IntArray
    look: int = 1
    looks: int = 1
    allocation: IntArray | None = None
    dim: int = 0
    design_value: float | None = None
    predicted_pulls: float | None = None
    lower_bound: float | None = None
    misspecification: float = 0.0
    candidate: int | None = None
    predicted_cost: float | None = None
    first_items: IntArray | None = None

    @property
    def total(self) -> int:
        """Pulls, all arms together."""
        return int(self.counts.sum())

    @property
    def value(self) -> float | None:
        """The design value, or the prediction where pulls are predicted: what `lower_bound` is a lower bound of."""
        return self.design_value if self.predicted_pulls is None else self.predicted_pulls

    @property
    def places(self) -> IntArray | None:
        """The place of the item of each pull, arm by arm, shape (total,); None where pulls are draws."""
        if self.first_items is None:
            return None
        starts = np.cumsum(self.counts) - self.counts
        return np.asarray(np.arange(self.total) + np.repeat(self.first_items - starts, self.counts))


# --- Vectors of the arms, and how often to measure each.


@frozen
class Embedding:
    """Arms as vectors; the mean reward is nearly a linear function of them.

    Args:
        features: psi_d, shape (K, d).
        misspecification: gamma-tilde(d) >= |h(x) - <psi_d(x), theta_d>| for every arm, in reward units.
    """

    features: FloatArray
    misspecification: float
    structured: ClassVar[Literal[True]] = True  # a measurement of one arm may say something of others

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])


@record
class IndependentArms:
    """Arms without structure: one parameter an arm; the identity is formed only when somebody asks for features."""

    num_arms: int
    misspecification: ClassVar[float] = 0.0
    structured: ClassVar[Literal[False]] = False

    @property
    def dim(self) -> int:
        return self.num_arms

    @property
    def features(self) -> FloatArray:
        return np.eye(self.num_arms)


Embedded = Embedding | IndependentArms


@frozen
class Design:
    """Weights over the arms that say where to measure, with a certificate of their quality.

    Args:
        weights: lambda, shape (K,), non-negative, sum 1.
        value: max over pairs of active arms of ||x_a - x_b||^2 in A(weights)^-1, of *these* weights.
        lower_bound: no design has a smaller value.
        rank: dimension of the span of the arms' features, as the solver saw it.
    """

    weights: FloatArray
    value: float
    lower_bound: float
    rank: int

    @property
    def gap(self) -> float:
        """value / lower_bound - 1: how far from optimal these weights can be at most."""
        return _gap(self.value, self.lower_bound)


@frozen
class DesignOfRows:
    """A design on few of many rows, with a certificate of its quality for all of them.

    Args:
        rows: their numbers, ascending, shape (p,).
        features: x, shape (p, D).
        weights: lambda, shape (p,), positive, sum 1.
        value: at least max over all pairs of the K rows of ||x_a - x_b||^2 in A(weights)^-1, of *these* weights.
        lower_bound: no design on any of the K rows has a smaller value.
        rank: dimension of the span of the rows, as the solver saw it.
        exact: some pair has that value; if not, it is a bound, because too many rows may belong to the farthest pair.
        passes: over all rows, until the gap was proved.
    """

    rows: IntArray
    features: FloatArray
    weights: FloatArray
    value: float
    lower_bound: float
    rank: int
    exact: bool
    passes: int = 0

    @property
    def gap(self) -> float:
        """value / lower_bound - 1: how far from optimal these weights can be at most."""
        return _gap(self.value, self.lower_bound)


def _gap(value: float, lower_bound: float) -> float:
    if value == lower_bound:
        return 0.0
    return value / lower_bound - 1.0 if lower_bound > 0 else float("inf")


@frozen
class Allocation:
    """A design rounded to whole pulls.

    Args:
        counts: n, shape (K,), non-negative integers.
        total: N, their sum (it may exceed what was asked, to keep the rounding promise).
        value: N times the largest ||x_a - x_b||^2 in A(n)^-1 over pairs of active arms: comparable to the design's.
    """

    counts: IntArray
    total: int
    value: float


# --- The intervals that decide: what an algorithm compared, candidate by candidate, when it judged a batch.


@frozen
class Intervals:
    """What was compared at one look.

        an arm no longer stands in the way when   lead - width >= -allowed,   that is when its margin >= 0

    lead - width is the lower end of the interval for h_comparator - h_arm; so the arm is at most width - lead better
    than its comparator. What an elimination proves is "not the best", not that the comparator is better than others;
    what the test of a candidate proves is "not better than it by more than epsilon". Each holds for one arm at a time.
    """

    arms: IntArray  # the arms compared, ascending, (m,)
    comparators: IntArray  # what each was compared with, (m,); -1 if with nothing
    leads: FloatArray  # estimates of h_comparator - h_arm, (m,), in reward units; none lies below lead - width
    widths: FloatArray  # their uncertainty, not negative, (m,), infinite where nothing is known
    margins: FloatArray  # lead - width + allowed, (m,)
    allowed: FloatArray  # what shortfall is tolerated, (m,): 0 where arms are ruled out, epsilon where one is certified


Deciding = Callable[[Intervals | None], Intervals]  # the intervals of the look before -> those of this one
Leading = Callable[[IntArray, IntArray], tuple[FloatArray, FloatArray]]  # rivals, arms -> leads, widths of each pair
BLOCK_PAIRS = 4_000_000


def against(
    comparator: int, arms: IntArray, *, leads: FloatArray, widths: FloatArray, allowed: float | FloatArray
) -> Intervals:
    """Intervals of arms that were all compared with one comparator."""
    tolerated = np.broadcast_to(np.asarray(allowed, np.float64), arms.shape)
    return Intervals(arms, np.full(len(arms), comparator), leads, widths, leads - widths + tolerated, tolerated)


def intervals_after(
    leading: Leading | None, leader: int, active: IntArray, survivors: IntArray, *, epsilon: float | None
) -> Deciding:
    """Gives what decided for each arm: the comparator that rules it out most clearly, or the leader."""

    def deciding(_: Intervals | None) -> Intervals:
        if leading is None:
            nothing = np.full(len(active), np.nan)
            return Intervals(active, np.full(len(active), -1), nothing, nothing, nothing, np.zeros(len(active)))
        arms = active[active != leader]
        staying = np.isin(arms, survivors) & (epsilon is not None)
        comparators, leads, widths = np.full(len(arms), leader), np.empty(len(arms)), np.empty(len(arms))
        leads[staying], widths[staying] = (row[0] for row in leading(np.array([leader]), arms[staying]))
        comparators[~staying], leads[~staying], widths[~staying] = _clearest(leading, survivors, arms[~staying])
        allowed = np.where(staying, epsilon or 0.0, 0.0)
        return Intervals(arms, comparators, leads, widths, leads - widths + allowed, allowed)

    return deciding


def _clearest(leading: Leading, rivals: IntArray, arms: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
    """(comparator of the largest lead - width, lead, width) of each arm; -1 where no rival has the higher score."""
    comparators, leads, widths = np.empty(len(arms), np.int64), np.empty(len(arms)), np.empty(len(arms))
    step = max(1, BLOCK_PAIRS // max(len(rivals), 1))
    for first in range(0, len(arms), step):
        block = slice(first, first + step)
        lead, width = leading(rivals, arms[block])
        best = np.argmax(np.where(lead > 0.0, lead - width, -np.inf), axis=0)
        lead, width = (np.take_along_axis(pairs, best[None], axis=0)[0] for pairs in (lead, width))
        comparators[block] = np.where(lead > 0.0, rivals[best], -1)
        leads[block], widths[block] = (np.where(lead > 0.0, values, np.nan) for values in (lead, width))
    return comparators, leads, widths


# --- What one plan came to: the new state and its row of the trace.


@frozen
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
