"""The exact objective: the farthest pair of active arms, and what a design is worth.

    value(lambda) = max over active a, b of ||z_a - z_b||^2 in A(lambda)^-1,   A(lambda) = sum_i lambda_i z_i z_i'

With A = L L' this is the squared diameter of the points L^-1 z_a.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.plans import Design
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs.pricing import Longest, ReducedCosts
from surepick.designs.problem import DesignProblem, checked_weights, pose
from surepick.linalg import factorisations
from surepick.linalg.convex_hull_2d import FEW as PLANE_FEW, farthest_in_the_plane, farthest_of_few
from surepick.linalg.farthest_pairs import Pairs, farthest_pairs, largest, ordered, pairs_from
from surepick.linalg.rows import one_blas_thread, row_blocks

SAFE_RECIPROCAL_CONDITION = 1e-10
RANGE_CUT = 1e-7
RANGE_TOLERANCE = 1e-10
RANGE_TOLERANCE_MOST = 1e-4
SAFETY = 1e-9
FEW = 4096  # points that are simply compared
NEAR = 0.9  # pairs that a full search notes: those of at least this share of the squared diameter
NOTED = 100_000
NOTED_LEAST = 1000
RECENT = 64
MANY_ENDS = 256
PLANE_FIRST = 512
HEURISTIC_DENSE = 0.5  # of the points, that no length excludes from the far pairs


@record
class _Noted:
    """The far pairs under one design, from which those under a similar design follow."""

    factor: FloatArray  # L of that design
    pairs: Pairs  # rows of the problem's points, and a bound on all other pairs
    # what they stand for, (n, r); None where these would take more memory than the points
    differences: FloatArray | None


@record
class _Front:
    """The points that can belong to a pair of at least NEAR times the squared diameter, and fewer."""

    rows: IntArray  # of the problem's points, (s,)
    points: FloatArray  # L^-1 (z - centre), (s, r)
    radii: FloatArray  # their norms, (s,)
    reach: float  # a distance that some pair has

    @property
    def elsewhere(self) -> float:
        """No pair with another point has a larger squared distance."""
        return NEAR * self.reach**2

    def narrowed(self) -> _Front:
        """The points that can belong to a farthest pair."""
        inner = np.flatnonzero(self.radii >= self.reach * (1.0 - SAFETY) - float(self.radii.max()))
        return _Front(self.rows[inner], self.points[inner], self.radii[inner], self.reach)


class Objective:
    """The exact objective of a problem; it keeps far pairs of its last full search (docs/design-solver.md, line 6)."""

    def __init__(self, problem: DesignProblem) -> None:
        self.problem = problem
        self.prices = ReducedCosts(problem)
        self.longest = Longest(problem.points, problem.point_lengths)  # where vectors count, not differences
        self._noted: _Noted | None = None
        self._dense = False
        self._evenly: bool | None = None  # whether the last full search was under I; None before the first
        self._recent = np.empty((0, 2), np.int64)
        self._rows = np.empty(0, np.int64)

    def far(self, factor: FloatArray, *, most: int = 1, enough: float = np.inf, hot: IntArray | None = None) -> Pairs:
        """Far pairs of active points under A = L L', as rows of the problem's points: the first is the farthest, or
        beyond `enough`, or the bound on all pairs is within `enough`. Only of the first is `elsewhere` a promise."""
        if self.problem.opposite:
            return self.longest.under(factor, most=most, enough=enough)
        if self.problem.rank == 2:
            if most == 1:
                front = self._front(factor).narrowed()
                if len(front.rows) <= PLANE_FEW:
                    return _renamed(farthest_of_few(front.points), front.rows)
                return _renamed(farthest_in_the_plane(front.points, enough=enough), front.rows)
            points = factorisations.solve_rows(factor, self.problem.compared(0, len(self.problem.active)))
            return _renamed(farthest_in_the_plane(points, enough=enough), self.problem.active)
        found = self._remembered(factor, enough, most)
        if found is None and len(self._rows) and not self._evenly:
            found = self._around(factor, hot, most=most, enough=enough)
        if found is None:
            found = self._searched(factor, enough, hot, most)
        found = found.head(most)
        self._recent = ends_of(found)[:RECENT]
        return found

    def _remembered(self, factor: FloatArray, enough: float, most: int) -> Pairs | None:
        """What the last full search says of this design, if it is enough."""
        if self._noted is None:
            return None
        again = self._revalued(self._noted, factor, most)
        if again.exact or (again.bound <= enough < np.inf):
            return again
        met = float(again.squares[0]) > enough and (most == 1 or self._dense)
        return replace(again, elsewhere=np.inf) if met else None

    def _searched(self, factor: FloatArray, enough: float, hot: IntArray | None, most: int) -> Pairs:
        """The farthest pairs of all, or some beyond `enough` if these are met first (docs/design-solver.md, line 6)."""
        front = self._front(factor)
        narrow = front.narrowed()
        if len(narrow.rows) <= FEW:
            return _renamed(farthest_pairs(narrow.points, least=most), narrow.rows)
        self._rows = narrow.rows
        first, self._evenly = self._evenly is None, bool(self._evenly)
        if first:
            even = self._front(np.eye(self.problem.rank))
            self._dense = self._evenly = len(even.narrowed().rows) > HEURISTIC_DENSE * len(self.problem.active)
            if self._dense:
                self._note(np.eye(self.problem.rank), even)
                known = self._remembered(factor, enough, most)
                if known is not None:
                    return known
        quick = None if first or self._evenly else self._around(factor, hot, most=most, enough=enough)
        self._evenly = False
        return self._note(factor, front) if quick is None else quick

    def _note(self, factor: FloatArray, front: _Front) -> Pairs:
        """The far pairs of points by a full search under A = L L', which are remembered."""
        found = _renamed(farthest_pairs(front.points, least=NOTED_LEAST, most=NOTED, share=NEAR), front.rows)
        found = replace(found, elsewhere=max(found.elsewhere, front.elsewhere))
        differences = self.problem.differences(ends_of(found)) if len(found.first) <= len(front.rows) else None
        self._noted = _Noted(factor, found, differences)
        return found

    def _around(self, factor: FloatArray, hot: IntArray | None, *, most: int, enough: float) -> Pairs | None:
        """Pairs beyond `enough` with one end among the hot points, or those of largest radius; None if none is met."""
        if enough == np.inf:
            return None
        rows = self._rows
        points = factorisations.solve_rows(factor, self.problem.points[rows])
        ends = np.argpartition(-factorisations.row_norms(points - points.mean(axis=0)), MANY_ENDS)[:MANY_ENDS]
        if hot is not None:
            ends = np.union1d(ends, np.flatnonzero(np.isin(rows, hot)))
        blocks = (points[top : top + FEW] for top in range(0, len(rows), FEW))
        found = pairs_from(points[ends], blocks, most=2 * most, floor=enough)
        first, second = rows[ends[found.first]], rows[found.second]
        size = len(self.problem.points)
        _, once = np.unique(np.minimum(first, second) * size + np.maximum(first, second), return_index=True)
        chosen = np.sort(once)  # of two hot ends the pair is met twice; the farthest stay first
        if len(chosen) == 0 or float(found.squares[0]) <= enough:
            return None
        return Pairs(first[chosen], second[chosen], found.squares[chosen], np.inf)

    def forget(self) -> None:
        """Search among all points again, whatever earlier searches found."""
        self._noted, self._rows = None, np.empty(0, np.int64)

    def value(self, weights: FloatArray, *, range_cut: float = RANGE_CUT) -> float:
        """The exact objective of weights (k,), of any sum, on the distinct arms; infinite if a difference is unseen."""
        return self._valued(weights, np.inf, range_cut)

    def at_most(self, ceiling: float, weights: FloatArray, *, range_cut: float = RANGE_CUT) -> bool:
        """Whether the objective of the weights, shape (k,), is at most the ceiling; cheaper than `value`."""
        return self._valued(weights, ceiling, range_cut) <= ceiling

    def _valued(self, weights: FloatArray, enough: float, range_cut: float) -> float:
        """The value, or where it is within `enough` a bound on it that is, too."""
        problem = self.problem
        if problem.rank == 0 or len(problem.active) <= (0 if problem.opposite else 1):
            return 0.0
        total = float(weights.sum())
        matrix = information(problem.basis, weights / total)
        factor = factorisations.cholesky(matrix)
        if factor is not None and factorisations.reciprocal_condition(matrix, factor) > SAFE_RECIPROCAL_CONDITION:
            found = self.far(factor, enough=enough * total)
            if not found.exact:
                return found.bound / total
            difference = factorisations.solve_lower(factor, problem.differences(ends_of(found)[:1]).T)
            return float(difference[:, 0] @ difference[:, 0]) / total
        points = _in_range(problem, weights / total, range_cut=range_cut)
        if points is None:
            return np.inf
        squares = factorisations.row_norms(points) ** 2 if problem.opposite else farthest_pairs(points).squares
        return float(squares.max()) / total

    def _front(self, factor: FloatArray) -> _Front:
        """The active points but for those whose radius excludes them; they are looked at by decreasing length."""
        problem = self.problem
        lengths, count = problem.point_lengths, len(problem.active)
        first = FEW if problem.rank > 2 or count <= FEW else PLANE_FIRST
        points = factorisations.solve_rows(factor, problem.compared(0, min(first, count)))
        if count <= FEW:
            return _Front(problem.active, points, factorisations.row_norms(points), 0.0)
        centre = float(factorisations.row_norms(problem.centre[None, :])[0])
        stretch, parts, size = factorisations.longest_image(factor @ factor.T) * (1.0 + SAFETY), [points], len(points)
        radii = factorisations.row_norms(points)
        end = points[int(np.argmax(radii))]
        known = factorisations.row_norms(factorisations.solve_rows(factor, problem.differences(self._recent)))
        reach = max(float(factorisations.row_norms(points - end).max()), float(known.max(initial=0.0)))
        while size < count:
            beyond = stretch * (float(lengths[problem.active[size]]) + centre)
            if beyond + max(beyond, float(radii.max())) < math.sqrt(NEAR) * reach * (1.0 - SAFETY):
                break
            more = factorisations.solve_rows(factor, problem.compared(size, min(2 * size, count)))
            reach = max(reach, float(factorisations.row_norms(more - end).max()))
            parts.append(more)
            radii = np.concatenate([radii, factorisations.row_norms(more)])
            size += len(more)
        rows = np.flatnonzero(radii >= math.sqrt(NEAR) * reach * (1.0 - SAFETY) - float(radii.max()))
        points = np.concatenate(parts)[rows] if len(parts) > 1 else points[rows]
        return _Front(problem.active[rows], points, radii[rows], reach)

    def _revalued(self, noted: _Noted, factor: FloatArray, most: int) -> Pairs:
        """The farthest of the noted pairs under another A, and what all others can reach there."""
        change = factorisations.solve_lower(factor, noted.factor)
        growth = float(factorisations.thin_svd(change)[1][0]) ** 2 * (1.0 + SAFETY)
        pairs, differences = noted.pairs, noted.differences
        if differences is None:
            differences = self.problem.differences(ends_of(pairs))
        squares = factorisations.row_squares(factorisations.solve_rows(factor, differences))
        chosen = largest(squares, most)
        left = float(squares[chosen].min()) if len(chosen) < len(squares) else 0.0
        return ordered(pairs.first[chosen], pairs.second[chosen], squares[chosen], max(pairs.elsewhere * growth, left))


