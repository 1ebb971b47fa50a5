"""What we guess from the answers so far, to choose comparators and stakes. It decides what is spent, not what holds."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from surepick.core.arrays import BoolArray, FloatArray
from surepick.estimators.item_processes import ItemBets

HEURISTIC_PRIOR_ITEMS = 2.0  # items that a guess made in advance is worth
HEURISTIC_PRIOR_VARIANCE = 0.24  # of the difference of two scores
HEURISTIC_SHARPNESS = 3.0  # how fast the weight of a comparator falls with its distance from the leader
SMALLEST_WEIGHT = 1e-9


def leader_of(answers: FloatArray, among: BoolArray) -> int:
    """The arm of the best mean answer among these; the first of equals.

    Args:
        answers: shape (K, n), NaN where there is none.
        among: shape (K,).
    """
    known = np.isfinite(answers)
    counts = known.sum(axis=1)
    means = np.where(known, answers, 0.0).sum(axis=1) / np.maximum(counts, 1)
    return int(np.argmax(np.where(among & (counts > 0), means, -1.0)))


def first_bets(num_arms: int) -> ItemBets:
    """Before any answer: each arm is compared with the mean of the others."""
    return ItemBets(np.full(num_arms, 1.0 / num_arms), np.zeros(num_arms), np.ones(num_arms))


def next_bets(answers: FloatArray, answering: BoolArray, *, epsilon: float, left: float) -> ItemBets:
    """The comparators of the next items, and what to expect of them.

    An arm weighs Phi(-z)^3, z being how far it lies behind the leader in the items that both answered, in standard
    errors: early a bad arm is compared with the mean of several good ones, which varies less than one of them; later
    with the leader alone. The guessed mean of an arm without many answers leans towards the mean of all.

    Args:
        answers: scores so far, shape (K, n), NaN where there is none.
        answering: who answers the next items, shape (K,).
        epsilon: the shortfall that is tolerated.
        left: the share of the items that was not drawn.

    Cost: O(K n).
    """
    known = np.isfinite(answers)
    scores, counts = np.where(known, answers, 0.0), known.sum(axis=1)
    leader = leader_of(answers, answering)
    both = known & known[leader]
    behind = np.where(both, scores[leader] - scores, 0.0)
    gaps, variances = _moments(behind, both.sum(axis=1))
    errors = np.sqrt(variances * max(left, 1e-12) / np.maximum(both.sum(axis=1), 1))
    weights = np.exp(HEURISTIC_SHARPNESS * log_ndtr(-np.clip(gaps / errors, 0.0, 30.0)))
    weights = np.where(answering, np.maximum(weights, SMALLEST_WEIGHT), 0.0)
    weights /= weights.sum()
    mixed = weights @ scores
    others = np.maximum(1.0 - weights, 1e-12)[:, None]
    compared = np.where(known, (mixed - weights[:, None] * scores) / others - scores, 0.0)
    _, variances = _moments(compared, counts)
    sums, prior = compared.sum(axis=1), HEURISTIC_PRIOR_ITEMS
    usual = sums[answering].sum() / (counts[answering].sum() + prior)
    return ItemBets(weights, (sums + prior * usual) / (counts + prior), variances, leader, epsilon)


def _moments(values: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(means, variances) of each row's entries, 0 where there is none; the variance leans towards its prior."""
    means = values.sum(axis=1) / np.maximum(counts, 1)
    spread = np.maximum((values**2).sum(axis=1) - counts * means**2, 0.0)
    return means, (spread + HEURISTIC_PRIOR_ITEMS * HEURISTIC_PRIOR_VARIANCE) / (counts + HEURISTIC_PRIOR_ITEMS)
