"""LUCB for the m best (Kalyanakrishnan et al. 2012): pull the two arms at the cut that are most in doubt."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, cast

import numpy as np

from surepick.core.arrays import record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits
from surepick.policies.baselines.listing import (
    Bounds,
    ListingState,
    bounds_of,
    check_question,
    claim_of,
    first_pulls,
    initial_lists,
    listed_after,
    shared_growth,
    top_of,
)
from surepick.policies.baselines.lucb import K1, ZETA_3, lucb_radius
from surepick.policies.options import check_options, one_of, option
from surepick.questions import TopM

BOUNDARIES = ("published", "mixture")


@record
class LUCBTop:
    """Pull the arm of the guess whose lower bound is lowest and the other arm whose upper bound is highest.

        J = the m highest means,   h = argmin over J of mean(x) - beta(x),   l = argmax outside J of mean(x) + beta(x)
        stop when mean(l) + beta(l) - (mean(h) - beta(h)) <= epsilon;   J is the answer

    beta is that of LUCB1, sigma sqrt(2 log(5 K t^4 / (4 delta)) / u), and so is what it spends, .962 delta. A wrong J
    has an arm a that is worse than the m-th best by more than epsilon, so it misses one of the m best, b. The stop
    gives h_b <= h_a + epsilon unless the upper bound of b or the lower bound of a fails. The arms b are among the m
    best and the arms a are not, so only one side of each arm harms.

    Args:
        problem: what is asked, question `TopM`. One scale per arm is used as such.
        growth: both arms get ceil(growth * u) pulls, at least 1, where u counts the pulls of the one that has fewer; 0
            pulls one of each, as in the paper. At most 1000.
        boundary: which intervals: "published", or "mixture", the narrower ones of a modern confidence sequence
            (`mixture_radius`).
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: half of epsilon.

    Raises:
        InvalidInput: a setting has no meaning, or the question is another one.

    Source: Kalyanakrishnan, Tewari, Auer & Stone (2012), Algorithm LUCB1.
    Differs from its source: batches, sigma and t as in `LUCB`.
    Cost: O(K log K) a batch.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    boundary: str = option("published", one_of(*BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_question("lucb-top", self.problem, TopM)

    def init(self) -> ListingState:
        return initial_lists(self.problem)

    def ask(self, state: ListingState) -> Plan:
        if (first := first_pulls(state)) is not None:
            return first
        bounds = self._bounds(state.seen)
        top = top_of(bounds.means, cast(TopM, self.problem.question).m)
        lowest = int(np.argmin(np.where(top, bounds.lower, np.inf)))
        highest = int(np.argmax(np.where(top, -np.inf, bounds.upper)))
        return shared_growth(state, [lowest, highest], self.growth)

    def tell(self, state: ListingState, plan: Plan, seen: Observations) -> Step[ListingState]:
        return listed_after(self.problem, state, plan, seen, self._bounds(state.seen.plus(seen)))

    def claim(self, state: ListingState) -> Claim:
        spent = ZETA_3 / K1 if self.boundary == "published" else 1.0
        return claim_of(state, spent * self.problem.delta)

    def _bounds(self, seen: Observations) -> Bounds:
        if self.boundary == "mixture":
            return bounds_of(self.problem, seen, self.boundary, self.accuracy)
        return Bounds(seen.means, lucb_radius(seen.counts, self.problem.scales, delta=self.problem.delta))
