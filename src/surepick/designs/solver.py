"""The optimal design with a certificate: a restricted problem that grows by the farthest pairs and the best arms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from surepick.designs.master import Master, solve_master
from surepick.designs.objective import Objective, information
from surepick.designs.pairs import Pairs
from surepick.designs.problem import Problem, core_of, normalised, pose
from surepick.designs.support import SAFE_RANGE_CUT, sparse
from surepick.errors import InvalidInput, NotConverged
from surepick.linalg import cholesky, row_norms, solve_lower, spanning_rows, symmetric_spectrum
from surepick.records import BoolArray, Design, FloatArray, IntArray, record

BOUND_SAFETY = 1e-12
PRICE_SAFETY = 1e-9
ROWS = 65_536
SOLVED_SHARE = 0.5
INNER_SHARE = 0.2
STEADY_SHARE = 0.1
HEURISTIC_WARM_UP = 12
HEURISTIC_POOL = 12
HEURISTIC_IDLE = 1e-2
HEURISTIC_IDLE_GAIN = 0.7
HEURISTIC_MOST_ARMS = 25
HEURISTIC_FIRST_ARMS = 12
HEURISTIC_FLOOR = 1e-6
HEURISTIC_NEARLY_FREE = 1.25
HEURISTIC_SPREAD = 0.02
HEURISTIC_LONGEST = 1024
HEURISTIC_CLEARANCE = 0.05


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


@record
class Sweep:
    """What one look at all arms says of a working set.

    Args:
        upper: no active pair is farther apart under the weights; where not `certain`, just the farthest one that was
            met, which is beyond what the goal allows.
        certain: whether all pairs were looked at.
        lower: certified bound below every value; 0 when there is none yet.
        own: sum_j pi_j (z_i'A^-1 y_j)^2 of the arms in use, relative to the largest of them, shape (m,).
        gains: the same of the first rows of the basis, shape (n,); all others are at most 1.
        far: far pairs of active points, as rows of the points, shape (p, 2), the farthest first.
        squares: their squared distances under the weights, shape (p,).
    """

    upper: float
    certain: bool
    lower: float
    own: FloatArray
    gains: FloatArray
    far: IntArray
    squares: FloatArray


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
    for _ in range(HEURISTIC_WARM_UP):
        factor = cholesky(information(basis[arms], weights))
        if factor is None:
            break
        weights = normalised(weights * row_norms(solve_lower(factor, basis[arms].T).T) ** 2)
    return Working(anchors, arms, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)


def spanning(basis: FloatArray) -> IntArray:
    """Rows that span, from the longest ones if they do so clearly."""
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
    problem = objective.problem
    factor = cholesky(information(problem.basis[working.arms], working.weights))
    if factor is None:
        raise InvalidInput("the design's information matrix became singular; raise rank_tolerance.")
    pool = HEURISTIC_POOL * problem.rank
    own = solve_lower(factor, problem.basis[working.arms].T).T
    if working.multipliers.any():
        ends = solve_lower(factor, problem.differences(working.pairs).T).T * np.sqrt(working.multipliers)[:, None]
        priced = _priced(problem, factor, own, ends.T @ ends)
        lower = max(bound, priced.lower)
        found = objective.far(factor, most=pool, enough=lower * (1.0 + goal), hot=np.unique(working.pairs))
    else:
        found = objective.far(factor, most=pool)
        ends = solve_lower(factor, problem.differences(_ends(found)).T).T
        priced = _priced(problem, factor, own, ends.T @ ends / len(ends))
        lower = priced.lower
        if not problem.opposite:
            lower = max(lower, _priced(problem, factor, own, _spread_of_all(problem, factor)).lower)
    certain = found.bound < np.inf
    upper = found.bound if certain else float(found.squares[0])
    return Sweep(upper, certain, lower, priced.own, priced.gains, _ends(found), found.squares)


def _ends(pairs: Pairs) -> IntArray:
    return np.stack([pairs.first, pairs.second], axis=1)


@record
class _Priced:
    """A bound, and the gains behind it as in `Sweep`."""

    lower: float
    own: FloatArray
    gains: FloatArray


def _priced(problem: Problem, factor: FloatArray, own: FloatArray, spread: FloatArray) -> _Priced:
    """The bound of `sweep` for one W; u_i'W u_i <= s ||z_i||^2 tells which arms need not be looked at.

    Args:
        own: L^-1 z of the arms in use, shape (m, r).
        spread: W, shape (r, r), for multipliers of sum 1.
    """
    used = np.einsum("ij,ij->i", own @ spread, own)
    largest = float(used.max())
    if largest == 0.0:  # the compared points differ by less than rounding
        return _Priced(0.0, np.ones(len(used)), np.empty(0))
    half = solve_lower(factor, spread, transposed=True)
    prices = symmetric_spectrum(solve_lower(factor, half.T, transposed=True)).values  # of L'^-1 W L^-1
    count = _longer(problem.lengths, math.sqrt(largest / float(prices[0])) * (1.0 - PRICE_SAFETY))
    rows = solve_lower(factor, problem.basis[:count].T).T
    gains = np.einsum("ij,ij->i", rows @ spread, rows)
    lower = float(np.trace(spread)) ** 2 / max(largest, float(gains.max(initial=0.0))) * (1.0 - BOUND_SAFETY)
    return _Priced(lower, used / largest, gains / largest)


def _longer(lengths: FloatArray, least: float) -> int:
    """How many of the decreasing lengths are at least `least`."""
    return len(lengths) - int(np.searchsorted(lengths[::-1], least))


def _spread_of_all(problem: Problem, factor: FloatArray) -> FloatArray:
    """W for equal multipliers of all pairs of compared points: twice their covariance."""
    total = np.zeros((problem.rank, problem.rank))
    for start in range(0, len(problem.active), ROWS):
        block = problem.compared(start, min(start + ROWS, len(problem.active)))
        total += block.T @ block
    half = solve_lower(factor, 2.0 * total / (len(problem.active) - 1))
    return solve_lower(factor, half.T)


def diverse(pairs: IntArray, *, most: int, each: int) -> IntArray:
    """The first pairs of a list, at most `most`, in which no arm appears more than `each` times."""
    seen: dict[int, int] = {}
    chosen: list[int] = []
    for row, (a, b) in enumerate(pairs.tolist()):
        if seen.get(a, 0) < each and seen.get(b, 0) < each:
            seen[a], seen[b] = seen.get(a, 0) + 1, seen.get(b, 0) + 1
            chosen.append(row)
            if len(chosen) == most:
                break
    return pairs[chosen]


def grown(problem: Problem, working: Working, swept: Sweep, *, gap: float) -> Working:
    """The working set without what is idle, with the best arms and the farthest pairs outside of it."""
    size = len(problem.points)
    fresh = np.flatnonzero(swept.gains > 1.0)
    fresh = np.setdiff1d(fresh, working.arms, assume_unique=True)
    most = 2 * problem.rank
    if len(fresh) > most:
        fresh = fresh[np.argpartition(-swept.gains[fresh], most - 1)[:most]]
    known = working.pairs[:, 0] * size + working.pairs[:, 1]
    far = np.sort(swept.far, axis=1)
    far = far[~np.isin(far[:, 0] * size + far[:, 1], known)]
    added = diverse(far, most=most, each=max(2, problem.rank // 4))
    busy = working.multipliers > HEURISTIC_IDLE * gap / max(len(working.pairs), 1)
    used = working.weights > HEURISTIC_IDLE * gap / len(working.arms)
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
    floor = HEURISTIC_FLOOR * min(working.gap, 1.0) / len(working.arms)
    weights = normalised(np.maximum(master.weights, floor))  # A stays regular
    return Working(working.anchors, working.arms, weights, working.pairs, master.multipliers, working.gap)


def iterated(objective: Objective, *, goal: float, max_steps: int) -> tuple[FloatArray, float, int]:
    """Weights of the distinct arms, the best certified lower bound, and the outer steps taken to a relative `goal`."""
    problem = objective.problem
    working = first_working_set(problem)
    upper, lower, best, step = np.inf, 0.0, working, 0
    while step < max_steps:
        step += 1
        swept = sweep(objective, working, bound=lower, goal=goal)
        lower = max(lower, swept.lower)
        if swept.certain and swept.upper < upper:
            upper, best = swept.upper, working
        if upper / lower - 1.0 <= goal:
            break
        working = optimised(problem, grown(problem, working, swept, gap=min(swept.upper, upper) / lower - 1.0))
    weights = np.zeros(len(problem.basis))
    weights[best.arms] = best.weights
    return weights, lower, step


def closed_form(problem: Problem) -> tuple[FloatArray, float] | None:
    """Optimal weights and value where they can be written down; None elsewhere.

    One active point, or active points that coincide: tau = 0, all weight on one arm. Rank 1: tau = (range of the
    active points / largest |z|)^2, all weight on the largest arm. As many distinct arms as dimensions, and these are
    compared: they are orthogonal in whitened coordinates, the pair (a, b) costs 1/lambda_a + 1/lambda_b, so uniform
    weights on the active arms, tau = 2 |S|.
    """
    weights = np.zeros(len(problem.basis))
    if _nothing_compared(problem):
        weights[0 if problem.opposite else problem.active[0]] = 1.0
        return weights, 0.0
    if problem.rank == 1:
        line = problem.points[problem.active, 0]
        reach = float(np.abs(line).max() if problem.opposite else np.ptp(line))
        weights[0] = 1.0
        return weights, (reach / float(problem.basis[0, 0])) ** 2
    if not problem.opposite and len(problem.points) == problem.rank:
        weights[problem.active] = 1.0 / len(problem.active)
        return weights, 2.0 * len(problem.active)
    return None


def _nothing_compared(problem: Problem) -> bool:
    if problem.opposite:
        return not problem.points.any()
    return len(problem.active) == 1 or not np.ptp(problem.points[problem.active], axis=0).any()


def steadied(problem: Problem, weights: FloatArray, *, share: float) -> FloatArray:
    """The weights mixed with a share of a spanning design: a regular A, for at most 1/(1 - share) of the value."""
    spanning = first_working_set(problem)
    mixed = (1.0 - share) * weights
    mixed[spanning.arms] += share * spanning.weights
    return mixed


def certified(objective: Objective, weights: FloatArray, bound: float) -> Design:
    """The record of weights on the distinct arms: spread over all arms, valued afresh."""
    problem = objective.problem
    full = normalised(problem.spread(weights))
    value = objective.value(full[problem.first])
    return Design(full, value, min(bound, value), problem.rank)


def solve_design(
    features: ArrayLike,
    active: ArrayLike | None = None,
    *,
    tolerance: float = 0.01,
    max_steps: int = 200,
    rank_tolerance: float | None = None,
) -> Design:
    """The optimal design for telling the active arms apart, with a certificate.

        tau = min over lambda in the simplex   max over a, b in S   ||x_a - x_b||^2 in A(lambda)^-1

    where A(lambda) = sum_i lambda_i x_i x_i' runs over all K arms and S holds the active ones.

    Args:
        features: x, shape (K, d), finite; any scale of the columns, any rank, equal rows welcome.
        active: S as indices or as a mask of length K; None means all arms.
        tolerance: largest certified relative gap, above 0; below 1e-4 rounding may prevent it.
        max_steps: outer steps at most; 4 to 15 are usual.
        rank_tolerance: singular values of the column-scaled features below this share of the largest are taken for
            rounding noise; None means max(K, d) * machine epsilon. Features rounded to six decimals need about 1e-6.
            A dropped direction counts as misspecification.

    Returns:
        Design: weights on few arms; their exact value; lower_bound <= tau <= value, value <= (1 + tolerance)
        lower_bound. The value is 0 when the active arms coincide.

    Raises:
        InvalidInput: non-finite features (the rows are named), an empty, repeated or unknown active arm, a tolerance
            that is not positive.
        NotConverged: the tolerance was not certified in max_steps; carries the best design and its gap.

    Source: Algorithm 1, line 5; the method is ours.       Differs from the paper: solved to a certified gap.
    Cost: a few times O(K d^2) plus the pair search, and O(m^3) for the m arms in use (about 10 d).
    """
    check_tolerance(tolerance)
    return solved(pose(features, active, rank_tolerance=rank_tolerance), tolerance=tolerance, max_steps=max_steps)


def check_tolerance(tolerance: float) -> None:
    """Refuse a tolerance that no certificate can meet."""
    if not tolerance > 0.0:
        raise InvalidInput(f"tolerance is {tolerance}; a certified gap is positive, .01 is usual.")


def solved(problem: Problem, *, tolerance: float, max_steps: int) -> Design:
    """A design of a problem whose value is certified to a relative tolerance.

    Raises:
        NotConverged: the tolerance was not certified in max_steps; carries the best design and its gap.
    """
    exact, objective = closed_form(problem), Objective(problem)
    if exact is not None:
        return certified(objective, exact[0], exact[1] * (1.0 - BOUND_SAFETY))
    core = core_of(problem)
    within = Objective(core.problem)
    best, bound, steps = iterated(within, goal=SOLVED_SHARE * tolerance, max_steps=max_steps)
    ceiling = bound * (1.0 + tolerance) * (1.0 - BOUND_SAFETY)
    if not within.at_most(ceiling, best, range_cut=SAFE_RANGE_CUT):
        best = steadied(core.problem, best, share=STEADY_SHARE * tolerance)
    design = certified(objective, core.widened(sparse(within, best, ceiling=ceiling)), bound)
    if not design.gap <= tolerance:
        raise NotConverged(
            f"design gap {design.gap:.2%} > tolerance {tolerance:.2%} after {steps} steps (d={problem.rank}, "
            f"{len(problem.active)} distinct points compared). The sample count would rest on a value that is not "
            "certified. Raise max_steps, or accept .best with a larger slack.",
            best=design,
            gap=design.gap,
        )
    return design
