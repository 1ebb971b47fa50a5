"""Pairwise evidence: what one batch says of each arm against a centre, the factor of an e-process for each.

docs/certified-elimination.md: weights, bets and allowances are fixed before the batch's first result (line 1); they
miss a difference by at most beta (line 2); each factor has mean at most 1 (lines 3 and 4), and so has their product
over batches (lines 5 to 7; of lists docs/questions.md, lines 1 and 2).
"""

from __future__ import annotations

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Embedded
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record
from surepick.estimators.contrast_weights import BLOCK_ENTRIES, ContrastWeights, ImplicitWeights, Sums, rows_at_once
from surepick.estimators.noise_mgf import ROUNDED_UP, Mgf
from surepick.linalg.factorisations import Whitened
from surepick.linalg.rows import ROWS, each_row_block

HEURISTIC_KAPPA = 0.7  # of the bet that promises most
SMALL_ENTRIES = 262_144  # weights that are formed at once
LEAST_SLACK = 0.1  # of a margin
GENEROUS = 2.0  # times the evidence that is still needed: what a bet may expect to gain
CERTAIN = 1e6  # evidence of differences that are known without noise


@frozen
class BatchEvidence:
    """What one batch says against each rival."""

    # log e-values, (K,); 0 for c and where nothing is learnt, CERTAIN where no noise is left to doubt
    gains: FloatArray
    bets: FloatArray  # t, (K,), in 1 / reward units: with m in place of epsilon the gain is gain + t (m - epsilon)
    drawn: FloatArray  # t xhat, (K,): xhat estimates h_j - h_c


def batch_evidence(
    embedded: Embedded,  # psi_d, (K, d), and gamma; or arms without structure
    seen: Observations,
    *,
    centre: int,
    epsilon: float,
    margins: FloatArray,
    noise_mgf: Mgf,
    noise_scales: FloatArray,  # s, positive, (K,), from before the batch; any choice is valid
    norm_bound: float | None,
    needs: FloatArray | None = None,
    white: Whitened | None = None,
    kappa: float = HEURISTIC_KAPPA,
    owners: IntArray | None = None,
) -> BatchEvidence:
    """The logarithm of each rival's e-value from one batch, against "rival j is better than c by more than epsilon".

        y = z_j - z_c,   u_x = y' A^+ z_x / s_x^2,   A = sum_x n(x) z_x z_x' / s_x^2
        xhat = sum_x u_x sum(x),   D = sum_x n(x) u_x^2 s_x^2
        beta = gamma sum_x |n(x) u_x - 1{x = j} + 1{x = c}| + C ||y - sum_x n(x) u_x z_x||
        t = kappa max(margin_j - beta, 0) / D     (or with sigma in place of s in D, if that promises more)
        gain = t (epsilon - beta - xhat) - sum_x allowance of n(x) pulls for bets t |u_x|

    If h_j - h_c > epsilon, the mean of epsilon - beta - xhat is negative, whatever weights u were computed: beta holds
    what they miss. So E exp(gain) <= 1, given everything before the batch (docs/certified-elimination.md, lines 2-4).
    All of u, D, beta, t are functions of the past and of the counts.

    Args:
        margins: guesses of epsilon + h_c - h_j from before the batch, shape (K,): they decide the bets; where they are
            not positive nothing is bet.
        needs: what the evidence still lacks, from before the batch, shape (K,); bets are then no higher than they need
            be to expect about twice that. None: as high as promises most.
        owners: whose pulls those of each entry are, shape (K,), where an arm may have several; None: each its own.

    Source: ours. Cost: O(K p d) for p arms pulled, in blocks of bounded memory; of many rivals and arms, with noise
    whose scale is declared, O(K p d) with misspecification and O(K d^2) without (`ImplicitWeights`).
    """
    if not embedded.structured:
        return _gains_of_means(seen, centre, epsilon, margins, noise_mgf, noise_scales, needs, kappa)
    if norm_bound is None:
        raise ValueError("an embedding without a norm bound has no bound on what its weights miss.")
    gains, bets, drawn = (np.zeros(len(seen.counts)) for _ in range(3))
    if not seen.counts.any():
        return BatchEvidence(gains, bets, drawn)
    contrast = ContrastWeights.of(
        embedded,
        seen.counts,
        centre=centre,
        noise_scales=noise_scales,
        norm_bound=norm_bound,
        white=white,
        owners=owners,
    )
    pulled, counts = contrast.pulled, contrast.counts
    wanted = np.flatnonzero((margins > 0.0) & (np.arange(len(gains)) != centre))
    width = max(len(pulled), embedded.dim)
    step = max(len(wanted), 1) if len(wanted) * width <= SMALL_ENTRIES else rows_at_once(width)
    sums = seen.sums[pulled]
    plain, implicit = len(pulled) > len(contrast.own), None
    many = len(gains) * len(pulled) > BLOCK_ENTRIES
    if plain and many and noise_mgf.declared and noise_mgf.quadratic:
        implicit, step = ImplicitWeights.of(contrast, sums, noise_mgf.scales[pulled]), ROWS

    def judge(block: slice) -> None:
        rows = wanted[block]
        limits = None if needs is None else needs[rows]
        one = (
            at_length(rows, limits) if implicit is None else _placed(implicit.sums(rows), margins[rows], limits, kappa)
        )
        gains[rows] = one.bets * (epsilon - one.bias - one.drawn) - one.penalty
        bets[rows], drawn[rows] = one.bets, one.bets * one.drawn
        known = one.none & (one.bias < epsilon)
        gains[rows[known]], bets[rows[known]] = CERTAIN, CERTAIN / (epsilon - one.bias[known])

    def at_length(rows: IntArray, limits: FloatArray | None) -> _Placed:
        weights = contrast.least_squares(rows)
        beta = contrast.bias(rows, weights)
        placed = _bets(weights, counts, pulled, margins[rows] - beta, noise_mgf, noise_scales, limits, kappa)
        penalty = np.sum(noise_mgf.total(placed[:, None] * np.abs(weights), pulled, seen), axis=1)
        return _Placed(beta, placed, weights @ sums, penalty, np.asarray(~weights.any(axis=1)))

    each_row_block(judge, len(wanted), step)
    return BatchEvidence(np.minimum(gains, CERTAIN), bets, drawn)


