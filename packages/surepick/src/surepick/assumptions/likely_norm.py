"""The norm that results suggest of the mean rewards: what a reader compares the norm with that an answer survives.

A fit that shrinks has a norm of its own, which is near 0 after a few results: an answer survives any multiple of that.
So we take the largest prior scale that the results do not speak against, and add what they leave open.
"""

import math
from collections.abc import Callable

import numpy as np

from surepick.assumptions.records import LEVEL, Assumption, Linear, Smooth, balls, settled
from surepick.core.observations import Observations
from surepick.core.records import FloatArray, record
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import thin_svd

MOST_ARMS = 1_000  # among which directions are looked for; all that were measured, and some of the others
HEURISTIC_NATS = 1.5  # of log marginal likelihood, by which a prior scale may be worse than the best
HEURISTIC_LEAST_REPEATS = 10  # degrees of freedom from which repeats say how much rewards vary
HEURISTIC_MARGIN = 1.5  # times the norm that the results suggest: the norm that is read where none is named
SCALES = np.geomspace(1e-4, 1e4, 321)


def noise_scale(seen: Observations, declared: float) -> float:
    """How much a reward varies around the mean of its arm: by repeats, but no more than declared."""
    known = seen.within is not None or seen.squares is not None
    freedom = int(np.maximum(seen.counts - 1, 0).sum())
    if not known or freedom < HEURISTIC_LEAST_REPEATS:
        return declared
    repeated = seen.counts > 1
    total = float(seen.deviations[repeated].sum())
    if total <= float(seen.rounding[repeated].sum()):  # repeats that are all equal say nothing
        return declared
    return min(declared, math.sqrt(total / freedom))


def likely_norm(
    assumption: Linear | Smooth, features: FloatArray, seen: Observations, sigma: float, epsilon: float
) -> float:
    """The upper norm, at least about epsilon / 2, in reward units: ours, empirical Bayes; a reward has scale sigma.

        theta ~ N(0, tau^2 I),   tau' = the largest tau whose log marginal likelihood is within 1.5 nats of the best
        norm^2 = |E theta|^2 + sum of Var theta_k over the directions k that can move an arm by epsilon / 13 at tau'

    It is no bound: differences that nobody measured, or that are below the noise, may have any norm. Cost: O(n^3) for n
    of the arms, at most those that were measured and about 1,000 more.
    """
    measured = np.flatnonzero(seen.counts)
    others = np.flatnonzero(seen.counts == 0)
    arms = np.concatenate([measured, others[:: max(1, -(-len(others) // MOST_ARMS))]])
    coordinates = assumption.coordinates(features[arms])
    size = float(np.sqrt(np.mean(np.sum(coordinates**2, axis=1)))) or 1.0
    if assumption.level:
        coordinates = np.column_stack([coordinates, np.full(len(arms), LEVEL)])
    weights = np.sqrt(seen.counts[measured]) / sigma
    rows, means = coordinates[: len(measured)] * weights[:, None], seen.means[measured] * weights
    left, singular, right = thin_svd(rows)
    along = left.T @ means
    middle = max(float(np.ptp(seen.means[measured])), sigma, epsilon) / size
    scales = np.maximum(SCALES * middle, 0.5 * epsilon / size)
    grown = 1.0 + (scales[:, None] * singular) ** 2
    likelihood = 0.5 * np.sum(along**2 * (1.0 - 1.0 / grown) - np.log(grown), axis=1)
    tau = float(scales[likelihood >= likelihood.max() - HEURISTIC_NATS].max())
    shrunk = singular / (singular**2 + tau**-2) * along
    moved = tau**2 * np.mean(coordinates**2, axis=0) >= (0.25 * epsilon) ** 2 / 10.0
    reduced = 1.0 / (singular**2 + tau**-2) - tau**2  # of the variance along each row of V'
    open_variance = tau**2 + reduced @ right**2
    return float(np.sqrt(np.sum(shrunk**2) + np.sum(np.maximum(open_variance[moved], 0.0))))


@record
class Filled:
    """An assumption with its norm."""

    assumption: Assumption
    suggested: float | None  # the norm that the results suggest; None: they suggest none
    by_results: bool  # the norm was left out, and is half as much again as suggested


def with_likely_norm(
    assumption: Assumption, features: FloatArray, seen: Observations, sigma: float | None, epsilon: float
) -> Filled:
    """The assumption with the norm that results suggest, with a margin, where it is left out.

    Args:
        seen, sigma, epsilon: as of `likely_norm`; sigma None: results suggest nothing.

    Raises:
        InvalidInput: results do not suggest the norm that is left out.
    """
    found = balls(assumption)
    suggested = likely_norm(found[0], features, seen, sigma, epsilon) if found and sigma is not None else None
    unnamed = sum(one.norm is None for one in found)
    if unnamed > 1 or (unnamed and (found[0].norm is not None or suggested is None)):
        raise InvalidInput(
            f"{str(assumption)!r} lacks a norm that results suggest of one class alone, measured without blocks; write "
            f"{found[-1]}{',' if ':' in str(found[-1]) else ':'}norm=10, say."
        )
    if unnamed:
        assumption = settled(assumption, features, rounded(HEURISTIC_MARGIN * (suggested or 0.0), 2, math.ceil))
    return Filled(assumption, suggested, unnamed > 0)


def rounded(number: float, digits: int, towards: Callable[[float], int]) -> float:
    """A number of so many digits, `math.floor` or `math.ceil` of it; one that is not positive and finite as it is."""
    if not (number > 0.0 and math.isfinite(number)):
        return number
    unit = 10.0 ** (math.floor(math.log10(number)) - digits + 1)
    exact = number / unit * (1.0 + (1e-12 if towards is math.floor else -1e-12))
    return float(f"{towards(exact) * unit:.{digits}g}")
