"""Algorithm 2's counts and threshold on plain means: what the neural method is without its network."""

import math
from dataclasses import field

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import record
from surepick.designs import independent_design
from surepick.policies.base import Claim, Problem, Spec, Traits
from surepick.policies.paper import neural_elimination

CAVEAT = (
    "Its counts do not come with a guarantee: the verdict will be heuristic. It is a control for neural-embedding; "
    "certified-independent gives a certificate without features."
)


@record
class MeansNeuralRule:
    """Round k measures every active arm equally often, N_k pulls in all, and drops what trails in mean by t_k.

        tau_k = 2 |S_k|,   the design's value for arms without structure, in `NeuralRule.pulls`

    The features are ignored. Printed beside the neural method, it shows how much of that method's advantage is made of
    its constants, and how much of the network.

    Args:
        problem: what is asked.
        constants, slack: as in `NeuralElimination`.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: ours (a control); counts and threshold of Algorithm 2.
    """

    problem: Problem
    constants: str = "paper"
    slack: float = 0.1
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        _ = self.rule

    @property
    def traits(self) -> Traits:
        return Traits(eliminates=True, certifies="nothing", caveats=(CAVEAT,), slack=self.slack)

    @property
    def rule(self) -> neural_elimination.NeuralRule:
        """Counts, threshold and rounds, checked."""
        return neural_elimination.NeuralRule(
            self.problem, self.slack, self.constants, floor="support", misspecification=0.0
        )

    def init(self) -> neural_elimination.NeuralState:
        return neural_elimination.initial_neural_state(self.rule)

    def ask(self, state: neural_elimination.NeuralState) -> Plan:
        num_arms, dim = self.problem.num_arms, len(state.active)
        design = independent_design(num_arms, state.active)
        total = self.rule.pulls(state.round, dim=dim, value=design.value)
        counts = np.zeros(num_arms, np.int64)
        counts[state.active] = math.ceil(total / dim)
        return Plan(
            round=state.round, counts=counts, dim=dim, design_value=design.value, lower_bound=design.lower_bound
        )

    def tell(
        self, state: neural_elimination.NeuralState, plan: Plan, seen: Observations
    ) -> Step[neural_elimination.NeuralState]:
        means, measured = seen.means, seen.counts > 0
        if not measured.all() and measured.any():  # an arm without a mean is neither dropped nor chosen
            means = np.where(measured, means, means[measured].max() - self.rule.threshold(plan.round) / 2.0)
        return neural_elimination.conclude_round(self.rule, state, plan, seen, means)

    def claim(self, state: neural_elimination.NeuralState) -> Claim:
        scores = "here the scores are plain means, and the policy is a control that certifies nothing"
        return neural_elimination.heuristic_claim(self.rule, state, (), scores)
