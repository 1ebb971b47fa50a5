"""What measuring every candidate equally often costs, for the same promise."""

import math
from collections import Counter
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.noise import known_scale, largest_scale
from surepick.policies.base import Policy, Problem
from surepick.policies.dimension import uniform_pulls


def uniform_pulls_for(problem: Problem, sigma: float) -> int:
    """Pulls of one batch, the same of each arm, whose averages then answer the question.

        K ceil(2 v log(n / delta) / m^2)

    n nulls, each of which an average, or a difference of two, contradicts wrongly only if it is off by the margin m; v
    is its variance for one pull an arm: sigma^2, or 2 sigma^2.

        best                     2 sigma^2, epsilon      K - 1 worse arms that could overtake the best one
        another question         as its file says: `Question.even_pulls`

    With errors="discovery" the promise is more than is asked: no error at all.

    Source: ours (Hoeffding and a union).
    """
    if problem.question is None:
        return uniform_pulls(problem.num_arms, sigma=sigma, epsilon=problem.epsilon, delta=problem.delta)
    segments = None if problem.arms is None else problem.arms.segments
    sizes = [problem.num_arms] if segments is None else [*Counter(segments).values()]
    return problem.question.even_pulls(problem, sigma, sizes)


LIMIT = 20  # times what measuring all equally often takes; the worst-case forecast is about twice that
UNKNOWN = 3  # times as many where the scale is to be found out too
LEAST_EACH = 100  # measurements of each arm that no limit forbids
SURE = 5  # repeats after which an arm's own spread counts


def usual_limit(policy: Policy[Any], seen: Observations | None) -> int | None:
    """Measurements after which a loop without a limit of its own ends: far beyond what any study should take."""
    traits, problem = policy.traits, policy.problem
    if traits.stops == "budget" or traits.rounds is not None or traits.items is not None or traits.rows is not None:
        return None
    sigma, times = None, LIMIT
    if known_scale(problem.noise):
        sigma = largest_scale(problem.noise)
    elif seen is not None and (seen.within is not None or seen.squares is not None):
        sigma, times = _shown(seen), UNKNOWN * LIMIT
    if sigma is None:
        return None
    return max(times * uniform_pulls_for(problem, sigma), LEAST_EACH * problem.num_arms)


def _shown(seen: Observations) -> float | None:
    """The largest standard deviation that repeats show; None without repeats."""
    freedom, within = np.maximum(seen.counts - 1, 0), seen.deviations
    if not freedom.any():
        return None
    own = within[freedom >= SURE - 1] / freedom[freedom >= SURE - 1]
    return math.sqrt(max(float(within.sum() / freedom.sum()), float(own.max(initial=0.0))))
