"""Where a test stands, what it has collected, and what it is still to reach."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from surepick.core.observations import BlockTotals, Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen
from surepick.errors import ContractError
from surepick.estimators.e_values import Collected
from surepick.estimators.running_processes import UNKNOWN, MeanProcesses, P, Processes, VectorProcesses
from surepick.policies.base import Problem
from surepick.policies.preference import Guess, Preference, liked_better, preferred
from surepick.questions.protocol import Lists

FAR = 2.0**20  # times epsilon: rewards as large lose digits that matter

# --- Where a study stands.


@frozen
class UpperBounds:
    """What is known of a candidate: by how much each other arm is better than it at most."""

    candidate: int  # c
    bounds: FloatArray  # the smallest U_jc of all batches, in reward units, (K,); UNKNOWN where nothing is known

    def rejected(self, epsilon: float) -> BoolArray:
        """Which arms are better than it by at most epsilon, shape (K,)."""
        return np.asarray(self.bounds <= epsilon)


@frozen
class Availability:
    """Arms that went, and arms that come later, each of shape (K,)."""

    unavailable: BoolArray  # neither measured nor recommended any more
    excluded: BoolArray  # of these, no rivals of the others either
    # 0 for arms of the first list, g for those that came as the g-th, -1 for those that may still come; None: nobody
    cohorts: IntArray | None = None

    @property
    def withdrawn(self) -> IntArray:
        """The arms that went."""
        return np.flatnonzero(self.unavailable if self.cohorts is None else self.unavailable & (self.cohorts >= 0))

    @property
    def waiting(self) -> int:
        """How many arms may still come."""
        return 0 if self.cohorts is None else int(np.count_nonzero(self.cohorts < 0))


@frozen
class SequentialState:
    """Where a study stands, whatever its question and its evidence."""

    round: int  # the next batch, from 1
    # everything told so far; of an evidence that is collected batch by batch it steers, and never enters a later one
    seen: Observations
    lists: Lists  # what is answered so far, where the question is answered by lists
    # arms that are not asked about any more, (K,): some candidate has shown that they are not the best, or that they
    # are not better than it by more than epsilon, or they are on a list
    beaten: BoolArray
    # why it stopped: "" while it runs, "certified", "single", "given", "budget", "equal" or "withdrawn": only arms that
    # were withdrawn are not ruled out
    finished: str
    leader: int = 0  # the arm that would be recommended now
    candidate: int = -1  # the arm that the last batch was for; -1 where there is none
    dim: int = 0  # dimension of the last batch's embedding; 0 before the first
    means: MeanProcesses | None = None  # one e-process an arm, without structure; None before the first batch
    vectors: VectorProcesses | None = None  # the same with vectors
    collected: Collected = ()  # e-processes of comparisons, in the order in which they were opened
    blocks: BlockTotals | None = None  # what each had so far, where lists compare differences within blocks
    tested: tuple[UpperBounds, ...] = ()  # the candidates so far, in the order in which they were last looked at
    compressed: bool = False  # some batch used the features, so that the evidence rests on what the embedding assumes
    alarms: tuple[str, ...] = ()  # what the checks of the embedding found so far, in words
    roster: Availability | None = None  # the arms that went, or come later; None: there are none
    level: float | None = None  # what was taken from every reward, since differences alone count; None: nothing

    def levelled(self, seen: Observations, epsilon: float) -> tuple[Observations, float | None]:
        """(a batch less a level near the rewards, the level): that of the first batch, where digits would be lost."""
        level = seen.level(FAR * epsilon) if self.seen.total == 0 else self.level or 0.0
        return seen.less(level), level or None

    @property
    def processes(self) -> Processes:
        """Those carried on, after the first batch."""
        found = self.means if self.vectors is None else self.vectors
        if found is None:
            raise ContractError("nothing was told yet.")
        return found

    @property
    def begun(self) -> bool:
        """Whether there are any."""
        return self.means is not None or self.vectors is not None

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total

    @property
    def active(self) -> IntArray:
        """The arms that are still asked about, ascending."""
        return np.flatnonzero(~(self.beaten | self.dropped))

    @property
    def away(self) -> BoolArray:
        """The arms that are neither measured nor recommended any more, shape (K,)."""
        return np.zeros(len(self.beaten), bool) if self.roster is None else self.roster.unavailable

    @property
    def dropped(self) -> BoolArray:
        """Those of them that the others need not be compared with, shape (K,)."""
        return np.zeros(len(self.beaten), bool) if self.roster is None else self.roster.excluded

    def bounds_of(self, candidate: int) -> FloatArray:
        """The candidate's smallest U so far, shape (K,); UNKNOWN where it was never tried."""
        known = next((one.bounds for one in self.tested if one.candidate == candidate), None)
        return np.full(len(self.beaten), UNKNOWN) if known is None else known


