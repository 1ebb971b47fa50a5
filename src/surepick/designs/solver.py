"""The optimal design with a certificate: a restricted problem that grows by the farthest pairs and the best arms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surepick.designs.master import Master, solve_master
from surepick.designs.objective import Pairs, far_pairs, information, row_norms, worth
from surepick.designs.problem import Problem, normalised, pose
from surepick.designs.support import SAFE_RANGE_CUT, sparse
from surepick.errors import InvalidInput, NotConverged
from surepick.linalg import cholesky, solve_lower, spanning_rows
from surepick.records import Design, FloatArray, IntArray, record

BOUND_SAFETY = 1e-12
SOLVED_SHARE = 0.5
INNER_SHARE = 0.2
STEADY_SHARE = 0.1
HEURISTIC_WARM_UP = 12
HEURISTIC_POOL = 12
HEURISTIC_IDLE = 1e-2
HEURISTIC_IDLE_GAIN = 0.7
HEURISTIC_FLOOR = 1e-6
HEURISTIC_NEARLY_FREE = 1.25
HEURISTIC_SPREAD = 0.02


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
    """What one pass over all arms says of a working set.

    Args:
        upper: exact value of the weights.
        lower: certified bound below every value; 0 when there is none yet.
        gains: sum_j pi_j (z_i'A^-1 y_j)^2 of every arm, relative to the largest in use, shape (k,).
        far: far pairs of active points, as rows of the points, shape (p, 2), the farthest first.
        squares: their squared distances under the weights, shape (p,).
    """

    upper: float
    lower: float
    gains: FloatArray
    far: IntArray
    squares: FloatArray


def first_working_set(problem: Problem) -> Working:
    """Arms that span and arms of large leverage, with a few multiplicative steps towards the D-optimal weights.

    With hardly more arms than dimensions each tells of hardly any other: then equal weights on the compared ones.
    """
    basis, rank = problem.basis, problem.rank
    if len(problem.points) == len(basis) <= HEURISTIC_NEARLY_FREE * rank:
        weights = np.full(len(basis), HEURISTIC_SPREAD / len(basis))
        weights[problem.active] += (1.0 - HEURISTIC_SPREAD) / len(problem.active)
        everybody = np.arange(len(basis))
        return Working(spanning_rows(basis), everybody, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)
    leverage = row_norms(basis)
    most = min(len(basis), 4 * rank)
    anchors = spanning_rows(basis)
    arms = np.union1d(anchors, np.argpartition(-leverage, most - 1)[:most]).astype(np.int64)
    weights = np.full(len(arms), 1.0 / len(arms))
    for _ in range(HEURISTIC_WARM_UP):
        factor = cholesky(information(basis[arms], weights))
        if factor is None:
            break
        weights = normalised(weights * row_norms(solve_lower(factor, basis[arms].T).T) ** 2)
    return Working(anchors, arms, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)


def sweep(problem: Problem, working: Working) -> Sweep:
    """Exact value, certified bound, best arms and farthest pairs of a working set, in one pass over the arms.

    With A = L L', u_i = L^-1 z_i and W = sum_j pi_j (L^-1 y_j)(L^-1 y_j)', for every design

        tau >= tr(W)^2 / max_i u_i'W u_i        (Cauchy-Schwarz, for any pi and any L)
    """
    basis = problem.basis
    factor = cholesky(information(basis[working.arms], working.weights))
    if factor is None:
        raise InvalidInput("the design's information matrix became singular; raise rank_tolerance.")
    points = solve_lower(factor, problem.points.T).T
    pool = HEURISTIC_POOL * problem.rank
    found: Pairs = far_pairs(problem, points[problem.active], most=pool)
    far = np.stack([problem.active[found.first], problem.active[found.second]], axis=1)
    pairs, multipliers = working.pairs, working.multipliers
    if not multipliers.any():
        pairs, multipliers = far, np.full(len(far), 1.0 / len(far))
    ends = (points[pairs[:, 0]] - points[pairs[:, 1]]) * np.sqrt(multipliers)[:, None]
    spread = ends.T @ ends
    measured = points[: len(basis)]
    gains = np.einsum("ij,ij->i", measured @ spread, measured)
    top = float(gains.max())
    if top == 0.0:  # the compared points differ by less than rounding
        return Sweep(float(found.squares[0]), 0.0, np.ones(len(gains)), far, found.squares)
    lower = float(np.trace(spread)) ** 2 / top * (1.0 - BOUND_SAFETY)
    if not working.multipliers.any() and not problem.opposite:
        lower = max(lower, equal_pairs_bound(points[problem.active], measured))
    return Sweep(float(found.squares[0]), lower, gains / float(gains[working.arms].max()), far, found.squares)


def equal_pairs_bound(compared: FloatArray, measured: FloatArray) -> float:
    """The bound of `sweep` with the same multiplier for every pair of compared points: W = 2 covariance."""
    centred = compared - compared.mean(axis=0)
    spread = 2.0 * centred.T @ centred / (len(compared) - 1)
    top = float(np.einsum("ij,ij->i", measured @ spread, measured).max())
    return float(np.trace(spread)) ** 2 / top * (1.0 - BOUND_SAFETY)


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
    used |= (swept.gains[working.arms] > HEURISTIC_IDLE_GAIN) | np.isin(working.arms, working.anchors)
    arms = np.concatenate([working.arms[used], fresh])
    weights = np.concatenate([working.weights[used], np.full(len(fresh), 0.2 * min(gap, 1.0) / max(len(fresh), 1))])
    pairs = np.concatenate([working.pairs[busy], added])
    multipliers = np.concatenate([working.multipliers[busy], np.zeros(len(added))])
    return Working(working.anchors, arms, normalised(weights), pairs, multipliers, gap)


def optimised(problem: Problem, working: Working) -> Working:
    """The working set after the restricted problem has been solved as closely as the outer gap deserves."""
    pairs = problem.points[working.pairs[:, 0]] - problem.points[working.pairs[:, 1]]
    master = solve_master(
        problem.basis[working.arms],
        pairs,
        Master(working.weights, working.multipliers),
        gap=working.gap,
        target=INNER_SHARE * min(working.gap, 1.0),
    )
    floor = HEURISTIC_FLOOR * min(working.gap, 1.0) / len(working.arms)
    weights = normalised(np.maximum(master.weights, floor))  # A stays regular
    return Working(working.anchors, working.arms, weights, working.pairs, master.multipliers, working.gap)


def iterated(problem: Problem, *, goal: float, max_steps: int) -> tuple[FloatArray, float, int]:
    """Weights of the distinct arms, the best certified lower bound, and the outer steps taken to a relative `goal`."""
    working = first_working_set(problem)
    upper, lower, best, step = np.inf, 0.0, np.zeros(len(problem.basis)), 0
    while step < max_steps:
        step += 1
        swept = sweep(problem, working)
        lower = max(lower, swept.lower)
        if swept.upper < upper:
            upper = swept.upper
            best = np.zeros(len(problem.basis))
            best[working.arms] = working.weights
        gap = upper / lower - 1.0
        if gap <= goal:
            break
        working = optimised(problem, grown(problem, working, swept, gap=gap))
    return best, lower, step


def closed_form(problem: Problem) -> tuple[FloatArray, float] | None:
    """Optimal weights and value where they can be written down; None elsewhere.

    One active point, or active points that coincide: tau = 0, all weight on one arm. Rank 1: tau = (range of the
    active points / largest |z|)^2, all weight on the largest arm. As many distinct arms as dimensions, and these are
    compared: they are orthogonal in whitened coordinates, the pair (a, b) costs 1/lambda_a + 1/lambda_b, so uniform
    weights on the active arms, tau = 2 |S|.
    """
    weights = np.zeros(len(problem.basis))
    if len(problem.active) == 1 or not np.ptp(problem.points[problem.active], axis=0).any():
        weights[problem.active[0] if problem.active[0] < len(weights) else 0] = 1.0
        return weights, 0.0
    if problem.rank == 1:
        line = problem.points[:, 0]
        best = int(np.argmax(np.abs(line[: len(weights)])))
        weights[best] = 1.0
        return weights, (float(np.ptp(line[problem.active])) / float(line[best])) ** 2
    if len(problem.points) == problem.rank:
        weights[problem.active] = 1.0 / len(problem.active)
        return weights, 2.0 * len(problem.active)
    return None


def steadied(problem: Problem, weights: FloatArray, *, share: float) -> FloatArray:
    """The weights mixed with a share of a spanning design: a regular A, for at most 1/(1 - share) of the value."""
    spanning = first_working_set(problem)
    mixed = (1.0 - share) * weights
    mixed[spanning.arms] += share * spanning.weights
    return mixed


def certified(problem: Problem, weights: FloatArray, bound: float) -> Design:
    """The record of weights on the distinct arms: spread over all arms, valued afresh."""
    full = normalised(problem.spread(weights))
    value = worth(problem, problem.merged(full))
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
    exact = closed_form(problem)
    if exact is not None:
        return certified(problem, exact[0], exact[1] * (1.0 - BOUND_SAFETY))
    best, bound, steps = iterated(problem, goal=SOLVED_SHARE * tolerance, max_steps=max_steps)
    ceiling = bound * (1.0 + tolerance) * (1.0 - BOUND_SAFETY)
    if worth(problem, best, range_cut=SAFE_RANGE_CUT) > ceiling:
        best = steadied(problem, best, share=STEADY_SHARE * tolerance)
    design = certified(problem, sparse(problem, best, ceiling=ceiling), bound)
    if not design.gap <= tolerance:
        raise NotConverged(
            f"design gap {design.gap:.2%} > tolerance {tolerance:.2%} after {steps} steps (d={problem.rank}, "
            f"{len(problem.active)} distinct points compared). The sample count would rest on a value that is not "
            "certified. Raise max_steps, or accept .best with a larger slack.",
            best=design,
            gap=design.gap,
        )
    return design
