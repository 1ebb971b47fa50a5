"""What an answer by lists says, in words."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.certificate import Listed
from surepick.policies.base import Claim, Problem
from surepick.questions import Above, AllGood, OneOf, Question, TopM


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
    left = np.setdiff1d(np.arange(num_arms), [*inside, *outside, *unasked]).tolist()
    question, first, second = said(asked, problem.epsilon)
    inside, outside, undecided = (tuple(ids[arm] for arm in arms) for arms in (inside, outside, left))
    return Listed(question, first, second, inside, outside, undecided, guarantee_of(asked, problem.delta))


def said(asked: Question, epsilon: float) -> tuple[str, str, str]:
    """(the question, what is said of the first list, what is said of the second)."""
    if isinstance(asked, Above):
        centre = f"{asked.threshold:g}" if asked.control is None else f"the control {asked.control}"
        better, worse = ("above", "below") if asked.control is None else ("better than", "worse than")
        return (
            f"Which candidates are {better} {centre}{f' by {asked.by:g}' if asked.by else ''}?",
            f"Each one on the first list is {_nearly(asked.by, epsilon, better, worse, centre)}.",
            f"Each one on the second list is {_nearly(-asked.by, epsilon, worse, better, centre)}.",
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
    slack = epsilon if asked.slack is None else asked.slack
    return (
        f"Which candidates are within {epsilon:g} of the best one?",
        f"Each one on the first list is within {epsilon + slack:g} of the best one.",
        f"Each one on the second list is worse than the best one by more than {epsilon:g}.",
    )


def _nearly(by: float, epsilon: float, better: str, worse: str, centre: str) -> str:
    """Better by more than `by` - epsilon, in words, whatever its sign; they hold for small rewards too."""
    if math.isclose(by, epsilon):
        return f"{better} {centre}"
    if by > epsilon:
        return f"{better} {centre} by more than {by - epsilon:g}"
    return f"{better} {centre}, or {worse} it by less than {epsilon - by:g}"


def guarantee_of(asked: Question, delta: float) -> str:
    """How often any of it, or which share of it, may be wrong."""
    if isinstance(asked, Above) and asked.errors == "discovery":
        return f"Of each list, a share of at most {delta:g} is wrong on average; single candidates may be."
    if isinstance(asked, (Above, AllGood)):
        return f"The probability that any of these statements is wrong is at most {delta:g}."
    return f"This statement is wrong with probability at most {delta:g}."
