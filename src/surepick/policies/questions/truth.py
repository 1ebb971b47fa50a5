"""Which arms are on a wrong list. It needs the truth, so only simulations and tests can ask."""

from __future__ import annotations

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import BoolArray, FloatArray
from surepick.core.certificate import Listed
from surepick.policies.base import Problem
from surepick.questions import Above, OneOf, TopM

ROUNDING = 1e-12  # of the means' size


def wrongly_listed(problem: Problem, lists: Listed, arms: Arms, means: FloatArray) -> BoolArray:
    """The arms of whom the lists say what is not so, shape (K,).

    Args:
        problem: what was asked.
        lists: are judged.
        arms: have the ids of the lists.
        means: h, large ones good, shape (K,), in reward units.
    """
    wrong, asked, epsilon = np.zeros(len(means), bool), problem.question, problem.epsilon
    if asked is None:
        return wrong
    place = {one: arm for arm, one in enumerate(arms.ids)}
    inside, outside = ([place[one] for one in ids] for ids in (lists.inside, lists.outside))
    slack = ROUNDING * max(float(np.abs(means).max()), 1.0)
    if isinstance(asked, Above):
        centre = asked.threshold
        if centre is None:
            centre = float(means[place[str(asked.control)]])
        low, high = centre + asked.by - epsilon, centre + asked.by + epsilon
    elif isinstance(asked, TopM):
        low, high = float(np.sort(means)[-asked.m]) - epsilon, np.inf
    elif isinstance(asked, OneOf):
        low, high = float(np.sort(means)[-asked.best_of(len(means))]) - epsilon, np.inf
    else:
        high = float(means.max()) - epsilon
        low = high - (epsilon if asked.slack is None else asked.slack)
    wrong[inside] = means[inside] < low - slack
    wrong[outside] = means[outside] > high + slack
    return wrong
