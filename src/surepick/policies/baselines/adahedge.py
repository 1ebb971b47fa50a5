"""A game over the arms: a learner plays weights, nature answers with the nearest parameter that contradicts the leader.

Source: Degenne, Menard, Shang & Valko (2020); AdaHedge by de Rooij, van Erven, Grunwald & Koolen (2014).
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.linalg.factorisations import cholesky, solve_lower

HEURISTIC_EVERYWHERE = 1e-6  # share of the weights that is spread over all arms when nature answers
HEURISTIC_RIDGE = 1e-13  # of the trace, against rounding


@record
class Learner:
    """An AdaHedge learner over the arms.

    Args:
        weights: sum of the weights that were played, in pulls, shape (K,).
        losses: cumulated losses of each arm, shape (K,).
        mixability: cumulated mixability gap, which sets the learning rate log(K) / gap.
    """

    weights: FloatArray
    losses: FloatArray
    mixability: float

    def __post_init__(self) -> None:
        freeze(self, weights=np.float64, losses=np.float64)


def hedged(learner: Learner) -> FloatArray:
    """The weights that AdaHedge plays: proportional to exp(-log(K) / gap * losses); the best arms alike at gap 0.

    Source: de Rooij, van Erven, Grunwald & Koolen (2014), AdaHedge.
    """
    excess = learner.losses - learner.losses.min()
    if learner.mixability == 0.0:
        best = (excess == 0.0).astype(np.float64)
        equal: FloatArray = best / best.sum()
        return equal
    rate = math.log(max(len(excess), 2)) / learner.mixability
    unscaled = np.exp(-rate * excess)
    weights: FloatArray = unscaled / unscaled.sum()
    return weights


def taught(learner: Learner, weights: FloatArray, losses: FloatArray, pulls: int) -> Learner:
    """AdaHedge after a turn: its losses, and the mixability gap, the loss of the weights less their mix loss.

    Source: de Rooij, van Erven, Grunwald & Koolen (2014), AdaHedge.
    """
    least = float(losses[weights > 0].min())
    if learner.mixability == 0.0:
        mixed = least
    else:
        rate = math.log(max(len(losses), 2)) / learner.mixability
        mixed = least - math.log(float(weights @ np.exp(-rate * np.maximum(losses - least, 0.0)))) / rate
    gap = max(0.0, float(weights @ losses) - mixed)
    return Learner(learner.weights + pulls * weights, learner.losses + losses, learner.mixability + gap)


def nearest_contradiction(rows: FloatArray, scores: FloatArray, weights: FloatArray, *, epsilon: float) -> FloatArray:
    """<theta-hat - lambda, x> of every arm, for nature's best answer lambda to the weights; 0 if it has none.

        j = argmin of (score(i) - score(j) + epsilon)^2 / ||x_i - x_j||^2_{V_w^-1}
        theta-hat - lambda = (score(i) - score(j) + epsilon) V_w^-1 (x_i - x_j) / ||x_i - x_j||^2_{V_w^-1}

    Args:
        rows: x, shape (K, r), of rank r.
        scores: <theta-hat, x>, shape (K,), in reward units.
        weights: w, shape (K,), sum 1.
        epsilon: the shortfall that is tolerated, in reward units.
    """
    leader, dim = int(np.argmax(scores)), rows.shape[1]
    spread = (1.0 - HEURISTIC_EVERYWHERE) * weights + HEURISTIC_EVERYWHERE / len(weights)
    matrix = rows.T @ (rows * spread[:, None])
    if dim == 0:
        return np.zeros(len(scores))
    matrix[np.diag_indices_from(matrix)] += HEURISTIC_RIDGE * float(np.trace(matrix))
    factor = cholesky(matrix)
    if factor is None:
        return np.zeros(len(scores))
    coordinates = solve_lower(factor, rows.T).T
    away = coordinates[leader] - coordinates
    squares = np.einsum("ij,ij->i", away, away)
    lead = scores[leader] - scores + epsilon
    cost = np.divide(lead**2, squares, out=np.full(len(scores), np.inf), where=squares > 0)
    rival = int(np.argmin(cost))
    if not math.isfinite(cost[rival]):
        return np.zeros(len(scores))
    answer: FloatArray = coordinates @ away[rival] * (lead[rival] / squares[rival])
    return answer


def tracked(weights: FloatArray, counts: IntArray, total: int) -> IntArray:
    """`total` pulls for the arms that lag most behind the weights: shares of what each lacks, by largest remainder."""
    lacking = np.maximum(weights - counts, 0.0)
    if lacking.sum() == 0.0:
        lacking = np.ones(len(counts))
    shares = lacking * (total / lacking.sum())
    pulls: IntArray = np.floor(shares).astype(np.int64)
    left = total - int(pulls.sum())
    pulls[np.argsort(pulls - shares, kind="stable")[:left]] += 1
    return pulls
