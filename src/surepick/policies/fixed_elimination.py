"""Algorithm 3: arm elimination with a fixed embedding and induced misspecification."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from surepick.complexity import bias, effective_dimension, embedding_design, worst_gap
from surepick.embeddings import ArmEmbedding
from surepick.estimators import estimate, noise_multiplier
from surepick.noise import Noise
from surepick.policies import rounds
from surepick.policies.answers import check_common
from surepick.policies.belief import (
    assumed,
    believed,
    checkable_counts,
    checks_of,
    representable,
    suspicions,
    unbacked,
    vacuous,
)
from surepick.policies.protocol import NAMED_FAMILIES, Traits, plain_options
from surepick.policies.rounds import EliminationState, RoundSettings
from surepick.policies.rules import compare
from surepick.records import Certificate, Observations, Plan, Step, record
from surepick.settings import check_choice, positive_number, share_of_pulls

DIMENSIONS = ("guarded", "effective")
OPTIONS = (
    "slack",
    "gap_bound",
    "schedule",
    "union",
    "looks",
    "floor",
    "stopping",
    "dimension",
    "dim",
    "tolerance",
    "reserve",
)


@record
class FixedElimination:
    """Like Algorithm 1, with one embedding for all rounds; it promises max(epsilon, gamma(d)).

        gamma(d) = (16 + 8 sqrt(g(d, zeta))) gamma-tilde(d),   n = max(1, ceil(log2(2 R / max(epsilon, gamma(d)))))

    Args:
        embedding: the family psi_d with its misspecification bound.
        epsilon: the shortfall that is tolerated, in reward units, > 0; `certified_epsilon` is what is promised.
        dim: d; None: chosen, so that epsilon itself is promised.
        dimension: how d is chosen: "effective" is d_eff(epsilon); "guarded" as well, but never 1 of more dimensions,
            and the largest one where the declared norm says that all arms are nearly equal.
        delta, noise, slack, gap_bound, schedule, union, looks, floor, stopping, tolerance, reserve: as in
            `AdaptiveElimination`.

    Raises:
        InvalidInput: a setting has no meaning.
        ContractError: dim is None and no dimension reaches epsilon.

    Source: Algorithm 3.
    Differs from the paper: max(epsilon, gamma(d)) in place of gamma(d), which at zero misspecification would mean
    infinitely many rounds; the departures of `AdaptiveElimination`.
    """

    name: ClassVar[str] = "fixed-elimination"
    state_type: ClassVar[type[Any]] = EliminationState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = True

    embedding: ArmEmbedding
    epsilon: float
    delta: float
    noise: Noise
    slack: float = 0.1
    gap_bound: float | None = None
    schedule: str = "convergent"
    union: str = "best-pairs"
    looks: int = 8
    floor: str = "support"
    stopping: str = "certified"
    dimension: str = "guarded"
    dim: int | None = None
    tolerance: float = 0.01
    reserve: float = 0.05
    chosen_dim: int = 0
    certified_epsilon: float = 0.0

    def __post_init__(self) -> None:
        check_common(epsilon=self.epsilon, delta=self.delta, slack=self.slack, gap_bound=self.gap_bound)
        check_choice("dimension", self.dimension, DIMENSIONS)
        dim = self._own_dimension() if self.dim is None else self.dim
        object.__setattr__(self, "chosen_dim", dim)
        object.__setattr__(self, "certified_epsilon", max(self.epsilon, self._forced_gap(dim)))  # Alg. 3, line 2
        positive_number("tolerance", self.tolerance, "the relative gap to which designs are solved.")
        share_of_pulls("reserve", self.reserve)
        _ = self.settings

    def _own_dimension(self) -> int:
        """d_eff(epsilon); guarded: never 1 of more, and the largest where the declared norm makes arms nearly equal."""
        if self.dimension == "effective":
            return effective_dimension(self.embedding, self.epsilon, slack=self.slack)
        if vacuous(self.embedding, self.epsilon):
            return self.embedding.max_dim
        least = min(2 if self.embedding.num_distinct > 2 else 1, self.embedding.max_dim)
        return max(effective_dimension(self.embedding, self.epsilon, slack=self.slack), least)

    def _forced_gap(self, dim: int) -> float:
        """gamma(d), from the bound 4 (1 + zeta) d >= g(d, zeta) where that is small enough, else from the design."""
        embedded = self.embedding.at(dim)  # Alg. 3, line 1
        screened = worst_gap(embedded.misspecification, 4.0 * dim, self.slack)
        if screened <= self.epsilon:
            return screened
        tau = embedding_design(embedded, tolerance=self.tolerance).value
        return worst_gap(embedded.misspecification, tau, self.slack)

    @property
    def settings(self) -> RoundSettings:
        """The part of the configuration that all algorithms with rounds share, checked; its epsilon is the promise."""
        return rounds.settings_of(self, epsilon=self.certified_epsilon)

    @property
    def num_arms(self) -> int:
        return self.embedding.num_arms

    @property
    def traits(self) -> Traits:
        return Traits(uses_features=self.embedding.family != "independent")

    @property
    def assumptions(self) -> tuple[str, ...]:
        return self.embedding.assumptions

    @property
    def checks(self) -> tuple[str, ...]:
        return checks_of(self.embedding)

    @property
    def caveats(self) -> tuple[str, ...]:
        if self.certified_epsilon <= self.epsilon:
            return self.embedding.caveats
        return (
            *self.embedding.caveats,
            f"In {self.chosen_dim} dimensions misspecification can force a shortfall of {self.certified_epsilon:g}; "
            f"that is what will be certified, not epsilon = {self.epsilon:g}.",
        )

    @property
    def spec(self) -> dict[str, Any] | None:
        if self.embedding.spec is None or self.embedding.family not in NAMED_FAMILIES:
            return None
        return {"name": f"fixed-{self.embedding.family}", **plain_options(self, OPTIONS), **self.embedding.spec}

    def init(self) -> EliminationState:
        return rounds.initial_state(self.settings)  # Alg. 3, line 2

    def stopped(self, state: EliminationState) -> bool:
        return state.finished != ""

    def ask(self, state: EliminationState) -> Plan:
        if state.opened is not None:
            return rounds.next_look(state.opened)
        settings, k, active = self.settings, state.round, state.active
        embedded = self.embedding.at(self.chosen_dim)  # Alg. 3, line 1
        design = embedding_design(embedded, active, tolerance=self.tolerance)  # Alg. 3, line 5
        bias_slack = (1.0 + self.slack) * (1.0 + self.reserve) - 1.0  # the reserved pulls raise N
        eps_k = bias(embedded.misspecification, design.value, bias_slack)  # Alg. 3, line 6
        total = rounds.round_size(settings, k, value=design.value, bias=eps_k, num_active=len(active))  # Alg. 3, line 6
        checkable = partial(checkable_counts, self.embedding, self.chosen_dim, share=self.reserve)
        return rounds.open_round(  # Alg. 3, line 7
            settings, state, embedded=embedded, design=design, total=total, checkable=checkable
        )

    def tell(self, state: EliminationState, plan: Plan, seen: Observations) -> Step[EliminationState]:
        settings, active = self.settings, state.active
        pooled = state.seen.plus(seen)  # Alg. 3, line 8
        embedded = self.embedding.at(plan.dim)
        fitted = estimate(embedded, pooled, reference=int(active[0]))  # Alg. 3, line 9
        gamma, log_term = embedded.misspecification, settings.log_term(plan.round, len(active))
        spread = gamma * math.sqrt(pooled.total) + noise_multiplier(settings.sigma, log_term)
        comparison = compare(fitted, active, offset=2.0 * gamma, multiplier=spread)  # Alg. 3, line 10
        compressed = not representable(self.embedding, plan.dim)
        alarms = suspicions(self.embedding, plan, pooled, fitted, sigma=settings.sigma, epsilon=self.epsilon)
        return rounds.conclude(settings, state, plan, seen, comparison, compressed=compressed, alarms=alarms)

    def recommend(self, state: EliminationState) -> int:
        return state.leader

    def certificate(self, state: EliminationState) -> Certificate:
        answer = rounds.certificate(self.settings, state, assumed(self.embedding, state.pulls, state.compressed))
        answer = believed(answer, state.alarms, heuristic=unbacked(self.embedding, state.compressed))
        if self.certified_epsilon <= self.epsilon:
            return answer
        promised = f"{self.chosen_dim} dimensions can promise {self.certified_epsilon:.4g} only."
        asked = f"{self.epsilon:g} was asked, but {promised}"
        return replace(answer, reason=f"{answer.reason} {asked}")
