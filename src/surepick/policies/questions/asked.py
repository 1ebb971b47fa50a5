"""The question of a problem, as a policy asks it."""

from __future__ import annotations

from collections import Counter

from surepick.core.certificate import named
from surepick.errors import InvalidInput
from surepick.policies.base import Problem
from surepick.policies.certified.conclusion import delta_for_test
from surepick.policies.questions.feasible import BestOfFeasible
from surepick.policies.questions.inquiries import AboveCentre, GoodOnes, Inquiry, TopOf
from surepick.policies.questions.segments import of_segments
from surepick.policies.questions.sheets import NUMBER
from surepick.questions import Above, AllGood, BestFeasible, OwnQuestion, TopM
from surepick.text import did_you_mean, quoted


def inquiry_of(problem: Problem) -> Inquiry:
    """The question of a problem, as a policy asks it.

    Raises:
        InvalidInput: it names no arm, or asks for more arms than there are.
    """
    delta, segments = delta_for_test(problem), None if problem.arms is None else problem.arms.segments
    if segments is None or not isinstance(problem.question, (TopM, AllGood)):
        return _asked_of(problem, problem.num_arms, delta)
    m = problem.question.m if isinstance(problem.question, TopM) else 0
    if max(Counter(segments).values()) <= max(m, 1):
        raise InvalidInput(
            f"no segment has more than {max(m, 1)} of the {problem.num_arms} candidates: nothing is left to be asked. "
            "Take a column that several candidates share, or leave segments out."
        )

    def nulls(size: int) -> int:
        return max(m * (size - m), 0) if m else size * (size > 1)

    return of_segments(segments, nulls, lambda size, share: _asked_of(problem, size, share * delta))


def _asked_of(problem: Problem, num_arms: int, delta: float) -> Inquiry:
    """The question of so many arms, with so much of delta."""
    asked = problem.question
    if isinstance(asked, OwnQuestion):
        made: Inquiry = asked.inquiry(problem, delta)
        return made
    if isinstance(asked, Above):
        centre, discovery = NUMBER, asked.errors == "discovery"
        if asked.control is not None:
            ids = () if problem.arms is None else problem.arms.ids
            if asked.control not in ids:
                meant = did_you_mean(asked.control, ids)
                raise InvalidInput(
                    f"control is {quoted(asked.control)}, and no candidate is called so; {named(ids, 5)} are.{meant}"
                )
            centre = ids.index(asked.control)
        support = problem.noise.support
        if asked.threshold is not None and support is not None and not support[0] <= asked.threshold <= support[1]:
            raise InvalidInput(
                f"threshold is {asked.threshold:g}, and rewards lie between {support[0]:g} and {support[1]:g}: nothing "
                "has to be measured."
            )
        if num_arms < 2 and asked.control is not None:
            raise InvalidInput("there is only the control; nothing can be compared with it.")
        return AboveCentre(num_arms, centre, asked.threshold, problem.epsilon, delta, discovery, asked.by)
    if isinstance(asked, BestFeasible):
        return BestOfFeasible(num_arms, asked.constraints, problem.epsilon, delta)
    if isinstance(asked, TopM):
        if asked.m >= num_arms:
            raise InvalidInput(f"m is {asked.m}, and there are {num_arms} candidates: all are among the m best.")
        return TopOf(num_arms, asked.m, problem.epsilon, delta)
    if num_arms < 2:
        raise InvalidInput("there is one candidate, and it is the best one; nothing is left to be asked.")
    slack = asked.slack if isinstance(asked, AllGood) and asked.slack is not None else problem.epsilon
    return GoodOnes(num_arms, problem.epsilon, slack, delta)