@record
class _Placed:
    """Bets on some rivals, each of shape (m,)."""

    bias: FloatArray  # beta
    bets: FloatArray  # t
    drawn: FloatArray  # xhat
    penalty: FloatArray  # what is taken off
    none: BoolArray  # whether the weights are 0


def _placed(sums: Sums, margins: FloatArray, needs: FloatArray | None, kappa: float) -> _Placed:
    """The bets on some rivals from what their weights come to, where all noise costs t^2 sigma^2 / 2 a pull."""
    slack = np.maximum(margins - sums.bias, 0.0)
    bets = np.divide(kappa * slack, sums.squares, out=np.zeros(len(slack)), where=sums.squares > 0)
    bets, _ = enough(bets, slack, 0.5 * bets**2 * sums.squares, needs)
    penalty = bets * sums.rounding + ROUNDED_UP * 0.5 * bets**2 * sums.squares
    return _Placed(sums.bias, bets, sums.drawn, penalty, sums.none)


def _bets(
    weights: FloatArray,
    counts: IntArray,
    arms: IntArray,
    slack: FloatArray,
    noise_mgf: Mgf,
    noise_scales: FloatArray,
    needs: FloatArray | None,
    kappa: float,
) -> FloatArray:
    """t of each row: kappa slack / D with guessed scales, at a middling bet, or with sigma, whichever promises more."""
    positive, steep = np.maximum(slack, 0.0), np.abs(weights)
    best, promise = np.zeros(len(weights)), np.zeros(len(weights))
    for scale in _tried(noise_mgf, noise_scales):
        spread = weights**2 @ (counts * scale[arms] ** 2)
        bets = np.divide(kappa * positive, spread, out=np.zeros(len(weights)), where=spread > 0)
        bets = _bearable(bets, steep, noise_mgf, arms, counts, ranged=scale is noise_scales)
        cost = np.sum(noise_mgf.expected(bets[:, None] * steep, arms, counts), axis=1)
        bets, gain = enough(bets, positive, cost, needs)
        best, promise = np.where(gain > promise, bets, best), np.maximum(gain, promise)
    return best


def _tried(noise_mgf: Mgf, noise_scales: FloatArray) -> tuple[FloatArray, ...]:
    """The scales that bets are tried with, each of shape (K,)."""
    if not noise_mgf.declared:
        return (np.sqrt(noise_mgf.variances),)
    return (noise_mgf.scales, noise_scales) if np.isfinite(noise_mgf.spread) else (noise_mgf.scales,)


def _bearable(
    bets: FloatArray, weights: FloatArray, noise_mgf: Mgf, arms: IntArray, counts: IntArray, *, ranged: bool
) -> FloatArray:
    """The bets, smaller where what is known of the noise makes a pull's large weight expensive, shape (m,)."""
    if not noise_mgf.declared:
        return np.asarray(bets * noise_mgf.tempered(bets[:, None] * weights, arms, counts.astype(np.float64)))
    return noise_mgf.middling(bets, weights.max(axis=1, initial=0.0)) if ranged else bets


