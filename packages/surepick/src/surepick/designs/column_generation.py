"""The outer iteration of the solver: a restricted problem that grows by the farthest pairs and the best arms."""

import time
from dataclasses import replace

import numpy as np

from surepick.core.arms import announce
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs import working_set
from surepick.designs.objective import Objective, ends_of, information
from surepick.designs.pricing import Priced
from surepick.designs.problem import DesignProblem, normalised
from surepick.errors import InvalidInput
from surepick.linalg import factorisations
from surepick.linalg.rows import Single, filled

# --- Where to start in many directions: multiplicative steps on pools of arms and of compared vectors.
#
#     lambda_i <- lambda_i g_i,   pi_j <- pi_j v_j^(1/2),   g_i = u_i'W u_i,   v_j = ||L^-1 y_j||^2
#
# in single precision (docs/design-solver.md, line 16). Nothing here is certified, and nothing needs to be: the sweeps
# that follow measure the working set on all arms and all vectors, in double precision.

HEURISTIC_ROWS = 1500  # the longest arms, and as many of the others; vectors too
HEURISTIC_STEPS_OF_POOLS = 20
HEURISTIC_LOOKS = 8
HEURISTIC_EVERY = 4  # of so many rows one is looked at first, then of half as many
HEURISTIC_FRONT_ROWS = 2000  # rows among which those that join are chosen
HEURISTIC_NEAR_GAIN = 0.3  # of the largest gain, or value: what is less does not join
HEURISTIC_KEPT = 1e-3  # of the largest weight: what is less leaves
HEURISTIC_FRESH = 0.25  # of all weight, for those that join
HEURISTIC_ENOUGH = 0.7  # the gap at which Newton steps take over

LEAST_CLEARANCE = 1e-3  # of the arms in the pools; else they may leave a direction out, whose best weight is small
TINY = 1e-300


@record
class _Pools:
    """Arms and vectors that may matter."""

    arms: IntArray  # rows of the basis, (m,), with their weights, sum 1
    weights: FloatArray
    vectors: IntArray  # rows of the points, (n,), with their multipliers, sum 1
    multipliers: FloatArray


