"""Action elimination (Even-Dar et al. 2006; Jamieson & Nowak 2014): no features, one confidence interval per arm."""

from __future__ import annotations

import math
from dataclasses import field
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.comparisons import Deciding
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.estimators import anytime_radius, mixture_radius
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, compared_with, trace_row
from surepick.policies.options import check_options, one_of, option

BOUNDARIES = ("union", "mixture")


@record
class MeansState:
    """Where action elimination stands.

    Args:
        round: the next batch, from 1.
        active: indices of the arms not ruled out.
        seen: everything told so far.
        leader: the active arm of highest mean.
        gap: the leader is at most this much worse than the best arm; None if nothing can be said.
        finished: why it stopped: "" while it runs, "certified", "single" or "given".
    """

    round: int
    active: IntArray
    seen: Observations
    leader: int
    gap: float | None
    finished: str

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total


@record
class Judgement:
    """What one look says.

    Args:
        leader: the arm that would be recommended.
        gap: the leader is at most this much worse than the best arm, in reward units; infinite if nothing can be said.
        active: the leader and the rivals that stay in question, ascending.
        finished: "certified" or "single" if that ends it, else "".
        deciding: gives the intervals that decided.
    """

    leader: int
    gap: float
    active: IntArray
    finished: str
    deciding: Deciding | None = field(default=None, compare=False)

    @property
    def certified_gap(self) -> float | None:
        """The gap; None if nothing can be said."""
        return self.gap if math.isfinite(self.gap) else None


@record
class ActionElimination:
    """Pull every active arm equally often; drop an arm when the leader's interval lies above its own.

        c_i = sigma_i sqrt(2 log(4 K n_i^2 / delta) / n_i)
        x goes when mean(leader) - c(leader) > mean(x) + c(x)
        stop when one arm is left, or max over x != leader of mean(x) + c(x) - (mean(leader) - c(leader)) <= epsilon

    That is boundary="union"; "mixture" has the narrower intervals of a modern confidence sequence (`mixture_radius`).
    Both hold for every arm and every number of pulls at once, so it may be judged after any
    pull; batches that grow by a share of what an arm has make it cheap. With probability at least 1 - delta the answer
    is epsilon-best.

    Args:
        problem: what is asked. One scale per arm is used as such, the gap bound only to answer at once when it is at
            most epsilon.
        growth: a batch adds ceil(growth * n) pulls, at least 1, to each active arm with n pulls; at most 1000.
        boundary: which intervals: "union", as published, or "mixture", tuned to widths of epsilon / 2.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Even-Dar, Mannor & Mansour (2006); constants as in Jamieson & Nowak (2014). The mixture: Robbins (1970),
    Howard et al. (2021).
    Differs from its sources: the epsilon-stop compares intervals; it comes no later than 2 c <= epsilon would.
    Cost: O(K) a batch.
    """

    traits: ClassVar[Traits] = Traits(eliminates=True)

    problem: Problem
    growth: float = option(0.02, options.growth)
    boundary: str = option("union", one_of(*BOUNDARIES))
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)

    def init(self) -> MeansState:
        return initial_means(self.problem)

    def ask(self, state: MeansState) -> Plan:
        counts = np.zeros(self.problem.num_arms, np.int64)
        counts[state.active] = np.maximum(1, np.ceil(self.growth * state.seen.counts[state.active]))
        return Plan(round=state.round, counts=counts)

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled, active = state.seen.plus(seen), state.active
        radius = self._radius(pooled.counts)
        upper, lower = pooled.means + radius, pooled.means - radius
        leader = int(active[np.argmax(np.where(pooled.counts[active] > 0, pooled.means[active], -np.inf))])
        survivors = active[(upper[active] >= lower[leader]) | (active == leader)]
        others, rivals = survivors[survivors != leader], active[active != leader]
        gap = max(0.0, float(np.max(upper[others] - lower[leader]))) if len(others) else 0.0
        finished = "single" if len(others) == 0 else "certified" if gap <= self.problem.epsilon else ""
        allowed = np.where(np.isin(rivals, survivors), self.problem.epsilon, 0.0)
        deciding = compared_with(leader, rivals, pooled.means, radius[leader] + radius, allowed)
        return judged(state, plan, seen, Judgement(leader, gap, survivors, finished, deciding))

    def claim(self, state: MeansState) -> Claim:
        spent = self.problem.delta * (math.pi**2 / 12.0 if self.boundary == "union" else 1.0)
        return Claim(state.leader, state.finished, state.seen.total, state.gap, spent)

    def _radius(self, counts: IntArray) -> FloatArray:
        sigma, delta, num_arms = self.problem.scales, self.problem.delta, self.problem.num_arms
        if self.boundary == "union":
            return anytime_radius(counts, sigma, delta=delta, num_arms=num_arms)
        return mixture_radius(counts, sigma, delta=delta, num_arms=num_arms, accuracy=0.5 * self.problem.epsilon)


def initial_means(problem: Problem) -> MeansState:
    """All arms active; finished at once where the answer needs no pull."""
    finished, gap = problem.answer_without_pulls()
    return MeansState(1, np.arange(problem.num_arms), Observations.nothing(problem.num_arms), 0, gap, finished)


def judged(state: MeansState, plan: Plan, seen: Observations, found: Judgement) -> Step[MeansState]:
    """The step from a state to what a look at the results of a plan says."""
    pooled, gap = state.seen.plus(seen), found.certified_gap
    after = MeansState(state.round + 1, found.active, pooled, found.leader, gap, found.finished)
    return Step(after, trace_row(plan, after, pulls=seen.total, gap=gap), found.deciding)
