"""Algorithm 2: arm elimination with a trained neural network."""

from __future__ import annotations

from dataclasses import field
from functools import partial

import numpy as np

from surepick.core.arrays import FloatArray, freeze, record
from surepick.core.design import Embedding
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.embeddings.neural.network import SCALES, ArmNetwork, GradientSpectrum, Network
from surepick.estimators.network_training import TRAINERS, Trained, plausible_regularization, train
from surepick.linalg.unique_rows import equal_rows
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms, designed
from surepick.policies.dimension import best_found, embedding_design
from surepick.policies.neural import rule as neural_rule
from surepick.policies.neural.rule import NeuralRule, NeuralState
from surepick.policies.options import check_options, one_of, option, positive
from surepick.policies.round_sizes import rounded

LEAST_VALUE = 1.0  # of the first design; two arms that are measured equally often have 4
ASSUMPTIONS = ("A network of this kind, trained on the measurements, predicts the mean reward of every candidate.",)
CAVEAT = (
    "Its counts do not come with a guarantee: the verdict will be heuristic. means-neural-rule takes the same counts "
    "without a network; certified-neural gives a certificate."
)


def _declared(misspecification: float, _: int) -> float:
    return misspecification


@record
class NeuralElimination:
    """Round k embeds the arms by the gradients of the network of round k - 1, measures by a design, and trains anew.

    The counts N_k, the threshold t_k and the number of rounds are those of `neural_rule.py`.

    Args:
        problem: what is asked. The rule takes rewards to be of order 1, and no theorem keeps delta.
        features: X, shape (K, D), finite.
        network: its kind and start, theta_0.
        constants: "box", "paper", "proof" or "derived" (`neural_rule.py`).
        error_tolerance: eps-bar, what the singular values beyond d_k may add up to.
        tolerance_scale: its unit: "paper", "published" or "relative" (`GradientSpectrum.dimension`).
        trainer: "gauss-newton", "gradient-descent" or "adamw" (`train`).
        regularization: alpha, in pulls; None: the most plausible one for the round's rewards
            (`plausible_regularization`). The published runs took 1 for Bernoulli rewards and 10 for noise of scale 1.
        slack: zeta, what rounding to whole pulls may cost, in (0, 1].
        floor: "support" or "published" (`NeuralRule`).
        misspecification: gamma, for "derived" alone; None: 0.
        tolerance: relative gap of the designs.

    Raises:
        InvalidInput: a setting has no meaning, or the arms have no features.

    Source: Algorithm 2.
    Differs from the paper: the answer is the survivor of highest score; every round trains on its own rewards from
    theta_0, as the paper writes (the published code goes on from the last weights); Gauss-Newton by default, with the
    regularisation that the rewards make most plausible (with a smaller one the network guesses wildly at arms that the
    design leaves out: on MNIST it then loses all best arms in one run of forty); d_k is at
    least 2 where there are more than two distinct arms (with d_k = 1 any two clusters look alike).
    """

    problem: Problem
    features: FloatArray
    network: Network
    constants: str = "derived"
    error_tolerance: float = option(1e-3, positive("what the embedding may leave out."))
    tolerance_scale: str = option("relative", one_of(*SCALES))
    trainer: str = option("gauss-newton", one_of(*TRAINERS))
    regularization: float | None = option(None, options.regularization)
    slack: float = 0.1
    floor: str = "support"
    misspecification: float | None = None
    tolerance: float = option(0.02, options.tolerance)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        freeze(self, features=np.float64)
        check_arms(self.problem, len(self.features))
        ArmNetwork(self.features, self.network).check_size()
        _ = self.rule
        check_options(self)
        object.__setattr__(self, "traits", self._traits())

    def _traits(self) -> Traits:
        equal = len(self.features) - len(equal_rows(self.features).first)
        told = (f"{equal} arms have the features of another: no network tells them apart.",) if equal else ()
        return Traits(
            eliminates=True,
            uses_features=True,
            certifies="nothing",
            assumptions=ASSUMPTIONS,
            caveats=(CAVEAT, *told),
            features=self.features,
            network_depth=self.network.depth,
            slack=self.slack,
            misspecification=partial(_declared, self.misspecification or 0.0),
        )

    @property
    def rule(self) -> NeuralRule:
        """Counts, threshold and rounds, checked."""
        return NeuralRule(self.problem, self.slack, self.constants, self.floor, self.misspecification or 0.0)

    def init(self) -> NeuralState:
        return neural_rule.initial_state(self.rule)  # Alg. 2, line 1

    def ask(self, state: NeuralState) -> Plan:
        rule, k, active = self.rule, state.round, state.active
        arms = ArmNetwork(self.features, self.network)
        spectrum = arms.spectrum(self._trained(arms, state.seen).weights)  # Alg. 2, line 3
        dim = max(self._dimension(spectrum), min(2, arms.num_distinct - 1, arms.num_parameters))  # Alg. 2, line 3
        embedded = Embedding(spectrum.vectors_of(dim), rule.misspecification)  # Alg. 2, line 3
        design = best_found(embedding_design, embedded, active, tolerance=self.tolerance)  # Alg. 2, line 4
        total = rule.pulls(k, dim=dim, value=design.value)  # Alg. 2, line 5
        counts = rounded(self.floor, design, embedded, active, total, slack=self.slack)  # Alg. 2, line 6
        return designed(k, counts, design, embedded)

    def tell(self, state: NeuralState, plan: Plan, seen: Observations) -> Step[NeuralState]:
        arms = ArmNetwork(self.features, self.network)
        scores = self._trained(arms, seen).scores  # Alg. 2, line 8
        alarms = self._collapsed(plan, arms, state) if plan.round == 1 else ()
        return neural_rule.conclude(self.rule, state, plan, seen, scores, alarms=alarms)  # Alg. 2, line 9

    def claim(self, state: NeuralState) -> Claim:
        scores = "here the scores are those of a trained network, whose error nothing bounds"
        return neural_rule.claim(self.rule, state, ASSUMPTIONS, scores)

    def _trained(self, arms: ArmNetwork, seen: Observations) -> Trained:
        if seen.total == 0:
            return train(arms, seen)
        alpha = self.regularization or plausible_regularization(arms, seen, sigma=self.problem.sigma)
        return train(arms, seen, trainer=self.trainer, regularization=alpha, seed=self.network.seed)

    def _dimension(self, spectrum: GradientSpectrum) -> int:
        return spectrum.dimension(self.error_tolerance, self.tolerance_scale)

    def _collapsed(self, plan: Plan, arms: ArmNetwork, state: NeuralState) -> tuple[str, ...]:
        """Whether eps-bar left next to nothing of the arms: with one dimension, or a design value near 0, any
        difference would seem known after a few pulls."""
        wanted = self._dimension(arms.spectrum(self._trained(arms, state.seen).weights))
        value = plan.design_value or 0.0
        if arms.num_distinct <= 2 or (wanted > 1 and value >= LEAST_VALUE):
            return ()
        kept = f"{wanted} dimension{'s' if wanted > 1 else ''}"
        return (
            f"error_tolerance = {self.error_tolerance:g} leaves {kept} of {arms.num_distinct} distinct arms "
            f"(design value {value:.3g} in {plan.dim}): too large to tell them apart",
        )