def pooled_working_set(
    objective: Objective, enough: float = 0.0, *, start: working_set.Working | None = None
) -> working_set.Working | None:
    """Arms and vectors that matter, with weights near the best; None where rounding hides them. Steps: Titterington
    (1976) for the weights, Arora, Hazan and Kale (2012) for the multipliers; the pools are ours."""
    problem, basis, points = objective.problem, objective.prices.single.rows, objective.longest.single.rows
    scale = objective.longest.single.exponent - objective.prices.single.exponent
    with np.errstate(over="ignore"):
        enough = float(np.ldexp(enough, 2 * scale))  # as these rows see it
    pools = _Pools(*_some(len(problem.basis)), *_some(len(problem.points)))
    gap, every = np.inf, 2 * HEURISTIC_EVERY
    if start is not None and start.multipliers.any():
        multipliers, every = working_set.regular(start.multipliers, 1.0), 1
        pools = _Pools(start.arms, start.weights, start.pairs[:, 0], multipliers)
    for look in range(HEURISTIC_LOOKS):
        stepped = _stepped(basis, points, pools, HEURISTIC_STEPS_OF_POOLS * (1 if look or start is not None else 2))
        if stepped is None:
            return None
        pools, unit, spread = stepped
        every = max(1, every // 2)
        more_arms, more_vectors, gap, value = _looked(basis, points, pools, unit, spread, every)
        done = gap <= HEURISTIC_ENOUGH or value <= enough
        if (every == 1 and done) or look == HEURISTIC_LOOKS - 1:
            break
        every = 1 if value <= enough else every
        arms, vectors = np.append(pools.arms, more_arms), np.append(pools.vectors, more_vectors)
        shared = _shared(pools.weights, len(more_arms)), _shared(pools.multipliers, len(more_vectors))
        pools = _Pools(arms, shared[0], vectors, shared[1])
    spanned = factorisations.spanning_rows(problem.basis[pools.arms])
    clearly = len(pools.arms) >= problem.rank and spanned.clearance > LEAST_CLEARANCE
    anchors = pools.arms[spanned.rows] if clearly else working_set.spanning(problem.basis)
    arms = np.union1d(pools.arms, anchors)
    weights = np.zeros(len(arms))
    weights[np.searchsorted(arms, pools.arms)] = pools.weights
    pairs = np.stack([pools.vectors, pools.vectors], axis=1)
    return working_set.Working(
        anchors, arms, working_set.regular(weights, 1.0), pairs, pools.multipliers, max(gap, 0.0)
    )


def _some(size: int) -> tuple[IntArray, FloatArray]:
    """The longest rows and some of all lengths, with equal weights."""
    rows = np.union1d(np.arange(min(size, HEURISTIC_ROWS)), np.arange(0, size, max(1, size // HEURISTIC_ROWS)))
    return rows, np.full(len(rows), 1.0 / len(rows))


def _stepped(basis: Single, points: Single, pools: _Pools, steps: int) -> tuple[_Pools, Single, Single] | None:
    """(pools after so many steps without what has no weight, T with T'A T = I, W); None where A is singular."""
    arms, vectors = basis[pools.arms], points[pools.vectors]
    weights, multipliers = pools.weights, pools.multipliers
    for _ in range(steps):
        factor = factorisations.inverse_factor(_gram(arms, weights).astype(np.float64))
        if factor is None:
            return None
        unit = factor.astype(np.float32)
        u, v = arms @ unit, vectors @ unit
        spread = _gram(v, multipliers)
        gains, values = _gains(u, spread), _squares(v)
        if not (gains.max() > 0.0 and values.max() > 0.0):
            return None
        weights = normalised(weights * (gains / gains.max()))
        multipliers = normalised(multipliers * np.sqrt(values / values.max()))
    used, busy = (share > HEURISTIC_KEPT * share.max() for share in (weights, multipliers))
    left = _Pools(pools.arms[used], normalised(weights[used]), pools.vectors[busy], normalised(multipliers[busy]))
    return left, unit, spread


def _gram(rows: Single, weights: FloatArray) -> Single:
    """sum_i w_i z_i z_i', shape (r, r)."""
    shares = np.sqrt(weights).astype(np.float32)[:, None] * rows
    return shares.T @ shares  # of a matrix with itself: half the work


def _gains(rows: Single, spread: Single) -> FloatArray:
    """u'W u, shape (n,)."""
    return np.asarray(np.maximum(np.einsum("ij,ij->i", rows @ spread, rows), 0.0).astype(np.float64))


def _squares(rows: Single) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows).astype(np.float64))


def _looked(
    basis: Single, points: Single, pools: _Pools, unit: Single, spread: Single, every: int
) -> tuple[IntArray, IntArray, float, float]:
    """(arms that join, vectors that do: worth the most, and unlike each other, the relative gap as far as one of each
    so many rows tells, the largest ||L^-1 y||^2 of them)."""
    spectrum = factorisations.symmetric_spectrum(spread.astype(np.float64))
    half = unit @ (spectrum.vectors * np.sqrt(np.maximum(spectrum.values, 0.0))).astype(np.float32)
    values, gains = _images(points[::every], unit), _images(basis[::every], half)
    lower = float(np.trace(spread)) ** 2 / max(float(gains.max()), TINY)
    value = float(values.max())
    arms = _unlike(basis[::every], unit, gains, pools.arms, every)
    vectors = _unlike(points[::every], unit, values, pools.vectors, every)
    return arms, vectors, value / lower - 1.0, value


def _images(rows: Single, right: Single) -> FloatArray:
    """||z'R||^2, shape (n,)."""
    return filled(np.empty(len(rows)), lambda some: _squares(rows[some] @ right))


def _unlike(rows: Single, unit: Single, worth: FloatArray, known: IntArray, every: int) -> IntArray:
    """Rows of large worth in as many directions as there are, but for those that are known; all times `every`."""
    least = HEURISTIC_NEAR_GAIN * float(worth.max())
    worth[known[known % every == 0] // every] = 0.0
    found = np.flatnonzero(worth >= least)
    if len(found) > HEURISTIC_FRONT_ROWS:
        found = found[np.argpartition(-worth[found], HEURISTIC_FRONT_ROWS)[:HEURISTIC_FRONT_ROWS]]
    if len(found) > len(unit):
        found = found[factorisations.spanning_rows((rows[found] @ unit).astype(np.float64)).rows]
    return every * found


def _shared(weights: FloatArray, fresh: int) -> FloatArray:
    """The weights, of which some more rows have a quarter."""
    return normalised(np.append((1.0 - HEURISTIC_FRESH) * weights, np.full(fresh, HEURISTIC_FRESH / max(fresh, 1))))


ROWS = 65_536
HEURISTIC_POOL_OF_ARMS = 12
HEURISTIC_LISTED = 200
HEURISTIC_PROGRESS = 0.99  # of the least gap so far; ...
HEURISTIC_FIRST_STEPS = 20  # a whole design takes about so many times its first step, which has few arms and pairs
HEURISTIC_FIRST_STEPS_OF_POOLS = 3  # the first of which is the longest
HEURISTIC_PATIENCE = 3  # ... after so many steps without it nothing is idle until there is some


def sweep(
    objective: Objective, working: working_set.Working, *, bound: float, goal: float, enough: float = 0.0
) -> working_set.Sweep:
    """Value, certified bound, best arms and farthest pairs of a working set.

    With A = L L', u_i = L^-1 z_i and W = sum_j pi_j (L^-1 y_j)(L^-1 y_j)', for every design

        tau >= tr(W)^2 / max_i u_i'W u_i        (Cauchy-Schwarz, for any pi and any L)
    """
    problem, factor = objective.problem, factor_of(objective.problem, working)
    pool = HEURISTIC_POOL_OF_ARMS * problem.rank
    if working.multipliers.any():
        priced = bounded(objective, working, factor)
        lower = max(bound, priced.lower)
        found = objective.far(factor, most=pool, enough=max(lower * (1.0 + goal), enough), hot=np.unique(working.pairs))
    else:
        found = objective.far(factor, most=pool, enough=0.0)  # far ones will do
        own = factorisations.solve_rows(factor, problem.basis[working.arms])
        ends = factorisations.solve_rows(factor, problem.differences(ends_of(found)))
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
    return working_set.Sweep(working, upper, certain, lower, priced.own, priced.gains, ends_of(found))


def factor_of(problem: DesignProblem, working: working_set.Working) -> FloatArray:
    """L with L L' = A of the weights, shape (r, r)."""
    factor = factorisations.cholesky(information(problem.basis[working.arms], working.weights))
    if factor is None:
        raise InvalidInput("the design's information matrix became singular; raise rank_tolerance.")
    return factor


def bounded(objective: Objective, working: working_set.Working, factor: FloatArray) -> Priced:
    """The bound that the multipliers of a working set give, over all arms; `factor` is L of its weights, (r, r)."""
    problem = objective.problem
    own = factorisations.solve_rows(factor, problem.basis[working.arms])
    ends = factorisations.solve_rows(factor, problem.differences(working.pairs)) * np.sqrt(working.multipliers)[:, None]
    return objective.prices.priced(factor, own, ends.T @ ends)


def _all_pairs(problem: DesignProblem) -> IntArray:
    """All pairs of active points, as rows; none if they are too many to be listed."""
    active = problem.active if len(problem.active) <= HEURISTIC_LISTED else problem.active[:0]
    first, second = np.triu_indices(len(active), 1)
    return np.stack([active[first], active[second]], axis=1)


def _spread_of_all(problem: DesignProblem, factor: FloatArray) -> FloatArray:
    """W for equal multipliers of all pairs of compared points: twice their covariance."""
    count = len(problem.active)
    total, first = np.zeros((problem.rank, problem.rank)), np.zeros(problem.rank)
    for start in range(0, count, ROWS):
        block = problem.compared(start, min(start + ROWS, count))
        total += block.T @ block
        first += block.sum(axis=0)
    total -= np.outer(first, first) / count
    half = factorisations.solve_lower(factor, 2.0 * total / (count - 1))
    return factorisations.solve_lower(factor, half.T)


def optimised(problem: DesignProblem, working: working_set.Working) -> working_set.Working:
    """The working set after the restricted problem has been solved as closely as the outer gap deserves."""
    master = working_set.solve_master(
        problem.basis[working.arms],
        problem.differences(working.pairs),
        working_set.Master(working.weights, working.multipliers),
        gap=working.gap,
        target=working_set.INNER_SHARE * min(working.gap, 1.0),
    )
    weights = working_set.regular(master.weights, working.gap)
    return working_set.Working(working.anchors, working.arms, weights, working.pairs, master.multipliers, working.gap)


@record
class Iterated:
    """Where the outer iteration ended."""

    best: working_set.Working  # the working set whose weights have the least value
    bounding: working_set.Working  # the one whose multipliers gave the lower bound
    lower: float  # the bound
    upper: float  # the value of the best weights; infinite where it is not known
    steps: int  # taken

    def weights(self, size: int) -> FloatArray:
        """The best weights of all arms, shape (size,)."""
        weights = np.zeros(size)
        weights[self.best.arms] = self.best.weights
        return weights


def iterated(
    objective: Objective, *, goal: float, max_steps: int, first: working_set.Working | None = None, enough: float = 0.0
) -> Iterated:
    """The best weights and the best certified lower bound, to a relative `goal` or after `max_steps`."""
    problem, began = objective.problem, time.monotonic()
    many = working_set.many_directions(problem)
    pooled = pooled_working_set(objective, enough) if many and first is None else None
    working = first or pooled or working_set.first_working_set(problem)
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
        if not (swept.certain or len(working_set.new_pairs(problem, working.pairs, swept.far))):
            objective.forget()
        gap = min(swept.upper, upper) / lower - 1.0 if lower > 0.0 else np.inf
        least, since = (gap, 0) if gap < HEURISTIC_PROGRESS * least else (least, since + 1)
        stalled = since >= HEURISTIC_PATIENCE
        working = optimised(problem, working_set.grown(problem, working, swept, gap=gap, stalled=stalled))
        if step == 1:
            steps = HEURISTIC_FIRST_STEPS_OF_POOLS if many else HEURISTIC_FIRST_STEPS
            announce(
                steps * (time.monotonic() - began),
                f"Designing a batch for {len(problem.first):,} distinct candidates in {problem.rank:,} directions "
                "takes long: the work grows with the cube of the directions (a smoother kernel, a larger epsilon or a "
                "smaller norm has fewer), and each batch takes a few designs.",
            )
    return Iterated(best, bounding, lower, upper, step)
