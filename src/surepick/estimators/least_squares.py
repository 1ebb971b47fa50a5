"""Least squares on one batch with fixed counts (Algorithm 1, line 9)."""

from __future__ import annotations

import numpy as np

from surepick.linalg import weighted_range, whitened
from surepick.records import BoolArray, Embedding, FloatArray, IntArray, Observations, freeze, record

RANGE_TOLERANCE = 1e-7


@record
class LeastSquaresEstimate:
    """theta-hat = A^-1 b of one batch, in coordinates where A(n) is the identity.

    Args:
        scores: <z_x, theta-hat>, shape (K,), in reward units; differences of comparable arms are meaningful.
        coordinates: u_x, shape (K, r), with ||z_a - z_b||_{A(n)^-1} = ||u_a - u_b||.
        comparable: shape (K,), True where z_x - z_reference lies in the range of A(n).
        total: N.
        relative_error: the coordinates are exact to this share of their length.
    """

    scores: FloatArray
    coordinates: FloatArray
    comparable: BoolArray
    total: int
    relative_error: float

    def __post_init__(self) -> None:
        freeze(self, scores=np.float64, coordinates=np.float64, comparable=np.bool_)

    def distances(self, left: IntArray, right: IntArray) -> FloatArray:
        """||u_a - u_b|| by the Gram identity, plus bounds on the rounding of the identity and of the coordinates.

        Cost: one matrix product, len(left) x len(right) memory.
        """
        centre = self.coordinates[right[0]] if len(right) else 0.0
        a, b = self.coordinates[left] - centre, self.coordinates[right] - centre
        lengths = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1)[None, :]
        rounding = 4.0 * (a.shape[1] + 4) * np.finfo(np.float64).eps * lengths
        squared = np.maximum(lengths - 2.0 * (a @ b.T), 0.0) + rounding
        lengths_left, lengths_right = (np.sqrt(np.sum(self.coordinates[rows] ** 2, axis=1)) for rows in (left, right))
        distances: FloatArray = np.sqrt(squared)
        distances += self.relative_error * (lengths_left[:, None] + lengths_right[None, :])
        distances[~np.outer(self.comparable[left], self.comparable[right])] = np.inf
        distances[left[:, None] == right[None, :]] = 0.0
        return distances


def least_squares(
    embedding: Embedding, seen: Observations, *, reference: int = 0, range_tolerance: float = RANGE_TOLERANCE
) -> LeastSquaresEstimate:
    """The least-squares estimate of one batch.

        theta-hat = A^+ b,   A = sum_x n(x) z_x z_x',   b = sum_x z_x sum(x)

    A may be singular: for a difference y in its range the estimate y'A^+ b is unbiased in theta and ||y||^2_{A^+} is
    its variance over sigma^2; a difference outside the range is not estimable, and its distance is infinite, never
    the pseudo-inverse's zero.

    Args:
        embedding: features psi_d, shape (K, d).
        seen: counts and sums of one batch whose counts were fixed before its rewards.
        reference: an arm of interest; arms whose difference to it is out of range are marked not comparable.
        range_tolerance: relative length outside the range, in whitened coordinates, that counts as rounding.

    Returns:
        Scores and coordinates of all K arms.

    Source: Algorithm 1, line 9.
    Differs from the paper: range check instead of an inverse. The factorisation is of the weighted rows, never of A.
    Cost: O(K d^2) time, O(K d) memory.
    """
    white = whitened(embedding.features)
    basis, relative_error = white.basis, 8.0 * float(np.finfo(np.float64).eps) * white.condition
    pulled = np.flatnonzero(seen.counts)
    span = weighted_range(basis[pulled], seen.counts[pulled])
    coordinates = basis @ span.to_unit
    scores = coordinates @ (coordinates[pulled].T @ seen.sums[pulled])
    differences = basis - basis[reference]
    residual = differences - (differences @ span.directions) @ span.directions.T
    scale = np.sqrt(np.max(np.sum(basis * basis, axis=1), initial=0.0))
    comparable = np.sqrt(np.sum(residual * residual, axis=1)) <= range_tolerance * scale
    return LeastSquaresEstimate(scores, coordinates, comparable, seen.total, relative_error)
