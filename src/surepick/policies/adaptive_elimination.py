"""Algorithm 1: arm elimination with adaptive embedding and induced misspecification."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

from surepick.complexity import (
    DimensionChoice,
    bias,
    cheapest_dimension,
    check_room,
    effective_dimension,
    embedding_design,
)
from surepick.embeddings import ArmEmbedding
from surepick.estimators import estimate, noise_multiplier
from surepick.noise import Noise
from surepick.policies import rounds
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
from surepick.records import Certificate, IntArray, Observations, Plan, Step, record
from surepick.settings import check_choice, positive_number, share_of_pulls

DIMENSIONS = ("cheapest", "effective")
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
class AdaptiveElimination:
    """Round k embeds the arms in as few dimensions as its accuracy t_k allows, measures an optimal design there, and
    rules out the arms that cannot be the best.

        t_k   = R 2^-k                                         R = gap_bound / 2
        eps_k = gamma-tilde(d_k) (2 + sqrt((1 + zeta) tau_k))
        N_k   = ceil(2 sigma^2 (1 + zeta) tau_k L_k / (t_k - eps_k)^2)
        omega_k(y) = 2 gamma-tilde + ||y||_{A_k^-1} (gamma-tilde sqrt(N_k) + sigma sqrt(2 L_k))
        x goes when some x' in S_k has a strictly higher score and leads by at least omega_k(psi(x') - psi(x))

    It stops as soon as the realised widths certify that the leader is epsilon-best, and recommends the highest score.
    With probability at least 1 - delta the answer is epsilon-best (docs/elimination.md has the proof).

    Args:
        embedding: the family psi_d with its misspecification bound.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: error probability, in (0, 1).
        noise: what is assumed of a reward; the largest scale of all arms is used.
        slack: zeta, what rounding to whole pulls may cost, in (0, 1].
        gap_bound: an upper bound on the largest gap between two arms; None: high - low for bounded rewards, else
            unknown, and the rounds start at 2, the paper's (or 2 epsilon). It sets the scale of the rounds; the
            guarantee does not depend on it, unless it is at most epsilon: then every arm is epsilon-best at once.
        schedule: delta_k: "convergent", "uniform" or "paper".
        union: events per look: "best-pairs", "paper" or "all".
        looks: how often a round is judged.
        floor: least round size: "support" (the rounding promise, evaluated) or "published" (2 p / zeta).
        stopping: "certified" (on realised widths, another round if need be) or "rounds" (the paper's n rounds).
        dimension: d_k: "cheapest" (fewest predicted pulls) or "effective" (d_eff(4 t_k)).
        dim: fixes d_k; None: chosen.
        tolerance: relative gap of the designs.
        reserve: the share of a round's pulls, in [0, 1), that is added on arms spread over the set, so that a lack of
            fit can show; none where every list of means is representable.

    The data are checked against the embedding at every look (`policies/belief.py`); an alarm makes the verdict
    heuristic. In round 1 a dimension that leaves next to nothing to tell the arms apart is taken only if `dim` or
    dimension "effective" asks; where the declared norm says that all arms are nearly equal, nothing is compressed.

    Raises:
        InvalidInput: a setting has no meaning.
        ContractError: misspecification leaves no room for the finest accuracy at any dimension (or at `dim`).

    Source: Algorithm 1.  Differs from the paper: see docs/paper-map.md; `paper_settings("linear-embedding")` gives its
    literal choices.
    """

    name: ClassVar[str] = "adaptive-elimination"
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
    dimension: str = "cheapest"
    dim: int | None = None
    tolerance: float = 0.01
    reserve: float = 0.05

    def __post_init__(self) -> None:
        check_choice("dimension", self.dimension, DIMENSIONS)
        if self.dim is not None:
            self.embedding.at(self.dim)
        positive_number("tolerance", self.tolerance, "the relative gap to which designs are solved.")
        share_of_pulls("reserve", self.reserve)
        settings = self.settings
        if self.dim is None and self.dimension == "effective":
            effective_dimension(self.embedding, 4.0 * settings.accuracy(settings.num_rounds), slack=self.slack)
        else:
            finest = settings.accuracy(settings.num_rounds)
            check_room(self.embedding, finest, dim=self.dim, slack=self._bias_slack, tolerance=self.tolerance)

    @property
    def settings(self) -> RoundSettings:
        """The part of the configuration that all algorithms with rounds share, checked."""
        return rounds.settings_of(self)

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
        return self.embedding.caveats

    @property
    def spec(self) -> dict[str, Any] | None:
        if self.embedding.spec is None or self.embedding.family not in NAMED_FAMILIES:
            return None
        name = f"{self.embedding.family}-embedding"
        return {"name": name, **plain_options(self, OPTIONS), **self.embedding.spec}

    def init(self) -> EliminationState:
        return rounds.initial_state(self.settings)  # Alg. 1, line 1

    def stopped(self, state: EliminationState) -> bool:
        return state.finished != ""

    def ask(self, state: EliminationState) -> Plan:
        if state.opened is not None:
            return rounds.next_look(state.opened)
        settings, k, active = self.settings, state.round, state.active
        choice = self._choose(k, active)  # Alg. 1, lines 3 and 5: d_k, lambda_k, tau_k
        embedded, tau = self.embedding.at(choice.dim), choice.design.value  # Alg. 1, line 4
        eps_k = bias(embedded.misspecification, tau, self._bias_slack)  # Alg. 1, line 6
        total = rounds.round_size(settings, k, value=tau, bias=eps_k, num_active=len(active))  # Alg. 1, line 6
        checkable = partial(checkable_counts, self.embedding, choice.dim, share=self.reserve)
        return rounds.open_round(  # Alg. 1, line 7
            settings, state, embedded=embedded, design=choice.design, total=total, checkable=checkable
        )

    def tell(self, state: EliminationState, plan: Plan, seen: Observations) -> Step[EliminationState]:
        settings, active = self.settings, state.active
        pooled = state.seen.plus(seen)  # Alg. 1, line 8
        embedded = self.embedding.at(plan.dim)
        fitted = estimate(embedded, pooled, reference=int(active[0]))  # Alg. 1, line 9
        gamma, log_term = embedded.misspecification, settings.log_term(plan.round, len(active))
        spread = gamma * math.sqrt(pooled.total) + noise_multiplier(settings.sigma, log_term)
        comparison = compare(fitted, active, offset=2.0 * gamma, multiplier=spread)  # Alg. 1, line 10
        compressed = not representable(self.embedding, plan.dim)
        alarms = suspicions(self.embedding, plan, pooled, fitted, sigma=settings.sigma, epsilon=self.epsilon)
        return rounds.conclude(settings, state, plan, seen, comparison, compressed=compressed, alarms=alarms)

    def recommend(self, state: EliminationState) -> int:
        return state.leader

    def certificate(self, state: EliminationState) -> Certificate:
        answer = rounds.certificate(self.settings, state, assumed(self.embedding, state.pulls, state.compressed))
        return believed(answer, state.alarms, heuristic=unbacked(self.embedding, state.compressed))

    @property
    def _bias_slack(self) -> float:
        """zeta', so that N ||y||^2 <= (1 + zeta') tau also with the reserved pulls, which raise N but not the norm."""
        return (1.0 + self.slack) * (1.0 + self.reserve) - 1.0

    def _choose(self, round_number: int, active: IntArray) -> DimensionChoice:
        accuracy = self.settings.accuracy(round_number)
        if self.dim is None and self.dimension == "cheapest":
            first = round_number == 1 and self.embedding.num_distinct > 2
            least_dim = 2 if first else 1
            if vacuous(self.embedding, self.epsilon):
                least_dim = self.embedding.max_dim
            return cheapest_dimension(
                self.embedding,
                active,
                accuracy,
                slack=self._bias_slack,
                tolerance=self.tolerance,
                least_dim=least_dim,
                least_value=1.0 if first else 0.0,
            )
        dim = effective_dimension(self.embedding, 4.0 * accuracy, slack=self.slack) if self.dim is None else self.dim
        return DimensionChoice(dim, embedding_design(self.embedding.at(dim), active, tolerance=self.tolerance))