def ends_of(pairs: Pairs) -> IntArray:
    """The two points of each pair, shape (n, 2)."""
    return np.stack([pairs.first, pairs.second], axis=1)


def _renamed(pairs: Pairs, rows: IntArray) -> Pairs:
    """Pairs of positions in `rows`, shape (s,), as pairs of these rows."""
    return Pairs(rows[pairs.first], rows[pairs.second], pairs.squares, pairs.elsewhere)


def information(basis: FloatArray, weights: FloatArray) -> FloatArray:
    """A(lambda) = sum_i lambda_i z_i z_i', shape (r, r)."""
    support = np.flatnonzero(weights)
    rows = basis[support]
    return rows.T @ (weights[support, None] * rows)


def _in_range(problem: DesignProblem, weights: FloatArray, *, range_cut: float) -> FloatArray | None:
    """Points u_a with ||u_a - u_b||^2 = ||z_a - z_b||^2 in A(weights)^-1, or the vectors; None when one is infinite
    (docs/design-solver.md, line 9)."""
    support = np.flatnonzero(weights)
    _, s, vt = factorisations.thin_svd(np.sqrt(weights[support])[:, None] * problem.basis[support])
    whole = len(problem.active) == len(problem.points)
    active = problem.points if whole else problem.points[problem.active]
    strong, seen = (int(np.count_nonzero(s > cut * s[0])) for cut in (range_cut, RANGE_CUT))
    noise = 64.0 * problem.rounding * float(max(active.max(), -active.min()))
    weakest = 64.0 * float(np.finfo(np.float64).eps) * float(s[0] / s[strong - 1])  # of the directions found
    share = max(RANGE_TOLERANCE, min(weakest, RANGE_TOLERANCE_MOST))
    points = np.empty((len(active), seen))
    for rows in row_blocks(len(active)):  # the first that leaves the range ends it
        offsets = active[rows] if problem.opposite else active[rows] - active[0]
        coordinates = offsets @ vt.T
        leak = factorisations.row_norms(offsets - coordinates[:, :strong] @ vt[:strong])
        lengths = factorisations.row_norms(offsets)
        allowed = np.maximum(share * lengths, np.minimum(noise, RANGE_TOLERANCE_MOST * lengths))
        if (leak > allowed).any():
            return None
        points[rows] = coordinates[:, :seen] / s[:seen]
    return points


