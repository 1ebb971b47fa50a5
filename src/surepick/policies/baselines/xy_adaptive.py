"""XY-adaptive allocation (Soare, Lazaric & Munos 2014): phases, each with a design for the arms that are left."""

from __future__ import annotations

import math
from dataclasses import field, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.comparisons import intervals_after
from surepick.core.design import Embedding
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.core.validation import probability
from surepick.designs import allocate, design_value, solve_design
from surepick.estimators import least_squares
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, designed, trace_row
from surepick.policies.baselines import xy_static
from surepick.policies.baselines.linear import check_linear
from surepick.policies.baselines.xy_static import CONSTANTS, PhaseState
from surepick.policies.dimension import whole_pulls
from surepick.policies.model_checks import LINEAR, misfit
from surepick.policies.options import one_of, option
from surepick.policies.paper.arm_elimination import Comparison, compare

STOPPINGS = ("certified", "phases")


def share_of_width(name: str, value: object) -> float:
    return probability(name, value, "how much of the width a phase leaves, squared.")


@record
class XYAdaptive:
    """Phase j measures a design for the active arms until it is 1/alpha times as exact as phase j - 1, then drops arms.

        phase j ends when max over y of ||y||^2_{A_j^-1} <= alpha times what phase j - 1 reached (at first 1/(d(d+1)+1))
        x goes when some x' leads by width(x', x), widths as in `XYStatic`, with the least squares of this phase alone
        stop when score(x') - score(leader) + width(x', leader) <= epsilon for every active x', or a phase leaves one
            arm, or only arms of equal features, whose means are equal

    Given what came before a phase, its allocation is a fixed design, and n, the pulls of all phases, identifies a look,
    as does its number k. So a look errs with at most the probability stated in `XYStatic`, whatever the phases were,
    and the sum over n or k covers phases and looks at once.

    As the text describes it ("paper", alpha = .1) it takes 7 to 41 times the pulls of the code with which Fiez et al.
    (2019) ran it. There the widths are those of constants="published-code", and each phase is sqrt(10) times as long as
    the one before, not 10 times: that is shrinkage=.316 here.

    Args:
        problem, features, constants, tolerance: as in `XYStatic`.
        shrinkage: alpha, in (0, 1).
        stopping: "certified": look after each batch; "phases": at the end of a phase only, until one arm is left, or
            arms of equal features. That never happens when two best arms differ in features and have equal means.
        slack: zeta, in (0, 1]: what rounding to whole pulls may cost.
        growth: a batch has ceil(growth * n) pulls after n, but never passes the end of its phase; at most 1000.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Soare, Lazaric & Munos (2014), Algorithm 2 (XY-adaptive), with alpha = .1 as in its experiments.
    Differs from its source: batches and an epsilon-stop; designs are solved and rounded, not built greedily from the
    identity matrix; n counts the pulls of all phases, for which the union is proved; an arm that was dropped does not
    come back; lack of fit as in `XYStatic`.
    Cost: one design a phase, then O(K d^2) a batch.
    """

    problem: Problem
    features: FloatArray
    shrinkage: float = option(0.1, share_of_width)
    stopping: str = option("certified", one_of(*STOPPINGS))
    constants: str = option("paper", one_of(*CONSTANTS))
    slack: float = option(0.1, options.slack)
    growth: float = option(0.1, options.growth)
    tolerance: float = option(0.01, options.tolerance)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_linear(self, eliminates=True, checks=(LINEAR,))

    def init(self) -> PhaseState:
        dim = self.features.shape[1]
        return xy_static.initial_state(self.problem, reached=1.0 / (dim * (dim + 1) + 1))  # Alg. 2: rho^0, n_0

    def ask(self, state: PhaseState) -> Plan:
        whole = self._phase(state) if state.opened is None else state.opened
        most = 0 if whole.allocation is None else int(whole.allocation.sum())
        return xy_static.next_part(whole, state, self.growth, most=most)

    def tell(self, state: PhaseState, plan: Plan, seen: Observations) -> Step[PhaseState]:
        asked, pooled, pulls = self.problem, state.seen.plus(seen), state.pulls + seen.total
        fitted = least_squares(Embedding(self.features, 0.0), pooled, reference=int(state.active[0]))
        multiplier = xy_static.fixed_design_multiplier(self.constants, asked, pulls=pulls, look=state.looks + 1)
        comparison = compare(fitted, state.active, offset=0.0, multiplier=multiplier)
        over = plan.allocation is None or bool(np.all(pooled.counts >= plan.allocation))
        finished = self._why_finished(comparison, over=over)
        alarms = misfit(plan, pooled, fitted, asked)
        gap = 0.0 if over and self._alike(comparison.survivors) else comparison.gap
        after = PhaseState(
            round=state.round + 1,
            active=comparison.survivors if over else state.active,
            opened=None if over else plan,
            seen=Observations.nothing(asked.num_arms) if over else pooled,
            pulls=pulls,
            reached=design_value(self.features, pooled.counts, state.active) if over else state.reached,
            leader=comparison.leader,
            gap=gap if math.isfinite(gap) else None,
            finished=finished,
            alarms=state.alarms or alarms,
            looks=state.looks + (xy_static.counts_looks(self.constants) and (over or self.stopping == "certified")),
        )
        certifies = asked.epsilon if self.stopping == "certified" else None
        deciding = intervals_after(comparison.leading, comparison.leader, state.active, after.active, epsilon=certifies)
        return Step(after, trace_row(plan, after, pulls=seen.total, gap=after.gap, alarms=alarms), deciding)

    def claim(self, state: PhaseState) -> Claim:
        return xy_static.linear_claim(self, state)

    def _phase(self, state: PhaseState) -> Plan:
        """The allocation of the next phase (Alg. 2, the loop over x_t)."""
        design = solve_design(self.features, state.active, tolerance=self.tolerance)
        total = whole_pulls((1.0 + self.slack) * design.value / (self.shrinkage * state.reached))
        counts = allocate(design, self.features, total, slack=self.slack, active=state.active).counts
        whole = designed(state.round, counts, design, Embedding(self.features, 0.0))
        return replace(whole, allocation=counts)

    def _alike(self, arms: IntArray) -> bool:
        """Arms of equal features, whose linear means are equal: no design could tell them apart."""
        return bool(np.all(self.features[arms] == self.features[arms[0]]))

    def _why_finished(self, comparison: Comparison, *, over: bool) -> str:
        if over and len(comparison.survivors) == 1:
            return "single"
        if over and self._alike(comparison.survivors):
            return "certified"
        return "certified" if self.stopping == "certified" and comparison.gap <= self.problem.epsilon else ""
