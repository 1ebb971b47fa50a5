"""What is liked of candidates beside their means: of all that are certified the one with the smallest number is named.

The bounds hold for all candidates at once, so that any of those certified may be named, and a study may go on for one
that is liked better (docs/certified-elimination.md, line 15; docs/mixtures.md, line 46). Until a first one is certified
nothing looks at what is preferred.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from surepick.core.records import BoolArray, FloatArray
from surepick.core.values import check_order, real_numbers, texts_of
from surepick.errors import InvalidInput
from surepick.policies.base import Problem
from surepick.text import quoted

Preference = tuple[float, ...] | None  # a number of each arm, (K,), the smallest of which is liked best; None: none is

HEURISTIC_REACH = 0.5  # of epsilon: a study goes on for an arm that is liked better and looks at most so much worse
HEURISTIC_HOPE = 0.5  # standard errors that are in favour of an arm that is liked better

CHEAPEST = "It is named because it is the cheapest of {} that are certified within epsilon ({:g}, as was preferred)."
ONLY = "It is the only one that is certified within epsilon, so that the preference had no choice."


def checked_preference(problem: Problem, given: object) -> Preference:
    """The numbers of the arms in their order, from a list, or a mapping of their ids."""
    if given is None:
        return None
    ids = [str(arm) for arm in range(problem.num_arms)] if problem.arms is None else list(problem.arms.ids)
    check_order("the numbers of prefer", given, ids)
    if isinstance(given, Mapping):
        given = _in_order(given, ids)
    numbers = real_numbers("prefer", given, truths=False)
    if numbers.shape != (len(ids),) or not np.isfinite(numbers).all():
        raise InvalidInput(
            f"prefer is {quoted(given)}; give a finite number for each of the {len(ids)} candidates, e.g. its price: "
            "of all that are certified the one with the smallest is named."
        )
    return tuple(numbers.tolist())


def _in_order(given: Mapping[object, object], ids: Sequence[str]) -> list[object]:
    """The values of a mapping in the order of the ids; it may have others beside."""
    named = dict(zip(texts_of("ids in prefer", list(given)), given.values(), strict=True))
    if missing := [name for name in ids if name not in named]:
        raise InvalidInput(f"{quoted(missing[0])} is not among prefer, which has a number for each candidate.")
    return [named[name] for name in ids]


def preferred(good: Sequence[int], prefer: Preference) -> int:
    """The one of these arms that is named; the first of those that are liked alike."""
    return good[0] if prefer is None else min(good, key=prefer.__getitem__)


Guess = tuple[FloatArray, FloatArray]  # means of all arms, and the standard errors of their distances to the best one


def liked_better(named: int, prefer: tuple[float, ...], guess: Guess, away: BoolArray, epsilon: float) -> int | None:
    """The arm liked best of those that are liked better than one, and may be nearly as good as the best; None: none.

    An arm whose shortfall is below the reach is certified some time, and of others it
    shows some time that they are not within it: so no study goes on for ever.
    """
    scores = np.where(away, -np.inf, guess[0])
    least = scores.max() - HEURISTIC_REACH * epsilon
    near = np.flatnonzero(scores + HEURISTIC_HOPE * guess[1] >= least).tolist()
    better = [arm for arm in near if prefer[arm] < prefer[named]]
    return min(better, key=lambda arm: (prefer[arm], -scores[arm])) if better else None


def why_named(arm: int, number: int, prefer: Preference) -> str:
    """Why this one of so many certified arms is named; "" where nothing is preferred."""
    if prefer is None:
        return ""
    return ONLY if number == 1 else CHEAPEST.format(number, prefer[arm])
