"""What a study takes where candidates differ clearly, as usual, and hardly at all: ranges of simulated studies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.random_streams import stream
from surepick.core.records import FloatArray
from surepick.core.values import positive_number, real_numbers, whole_number
from surepick.drawings.forecasts import Range, Ranges
from surepick.errors import InvalidInput
from surepick.forecasts.forecast import noise_to_draw
from surepick.forecasts.simulated_studies import Effort, Limit, simulate_each
from surepick.noise import Noise, largest_scale
from surepick.policies.base import Policy
from surepick.policies.prices import Costs
from surepick.policies.uniform import uniform_pulls_for

LEAST_STUDIES = 20
SPREAD = 3.0  # times the scatter of results: standard deviation of the means, where nothing is known of them
AHEAD, NEAR = (
    2.0,
    0.5,
)  # tolerances: by which the best one leads where differences are clear; within which all are equal
OF_RANGE = 0.2  # of the range of rewards: the most that means of bounded rewards spread by
MOST_SECONDS = 20.0
MOST_PULLS = 10**9
SIDES = (5.0, 95.0)  # per cent of the studies between which a range lies


def forecast_ranges(
    policy: Policy[Any],
    earlier: ArrayLike | None = None,
    *,
    minimize: bool = False,
    seed: int = 0,
    studies: int = LEAST_STUDIES,
    spread: float | None = None,
    assume_scale: ArrayLike | None = None,
    most_seconds: float = MOST_SECONDS,
) -> Ranges:
    """Measurements and rounds of at least 20 simulated studies each, for three kinds of candidates.

    clear: the best one is two tolerances ahead of the second; usual: means spread by 3 times the scatter of results,
    or as `earlier` ones do; nearly equal: all within half a tolerance. Means are drawn anew for each study; where the
    policy uses features they are linear in these.

    Args:
        policy: the algorithm, which asks for the best candidate.
        earlier: means that are known, shape (K,), in the user's sign and unit: how far those of a usual study spread.
        minimize: small rewards are good.
        seed: decides means and rewards.
        studies: how many are simulated of each kind.
        spread: the standard deviation of the means of a usual study, in reward units; None: as above.
        assume_scale: as in `forecast`, with noise of unknown scale.
        most_seconds: simulating ends after so many seconds of processor time; then ranges say "more than".

    Raises:
        InvalidInput: the policy answers another question or asks for test items, or a number has no meaning here.

    Source: ours. Cost: that of the policy's own computations, 60 studies.
    """
    if policy.problem.question is not None or policy.traits.items is not None:
        raise InvalidInput("ranges are of studies that ask for the best candidate by measurements; take forecast().")
    whole_number("studies", studies, least=LEAST_STUDIES, meaning="fewer show no range.")
    drawn = noise_to_draw(policy.problem.noise, assume_scale, policy.problem.num_arms)
    usual = _spread(drawn, policy.problem.num_arms, earlier, spread)
    effort = Effort(math.inf, most_seconds)
    found = []
    for kind in ("clear", "usual", "nearly equal"):
        means = [_means(policy, kind, usual, drawn, stream(seed, "ranges", kind, one)) for one in range(studies)]
        limit = Limit(MOST_PULLS, math.inf, Costs.of(policy), effort)
        runs = simulate_each(policy, means, drawn, limit, seed=seed, sign=-1.0 if minimize else 1.0)
        over = any(run.cut or run.hopeless for run in runs) or len(runs) < studies
        totals, rounds = [run.total for run in runs], [len(run.plans) for run in runs]
        found.append(Range(kind, *_quantiles(totals), *_quantiles(rounds), len(runs), over))
    problem = policy.problem
    uniform = uniform_pulls_for(problem, largest_scale(drawn))
    return Ranges(tuple(found), problem.num_arms, float(problem.epsilon), float(problem.delta), usual, uniform)


def _quantiles(values: list[int]) -> tuple[int, int, int]:
    """(5 %, median, 95 %), as numbers of studies that were simulated."""
    low, high = np.percentile(values, SIDES, method="inverted_cdf")
    return int(low), int(np.percentile(values, 50.0, method="inverted_cdf")), int(high)


def _spread(noise: Noise, number: int, earlier: ArrayLike | None, spread: float | None) -> float:
    """The standard deviation of the means of a usual study."""
    if spread is not None:
        return positive_number("spread", spread, "how far the means of candidates lie apart (standard deviation).")
    if earlier is not None:
        known = np.asarray(real_numbers("earlier", earlier))
        if known.shape != (number,):
            raise InvalidInput(f"earlier has the shape {known.shape}; give a mean for each of {number} candidates.")
        if number > 1 and np.isfinite(known).all() and (found := float(known.std(ddof=1))) > 0.0:
            return found
    found = SPREAD * largest_scale(noise)
    return found if noise.support is None else min(found, OF_RANGE * (noise.support[1] - noise.support[0]))


def _means(policy: Policy[Any], kind: str, spread: float, noise: Noise, rng: np.random.Generator) -> FloatArray:
    """Means of the candidates of one study, large ones good."""
    number, epsilon = policy.problem.num_arms, float(policy.problem.epsilon)
    shape = rng.standard_normal(number)
    embedding = policy.traits.embedding
    if policy.traits.uses_features and embedding is not None:
        features = embedding.at(embedding.max_dim).features
        shape = features @ rng.standard_normal(features.shape[1])
    scale = float(shape.std())
    shape = (shape - shape.mean()) / scale if scale > 0.0 else np.zeros(number)
    means = spread * shape
    if kind == "nearly equal":
        apart = float(np.ptp(means))
        means *= NEAR * epsilon / apart if apart > 0.0 else 0.0
    elif kind == "clear" and number > 1:
        first, second = (float(one) for one in np.sort(means)[:-3:-1])
        if policy.traits.uses_features and first > second:  # one that leads alone would be no function of the features
            means *= max(AHEAD * epsilon / (first - second), 1.0)
        else:
            means[int(np.argmax(means))] = second + AHEAD * epsilon
    if noise.support is None:
        return means
    low, high = noise.support
    middle, room = 0.5 * (low + high), 0.5 * (high - low)
    largest = float(np.abs(means).max())
    return middle + means * (min(1.0, room / largest) if largest > 0.0 else 1.0)
