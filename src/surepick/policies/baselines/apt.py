"""APT (Locatelli et al. 2016): which arms are above a threshold? Pull those that are nearest to it."""

from __future__ import annotations

import math
from dataclasses import field
from typing import ClassVar, cast

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.errors import InvalidInput
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits
from surepick.policies.baselines.listing import (
    BOUNDARIES,
    ListingState,
    bounds_of,
    check_question,
    claim_of,
    first_pulls,
    initial_lists,
    listed_after,
    spent_by,
)
from surepick.policies.options import check_options, one_of, option
from surepick.questions import Above


@record
class APT:
    """Pull the arm of smallest index; an arm that is on a list is not pulled again.

        index(x) = sqrt(n_x) (|mean(x) - tau| + epsilon) / sigma_x,   tau = threshold + by

    The original has a fixed budget and certifies nothing: it spends its pulls, and then says of each arm on which side
    of tau its mean is. Here its sampling rule goes on until intervals that hold for all arms at all times put every arm
    on a list (`listed`), so the answer is wrong with probability at most delta, whatever the rule was. It is so for
    errors="discovery" too, where this is more than is asked.

    Args:
        problem: what is asked, question `Above` with a threshold. One scale per arm is used as such.
        growth: a batch has ceil(growth * n) pulls, at least 1, where n counts all pulls. They are dealt as single pulls
            would be if no mean changed; 0 pulls one arm once, as in the paper. At most 1000.
        boundary: which intervals: "union" or "mixture", as of `ActionElimination`.
        accuracy: the half-width at which those of "mixture" are tightest, in reward units; None: epsilon.

    Raises:
        InvalidInput: a setting has no meaning, or the question is another one, or has a control: a mean that is
            measured is no threshold.

    Source: Locatelli, Gutzeit & Carpentier (2016), Algorithm APT.
    Differs from its source: the stop; batches; sigma; arms on a list are left out.
    Cost: O(K log K) a batch.
    """

    traits: ClassVar[Traits] = Traits(certifies="lists")

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    boundary: str = option("mixture", one_of(*BOUNDARIES))
    accuracy: float | None = option(None, options.accuracy)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)
        check_question("apt", self.problem, Above)
        if self._asked.threshold is None:
            raise InvalidInput(
                "apt compares with a threshold that is known, and the question has a control, whose mean is measured. "
                "Take certified-independent or uniform-lists, or give threshold."
            )

    def init(self) -> ListingState:
        return initial_lists(self.problem)

    def ask(self, state: ListingState) -> Plan:
        if (first := first_pulls(state)) is not None:
            return first
        tau = float(self._asked.threshold or 0.0) + self._asked.by
        gaps = (np.abs(state.seen.means - tau) + self.problem.epsilon) / self.problem.scales
        total = max(1, math.ceil(self.growth * state.pulls))
        counts = np.zeros(self.problem.num_arms, np.int64)
        counts[state.active] = dealt(state.seen.counts[state.active], gaps[state.active], total)
        return Plan(round=state.round, counts=counts)

    def tell(self, state: ListingState, plan: Plan, seen: Observations) -> Step[ListingState]:
        bounds = bounds_of(self.problem, state.seen.plus(seen), self.boundary, self.accuracy)
        return listed_after(self.problem, state, plan, seen, bounds)

    def claim(self, state: ListingState) -> Claim:
        return claim_of(state, spent_by(self.problem, self.boundary))

    @property
    def _asked(self) -> Above:
        return cast(Above, self.problem.question)


def dealt(counts: IntArray, gaps: FloatArray, total: int) -> IntArray:
    """Pulls that single pulls of the arm of smallest sqrt(n) gap would give each arm, shape (m,); their sum is `total`.

    The j-th pull of an arm is made when its index is sqrt(n + j - 1) gap; the `total` smallest of these are made.

    Args:
        counts: n, shape (m,).
        gaps: positive, shape (m,).
    """
    low, high = 0.0, float(np.min((counts + total) * gaps**2))  # squared indices; at the second all go to one arm
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.sum(_up_to(counts, gaps, middle)) < total:
            low = middle
        else:
            high = middle
    found = _up_to(counts, gaps, low)
    order = np.argsort((counts + found) * gaps**2, kind="stable")
    left = total - int(found.sum())
    return found + np.bincount(np.resize(order, left) if left else order[:0], minlength=len(counts)).astype(np.int64)


def _up_to(counts: IntArray, gaps: FloatArray, level: float) -> IntArray:
    """Pulls of each arm that are made at a squared index of at most `level`."""
    pulls: IntArray = np.floor(level / gaps**2).astype(np.int64) + 1 - counts
    return np.maximum(pulls, 0)