def enough(
    bets: FloatArray, slack: FloatArray, costs: FloatArray, needs: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """(bets, gains expected of them), the bets shrunk where they promise more than GENEROUS times what is needed.

    A share s of a bet gains s t room - s^2 cost at least (the cost is convex in the bet and 0 at 0): the smallest s
    with the wanted gain. A bet on a guess that is too high by a factor of three loses; half of that bet does not.
    """
    gains = bets * slack - costs
    if needs is None:
        return bets, gains
    wanted = GENEROUS * np.maximum(needs, 0.0) + 1.0
    under = np.sqrt(np.maximum((bets * slack) ** 2 - 4.0 * costs * wanted, 0.0))
    share = np.divide(bets * slack - under, 2.0 * costs, out=np.ones_like(bets), where=costs > 0)
    share = np.where(gains > wanted, np.minimum(share, 1.0), 1.0)
    return bets * share, share * bets * slack - share**2 * costs


def _gains_of_means(
    seen: Observations,
    centre: int | None,
    epsilon: float,
    margins: FloatArray,
    noise_mgf: Mgf,
    noise_scales: FloatArray,
    needs: FloatArray | None,
    kappa: float,
) -> BatchEvidence:
    """The same for arms without structure: u_j = 1/n(j), u_c = -1/n(c), no bias; or compared with 0. Cost: O(K)."""
    counts, means = seen.counts, seen.means
    gains, bets, drawn = (np.zeros(len(counts)) for _ in range(3))
    rivals = np.flatnonzero(counts)
    rivals = rivals[rivals != centre]
    if len(rivals) == 0 or (centre is not None and counts[centre] == 0):
        return BatchEvidence(gains, bets, drawn)
    arms = (rivals,) if centre is None else (rivals, np.full(len(rivals), centre))
    shares, both = tuple(1.0 / counts[who] for who in arms), np.stack(arms, -1)
    slack = np.maximum(margins[rivals], 0.0)
    placed, promise = np.zeros(len(rivals)), np.zeros(len(rivals))
    for scale in _tried(noise_mgf, noise_scales):
        tried = kappa * slack / sum(scale[who] ** 2 * share for share, who in zip(shares, arms, strict=True))
        tried = _bearable(tried, np.stack(shares, -1), noise_mgf, both, counts[both], ranged=scale is noise_scales)
        cost = sum(noise_mgf.expected(tried * share, who, counts[who]) for share, who in zip(shares, arms, strict=True))
        tried, gain = enough(tried, slack, np.asarray(cost), None if needs is None else needs[rivals])
        placed, promise = np.where(gain > promise, tried, placed), np.maximum(gain, promise)
    ahead = means[rivals] if centre is None else means[rivals] - means[centre]
    penalty = sum(noise_mgf.total(placed * share, who, seen) for share, who in zip(shares, arms, strict=True))
    gains[rivals], bets[rivals], drawn[rivals] = placed * (epsilon - ahead) - penalty, placed, placed * ahead
    return BatchEvidence(np.minimum(gains, CERTAIN), bets, drawn)


def number_evidence(
    seen: Observations,
    bound: float,
    margins: FloatArray,
    noise_mgf: Mgf,
    noise_scales: FloatArray,
    needs: FloatArray | None = None,
    kappa: float = HEURISTIC_KAPPA,
) -> FloatArray:
    """The logarithm of each arm's e-value from one batch, against "its mean is above the bound"; arms share nothing.

        gain = t (bound - mean) - allowance of n pulls for bets t / n,    t = kappa margin n / s^2

    Nothing is bet where the margin, a guess of bound - h_j from before the batch, is not positive.

    Source: docs/questions.md, line 2.
    """
    return _gains_of_means(seen, None, bound, margins, noise_mgf, noise_scales, needs, kappa).gains


# --- What a test has collected: log e-values of many nulls, one e-process for each arm, and so for each kind of null.


@frozen
class EProcesses:
    """One e-process for each arm, all against nulls of one kind."""

    name: str  # which kind
    values: FloatArray  # log of each process now, (K,)
    peaks: FloatArray  # log of the largest that each has been, (K,)

    def after(self, gains: FloatArray) -> EProcesses:
        """The processes after one more batch, whose log e-values these are; they may fall."""
        values = self.values + gains
        return EProcesses(self.name, values, np.maximum(self.peaks, values))

    def rejected(self, threshold: float) -> BoolArray:
        """The nulls that are rejected, (K,), for good: Ville's inequality is about the largest value of a process."""
        return np.asarray(self.peaks >= threshold)

    def beaten(self, threshold: float) -> IntArray:
        """Where nulls are rejected, ascending."""
        return np.flatnonzero(self.rejected(threshold))


Collected = tuple[EProcesses, ...]


def processes_of(collected: Collected, name: str | int, num_arms: int, log_weight: float = 0.0) -> EProcesses:
    """Those of that name; where there are none, new ones that start with that weight."""
    found = next((one for one in collected if one.name == str(name)), None)
    start = np.full(num_arms, log_weight)
    return EProcesses(str(name), start, start) if found is None else found


def with_processes(collected: Collected, own: EProcesses) -> Collected:
    """All, those in the place of their former selves, or added."""
    if all(one.name != own.name for one in collected):
        return (*collected, own)
    return tuple(own if one.name == own.name else one for one in collected)
