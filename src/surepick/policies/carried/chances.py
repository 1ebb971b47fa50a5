"""The chance that an arm is within epsilon of the best one, by what the past suggests. For what is shown only."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, ndtr

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.random_streams import stream
from surepick.estimators import RegularLeastSquares
from surepick.linalg.factorisations import thin_svd
from surepick.linalg.row_blocks import each_row_block

HEURISTIC_SHORT_LIST = 200  # arms whose chance is looked at; the others have none
HEURISTIC_DRAWS = 400  # of the parameter
HEURISTIC_PLACES = (-2.0, -1.0, 0.0, 1.0, 2.0)  # errors at which the distribution of the best mean is worked out ...
HEURISTIC_PLACED = 40  # ... of so many arms
MANY = 16_384  # arms of which only those are looked at that can be on the short list
ROUNDED_UP = 1.0 + 1e-9
HEURISTIC_RIVALS = 2000  # arms that are looked at one by one; of the others a sample of that size


def chances_of_means(scores: FloatArray, errors: FloatArray, epsilon: float) -> FloatArray:
    """P(h_c >= max_j h_j - epsilon) for independent h_j ~ N(f_j, s_j^2).

        E prod_{j != c} Phi((h_c + epsilon - f_j) / s_j)            over h_c

    The product is worked out at places where a factor rises or an arm may lie; between two of them it counts with its
    mean there, times the chance that h_c lies between.

    Args:
        scores: f, shape (K,).
        errors: s, positive, shape (K,).
        epsilon: in reward units.

    Returns:
        Shape (K,).

    Cost: O(K log K), and 4,000 arms at 400 places.
    """
    order = np.argsort(-(scores + 2.0 * errors), kind="stable")
    short, rivals, times = order[:HEURISTIC_SHORT_LIST], *_sampled(order)
    placed = order[:HEURISTIC_PLACED]
    spread = np.array(HEURISTIC_PLACES) * errors[placed, None]
    places = np.unique([scores[placed, None] + spread, scores[placed, None] - epsilon + spread])
    beyond = (places[:, None] + epsilon - scores[rivals]) / errors[rivals]
    product = log_ndtr(beyond) @ times
    away = (places - scores[short, None]) / errors[short, None]
    others = np.exp(np.minimum(product - log_ndtr(away + epsilon / errors[short, None]), 0.0))
    ends = np.pad(others, ((0, 0), (1, 1)), mode="edge")
    between = np.diff(np.pad(ndtr(away), ((0, 0), (1, 1)), constant_values=((0.0, 0.0), (0.0, 1.0))), axis=1)
    chances = np.zeros(len(scores))
    chances[short] = np.sum(between * 0.5 * (ends[:, 1:] + ends[:, :-1]), axis=1)
    return chances


def _sampled(order: IntArray) -> tuple[IntArray, FloatArray]:
    """(the first arms and some of the others, for how many arms each stands)."""
    first, others = order[:HEURISTIC_RIVALS], order[HEURISTIC_RIVALS:]
    some = others[:: max(1, -(-len(others) // HEURISTIC_RIVALS))]
    stands = len(others) / max(len(some), 1)
    return np.concatenate([first, some]), np.concatenate([np.ones(len(first)), np.full(len(some), stands)])


def chances_of_vectors(
    scores: FloatArray, coordinates: FloatArray, epsilon: float, *, noise_scale: float = 1.0
) -> FloatArray:
    """P(h_c >= max_j h_j - epsilon) for h = f + s U z, z ~ N(0, I), by draws that are always the same.

    Args:
        scores: f, shape (K,).
        coordinates: U, shape (K, r).
        epsilon: in reward units.
        noise_scale: s, in reward units.

    Returns:
        Shape (K,).

    Cost: O(K r), and a product of 200 x r and r x 400.
    """
    leader = coordinates[int(np.argmax(scores))]
    promise = np.empty(len(scores))

    def promised(rows: slice) -> None:
        promise[rows] = _promise(scores[rows], coordinates[rows], leader, noise_scale)

    each_row_block(promised, len(scores))
    short = _smallest(promise, HEURISTIC_SHORT_LIST)
    chances = np.zeros(len(scores))
    chances[short] = _drawn(scores[short], coordinates[short], epsilon, noise_scale)
    return chances


def chances_of_fit(fitted: RegularLeastSquares, lengths: FloatArray, epsilon: float, noise_scale: float) -> FloatArray:
    """The same for a fit whose coordinates are formed of some arms only.

    ||u_i - u_c|| is at most g (||z_i|| + ||z_c||), g the largest singular value of `to_unit`: that leaves few arms that
    can be on the short list.

    Args:
        fitted: f and U.
        lengths: ||z||, shape (K,).
        epsilon: in reward units.
        noise_scale: s, in reward units.
    """
    scores, leader = fitted.scores, int(np.argmax(fitted.scores))
    if len(scores) <= MANY:
        return chances_of_vectors(
            scores, fitted.coordinates_of(np.arange(len(scores))), epsilon, noise_scale=noise_scale
        )
    centre = fitted.coordinates_of(np.array([leader]))[0]
    best = _smallest(-scores, HEURISTIC_SHORT_LIST)
    least = float(_promise(scores[best], fitted.coordinates_of(best), centre, noise_scale).max())
    reach = 2.0 * noise_scale * float(thin_svd(fitted.to_unit)[1][0]) * ROUNDED_UP
    among = np.flatnonzero(scores + reach * (lengths + lengths[leader]) >= -least - (ROUNDED_UP - 1.0) * abs(least))
    promise = np.empty(len(among))

    def promised(rows: slice) -> None:
        arms = among[rows]
        promise[rows] = _promise(scores[arms], fitted.coordinates_of(arms), centre, noise_scale)

    each_row_block(promised, len(among))
    short = among[_smallest(promise, HEURISTIC_SHORT_LIST)]
    chances = np.zeros(len(scores))
    chances[short] = _drawn(scores[short], fitted.coordinates_of(short), epsilon, noise_scale)
    return chances


def _promise(scores: FloatArray, coordinates: FloatArray, leader: FloatArray, noise_scale: float) -> FloatArray:
    """-(f + 2 s ||u - u_c||) of some arms, shape (n,), for u_c of shape (r,): the less, the more they promise."""
    apart = noise_scale * coordinates
    apart -= noise_scale * leader
    apart **= 2
    return np.asarray(-(scores + 2.0 * np.sqrt(np.sum(apart, axis=1))))


def _drawn(scores: FloatArray, coordinates: FloatArray, epsilon: float, noise_scale: float) -> FloatArray:
    """How often each of some arms, shape (n,), is within epsilon of the best of them."""
    rank = coordinates.shape[1]
    draws = stream(0, "chances", rank).standard_normal((rank, HEURISTIC_DRAWS))
    drawn = scores[:, None] + (noise_scale * coordinates) @ draws
    return np.asarray(np.mean(drawn >= drawn.max(axis=0) - epsilon, axis=1))


def _smallest(values: FloatArray, number: int) -> IntArray:
    """Where the smallest values are, ascending, equal ones in their order; without a sort of all."""
    if len(values) > number:
        among = np.flatnonzero(values <= np.partition(values, number - 1)[number - 1])
    else:
        among = np.arange(len(values))
    return among[np.argsort(values[among], kind="stable")][:number]
