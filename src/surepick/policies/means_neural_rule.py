"""Algorithm 2's counts and threshold on plain means: what the neural method is without its network."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from surepick.designs import independent_design
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies import neural_rule
from surepick.policies.neural_rule import NeuralRule, NeuralState
from surepick.policies.protocol import Traits, plain_options
from surepick.records import Certificate, Observations, Plan, Step, record

OPTIONS = ("slack", "gap_bound", "constants")


@record
class MeansNeuralRule:
    """Round k measures every active arm equally often, N_k pulls in all, and drops what trails in mean by t_k.

        tau_k = 2 |S_k|,   the design's value for arms without structure, in `neural_rule.py`'s N_k

    The features are ignored. Printed beside the neural method, it shows how much of that method's advantage is made of
    its constants, and how much of the network.

    Args:
        num_arms: K.
        epsilon, delta, noise, constants, slack, gap_bound: as in `NeuralElimination`.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: ours (a control); counts and threshold of Algorithm 2.
    """

    name: ClassVar[str] = "means-neural-rule"
    state_type: ClassVar[type[Any]] = NeuralState
    stops: ClassVar[str] = "own"
    eliminates: ClassVar[bool] = True
    traits: ClassVar[Traits] = Traits(certifies="nothing")

    num_arms: int
    epsilon: float
    delta: float
    noise: Noise
    constants: str = "paper"
    slack: float = 0.1
    gap_bound: float | None = None
    floor: ClassVar[str] = "support"
    misspecification: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if self.num_arms < 1:
            raise InvalidInput(f"num_arms is {self.num_arms}; something must be chosen among.")
        _ = self.rule

    @property
    def rule(self) -> NeuralRule:
        """Counts, threshold and rounds, checked."""
        return neural_rule.rule_of(self)

    @property
    def assumptions(self) -> tuple[str, ...]:
        return ()

    @property
    def caveats(self) -> tuple[str, ...]:
        return (
            "Its counts do not come with a guarantee: the verdict will be heuristic. It is a control for "
            "neural-embedding; certified-independent gives a certificate without features.",
        )

    @property
    def spec(self) -> dict[str, Any] | None:
        return {"name": self.name, **plain_options(self, OPTIONS)}

    def init(self) -> NeuralState:
        return neural_rule.initial_state(self.rule)

    def stopped(self, state: NeuralState) -> bool:
        return state.finished != ""

    def ask(self, state: NeuralState) -> Plan:
        design = independent_design(self.num_arms, state.active)
        total = self.rule.pulls(state.round, dim=len(state.active), value=design.value)
        counts = np.zeros(self.num_arms, np.int64)
        counts[state.active] = math.ceil(total / len(state.active))
        return Plan(
            round=state.round, counts=counts, dim=len(state.active), value=design.value, lower_bound=design.lower_bound
        )

    def tell(self, state: NeuralState, plan: Plan, seen: Observations) -> Step[NeuralState]:
        means, measured = seen.means, seen.counts > 0
        if not measured.all() and measured.any():  # an arm without a mean is neither dropped nor chosen
            means = np.where(measured, means, means[measured].max() - self.rule.threshold(plan.round) / 2.0)
        return neural_rule.conclude(self.rule, state, plan, seen, means)

    def recommend(self, state: NeuralState) -> int:
        return state.leader

    def certificate(self, state: NeuralState) -> Certificate:
        scores = "here the scores are plain means, and the policy is a control that certifies nothing"
        return neural_rule.certificate(self.rule, state, self.assumptions, scores)
