"""Vectors of the arms, and how often to measure each."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record


@record
class Embedding:
    """Arms as vectors; the mean reward is nearly a linear function of them.

    Args:
        features: psi_d, shape (K, d).
        misspecification: gamma-tilde(d) >= |h(x) - <psi_d(x), theta_d>| for every arm, in reward units.
    """

    features: FloatArray
    misspecification: float

    def __post_init__(self) -> None:
        freeze(self, features=np.float64)

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])


@record
class IndependentArms:
    """Arms without structure: one parameter an arm, misspecification 0.

    The features are the K x K identity, formed only when somebody asks for them; design and estimation use the
    diagonal form.
    """

    num_arms: int

    @property
    def misspecification(self) -> float:
        return 0.0

    @property
    def dim(self) -> int:
        return self.num_arms

    @property
    def features(self) -> FloatArray:
        return np.eye(self.num_arms)


@record
class Design:
    """Weights over the arms that say where to measure, with a certificate of their quality.

    Args:
        weights: lambda, shape (K,), non-negative, sum 1.
        value: max over pairs of active arms of ||x_a - x_b||^2 in A(weights)^-1, of *these* weights.
        lower_bound: no design has a smaller value.
        rank: dimension of the span of the arms' features, as the solver saw it.
    """

    weights: FloatArray
    value: float
    lower_bound: float
    rank: int

    def __post_init__(self) -> None:
        freeze(self, weights=np.float64)

    @property
    def gap(self) -> float:
        """value / lower_bound - 1: how far from optimal these weights can be at most."""
        return _gap(self.value, self.lower_bound)


@record
class DesignOfRows:
    """A design on few of many rows, with a certificate of its quality for all of them.

    Args:
        rows: their numbers, ascending, shape (p,).
        features: x, shape (p, D).
        weights: lambda, shape (p,), positive, sum 1.
        value: at least max over all pairs of the K rows of ||x_a - x_b||^2 in A(weights)^-1, of *these* weights.
        lower_bound: no design on any of the K rows has a smaller value.
        rank: dimension of the span of the rows, as the solver saw it.
        exact: some pair has that value; if not, it is a bound, because too many rows may belong to the farthest pair.
        passes: over all rows, until the gap was proved.
    """

    rows: IntArray
    features: FloatArray
    weights: FloatArray
    value: float
    lower_bound: float
    rank: int
    exact: bool
    passes: int = 0

    def __post_init__(self) -> None:
        freeze(self, rows=np.int64, features=np.float64, weights=np.float64)

    @property
    def gap(self) -> float:
        """value / lower_bound - 1: how far from optimal these weights can be at most."""
        return _gap(self.value, self.lower_bound)


def _gap(value: float, lower_bound: float) -> float:
    if value == lower_bound:
        return 0.0
    return value / lower_bound - 1.0 if lower_bound > 0 else float("inf")


@record
class Allocation:
    """A design rounded to whole pulls.

    Args:
        counts: n, shape (K,), non-negative integers.
        total: N, their sum (it may exceed what was asked, to keep the rounding promise).
        value: N times the largest ||x_a - x_b||^2 in A(n)^-1 over pairs of active arms: comparable to the design's.
    """

    counts: IntArray
    total: int
    value: float

    def __post_init__(self) -> None:
        freeze(self, counts=np.int64)
