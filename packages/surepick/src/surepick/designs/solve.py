"""The optimal design with a certificate: a restricted problem that grows by the farthest pairs and the best arms."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from surepick.chunks.passes import Meter, Passes, executor_of
from surepick.chunks.sources import RowBlocks
from surepick.core.plans import Design, DesignOfRows
from surepick.core.records import FloatArray, IntArray
from surepick.core.values import positive_number
from surepick.designs.column_generation import Iterated, bounded, factor_of, iterated, pooled_working_set, sweep
from surepick.designs.long_lists import design_of_rows
from surepick.designs.objective import Objective, ends_of
from surepick.designs.places import Places, far_ends, places_of
from surepick.designs.pricing import BOUND_SAFETY, CLOSE, less_rounding
from surepick.designs.problem import DesignProblem, normalised, pose, restricted_to
from surepick.designs.rounding import HEURISTIC_ARMS, HEURISTIC_SURELY_ENOUGH, THINNED, on_few_arms
from surepick.designs.working_set import Working, many_directions, spanning, started
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.linalg.convex_hull_2d import outline
from surepick.linalg.factorisations import spanning_rows
from surepick.linalg.rows import one_blas_thread

SOLVED_SHARE = 0.7
PLACES_COMPARED = 1024  # with more the farthest pair is searched without them
PLACES_SHARE = 0.5  # of the goal, for the restricted problem
MOST_LOOKS = 8  # at all rows of places; then the search goes on without them
HEURISTIC_PAIRS = 12  # times r: pairs of places of which a look takes ends
OUTLINE_ABOVE = 64
OUTLINE_SHARE = 0.5
OUTLINE_CEILING = 0.8
OUTLINE_TRIES = 4
OUTLINE_MORE = 8
OUTLINE_AT_ONCE = 32  # directions, whose arms and pairs are the first restricted problem
LONGEST_ASKED = 1024
CLEARLY = 0.05
OUTLINE_DIRECTIONS = 3.2  # a circle then misses about a quarter of the tolerance, for arms and for pairs
LEAST_OUTLINED = 1e-3


def closed_form(problem: DesignProblem) -> tuple[FloatArray, float] | None:
    """Optimal weights and value where they can be written down; None elsewhere."""
    weights = np.zeros(len(problem.basis))
    if _nothing_compared(problem):
        weights[0 if problem.opposite else problem.active[0]] = 1.0
        return weights, 0.0
    if problem.rank == 1:  # (range of the active points / largest |z|)^2, all weight on the largest arm
        line = problem.points[problem.active, 0]
        reach = float(np.abs(line).max() if problem.opposite else np.ptp(line))
        weights[0] = 1.0
        return weights, (reach / float(problem.basis[0, 0])) ** 2
    if not problem.opposite and len(problem.points) == problem.rank:  # orthogonal: a pair costs 1/lambda_a + 1/lambda_b
        weights[problem.active] = 1.0 / len(problem.active)
        return weights, 2.0 * len(problem.active)
    return None


def _nothing_compared(problem: DesignProblem) -> bool:
    if problem.opposite:
        return not problem.points.any()
    if len(problem.active) == 1:
        return True
    one, other = problem.points[problem.active[:2]]
    return bool((one == other).all()) and not np.ptp(problem.points[problem.active], axis=0).any()


def certified(objective: Objective, weights: FloatArray, bound: float) -> Design:
    """The record of weights (k,) on the distinct arms: spread over all arms, valued afresh."""
    problem = objective.problem
    full = normalised(problem.spread(weights))
    value = objective.value(full[problem.first])
    if bound > value * (1.0 + BOUND_SAFETY + 2.0 * CLOSE * problem.relative_rounding):
        raise ContractError(
            f"the lower bound {bound:.6g} exceeds the value {value:.6g} of a design (docs/design-solver.md, line 2): "
            "one of them is wrong. Please report the features."
        )
    return Design(full, value, min(bound, value), problem.rank)


@overload
def solve_design(
    features: RowBlocks,
    active: None = None,
    *,
    tolerance: float = 0.01,
    max_steps: int = 200,
    executor: Any = None,
    meter: Meter | None = None,
) -> DesignOfRows: ...


@overload
def solve_design(
    features: ArrayLike,
    active: ArrayLike | None = None,
    *,
    tolerance: float = 0.01,
    max_steps: int = 200,
    rank_tolerance: float | None = None,
) -> Design: ...


def solve_design(
    features: ArrayLike | RowBlocks,
    active: ArrayLike | None = None,
    *,
    tolerance: float = 0.01,
    max_steps: int = 200,
    rank_tolerance: float | None = None,
    executor: Any = None,
    meter: Meter | None = None,
) -> Design | DesignOfRows:
    """The optimal design for telling the active arms apart, with a certificate.

        tau = min over lambda in the simplex   max over a, b in S   ||x_a - x_b||^2 in A(lambda)^-1

    where A(lambda) = sum_i lambda_i x_i x_i' runs over all K arms and S holds the active ones.

    Args:
        features: x, shape (K, d), finite; any scale of the columns, any rank, equal rows welcome. Or rows in blocks,
            too many for memory, all of them active.
        active: S as indices or as a mask of length K; None means all arms.
        tolerance: largest certified relative gap, above 0; below 1e-4 rounding may prevent it.
        max_steps: outer steps at most; 4 to 15 are usual.
        rank_tolerance: singular values of the column-scaled features below this share of the largest are taken for
            rounding noise; None means max(K, d) * machine epsilon. Features rounded to six decimals need about 1e-6.
            A dropped direction counts as misspecification.
        executor: with rows in blocks, who makes the passes: None (this process), "processes:N", "dask:tcp://HOST:PORT".
            The design is the same to the last bit.
        meter: with rows in blocks, notes the passes, and is told how far each is.

    Returns:
        Design: weights on few arms; their exact value; lower_bound <= tau <= value, value <= (1 + tolerance)
        lower_bound. The value is 0 when the active arms coincide. Of rows in blocks a DesignOfRows: the few rows with
        their weights, and the same numbers for all K.

    Raises:
        InvalidInput: non-finite features (the rows are named), an empty, repeated or unknown active arm, a tolerance
            that is not positive, or an option that does nothing for rows in blocks, or but for these.
        NotConverged: the tolerance was not certified in max_steps; carries the best design and its gap. Of rows in
            blocks it was not in 12 rounds, or so many of them may belong to the farthest pair that none can be ruled
            out: unit vectors, say.

    Source: Algorithm 1, line 5; the method is ours.       Differs from the paper: solved to a certified gap.
    Cost: a few times O(K d^2) plus the pair search, and O(m^3) for the m arms in use (about 10 d); memory for about
        four arrays like the features, and blocks. One BLAS thread is used, whatever is allowed: more would wait.
    """
    check_tolerance(tolerance)
    if isinstance(features, RowBlocks):
        if active is not None or rank_tolerance is not None:
            raise InvalidInput("all rows in blocks are active, and their rank is found: no active, no rank_tolerance.")
        with one_blas_thread():
            passes = Passes(features, executor_of(executor), Meter() if meter is None else meter)
            return design_of_rows(passes, tolerance=tolerance, max_steps=max_steps)
    if executor is not None or meter is not None:
        raise InvalidInput("executor and meter are for rows in blocks; features in memory take no passes.")
    with one_blas_thread():
        problem = pose(features, active, rank_tolerance=rank_tolerance)
        return solved(problem, tolerance=tolerance, max_steps=max_steps)


def check_tolerance(tolerance: float) -> None:
    """Refuse a tolerance that no certificate can meet (InvalidInput): one that is not positive and finite."""
    positive_number("tolerance", tolerance, "a certified gap is positive and finite, .01 is usual.")


def solved(
    problem: DesignProblem,
    *,
    tolerance: float,
    max_steps: int,
    unit: float | None = None,
    accept: Callable[[FloatArray], bool] | None = None,
) -> Design:
    """A design of a problem, certified to a relative tolerance; weights that `accept` refuses are bettered."""
    objective, exact = Objective(problem), closed_form(problem)
    enough = 0.0 if unit is None else HEURISTIC_SURELY_ENOUGH * problem.rank / unit
    if exact is not None:
        return certified(objective, exact[0], less_rounding(exact[1] * (1.0 - BOUND_SAFETY), problem.relative_rounding))
    if problem.rank == 2 and not problem.opposite and len(problem.basis) > OUTLINE_ABOVE:
        outlined = _from_outline(objective, tolerance=tolerance, max_steps=max_steps)
        if outlined is not None:
            return outlined
    places = places_of(problem)
    if places is not None and len(places[1]) < 2 and not problem.opposite:
        places = None  # all that is compared is at one place
    search: Callable[..., Iterated] = partial(iterated, objective)
    if places is not None:
        compared = len(places[1]) <= PLACES_COMPARED and not problem.opposite
        objective = Objective(problem, places[1] if compared else None)
        search = partial(_from_places, objective, *places)
    goal = SOLVED_SHARE * tolerance
    if many_directions(problem):  # fewer arms then cost a fixed share
        goal = max(goal, (1.0 + tolerance) / (1.0 + THINNED) - 1.0)

    def finished(found: Iterated, unit: float | None) -> Design:
        found = replace(found, lower=less_rounding(found.lower, problem.relative_rounding))
        weights = on_few_arms(objective, found, tolerance=tolerance, unit=unit, accept=accept)
        return certified(objective, weights, found.lower)

    def good(design: Design) -> bool:
        arms = int(np.count_nonzero(design.weights))
        if design.gap <= tolerance or unit is None or design.value * unit > arms:
            return design.gap <= tolerance
        few = not many_directions(problem) or arms <= math.ceil(HEURISTIC_ARMS[-1] * problem.rank)
        return accept is None or (few and accept(design.weights))

    found = search(goal=goal, max_steps=max_steps, enough=enough)
    design = finished(found, unit)
    fine = good(design)
    if unit is not None and not fine:
        first = pooled_working_set(objective, start=found.best) if many_directions(problem) else None
        lower, few = found.lower, design
        found = search(goal=goal, max_steps=max_steps, first=found.best if first is None else first)
        found = replace(found, lower=max(lower, found.lower))
        design = finished(found, None)
        fine = design.gap <= tolerance
        design = design if fine or design.value <= few.value else few
    if not fine:
        raise NotConverged(
            f"design gap {design.gap:.2%} > tolerance {tolerance:.2%} after {found.steps} steps (d={problem.rank}, "
            f"{len(problem.active)} distinct points compared). The sample count would rest on a value that is not "
            "certified. Raise max_steps, or accept .best with a larger slack.",
            best=design,
            gap=design.gap,
        )
    return design


def _outermost(points: FloatArray, rows: IntArray, count: int) -> IntArray:
    """Those of the rows, longest first, outermost in a direction and its opposite, (count, 2); few of the shorter."""
    if len(rows) > LONGEST_ASKED:
        rows = np.concatenate([rows[:LONGEST_ASKED], rows[LONGEST_ASKED :: 1 + len(rows) // LONGEST_ASKED]])
    return rows[outline(points[rows], count)]


def _from_outline(objective: Objective, *, tolerance: float, max_steps: int) -> Design | None:
    """The design of the outermost arms in the plane, and those that spoil it (docs/design-solver.md, line 8)."""
    problem = objective.problem
    count = math.ceil(OUTLINE_DIRECTIONS * max(tolerance, LEAST_OUTLINED) ** -0.5)
    pairs = _outermost(problem.points, problem.active, count)
    ends = pairs
    if len(problem.active) < len(problem.basis):
        ends = np.concatenate([pairs, _outermost(problem.basis, np.arange(len(problem.basis)), count)])
    rows, some = np.unique(ends), slice(None, None, math.ceil(count / OUTLINE_AT_ONCE))
    if len(rows) < 2:
        return None
    if spanning_rows(problem.basis[rows]).clearance < CLEARLY:
        rows = np.union1d(rows, spanning(problem.basis))
    bound, goal = 0.0, OUTLINE_SHARE * tolerance
    for _ in range(OUTLINE_TRIES):
        small = Objective(restricted_to(problem, rows))
        arms = np.searchsorted(rows, np.unique(ends[some]))
        first = started(small.problem, arms, np.searchsorted(rows, pairs[some]), goal=goal)
        found = iterated(small, goal=goal, max_steps=max_steps, first=first)
        bounding = found.bounding.renamed(rows)
        factor = factor_of(problem, bounding)
        priced = bounding.multipliers.any()
        seen = bounded(objective, bounding, factor) if priced else sweep(objective, bounding, bound=0.0, goal=goal)
        bound = max(bound, less_rounding(seen.lower, problem.relative_rounding))
        weights = np.zeros(len(problem.basis))
        weights[rows] = on_few_arms(small, found, tolerance=OUTLINE_CEILING * tolerance)
        design = certified(objective, weights, bound)
        if design.gap <= tolerance:
            return design
        expensive = np.argsort(-seen.gains, kind="stable")[:OUTLINE_MORE]
        more = np.append(ends_of(objective.far(factor)).ravel(), expensive[seen.gains[expensive] > 1.0])
        rows = np.union1d(rows, more)
    return None


def _from_places(
    objective: Objective,
    arms: Places,
    points: Places,
    *,
    goal: float,
    max_steps: int,
    first: Working | None = None,
    enough: float = 0.0,
) -> Iterated:
    """As `iterated`, for one row of each place, and those that spoil it (docs/design-solver.md, line 19)."""
    problem, best, steps = objective.problem, first, 0
    rows, vectors = arms.first, points.first
    if first is not None:
        rows, vectors = np.append(rows, first.arms), np.append(vectors, first.pairs)
    values: list[tuple[float, Working]] = []  # over all rows, of the answers so far
    bounds: list[tuple[float, Working]] = []
    while True:
        rows, vectors = np.unique(rows), np.unique(vectors)
        rows, vectors = (rows, vectors) if problem.opposite else (np.union1d(rows, vectors),) * 2
        small, start = restricted_to(problem, rows, vectors), None if best is None else best.placed(rows, vectors)
        left = max_steps - steps
        found = iterated(Objective(small), goal=PLACES_SHARE * goal, max_steps=left, first=start, enough=enough)
        steps += found.steps
        mine, other = found.best.renamed(rows, vectors), found.bounding.renamed(rows, vectors)
        seen, factor = bounded(objective, other, factor_of(problem, other)), factor_of(problem, mine)
        far = objective.far(factor)
        values.append((far.bound, mine))
        bounds.append((seen.lower, other))
        (upper, best), (lower, _) = min(values, key=itemgetter(0)), max(bounds, key=itemgetter(0))
        target = max((1.0 + goal) * lower, enough)
        if upper <= target or steps >= max_steps or len(values) == MOST_LOOKS:
            break
        gaining, most = np.flatnonzero(seen.gains > 1.0), HEURISTIC_PAIRS * problem.rank
        rows = np.append(rows, arms.best(gaining, seen.gains[gaining]))
        vectors = np.concatenate([vectors, ends_of(far).ravel(), far_ends(problem, points, factor, most, target)])
    if upper > target and steps < max_steps:
        rest = iterated(objective, goal=goal, max_steps=max_steps - steps, first=best, enough=enough)
        values.append((rest.upper, rest.best))
        bounds.append((rest.lower, rest.bounding))
        steps += rest.steps
    (upper, best), (lower, bounding) = min(values, key=itemgetter(0)), max(bounds, key=itemgetter(0))
    return Iterated(best, bounding, lower, upper, steps)
