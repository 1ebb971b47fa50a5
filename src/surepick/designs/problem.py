"""The design problem as the solver sees it: distinct arms, in whitened coordinates.

Every exact simplification happens here, once: equal rows are merged, columns rescaled, redundant directions removed.
The value of a design is invariant under all of them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from surepick.equal_rows import EqualRows, equal_rows
from surepick.errors import InvalidInput
from surepick.linalg import Whitened, images, whitened
from surepick.records import FloatArray, IntArray, record


@record
class Problem:
    """Distinct arms in whitened coordinates, and the points that are compared.

    Args:
        basis: Z, shape (k, r), one row a distinct arm, Z'Z = k I: what can be measured.
        points: what can be compared, in the same coordinates: `basis`, or `basis` followed by other points.
        active: rows of `points` that are compared with each other, sorted, unique.
        group: for each of the K arms, its row in `basis`, shape (K,).
        first: for each row of `basis`, the first of the K arms that it stands for, shape (k,).
        condition: of the whitening; the coordinates are exact to about condition * machine epsilon.
        opposite: the active points are p_1, ..., p_m, -p_1, ..., -p_m in this order.
    """

    basis: FloatArray
    points: FloatArray
    active: IntArray
    group: IntArray
    first: IntArray
    condition: float
    opposite: bool = False

    @property
    def rank(self) -> int:
        return int(self.basis.shape[1])

    def spread(self, weights: FloatArray) -> FloatArray:
        """Weights of the distinct arms as weights of all K arms: the first of equal arms carries the weight."""
        full = np.zeros(len(self.group))
        full[self.first] = weights
        return full

    def merged(self, weights: FloatArray) -> FloatArray:
        """Weights of the K arms as weights of the distinct ones: those of equal arms are added."""
        merged: FloatArray = np.bincount(self.group, weights, len(self.first)).astype(np.float64, copy=False)
        return merged


def normalised(weights: FloatArray) -> FloatArray:
    """The weights divided by their sum."""
    shares: FloatArray = weights / weights.sum()
    return shares


def checked_features(features: ArrayLike) -> FloatArray:
    """Features as a (K, d) array of finite floats.

    Raises:
        InvalidInput: wrong shape, no arm, or entries that are NaN or infinite (the rows are named).
    """
    try:
        matrix = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"features are not a numeric (K, d) array: {error}.") from error
    if matrix.ndim != 2:
        raise InvalidInput(f"features have shape {matrix.shape}; they must be (K, d), one row an arm.")
    if matrix.shape[0] == 0:
        raise InvalidInput("there is no arm (K = 0); no design exists.")
    bad = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad.size:
        rows = ", ".join(str(row) for row in bad[:5]) + (f" and {bad.size - 5} more" if bad.size > 5 else "")
        raise InvalidInput(
            f"{bad.size} of {matrix.shape[0]} rows have NaN or infinite features: rows {rows}. Fill or drop them."
        )
    return matrix


def checked_active(active: ArrayLike | None, num_arms: int) -> IntArray:
    """Active arms as sorted indices, from indices, a boolean mask or None (all).

    Raises:
        InvalidInput: none is active, an index is out of range or repeated, or the mask has the wrong length.
    """
    if active is None:
        return np.arange(num_arms, dtype=np.int64)
    chosen = np.asarray(active)
    if chosen.ndim != 1:
        raise InvalidInput(f"active has shape {chosen.shape}; it must be a list of indices or a mask of length K.")
    if chosen.size == 0:
        raise InvalidInput("no arm is active; a design compares at least one arm with the others.")
    if chosen.dtype == np.bool_:
        if len(chosen) != num_arms:
            raise InvalidInput(f"the active mask has {len(chosen)} entries for {num_arms} arms.")
        chosen = np.flatnonzero(chosen)
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
    """Weights as a (K,) array of finite non-negative floats that are not all zero.

    Raises:
        InvalidInput: they are not.
    """
    lam = np.asarray(weights, dtype=np.float64)
    if lam.shape != (num_arms,):
        raise InvalidInput(f"weights have shape {lam.shape}; they must be ({num_arms},), one weight an arm.")
    if not np.isfinite(lam).all() or lam.min(initial=0.0) < 0:
        arm = int(np.flatnonzero(~(np.isfinite(lam) & (lam >= 0)))[0])
        raise InvalidInput(f"the weight of arm {arm} is {lam[arm]}; weights must be finite and non-negative.")
    if not lam.any():
        raise InvalidInput("all weights are zero; a design measures at least one arm.")
    return lam


def pose(features: ArrayLike, active: ArrayLike | None, *, rank_tolerance: float | None) -> Problem:
    """The problem of measuring the differences of the active arms by pulls of any arm.

    Raises:
        InvalidInput: as `checked_features` and `checked_active`.
    """
    matrix = checked_features(features)
    chosen = checked_active(active, matrix.shape[0])
    classes = equal_rows(matrix)
    white = whitened(_distinct(matrix, classes), rank_tolerance=rank_tolerance)
    active = chosen if classes.none else np.unique(classes.group[chosen])
    return Problem(white.basis, white.basis, active, classes.group, classes.first, white.condition)


def pose_targets(
    features: FloatArray, targets: FloatArray, *, span_tolerance: float, rank_tolerance: float | None
) -> Problem:
    """The problem of measuring m given vectors by pulls of the arms.

    The points +y_j / 2 and -y_j / 2 are compared: a difference of two of them is the mean of two vectors +-y, so by
    convexity none is longer than the longest y.

    Args:
        features: shape (K, d), checked.
        targets: y, shape (m, d), checked.
        span_tolerance: the share of a target that may lie outside the span of the arms.

    Raises:
        InvalidInput: a target lies outside the span of the arms.
    """
    classes = equal_rows(features)
    arms = _distinct(features, classes)
    white = whitened(arms, rank_tolerance=rank_tolerance)
    imaged = images(arms, white, targets)
    beyond = np.flatnonzero(imaged.outside > span_tolerance)
    if beyond.size:
        raise InvalidInput(
            f"{beyond.size} of {len(targets)} targets lie outside the span of the arms (target {beyond[0]} by "
            f"{imaged.outside[beyond[0]]:.2g} of its length): no number of pulls measures them, the value is infinite. "
            "Give combinations of the arms' features, or raise span_tolerance if rounding is to blame."
        )
    return _compared(white, classes, imaged.rows)


def pose_star(
    features: FloatArray,
    centre: int,
    scales: FloatArray,
    *,
    rank_tolerance: float | None,
    rivals: IntArray | None = None,
    noise_scales: FloatArray | None = None,
) -> Problem:
    """As `pose_targets` for y_j = (x_c - x_j) / w_j, formed in whitened coordinates: in the span by construction.

    With noise scales v the arms are measured as x / v: a pull of arm x informs on x x' / v_x^2.

    Args:
        features: shape (K, d), checked.
        centre: c.
        scales: w, positive, shape (K,).
        rivals: indices of the arms j; None = all.
        noise_scales: v, positive, shape (K,); None = 1 for all.
    """
    measured = features if noise_scales is None else features / noise_scales[:, None]
    stretch = np.ones(len(features)) if noise_scales is None else noise_scales
    compared = np.arange(len(features)) if rivals is None else rivals
    classes = equal_rows(measured)
    white = whitened(_distinct(measured, classes), rank_tolerance=rank_tolerance)
    own = stretch[centre] * white.basis[classes.group[centre]]
    vectors = own - stretch[compared, None] * white.basis[classes.group[compared]]
    return _compared(white, classes, vectors / scales[compared, None])


def _distinct(matrix: FloatArray, classes: EqualRows) -> FloatArray:
    """The rows without their repetitions; the matrix itself where there are none."""
    return matrix if classes.none else matrix[classes.first]


def _compared(white: Whitened, classes: EqualRows, vectors: FloatArray) -> Problem:
    """The problem whose compared points are plus and minus half of each distinct vector."""
    halves = 0.5 * vectors[equal_rows(vectors).first]
    points = np.concatenate([white.basis, halves, -halves])
    active = np.arange(len(white.basis), len(points), dtype=np.int64)
    return Problem(white.basis, points, active, classes.group, classes.first, white.condition, opposite=True)
