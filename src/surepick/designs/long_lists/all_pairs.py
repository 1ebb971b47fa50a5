"""The optimal design for all differences of rows too many for memory: a pool, and passes that price the rest."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce

import numpy as np

from surepick.blocks.map_reduce import Passes
from surepick.blocks.moments import EPS, Coordinates, directions, moments
from surepick.blocks.search import PIECE, Largest, largest
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.design import DesignOfRows
from surepick.designs.column_generation import iterated
from surepick.designs.long_lists.d_optimal import unit_factor
from surepick.designs.objective import Objective, ends_of, information
from surepick.designs.pricing import PRICE_SAFETY, less_rounding
from surepick.designs.problem import pose
from surepick.designs.sparsify import on_few_arms
from surepick.errors import NotConverged
from surepick.linalg.factorisations import (
    row_norms,
    row_squares,
    symmetric_spectrum,
)
from surepick.linalg.farthest_pairs import farthest_pairs
from surepick.linalg.unique_rows import equal_rows

HEURISTIC_POOL = 2048  # rows that a pass brings for their price, and pairs for their distance
FRONT = 32_768  # rows that are compared with each other, those of the largest radius
HOT = 2048  # of these, rows that are compared with all others
FAR = 64  # rows that such a comparison brings
MOST_PASSES = 12
CLEARLY = 1e-8  # relative; what rounding makes of a radius is far less
INNER_SHARE, SPARSE_SHARE = 0.2, 0.5  # of the tolerance, for the pool


@record
class _White:
    """Coordinates in which the rows are isotropic, and a 1: a linear function of these is one of z - c.

    Args:
        seen: the directions of the rows.
        unit: F with F F' = (sum u u' / K)^-1, z = F'u.
    """

    seen: Coordinates
    unit: FloatArray

    @property
    def rank(self) -> int:
        return len(self.unit) + 1

    @property
    def left(self) -> float:
        return self.seen.left

    @property
    def information(self) -> FloatArray:
        return np.eye(self.rank)

    @property
    def longest(self) -> float:
        return self.seen.longest * float(np.linalg.norm(self.unit)) + 1.0

    def of(self, rows: FloatArray) -> FloatArray:
        seen = self.seen.of(rows) @ self.unit
        return np.column_stack([seen, np.ones(len(seen))])


@record
class _OfPool:
    """The design of the pool, and what a pass asks of all rows.

    Args:
        rows: of the pool with weight, shape (p,).
        weights: theirs, sum 1.
        prices: P, shape (r + 1, r): the price z'M z of a row is ||P'(z, 1)||^2.
        trace: tr(W), so that tau >= tr(W)^2 / max z'M z.
        radii: shape (r + 1, r): the radius ||L^-1 (z - c)|| of a row is the length of its product with (z, 1).
        least: a price that a row of the pool has; and a squared radius: no row of a smaller one belongs to a pair as
            far as the farthest of the pool, unless there is a larger radius than those of the pool.
    """

    rows: IntArray
    weights: FloatArray
    prices: FloatArray
    trace: float
    radii: FloatArray
    least: tuple[float, float]


def design_of_rows(passes: Passes, *, tolerance: float, max_steps: int) -> DesignOfRows:
    """The design for all differences of the rows, as `solve_design` gives it.

    The problem of a pool of rows is solved in memory. A pass then finds the rows of the largest price, which give the
    lower bound, and those of the largest radius, among which the farthest pair is; they join the pool.

    Raises:
        InvalidInput: the rows of the pool do not span all directions to rounding.
        NotConverged: the tolerance was not met within 12 passes; carries the best design and its gap.

    Source: ours (docs/design-solver.md, lines 12 and 13).
    Cost: a pass for the moments, one for the first pool, and one a round, O(K (D r + r^2)) time each. In memory the
        pool, and 32,768 rows whose pairs are compared.
    """
    began, found = len(passes.meter.passes), moments(passes)
    seen = directions(passes, found)
    white = _White(seen, unit_factor(seen.information))
    centre = white.of(found.mean[None])[0, :-1]
    pool, best, lower = _first_pool(passes, white, centre), None, 0.0
    for _ in range(MOST_PASSES):
        points = white.of(passes.rows.take(pool))[:, :-1]
        if not np.ptp(points, axis=0).any():  # so all rows coincide: one of them is farthest from the centre
            row, made = pool[:1], len(passes.meter.passes) - began
            return DesignOfRows(row, passes.rows.take(row), np.ones(1), 0.0, 0.0, len(centre), exact=True, passes=made)
        inner = _of_pool(points, centre, tolerance, max_steps)
        forms = (inner.prices, inner.radii)
        priced, front = largest(passes, white, factors=forms, floors=inner.least, most=FRONT, name="design")
        lower = max(lower, _bound(inner, priced, _rounding(white, points)))
        value, reached, ends = _farthest(passes, white, inner, front, enough=(1.0 + tolerance) * lower)
        if best is None or value < best.value:
            rows = pool[inner.rows]
            rank = len(centre)
            best = DesignOfRows(rows, passes.rows.take(rows), inner.weights, value, lower, rank, exact=value == reached)
        best = replace(best, lower_bound=min(lower, best.value), passes=len(passes.meter.passes) - began)
        if best.gap <= tolerance:
            return best
        if len(front.rows) == FRONT and reached <= (1.0 + tolerance) * lower:
            break  # too many rows may belong to the farthest pair; more passes would not show that none does
        pool = np.unique(np.concatenate([pool, priced.rows[:HEURISTIC_POOL], ends]))
    gap = np.inf if best is None else best.gap
    raise NotConverged(
        f"design gap {gap:.2%} > tolerance {tolerance:.2%} after {len(passes.meter.passes) - began} passes over "
        f"{passes.rows.num_rows:,} rows. Raise tolerance, or accept .best, whose value and bound hold.",
        best=best,
        gap=gap,
    )


def _first_pool(passes: Passes, white: _White, centre: FloatArray) -> IntArray:
    """The rows that are longest, those that are farthest from the centre, and some of all, evenly."""
    same = np.eye(len(centre))
    forms = tuple(np.vstack([same, -point]) for point in (np.zeros(len(centre)), centre))
    found = largest(passes, white, factors=forms, most=HEURISTIC_POOL, name="design")
    some = np.linspace(0, passes.rows.num_rows - 1, HEURISTIC_POOL).astype(np.int64)
    return np.unique(np.concatenate([some, *(one.rows for one in found)]))


def _of_pool(points: FloatArray, centre: FloatArray, tolerance: float, max_steps: int) -> _OfPool:
    """What the pool's own problem gives, for its rows in white coordinates, shape (m, r)."""
    problem = pose(points, None, rank_tolerance=None)
    objective = Objective(problem)
    found = iterated(objective, goal=INNER_SHARE * tolerance, max_steps=max_steps)
    weights = on_few_arms(objective, found, tolerance=SPARSE_SHARE * tolerance)
    kept, bounding = np.flatnonzero(weights), found.bounding
    kept = kept[np.argsort(problem.first[kept])]
    rows = problem.first[kept]
    inverse = unit_factor(information(points[rows], weights[kept]))
    other = unit_factor(information(points[problem.first[bounding.arms]], bounding.weights))
    ends = points[problem.first[bounding.pairs[:, 0]]] - points[problem.first[bounding.pairs[:, 1]]]
    ends = ends @ other * np.sqrt(bounding.multipliers)[:, None]
    spectrum = symmetric_spectrum(ends.T @ ends)
    prices = other @ (spectrum.vectors * np.sqrt(np.maximum(spectrum.values, 0.0)))
    radius = float(row_norms((points - centre) @ inverse).max())
    inside = max(np.sqrt(objective.value(weights)) * (1.0 - CLEARLY) - radius, 0.0)
    return _OfPool(
        rows,
        weights[kept],
        np.vstack([prices, np.zeros(len(centre))]),
        float(row_squares(ends).sum()),
        np.vstack([inverse, -centre @ inverse]),
        (float(row_squares(points @ prices).max()) * (1.0 - PRICE_SAFETY), inside**2),
    )


