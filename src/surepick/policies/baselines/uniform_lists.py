"""Uniform sampling for questions whose answer is lists: the valid baseline."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import numpy as np

from surepick.core.arrays import BoolArray, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits
from surepick.policies.baselines.listing import (
    BOUNDARIES,
    Bounds,
    ListingState,
    bounds_of,
    check_question,
    claim_of,
    control_of,
    first_pulls,
    initial_lists,
    listed_after,
    spent_by,
    top_of,
)
from surepick.policies.options import check_options, one_of, option
from surepick.questions import Above, AllGood, TopM

PULLED = ("all", "undecided")


@record
class UniformLists:
    """Pull every arm equally often, until intervals that hold for all arms at all times put every arm on a list.

    The lists are those of `listed`; with errors="discovery" no arm at all is on a wrong list, except with probability
    delta, which is more than is asked.

    Args:
        problem: what is asked, any question but the best arm. One scale per arm is used as such.
        growth: a round adds ceil(growth * n) pulls, at least 1, to each arm with n pulls; at most 1000.
        pulled: "all", or "undecided": only arms on which a list still depends, as action elimination does for the best
            arm. These are the arms on no list, the control, of `AllGood` the arms that set the two thresholds, and of
            `TopM` the arms of some pair across the cut whose intervals do not settle it.
        boundary: which intervals: "union" or "mixture", as of `ActionElimination`.
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: epsilon beside a
            threshold, else half of it.

    Raises:
        InvalidInput: a setting has no meaning, or the question is which arm is the best.

    Source: ours, the baseline of all papers on these questions.
    Cost: O(K log K) a round.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth)
    pulled: str = option("all", one_of(*PULLED))
    boundary: str = option("mixture", one_of(*BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_question("uniform-lists", self.problem, Above, TopM, AllGood)

    def init(self) -> ListingState:
        return initial_lists(self.problem)

    def ask(self, state: ListingState) -> Plan:
        if (first := first_pulls(state)) is not None:
            return first
        more = np.maximum(1, np.ceil(self.growth * state.seen.counts)).astype(np.int64)
        counts = more if self.pulled == "all" else np.where(self._open(state), more, 0)
        return Plan(round=state.round, counts=counts)

    def tell(self, state: ListingState, plan: Plan, seen: Observations) -> Step[ListingState]:
        return listed_after(self.problem, state, plan, seen, self._bounds(state.seen.plus(seen)))

    def claim(self, state: ListingState) -> Claim:
        return claim_of(state, spent_by(self.problem, self.boundary))

    def _bounds(self, seen: Observations) -> Bounds:
        return bounds_of(self.problem, seen, self.boundary, self.accuracy)

    def _open(self, state: ListingState) -> BoolArray:
        """The arms on which a list still depends, shape (K,)."""
        bounds, asked = self._bounds(state.seen), self.problem.question
        if isinstance(asked, TopM):
            top = top_of(bounds.means, asked.m)
            cut = np.max(bounds.upper[~top]) - self.problem.epsilon, np.min(bounds.lower[top]) + self.problem.epsilon
            return np.where(top, bounds.lower < cut[0], bounds.upper > cut[1])
        found = np.zeros(self.problem.num_arms, bool)
        found[state.active] = True
        needed = [np.argmax(bounds.upper), np.argmax(bounds.lower)] if isinstance(asked, AllGood) else []
        control = control_of(self.problem)
        found[needed if control is None else control] = True
        return found
