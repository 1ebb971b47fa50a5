"""The outer iteration of the solver: a restricted problem that grows by the farthest pairs and the best arms."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.notes import announce
from surepick.designs.objective import Objective, ends_of, information
from surepick.designs.pools import pooled_working_set
from surepick.designs.pricing import Priced
from surepick.designs.problem import Problem
from surepick.designs.restricted_master import Master, solve_master
from surepick.designs.working_set import (
    INNER_SHARE,
    Sweep,
    Working,
    first_working_set,
    grown,
    many_directions,
    new_pairs,
    regular,
)
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import cholesky, solve_lower, solve_rows

ROWS = 65_536
HEURISTIC_POOL = 12
HEURISTIC_LISTED = 200
HEURISTIC_PROGRESS = 0.99  # of the least gap so far; ...
HEURISTIC_FIRST_STEPS = 20  # a whole design takes about so many times its first step, which has few arms and pairs
HEURISTIC_FIRST_STEPS_OF_POOLS = 3  # the first of which is the longest
HEURISTIC_PATIENCE = 3  # ... after so many steps without it nothing is idle until there is some


def sweep(objective: Objective, working: Working, *, bound: float, goal: float, enough: float = 0.0) -> Sweep:
    """Value, certified bound, best arms and farthest pairs of a working set.

    With A = L L', u_i = L^-1 z_i and W = sum_j pi_j (L^-1 y_j)(L^-1 y_j)', for every design

        tau >= tr(W)^2 / max_i u_i'W u_i        (Cauchy-Schwarz, for any pi and any L)

    Args:
        bound: a lower bound from before; goal: the relative gap that is wanted. A value beyond (1 + goal) times the
            bound, and beyond `enough`, need not be exact.
    """
    problem, factor = objective.problem, factor_of(objective.problem, working)
    pool = HEURISTIC_POOL * problem.rank
    if working.multipliers.any():
        priced = bounded(objective, working, factor)
        lower = max(bound, priced.lower)
        found = objective.far(factor, most=pool, enough=max(lower * (1.0 + goal), enough), hot=np.unique(working.pairs))
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


def optimised(problem: Problem, working: Working) -> Working:
    """The working set after the restricted problem has been solved as closely as the outer gap deserves."""
    master = solve_master(
        problem.basis[working.arms],
        problem.differences(working.pairs),
        Master(working.weights, working.multipliers),
        gap=working.gap,
        target=INNER_SHARE * min(working.gap, 1.0),
    )
    weights = regular(master.weights, working.gap)
    return Working(working.anchors, working.arms, weights, working.pairs, master.multipliers, working.gap)


@record
class Iterated:
    """Where the outer iteration ended.

    Args:
        best: the working set whose weights have the least value.
        bounding: the one whose multipliers gave the lower bound.
        lower: the bound.
        upper: the value of the best weights; infinite where it is not known.
        steps: taken.
    """

    best: Working
    bounding: Working
    lower: float
    upper: float
    steps: int

    def weights(self, size: int) -> FloatArray:
        """The best weights of all arms, shape (size,)."""
        weights = np.zeros(size)
        weights[self.best.arms] = self.best.weights
        return weights


def _announce(problem: Problem, first: float) -> None:
    """Say that a design will take long, from the seconds that its first step took."""
    steps = HEURISTIC_FIRST_STEPS_OF_POOLS if many_directions(problem) else HEURISTIC_FIRST_STEPS
    announce(
        steps * first,
        f"Designing a batch for {len(problem.first):,} distinct candidates in {problem.rank:,} directions takes long: "
        "the work grows with the cube of the directions (a smoother kernel, a larger epsilon or a smaller norm has "
        "fewer), and each batch takes a few designs.",
    )


def _first(objective: Objective, enough: float) -> Working:
    """Where to start."""
    pooled = pooled_working_set(objective, enough) if many_directions(objective.problem) else None
    return first_working_set(objective.problem) if pooled is None else pooled


def iterated(
    objective: Objective, *, goal: float, max_steps: int, first: Working | None = None, enough: float = 0.0
) -> Iterated:
    """The best weights and the best certified lower bound, to a relative `goal` or after `max_steps`.

    Args:
        enough: a value that needs no better one.
        first: where to start; None means at `first_working_set`.
    """
    problem, began = objective.problem, time.monotonic()
    working = _first(objective, enough) if first is None else first
    upper, lower, best, bounding, step, least, since = np.inf, 0.0, working, working, 0, np.inf, 0
    while step < max_steps:
        step += 1
        swept = sweep(objective, working, bound=lower, goal=goal, enough=enough)
        if swept.lower > lower:
            lower, bounding = swept.lower, swept.working
        if swept.certain and swept.upper < upper:
            upper, best = swept.upper, working
        if upper <= max((1.0 + goal) * lower, enough):
            break
        if not (swept.certain or len(new_pairs(problem, working.pairs, swept.far))):
            objective.forget()
        gap = min(swept.upper, upper) / lower - 1.0 if lower > 0.0 else np.inf
        least, since = (gap, 0) if gap < HEURISTIC_PROGRESS * least else (least, since + 1)
        stalled = since >= HEURISTIC_PATIENCE
        working = optimised(problem, grown(problem, working, swept, gap=gap, stalled=stalled))
        if step == 1:
            _announce(problem, time.monotonic() - began)
    return Iterated(best, bounding, lower, upper, step)
