"""XY-adaptive allocation (Soare, Lazaric & Munos 2014): phases, each with a design for the arms that are left."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from surepick.designs import allocate, design_value, solve_design
from surepick.errors import InvalidInput
from surepick.estimators import least_squares
from surepick.intervals import Intervals
from surepick.noise import Noise, largest_scale
from surepick.policies.belief import LINEAR, believed
from surepick.policies.peers import checked_linear, linear_assumption, linear_caveat, peer_certificate
from surepick.policies.protocol import Traits, plain_options, trace_row
from surepick.policies.rounds import whole_pulls
from surepick.policies.rules import Comparison, compare, intervals_of
from surepick.policies.xy_static import (
    CONSTANTS,
    PhaseState,
    fixed_design_multiplier,
    initial_state,
    misfit,
    next_part,
)
from surepick.records import Certificate, Embedding, FloatArray, IntArray, Observations, Plan, Step, record
from surepick.settings import as_number, check_choice, positive_number
from surepick.text import quoted

OPTIONS = ("shrinkage", "stopping", "constants", "slack", "gap_bound", "growth", "tolerance")
STOPPINGS = ("certified", "phases")


@record
class XYAdaptive:
    """Phase j measures a design for the active arms until it is 1/alpha times as exact as phase j - 1, then drops arms.

        phase j ends when max over y of ||y||^2_{A_j^-1} <= alpha times what phase j - 1 reached (at first 1/(d(d+1)+1))
        x goes when some x' leads by width(x', x), widths as in `XYStatic`, with the least squares of this phase alone
        stop when score(x') - score(leader) + width(x', leader) <= epsilon for every active x', or a phase leaves one
            arm, or only arms of equal features, whose means are equal

    Given what came before a phase, its allocation is a fixed design, and n, the pulls of all phases, identifies a look.
    So a look with n pulls errs with at most the probability stated in `XYStatic`, whatever the phases were, and the sum
    over n covers phases and looks at once.

    Args:
        features: X, shape (K, D). The rewards are taken to be exactly linear in them.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: error probability, in (0, 1).
        noise: what is assumed of a reward; the largest scale is used for all arms.
        shrinkage: alpha, in (0, 1).
        stopping: "certified": look after each batch; "phases": at the end of a phase only, until one arm is left, or
            arms of equal features. That never happens when two best arms differ in features and have equal means.
        constants: "paper", or "sub-gaussian" for widths about half as large that hold as well.
        slack: zeta, in (0, 1]: what rounding to whole pulls may cost.
        gap_bound: an upper bound on the largest gap; only used to answer at once when it is at most epsilon.
        growth: a batch has ceil(growth * n) pulls after n, but never passes the end of its phase; at most 1000.
        tolerance: the relative gap to which designs are solved.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Soare, Lazaric & Munos (2014), Algorithm 2 (XY-adaptive), with alpha = .1 as in its experiments.
    Differs from its source: batches and an epsilon-stop; designs are solved and rounded, not built greedily from the
    identity matrix; n counts the pulls of all phases, for which the union is proved; an arm that was dropped does not
    come back; lack of fit as in `XYStatic`.
    Cost: one design a phase, then O(K d^2) a batch.
    """

    name: ClassVar[str] = "xy-adaptive"
    state_type: ClassVar[type[Any]] = PhaseState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = True
    traits: ClassVar[Traits] = Traits(uses_features=True)

    features: FloatArray
    epsilon: float
    delta: float
    noise: Noise
    shrinkage: float = 0.1
    stopping: str = "certified"
    constants: str = "paper"
    slack: float = 0.1
    gap_bound: float | None = None
    growth: float = 0.1
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", checked_linear(self, self.features))
        if not 0 < as_number("shrinkage", self.shrinkage) < 1:
            raise InvalidInput(
                f"shrinkage is {quoted(self.shrinkage)}; it must lie strictly between 0 and 1: how much of the width a "
                "phase leaves, squared."
            )
        if not 0 < as_number("slack", self.slack) <= 1:
            raise InvalidInput(
                f"slack is {quoted(self.slack)}; it must lie in (0, 1]: what rounding to whole pulls may cost."
            )
        check_choice("stopping", self.stopping, STOPPINGS)
        check_choice("constants", self.constants, CONSTANTS)
        positive_number("tolerance", self.tolerance, "the relative gap to which designs are solved.")

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def assumptions(self) -> tuple[str, ...]:
        return linear_assumption(self.features)

    @property
    def checks(self) -> tuple[str, ...]:
        return (LINEAR,)

    @property
    def caveats(self) -> tuple[str, ...]:
        return linear_caveat(self.features)

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, **plain_options(self, OPTIONS)}

    def init(self) -> PhaseState:
        dim = self.features.shape[1]
        return initial_state(self, reached=1.0 / (dim * (dim + 1) + 1))  # Alg. 2: rho^0 = 1, n_0 = d(d+1) + 1

    def stopped(self, state: PhaseState) -> bool:
        return state.finished != ""

    def ask(self, state: PhaseState) -> Plan:
        whole = self._phase(state) if state.opened is None else state.opened
        most = 0 if whole.allocation is None else int(whole.allocation.sum())
        return next_part(whole, state, self.growth, most=most)

    def tell(self, state: PhaseState, plan: Plan, seen: Observations) -> Step[PhaseState]:
        pooled, pulls, sigma = state.seen.plus(seen), state.pulls + seen.total, largest_scale(self.noise)
        fitted = least_squares(Embedding(self.features, 0.0), pooled, reference=int(state.active[0]))
        multiplier = fixed_design_multiplier(self.constants, sigma, pulls, num_arms=self.num_arms, delta=self.delta)
        comparison = compare(fitted, state.active, offset=0.0, multiplier=multiplier)
        over = plan.allocation is None or bool(np.all(pooled.counts >= plan.allocation))
        finished = self._why_finished(comparison, over=over)
        alarms = misfit(fitted, pooled, sigma=sigma, round_number=state.round)
        gap = 0.0 if over and self._alike(comparison.survivors) else comparison.gap
        after = PhaseState(
            round=state.round + 1,
            active=comparison.survivors if over else state.active,
            opened=None if over else plan,
            seen=Observations.nothing(self.num_arms) if over else pooled,
            pulls=pulls,
            reached=design_value(self.features, pooled.counts, state.active) if over else state.reached,
            leader=comparison.leader,
            gap=gap if math.isfinite(gap) else None,
            finished=finished,
            alarms=state.alarms or alarms,
        )
        row = trace_row(
            plan,
            pulls=seen.total,
            total_pulls=pulls,
            active=after.active,
            leader=after.leader,
            certified_gap=after.gap,
            alarms=alarms,
        )
        certifies = self.epsilon if self.stopping == "certified" else None

        def deciding(_: Intervals | None) -> Intervals:
            return intervals_of(
                comparison.leading, active=state.active, survivors=after.active, leader=after.leader, epsilon=certifies
            )

        return Step(after, row, deciding)

    def recommend(self, state: PhaseState) -> int:
        return state.leader

    def certificate(self, state: PhaseState) -> Certificate:
        answer = peer_certificate(self, state, pulls=state.pulls, assumptions=self.assumptions)
        return believed(answer, state.alarms, heuristic="")

    def _phase(self, state: PhaseState) -> Plan:
        """The allocation of the next phase (Alg. 2, the loop over x_t)."""
        design = solve_design(self.features, state.active, tolerance=self.tolerance)
        total = whole_pulls((1.0 + self.slack) * design.value / (self.shrinkage * state.reached))
        counts = allocate(design, self.features, total, slack=self.slack, active=state.active).counts
        return Plan(
            round=state.round,
            counts=counts,
            allocation=counts,
            dim=self.features.shape[1],
            value=design.value,
            lower_bound=design.lower_bound,
        )

    def _alike(self, arms: IntArray) -> bool:
        """Arms of equal features, whose linear means are equal: no design could tell them apart."""
        return bool(np.all(self.features[arms] == self.features[arms[0]]))

    def _why_finished(self, comparison: Comparison, *, over: bool) -> str:
        if over and len(comparison.survivors) == 1:
            return "single"
        if over and self._alike(comparison.survivors):
            return "certified"
        return "certified" if self.stopping == "certified" and comparison.gap <= self.epsilon else ""
