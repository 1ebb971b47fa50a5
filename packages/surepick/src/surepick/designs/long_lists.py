"""The optimal design for all differences of rows too many for memory: a pool, and passes that price the rest."""

from dataclasses import replace
from functools import partial, reduce

import numpy as np

from surepick.chunks.moments import EPS, PIECE, Coordinates, Largest, directions, largest_rows, moments
from surepick.chunks.passes import Passes
from surepick.core.plans import DesignOfRows
from surepick.core.records import FloatArray, IntArray, record
from surepick.designs.column_generation import iterated
from surepick.designs.objective import Objective, ends_of, information
from surepick.designs.pricing import PRICE_SAFETY, less_rounding
from surepick.designs.problem import pose
from surepick.designs.rounding import on_few_arms
from surepick.errors import InvalidInput, NotConverged
from surepick.linalg import factorisations
from surepick.linalg.farthest_pairs import farthest_pairs
from surepick.linalg.rows import equal_rows

# --- The D-optimal design of rows too many for memory: few of them, with the value for all.

HEURISTIC_POOL_OF_PASS = 2048  # rows that a pass brings
MOST_STEPS = 5000
HEURISTIC_LEAST = 1e-4  # of the largest weight: what is less is dropped
HEURISTIC_SHARES = (0.3, 0.1, 0.03, 0.01)  # of the largest weight: what is less is left out, if the value allows it
MOST_PASSES = 12


@record
class SparseDesign:
    """A design on few of many rows."""

    rows: IntArray  # their numbers, ascending, (p,)
    features: FloatArray  # u = x V, (p, r)
    weights: FloatArray  # positive, sum 1, (p,)
    value: float  # max over all K rows of u'A^-1 u, A = sum_i weight_i u_i u_i'

    @property
    def lower_bound(self) -> float:
        """r: no design has a smaller value (Kiefer and Wolfowitz 1960)."""
        return float(self.features.shape[1])

    @property
    def gap(self) -> float:
        """(value - bound) / bound."""
        return self.value / self.lower_bound - 1.0


def d_optimal(passes: Passes, where: Coordinates, *, tolerance: float = 0.05) -> SparseDesign:
    """The weights that minimise max over all rows of u'A^-1 u, A = sum lambda_i u_i u_i', to a proven gap. The rows
    that are longest in A^-1 join a pool, whose design is solved anew, until a pass finds no row that is longer than (1
    + tolerance) r. Bound: Kiefer and Wolfowitz (1960); steps: Titterington (1976); the passes are ours."""
    unit, pool, features = unit_factor(where.information), np.empty(0, np.int64), np.empty((0, where.rank))
    kept, weights, value = np.empty(0, np.int64), np.empty(0), np.inf
    for _ in range(MOST_PASSES):
        (found,) = largest_rows(passes, where.of, factors=(unit,), most=HEURISTIC_POOL_OF_PASS, name="design")
        if len(kept):
            value = float(found.values[0])
            if value <= (1.0 + tolerance) * where.rank:
                return SparseDesign(pool[kept], features[kept], weights, value)
        pool = np.union1d(pool, found.rows)
        features = where.of(passes.rows.take(pool))
        kept, weights = _solved(features, 0.3 * tolerance)
        unit = unit_factor((features[kept].T * weights) @ features[kept])
    raise NotConverged(
        f"design gap {value / where.rank - 1.0:.2%} > tolerance {tolerance:.2%} after {MOST_PASSES} passes over "
        f"{passes.rows.num_rows:,} rows. Raise tolerance: the design costs pulls, never validity.",
        best=None,
        gap=value / where.rank - 1.0,
    )


def unit_factor(matrix: FloatArray) -> FloatArray:
    """F with F F' = matrix^-1, shape (r, r): F'u are rows in coordinates in which the matrix is I."""
    factor = factorisations.inverse_factor(matrix)
    if factor is None:
        raise InvalidInput(
            "the features are dependent to rounding: drop columns that are sums of others. A search for the best one "
            "also takes max_rank, the directions that are kept."
        )
    return factor


