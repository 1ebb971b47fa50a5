"""The design problem as the solver sees it: distinct arms, in whitened coordinates.

Every exact simplification happens here, once: equal rows are merged, columns rescaled, redundant directions removed.
The value of a design is invariant under all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.plans import Design
from surepick.core.records import FloatArray, IntArray, record
from surepick.core.values import real_numbers, reason
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import ImageMap, Whitened, column_means, row_norms, whitened
from surepick.linalg.rows import each_row_block, equal_rows, places, some_rows

SAME_LENGTH = 1e-12  # relative; far above what rounding makes of the length of equal vectors


@record
class DesignProblem:
    """Distinct arms in whitened coordinates, longest first, and the points that are compared."""

    basis: FloatArray  # Z, (k, r), one row a distinct arm, Z'Z = k I: what can be measured
    lengths: FloatArray  # ||z||, decreasing, (k,)
    # what is compared: `basis` itself, of which differences of active rows count; or vectors that count themselves
    # (`opposite`: a vector y is the difference of y/2 and its opposite), longest first
    points: FloatArray
    point_lengths: FloatArray  # their lengths, decreasing
    active: IntArray  # rows of `points` that are compared, sorted, unique
    group: IntArray  # for each of the K arms, its row in `basis`, (K,)
    first: IntArray  # for each row of `basis`, the first of the K arms that it stands for, (k,)
    rounding: float  # what rounding may have added to an entry of the basis, as a share of the largest
    # a point near the active rows, (r,): their mean, or that of a larger problem; not used for vectors
    centre: FloatArray
    opposite: bool = False  # the points are vectors

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    @property
    def relative_rounding(self) -> float:
        """What rounding of the coordinates may be of the longest compared vector: large where arms are close. Of many
        points a few hundred, the longest and the shortest among them, tell."""
        if self.opposite:
            longest = float(self.point_lengths[0]) if len(self.points) else 0.0
        else:
            ends = self.points[np.append(self.active[:: 1 + len(self.active) // 256], self.active[-1])]
            longest = float(np.ptp(ends, axis=0).max(initial=0.0))
        return self.rounding * float(self.lengths.max(initial=0.0)) / longest if longest > 0.0 else 0.0

    def compared(self, start: int, stop: int) -> FloatArray:
        """Active points less their centre, shape (stop - start, r), of given places in `active`."""
        if len(self.active) == len(self.points):
            return self.points[start:stop] - self.centre
        return self.points[self.active[start:stop]] - self.centre

    def differences(self, pairs: IntArray) -> FloatArray:
        """What pairs of rows of the points stand for, shape (n, r)."""
        if self.opposite:
            return self.points[pairs[:, 0]]
        return self.points[pairs[:, 0]] - self.points[pairs[:, 1]]

    def spread(self, weights: FloatArray) -> FloatArray:
        """Weights of the k distinct arms as weights (K,) of all arms: the first of equal arms carries the weight."""
        full = np.zeros(len(self.group))
        full[self.first] = weights
        return full

    def merged(self, weights: FloatArray) -> FloatArray:
        """Weights of the K arms as weights (k,) of the distinct ones: those of equal arms are added."""
        return np.bincount(self.group, weights, len(self.first)).astype(np.float64, copy=False)


def restricted_to(problem: DesignProblem, rows: IntArray, points: IntArray | None = None) -> DesignProblem:
    """The problem of differences of some rows of the basis, ascending, or of some vectors, rows of the points; the
    centre stays, and values keep each bit."""
    basis, lengths = problem.basis[rows], problem.lengths[rows]
    part = replace(problem, basis=basis, lengths=lengths, first=problem.first[rows])
    if problem.opposite and points is not None:
        everybody = np.arange(len(points))
        vectors, long = problem.points[points], problem.point_lengths[points]
        return replace(part, points=vectors, point_lengths=long, active=everybody)
    return replace(part, points=basis, point_lengths=lengths, active=np.flatnonzero(np.isin(rows, problem.active)))


def normalised(weights: FloatArray) -> FloatArray:
    """The weights divided by their sum, of the same shape."""
    return np.asarray(weights / weights.sum())


def checked_rows(
    values: ArrayLike, what: str = "features", one: str = "arm", size: str = "K", *, dim: int | None = None
) -> FloatArray:
    """Rows as a (size, d) array of finite floats; `what` they are, and `one` of them, in words."""
    shape = f"({size}, {'d' if dim is None else dim})"
    matrix = real_numbers(what, values, wrong=f"{what} are not a numeric {shape} array")
    if matrix.ndim != 2 or dim not in (None, matrix.shape[1]):
        raise InvalidInput(f"{what} have shape {matrix.shape}; they must be {shape}, one row {one}.")
    if matrix.shape[0] == 0:
        raise InvalidInput(f"there is no {one} ({size} = 0); no design exists.")
    if not np.isfinite(matrix).all():
        bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
        rows = ", ".join(str(row) for row in bad[:5]) + (f" and {bad.size - 5} more" if bad.size > 5 else "")
        raise InvalidInput(
            f"{bad.size} of {len(matrix)} rows have NaN or infinite {what}: rows {rows}. Fill or drop them."
        )
    return matrix


def checked_active(active: ArrayLike | None, num_arms: int) -> IntArray:
    """Active arms as sorted indices, from indices, a boolean mask or None (all)."""
    if active is None:
        return np.arange(num_arms, dtype=np.int64)
    try:
        chosen = np.asarray(active)
    except Exception as error:
        raise InvalidInput(f"active is no list of indices and no mask: {reason(error)}.") from error
    if chosen.ndim != 1:
        raise InvalidInput(f"active has shape {chosen.shape}; it must be a list of indices or a mask of length K.")
    if chosen.dtype == np.bool_ and len(chosen) not in (0, num_arms):
        raise InvalidInput(f"the active mask has {len(chosen)} entries for {num_arms} arms.")
    chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    if chosen.size == 0:
        raise InvalidInput("no arm is active; a design compares at least one arm with the others.")
    if not np.issubdtype(chosen.dtype, np.integer):
        raise InvalidInput(f"active holds {chosen.dtype} values; give integer indices or a boolean mask.")
    indices = np.sort(chosen.astype(np.int64))
    if indices[0] < 0 or indices[-1] >= num_arms:
        wrong = indices[0] if indices[0] < 0 else indices[-1]
        raise InvalidInput(f"active arm {wrong} does not exist: there are {num_arms} arms, 0 .. {num_arms - 1}.")
    repeated = indices[1:][indices[1:] == indices[:-1]]
    if repeated.size:
        raise InvalidInput(f"active arm {repeated[0]} is given more than once; each arm is active once or not at all.")
    return indices


def checked_weights(weights: ArrayLike, num_arms: int) -> FloatArray:
    """Weights as a (K,) array of finite non-negative floats that are not all zero."""
    lam = real_numbers("weights", weights)
    if lam.shape != (num_arms,):
        raise InvalidInput(f"weights have shape {lam.shape}; they must be ({num_arms},), one weight an arm.")
    if not np.isfinite(lam).all() or lam.min(initial=0.0) < 0:
        arm = int(np.flatnonzero(~(np.isfinite(lam) & (lam >= 0)))[0])
        raise InvalidInput(f"the weight of arm {arm} is {lam[arm]}; weights must be finite and non-negative.")
    if not lam.any():
        raise InvalidInput("all weights are zero; a design measures at least one arm.")
    return lam


def pose(features: ArrayLike, active: ArrayLike | None, *, rank_tolerance: float | None) -> DesignProblem:
    """The problem of measuring the differences of the active arms by pulls of any arm; features of shape (K, d)."""
    matrix = checked_rows(features)
    chosen = checked_active(active, matrix.shape[0])
    arms = DesignInput.of(matrix, rank_tolerance=rank_tolerance).problem
    rows = arms.active if active is None else np.unique(arms.group[chosen])
    compared = arms.basis if len(rows) == len(arms.basis) else arms.basis.take(rows, axis=0)
    return replace(arms, active=rows, centre=column_means(compared))


@record
class DesignInput:
    """What designs for the same arms have in common: formed once, and used for each."""

    problem: DesignProblem  # the distinct arms in whitened coordinates; what is compared is not set
    dim: int  # d, the columns of the features
    form: Callable[[], ImageMap]  # gives what takes other vectors there, formed once and only if it is asked for

    @staticmethod
    def of(
        features: FloatArray, *, rank_tolerance: float | None = None, white: Callable[[], Whitened | None] | None = None
    ) -> DesignInput:
        """Those of checked features, shape (K, d). Cost: O(K d^2) time; keeps two arrays like the features."""
        if rank_tolerance is not None and not 0.0 <= rank_tolerance < 1.0:
            raise InvalidInput(
                f"rank_tolerance is {rank_tolerance}; it is a share of the largest singular value, from 0 to below 1. "
                "1e-6 is usual for features rounded to six decimals."
            )
        classes = equal_rows(features)
        arms = features if classes.none else features[classes.first]
        known = white() if white is not None and classes.none else None
        found = whitened(arms, rank_tolerance=rank_tolerance) if known is None else known
        lengths = row_norms(found.basis)
        order = longest_first(lengths)
        basis, lengths, place = some_rows(found.basis, order), lengths[order], places(order)
        group, first = (place, order) if classes.none else (place[classes.group], classes.first[order])
        everybody, nowhere = np.arange(len(basis)), np.zeros(basis.shape[1])
        problem = DesignProblem(basis, lengths, basis, lengths, everybody, group, first, found.rounding, nowhere)
        return DesignInput(problem, arms.shape[1], functools.cache(lambda: ImageMap.of(arms, found)))

    @property
    def distinct(self) -> bool:
        """Whether no two arms are equal."""
        return len(self.problem.first) == self.num_arms

    def whitened_at(self, noise_scale: float) -> DesignInput:
        """The same distinct arms, whose features are their whitened coordinates divided by a noise scale."""
        rank = self.problem.rank
        return DesignInput(self.problem, rank, lambda: ImageMap.of_multiples(rank, noise_scale))

    @property
    def image(self) -> ImageMap:
        """What takes other vectors to the whitened coordinates."""
        return self.form()

    @property
    def num_arms(self) -> int:
        """K."""
        return len(self.problem.group)


def longest_first(lengths: FloatArray) -> IntArray:
    """The order of decreasing length, shape (n,), ties in the order given; the slower stable sort only for these."""
    order = np.argsort(-lengths)
    ordered = lengths[order]
    return np.argsort(-lengths, kind="stable") if (ordered[1:] == ordered[:-1]).any() else order


def pose_targets(arms: DesignInput, targets: FloatArray, *, span_tolerance: float) -> DesignProblem:
    """The problem of measuring m given vectors by pulls of the arms."""
    images, outside = arms.image.images(targets)
    beyond = np.flatnonzero(outside > span_tolerance)
    if beyond.size:
        raise InvalidInput(
            f"{beyond.size} of {len(targets)} targets lie outside the span of the arms (target {beyond[0]} by "
            f"{outside[beyond[0]]:.2g} of its length): no number of pulls measures them, the value is infinite. "
            "Give combinations of the arms' features, or raise span_tolerance if rounding is to blame."
        )
    return _compared(arms.problem, images)


def pose_star(
    posed: DesignInput,
    centre: int,
    scales: FloatArray,  # w, positive, (K,)
    *,
    rivals: IntArray | None = None,
    noise_scales: FloatArray | None = None,  # v, positive, (K,), if the arms are posed as x / v; None = 1 for all
) -> DesignProblem:
    """As `pose_targets` for y_j = (x_c - x_j) / w_j, formed in whitened coordinates: in the span by construction."""
    arms = posed.problem
    group = arms.group if rivals is None else arms.group[rivals]
    widths, own = scales if rivals is None else scales[rivals], arms.basis[arms.group[centre]]
    noise = noise_scales if noise_scales is None or rivals is None else noise_scales[rivals]
    own = own if noise_scales is None else noise_scales[centre] * own
    vectors = np.empty((len(group), arms.rank))

    def form(some: slice) -> None:
        part = arms.basis[group[some]]
        if noise is not None:
            part *= noise[some, None]
        np.subtract(own, part, out=part)
        np.divide(part, widths[some, None], out=vectors[some])

    each_row_block(form, len(group))
    return _compared(arms, vectors)


def _compared(arms: DesignProblem, vectors: FloatArray) -> DesignProblem:
    """The problem of the distinct vectors, longest first, in place of differences of the arms."""
    lengths = row_norms(vectors)
    order = _once(vectors, lengths, longest_first(lengths))
    everybody = np.arange(len(order), dtype=np.int64)
    return replace(
        arms, points=some_rows(vectors, order), point_lengths=lengths[order], active=everybody, opposite=True
    )


def _once(vectors: FloatArray, lengths: FloatArray, order: IntArray) -> IntArray:
    """The order of decreasing length without repeated vectors; only neighbours of one length are compared."""
    ordered = lengths[order]
    alike = ordered[:-1] - ordered[1:] <= SAME_LENGTH * ordered[:-1]
    rows = np.sort(order[np.flatnonzero(np.append(alike, False) | np.append(False, alike))])
    if len(rows) == 0:
        return order
    repeated = np.zeros(len(order), bool)
    repeated[rows] = True
    repeated[rows[equal_rows(vectors[rows]).first]] = False
    return order[~repeated[order]]


# --- Optimal designs for given pairs of arms that share nothing, and for arms beside a number that is known.

MOST_STEPS = 400
LEAST_SHARE = 1e-200  # so that no arm of a pair is without weight


def independent_pairs_design(
    first: IntArray,  # i, (m,), at least one pair
    second: IntArray,  # c, (m,); -1: the arm is compared with a number that is known, and v_c = 0
    accuracies: FloatArray,  # a, positive, (m,), in reward units
    noise_scales: FloatArray,  # sqrt(v), positive, (K,), in reward units
    *,
    tolerance: float = 0.05,
) -> Design:
    """min over lambda of max over pairs p = (i, c) of (v_i/lambda_i + v_c/lambda_c) / a_p^2, with a certificate.

        for weights q of the pairs, sum 1:   s_x = sum of q_p / a_p^2 over the pairs with x
        lambda_x in proportion to sqrt(v_x s_x),   tau >= (sum_x sqrt(v_x s_x))^2     (Cauchy and Schwarz)
        q_p <- q_p times the pair's value, until the largest value is near the bound

    The value is in pulls at which the worst pair is known to within its accuracy; after MOST_STEPS its gap may be
    larger. Source: the update of Silvey, Titterington & Torsney (1978). Cost: O(m + K) a step.
    """
    num_arms = len(noise_scales)
    inverse = (accuracies.min() / accuracies) ** 2
    paired = second >= 0
    ends = np.where(paired, second, first)
    shares, best, bound = np.full(len(first), 1.0 / len(first)), (np.inf, np.zeros(num_arms)), 0.0
    for _ in range(MOST_STEPS):
        load = shares * inverse
        totals = np.bincount(first, load, minlength=num_arms)
        totals += np.bincount(ends[paired], load[paired], minlength=num_arms)
        roots = noise_scales * np.sqrt(totals)
        weights = roots / roots.sum()
        spread = np.divide(noise_scales**2, weights, out=np.zeros(num_arms), where=weights > 0)
        values = inverse * (spread[first] + np.where(paired, spread[ends], 0.0))
        bound = max(bound, float(roots.sum()) ** 2)
        if values.max() < best[0]:
            best = (float(values.max()), weights)
        if best[0] <= (1.0 + tolerance) * bound:
            break
        shares = np.maximum(shares * values / values.max(), LEAST_SHARE)
        shares /= shares.sum()
    unit = float(accuracies.min()) ** 2
    return Design(best[1], best[0] / unit, min(bound, best[0]) / unit, num_arms)
