"""(ST)^2 (Mason et al. 2020): all arms within epsilon of the best; sample the threshold, split by the threshold."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import numpy as np

from surepick.core.arrays import record
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
    first_pulls,
    initial_lists,
    listed_after,
    shared_growth,
    spent_by,
)
from surepick.policies.options import check_options, one_of, option
from surepick.questions import AllGood


@record
class ST2:
    """Pull the arm of highest upper bound, the doubtful arm that looks good and the doubtful arm that looks bad.

        G = the arms whose mean is at least the highest mean - epsilon;   doubtful: on no list (`listed`)
        i1 = argmin over doubtful arms of G of the lower bound,   i2 = argmax over doubtful arms outside G of the upper
        bound,   i3 = argmax of the upper bound;   stop when nobody is doubtful

    The lists are right whatever was pulled, since all intervals hold at all times, except with probability delta.

    Args:
        problem: what is asked, question `AllGood`, whose slack is the paper's gamma. One scale per arm is used as such.
        growth: the three arms get ceil(growth * u) pulls, at least 1, where u counts the pulls of the one that has
            fewest; 0 pulls one of each, as in the paper. At most 1000.
        boundary: which intervals: "union" or "mixture", as of `ActionElimination`.
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: half of epsilon.

    Raises:
        InvalidInput: a setting has no meaning, or the question is another one.

    Source: Mason, Jain, Tripathy & Nowak (2020), Algorithm (ST)^2, additive.
    Differs from its source: batches; sigma; intervals of `bounds_of`, where the paper has an iterated logarithm without
    its constants; an arm's lower bound is compared with the upper bounds of the others, not with its own.
    Cost: O(K) a batch.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    boundary: str = option("mixture", one_of(*BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_question("st2", self.problem, AllGood)

    def init(self) -> ListingState:
        return initial_lists(self.problem)

    def ask(self, state: ListingState) -> Plan:
        if (first := first_pulls(state)) is not None:
            return first
        bounds = self._bounds(state.seen)
        doubtful = ~state.inside & ~state.outside
        good = bounds.means >= np.max(bounds.means) - self.problem.epsilon
        arms = [int(np.argmax(bounds.upper))]
        if np.any(doubtful & good):
            arms.append(int(np.argmin(np.where(doubtful & good, bounds.lower, np.inf))))
        if np.any(doubtful & ~good):
            arms.append(int(np.argmax(np.where(doubtful & ~good, bounds.upper, -np.inf))))
        return shared_growth(state, arms, self.growth)

    def tell(self, state: ListingState, plan: Plan, seen: Observations) -> Step[ListingState]:
        return listed_after(self.problem, state, plan, seen, self._bounds(state.seen.plus(seen)))

    def claim(self, state: ListingState) -> Claim:
        return claim_of(state, spent_by(self.problem, self.boundary))

    def _bounds(self, seen: Observations) -> Bounds:
        return bounds_of(self.problem, seen, self.boundary, self.accuracy)
