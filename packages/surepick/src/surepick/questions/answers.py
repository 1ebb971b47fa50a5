"""What an answer by lists says, and whether it is true."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.certificate import Listed, Segment
from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.questions.protocol import Lists

# --- What an answer by lists says, in words.


def lists_of(problem: Any, lists: tuple[IntArray, IntArray] | None) -> Listed | None:
    """The lists of a claim, with what they promise; None where the question is which arm is the best.

    Arms have their ids, or their indices where the problem does not know them.
    """
    if lists is None or problem.question is None:
        return None
    asked, num_arms = problem.question, problem.num_arms
    ids = tuple(map(str, range(num_arms))) if problem.arms is None else problem.arms.ids
    inside, outside = (arms.tolist() for arms in lists)
    unasked = np.flatnonzero(~asked.asked_about(problem))
    left = np.setdiff1d(np.arange(num_arms), [*inside, *outside, *unasked.tolist()]).tolist()
    segments = None if problem.arms is None else problem.arms.segments
    first, second, undecided = (tuple(ids[arm] for arm in arms) for arms in (inside, outside, left))
    parts = None if segments is None else _segments_of(segments, ids, (inside, outside, left))
    sentences: tuple[str, str, str] = asked.said(problem.epsilon, by_segment=segments is not None)
    return Listed(*sentences, first, second, undecided, asked.guarantee(problem.delta), parts)


def _segments_of(segments: Sequence[str], ids: Sequence[str], lists: Sequence[Sequence[int]]) -> tuple[Segment, ...]:
    """The lists of each segment, in the order in which the arms name them."""
    parts: dict[str, list[list[str]]] = {name: [[], [], []] for name in segments}
    for place, arms in enumerate(lists):
        for arm in arms:
            parts[segments[arm]][place].append(ids[arm])
    return tuple(Segment(name, *map(tuple, each)) for name, each in parts.items())


# --- Which arms are on a wrong list. It needs the truth, so only simulations and tests can ask.


def wrongly_listed(
    problem: Any, lists: Listed, arms: Arms, means: FloatArray, quantities: FloatArray | None = None
) -> BoolArray:
    """The arms of whom the lists say what is not so, shape (K,).

    Args:
        means: h, large ones good, shape (K,), in reward units.
        quantities: means of what constraints are on, in their order, shape (K, r); None where there are none.
    """
    if problem.question is None:
        return np.zeros(len(means), bool)
    first, second = set(lists.inside), set(lists.outside)
    own = Lists(*(np.array([one in ids for one in arms.ids]) for ids in (first, second)))
    asked = problem.question
    if arms.segments is None or not asked.splits:
        found: BoolArray = asked.wrong(problem, own, means, quantities)
        return found
    wrong, segments = np.zeros(len(means), bool), np.array(arms.segments)
    for name in np.unique(segments):
        arms_of = segments == name
        wrong[arms_of] = asked.wrong(problem, Lists(own.inside[arms_of], own.outside[arms_of]), means[arms_of])
    return wrong
