"""A question of each segment of the arms by itself: they share delta, the measurements and what features say."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, freeze, record
from surepick.errors import InvalidInput
from surepick.estimators.posterior import NUMBER
from surepick.questions.protocol import Aims, Bet, Inquiry, Lists, View


@record
class OfSegments(Inquiry):
    """Every segment is asked by itself, with its share of delta.

    The processes of a segment compare its own arms. Arms of different segments that have the same place in theirs share
    a name: the entries of a segment's arms are that segment's processes.

    Source: docs/questions.md, line 14.
    """

    places: IntArray  # the segment of each arm, 0 .. G-1, (K,).
    # the question of each segment, of arms that are numbered within it; None: all of its arms are on the first list,
    # whatever their means
    inquiries: tuple[Inquiry | None, ...]

    def __post_init__(self) -> None:
        freeze(self, places=np.int64)

    @property
    def asked(self) -> BoolArray:
        return np.ones(len(self.places), bool)

    def bets(self, view: View) -> tuple[Bet, ...]:
        made = []
        for arms, asked, inner in self._open(view):
            for bet in asked.bets(inner):
                centre = bet.centre if bet.centre == NUMBER else int(arms[bet.centre])
                among, needs = self._spread(arms, bet.arms), self._spread(arms, bet.needs)
                made.append(replace(bet, centre=centre, arms=among.astype(bool), needs=needs))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        parts = []
        for arms, asked, inner in self._open(view):
            found = asked.aims(inner)
            parts.append((arms[found.first], arms[found.second], found.leads, found.needs))
        return Aims(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def decided(self, view: View) -> Lists:
        inside, outside = view.lists.inside.copy(), view.lists.outside.copy()
        for arms, asked in zip(self._members(), self.inquiries, strict=True):
            if asked is None:
                inside[arms] = True
        for arms, asked, inner in self._open(view):
            found = asked.decided(inner)
            inside[arms], outside[arms] = found.inside, found.outside
        return Lists(inside, outside)

    def _open(self, view: View) -> list[tuple[IntArray, Inquiry, View]]:
        """(the arms, the question, what it sees) of each segment in which somebody is undecided."""
        decided, found = view.lists.decided, []
        for arms, asked in zip(self._members(), self.inquiries, strict=True):
            if asked is not None and not decided[arms].all():
                found.append((arms, asked, view.within(arms)))
        return found

    def _members(self) -> list[IntArray]:
        """The arms of each segment, ascending."""
        order = np.argsort(self.places, kind="stable")
        ends = np.cumsum(np.bincount(self.places, minlength=len(self.inquiries)))
        return np.split(order, ends[:-1])

    def _spread(self, arms: IntArray, values: FloatArray | BoolArray) -> FloatArray:
        whole = np.zeros(len(self.places))
        whole[arms] = values
        return whole


def of_segments(
    segments: Sequence[str], nulls: Callable[[int], int], asked: Callable[[int, float], Inquiry]
) -> OfSegments:
    """A question of each segment, with shares of delta in proportion to its nulls: one threshold for all processes."""
    _, places = np.unique(np.array(segments), return_inverse=True)
    sizes = np.bincount(places).tolist()
    counts = [nulls(size) for size in sizes]
    total = sum(counts)
    inquiries = [asked(size, count / total) if count else None for size, count in zip(sizes, counts, strict=True)]
    return OfSegments(places, tuple(inquiries))


def inquiry_of(problem: Any, delta: float) -> Inquiry:
    """The question of a problem, as a policy asks it, with so much of delta."""
    asked, segments = problem.question, None if problem.arms is None else problem.arms.segments
    if segments is None or not asked.splits:
        made: Inquiry = asked.inquiry(problem, delta)
        return made
    largest = max(Counter(segments).values())
    if asked.nulls(largest) == 0:
        raise InvalidInput(
            f"no segment has more than {largest} of the {problem.num_arms} candidates: nothing is left to be asked. "
            "Take a column that several candidates share, or leave segments out."
        )
    return of_segments(segments, asked.nulls, lambda size, share: asked.of(size, problem.epsilon, share * delta))
