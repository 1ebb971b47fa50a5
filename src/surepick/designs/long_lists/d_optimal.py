"""The D-optimal design of rows too many for memory: few of them, with the value for all."""

from __future__ import annotations

import numpy as np

from surepick.blocks.map_reduce import Passes
from surepick.blocks.moments import Coordinates
from surepick.blocks.search import largest
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.errors import InvalidInput, NotConverged
from surepick.linalg.factorisations import cholesky, inverse_factor, row_squares, solve_rows

HEURISTIC_POOL = 2048  # rows that a pass brings
MOST_STEPS = 5000
HEURISTIC_LEAST = 1e-4  # of the largest weight: what is less is dropped
HEURISTIC_SHARES = (0.3, 0.1, 0.03, 0.01)  # of the largest weight: what is less is left out, if the value allows it
MOST_PASSES = 12


@record
class SparseDesign:
    """A design on few of many rows.

    Args:
        rows: their numbers, ascending, shape (p,).
        features: u = x V, shape (p, r).
        weights: positive, sum 1, shape (p,).
        value: max over all K rows of u'A^-1 u, A = sum_i weight_i u_i u_i'.
        pool: rows that were looked at, ascending, shape (m,): the longest in A^-1, for designs of other kinds.
        pool_features: shape (m, r).
    """

    rows: IntArray
    features: FloatArray
    weights: FloatArray
    value: float
    pool: IntArray
    pool_features: FloatArray

    @property
    def lower_bound(self) -> float:
        """r: no design has a smaller value (Kiefer and Wolfowitz 1960)."""
        return float(self.features.shape[1])

    @property
    def gap(self) -> float:
        """(value - bound) / bound."""
        return self.value / self.lower_bound - 1.0


def d_optimal(passes: Passes, where: Coordinates, *, tolerance: float = 0.05) -> SparseDesign:
    """The weights that minimise max over all rows of u'A^-1 u, A = sum lambda_i u_i u_i', to a proven gap.

    The rows that are longest in A^-1 join a pool, and the design of the pool is solved anew, until a pass finds no row
    that is longer than (1 + tolerance) r. At most r(r+1)/2 + 1 rows would do; a few more have weight.

    Args:
        passes: over the rows.
        where: the directions in which the rows are seen.
        tolerance: of the value.

    Raises:
        InvalidInput: the rows that are longest do not span all directions to rounding.
        NotConverged: the tolerance was not met within 12 passes.

    Source: Kiefer and Wolfowitz (1960) for the bound; Titterington (1976) for the steps; the passes are ours.
    Cost: a pass a round, 3 to 6 as a rule; a pool of at most 12 times 2,048 rows in memory.
    """
    unit, pool, features = unit_factor(where.information), np.empty(0, np.int64), np.empty((0, where.rank))
    design, value = None, np.inf
    for _ in range(MOST_PASSES):
        (found,) = largest(passes, where, factors=(unit,), most=HEURISTIC_POOL, name="design")
        if design is not None:
            value = float(found.values[0])
            if value <= (1.0 + tolerance) * where.rank:
                return SparseDesign(pool[design.rows], features[design.rows], design.weights, value, pool, features)
        pool = np.union1d(pool, found.rows)
        features = where.of(passes.rows.take(pool))
        design = _solved(features, 0.3 * tolerance)
        unit = unit_factor((features[design.rows].T * design.weights) @ features[design.rows])
    raise NotConverged(
        f"design gap {value / where.rank - 1.0:.2%} > tolerance {tolerance:.2%} after {MOST_PASSES} passes over "
        f"{passes.rows.num_rows:,} rows. Raise tolerance: the design costs pulls, never validity.",
        best=None,
        gap=value / where.rank - 1.0,
    )


@record
class _OfPool:
    rows: IntArray
    weights: FloatArray


def unit_factor(matrix: FloatArray) -> FloatArray:
    """F with F F' = matrix^-1, shape (r, r): F'u are rows in coordinates in which the matrix is I.

    Raises:
        InvalidInput: the matrix is singular to rounding.
    """
    factor = inverse_factor(matrix)
    if factor is None:
        raise InvalidInput(
            "the features are dependent to rounding: drop columns that are sums of others. A search for the best one "
            "also takes max_rank, the directions that are kept."
        )
    return factor


def _solved(features: FloatArray, tolerance: float) -> _OfPool:
    """The design of rows in memory, on few of them: the lightest are left out where the value allows it."""
    found = _stepped(features, np.arange(len(features)), None, tolerance)
    for share in HEURISTIC_SHARES:
        heavy = found.weights >= share * found.weights.max()
        if np.count_nonzero(heavy) < features.shape[1] or heavy.all():
            continue
        fewer = _stepped(features, found.rows[heavy], found.weights[heavy], tolerance)
        if _value(features, fewer) <= (1.0 + 2.0 * tolerance) * features.shape[1]:
            return fewer
    return found


def _value(features: FloatArray, design: _OfPool) -> float:
    used = features[design.rows]
    factor = cholesky((used.T * design.weights) @ used)
    return np.inf if factor is None else float(row_squares(solve_rows(factor, features)).max())


def _stepped(features: FloatArray, rows: IntArray, weights: FloatArray | None, tolerance: float) -> _OfPool:
    """The design of some rows by multiplicative steps, those that cannot have weight dropped on the way."""
    rank = features.shape[1]
    weights = np.full(len(rows), 1.0 / len(rows)) if weights is None else weights / weights.sum()
    for step in range(MOST_STEPS):
        used = features[rows]
        factor = cholesky((used.T * weights) @ used)
        if factor is None:
            break
        lengths = row_squares(solve_rows(factor, used))
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
    return _OfPool(rows[kept], weights[kept] / weights[kept].sum())
