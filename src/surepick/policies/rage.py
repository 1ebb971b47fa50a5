"""RAGE (Fiez, Jain, Jamieson & Ratliff 2019): elimination by transductive designs in the full feature space."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from surepick.designs import solve_design
from surepick.errors import InvalidInput
from surepick.estimators import lack_of_fit, least_squares, noise_multiplier
from surepick.noise import Noise
from surepick.policies import rounds
from surepick.policies.belief import LINEAR, believed, check_level
from surepick.policies.protocol import Traits, plain_options
from surepick.policies.rounds import EliminationState, RoundSettings
from surepick.policies.rules import compare
from surepick.records import Arms, Certificate, Embedding, FloatArray, Observations, Plan, Step, record
from surepick.settings import positive_number

OPTIONS = ("slack", "gap_bound", "schedule", "union", "looks", "floor", "stopping", "tolerance")


@record
class RAGE:
    """Round k measures an optimal design for the differences of the active arms, and rules out what it can.

        N_k = ceil(2 sigma^2 (1 + zeta) tau_k log(2 K^2 / delta_k) / t_k^2),   t_k = R 2^-k,   delta_k = delta / k^2
        x goes when some x' leads by at least ||x' - x||_{A^-1} sigma sqrt(2 log(2 K^2 / delta_k))

    With R = 1 and sigma = 1 this is 8 * 4^(k-1) (1 + zeta) tau_k log(2 K^2 / delta_k). The union over 2 K^2 events
    leaves so much room that delta / k^2 is a valid schedule here: at most delta pi^2 (K - 1) / (12 K^2) is spent.
    Means that lie too far from any linear function make the verdict heuristic (`lack_of_fit`).

    Args:
        features: X, shape (K, D); no embedding. The rewards are taken to be exactly linear in them.
        epsilon, delta, noise, slack, gap_bound, looks, floor, tolerance: as in `AdaptiveElimination`.
        schedule, union: delta / k^2 and 2 K^2 events are RAGE's own; others as in `AdaptiveElimination`.
        stopping: "certified": when the realised widths certify an epsilon-best arm; "rounds": after the
            ceil(log2(2 R / epsilon)) rounds.

    Source: Fiez et al. (2019), Algorithm 1.
    Differs from its source: an epsilon-stop by default; strictly higher score to rule out an arm (in the published
    code equal arms rule out one another); a range check in place of the pseudo-inverse.
    """

    name: ClassVar[str] = "rage"
    state_type: ClassVar[type[Any]] = EliminationState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = True
    traits: ClassVar[Traits] = Traits(uses_features=True)

    features: FloatArray
    epsilon: float
    delta: float
    noise: Noise
    slack: float = 0.1
    gap_bound: float | None = None
    schedule: str = "paper"
    union: str = "rage"
    looks: int = 1
    floor: str = "support"
    stopping: str = "certified"
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        arms = Arms(self.features)
        if arms.features.shape[1] == 0:
            raise InvalidInput("RAGE needs features; for arms without any, use certified-independent.")
        object.__setattr__(self, "features", np.asarray(arms.features, dtype=np.float64))
        positive_number("tolerance", self.tolerance, "the relative gap to which designs are solved.")
        _ = self.settings

    @property
    def settings(self) -> RoundSettings:
        """The part of the configuration that all algorithms with rounds share, checked."""
        return rounds.settings_of(self)

    @property
    def num_arms(self) -> int:
        return int(self.features.shape[0])

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (f"The mean reward is exactly a linear function of the {self.features.shape[1]} features.",)

    @property
    def checks(self) -> tuple[str, ...]:
        return (LINEAR,)

    @property
    def caveats(self) -> tuple[str, ...]:
        distinct = len(np.unique(self.features, axis=0))
        if distinct <= self.features.shape[1]:
            return ()
        return (
            f"{distinct} distinct arms in {self.features.shape[1]} feature columns: that the mean reward is exactly "
            "linear in the features is an assumption about the world. If it is doubtful, use certified-independent.",
        )

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, **plain_options(self, OPTIONS)}

    def init(self) -> EliminationState:
        return rounds.initial_state(self.settings)

    def stopped(self, state: EliminationState) -> bool:
        return state.finished != ""

    def ask(self, state: EliminationState) -> Plan:
        if state.opened is not None:
            return rounds.next_look(state.opened)
        settings, k, active = self.settings, state.round, state.active
        design = solve_design(self.features, active, tolerance=self.tolerance)
        total = rounds.round_size(settings, k, value=design.value, bias=0.0, num_active=len(active))
        return rounds.open_round(settings, state, embedded=Embedding(self.features, 0.0), design=design, total=total)

    def tell(self, state: EliminationState, plan: Plan, seen: Observations) -> Step[EliminationState]:
        settings, active = self.settings, state.active
        pooled = state.seen.plus(seen)
        fitted = least_squares(Embedding(self.features, 0.0), pooled, reference=int(active[0]))
        spread = noise_multiplier(settings.sigma, settings.log_term(plan.round, len(active)))
        comparison = compare(fitted, active, offset=0.0, multiplier=spread)
        level = check_level(plan.round, plan.looks)
        found = lack_of_fit(fitted, pooled, misspecification=0.0, sigma=settings.sigma, level=level)
        return rounds.conclude(settings, state, plan, seen, comparison, alarms=(found,) if found else ())

    def recommend(self, state: EliminationState) -> int:
        return state.leader

    def certificate(self, state: EliminationState) -> Certificate:
        return believed(rounds.certificate(self.settings, state, self.assumptions), state.alarms, heuristic="")