S = TypeVar("S", bound=SequentialState)


def open_rivals(state: SequentialState, candidate: int, bounds: FloatArray, epsilon: float) -> IntArray:
    """The arms that are neither rejected, U now in `bounds`, nor beaten, ascending; one of them where there is none."""
    still_open = ~(state.beaten | state.away | (np.minimum(state.bounds_of(candidate), bounds) <= epsilon))
    still_open[candidate] = False
    if not still_open.any():
        others = ~state.away
        others[candidate] = False
        still_open[int(np.argmax(others)) if others.any() else 0 if candidate else 1] = True
    return np.flatnonzero(still_open)


def good_enough(state: SequentialState, epsilon: float) -> tuple[str, tuple[int, ...]]:
    """(why the study is over, those of the candidates tested that are good enough); ("", ()) if none is.

    Every rival must be beaten, or better by at most epsilon: also one that was withdrawn, unless it was dropped. Where
    only such rivals are left, nothing that may be measured says more.

    Source: docs/certified-elimination.md, line 15, and docs/changing-candidates.md, lines 29 and 30.
    """
    there = [one for one in state.tested if not state.away[one.candidate]]
    for unopposed, why in ((state.dropped, "certified"), (state.away, "withdrawn")):
        good = [one.candidate for one in there if np.all(state.beaten | one.rejected(epsilon) | unopposed)]
        if good:
            return why, tuple(good)
    return "", ()


def sought(state: SequentialState, epsilon: float, prefer: Preference, guess: Callable[[], Guess]) -> int | None:
    """The arm for which a study goes on though another one is certified, since it is liked better; None: none."""
    good = () if prefer is None else good_enough(state, epsilon)[1]
    if prefer is None or not good:
        return None
    return liked_better(preferred(good, prefer), prefer, guess(), state.away, epsilon)


def stop_if_decided(state: S, epsilon: float, prefer: Preference = None, guess: Callable[[], Guess] | None = None) -> S:
    """The state with its candidate and why it is over, if one of those tested is good enough, and none is sought.

    Any of them may be named: the bounds hold for all candidates at once.
    """
    why, good = good_enough(state, epsilon)
    if not good:
        return state
    named = preferred(good, prefer)
    if guess is not None and sought(state, epsilon, prefer, guess) is not None:
        return replace(state, leader=named)
    return replace(state, candidate=named, leader=named, finished=why)


MOST_TESTED = 6  # candidates whose bounds are kept; to forget one only costs what it showed


def intersected(tested: tuple[UpperBounds, ...], candidate: int, bounds: FloatArray) -> tuple[UpperBounds, ...]:
    """The candidates with the bounds of one more batch for one of them."""
    known = next((one.bounds for one in tested if one.candidate == candidate), bounds)
    others = tuple(one for one in tested if one.candidate != candidate)[1 - MOST_TESTED :]
    return (*others, UpperBounds(candidate, np.minimum(known, bounds)))


def gap_of(state: SequentialState, candidate: int) -> float:
    """max of U over the arms that may be the best, at least 0: the candidate is at most this much worse than the best.

    Source: docs/certified-elimination.md, line 15: unless the process of the best arm x* has reached 1/delta it is not
    beaten, and it is better than c by at most its own U.
    """
    others = ~(state.beaten | state.dropped)
    others[candidate] = False
    return max(0.0, float(state.bounds_of(candidate)[others].max(initial=0.0)))


def certified_gap(problem: Problem, state: Any) -> float | None:
    """By how much the leader is worse than the best arm at most, known before results or by them; None: no bound."""
    _, given = problem.answer_without_pulls()
    if state.finished == "single" or not state.begun:
        return 0.0 if state.finished == "single" else given
    found = min(gap_of(state, state.leader), UNKNOWN if given is None else given)
    return None if found >= UNKNOWN else found


# --- What is still to be measured for a candidate, as it looks from the past.

HEURISTIC_FIRST_START = 0.95  # weight of the first start of a process; the others halve what is left
HALVED = math.log1p(-HEURISTIC_FIRST_START) - math.log(2.0) * (np.arange(1100.0) - 1.0)  # the last is the least of all
LOG_WEIGHTS: FloatArray = np.maximum(HALVED, math.log(sys.float_info.min))  # log p_k, of k >= 1
LOG_WEIGHTS[1] = math.log(HEURISTIC_FIRST_START)
HEURISTIC_EXCESS = 0.5  # units of evidence by which a plan exceeds what is needed: all must get there together
HEURISTIC_SPREAD_OF_SQUARE = 1.04  # sqrt(2) .7 / sqrt(.91), of the evidence of a bet whose mean is the square


