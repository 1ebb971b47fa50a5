"""From weights to whole pulls, with a promise on what the rounding costs."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.plans import Allocation, Design
from surepick.core.records import FloatArray, IntArray, record
from surepick.core.values import LEAST_SLACK, positive_number, real_numbers, whole_number
from surepick.designs import working_set
from surepick.designs.column_generation import Iterated
from surepick.designs.objective import Objective, ends_of, information
from surepick.designs.pricing import BOUND_SAFETY
from surepick.designs.problem import DesignProblem, checked_weights, normalised, pose
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import cholesky, inverse_factor, null_space, row_squares, solve_rows, spanning_rows

GROWTH = 1.1
SUM_SAFETY = 1e-12
SAME_VALUE = 1e-6


def round_design(weights: ArrayLike, total: int) -> IntArray:
    """Efficient apportionment (Adams' divisor method): whole pulls in proportion to the weights.

        n_i = max(1, ceil(nu w_i)),  nu such that the sum is N; ties go to the smallest n_i / w_i

    so that min_i n_i / w_i is as large as whole numbers allow, hence A(n) >= (N - p) A(w), p the support of w.

    Args:
        weights: w, shape (K,), non-negative; normalised here.
        total: N, number of pulls, at least the support.

    Returns:
        n, shape (K,), integers with sum N; n_i >= 1 exactly where w_i > 0.

    Raises:
        InvalidInput: total is below the support, or the weights are negative, not finite or all zero.

    Source: Pukelsheim, Optimal Design of Experiments, chapter 12.
    Cost: O(p log p) time: nu is bracketed by N - p and N, and halved until one pull an arm is left open.
    """
    lam = real_numbers("weights", weights)
    lam = checked_weights(lam, lam.size)
    support = np.flatnonzero(lam)
    size = len(support)
    total = whole_number("total", total, least=0, meaning="the pulls that are rounded to.")
    if total < size:
        raise InvalidInput(
            f"{total} pulls cannot be spread over {size} supported arms: every one needs a pull, or the differences "
            f"that it carries are not measured. Ask for at least {size}."
        )
    shares = normalised(lam[support] / lam.max())
    counts = np.zeros(len(lam), np.int64)
    counts[support] = _apportioned(shares, total)
    return counts


def _apportioned(shares: FloatArray, total: int) -> IntArray:
    """Adams' apportionment of `total` >= p pulls among p positive shares of sum 1."""
    low, high = (total - len(shares)) * (1.0 - SUM_SAFETY), total * (1.0 + SUM_SAFETY)
    while (high - low) * float(shares.max()) >= 1.0:  # below, no arm gains two pulls between low and high
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break  # so many pulls that no number lies between
        if np.maximum(np.ceil(middle * shares), 1.0).sum() <= total:
            low = middle
        else:
            high = middle
    pulls = np.maximum(np.ceil(low * shares), 1.0).astype(np.int64)
    left = total - int(pulls.sum())
    if left > 0:
        pulls[np.argpartition(pulls / shares, left - 1)[:left]] += 1
    return pulls


def allocate(
    design: Design,
    features: ArrayLike,
    total: int,
    *,
    slack: float = 0.1,
    active: ArrayLike | None = None,
    rank_tolerance: float | None = None,
) -> Allocation:
    """Whole pulls whose realised value is within the slack of the design's, adding pulls until it is.

        N * max over active a, b of ||x_a - x_b||^2 in A(n)^-1  <=  (1 + slack) * design.value

    holds for every N >= p (1 + slack)/slack, p the support, because A(n) >= min_i (n_i / w_i) A(w). It usually does
    for about a quarter of that, so the allocation is evaluated and N raised by tenths, to that number at most.

    Args:
        design: of these features and active arms.
        features: x, shape (K, d), as the design was solved for.
        total: N asked, in pulls; below the support it is raised to it.
        slack: zeta, above 0.
        active: arms that are compared, as for the design.
        rank_tolerance: as for the design.

    Returns:
        Allocation: counts, their sum, and the left-hand side above (where rounding hides a direction that is measured
        very weakly: its bound by max_i N w_i / n_i).

    Raises:
        InvalidInput: slack not positive, or the design does not belong to these features.

    Source: Algorithm 1, lines 6-7.       Differs from the paper: the support in place of d(d+1)/2 + 1, and evaluated.
    Cost: a few evaluations of the objective.
    """
    slack = positive_number("slack", slack, "whole pulls cannot match a design exactly, .1 is usual.")
    if slack < LEAST_SLACK:
        raise InvalidInput(f"slack is {slack:g}; below {LEAST_SLACK:g} no number of pulls is enough, .1 is usual.")
    total = whole_number("total", total, least=0, meaning="the pulls that are asked.")
    problem = pose(features, active, rank_tolerance=rank_tolerance)
    weights = checked_weights(design.weights, len(problem.group))
    support = int(np.count_nonzero(weights))
    objective = Objective(problem)
    own = objective.value(problem.merged(weights))
    if not math.isclose(own, design.value, rel_tol=SAME_VALUE):
        raise InvalidInput(
            f"the design is worth {own:.6g} here, not {design.value:.6g}; the slack would refer to another problem. "
            "Pass the features and active arms that the design was solved for."
        )
    enough = math.ceil(support * (1.0 + slack) / slack)
    pulls = max(total, support)
    while True:
        counts = round_design(weights, pulls)
        proven = design.value * pulls * float(np.max(weights[weights > 0] / counts[weights > 0]))
        value = min(pulls * objective.value(problem.merged(counts.astype(np.float64))), proven)
        if value <= (1.0 + slack) * design.value:
            return Allocation(counts, pulls, value)
        pulls = pulls + 1 if pulls >= enough else min(math.ceil(pulls * GROWTH), enough)


# --- Fewer arms for the same design: a rounded design spends at least one pull on every supported arm.

DUST = 1e-6
SAFE_RANGE_CUT = 1e-5
STEADY_SHARE = 0.1
LARGEST_REDUCTION = 1500
SLIVER = 1e-6
HEURISTIC_ARMS = (2.5, 4.0, 6.0)  # times r: so many are tried
HEURISTIC_FEWER_ARMS = (2.0, 1.5, 1.25)  # times r: where a worse design may take fewer pulls
HEURISTIC_TRIES = 3  # with the vectors that were too long among those in use
HEURISTIC_SURELY_ENOUGH = 0.5  # of the pulls of a batch with one of each arm: what the value may stand for
THINNED = 0.03  # the gap at which the weights of few arms are good enough


def reduced(problem: DesignProblem, weights: FloatArray) -> FloatArray:
    """Weights on at most r(r+1)/2 arms with the same information matrix and no larger sum (Caratheodory): where sum_i
    v_i z_i z_i' = 0, sum_i v_i >= 0, moving along -v until a weight vanishes keeps A and does not raise the sum."""
    support = np.flatnonzero(weights)
    upper = np.triu_indices(problem.rank)
    factor = cholesky(information(problem.basis, weights))
    if len(support) <= len(upper[0]) or len(support) > LARGEST_REDUCTION or factor is None:
        return weights
    rows = solve_rows(factor, problem.basis[support])
    result = np.zeros_like(weights)
    quick = _three_in_the_plane(rows, weights[support]) if problem.rank == 2 else None
    if quick is not None:
        result[support] = quick
        return result
    kernel = null_space((rows[:, upper[0]] * rows[:, upper[1]]).T)
    lam = weights[support].copy()
    while kernel.shape[1]:
        direction = kernel[:, 0] * (1.0 if kernel[:, 0].sum() >= 0.0 else -1.0)
        positive = np.flatnonzero(direction > 1e-9 * np.abs(direction).max())
        if positive.size == 0:
            break
        ratios = lam[positive] / direction[positive]
        gone = positive[np.argmin(ratios)]
        lam = np.maximum(lam - float(ratios.min()) * direction, 0.0)
        lam[gone] = 0.0
        rest = kernel[:, 1:] - np.outer(direction, kernel[gone, 1:] / direction[gone])
        kernel = rest / np.maximum(np.abs(rest).max(axis=0, initial=0.0), 1e-300)
        kernel[gone] = 0.0
    result[support] = lam
    return result


def _three_in_the_plane(rows: FloatArray, weights: FloatArray) -> FloatArray | None:
    """Weights on at most three arms, one of which is the heaviest, with the same information matrix; None where their
    sum would be larger.

    A vector u of squared length rho at the angle t/2 has u u' = rho (I + [[cos t, sin t], [sin t, -cos t]]) / 2. So
    sum_i lambda_i u_i u_i' = I means sum_i lambda_i rho_i e_i = 0, e = (cos t, sin t), and sum_i lambda_i rho_i = 2:
    the origin in a triangle of the e_i, whose barycentric coordinates are the areas of the opposite triangles. The
    triangles with one corner in common cover the hull of all, so one of them with the heaviest arm holds it.
    """
    squares = row_squares(rows)
    heavy, seen = int(np.argmax(weights)), squares > 0.0
    x, y = rows[:, 0], rows[:, 1]
    scale = np.where(seen, squares, 1.0)
    across, along = (x * x - y * y) / scale, 2.0 * x * y / scale  # the e_i
    areas = across[:, None] * along - along[:, None] * across  # of e_j and e_k, twice
    own = areas[heavy]
    total = areas + own[:, None] - own
    holds = (areas >= 0.0) & (own[:, None] >= 0.0) & (own <= 0.0) & (total > SLIVER) & seen & seen[:, None]
    if not holds.any():
        return None
    least = np.full_like(total, np.inf)
    sums = areas / scale[heavy] + own[:, None] / scale - own / scale[:, None]
    np.divide(2.0 * sums, total, out=least, where=holds)
    second, third = divmod(int(np.argmin(least)), len(rows))
    if not least[second, third] <= weights.sum():
        return None
    found = np.zeros_like(weights)
    for arm, area in ((heavy, areas[second, third]), (second, -own[third]), (third, own[second])):
        found[arm] += 2.0 * area / (total[second, third] * scale[arm])
    return found


def sparse(objective: Objective, weights: FloatArray, *, ceiling: float) -> FloatArray:
    """Weights on few arms whose exact value stays below a ceiling, however their rounding turns out: dust goes first,
    then linear dependence, then the smallest weights, as many as the ceiling allows. A direction that is measured so
    weakly that the next rounding could lose it is lost."""
    best, problem = weights, objective.problem
    cleaned = normalised(np.where(weights >= DUST * weights.max(), weights, 0.0))
    fewer = reduced(problem, cleaned)
    for candidate in (cleaned,) if fewer is cleaned else (normalised(fewer), cleaned):
        if objective.at_most(ceiling, candidate, range_cut=SAFE_RANGE_CUT):
            best = candidate
            break
    start, support = best, np.flatnonzero(best)
    ascending = support[np.argsort(best[support], kind="stable")]
    low, high = 0, len(support)
    while high - low > 1:
        middle = (low + high) // 2
        candidate = start.copy()
        candidate[ascending[:middle]] = 0.0
        candidate = normalised(candidate)
        if objective.at_most(ceiling, candidate, range_cut=SAFE_RANGE_CUT):
            low, best = middle, candidate
        else:
            high = middle
    return best


@record
class Few:
    """Weights, and what solving for them has found of the vectors."""

    weights: FloatArray  # lambda, (k,), sum 1
    pairs: IntArray  # in use, as rows of the points, (n, 2)
    multipliers: FloatArray  # their pi, (n,), not all 0


def thinned(
    objective: Objective,
    whole: Few,
    *,
    lower: float,
    ceiling: float,
    unit: float | None,
    accept: Callable[[FloatArray], bool] | None = None,
) -> FloatArray | None:
    """The weights anew for few of the heaviest arms, if `accept` takes them (docs/design-solver.md, line 16)."""
    rank = objective.problem.rank

    def with_fewer(few: Few, multiple: float, in_any_case: float) -> Few | None:
        number = math.ceil(multiple * rank)
        allowed = in_any_case if unit is None else max(in_any_case, HEURISTIC_SURELY_ENOUGH * number / unit)
        fewer = _anew(objective, few, number, allowed) if lower <= allowed else None
        if fewer is None or allowed <= ceiling or accept is None:
            return fewer
        return fewer if accept(objective.problem.spread(fewer.weights)) else None

    def smaller(multiples: tuple[float, ...], few: Few) -> list[float]:
        return [one for one in multiples if math.ceil(one * rank) < np.count_nonzero(few.weights)]

    few, enough = whole, smaller(HEURISTIC_ARMS, whole)
    for multiple in enough:
        fewer = with_fewer(whole, multiple, ceiling)
        if fewer is not None:
            few = fewer
            break
    if unit is not None and (not enough or (few is not whole and multiple == enough[0])):  # else these are too few
        for multiple in smaller(HEURISTIC_FEWER_ARMS, few):
            fewer = with_fewer(few, multiple, 0.0)
            if fewer is None:
                break
            few = fewer
    return None if few is whole else few.weights


def _heaviest(problem: DesignProblem, weights: FloatArray, number: int) -> IntArray:
    """Arms that span clearly, then the heaviest of the others, ascending, shape (number,)."""
    support = np.flatnonzero(weights)
    support = support[np.argsort(-weights[support], kind="stable")]
    rows = problem.basis[support]
    factor = inverse_factor((rows.T * weights[support]) @ rows)
    if factor is None:
        return np.sort(support[:number])
    spanned = spanning_rows(np.sqrt(weights[support])[:, None] * (rows @ factor)).rows
    return np.sort(np.concatenate([support[spanned], np.delete(support, spanned)])[:number])


def _anew(objective: Objective, few: Few, number: int, ceiling: float) -> Few | None:
    """The best weights of so many arms; None where their value exceeds the ceiling."""
    problem, pairs, multipliers = objective.problem, few.pairs, few.multipliers
    rows = _heaviest(problem, few.weights, number)
    weights = normalised(few.weights[rows])
    for _ in range(HEURISTIC_TRIES):
        start, differences = working_set.Master(weights, multipliers), problem.differences(pairs)
        solution = working_set.solve_master(
            problem.basis[rows], differences, start, gap=1.0, target=working_set.INNER_SHARE * THINNED
        )
        weights, multipliers = solution.weights, solution.multipliers
        full = np.zeros(len(problem.basis))
        full[rows] = weights
        factor = cholesky(information(problem.basis, full))
        if factor is None:
            return None
        within = float(row_squares(solve_rows(factor, differences)).max())
        if within > ceiling * (1.0 + working_set.INNER_SHARE * THINNED):
            return None  # more vectors only raise that
        far = objective.far(factor, most=problem.rank // 2, enough=ceiling)
        if far.bound <= ceiling and objective.at_most(ceiling, full, range_cut=SAFE_RANGE_CUT):
            return Few(full, pairs, multipliers)
        fresh = working_set.new_pairs(problem, pairs, ends_of(far))
        if len(fresh) == 0:
            return None
        pairs = np.concatenate([pairs, fresh])
        multipliers = np.concatenate([multipliers, np.zeros(len(fresh))])
    return None


def on_few_arms(
    objective: Objective,
    found: Iterated,
    *,
    tolerance: float,
    unit: float | None = None,
    accept: Callable[[FloatArray], bool] | None = None,
) -> FloatArray:
    """The best weights on few arms, of a value within the tolerance of the bound wherever the best weights are."""
    problem, many = objective.problem, working_set.many_directions(objective.problem)
    weights = found.weights(len(problem.basis))
    ceiling = found.lower * (1.0 + tolerance) * (1.0 - BOUND_SAFETY)
    if many:  # the best weights may be better than they are proved to be
        ceiling = min(ceiling, found.upper * (1.0 + THINNED))
    if unit is not None:
        ceiling = max(ceiling, HEURISTIC_SURELY_ENOUGH * problem.rank / unit)
    if not objective.at_most(ceiling, weights, range_cut=SAFE_RANGE_CUT):
        spanning, share = working_set.first_working_set(problem), STEADY_SHARE * min(tolerance, THINNED)
        weights = (1.0 - share) * weights
        weights[spanning.arms] += share * spanning.weights  # a regular A, for at most 1/(1 - share) of the value
    few: FloatArray | None = None
    if many and found.best.multipliers.any():
        whole = Few(found.weights(len(problem.basis)), found.best.pairs, found.best.multipliers)
        few = thinned(objective, whole, lower=found.lower, ceiling=ceiling, unit=unit, accept=accept)
        if few is not None and unit is not None and accept is not None:
            return few
    fewer = sparse(objective, weights, ceiling=ceiling)
    if few is None:
        return fewer
    other = sparse(objective, few, ceiling=ceiling)
    return other if np.count_nonzero(other) < np.count_nonzero(fewer) else fewer