def design_value(
    features: ArrayLike, weights: ArrayLike, active: ArrayLike | None = None, *, rank_tolerance: float | None = None
) -> float:
    """How well a design measures the differences of the active arms: the exact objective.

        max over a, b in active of ||x_a - x_b||^2 in A^-1,   A = sum_i weights_i x_i x_i'

    Args:
        features: x, shape (K, d), finite, any scale and rank.
        weights: shape (K,), non-negative; they are not normalised: twice the weights have half the value, and counts
            of pulls are welcome.
        active: arms that are compared, as indices or a mask of length K; None means all.
        rank_tolerance: see `solve_design`.

    Returns:
        The maximum; 0 when the active arms coincide, infinity when some difference is outside the range of A.

    Raises:
        InvalidInput: non-finite features or weights, wrong shapes, an empty or wrong active set.

    Source: Algorithm 1, line 5; appendix "Matrix inversion and rounding" for the range.
    Cost: O(K d^2) and the pair search of `farthest_pairs`.
    """
    with one_blas_thread():
        problem = pose(features, active, rank_tolerance=rank_tolerance)
        return Objective(problem).value(problem.merged(checked_weights(weights, len(problem.group))))


# --- Designs of arms without structure: all differences in closed form, those from one arm by bisection.

BISECTIONS = 100
BOUND_SAFETY = 1e-12


