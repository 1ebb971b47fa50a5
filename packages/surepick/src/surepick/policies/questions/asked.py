"""The question of a problem, as a policy asks it."""

import math
from collections.abc import Sequence

import numpy as np

from surepick.core.arms import Arms
from surepick.core.certificate import Listed, Segment
from surepick.core.records import BoolArray, FloatArray
from surepick.errors import InvalidInput
from surepick.policies.base import Claim, Problem
from surepick.questions import Above, AllGood, BestFeasible, OneOf, OwnQuestion, Question, TopM

# --- What an answer by lists says, in words.


def lists_of(problem: Problem, claim: Claim) -> Listed | None:
    """The lists of a claim, with what they promise; None where the question is which arm is the best.

    Arms have their ids, or their indices where the problem does not know them.
    """
    if claim.lists is None or problem.question is None:
        return None
    asked, num_arms = problem.question, problem.num_arms
    ids = tuple(map(str, range(num_arms))) if problem.arms is None else problem.arms.ids
    inside, outside = (arms.tolist() for arms in claim.lists)
    unasked = [ids.index(asked.control)] if isinstance(asked, Above) and asked.control is not None else []
    if isinstance(asked, OneOf):
        unasked = list(range(num_arms))
    if isinstance(asked, OwnQuestion):
        unasked = np.flatnonzero(~asked.inquiry(problem, problem.delta).asked).tolist()
    left = np.setdiff1d(np.arange(num_arms), [*inside, *outside, *unasked]).tolist()
    segments = None if problem.arms is None else problem.arms.segments
    first, second, undecided = (tuple(ids[arm] for arm in arms) for arms in (inside, outside, left))
    parts = None if segments is None else _segments_of(segments, ids, (inside, outside, left))
    sentences = said(asked, problem.epsilon, by_segment=segments is not None)
    return Listed(*sentences, first, second, undecided, guarantee_of(asked, problem.delta), parts)


def _segments_of(segments: Sequence[str], ids: Sequence[str], lists: Sequence[Sequence[int]]) -> tuple[Segment, ...]:
    """The lists of each segment, in the order in which the arms name them."""
    parts: dict[str, list[list[str]]] = {name: [[], [], []] for name in segments}
    for place, arms in enumerate(lists):
        for arm in arms:
            parts[segments[arm]][place].append(ids[arm])
    return tuple(Segment(name, *map(tuple, each)) for name, each in parts.items())


def said(asked: Question, epsilon: float, *, by_segment: bool = False) -> tuple[str, str, str]:
    """(the question, what is said of the first list, what is said of the second)."""
    return asked.said(epsilon) if isinstance(asked, OwnQuestion) else _said(asked, epsilon, by_segment=by_segment)


def _said(
    asked: Above | TopM | AllGood | OneOf | BestFeasible, epsilon: float, *, by_segment: bool
) -> tuple[str, str, str]:
    """The same of surepick's own questions."""
    if isinstance(asked, Above):
        centre = f"{asked.threshold:g}" if asked.control is None else f"the control {asked.control}"
        better, worse = ("above", "below") if asked.control is None else ("better than", "worse than")
        return (
            f"Which candidates are {better} {centre}{f' by {asked.by:g}' if asked.by else ''}?",
            f"Each one on the first list is {_nearly(asked.by, epsilon, better, worse, centre)}.",
            f"Each one on the second list is {_nearly(-asked.by, epsilon, worse, better, centre)}.",
        )
    if isinstance(asked, TopM) and by_segment:
        best = "candidate is the best" if asked.m == 1 else f"candidates are the {asked.m} best"
        last = "the best one" if asked.m == 1 else f"the one in place {asked.m}"
        return (
            f"Which {best} of each segment?",
            f"Each one on the first list is at most {epsilon:g} worse than {last} of its segment.",
            "The second list has the others.",
        )
    if isinstance(asked, TopM):
        return (
            f"Which candidates are the {asked.m} best?",
            f"Each one on the first list is at most {epsilon:g} worse than the one in place {asked.m}.",
            "The second list has the others.",
        )
    if isinstance(asked, OneOf):
        best = f"the best {100.0 * asked.share:g}% of the list"
        return (
            f"Which candidate is one of {best}?",
            f"The one on the first list is at most {epsilon:g} worse than one of {best}.",
            "There is no second list.",
        )
    if isinstance(asked, BestFeasible):
        bounds, relaxed = (
            _and([str(one) for one in asked.constraints]),
            _and([one.relaxed for one in asked.constraints]),
        )
        return (
            f"Which candidate is the best of those with {bounds}?",
            f"The one on the first list has {relaxed}, and is at most {epsilon:g} worse than the best of those with "
            f"{bounds}. If the first list is empty, there is none with {bounds}.",
            "The second list has the others.",
        )
    slack = epsilon if asked.slack is None else asked.slack
    best = "the best one of its segment" if by_segment else "the best one"
    return (
        f"Which candidates are within {epsilon:g} of {best.replace('its', 'their')}?",
        f"Each one on the first list is within {epsilon + slack:g} of {best}.",
        f"Each one on the second list is worse than {best} by more than {epsilon:g}.",
    )


def _and(words: list[str]) -> str:
    """Words in a row."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _nearly(by: float, epsilon: float, better: str, worse: str, centre: str) -> str:
    """Better by more than `by` - epsilon, in words, whatever its sign; they hold for small rewards too."""
    if math.isclose(by, epsilon):
        return f"{better} {centre}"
    if by > epsilon:
        return f"{better} {centre} by more than {by - epsilon:g}"
    return f"{better} {centre}, or {worse} it by less than {epsilon - by:g}"


def guarantee_of(asked: Question, delta: float) -> str:
    """How often any of it, or which share of it, may be wrong."""
    if isinstance(asked, OwnQuestion):
        return asked.guarantee(delta)
    if isinstance(asked, Above) and asked.errors == "discovery":
        return f"Of each list, a share of at most {delta:g} is wrong on average; single candidates may be."
    if isinstance(asked, (Above, AllGood)):
        return f"The probability that any of these statements is wrong is at most {delta:g}."
    return f"This statement is wrong with probability at most {delta:g}."


# --- Which arms are on a wrong list. It needs the truth, so only simulations and tests can ask.

ROUNDING = 1e-12  # of the means' size


def wrongly_listed(
    problem: Problem, lists: Listed, arms: Arms, means: FloatArray, quantities: FloatArray | None = None
) -> BoolArray:
    """The arms of whom the lists say what is not so, shape (K,).

    Args:
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
