"""The outer iteration of the solver: a restricted problem that grows by the farthest pairs and the best arms."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, IntArray, record
from surepick.core.notes import announce
from surepick.designs.objective import FEW, Objective, ends_of, information
from surepick.designs.pricing import Priced
from surepick.designs.problem import Problem, normalised
from surepick.designs.restricted_master import Master, solve_master
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import cholesky, row_norms, solve_lower, solve_rows
from surepick.linalg.whitening import spanning_rows

ROWS = 65_536
INNER_SHARE = 0.3
HEURISTIC_WARM_UP = 24
HEURISTIC_POOL = 12
HEURISTIC_LEAST_ADDED = 10
HEURISTIC_ADDED = 120
HEURISTIC_IDLE = 0.1  # with few arms; what was dropped comes back at no cost ...
HEURISTIC_IDLE_OF_MANY = 0.01  # ... but for a search
HEURISTIC_IDLE_GAIN = 0.7
HEURISTIC_MOST_ARMS = 25
HEURISTIC_FIRST_ARMS = 12
HEURISTIC_FLOOR = 1e-6
HEURISTIC_NEARLY_FREE = 1.25
HEURISTIC_SPREAD = 0.02
HEURISTIC_LONGEST = 1024
HEURISTIC_LISTED = 200
HEURISTIC_CLEARANCE = 0.05
HEURISTIC_PROGRESS = 0.99  # of the least gap so far; ...
HEURISTIC_FIRST_STEPS = 20  # a whole design takes about so many times its first step, which has few arms and pairs
HEURISTIC_PATIENCE = 3  # ... after so many steps without it nothing is idle until there is some


@record
class Working:
    """The restricted problem between two outer steps.

    Args:
        anchors: rows of the basis that span it; never dropped.
        arms: rows of the basis in use, shape (m,).
        weights: their lambda, shape (m,), sum 1.
        pairs: the pairs in use, as rows of the points, shape (n, 2).
        multipliers: their pi, shape (n,), sum 1 (all 0 before the first solution).
        gap: certified relative gap so far.
    """

    anchors: IntArray
    arms: IntArray
    weights: FloatArray
    pairs: IntArray
    multipliers: FloatArray
    gap: float

    def renamed(self, rows: IntArray) -> Working:
        """The same for a problem of which this one is the restriction to `rows`, shape (k,)."""
        return replace(self, anchors=rows[self.anchors], arms=rows[self.arms], pairs=rows[self.pairs])


@record
class Sweep:
    """What one look at all arms says of a working set.

    Args:
        working: the working set; in its first sweep with the multipliers that gave the bound (no pairs: too many).
        upper: no active pair is farther apart under the weights; where not `certain`, just the farthest one that was
            met, which is beyond what the goal allows.
        certain: whether all pairs were looked at.
        lower: certified bound below every value; 0 when there is none yet.
        own, gains: as in `Priced`.
        far: far pairs of active points, as rows of the points, shape (p, 2), the farthest first.
    """

    working: Working
    upper: float
    certain: bool
    lower: float
    own: FloatArray
    gains: FloatArray
    far: IntArray


def first_working_set(problem: Problem) -> Working:
    """Arms that span and arms of large leverage, with a few multiplicative steps towards the D-optimal weights.

    With hardly more arms than dimensions each tells of hardly any other: then equal weights on the compared ones.
    """
    basis, rank = problem.basis, problem.rank
    if not problem.opposite and len(basis) <= HEURISTIC_NEARLY_FREE * rank:
        weights = np.full(len(basis), HEURISTIC_SPREAD / len(basis))
        weights[problem.active] += (1.0 - HEURISTIC_SPREAD) / len(problem.active)
        everybody = np.arange(len(basis))
        return Working(spanning(basis), everybody, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)
    anchors = spanning(basis)
    arms = np.union1d(anchors, np.arange(min(len(basis), HEURISTIC_FIRST_ARMS * rank)))
    weights = np.full(len(arms), 1.0 / len(arms))
    for _ in range(min(HEURISTIC_WARM_UP if len(basis) <= FEW else HEURISTIC_WARM_UP // 2, 3 * rank)):
        factor = cholesky(information(basis[arms], weights))
        if factor is None:
            break
        weights = normalised(weights * row_norms(solve_rows(factor, basis[arms])) ** 2)
    return Working(anchors, arms, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)


def started(problem: Problem, arms: IntArray, pairs: IntArray, *, goal: float) -> Working:
    """The restricted problem of given arms and pairs, solved at once.

    Args:
        arms: rows of the basis, shape (m,), ascending.
        pairs: of rows of the points, shape (n, 2); equal ones and those of a row with itself are left out.
        goal: the relative gap that is wanted.
    """
    ordered = np.unique(np.sort(pairs, axis=1), axis=0)
    anchors, distinct = spanning(problem.basis), ordered[ordered[:, 0] < ordered[:, 1]]
    used, number = np.union1d(arms, anchors), len(distinct)
    start = Master(np.full(len(used), 1.0 / len(used)), np.full(number, 1.0 / number))
    target = INNER_SHARE * min(goal, 1.0)
    solution = solve_master(problem.basis[used], problem.differences(distinct), start, gap=1.0, target=target)
    return Working(anchors, used, _regular(solution.weights, goal), distinct, solution.multipliers, goal)


def _regular(weights: FloatArray, gap: float) -> FloatArray:
    """The weights, shape (m,), raised to a floor far below the gap, so that A stays regular."""
    return normalised(np.maximum(weights, HEURISTIC_FLOOR * min(gap, 1.0) / len(weights)))


def spanning(basis: FloatArray) -> IntArray:
    """Rows of a basis (k, r) that span, shape (r,), from the longest ones if they do so clearly."""
    count = max(HEURISTIC_LONGEST, 8 * basis.shape[1])
    while count < len(basis):
        found = spanning_rows(basis[:count])
        if found.clearance > HEURISTIC_CLEARANCE:
            return found.rows
        count *= 8
    return spanning_rows(basis).rows


def sweep(objective: Objective, working: Working, *, bound: float, goal: float) -> Sweep:
    """Value, certified bound, best arms and farthest pairs of a working set.

    With A = L L', u_i = L^-1 z_i and W = sum_j pi_j (L^-1 y_j)(L^-1 y_j)', for every design

        tau >= tr(W)^2 / max_i u_i'W u_i        (Cauchy-Schwarz, for any pi and any L)

    Args:
        bound: a lower bound from before; goal: the relative gap that is wanted. A value beyond (1 + goal) times the
            bound need not be exact.
    """
    problem, factor = objective.problem, factor_of(objective.problem, working)
    pool = HEURISTIC_POOL * problem.rank
    if working.multipliers.any():
        priced = bounded(objective, working, factor)
        lower = max(bound, priced.lower)
        found = objective.far(factor, most=pool, enough=lower * (1.0 + goal), hot=np.unique(working.pairs))
    else:
        found = objective.far(factor, most=pool, enough=0.0)  # far ones will do
        own = solve_rows(factor, problem.basis[working.arms])
        ends = solve_rows(factor, problem.differences(ends_of(found)))
        priced = objective.prices.priced(factor, own, ends.T @ ends / len(ends))
        lower = priced.lower
        pairs = ends_of(found)
        if not problem.opposite:
            equally = objective.prices.priced(factor, own, _spread_of_all(problem, factor))
            pairs = pairs if equally.lower <= lower else _all_pairs(problem)
            lower = max(lower, equally.lower)
        working = replace(working, pairs=pairs, multipliers=np.full(len(pairs), 1.0 / max(len(pairs), 1)))
    certain = found.bound < np.inf
    upper = found.bound if certain else float(found.squares[0])
    return Sweep(working, upper, certain, lower, priced.own, priced.gains, ends_of(found))


def factor_of(problem: Problem, working: Working) -> FloatArray:
    """L with L L' = A of the weights, shape (r, r).

    Raises:
        InvalidInput: A is singular to rounding.
    """
    factor = cholesky(information(problem.basis[working.arms], working.weights))
    if factor is None:
        raise InvalidInput("the design's information matrix became singular; raise rank_tolerance.")
    return factor


def bounded(objective: Objective, working: Working, factor: FloatArray) -> Priced:
    """The bound that the multipliers of a working set give, over all arms; `factor` is L of its weights, (r, r)."""
    problem = objective.problem
    own = solve_rows(factor, problem.basis[working.arms])
    ends = solve_rows(factor, problem.differences(working.pairs)) * np.sqrt(working.multipliers)[:, None]
    return objective.prices.priced(factor, own, ends.T @ ends)


def _all_pairs(problem: Problem) -> IntArray:
    """All pairs of active points, as rows; none if they are too many to be listed."""
    active = problem.active if len(problem.active) <= HEURISTIC_LISTED else problem.active[:0]
    first, second = np.triu_indices(len(active), 1)
    return np.stack([active[first], active[second]], axis=1)


def _spread_of_all(problem: Problem, factor: FloatArray) -> FloatArray:
    """W for equal multipliers of all pairs of compared points: twice their covariance."""
    count = len(problem.active)
    total, first = np.zeros((problem.rank, problem.rank)), np.zeros(problem.rank)
    for start in range(0, count, ROWS):
        block = problem.compared(start, min(start + ROWS, count))
        total += block.T @ block
        first += block.sum(axis=0)
    total -= np.outer(first, first) / count
    half = solve_lower(factor, 2.0 * total / (count - 1))
    return solve_lower(factor, half.T)


def diverse(pairs: IntArray, *, most: int, each: int) -> IntArray:
    """The first pairs of a list (n, 2), at most `most`, in which no arm appears more than `each` times."""
    seen: dict[int, int] = {}
    chosen: list[int] = []
    for row, (a, b) in enumerate(pairs.tolist()):
        if seen.get(a, 0) < each and seen.get(b, 0) < each:
            seen[a], seen[b] = seen.get(a, 0) + 1, seen.get(b, 0) + 1
            chosen.append(row)
            if len(chosen) == most:
                break
    return pairs[chosen]


def _unknown(problem: Problem, working: Working, far: IntArray) -> IntArray:
    """The far pairs that are not in use, each with its smaller row first."""
    size = len(problem.points)
    ordered = np.sort(far, axis=1)
    known = working.pairs[:, 0] * size + working.pairs[:, 1]
    return ordered[~np.isin(ordered[:, 0] * size + ordered[:, 1], known)]


def grown(problem: Problem, working: Working, swept: Sweep, *, gap: float, stalled: bool = False) -> Working:
    """The working set without what is idle, with the best arms and the farthest pairs outside of it.

    Args:
        gap: certified so far. Above 1 / HEURISTIC_IDLE every pair may look idle.
        stalled: the last steps brought nothing, so what they dropped was needed: nothing is idle. Each step then adds
            to the set, which ends any circle.

    Returns:
        Working: with at least one pair: where none is busy and none is new, all stay.
    """
    fresh = np.flatnonzero(swept.gains > 1.0)
    fresh = np.setdiff1d(fresh, working.arms, assume_unique=True)
    few = len(problem.points) <= FEW
    most = max(2 * problem.rank, min(4 * problem.rank, HEURISTIC_ADDED) if few else 0, HEURISTIC_LEAST_ADDED)
    idle = -1.0 if stalled else (HEURISTIC_IDLE if few else HEURISTIC_IDLE_OF_MANY) * gap
    if len(fresh) > most:
        fresh = fresh[np.argpartition(-swept.gains[fresh], most - 1)[:most]]
    added = diverse(_unknown(problem, working, swept.far), most=most, each=max(2, problem.rank // 4))
    busy = working.multipliers > idle / max(len(working.pairs), 1)
    if not (busy.any() or len(added)):
        busy = np.ones_like(busy)
    used = working.weights > idle / len(working.arms)
    used = _kept(working.weights, used, swept.own, most=_most_arms(problem.rank)) | np.isin(
        working.arms, working.anchors
    )
    arms = np.concatenate([working.arms[used], fresh])
    weights = np.concatenate([working.weights[used], np.full(len(fresh), 0.2 * min(gap, 1.0) / max(len(fresh), 1))])
    pairs = np.concatenate([working.pairs[busy], added])
    multipliers = np.concatenate([working.multipliers[busy], np.zeros(len(added))])
    return Working(working.anchors, arms, normalised(weights), pairs, multipliers, gap)


def _most_arms(rank: int) -> int:
    """Arms in use at most: more than Caratheodory's r(r+1)/2 + 1 tell A nothing new, though some slack helps."""
    return max(HEURISTIC_MOST_ARMS * rank, rank * (rank + 1) // 2 + 4 * rank)


def _kept(weights: FloatArray, busy: BoolArray, gains: FloatArray, *, most: int) -> BoolArray:
    """The arms that stay: the busy ones and idle ones of large gain, in this order if they are more than `most`."""
    staying = busy | (gains > HEURISTIC_IDLE_GAIN)
    if np.count_nonzero(staying) > most:
        order = np.lexsort((-np.where(busy, weights, gains), ~busy, ~staying))
        staying = np.zeros_like(staying)
        staying[order[:most]] = True
    return staying


def optimised(problem: Problem, working: Working) -> Working:
    """The working set after the restricted problem has been solved as closely as the outer gap deserves."""
    master = solve_master(
        problem.basis[working.arms],
        problem.differences(working.pairs),
        Master(working.weights, working.multipliers),
        gap=working.gap,
        target=INNER_SHARE * min(working.gap, 1.0),
    )
    weights = _regular(master.weights, working.gap)
    return Working(working.anchors, working.arms, weights, working.pairs, master.multipliers, working.gap)


@record
class Iterated:
    """Where the outer iteration ended.

    Args:
        best: the working set whose weights have the least value.
        bounding: the one whose multipliers gave the lower bound.
        lower: the bound.
        steps: taken.
    """

    best: Working
    bounding: Working
    lower: float
    steps: int

    def weights(self, size: int) -> FloatArray:
        """The best weights of all arms, shape (size,)."""
        weights = np.zeros(size)
        weights[self.best.arms] = self.best.weights
        return weights


def _announce(problem: Problem, first: float) -> None:
    """Say that a design will take long, from the seconds that its first step took."""
    announce(
        HEURISTIC_FIRST_STEPS * first,
        f"Designing a batch for {len(problem.first):,} distinct candidates in {problem.rank:,} directions takes long: "
        "the work grows with the cube of the directions (a smoother kernel, a larger epsilon or a smaller norm has "
        "fewer), and each batch takes a few designs.",
    )


def iterated(objective: Objective, *, goal: float, max_steps: int, first: Working | None = None) -> Iterated:
    """The best weights and the best certified lower bound, to a relative `goal` or after `max_steps`.

    Args:
        first: where to start; None means at `first_working_set`.
    """
    problem, began = objective.problem, time.monotonic()
    working = first_working_set(problem) if first is None else first
    upper, lower, best, bounding, step, least, since = np.inf, 0.0, working, working, 0, np.inf, 0
    while step < max_steps:
        step += 1
        swept = sweep(objective, working, bound=lower, goal=goal)
        if swept.lower > lower:
            lower, bounding = swept.lower, swept.working
        if swept.certain and swept.upper < upper:
            upper, best = swept.upper, working
        if upper <= (1.0 + goal) * lower:
            break
        if not (swept.certain or len(_unknown(problem, working, swept.far))):
            objective.forget()
        gap = min(swept.upper, upper) / lower - 1.0 if lower > 0.0 else np.inf
        least, since = (gap, 0) if gap < HEURISTIC_PROGRESS * least else (least, since + 1)
        stalled = since >= HEURISTIC_PATIENCE
        working = optimised(problem, grown(problem, working, swept, gap=gap, stalled=stalled))
        if step == 1:
            _announce(problem, time.monotonic() - began)
    return Iterated(best, bounding, lower, step)
