"""The restricted problem between two outer steps: which arms and pairs are in it, and how it grows and shrinks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.designs.objective import FEW, information
from surepick.designs.problem import DesignProblem, normalised
from surepick.linalg import factorisations
from surepick.linalg.rows import Single

# --- The design problem restricted to few arms and few pairs, by a primal-dual interior point method.
#
#     minimise sum_i lambda_i   subject to   f_j(lambda) = y_j'A(lambda)^-1 y_j <= 1,   lambda >= 0
#
# The optimal sum is tau; the multipliers pi of the constraints are the weights of the pairs in the lower bound.

CENTRING = 0.15
TO_BOUNDARY = 0.95
TARGET_SHARE = 0.3
WORST_VALUE = 3.0
SHORTEST_STEP = 1e-6
MOST_STEPS = 40
LEAST_DIRECTIONS = 48  # from so many directions ...
LEAST_ARMS = 256  # ... and arms on a step in single precision takes less than half the time
LEAST_TARGET = 0.005  # a smaller relative gap needs double precision


@record
class Master:
    """Weights and multipliers of the restricted problem."""

    weights: FloatArray  # lambda, (m,), sum 1
    multipliers: FloatArray  # pi, (n,), sum 1


@record
class _Point:
    """Everything that a Newton step needs at one lambda."""

    arms: FloatArray | Single  # L^-1 z_i as columns, (r, m)
    pairs: FloatArray | Single  # L^-1 y_j as columns, (r, n)
    squares: FloatArray | Single  # (z_i'A^-1 y_j)^2, (m, n). These three in single precision where that is enough.
    values: FloatArray  # f_j, (n,)


@record
class _State:
    """The unknowns of the optimality conditions, or a step in them."""

    lam: FloatArray  # lambda, (m,)
    slack: FloatArray  # s, (n,), to become 1 - f
    pi: FloatArray  # multipliers of f <= 1, (n,)
    z: FloatArray  # multipliers of lambda >= 0, (m,)


@record
class _Rows:
    """Arms (m, r) and pairs (n, r) of a restricted problem."""

    arms: FloatArray
    pairs: FloatArray

    def at(self, lam: FloatArray) -> _Point | None:
        """The point at lambda; None where A is singular."""
        factor = factorisations.cholesky(information(self.arms, lam))
        if factor is None:
            return None
        u, v = factorisations.solve_lower(factor, self.arms.T), factorisations.solve_lower(factor, self.pairs.T)
        return _Point(u, v, _squared(u.T @ v), np.einsum("ij,ij->j", v, v))


@record
class _SingleRows:
    """The same in single precision; A and its factor stay in double precision, from `exact` arms."""

    exact: FloatArray
    arms: Single
    pairs: Single

    @staticmethod
    def of(rows: _Rows) -> _SingleRows:
        return _SingleRows(rows.arms, rows.arms.astype(np.float32), rows.pairs.astype(np.float32))

    def at(self, lam: FloatArray) -> _Point | None:
        """The point at lambda; None where A is singular."""
        factor = factorisations.inverse_factor(information(self.exact, lam))
        if factor is None:
            return None
        unit = factor.astype(np.float32)
        u, v = (self.arms @ unit).T, (self.pairs @ unit).T
        return _Point(u, v, _squared(u.T @ v), np.einsum("ij,ij->j", v, v).astype(np.float64))


def _squared(products: factorisations.Numbers) -> factorisations.Numbers:
    products *= products
    return products


def _longest(value: FloatArray, change: FloatArray) -> float:
    """Longest step in (0, 1] that keeps a positive vector positive, with a margin."""
    shrinking = change < 0
    if not shrinking.any():
        return 1.0
    return min(1.0, TO_BOUNDARY * float(np.min(-value[shrinking] / change[shrinking])))


def _started(here: _Point, lam: FloatArray, multipliers: FloatArray, gap: float) -> _State:
    """A strictly positive state near the centre, for a lambda with all f < 1 and the multipliers of an earlier one."""
    slack = 1.0 - here.values
    mu = 0.5 * min(gap, 1.0) / (len(lam) + len(slack))
    pi = np.maximum(multipliers, mu / slack)
    return _State(lam, slack, pi, np.maximum(1.0 - here.squares @ pi, mu / lam))


def _solved(here: _Point, state: _State, target: float) -> bool:
    """Whether sum(lambda) max f and the Cauchy-Schwarz bound of the multipliers agree to the relative target."""
    upper = float(state.lam.sum()) * float(here.values.max())
    price = float((here.squares @ state.pi).max()) * float(state.pi.sum())
    return upper * price <= float(state.pi @ here.values) ** 2 * (1.0 + target)


def _newton(here: _Point, state: _State, target: float) -> _State | None:
    """The step towards the point of the central path whose barrier is a fixed share of the present one. Below a share
    of the target the barrier stays: else arms that leave a singular optimum shrink so fast that multipliers lose the
    path."""
    lam, slack, pi, z = state.lam, state.slack, state.pi, state.z
    kept = TARGET_SHARE * target * float(pi @ here.values)
    mu = max(CENTRING * (float(pi @ slack) + float(z @ lam)), kept) / (len(lam) + len(pi))
    squares, kind = here.squares, here.squares.dtype.type
    spread = (here.pairs * pi.astype(kind)) @ here.pairs.T  # C diag(pi) C' = U' V diag(pi) V' U, two thin products
    hessian = factorisations.gram_of_rows(squares * np.sqrt(pi / slack).astype(kind))
    hessian += 2.0 * (here.arms.T @ here.arms) * (here.arms.T @ spread @ here.arms)
    hessian[np.diag_indices_from(hessian)] += (z / lam).astype(kind)
    push = (mu - pi * (1.0 - here.values)) / slack
    d_lam = factorisations.solve_positive_definite(hessian, squares @ (pi + push).astype(kind) + mu / lam - 1.0)
    if d_lam is None:
        return None
    gain = squares.T @ d_lam.astype(kind)
    return _State(d_lam, 1.0 - here.values - slack + gain, push - pi * gain / slack, (mu - z * d_lam) / lam - z)


def solve_master(arms: FloatArray, pairs: FloatArray, start: Master, *, gap: float, target: float) -> Master:
    """Weights and multipliers whose bounds on the restricted problem agree to a relative `target`.

    With C = [z_i'A^-1 y_j], M = C o C, slacks s (to become 1 - f) and barrier mu, the Newton step d solves

        (H + M diag(pi/s) M' + diag(z/lambda)) d = M (pi + (mu - pi (1 - f))/s) + mu/lambda - 1
        H = 2 (Z A^-1 Z') o (C diag(pi) C')

    The slacks are unknowns of their own: the objective is homogeneous, and any lambda becomes feasible when scaled.
    """
    exact = _Rows(arms, pairs)
    first = exact.at(start.weights)
    if first is None:
        return start
    exact = _Rows(arms, pairs / np.sqrt(float(first.values.max())))  # of a length that single precision can hold
    large = arms.shape[1] >= LEAST_DIRECTIONS and len(arms) >= LEAST_ARMS
    rows = _SingleRows.of(exact) if large and target >= LEAST_TARGET else exact
    lam = start.weights * (1.0 + 0.5 * min(gap, 1.0))
    here = rows.at(lam)
    if here is None:
        return start
    state = _started(here, lam, start.multipliers, gap)
    for _ in range(MOST_STEPS):
        step = None if _solved(here, state, target) else _newton(here, state, target)
        if step is None:
            break
        primal = min(_longest(state.lam, step.lam), _longest(state.slack, step.slack))
        dual = min(_longest(state.pi, step.pi), _longest(state.z, step.z))
        there = rows.at(state.lam + primal * step.lam)
        while primal > SHORTEST_STEP and (there is None or there.values.max() > WORST_VALUE):
            primal *= 0.5
            there = rows.at(state.lam + primal * step.lam)
        if there is None:
            break
        here = there
        state = _State(
            state.lam + primal * step.lam,
            state.slack + primal * step.slack,
            state.pi + dual * step.pi,
            state.z + dual * step.z,
        )
    return Master(normalised(state.lam), normalised(state.pi))


INNER_SHARE = 0.3
HEURISTIC_WARM_UP = 24
HEURISTIC_LEAST_ADDED = 10
HEURISTIC_ADDED_PAIRS = 120
HEURISTIC_IDLE = 0.1  # with few arms; what was dropped comes back at no cost ...
HEURISTIC_IDLE_OF_MANY = 0.01  # ... but for a search
HEURISTIC_IDLE_LEAST = 0.01  # in many directions, where a pair more in use costs more than one that comes back
HEURISTIC_IDLE_GAIN = 0.7
HEURISTIC_IDLE_GAIN_OF_MANY = 0.9
HEURISTIC_FRONT_FACTOR = 8  # times as many rows as are added are looked at for that
LEAST_ROWS = 4096  # arms and vectors together; below, a step is cheap
HEURISTIC_MOST_ARMS = 25
HEURISTIC_FIRST_ARMS = 12
HEURISTIC_FLOOR = 1e-6
HEURISTIC_NEARLY_FREE = 1.25
HEURISTIC_SPREAD_OF_PAIRS = 0.02
HEURISTIC_LONGEST_ARMS = 1024
HEURISTIC_CLEARANCE = 0.05


@record
class Working:
    """The restricted problem between two outer steps."""

    anchors: IntArray  # rows of the basis that span it; never dropped
    arms: IntArray  # rows of the basis in use, (m,)
    weights: FloatArray  # their lambda, (m,), sum 1
    pairs: IntArray  # the pairs in use, as rows of the points, (n, 2)
    multipliers: FloatArray  # their pi, (n,), sum 1 (all 0 before the first solution)
    gap: float  # certified relative gap so far

    def renamed(self, rows: IntArray, points: IntArray | None = None) -> Working:
        """The same for a problem of which this one is the restriction to `rows`, shape (k,), and to `points`, or to the
        same rows."""
        ends = rows if points is None else points
        return replace(self, anchors=rows[self.anchors], arms=rows[self.arms], pairs=ends[self.pairs])

    def placed(self, rows: IntArray, points: IntArray) -> Working:
        """The same for the restriction to rows and points, ascending, that has all of these."""
        anchors, arms = np.searchsorted(rows, self.anchors), np.searchsorted(rows, self.arms)
        return replace(self, anchors=anchors, arms=arms, pairs=np.searchsorted(points, self.pairs))


@record
class Sweep:
    """What one look at all arms says of a working set."""

    # the working set; in its first sweep with the multipliers that gave the bound (no pairs: too many)
    working: Working
    # no active pair is farther apart under the weights; where not `certain`, just the farthest one that was met, which
    # is beyond what the goal allows
    upper: float
    certain: bool  # whether all pairs were looked at
    lower: float  # certified bound below every value; 0 when there is none yet
    own: FloatArray  # as in `Priced`
    gains: FloatArray
    far: IntArray  # far pairs of active points, as rows of the points, (p, 2), the farthest first


def many_directions(problem: DesignProblem) -> bool:
    """Whether the problem is one of vectors, in many directions, with many arms and vectors."""
    many = len(problem.basis) + len(problem.points) > LEAST_ROWS
    return problem.opposite and problem.rank >= LEAST_DIRECTIONS and many


def first_working_set(problem: DesignProblem) -> Working:
    """Arms that span and arms of large leverage, after a few multiplicative steps towards the D-optimal weights; with
    hardly more arms than dimensions equal weights on the compared ones."""
    basis, rank = problem.basis, problem.rank
    if not problem.opposite and len(basis) <= HEURISTIC_NEARLY_FREE * rank:
        weights = np.full(len(basis), HEURISTIC_SPREAD_OF_PAIRS / len(basis))
        weights[problem.active] += (1.0 - HEURISTIC_SPREAD_OF_PAIRS) / len(problem.active)
        everybody = np.arange(len(basis))
        return Working(spanning(basis), everybody, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)
    anchors = spanning(basis)
    arms = np.union1d(anchors, np.arange(min(len(basis), HEURISTIC_FIRST_ARMS * rank)))
    weights = np.full(len(arms), 1.0 / len(arms))
    for _ in range(min(HEURISTIC_WARM_UP if len(basis) <= FEW else HEURISTIC_WARM_UP // 2, 3 * rank)):
        factor = factorisations.cholesky(information(basis[arms], weights))
        if factor is None:
            break
        weights = normalised(weights * factorisations.row_norms(factorisations.solve_rows(factor, basis[arms])) ** 2)
    return Working(anchors, arms, weights, np.empty((0, 2), np.int64), np.empty(0), 1.0)


def started(problem: DesignProblem, arms: IntArray, pairs: IntArray, *, goal: float) -> Working:
    """The restricted problem of arms, (m,) ascending, and pairs of rows of the points, (n, 2), solved at once."""
    ordered = np.unique(np.sort(pairs, axis=1), axis=0)
    anchors, distinct = spanning(problem.basis), ordered[ordered[:, 0] < ordered[:, 1]]
    used, number = np.union1d(arms, anchors), len(distinct)
    start = Master(np.full(len(used), 1.0 / len(used)), np.full(number, 1.0 / number))
    target = INNER_SHARE * min(goal, 1.0)
    solution = solve_master(problem.basis[used], problem.differences(distinct), start, gap=1.0, target=target)
    return Working(anchors, used, regular(solution.weights, goal), distinct, solution.multipliers, goal)


def regular(weights: FloatArray, gap: float) -> FloatArray:
    """The weights, shape (m,), raised to a floor far below the gap, so that A stays regular."""
    return normalised(np.maximum(weights, HEURISTIC_FLOOR * min(gap, 1.0) / len(weights)))


def spanning(basis: FloatArray) -> IntArray:
    """Rows of a basis (k, r) that span, shape (r,), from the longest ones if they do so clearly."""
    count = max(HEURISTIC_LONGEST_ARMS, 8 * basis.shape[1])
    while count < len(basis):
        found = factorisations.spanning_rows(basis[:count])
        if found.clearance > HEURISTIC_CLEARANCE:
            return found.rows
        count *= 8
    return factorisations.spanning_rows(basis).rows


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


def new_pairs(problem: DesignProblem, pairs: IntArray, far: IntArray) -> IntArray:
    """The far pairs that are not in use, each with its smaller row first."""
    size = len(problem.points)
    ordered = np.sort(far, axis=1)
    known = pairs[:, 0] * size + pairs[:, 1]
    return ordered[~np.isin(ordered[:, 0] * size + ordered[:, 1], known)]


def grown(problem: DesignProblem, working: Working, swept: Sweep, *, gap: float, stalled: bool = False) -> Working:
    """The working set without what is idle, with the best arms and the farthest pairs outside of it."""
    fresh = np.flatnonzero(swept.gains > 1.0)
    fresh = np.setdiff1d(fresh, working.arms, assume_unique=True)
    most, idle, idle_gain = _habits(problem, gap)
    idle = -1.0 if stalled else idle
    far = new_pairs(problem, working.pairs, swept.far)
    if many_directions(problem):
        fresh, added = _unlike(problem.basis, fresh, swept.gains[fresh], most), far[:most]
    else:
        fresh = fresh[np.argpartition(-swept.gains[fresh], most - 1)[:most]] if len(fresh) > most else fresh
        added = diverse(far, most=most, each=max(2, problem.rank // 4))
    busy = working.multipliers > idle / max(len(working.pairs), 1)
    if not (busy.any() or len(added)):
        busy = np.ones_like(busy)
    used = working.weights > idle / len(working.arms)
    # more arms than Caratheodory's r(r+1)/2 + 1 tell A nothing new, though some slack helps
    most_arms = max(HEURISTIC_MOST_ARMS * problem.rank, problem.rank * (problem.rank + 1) // 2 + 4 * problem.rank)
    used = _kept(working.weights, used, swept.own, idle_gain, most=most_arms)
    used |= np.isin(working.arms, working.anchors)
    arms = np.concatenate([working.arms[used], fresh])
    weights = np.concatenate([working.weights[used], np.full(len(fresh), 0.2 * min(gap, 1.0) / max(len(fresh), 1))])
    pairs = np.concatenate([working.pairs[busy], added])
    multipliers = np.concatenate([working.multipliers[busy], np.zeros(len(added))])
    return Working(working.anchors, arms, normalised(weights), pairs, multipliers, gap)


def _unlike(vectors: FloatArray, rows: IntArray, worth: FloatArray, most: int) -> IntArray:
    """Of the rows that are worth the most, at most so many that are unlike each other."""
    if len(rows) <= most:
        return rows
    front = rows[np.argsort(-worth, kind="stable")[: HEURISTIC_FRONT_FACTOR * most]]
    chosen = front[factorisations.spanning_rows(vectors[front]).rows[:most]]
    return chosen if front[0] in chosen else np.append(chosen[:-1], front[0])


def _habits(problem: DesignProblem, gap: float) -> tuple[int, float, float]:
    """(what a step adds at most, share of mean weight below which one is idle, gain from which an idle arm stays)."""
    if many_directions(problem):
        idle = max(HEURISTIC_IDLE * min(gap, 1.0), HEURISTIC_IDLE_LEAST)
        return problem.rank // 2, idle, HEURISTIC_IDLE_GAIN_OF_MANY
    if len(problem.points) > FEW:
        return max(2 * problem.rank, HEURISTIC_LEAST_ADDED), HEURISTIC_IDLE_OF_MANY * gap, HEURISTIC_IDLE_GAIN
    most = max(2 * problem.rank, min(4 * problem.rank, HEURISTIC_ADDED_PAIRS), HEURISTIC_LEAST_ADDED)
    return most, HEURISTIC_IDLE * gap, HEURISTIC_IDLE_GAIN


def _kept(weights: FloatArray, busy: BoolArray, gains: FloatArray, idle_gain: float, *, most: int) -> BoolArray:
    """The arms that stay: the busy ones and idle ones of large gain, in this order if they are more than `most`."""
    staying = busy | (gains > idle_gain)
    if np.count_nonzero(staying) > most:
        order = np.lexsort((-np.where(busy, weights, gains), ~busy, ~staying))
        staying = np.zeros_like(staying)
        staying[order[:most]] = True
    return staying