@frozen
class OpenComparisons:
    """What a plan is to reach."""

    candidate: int  # c
    rivals: IntArray  # the arms that are neither rejected nor known not to be the best, ascending, (m,)
    margins: FloatArray  # guesses of epsilon + h_c - h_j for planning, positive, (m,)
    epsilon: float  # in reward units
    threshold: FloatArray | float  # log(1/delta) of each rival, (m,), or of all alike
    scores: FloatArray  # guesses of the means, (K,)
    noise_scales: FloatArray  # s, (K,), in reward units
    # z; a plan is to reach the goal with that normal quantile's probability for each rival; None: about every other
    # time, because another batch may follow
    quantile: float | None = None
    costs: FloatArray | None = None  # of a pull of each arm, in units of the cheapest, (K,); None: all alike
    away: BoolArray | None = None  # arms that cannot be measured any more, (K,); None: all can

    @property
    def priced_scales(self) -> FloatArray:
        """s sqrt(cost), shape (K,): money m for an arm buys the information m / (s^2 cost) of m pulls at that scale."""
        return self.noise_scales if self.costs is None else self.noise_scales * np.sqrt(self.costs)

    def among(self, rows: slice) -> OpenComparisons:
        """The same for some of the rivals."""
        threshold = self.threshold if isinstance(self.threshold, float) else self.threshold[rows]
        return replace(self, rivals=self.rivals[rows], margins=self.margins[rows], threshold=threshold)

    def pulls_for(self, money: FloatArray) -> FloatArray:
        """The pulls, whole or not, that so much money for each arm buys, shape (K,)."""
        return money if self.costs is None else money / self.costs

    def aimed(self, need: FloatArray) -> FloatArray:
        """The evidence that a plan aims at, where that much is needed."""
        return aimed(need, self.quantile)


def aimed(need: FloatArray, quantile: float | None = None) -> FloatArray:
    """The evidence that a plan aims at, where that much is needed: a little more, as all must get there together.

        g - z sd(g) = need,     sd(g) = HEURISTIC_SPREAD_OF_SQUARE sqrt(g)     for a quantile z

    Source: evidence of mean g from the best bet on a normal difference has variance 2 g; kappa = .7 times that bet has
    .91 of the mean and .7 of the deviation.
    """
    if quantile is None:
        return np.asarray(need + HEURISTIC_EXCESS * np.clip(need, 1e-3, 1.0))
    spread = quantile * HEURISTIC_SPREAD_OF_SQUARE
    return np.asarray((0.5 * (spread + np.sqrt(spread**2 + 4.0 * np.maximum(need, 0.0)))) ** 2)


@frozen
class RemainingPulls:
    """What is still to be measured."""

    candidate: int  # c
    dim: int  # of the embedding that it is planned in
    pulls: FloatArray  # predicted pulls of each arm, (K,); their sum is what certifying c is predicted to take
    lower_bound: float  # of what they cost, for any design
    restarts: IntArray  # arms whose processes had better start anew
    bias_limited: IntArray  # rivals whose margin the bias nearly or fully eats
    costs: FloatArray | None = None  # of a pull of each arm, in units of the cheapest, (K,); None: all alike

    @property
    def total(self) -> float:
        """V, what the predicted pulls cost, in pulls of the cheapest arm; at least 1."""
        return self.num_pulls if self.costs is None else max(float(self.pulls @ self.costs), 1.0)

    @property
    def num_pulls(self) -> float:
        """Predicted pulls, all arms together; at least 1."""
        return max(float(self.pulls.sum()), 1.0)

    @property
    def effort(self) -> float:
        """What they cost, and one more pull of each of these arms: a batch has that many, however few are needed."""
        once = self.pulls > 0.0
        return self.total + float(np.count_nonzero(once) if self.costs is None else self.costs[once].sum())


def start_weights(starts: IntArray) -> FloatArray:
    """log p_k of the k-th start of a process: p_1 = r, p_k = (1 - r) 2^-(k-1), which sum to 1.

    Source: docs/certified-elimination.md, line 13.
    """
    if starts.min(initial=1) < 1:
        raise ContractError("starts are numbered from 1.")
    return np.asarray(LOG_WEIGHTS.take(starts, mode="clip"))


def nobody() -> IntArray:
    """No arm."""
    return np.empty(0, np.int64)


def anew(processes: P, arms: IntArray) -> P:
    """The processes with a new start of some arms (line 13)."""
    return processes.restarted(arms, start_weights(processes.starts[arms] + 1))
