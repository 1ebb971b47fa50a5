"""Which arms are on a wrong list. It needs the truth, so only simulations and tests can ask."""

from __future__ import annotations

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.certificate import Listed
from surepick.errors import InvalidInput
from surepick.policies.base import Problem
from surepick.questions import Above, AllGood, BestFeasible, OneOf, OwnQuestion, TopM

ROUNDING = 1e-12  # of the means' size


def wrongly_listed(
    problem: Problem, lists: Listed, arms: Arms, means: FloatArray, quantities: FloatArray | None = None
) -> BoolArray:
    """The arms of whom the lists say what is not so, shape (K,).

    Args:
        problem: what was asked.
        lists: are judged.
        arms: have the ids of the lists.
        means: h, large ones good, shape (K,), in reward units.
        quantities: means of what constraints are on, in their order, shape (K, r); None where there are none.
    """
    if problem.question is None:
        return np.zeros(len(means), bool)
    first, second = set(lists.inside), set(lists.outside)
    inside, outside = (np.array([one in ids for one in arms.ids]) for ids in (first, second))
    if isinstance(problem.question, BestFeasible):
        return _wrongly_feasible(problem, inside, outside, means, quantities)
    if arms.segments is None or isinstance(problem.question, Above):
        return _wrong(problem, inside, outside, arms, means)
    wrong, segments = np.zeros(len(means), bool), np.array(arms.segments)
    for name in np.unique(segments):
        own = segments == name
        wrong[own] = _wrong(problem, inside[own], outside[own], arms, means[own])
    return wrong


def _wrong(problem: Problem, inside: BoolArray, outside: BoolArray, arms: Arms, means: FloatArray) -> BoolArray:
    """The same of arms that are compared with each other."""
    asked, epsilon = problem.question, problem.epsilon
    slack = ROUNDING * max(float(np.abs(means).max()), 1.0)
    if isinstance(asked, OwnQuestion):
        return asked.wrong(problem, inside, outside, means)
    if isinstance(asked, Above):
        centre = asked.threshold
        if centre is None:
            centre = float(means[arms.ids.index(str(asked.control))])
        low, high = centre + asked.by - epsilon, centre + asked.by + epsilon
    elif isinstance(asked, TopM):
        low, high = float(np.sort(means)[-min(asked.m, len(means))]) - epsilon, np.inf
    elif isinstance(asked, OneOf):
        low, high = float(np.sort(means)[-asked.best_of(len(means))]) - epsilon, np.inf
    else:
        high = float(means.max()) - epsilon
        low = high - (epsilon if not isinstance(asked, AllGood) or asked.slack is None else asked.slack)
    return np.asarray((inside & (means < low - slack)) | (outside & (means > high + slack)))


def _wrongly_feasible(
    problem: Problem, inside: BoolArray, outside: BoolArray, means: FloatArray, quantities: FloatArray | None
) -> BoolArray:
    """Where one arm that keeps the bounds is named, or none is."""
    asked = problem.question
    if not isinstance(asked, BestFeasible):
        raise InvalidInput("the question has no bounds.")
    feasible, near = _kept(asked, quantities, relaxed=False), _kept(asked, quantities, relaxed=True)
    if not inside.any():
        return np.asarray(outside & feasible)
    slack = ROUNDING * max(float(np.abs(means).max()), 1.0)
    best = float(means[feasible].max(initial=-np.inf))
    return np.asarray(inside & (~near | (means < best - problem.epsilon - slack)))


def _kept(asked: BestFeasible, quantities: FloatArray | None, *, relaxed: bool) -> BoolArray:
    """The arms that keep all bounds, or all but for the tolerances, shape (K,)."""
    if quantities is None:
        raise InvalidInput("whether arms keep the bounds is not known here: the environment has no such quantities.")
    found = np.ones(len(quantities), bool)
    for one, means in zip(asked.constraints, quantities.T, strict=True):
        room = (one.bound - means) * (1.0 if one.at_most else -1.0) + (one.tolerance if relaxed else 0.0)
        found &= room >= -ROUNDING * max(float(np.abs(means).max()), abs(one.bound)) * relaxed
    return found
