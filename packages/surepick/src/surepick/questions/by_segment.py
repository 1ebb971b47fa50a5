"""A question of each segment of the arms by itself, which share delta and measurements; and an answer's lists."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.certificate import Listed, Segment
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen
from surepick.errors import InvalidInput
from surepick.estimators.posterior import NUMBER
from surepick.questions.protocol import Aims, Bet, Inquiry, Lists, Question, View


@frozen
class OfSegments(Inquiry):
    """Every segment is asked by itself, with its share of delta.

    The processes of a segment compare its own arms. Arms of different segments that have the same place in theirs share
    a name: the entries of a segment's arms are that segment's processes.

    Source: docs/questions.md, line 14.
    """

    question: Any  # a `Question` that splits
    places: IntArray  # the segment of each arm, 0 .. G-1, (K,)
    # of delta, of each segment, (G,); 0: all of its arms are on the first list, whatever their means
    shares: FloatArray

    def bets(self, view: View) -> tuple[Bet, ...]:
        made = []
        for arms, inner in self._open(view):
            for bet in self.question.bets(inner):
                centre = bet.centre if bet.centre == NUMBER else int(arms[bet.centre])
                among, needs = self._spread(arms, bet.arms), self._spread(arms, bet.needs)
                made.append(replace(bet, centre=centre, arms=among.astype(bool), needs=needs))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        parts = []
        for arms, inner in self._open(view):
            found = self.question.aims(inner)
            parts.append((arms[found.first], arms[found.second], found.leads, found.needs))
        return Aims(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def decided(self, view: View) -> Lists:
        inside, outside = view.lists.inside | (self.shares[self.places] == 0.0), view.lists.outside.copy()
        for arms, inner in self._open(view):
            found = self.question.decided(inner)
            inside[arms], outside[arms] = found.inside, found.outside
        return Lists(inside, outside)

    def _open(self, view: View) -> list[tuple[IntArray, View]]:
        """(the arms, what the question of them sees) of each segment in which somebody is undecided."""
        return [
            (arms, view.within(arms, share * view.delta))
            for arms, share in zip(self._members(), self.shares.tolist(), strict=True)
            if share and not view.lists.decided[arms].all()
        ]

    def _members(self) -> list[IntArray]:
        """The arms of each segment, ascending."""
        order = np.argsort(self.places, kind="stable")
        ends = np.cumsum(np.bincount(self.places, minlength=len(self.shares)))
        return np.split(order, ends[:-1])

    def _spread(self, arms: IntArray, values: FloatArray | BoolArray) -> FloatArray:
        whole = np.zeros(len(self.places))
        whole[arms] = values
        return whole


def of_segments(question: Any, segments: Sequence[str]) -> OfSegments:
    """A question of each segment, with shares of delta in proportion to its nulls: one threshold for all processes."""
    _, places = np.unique(np.array(segments), return_inverse=True)
    counts = np.array([question.nulls(size) for size in np.bincount(places).tolist()])
    if not counts.any():
        raise InvalidInput(
            f"no segment has more than {np.bincount(places).max()} of the {len(places)} candidates: nothing is left to "
            "be asked. Take a column that several candidates share, or leave segments out."
        )
    return OfSegments(question, places, counts / counts.sum())


def inquiry_of(problem: Any) -> Inquiry:
    """The question of a problem, as a policy asks it."""
    question: Question = problem.question
    segments = None if problem.arms is None else problem.arms.segments
    if segments is not None and question.splits:
        return of_segments(question, segments)
    question.check(problem)
    return question


def lists_of(problem: Any, lists: tuple[IntArray, IntArray] | None) -> Listed | None:
    """The lists of a claim, with what they promise; None where the question is which arm is the best.

    Arms have their ids, or their indices where the problem does not know them.
    """
    if lists is None or problem.question is None:
        return None
    asked: Question = problem.question
    num_arms = problem.num_arms
    ids = tuple(map(str, range(num_arms))) if problem.arms is None else problem.arms.ids
    inside, outside = (arms.tolist() for arms in lists)
    unasked = np.flatnonzero(~asked.asked(problem))
    left = np.setdiff1d(np.arange(num_arms), [*inside, *outside, *unasked.tolist()]).tolist()
    segments = None if problem.arms is None else problem.arms.segments
    first, second, undecided = (tuple(ids[arm] for arm in arms) for arms in (inside, outside, left))
    parts = None if segments is None else _segments_of(segments, ids, (inside, outside, left))
    sentences = asked.said(problem.epsilon, by_segment=segments is not None)
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
    asked: Question | None = problem.question
    if asked is None:
        return np.zeros(len(means), bool)
    first, second = set(lists.inside), set(lists.outside)
    own = Lists(*(np.array([one in ids for one in arms.ids]) for ids in (first, second)))
    if arms.segments is None or not asked.splits:
        return asked.wrong(problem, own, means, quantities)
    wrong, segments = np.zeros(len(means), bool), np.array(arms.segments)
    for name in np.unique(segments):
        arms_of = segments == name
        wrong[arms_of] = asked.wrong(problem, Lists(own.inside[arms_of], own.outside[arms_of]), means[arms_of])
    return wrong
