"""Arm elimination with an embedding: Algorithm 1 (adaptive), Algorithm 3 (fixed), and RAGE (Fiez et al. 2019)."""

from __future__ import annotations

import math
from dataclasses import field, replace
from functools import partial

import numpy as np

from surepick.core.arrays import record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.embeddings import ArmEmbedding
from surepick.estimators import estimate, noise_multiplier
from surepick.policies import model_checks, options
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms
from surepick.policies.dimension import bias
from surepick.policies.elimination import rounds
from surepick.policies.elimination.dimension_rules import DimensionRule
from surepick.policies.elimination.rounds import EliminationState, RoundSettings
from surepick.policies.elimination.rule import compare
from surepick.policies.options import check_options, option


@record
class ArmElimination:
    """Round k embeds the arms in d_k dimensions, measures an optimal design there, and rules out the arms that cannot
    be the best.

        t_k   = R 2^-k                                         R = gap_bound / 2
        eps_k = gamma-tilde(d_k) (2 + sqrt((1 + zeta) tau_k))
        N_k   = ceil(2 sigma^2 (1 + zeta) tau_k L_k / (t_k - eps_k)^2)
        omega_k(y) = 2 gamma-tilde + ||y||_{A_k^-1} (gamma-tilde sqrt(N_k) + sigma sqrt(2 L_k))
        x goes when some x' in S_k has a strictly higher score and leads by at least omega_k(psi(x') - psi(x))

    It stops as soon as the realised widths certify that the leader is epsilon-best, and recommends the highest score.
    With probability at least 1 - delta the answer is epsilon-best (docs/elimination.md has the proof). The data are
    checked against the embedding at every look (`policies/model_checks.py`): a failed check makes it heuristic.

    Args:
        problem: what is asked. Its gap_bound (or high - low of bounded rewards) sets the scale of the rounds; without
            one they start at 2, the paper's, or 2 epsilon. The guarantee does not depend on it, unless it is at most
            epsilon: then every arm is epsilon-best at once. The largest scale of all arms' noise is used.
        embedding: the family psi_d with its misspecification bound.
        rule: how d_k is chosen: `AdaptiveDimension`, `FixedDimension` or `WholeSpace`.
        slack, schedule, union, looks, floor, stopping: as in `RoundSettings`.
        tolerance: relative gap of the designs.
        reserve: the share of a round's pulls, in [0, 1), that is added on arms spread over the set, so that a lack of
            fit can show; none where every list of means is representable, and none for RAGE.
        spec: plain data from which `make_policy` makes it again; None where it was made by hand.

    Raises:
        InvalidInput: a setting has no meaning.
        ContractError: misspecification leaves no room (`DimensionRule.bound`).

    Source: Algorithms 1 and 3; Fiez et al. (2019), Algorithm 1, whose delta / k^2 and 2 K^2 events are schedule "paper"
    and union "rage": with R = sigma = 1 its N_k is 8 * 4^(k-1) (1 + zeta) tau_k log(2 K^2 / delta_k).
    Differs from the paper: see docs/paper-map.md; `paper_settings("linear-embedding")` gives its literal choices.
    Differs from RAGE: an epsilon-stop by default; strictly higher score to rule out an arm (in the published code equal
    arms rule out one another); a range check in place of the pseudo-inverse.
    """

    problem: Problem
    embedding: ArmEmbedding
    rule: DimensionRule
    slack: float = 0.1
    schedule: str = "convergent"
    union: str = "best-pairs"
    looks: int = 8
    floor: str = "support"
    stopping: str = "certified"
    tolerance: float = option(0.01, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    rounds: RoundSettings = field(init=False, compare=False, repr=False)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_arms(self.problem, self.embedding.num_arms)
        check_options(self)
        self._set_rounds(self.problem.epsilon)
        object.__setattr__(self, "rule", self.rule.bound(self))
        self._set_rounds(max(self.problem.epsilon, self.rule.certified))
        object.__setattr__(self, "traits", self._traits())

    def _set_rounds(self, epsilon: float) -> None:
        names = ("slack", "schedule", "union", "looks", "floor", "stopping")
        asked = replace(self.problem, epsilon=epsilon)
        object.__setattr__(self, "rounds", RoundSettings(asked, *(getattr(self, name) for name in names)))

    def _traits(self) -> Traits:
        embedding, own = self.embedding, self.embedding.traits
        caveat = (
            f"In {self.rule.chosen} dimensions misspecification can force a shortfall of {self.rule.certified:g}; "
            f"that is what will be certified, not epsilon = {self.problem.epsilon:g}."
        )
        return Traits(
            eliminates=True,
            uses_features=own.family != "independent",
            assumptions=own.assumptions,
            checks=(model_checks.LINEAR,) if self.rule.exact else model_checks.checks_of(embedding),
            caveats=(*own.caveats, caveat) if self._promises_less else own.caveats,
            embedding=None if self.rule.exact else embedding,
            features=embedding.at(embedding.max_dim).features if self.rule.exact else None,
            rounds=self.rounds,
            most_rounds=self.rounds.num_rounds,
            slack=self.slack,
            misspecification=embedding.misspecification,
        )

    @property
    def _promises_less(self) -> bool:
        return self.rule.certified > self.problem.epsilon

    @property
    def bias_slack(self) -> float:
        """zeta', so that N ||y||^2 <= (1 + zeta') tau also with the reserved pulls, which raise N but not the norm."""
        return (1.0 + self.slack) * (1.0 + self.reserve) - 1.0

    def init(self) -> EliminationState:
        return rounds.initial_state(self.rounds)  # Alg. 1, line 1

    def ask(self, state: EliminationState) -> Plan:
        if state.opened is not None:
            return rounds.next_look(state.opened)
        k, active = state.round, state.active
        choice = self.rule.choose(self, k, active)  # Alg. 1, lines 3 and 5: d_k, lambda_k, tau_k
        embedded, tau = self.embedding.at(choice.dim), choice.design.value  # Alg. 1, line 4
        eps_k = bias(embedded.misspecification, tau, self.bias_slack)  # Alg. 1, line 6
        total = rounds.round_size(self.rounds, k, value=tau, bias=eps_k, num_active=len(active))  # Alg. 1, line 6
        checkable = partial(model_checks.with_check_pulls, self.embedding, choice.dim, share=self.reserve)
        return rounds.open_round(  # Alg. 1, line 7
            self.rounds,
            state,
            embedded=embedded,
            design=choice.design,
            total=total,
            checkable=np.copy if self.rule.exact else checkable,
        )

    def tell(self, state: EliminationState, plan: Plan, seen: Observations) -> Step[EliminationState]:
        sigma, active = self.problem.sigma, state.active
        pooled = state.seen.plus(seen)  # Alg. 1, line 8
        embedded = self.embedding.at(plan.dim)
        fitted = estimate(embedded, pooled, reference=int(active[0]))  # Alg. 1, line 9
        gamma, log_term = embedded.misspecification, self.rounds.log_term(plan.round, len(active))
        spread = gamma * math.sqrt(pooled.total) + noise_multiplier(sigma, log_term)
        comparison = compare(fitted, active, offset=2.0 * gamma, multiplier=spread)  # Alg. 1, line 10
        compressed = self.rule.exact or not model_checks.is_saturated(self.embedding, plan.dim)
        alarms = model_checks.failed_checks(self.embedding, plan, pooled, fitted, self.problem)
        return rounds.conclude(self.rounds, state, plan, seen, comparison, compressed=compressed, alarms=alarms)

    def claim(self, state: EliminationState) -> Claim:
        return rounds.claim(
            self.rounds,
            state,
            assumptions=model_checks.active_assumptions(self.embedding, state.pulls, state.compressed),
            why_heuristic=model_checks.why_not_certified(self.embedding, state.alarms, state.compressed),
            remark=self._remark,
            epsilon=self.rounds.epsilon,
        )

    def _remark(self) -> str:
        if not self._promises_less:
            return ""
        promised = f"{self.rule.chosen} dimensions can promise {self.rule.certified:.4g} only."
        return f"{self.problem.epsilon:g} was asked, but {promised}"
