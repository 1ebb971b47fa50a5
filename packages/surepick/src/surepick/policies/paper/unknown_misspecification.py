"""Algorithm 4: arm elimination with a fixed embedding of unknown misspecification. Never certifies, never stops.

    input   arms X, error probability delta, dimension d, rounding slack zeta
     1, 2   psi = psi_d, S_1 = X
     3      for k = 1, 2, ...:
     4          delta_k = delta / (k (k + 1))
     5          lambda_k, tau_k: the design for the differences of S_k
     6          N_k = ceil(8 sigma^2 (1 + zeta) tau_k L_k / t_k^2),   t_k = R 2^-k
     7, 8       round the design to N_k pulls; pull, and receive rewards
     9          theta_k = A_k^-1 b_k
    10          recommend the highest score; x goes when it trails that by t_k

The rounds, delta_k, L_k and the rounding are those of Algorithm 1 (`arm_elimination.py`), with one look a round and no
last round. "line 5" in a comment is that line.
"""

import math
from dataclasses import field, replace

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Embedding, Plan, Step
from surepick.core.records import FloatArray, IntArray, record
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.estimators import Estimate, estimate
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms, designed
from surepick.policies.dimension import embedding_design, whole_pulls
from surepick.policies.paper import arm_elimination

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
        problem: what is asked; its epsilon is only reported, nothing stops by it.
        embedding: the family psi_d; its misspecification bound is not used.
        slack, schedule, union, floor, tolerance: as in `ArmElimination`.
        dim: d; None: the largest dimension.

    Raises:
        InvalidInput: a setting has no meaning, or the embedding has no dimension `dim`.

    Source: Algorithm 4.
    Differs from the paper: scaled by R and sigma; the first recommendation is arm 0, not a random one; delta_k and the
    union default to the valid spending of `ArmElimination`.
    """

    problem: Problem
    embedding: ArmEmbedding
    slack: float = 0.1
    schedule: str = "convergent"
    union: str = "best-pairs"
    floor: str = "support"
    dim: int | None = None
    tolerance: float = 0.01
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_arms(self.problem, self.embedding.num_arms)
        self.embedding.at(self._dim)
        if self.schedule == "uniform":
            raise InvalidInput("schedule 'uniform' needs a last round, and this policy has none; use 'convergent'.")
        _ = self.rounds

    @property
    def _dim(self) -> int:
        return self.embedding.max_dim if self.dim is None else self.dim

    @property
    def _embedded(self) -> Embedding:
        """psi_d without its declared misspecification, which plays no part."""
        return Embedding(self.embedding.at(self._dim).features, 0.0)

    @property
    def rounds(self) -> arm_elimination.RoundSettings:
        """The part of the configuration that all algorithms with rounds share, checked."""
        return arm_elimination.RoundSettings(
            self.problem, self.slack, self.schedule, self.union, 1, self.floor, "rounds"
        )

    @property
    def traits(self) -> Traits:
        return Traits(
            stops="never",
            eliminates=True,
            uses_features=True,
            certifies="nothing",
            assumptions=("The mean reward is nearly linear in the embedding; how nearly is not known.",),
            caveats=(UNKNOWN,),
            embedding=self.embedding,
            rounds=self.rounds,
            most_rounds=self.rounds.num_rounds,
            slack=self.slack,
        )

    def init(self) -> arm_elimination.EliminationState:
        state = arm_elimination.initial_rounds(self.rounds)  # lines 1 and 2
        return state if state.finished == "single" else replace(state, finished="", gap=None)

    def ask(self, state: arm_elimination.EliminationState) -> Plan:
        settings, k, active = self.rounds, state.round, state.active
        embedded = self._embedded  # line 1
        design = embedding_design(embedded, active, tolerance=self.tolerance)  # line 5
        scale = 8.0 * self.problem.sigma**2 * (1.0 + self.slack) * design.value  # line 6
        total = whole_pulls(scale * settings.log_term(k, len(active)) / self._threshold(k) ** 2)  # lines 4 and 6
        counts = arm_elimination.rounded_counts(self.floor, design, embedded, active, total, slack=self.slack)  # line 7
        return settings.first_look(designed(k, counts, design, embedded))

    def tell(
        self, state: arm_elimination.EliminationState, plan: Plan, seen: Observations
    ) -> Step[arm_elimination.EliminationState]:
        fitted = estimate(self._embedded, seen, reference=int(state.active[0]))  # lines 8 and 9
        comparison = _trailing(fitted, state.active, self._threshold(plan.round))  # line 10
        step = arm_elimination.conclude(self.rounds, state, plan, seen, comparison)
        row = replace(step.record, certified_gap=None)  # nothing is ever proved
        on = step.state.finished == "rounds"
        state = replace(step.state, finished="", round=plan.round + 1) if on else step.state
        return Step(state, row, step.deciding)

    def claim(self, state: arm_elimination.EliminationState) -> Claim:
        if self.problem.num_arms == 1:
            return Claim(state.leader, state.finished, state.pulls, state.gap, self.rounds.spent)
        return Claim(state.leader, state.finished, state.pulls, assumptions=self.traits.assumptions, reason=UNKNOWN)

    def _threshold(self, round_number: int) -> float:
        """t_k = R 2^-k, without a last round."""
        return self.rounds.radius * 2.0**-round_number


def _trailing(fitted: Estimate, active: IntArray, threshold: float) -> arm_elimination.Comparison:
    """The arms that trail the leader by less than the threshold; those that cannot be compared stay."""
    comparable = fitted.comparable[active]
    scores = np.where(comparable, fitted.scores[active], -np.inf)
    leader = int(active[np.argmax(scores)])
    trailing = comparable & (scores.max() - scores >= threshold)

    def leading(rivals: IntArray, arms: IntArray) -> tuple[FloatArray, FloatArray]:
        leads = np.where(fitted.comparable[arms], fitted.scores[rivals][:, None] - fitted.scores[arms], -np.inf)
        return leads, np.full_like(leads, threshold)

    return arm_elimination.Comparison(active[~trailing], leader, math.inf, leading)
