"""What every estimator gives to the rules that eliminate and stop."""

from __future__ import annotations

from typing import Protocol

from surepick.core.arrays import BoolArray, FloatArray, IntArray


class Estimate(Protocol):
    """Scores of all arms, and how uncertain their differences are.

    For arms a, b the error of scores[a] - scores[b] as an estimate of h(a) - h(b) is, given the counts,
    sub-Gaussian with scale sigma * distances(a, b), plus a bias of at most
    misspecification * (2 + sqrt(total) * distances(a, b)).
    """

    @property
    def scores(self) -> FloatArray:
        """Shape (K,), in reward units; meaningful up to one common constant."""
        ...

    @property
    def comparable(self) -> BoolArray:
        """Shape (K,): whose differences to one another the pulls can estimate at all."""
        ...

    @property
    def total(self) -> int:
        """N, the pulls behind the estimate."""
        ...

    def distances(self, left: IntArray, right: IntArray) -> FloatArray:
        """||z_a - z_b|| in A(n)^-1 for a in left, b in right, shape (len(left), len(right)), rounded up."""
        ...