def _solved(features: FloatArray, tolerance: float) -> tuple[IntArray, FloatArray]:
    """(rows, weights) of the design in memory: the lightest rows are left out where the value allows it."""
    rows, weights = _stepped(features, np.arange(len(features)), None, tolerance)
    for share in HEURISTIC_SHARES:
        heavy = weights >= share * weights.max()
        if np.count_nonzero(heavy) < features.shape[1] or heavy.all():
            continue
        fewer = _stepped(features, rows[heavy], weights[heavy], tolerance)
        if _value(features, *fewer) <= (1.0 + 2.0 * tolerance) * features.shape[1]:
            return fewer
    return rows, weights


def _value(features: FloatArray, rows: IntArray, weights: FloatArray) -> float:
    used = features[rows]
    factor = factorisations.cholesky((used.T * weights) @ used)
    if factor is None:
        return np.inf
    return float(factorisations.row_squares(factorisations.solve_rows(factor, features)).max())


def _stepped(
    features: FloatArray, rows: IntArray, weights: FloatArray | None, tolerance: float
) -> tuple[IntArray, FloatArray]:
    """(rows, weights) of the design of some rows by multiplicative steps, which drop those that cannot have weight."""
    rank = features.shape[1]
    weights = np.full(len(rows), 1.0 / len(rows)) if weights is None else weights / weights.sum()
    for step in range(MOST_STEPS):
        used = features[rows]
        factor = factorisations.cholesky((used.T * weights) @ used)
        if factor is None:
            break
        lengths = factorisations.row_squares(factorisations.solve_rows(factor, used))
        largest_length = float(lengths.max())
        if largest_length <= (1.0 + tolerance) * rank:
            break
        weights = weights * lengths / rank
        if step % 20 == 19:
            excess = largest_length / rank - 1.0  # Harman and Pronzato (2007): a row shorter than this has no weight
            bound = rank * (1.0 + excess / 2.0 - np.sqrt(excess * (4.0 + excess - 4.0 / rank)) / 2.0)
            kept = (lengths >= bound) | (weights >= HEURISTIC_LEAST * weights.max())
            rows, weights = rows[kept], weights[kept]
        weights = weights / weights.sum()
    kept = weights >= HEURISTIC_LEAST * weights.max()
    return rows[kept], weights[kept] / weights[kept].sum()


HEURISTIC_PAIR_POOL = 2048  # rows that a pass brings for their price, and pairs for their distance
FRONT = 32_768  # rows that are compared with each other, those of the largest radius
HOT = 2048  # of these, rows that are compared with all others
FAR = 64  # rows that such a comparison brings
MOST_PAIR_PASSES = 12
CLEARLY = 1e-8  # relative; what rounding makes of a radius is far less
INNER_SHARE, SPARSE_SHARE = 0.2, 0.5  # of the tolerance, for the pool


@record
class _White:
    """Coordinates in which the rows are isotropic, and a 1: a linear function of these is one of z - c."""

    seen: Coordinates  # the directions of the rows
    unit: FloatArray  # F with F F' = (sum u u' / K)^-1, z = F'u

    @property
    def rank(self) -> int:
        return len(self.unit) + 1

    @property
    def longest(self) -> float:
        return self.seen.longest * float(np.linalg.norm(self.unit)) + 1.0

    def of(self, rows: FloatArray) -> FloatArray:
        seen = self.seen.of(rows) @ self.unit
        return np.column_stack([seen, np.ones(len(seen))])


@record
class _PairsOfPool:
    """The design of the pool, and what a pass asks of all rows."""

    rows: IntArray  # of the pool with weight, (p,)
    weights: FloatArray  # theirs, sum 1
    prices: FloatArray  # P, (r + 1, r): the price z'M z of a row is ||P'(z, 1)||^2
    trace: float  # tr(W), so that tau >= tr(W)^2 / max z'M z
    radii: FloatArray  # (r + 1, r): the radius ||L^-1 (z - c)|| of a row is the length of its product with (z, 1)
    # a price that a row of the pool has; and a squared radius: no row of a smaller one belongs to a pair as far as the
    # farthest of the pool, unless there is a larger radius than those of the pool
    least: tuple[float, float]