def independent_design(num_arms: int, active: IntArray | None = None) -> Design:
    """min over lambda of max over pairs a != b of S of 1/lambda_a + 1/lambda_b = 2 |S|, at equal weights on S.

    Proof: averaging 1/lambda_a + 1/lambda_b over all pairs of S gives (2/|S|) sum 1/lambda_a >= 2 |S|. The value is 0
    when S has one arm.
    """
    arms = np.arange(num_arms) if active is None else active
    weights = np.zeros(num_arms)
    weights[arms] = 1.0 / len(arms)
    value = 2.0 * len(arms) if len(arms) > 1 else 0.0
    return Design(weights, value, value, num_arms)


def independent_star_design(
    centre: int, scales: FloatArray, *, rivals: IntArray | None = None, noise_scales: FloatArray | None = None
) -> Design:
    """min over lambda of max over rivals j of (v_c/lambda_c + v_j/lambda_j) / w_j^2: one arm against each rival.

        tau = min over s in (0, min w^2) of v_c/s + sum_j v_j/(w_j^2 - s),   lambda_c = v_c/(s tau),
        lambda_j = v_j/((w_j^2 - s) tau)

    At the optimum all constraints are tight; the function of s is convex, and its derivative changes sign between
    m/(1 + sqrt(sum_j v_j/v_c)) and m/(1 + sqrt(v_i/v_c)) for m = min w^2, reached at i. The lower bound is the tangent
    there, and agrees with the value to rounding. Scales w and noise_scales sqrt(v) are positive, of shape (K,); the
    entry w_c is not used. Without a rival the value is 0, and all weight on c.
    """
    num_arms = len(scales)
    others = np.delete(np.arange(num_arms), centre) if rivals is None else rivals[rivals != centre]
    noises = np.ones(num_arms) if noise_scales is None else noise_scales
    weights = np.zeros(num_arms)
    if len(others) == 0:
        weights[centre] = 1.0
        return Design(weights, 0.0, 0.0, num_arms)
    unit, closest = float(scales[others].min()), int(np.argmin(scales[others]))
    squares = (scales[others] / unit) ** 2
    variances = (noises[others] / noises[centre]) ** 2
    low = 1.0 / (1.0 + np.sqrt(float(variances.sum())))
    high = 1.0 / (1.0 + np.sqrt(float(variances[closest])))
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if float(np.sum(variances * (squares - middle) ** -2.0)) < middle**-2.0:
            low = middle
        else:
            high = middle
    weights[centre], weights[others] = 1.0 / low, variances / (squares - low)
    tau = float(weights.sum())
    slope = float(np.sum(variances * (squares - low) ** -2.0)) - low**-2.0
    weights /= tau
    value = float(np.max((1.0 / weights[centre] + variances / weights[others]) / squares))
    lower = (tau + min(slope, 0.0) * (high - low)) * (1.0 - BOUND_SAFETY)
    with np.errstate(over="ignore"):  # beyond the largest number: infinite
        size = np.square(np.float64(noises[centre]) / unit)
        return Design(weights, float(value * size), float(min(lower, value) * size), num_arms)
