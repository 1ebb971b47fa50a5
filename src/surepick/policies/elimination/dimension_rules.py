"""In how many dimensions a round measures: all that tells Algorithms 1 and 3 and RAGE apart."""

from __future__ import annotations

from dataclasses import field, replace
from typing import ClassVar, Protocol, Self

from surepick.core.arrays import IntArray, record
from surepick.core.validation import check_choice
from surepick.embeddings import ArmEmbedding
from surepick.policies.base import Problem
from surepick.policies.dimension import (
    DimensionChoice,
    cheapest_dimension,
    check_room,
    effective_dimension,
    embedding_design,
    worst_gap,
)
from surepick.policies.elimination.rounds import RoundSettings
from surepick.policies.model_checks import norm_bound_uninformative

ADAPTIVE = ("cheapest", "effective")
FIXED = ("guarded", "effective")


class Eliminating(Protocol):
    """What a rule needs of the policy that it is part of."""

    @property
    def problem(self) -> Problem: ...
    @property
    def embedding(self) -> ArmEmbedding: ...
    @property
    def rounds(self) -> RoundSettings: ...
    @property
    def slack(self) -> float: ...
    @property
    def bias_slack(self) -> float: ...
    @property
    def tolerance(self) -> float: ...


class DimensionRule(Protocol):
    """How a round chooses d. Frozen; `bound` is called once, when the policy is made."""

    @property
    def exact(self) -> bool:
        """Whether the features are taken as they are: nothing is compressed, and no arm is measured to check that."""
        ...

    @property
    def certified(self) -> float:
        """The least shortfall that misspecification lets it promise, in reward units; known once it is bound."""
        ...

    @property
    def chosen(self) -> int:
        """The dimension of all rounds; 0 if rounds differ."""
        ...

    def bound(self, policy: Eliminating, /) -> Self:
        """The rule for this policy, checked."""
        ...

    def choose(self, policy: Eliminating, round_number: int, active: IntArray, /) -> DimensionChoice:
        """d_k, lambda_k and tau_k."""
        ...


@record
class AdaptiveDimension:
    """d_k anew in each round, as small as its accuracy allows (Algorithm 1, line 3).

    Args:
        dimension: "cheapest" (fewest predicted pulls) or "effective" (d_eff(4 t_k)).
        dim: fixes d_k; None: chosen.

    In round 1 a dimension that leaves next to nothing to tell the arms apart is taken only if `dim` or dimension
    "effective" asks; where the declared norm says that all arms are nearly equal, nothing is compressed.
    """

    dimension: str = "cheapest"
    dim: int | None = None
    exact: ClassVar[bool] = False
    certified: ClassVar[float] = 0.0
    chosen: ClassVar[int] = 0

    def bound(self, policy: Eliminating, /) -> Self:
        """Refuse a policy that misspecification leaves no room for the finest accuracy.

        Raises:
            InvalidInput: a setting has no meaning.
            ContractError: there is no room at any dimension, or at `dim`.
        """
        check_choice("dimension", self.dimension, ADAPTIVE)
        embedding, rounds = policy.embedding, policy.rounds
        finest = rounds.accuracy(rounds.num_rounds)
        if self.dim is not None:
            embedding.at(self.dim)
        if self.dim is None and self.dimension == "effective":
            effective_dimension(embedding, 4.0 * finest, slack=policy.slack)
        else:
            check_room(embedding, finest, dim=self.dim, slack=policy.bias_slack, tolerance=policy.tolerance)
        return self

    def choose(self, policy: Eliminating, round_number: int, active: IntArray, /) -> DimensionChoice:
        embedding, accuracy = policy.embedding, policy.rounds.accuracy(round_number)
        if self.dim is None and self.dimension == "cheapest":
            first = round_number == 1 and embedding.num_distinct > 2
            least_dim = 2 if first else 1
            if norm_bound_uninformative(embedding, policy.problem.epsilon):
                least_dim = embedding.max_dim
            return cheapest_dimension(
                embedding,
                active,
                accuracy,
                slack=policy.bias_slack,
                tolerance=policy.tolerance,
                least_dim=least_dim,
                least_value=1.0 if first else 0.0,
            )
        dim = effective_dimension(embedding, 4.0 * accuracy, slack=policy.slack) if self.dim is None else self.dim
        return DimensionChoice(dim, embedding_design(embedding.at(dim), active, tolerance=policy.tolerance))