def design_of_rows(passes: Passes, *, tolerance: float, max_steps: int) -> DesignOfRows:
    """The design for all differences of the rows, as `solve_design` gives it (docs/design-solver.md, lines 12, 13)."""
    began, found = len(passes.meter.passes), moments(passes)
    seen = directions(passes, found)
    white = _White(seen, unit_factor(seen.information))
    centre = white.of(found.mean[None])[0, :-1]
    pool, best, lower = _first_pool(passes, white, centre), None, 0.0
    for _ in range(MOST_PAIR_PASSES):
        points = white.of(passes.rows.take(pool))[:, :-1]
        if not np.ptp(points, axis=0).any():  # so all rows coincide: one of them is farthest from the centre
            row, made = pool[:1], len(passes.meter.passes) - began
            return DesignOfRows(row, passes.rows.take(row), np.ones(1), 0.0, 0.0, len(centre), exact=True, passes=made)
        inner = _of_pool(points, centre, tolerance, max_steps)
        forms = (inner.prices, inner.radii)
        priced, front = largest_rows(passes, white.of, factors=forms, floors=inner.least, most=FRONT, name="design")
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
        pool = np.unique(np.concatenate([pool, priced.rows[:HEURISTIC_PAIR_POOL], ends]))
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
    found = largest_rows(passes, white.of, factors=forms, most=HEURISTIC_PAIR_POOL, name="design")
    some = np.linspace(0, passes.rows.num_rows - 1, HEURISTIC_PAIR_POOL).astype(np.int64)
    return np.unique(np.concatenate([some, *(one.rows for one in found)]))


def _of_pool(points: FloatArray, centre: FloatArray, tolerance: float, max_steps: int) -> _PairsOfPool:
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
    spectrum = factorisations.symmetric_spectrum(ends.T @ ends)
    prices = other @ (spectrum.vectors * np.sqrt(np.maximum(spectrum.values, 0.0)))
    radius = float(factorisations.row_norms((points - centre) @ inverse).max())
    inside = max(np.sqrt(objective.value(weights)) * (1.0 - CLEARLY) - radius, 0.0)
    return _PairsOfPool(
        rows,
        weights[kept],
        np.vstack([prices, np.zeros(len(centre))]),
        float(factorisations.row_squares(ends).sum()),
        np.vstack([inverse, -centre @ inverse]),
        (float(factorisations.row_squares(points @ prices).max()) * (1.0 - PRICE_SAFETY), inside**2),
    )


def _rounding(white: _White, points: FloatArray) -> float:
    """What rounding of the coordinates may be of the longest difference."""
    longest = float(np.ptp(points, axis=0).max())
    return EPS * (white.rank + 8) * white.longest / longest if longest > 0.0 else 0.0


def _bound(inner: _PairsOfPool, priced: Largest, rounding: float) -> float:
    """The lower bound of the pool's multipliers, for the prices of all rows."""
    most = max(float(priced.values.max(initial=0.0)), inner.least[0])
    return less_rounding(inner.trace * (inner.trace / most) * (1.0 - PRICE_SAFETY), rounding) if most > 0.0 else 0.0


def _farthest(
    passes: Passes, white: _White, inner: _PairsOfPool, front: Largest, *, enough: float
) -> tuple[float, float, IntArray]:
    """(a bound on all squared distances, the largest one found, rows of far pairs) (docs/design-solver.md, line 13)."""
    rows = np.sort(front.rows)
    compared = white.of(passes.rows.take(rows)) @ inner.radii
    first = equal_rows(compared).first
    ends, points = rows[first], compared[first]
    pairs = farthest_pairs(points, least=HEURISTIC_PAIR_POOL // 2) if len(ends) > 1 else None
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
        squares = factorisations.row_squares(points)
        there = np.flatnonzero((squares >= max(band[0], 0.0) ** 2) & (squares <= band[1] ** 2))
        products = points[there] @ longest.T
        far = (factorisations.row_squares(longest) - 2.0 * products).max(axis=1, initial=-np.inf) + squares[there]
        kept = Largest.of(far, 0, FAR)
        found.append(Largest(kept.values, first + top + there[kept.rows], FAR))
    return reduce(Largest.plus, found)
