"""LUCB1 (Kalyanakrishnan et al. 2012): pull the leader and the rival whose upper bound is highest, until they part."""

from __future__ import annotations

import math
from dataclasses import field
from typing import ClassVar

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, compared_with
from surepick.policies.baselines.action_elimination import Judgement, MeansState, initial_means, judged
from surepick.policies.options import check_options, option

K1 = 5.0 / 4.0
ZETA_3 = 1.2020569031595942  # sum of 1/t^3


@record
class LUCB:
    """Pull the arm of highest mean and its strongest rival; stop when the rival cannot be better by epsilon.

        beta(u, t) = sigma sqrt(2 log(K1 K t^4 / delta) / u),   K1 = 5/4        u: pulls of the arm
        h = argmax of the mean,   l = argmax over x != h of mean(x) + beta(x)
        stop when mean(l) + beta(l) - (mean(h) - beta(h)) < epsilon

    In the paper rewards lie in [0, 1] (sigma = 1/2) and t counts rounds of two pulls. Here t is half of all pulls, or
    the pulls of the most pulled arm if these are more, so that u <= t for every arm at every look. Why that is enough:
    the event "the mean of the first u pulls of an arm is off by beta(u, t) on the side that harms" has probability at
    most delta / (K1 K t^4), so some arm, some t >= 1 and some u <= t has it with probability at most

        sum_t t delta / (K1 t^4) = zeta(3) delta / K1 = 0.962 delta.

    Whenever somebody looks, the pair (u, t) of an arm is one of these, whatever the batches were. Outside the event a
    best arm b != h has mean(b) + beta(b) > h_b and the leader mean(h) - beta(h) < h_h, so the stop gives
    h_b - h_h < epsilon. Only one side of each arm harms: the upper one of b, the lower one of all others.

    Args:
        problem: what is asked. One scale per arm is used as such, the gap bound only to answer at once when it is at
            most epsilon.
        growth: both arms get ceil(growth * u) pulls, at least 1, where u counts the pulls of the one that has fewer; 0
            pulls one of each, as in the paper. Were the leader's batch a share of its own pulls, it would grow without
            end beside rivals that have few. At most 1000.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Kalyanakrishnan, Tewari, Auer & Stone (2012), Algorithm LUCB1 for one arm (m = 1).
    Differs from its source: batches; sigma; t is at least half of all pulls, which exceeds the number of rounds by K/2.
    Cost: O(K) a batch.
    """

    traits: ClassVar[Traits] = Traits()

    problem: Problem
    growth: float = option(0.1, options.growth_or_none)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)

    def init(self) -> MeansState:
        return initial_means(self.problem)

    def ask(self, state: MeansState) -> Plan:
        pulls = state.seen.counts
        counts = np.zeros(self.problem.num_arms, np.int64)
        if np.any(pulls == 0):
            counts[pulls == 0] = 1
        else:
            pair = [state.leader, self._rival(state.seen, state.leader)]
            counts[pair] = max(1, math.ceil(self.growth * int(pulls[pair].min())))
        return Plan(round=state.round, counts=counts)

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled = state.seen.plus(seen)
        measured, everybody = pooled.counts > 0, np.arange(self.problem.num_arms)
        leader = int(np.argmax(np.where(measured, pooled.means, -np.inf))) if measured.any() else state.leader
        radius = self._radius(pooled.counts)
        ahead = pooled.means + radius - (pooled.means[leader] - radius[leader])  # how much better each could be
        ahead[leader] = -np.inf
        gap, epsilon = max(0.0, float(np.max(ahead))), self.problem.epsilon
        active = np.flatnonzero((ahead >= epsilon) | (everybody == leader))
        rivals = everybody[everybody != leader]
        deciding = compared_with(leader, rivals, pooled.means, radius[leader] + radius, epsilon)
        return judged(state, plan, seen, Judgement(leader, gap, active, "certified" if gap < epsilon else "", deciding))

    def claim(self, state: MeansState) -> Claim:
        return Claim(state.leader, state.finished, state.seen.total, state.gap, self.problem.delta * ZETA_3 / K1)

    def _radius(self, counts: IntArray) -> FloatArray:
        """beta(u, t) of each arm, shape (K,); infinite for an arm that was never pulled."""
        return lucb_radius(counts, self.problem.scales, delta=self.problem.delta)

    def _rival(self, seen: Observations, leader: int) -> int:
        upper = seen.means + self._radius(seen.counts)
        upper[leader] = -np.inf
        return int(np.argmax(upper))


def lucb_radius(counts: IntArray, sigma: FloatArray, *, delta: float) -> FloatArray:
    """beta(u, t) = sigma sqrt(2 log(K1 K t^4 / delta) / u) with t = max(half of all pulls, largest u).

    Args:
        counts: u of each arm, shape (K,); 0 gives infinity.
        sigma: sub-Gaussian scale of each arm, shape (K,), in reward units.
        delta: error probability, all arms and all looks together.

    Source: the exploration rate of LUCB1, Kalyanakrishnan et al. (2012).
    """
    t = max(1.0, math.ceil(int(counts.sum()) / 2), float(np.max(counts)))
    log_term = math.log(K1 * len(counts) / delta) + 4.0 * math.log(t)
    radius = sigma * np.sqrt(2.0 * log_term / np.maximum(counts, 1))
    return np.where(counts > 0, radius, np.inf)