@record
class FixedDimension:
    """One dimension for all rounds; it promises max(epsilon, gamma(d)) (Algorithm 3).

        gamma(d) = (16 + 8 sqrt(g(d, zeta))) gamma-tilde(d),   n = max(1, ceil(log2(2 R / max(epsilon, gamma(d)))))

    Args:
        dimension: how d is chosen: "effective" is d_eff(epsilon); "guarded" as well, but never 1 of more dimensions,
            and the largest one where the declared norm says that all arms are nearly equal.
        dim: d; None: chosen, so that epsilon itself is promised.

    Source: Algorithm 3, lines 1 and 2.
    Differs from the paper: max(epsilon, gamma(d)) in place of gamma(d), which at zero misspecification would mean
    infinitely many rounds.
    """

    dimension: str = "guarded"
    dim: int | None = None
    chosen: int = field(default=0, init=False)
    certified: float = field(default=0.0, init=False)
    exact: ClassVar[bool] = False

    def bound(self, policy: Eliminating, /) -> Self:
        """d and what it can promise.

        Raises:
            InvalidInput: a setting has no meaning.
            ContractError: dim is None and no dimension reaches epsilon.
        """
        check_choice("dimension", self.dimension, FIXED)
        mine = replace(self)
        object.__setattr__(mine, "chosen", self._own(policy) if self.dim is None else self.dim)
        forced = mine._forced_gap(policy)
        object.__setattr__(mine, "certified", max(policy.problem.epsilon, forced))  # Alg. 3, line 2
        return mine

    def _own(self, policy: Eliminating) -> int:
        embedding, epsilon = policy.embedding, policy.problem.epsilon
        if self.dimension == "effective":
            return effective_dimension(embedding, epsilon, slack=policy.slack)
        if norm_bound_uninformative(embedding, epsilon):
            return embedding.max_dim
        least = min(2 if embedding.num_distinct > 2 else 1, embedding.max_dim)
        return max(effective_dimension(embedding, epsilon, slack=policy.slack), least)

    def _forced_gap(self, policy: Eliminating) -> float:
        """gamma(d), from the bound 4 (1 + zeta) d >= g(d, zeta) where that is small enough, else from the design."""
        embedded = policy.embedding.at(self.chosen)  # Alg. 3, line 1
        screened = worst_gap(embedded.misspecification, 4.0 * self.chosen, policy.slack)
        if screened <= policy.problem.epsilon:
            return screened
        tau = embedding_design(embedded, tolerance=policy.tolerance).value
        return worst_gap(embedded.misspecification, tau, policy.slack)

    def choose(self, policy: Eliminating, _: int, active: IntArray, /) -> DimensionChoice:
        embedded = policy.embedding.at(self.chosen)  # Alg. 3, line 1
        return DimensionChoice(self.chosen, embedding_design(embedded, active, tolerance=policy.tolerance))  # line 5


@record
class WholeSpace:
    """All features, in every round: the rewards are taken to be exactly linear in them (RAGE)."""

    exact: ClassVar[bool] = True
    certified: ClassVar[float] = 0.0
    chosen: ClassVar[int] = 0

    def bound(self, _: Eliminating, /) -> Self:
        return self

    def choose(self, policy: Eliminating, _: int, active: IntArray, /) -> DimensionChoice:
        dim = policy.embedding.max_dim
        return DimensionChoice(dim, embedding_design(policy.embedding.at(dim), active, tolerance=policy.tolerance))
