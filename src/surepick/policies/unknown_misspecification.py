"""Algorithm 4: arm elimination with a fixed embedding of unknown misspecification. Never certifies, never stops."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from surepick.complexity import embedding_design
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.estimators import Estimate, estimate
from surepick.noise import Noise
from surepick.policies import rounds
from surepick.policies.protocol import Traits, plain_options
from surepick.policies.rounds import EliminationState, RoundSettings
from surepick.policies.rules import Comparison
from surepick.records import Certificate, Embedding, FloatArray, IntArray, Observations, Plan, Step, record

OPTIONS = ("slack", "gap_bound", "schedule", "union", "floor", "dim", "tolerance")
UNKNOWN = (
    "The misspecification of the embedding is not known: how good the answer is cannot be checked, only that it gets "
    "as good as the embedding allows."
)


@record
class UnknownMisspecificationElimination:
    """Round k brings the noise of every difference to t_k / 2 and drops what trails the leader by t_k.

        N_k = ceil(8 sigma^2 (1 + zeta) tau_k L_k / t_k^2),   t_k = R 2^-k
        x goes when score(leader) - score(x) >= t_k

    While the misspecification is small against t_k this keeps the best arm; afterwards the active set stays within
    gamma-bar(d) of it. Nobody can tell when that happens, so the verdict is always heuristic and the policy runs until
    it is told to stop, or one arm is left.

    Args:
        embedding: the family psi_d; its misspecification bound is not used.
        dim: d; None: the largest dimension.
        epsilon: only reported; nothing stops by it.
        delta, noise, slack, gap_bound, schedule, union, floor, tolerance: as in `AdaptiveElimination`.

    Raises:
        InvalidInput: a setting has no meaning, or the embedding has no dimension `dim`.

    Source: Algorithm 4.
    Differs from the paper: scaled by R and sigma; the first recommendation is arm 0, not a random one; delta_k and the
    union default to the valid spending of `AdaptiveElimination`.
    """

    name: ClassVar[str] = "unknown-misspecification"
    state_type: ClassVar[type[Any]] = EliminationState
    stops: ClassVar[str] = "never"
    eliminates: ClassVar[bool] = True
    traits: ClassVar[Traits] = Traits(uses_features=True, certifies="nothing")

    embedding: ArmEmbedding
    epsilon: float
    delta: float
    noise: Noise
    slack: float = 0.1
    gap_bound: float | None = None
    schedule: str = "convergent"
    union: str = "best-pairs"
    floor: str = "support"
    dim: int | None = None
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        self.embedding.at(self._dim)
        if self.schedule == "uniform":
            raise InvalidInput("schedule 'uniform' needs a last round, and this policy has none; use 'convergent'.")
        _ = self.settings

    @property
    def _dim(self) -> int:
        return self.embedding.max_dim if self.dim is None else self.dim

    @property
    def _embedded(self) -> Embedding:
        """psi_d without its declared misspecification, which plays no part."""
        return Embedding(self.embedding.at(self._dim).features, 0.0)

    @property
    def settings(self) -> RoundSettings:
        """The part of the configuration that all algorithms with rounds share, checked."""
        return rounds.settings_of(self, looks=1, stopping="rounds")

    @property
    def num_arms(self) -> int:
        return self.embedding.num_arms

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ("The mean reward is nearly linear in the embedding; how nearly is not known.",)

    @property
    def caveats(self) -> tuple[str, ...]:
        return (UNKNOWN,)

    @property
    def spec(self) -> dict[str, Any] | None:
        if self.embedding.family != "linear":
            return None
        return {"name": self.name, **plain_options(self, OPTIONS)}

    def init(self) -> EliminationState:
        state = rounds.initial_state(self.settings)  # Alg. 4, lines 1 and 2
        return state if state.finished == "single" else replace(state, finished="", gap=None)

    def stopped(self, state: EliminationState) -> bool:
        return state.finished != ""

    def ask(self, state: EliminationState) -> Plan:
        settings, k = self.settings, state.round
        embedded = self._embedded  # Alg. 4, line 1
        design = embedding_design(embedded, state.active, tolerance=self.tolerance)  # Alg. 4, line 5
        scale = 8.0 * settings.sigma**2 * (1.0 + self.slack) * design.value  # Alg. 4, line 6
        total = rounds.whole_pulls(scale * settings.log_term(k, len(state.active)) / self._threshold(k) ** 2)
        return rounds.open_round(settings, state, embedded=embedded, design=design, total=total)  # Alg. 4, line 7

    def tell(self, state: EliminationState, plan: Plan, seen: Observations) -> Step[EliminationState]:
        fitted = estimate(self._embedded, seen, reference=int(state.active[0]))  # Alg. 4, lines 8 and 9
        comparison = _trailing(fitted, state.active, self._threshold(plan.round))  # Alg. 4, line 10
        step = rounds.conclude(self.settings, state, plan, seen, comparison)
        row = replace(step.record, certified_gap=None)  # nothing is ever proved
        if step.state.finished == "rounds":
            return Step(replace(step.state, finished="", round=plan.round + 1), row, step.deciding)
        return Step(step.state, row, step.deciding)

    def recommend(self, state: EliminationState) -> int:
        return state.leader

    def certificate(self, state: EliminationState) -> Certificate:
        answer = rounds.certificate(self.settings, state, self.assumptions)
        if self.num_arms == 1:
            return answer
        return replace(answer, verdict="heuristic", reason=UNKNOWN, certified_gap=None)

    def _threshold(self, round_number: int) -> float:
        """t_k = R 2^-k, without a last round."""
        return self.settings.radius * 2.0**-round_number


def _trailing(fitted: Estimate, active: IntArray, threshold: float) -> Comparison:
    """The arms that trail the leader by less than the threshold; those that cannot be compared stay."""
    comparable = fitted.comparable[active]
    scores = np.where(comparable, fitted.scores[active], -np.inf)
    leader = int(active[np.argmax(scores)])
    trailing = comparable & (scores.max() - scores >= threshold)

    def leading(rivals: IntArray, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        leads = np.where(fitted.comparable[arms], fitted.scores[rivals][:, None] - fitted.scores[arms], -np.inf)
        return leads, np.full_like(leads, threshold)

    return Comparison(active[~trailing], leader, math.inf, leading)
