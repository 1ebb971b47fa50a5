"""One batch as an embedding sees it: the weights of its linear estimates, and what bias can move them by."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.design import Embedding
from surepick.estimators.bias_robust_weights import bias_robust_weights
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.linalg.factorisations import row_norms
from surepick.linalg.row_blocks import product_of_rows
from surepick.linalg.whitening import Whitened, weighted_range, whitened

BLOCK_ENTRIES = 4_000_000  # weights, or what is formed from them, at a time


@record
class ContrastWeights:
    """What the estimates of all pairs (rival, candidate) from one batch have in common.

    Args:
        embedded: psi_d, shape (K, d), and gamma.
        pulled: the p arms with counts.
        counts: n, their pulls, shape (p,).
        centre: c, the candidate.
        noise_scales: s of the pulled arms, shape (p,).
        norm_bound: C.
        coordinates: Y, shape (K, r).
        own: W, shape (r, p), with u = (Y_j - Y_c) W for each pair.
        lengths: of the pulled arms' vectors, shape (p,).
    """

    embedded: Embedding
    pulled: IntArray
    counts: IntArray
    centre: int
    noise_scales: FloatArray
    norm_bound: float
    coordinates: FloatArray
    own: FloatArray
    lengths: FloatArray

    @staticmethod
    def of(
        embedded: Embedding,
        counts: IntArray,
        *,
        centre: int,
        noise_scales: FloatArray,
        norm_bound: float,
        white: Whitened | None = None,
    ) -> ContrastWeights:
        """The contrasts of a batch with some counts.

        Args:
            counts: shape (K,), not all 0.
            noise_scales: s, positive, shape (K,).
            white: `whitened(embedded.features)`; None: formed here.

        Cost: O(K d^2); O(K d) with `white`, but for one product.
        """
        pulled = np.flatnonzero(counts)
        variances = (noise_scales[pulled] / noise_scales[pulled].max()) ** 2  # a common factor cancels in u
        basis = (whitened(embedded.features) if white is None else white).basis
        span = weighted_range(basis[pulled], counts[pulled] / variances)
        coordinates = product_of_rows(basis, span.to_unit)
        return ContrastWeights(
            embedded,
            pulled,
            counts[pulled],
            centre,
            noise_scales[pulled],
            norm_bound,
            coordinates,
            coordinates[pulled].T / variances,
            row_norms(embedded.features[pulled]),
        )

    def least_squares(self, rows: IntArray) -> FloatArray:
        """u of least squares, for each rival of `rows`, shape (m, p)."""
        weights: FloatArray = (self.coordinates[rows] - self.coordinates[self.centre]) @ self.own
        return weights

    def plug_in_bias(
        self, rows: IntArray, weights: FloatArray, scores: FloatArray | None, offset: float = 0.0
    ) -> FloatArray | float:
        """By how much the flows would overstate each rival's lead if the means were as guessed; at least 0."""
        if scores is None:
            return 0.0
        flows = weights * self.counts
        lead = scores[rows] - scores[self.centre]
        return np.asarray(np.maximum(flows @ (scores[self.pulled] - offset) - lead, 0.0))

    def bias_robust(self, rows: IntArray, weights: FloatArray, slack: FloatArray) -> FloatArray:
        """Weights of the same linear estimates with less bias; those given where there is nothing to choose."""
        if len(self.pulled) <= self.coordinates.shape[1]:
            return weights
        targets = (rows[:, None] == self.pulled[None, :]).astype(np.float64) - (self.pulled == self.centre)
        flows = bias_robust_weights(
            weights * self.counts,
            targets,
            self.coordinates[self.pulled],
            self.counts,
            self.noise_scales,
            slack,
            misspecification=self.embedded.misspecification,
        )
        steadied: FloatArray = flows / self.counts
        return steadied

    def bias(self, rows: IntArray, weights: FloatArray) -> FloatArray:
        """beta of each row: what misspecification and inexact weights can move the estimate by, rounded up."""
        features, gamma, centre = self.embedded.features, self.embedded.misspecification, self.centre
        flow, own = weights * self.counts, features[rows]
        missed = own - features[centre] - flow @ features[self.pulled]
        lengths = row_norms(own) + row_norms(features[centre : centre + 1])
        rounding = lengths + np.abs(flow) @ self.lengths
        rounding *= 4.0 * (len(self.pulled) + self.embedded.dim) * np.finfo(np.float64).eps
        beta = self.norm_bound * (row_norms(missed) + rounding)
        if gamma > 0.0:
            beta += gamma * self._l1_deviation(rows, flow)
        beta *= ROUNDED_UP
        return np.asarray(beta)

    def _l1_deviation(self, rows: IntArray, flow: FloatArray) -> FloatArray:
        """sum_x |n(x) u_x - 1{x = j} + 1{x = c}| of each row; `flow`, n u, is overwritten."""
        place = np.minimum(np.searchsorted(self.pulled, rows), len(self.pulled) - 1)
        there = np.flatnonzero(self.pulled[place] == rows)
        flow[there, place[there]] -= 1.0
        total = np.ones(len(rows))
        total[there] = 0.0
        at_centre = np.flatnonzero(self.pulled == self.centre)
        if len(at_centre):
            flow[:, at_centre[0]] += 1.0
        else:
            total += 1.0
        deviation: FloatArray = total + np.sum(np.abs(flow), axis=1)
        return deviation
