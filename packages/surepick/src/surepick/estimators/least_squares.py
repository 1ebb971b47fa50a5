"""Least squares on one batch with fixed counts (Algorithm 1, line 9)."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Embedded, Embedding
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen
from surepick.linalg import factorisations
from surepick.linalg.rows import each_row_block, evenly, product_of_rows, row_blocks

RANGE_TOLERANCE = 1e-7  # relative length outside the range, in whitened coordinates, that counts as rounding
BLOCK_ENTRIES = 65_536  # what is formed of a block of rows stays in the cache
LEAST_ROWS = 256
SMALL_ENTRIES = 262_144  # not worth dividing
RELATIVE_ERROR = 64.0 * float(np.finfo(np.float64).eps)  # of guesses
PRIOR_DECADES, PRIOR_STEPS = 10, 4  # variances of a prior that are tried: below C^2, so many in each


@frozen
class LeastSquaresEstimate:
    """theta-hat = A^-1 b of one batch, in coordinates where A(n) is the identity."""

    scores: FloatArray  # <z_x, theta-hat>, (K,), in reward units; differences of comparable arms are meaningful
    coordinates: FloatArray  # u_x, (K, r), with ||z_a - z_b||_{A(n)^-1} = ||u_a - u_b||
    comparable: BoolArray  # (K,), True where z_x - z_reference lies in the range of A(n)
    total: int  # N
    relative_error: float  # the coordinates are exact to this share of their length

    def distances(self, left: IntArray, right: IntArray) -> FloatArray:
        """||u_a - u_b|| by the Gram identity, plus bounds on the rounding of the identity and of the coordinates.

        Cost: one matrix product, len(left) x len(right) memory.
        """
        distances = np.empty((len(left), len(right)))
        if distances.size == 0:
            return distances
        centre = self.coordinates[right[0]]
        b = self.coordinates[right] - centre
        lengths, reaches = np.sum(b * b, axis=1), np.sqrt(np.sum(self.coordinates[right] ** 2, axis=1))
        step = max(LEAST_ROWS, BLOCK_ENTRIES // max(len(right), b.shape[1], 1))
        if distances.size <= SMALL_ENTRIES:
            step = len(left)
        for block in row_blocks(len(left), step):
            rows, part = left[block], distances[block]
            own = self.coordinates[rows]
            a = own - centre
            np.add(np.sum(a * a, axis=1)[:, None], lengths[None, :], out=part)
            rounding = 4.0 * (a.shape[1] + 4) * np.finfo(np.float64).eps * part
            part -= 2.0 * (a @ b.T)
            np.maximum(part, 0.0, out=part)
            part += rounding
            np.sqrt(part, out=part)
            part += self.relative_error * (np.sqrt(np.sum(own**2, axis=1))[:, None] + reaches[None, :])
            part[~np.outer(self.comparable[rows], self.comparable[right])] = np.inf
            part[rows[:, None] == right[None, :]] = 0.0
        return distances


@frozen
class RegularLeastSquares:
    """The same where A(n) is regular: all arms are comparable, and coordinates are formed of those asked for."""

    scores: FloatArray  # <z_x, theta-hat>, (K,), in reward units
    basis: FloatArray  # z, (K, r)
    to_unit: FloatArray  # u = z to_unit, (r, r); (r, d) for guesses in d features
    total: int  # N
    relative_error: float  # as in `LeastSquaresEstimate`

    @staticmethod
    def of(white: factorisations.Whitened, seen: Observations) -> RegularLeastSquares | None:
        """That of a batch; None where A(n) is singular.

        Cost: O(K r^2) time, O(K) memory.
        """
        basis, pulled = white.basis, np.flatnonzero(seen.counts)
        span = factorisations.weighted_range(basis[pulled], seen.counts[pulled])
        if span.directions.shape[1] < basis.shape[1]:
            return None
        slope = (basis[evenly(pulled)] @ span.to_unit)[: len(pulled)].T @ seen.sums[pulled]
        scores = _scored(basis, span.to_unit, slope)
        span.to_unit.flags.writeable = False  # and so it is not copied
        return RegularLeastSquares(scores, basis, span.to_unit, seen.total, _relative_error(white))

    @staticmethod
    def shrunk(
        basis: FloatArray,  # z, (K, r)
        back: FloatArray | None,  # B, (r, d), with x = z B, in whose coordinates ||theta|| <= C; None: the basis is x
        seen: Observations,
        *,
        noise_scales: FloatArray,  # s, positive, (K,)
        norm_bound: float,
    ) -> RegularLeastSquares:
        """The mean and the errors of theta given all results, if it was drawn from N(0, t I) and the noise is normal.

            M = (sum_x n x x' / s_x^2 + I / t)^-1,   f = x' M sum_x x sum(x) / s_x^2,   largest s u = x' M^(1/2)

        t is the likeliest of C^2 10^(-k/4), k = 0 to 40. In many directions least squares follow the noise, and the
        luckiest of many arms leads by far. For guesses only: nothing says that theta is like that.

        Source: empirical Bayes for ridge regression (Hoerl and Kennard 1970; Morris 1983). Cost: O(K r^2) time.
        """
        pulled, scale = np.flatnonzero(seen.counts), float(noise_scales.max())
        features = basis[pulled] if back is None else basis[pulled] @ back
        weights, roots = scale / noise_scales[pulled], np.sqrt(seen.counts[pulled])
        singular, directions, told = factorisations.regression_svd(
            (roots * weights)[:, None] * features, weights * seen.sums[pulled] / roots
        )
        strengths, along = (singular / scale) ** 2, singular * told / scale**2
        tried = norm_bound**2 * 10.0 ** (-np.arange(PRIOR_DECADES * PRIOR_STEPS + 1)[:, None] / PRIOR_STEPS)
        likelihoods = np.sum(along**2 * tried / (1.0 + tried * strengths) - np.log1p(tried * strengths), axis=1)
        prior = float(tried[int(np.argmax(likelihoods)), 0])
        units = 1.0 / (scale * np.sqrt(strengths + 1.0 / prior))
        to_unit, slope = directions * units, units * singular * told
        to_unit = np.ascontiguousarray(to_unit if back is None else back @ to_unit)
        return RegularLeastSquares(_scored(basis, to_unit, slope), basis, to_unit, seen.total, RELATIVE_ERROR)

    @property
    def comparable(self) -> BoolArray:
        """Whether differences can be estimated, shape (K,): all."""
        return np.ones(len(self.scores), bool)

    def coordinates_of(self, arms: IntArray) -> FloatArray:
        """u of some arms, shape (n, r)."""
        return np.asarray((self.basis[evenly(arms)] @ self.to_unit)[: len(arms)])

    def distances(self, left: IntArray, right: IntArray) -> FloatArray:
        """As those of `LeastSquaresEstimate`."""
        distances = np.empty((len(left), len(right)))
        ends = self.coordinates_of(right)

        def measure(block: slice) -> None:
            rows = left[block]
            coordinates = np.concatenate([self.coordinates_of(rows), ends])
            everybody = np.arange(len(coordinates))
            some = LeastSquaresEstimate(
                np.zeros(len(coordinates)),
                coordinates,
                np.ones(len(coordinates), bool),
                self.total,
                self.relative_error,
            )
            part = some.distances(everybody[: len(rows)], everybody[len(rows) :])
            part[rows[:, None] == right[None, :]] = 0.0
            distances[block] = part

        each_row_block(measure, len(left))
        return distances


def _scored(basis: FloatArray, to_unit: FloatArray, slope: FloatArray) -> FloatArray:
    """u' slope of all arms, shape (K,)."""
    scores = np.empty(len(basis))

    def score(rows: slice) -> None:
        scores[rows] = (basis[rows] @ to_unit) @ slope

    each_row_block(score, len(basis))
    scores.flags.writeable = False  # and so it is not copied
    return scores


def least_squares(
    embedding: Embedding,  # features psi_d, (K, d)
    seen: Observations,
    *,
    reference: int = 0,
    white: factorisations.Whitened | None = None,
) -> LeastSquaresEstimate:
    """The least-squares estimate of one batch.

        theta-hat = A^+ b,   A = sum_x n(x) z_x z_x',   b = sum_x z_x sum(x)

    A may be singular: for a difference y in its range the estimate y'A^+ b is unbiased in theta and ||y||^2_{A^+} is
    its variance over sigma^2; a difference outside the range is not estimable, and its distance is infinite, never
    the pseudo-inverse's zero.

    Source: Algorithm 1, line 9.

    Differs from the paper: range check instead of an inverse. The factorisation is of the weighted rows, never of A.

    Cost: O(K d^2) time, O(K d) memory.
    """
    white = factorisations.whitened(embedding.features) if white is None else white
    basis = white.basis
    pulled = np.flatnonzero(seen.counts)
    span = factorisations.weighted_range(basis[pulled], seen.counts[pulled])
    coordinates = product_of_rows(basis, span.to_unit)
    scores = coordinates @ (coordinates[pulled].T @ seen.sums[pulled])
    comparable = _in_range(basis, span, reference)
    for made_here in (scores, coordinates, comparable):
        made_here.flags.writeable = False  # and so it is not copied
    return LeastSquaresEstimate(scores, coordinates, comparable, seen.total, _relative_error(white))


def _relative_error(white: factorisations.Whitened) -> float:
    """Of the coordinates, as a share of their length."""
    return 8.0 * float(np.finfo(np.float64).eps) * white.condition


def _in_range(basis: FloatArray, span: factorisations.WeightedRange, reference: int) -> BoolArray:
    """Which differences to the reference lie in the range; all of them where it is the whole space."""
    if basis.shape[1] == span.directions.shape[1]:
        return np.ones(len(basis), bool)  # what rounding leaves is some d eps of a length that is at most twice `scale`
    lengths, scale = np.empty(len(basis)), 0.0
    step = max(LEAST_ROWS, BLOCK_ENTRIES // max(basis.shape[1], 1))
    for block in row_blocks(len(basis), step):
        rows = basis[block]
        differences = rows - basis[reference]
        residual = differences - (differences @ span.directions) @ span.directions.T
        lengths[block] = np.sqrt(np.sum(residual * residual, axis=1))
        scale = max(scale, float(np.max(np.sum(rows * rows, axis=1))))
    return np.asarray(lengths <= RANGE_TOLERANCE * np.sqrt(scale))


# --- Plain means of independent arms: least squares when A(n) is diagonal.


@frozen
class ArmMeansEstimate:
    """Mean reward of each arm; the difference of two arms has variance sigma^2 (1/n_a + 1/n_b)."""

    scores: FloatArray  # means, (K,), in reward units; 0 where nothing was measured
    counts: IntArray  # n, (K,)

    @property
    def comparable(self) -> BoolArray:
        return self.counts > 0

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def distances(self, left: IntArray, right: IntArray) -> FloatArray:
        """sqrt(1/n_a + 1/n_b); infinite where an arm was never measured, 0 for an arm and itself."""
        with np.errstate(divide="ignore"):
            inverse = 1.0 / self.counts
        distances: FloatArray = np.sqrt(inverse[left][:, None] + inverse[right][None, :])
        distances[left[:, None] == right[None, :]] = 0.0
        return distances


def arm_means(seen: Observations) -> ArmMeansEstimate:
    """The estimate for arms without structure; equals least squares on the K x K identity. Cost: O(K)."""
    return ArmMeansEstimate(seen.means, seen.counts)


# --- What every estimator gives to the rules that eliminate and stop.


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


def estimate(
    embedding: Embedded, seen: Observations, *, reference: int = 0, white: factorisations.Whitened | None = None
) -> Estimate:
    """The estimator that fits the structure: least squares, or arm means when there is none."""
    if not embedding.structured:
        return arm_means(seen)
    return least_squares(embedding, seen, reference=reference, white=white)
