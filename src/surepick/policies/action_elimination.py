"""Action elimination (Even-Dar et al. 2006; Jamieson & Nowak 2014): no features, one confidence interval per arm."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from surepick.estimators import anytime_radius, mixture_radius
from surepick.intervals import Intervals, against
from surepick.noise import Noise, scales
from surepick.policies.answers import (
    GROWTH,
    answer_without_pulls,
    assumptions_for,
    check_common,
    check_growth,
    known_gap_bound,
    verdict,
)
from surepick.policies.protocol import plain_options, trace_row
from surepick.records import (
    Certificate,
    FloatArray,
    IntArray,
    Observations,
    Plan,
    RoundRecord,
    Step,
    freeze,
    record,
)
from surepick.settings import check_choice, positive_number, whole_number

OPTIONS = ("gap_bound", "growth", "boundary")
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
        num_arms: K.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: error probability, in (0, 1).
        noise: what is assumed of a reward; one scale per arm is used as such.
        gap_bound: an upper bound on the largest gap; only used to answer at once when it is at most epsilon.
        growth: a batch adds ceil(growth * n) pulls, at least 1, to each active arm with n pulls; at most 1000.
        boundary: which intervals: "union", as published, or "mixture", tuned to widths of epsilon / 2.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Even-Dar, Mannor & Mansour (2006); constants as in Jamieson & Nowak (2014). The mixture: Robbins (1970),
    Howard et al. (2021).
    Differs from its sources: the epsilon-stop compares intervals; it comes no later than 2 c <= epsilon would.
    Cost: O(K) a batch.
    """

    name: ClassVar[str] = "action-elimination"
    state_type: ClassVar[type[Any]] = MeansState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = True

    num_arms: int
    epsilon: float
    delta: float
    noise: Noise
    gap_bound: float | None = None
    growth: float = 0.02
    boundary: str = "union"

    def __post_init__(self) -> None:
        check_common(epsilon=self.epsilon, delta=self.delta, slack=0.1, gap_bound=self.gap_bound)
        whole_number("num_arms", self.num_arms, least=1, meaning="something must be chosen among.")
        positive_number("growth", self.growth, GROWTH)
        check_growth(self.growth)
        check_choice("boundary", self.boundary, BOUNDARIES)
        scales(self.noise, self.num_arms)

    @property
    def _gap_bound(self) -> float | None:
        return known_gap_bound(self.noise, self.gap_bound)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ()

    @property
    def caveats(self) -> tuple[str, ...]:
        return ()

    @property
    def spec(self) -> dict[str, Any]:
        # Without the default, so that studies and certificates from before there was a choice stay what they are.
        named = OPTIONS if self.boundary != "union" else tuple(name for name in OPTIONS if name != "boundary")
        return {"name": self.name, **plain_options(self, named)}

    def init(self) -> MeansState:
        finished, gap = answer_without_pulls(self.num_arms, self.epsilon, self._gap_bound)
        return MeansState(1, np.arange(self.num_arms), Observations.nothing(self.num_arms), 0, gap, finished)

    def stopped(self, state: MeansState) -> bool:
        return state.finished != ""

    def ask(self, state: MeansState) -> Plan:
        counts = np.zeros(self.num_arms, np.int64)
        counts[state.active] = np.maximum(1, np.ceil(self.growth * state.seen.counts[state.active]))
        return Plan(round=state.round, counts=counts)

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled = state.seen.plus(seen)
        radius = self._radius(pooled.counts)
        upper, lower = pooled.means + radius, pooled.means - radius
        active = state.active
        leader = int(active[np.argmax(np.where(pooled.counts[active] > 0, pooled.means[active], -np.inf))])
        survivors = active[(upper[active] >= lower[leader]) | (active == leader)]
        others = survivors[survivors != leader]
        gap = max(0.0, float(np.max(upper[others] - lower[leader]))) if len(others) else 0.0
        finished = "single" if len(others) == 0 else "certified" if gap <= self.epsilon else ""
        after = MeansState(state.round + 1, survivors, pooled, leader, gap if math.isfinite(gap) else None, finished)

        def deciding(_: Intervals | None) -> Intervals:
            rivals = active[active != leader]
            leads, widths = pooled.means[leader] - pooled.means[rivals], radius[leader] + radius[rivals]
            allowed = np.where(np.isin(rivals, survivors), self.epsilon, 0.0)
            return against(leader, rivals, leads=leads, widths=widths, allowed=allowed)

        return Step(after, _row(plan, seen, after), deciding)

    def _radius(self, counts: IntArray) -> FloatArray:
        sigma = scales(self.noise, self.num_arms)
        if self.boundary == "union":
            return anytime_radius(counts, sigma, delta=self.delta, num_arms=self.num_arms)
        return mixture_radius(counts, sigma, delta=self.delta, num_arms=self.num_arms, accuracy=0.5 * self.epsilon)

    def recommend(self, state: MeansState) -> int:
        return state.leader

    def certificate(self, state: MeansState) -> Certificate:
        claim, reason = verdict(
            finished=state.finished,
            pulls=state.seen.total,
            gap=state.gap,
            epsilon=self.epsilon,
            delta=self.delta,
            spent=self.delta * (math.pi**2 / 12.0 if self.boundary == "union" else 1.0),
        )
        return Certificate(
            best_arm=str(state.leader),
            arm=state.leader,
            epsilon=self.epsilon,
            delta=self.delta,
            pulls=state.seen.total,
            verdict=claim,
            reason=reason,
            assumptions=assumptions_for(state.finished, self.num_arms, self._gap_bound, self.noise, ()),
            certified_gap=state.gap,
        )


def _row(plan: Plan, seen: Observations, after: MeansState) -> RoundRecord:
    return trace_row(
        plan,
        pulls=seen.total,
        total_pulls=after.seen.total,
        active=after.active,
        leader=after.leader,
        certified_gap=after.gap,
    )
