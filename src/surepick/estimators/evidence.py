"""Evidence from one batch that a candidate is not beaten: the factor of an e-process for each rival."""

from __future__ import annotations

import numpy as np

from surepick.estimators.noise_allowance import ROUNDED_UP, NoiseAllowance
from surepick.linalg import weighted_range, whitened
from surepick.records import Embedding, FloatArray, IndependentArms, IntArray, Observations

HEURISTIC_CAUTION = 0.7
BLOCK_ENTRIES = 4_000_000
CERTAIN = 1e6  # evidence of differences that are known without noise


def evidence_gains(
    embedded: Embedding | IndependentArms,
    seen: Observations,
    *,
    centre: int,
    epsilon: float,
    margins: FloatArray,
    allowance: NoiseAllowance,
    noise_scales: FloatArray,
    norm_bound: float | None,
) -> FloatArray:
    """The logarithm of each rival's e-value from one batch, against "rival j is better than c by more than epsilon".

        y = z_j - z_c,   u_x = y' A^+ z_x / s_x^2,   A = sum_x n(x) z_x z_x' / s_x^2
        xhat = sum_x u_x sum(x),   D = sum_x n(x) u_x^2 s_x^2
        beta = gamma sum_x |n(x) u_x - 1{x = j} + 1{x = c}| + C ||y - sum_x n(x) u_x z_x||
        t = kappa max(margin_j - beta, 0) / D     (or with sigma in place of s in D, if that promises more)
        gain = t (epsilon - beta - xhat) - sum_x allowance of n(x) pulls tilted by t |u_x|

    If h_j - h_c > epsilon, the mean of epsilon - beta - xhat is negative, whatever weights u were computed: beta holds
    what they miss. So E exp(gain) <= 1, given everything before the batch (docs/certified-elimination.md, lines 2-4).
    All of u, D, beta, t are functions of the past and of the counts.

    Args:
        embedded: psi_d, shape (K, d), and gamma; or arms without structure.
        seen: the batch, with squares where rewards have a range; which pulls came must not depend on their rewards.
        centre: c, the candidate.
        epsilon: the shortfall that is tolerated, in reward units.
        margins: guesses of epsilon + h_c - h_j from before the batch, shape (K,): they decide the bets.
        allowance: what may be assumed of the noise.
        noise_scales: s, positive, shape (K,), from before the batch; any choice is valid.
        norm_bound: C with ||theta_d|| <= C; not used for arms without structure.

    Returns:
        shape (K,); 0 for c and where nothing is learnt, CERTAIN where no noise is left to doubt.

    Source: ours. Cost: O(K p d) for p arms pulled, in blocks of bounded memory.
    """
    if isinstance(embedded, IndependentArms):
        return _gains_of_means(seen, centre, epsilon, margins, allowance, noise_scales)
    if norm_bound is None:
        raise ValueError("an embedding without a norm bound has no bound on what its weights miss.")
    pulled = np.flatnonzero(seen.counts)
    gains = np.zeros(len(seen.counts))
    if len(pulled) == 0:
        return gains
    variances = (noise_scales[pulled] / noise_scales[pulled].max()) ** 2  # a common factor cancels in u
    basis = whitened(embedded.features).basis
    span = weighted_range(basis[pulled], seen.counts[pulled] / variances)
    coordinates = basis @ span.to_unit
    own = coordinates[pulled].T / variances
    step = max(1, BLOCK_ENTRIES // max(len(pulled), embedded.dim))
    for first in range(0, len(gains), step):
        rows = np.arange(first, min(first + step, len(gains)))
        weights = (coordinates[rows] - coordinates[centre]) @ own
        beta = _bias(embedded, seen.counts, pulled, rows, centre, weights, norm_bound)
        tilts = _bets(weights, seen.counts[pulled], pulled, margins[rows] - beta, allowance, noise_scales)
        tilts[rows == centre] = 0.0
        lead = epsilon - beta - weights @ seen.sums[pulled]
        penalty = np.sum(allowance.total(tilts[:, None] * np.abs(weights), pulled, seen), axis=1)
        gains[rows] = tilts * lead - penalty
        gains[rows[~weights.any(axis=1) & (beta < epsilon) & (rows != centre)]] = CERTAIN
    return np.minimum(gains, CERTAIN)


def _bets(
    weights: FloatArray,
    counts: IntArray,
    arms: IntArray,
    rooms: FloatArray,
    allowance: NoiseAllowance,
    noise_scales: FloatArray,
) -> FloatArray:
    """t of each row: kappa room / D with the guessed scales, at a middling tilt, or with sigma, whichever promises the
    larger gain if the guesses are right.

    Args:
        weights: u, shape (m, p).
        counts: n, shape (p,).
        arms: the p arms.
        rooms: margin - beta, shape (m,); no bet where it is not positive.
    """
    positive, steep = np.maximum(rooms, 0.0), np.abs(weights)
    best, promise = np.zeros(len(weights)), np.zeros(len(weights))
    for scale in (allowance.scales, noise_scales) if np.isfinite(allowance.spread) else (allowance.scales,):
        spread = weights**2 @ (counts * scale[arms] ** 2)
        bets = np.divide(HEURISTIC_CAUTION * positive, spread, out=np.zeros(len(weights)), where=spread > 0)
        if scale is noise_scales:
            bets = allowance.middling(bets, steep.max(axis=1, initial=0.0))
        cost = np.sum(allowance.expected(bets[:, None] * steep, arms, counts), axis=1)
        gain = bets * positive - cost
        best, promise = np.where(gain > promise, bets, best), np.maximum(gain, promise)
    return best


def _bias(
    embedded: Embedding,
    counts: IntArray,
    pulled: IntArray,
    rows: IntArray,
    centre: int,
    weights: FloatArray,
    norm_bound: float,
) -> FloatArray:
    """beta of each row: what misspecification and inexact weights can move the estimate by, rounded up."""
    flow = weights * counts[pulled]
    features, gamma = embedded.features, embedded.misspecification
    missed = features[rows] - features[centre] - flow @ features[pulled]
    lengths = np.sqrt(np.einsum("ij,ij->i", features, features))
    rounding = lengths[rows] + lengths[centre] + np.abs(flow) @ lengths[pulled]
    rounding *= 4.0 * (len(pulled) + embedded.dim) * np.finfo(np.float64).eps
    beta = norm_bound * (np.sqrt(np.einsum("ij,ij->i", missed, missed)) + rounding)
    if gamma > 0.0:
        place = np.full(len(counts), -1)
        place[pulled] = np.arange(len(pulled))
        at_row, at_centre = place[rows], int(place[centre])
        flow[at_row >= 0, at_row[at_row >= 0]] -= 1.0
        total = np.where(at_row >= 0, 0.0, 1.0)
        if at_centre >= 0:
            flow[:, at_centre] += 1.0
        else:
            total += 1.0
        beta += gamma * (total + np.sum(np.abs(flow), axis=1))
    beta *= ROUNDED_UP
    return np.asarray(beta)


def _gains_of_means(
    seen: Observations,
    centre: int,
    epsilon: float,
    margins: FloatArray,
    allowance: NoiseAllowance,
    noise_scales: FloatArray,
) -> FloatArray:
    """The same for arms without structure: u_j = 1/n(j), u_c = -1/n(c), no bias. Cost: O(K)."""
    counts, means = seen.counts, seen.means
    gains = np.zeros(len(counts))
    rivals = np.flatnonzero(counts)
    rivals = rivals[rivals != centre]
    if counts[centre] == 0 or len(rivals) == 0:
        return gains
    shares = 1.0 / counts[rivals], np.full(len(rivals), 1.0 / counts[centre])
    arms = rivals, np.full(len(rivals), centre)
    room = np.maximum(margins[rivals], 0.0)
    tilts, promise = np.zeros(len(rivals)), np.zeros(len(rivals))
    for scale in (allowance.scales, noise_scales) if np.isfinite(allowance.spread) else (allowance.scales,):
        bets = HEURISTIC_CAUTION * room / (scale[rivals] ** 2 * shares[0] + scale[centre] ** 2 * shares[1])
        if scale is noise_scales:
            bets = allowance.middling(bets, np.maximum(*shares))
        cost = sum(allowance.expected(bets * share, who, counts[who]) for share, who in zip(shares, arms, strict=True))
        gain = bets * room - cost
        tilts, promise = np.where(gain > promise, bets, tilts), np.maximum(gain, promise)
    lead = epsilon - (means[rivals] - means[centre])
    penalty = sum(allowance.total(tilts * share, who, seen) for share, who in zip(shares, arms, strict=True))
    gains[rivals] = tilts * lead - penalty
    return np.minimum(gains, CERTAIN)
