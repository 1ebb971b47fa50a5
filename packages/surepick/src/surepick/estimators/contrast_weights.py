"""One batch as an embedding sees it: the weights of its linear estimates, and what bias can move them by."""

from __future__ import annotations

import numpy as np

from surepick.core.plans import Embedding
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.linalg.factorisations import Whitened, row_norms, weighted_range, whitened
from surepick.linalg.rows import product_of_rows, row_blocks

BLOCK_ENTRIES = 4_000_000  # weights, or what is formed from them, at a time
LEAST_ROWS, CACHED_ENTRIES = 256, 65_536  # rows of weights at a time, so many that they stay in the cache
EPS = float(np.finfo(np.float64).eps)  # twice what rounding may be of a number


def rows_at_once(width: int) -> int:
    """Rows of weights of so many arms to form at a time: they stay in the cache, or at least in little memory."""
    return min(max(1, BLOCK_ENTRIES // width), max(LEAST_ROWS, CACHED_ENTRIES // width))


@record
class ContrastWeights:
    """What the estimates of all pairs (rival, candidate) from one batch have in common."""

    embedded: Embedding  # psi_d, (K, d), and gamma
    pulled: IntArray  # the p arms with counts
    counts: IntArray  # n, their pulls, (p,)
    centre: int  # c, the candidate
    noise_scales: FloatArray  # s of the pulled arms, (p,)
    norm_bound: float  # C
    coordinates: FloatArray  # Y, (K, r)
    own: FloatArray  # W, (r, p), with u = (Y_j - Y_c) W for each pair
    lengths: FloatArray  # of the pulled arms' vectors, (p,)
    owners: IntArray | None = None  # whose pulls the p entries are, where an arm may have several; None: each its own

    @staticmethod
    def of(
        embedded: Embedding,
        counts: IntArray,  # (K,), not all 0
        *,
        centre: int,
        noise_scales: FloatArray,  # s, positive, (K,)
        norm_bound: float,
        white: Whitened | None = None,
        owners: IntArray | None = None,
    ) -> ContrastWeights:
        """The contrasts of a batch with some counts.

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
            None if owners is None else owners[pulled],
        )

    def least_squares(self, rows: IntArray) -> FloatArray:
        """u of least squares, for each rival of `rows`, shape (m, p)."""
        weights: FloatArray = (self.coordinates[rows] - self.coordinates[self.centre]) @ self.own
        return weights

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
            beta += gamma * self.l1_deviation(rows, flow)
        beta *= ROUNDED_UP
        return np.asarray(beta)

    def l1_deviation(self, rows: IntArray, flow: FloatArray) -> FloatArray:
        """sum_x |n(x) u_x - 1{x = j} + 1{x = c}| of each row; `flow`, n u, is overwritten."""
        pulled = self.pulled
        if self.owners is not None:
            pulled, own = np.unique(self.owners, return_inverse=True)
            flow = flow @ (own[:, None] == np.arange(len(pulled)))
        place = np.minimum(np.searchsorted(pulled, rows), len(pulled) - 1)
        there = np.flatnonzero(pulled[place] == rows)
        flow[there, place[there]] -= 1.0
        total = np.ones(len(rows))
        total[there] = 0.0
        at_centre = np.flatnonzero(pulled == self.centre)
        if len(at_centre):
            flow[:, at_centre[0]] += 1.0
        else:
            total += 1.0
        deviation: FloatArray = total + np.sum(np.abs(flow), axis=1)
        return deviation


@record
class Sums:
    """What weights u that are nowhere written out come to, for each of m rivals."""

    bias: FloatArray  # beta, (m,), rounded up
    drawn: FloatArray  # sum_x u_x S(x) for some sums S, (m,)
    rounding: FloatArray  # what rounding may be of `drawn`, (m,)
    squares: FloatArray  # at least sum_x n(x) u_x^2 s_x^2, (m,)
    none: BoolArray  # whether u is 0, (m,)


@record
class ImplicitWeights:
    """The weights u = q W of least squares, q = Y_j - Y_c, for many rivals j and many arms: nowhere written out.

    What is asked of them are products of q with what one batch needs once, for r directions in place of p arms:

        sum_x u_x S(x) = q (W S)
        sum_x n(x) u_x^2 s_x^2 = q (W diag(n s^2) W') q'
        sum_x n(x) u_x z_x = q (W diag(n) Z)

    u is the product in real numbers of q and W as they are stored, so that rounding is a matter of these sums only.
    With g = eps (p + r + 8) each is off by at most

        g |q| (|W| |S|),    2 g (|q| rho)^2,  rho_k^2 = sum_x n s^2 W_kx^2,    g (|q| (|W| n l) + ||z_j|| + ||z_c||)

    (entries of absolute value; l = lengths of the pulled vectors; the third in norm). The arms' own flows n u = q (W n)
    are formed for sum_x |n u_x - 1{x = j} + 1{x = c}| alone, a block of rivals at a time; they are off by
    g |q| (|W| n) together.

    Source: ours, docs/certified-elimination.md, line 2a; Higham (2002), section 3.1.
    """

    contrast: ContrastWeights  # of the batch
    drawn: FloatArray  # W S and |W| |S|, (r,)
    drawn_size: FloatArray
    gram: FloatArray  # W diag(n s^2) W', (r, r), and rho, (r,)
    gram_size: FloatArray
    reached: FloatArray  # W diag(n) Z, (r, d), and |W| n l, (r,)
    reached_size: FloatArray
    flows: FloatArray  # W diag(n), (r, p), and |W| n, (r,)
    flows_size: FloatArray

    @staticmethod
    def of(contrast: ContrastWeights, sums: FloatArray, scales: FloatArray) -> ImplicitWeights:
        """The weights of a batch, for S and sigma of the pulled arms, each (p,). Cost: O(p r (r + d))."""
        own, counts = contrast.own, contrast.counts
        steep, flows, noise = np.abs(own), own * counts, own * (np.sqrt(counts) * scales)
        return ImplicitWeights(
            contrast,
            own @ sums,
            steep @ np.abs(sums),
            noise @ noise.T,
            row_norms(noise),
            flows @ contrast.embedded.features[contrast.pulled],
            steep @ (counts * contrast.lengths),
            flows,
            steep @ counts,
        )

    @property
    def _rounding(self) -> float:
        """g."""
        return EPS * (sum(self.flows.shape) + 8)

    def sums(self, rows: IntArray) -> Sums:
        """What the weights of some rivals come to. Cost: O(m r (r + d)); O(m p r) with misspecification."""
        known, features = self.contrast, self.contrast.embedded.features
        towards = known.coordinates[rows] - known.coordinates[known.centre]
        size = np.abs(towards)
        terms = self._rounding
        own = features[rows]
        missed = own - features[known.centre] - towards @ self.reached
        lengths = row_norms(own) + row_norms(features[known.centre : known.centre + 1])
        bias = known.norm_bound * (row_norms(missed) + terms * (lengths + size @ self.reached_size))
        if known.embedded.misspecification > 0.0:
            bias += known.embedded.misspecification * self._l1_deviation(rows, towards, size)
        squares = np.maximum(np.einsum("ij,ij->i", towards @ self.gram, towards), 0.0)
        squares += 2.0 * terms * (size @ self.gram_size) ** 2
        return Sums(
            bias * ROUNDED_UP, towards @ self.drawn, terms * (size @ self.drawn_size), squares, ~towards.any(axis=1)
        )

    def _l1_deviation(self, rows: IntArray, towards: FloatArray, size: FloatArray) -> FloatArray:
        """At least sum_x |n(x) u_x - 1{x = j} + 1{x = c}| of each row."""
        total = np.empty(len(rows))
        for some in row_blocks(len(rows), rows_at_once(self.flows.shape[1])):
            total[some] = self.contrast.l1_deviation(rows[some], towards[some] @ self.flows)
        total += self._rounding * (size @ self.flows_size)
        return total


# --- How far the mean of an arm may stray.


def anytime_radius(counts: IntArray, sigma: FloatArray, *, delta: float, num_arms: int) -> FloatArray:
    """c(n) = sigma sqrt(2 log(4 K n^2 / delta) / n) for each arm, valid at every n and for every arm at once.

    P(some arm, some n: |mean - h| > c(n)) <= sum_{arms} sum_n 2 exp(-log(4 K n^2 / delta)) = delta pi^2 / 12 < delta.

    Args:
        counts: n, shape (K,); 0 gives infinity.
        sigma: sub-Gaussian scale of each arm, shape (K,), in reward units.

    Source: action elimination as in Even-Dar et al. (2006) and Jamieson & Nowak (2014).
    """
    safe = np.maximum(counts, 1)
    radius = sigma * np.sqrt(2.0 * np.log(4.0 * num_arms * safe.astype(np.float64) ** 2 / delta) / safe)
    return np.where(counts > 0, radius, np.inf)