def _rounding(white: _White, points: FloatArray) -> float:
    """What rounding of the coordinates may be of the longest difference."""
    longest = float(np.ptp(points, axis=0).max())
    return EPS * (white.rank + 8) * white.longest / longest if longest > 0.0 else 0.0


def _bound(inner: _OfPool, priced: Largest, rounding: float) -> float:
    """The lower bound of the pool's multipliers, for the prices of all rows."""
    most = max(float(priced.values.max(initial=0.0)), inner.least[0])
    return less_rounding(inner.trace * (inner.trace / most) * (1.0 - PRICE_SAFETY), rounding) if most > 0.0 else 0.0


def _farthest(
    passes: Passes, white: _White, inner: _OfPool, front: Largest, *, enough: float
) -> tuple[float, float, IntArray]:
    """(a bound on all squared distances, the largest one that was found, rows of far pairs).

    A pair with a row beyond the front is at most rho, the smallest radius on it, and the radius of the other apart.
    Where that is too much and those on the front are near `enough`, the longest are compared with all rows in a pass.
    """
    rows = np.sort(front.rows)
    compared = white.of(passes.rows.take(rows)) @ inner.radii
    first = equal_rows(compared).first
    ends, points = rows[first], compared[first]
    pairs = farthest_pairs(points, least=HEURISTIC_POOL // 2) if len(ends) > 1 else None
    reached = 0.0 if pairs is None else float(pairs.squares[0])
    ends = ends[:0] if pairs is None else ends[np.unique(ends_of(pairs))]
    if len(rows) == passes.rows.num_rows:
        return reached, reached, ends
    radii, full = np.sqrt(front.values), len(rows) == FRONT
    rho = float(radii[-1]) if full else np.sqrt(inner.least[1])
    beyond = ((float(radii[0]) + rho) * (1.0 + PRICE_SAFETY)) ** 2
    if not full or beyond <= enough or reached > enough:
        return max(reached, beyond), reached, ends
    hot = front.rows[:HOT][radii[:HOT] + rho > np.sqrt(reached) * (1.0 - PRICE_SAFETY)]
    rest = ((float(radii[min(len(hot), len(radii) - 1)]) + rho) * (1.0 + PRICE_SAFETY)) ** 2
    if rest > enough:
        return beyond, reached, ends
    longest = compared[np.searchsorted(rows, hot)]
    band = (float(np.sqrt(reached) - radii[0]), rho * (1.0 + PRICE_SAFETY))
    found = passes.map_reduce("farthest", partial(_from_longest, white, inner.radii, longest, band), Largest.plus)
    met = float(found.values.max(initial=0.0)) * (1.0 + PRICE_SAFETY)
    return max(reached, rest, met), max(reached, met), np.concatenate([ends, found.rows, hot])


def _from_longest(
    white: _White, form: FloatArray, longest: FloatArray, band: tuple[float, float], rows: FloatArray, first: int
) -> Largest:
    """The rows of a block whose radius is in the band that are farthest from the longest ones, shape (h, r)."""
    found = []
    for top in range(0, len(rows), PIECE):
        points = white.of(rows[top : top + PIECE]) @ form
        squares = row_squares(points)
        there = np.flatnonzero((squares >= max(band[0], 0.0) ** 2) & (squares <= band[1] ** 2))
        products = points[there] @ longest.T
        far = (row_squares(longest) - 2.0 * products).max(axis=1, initial=-np.inf) + squares[there]
        kept = Largest.of(far, 0, FAR)
        found.append(Largest(kept.values, first + top + there[kept.rows], FAR))
    return reduce(Largest.plus, found)
