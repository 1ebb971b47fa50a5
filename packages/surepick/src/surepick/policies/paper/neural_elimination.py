"""Algorithm 2: arm elimination with a trained neural network.

    input   arms X, network f with start theta_0, gradients g, alpha, eps-bar, zeta, epsilon, delta_k = delta / (8 k^2)
     1      S_1 = X
     2      for k = 1, 2, ..., n = max(1, ceil(log2(1/epsilon))):
     3          G = gradients at theta_{k-1} = U diag(e) V',  d_k = min {d : sum of e_i, i > d, at most eps-bar},
                psi(x_i) = (e_1 u_i1, ..., e_d u_id)
     4          lambda_k, tau_k: the design for the differences of S_k
     5          N_k, by `constants`:
                  "box"      4^k d_k (1 + zeta) log(K^2/delta_k)          the paper's box, with A = d_k
                  "paper"    4^k tau_k (1 + zeta) log(K^2/delta_k)        as published: the design's value in place of A
                  "proof"    256 sigma^2 4^k tau_k (1 + zeta) log(K^2/delta_k)     what the proof's inequality needs
                  "derived"  2 sigma^2 (1 + zeta) tau_k log((K - 1)/delta_k)/(t_k - b_k)^2,
                             b_k = gamma (2 + sqrt((1 + zeta) tau_k))     enough for least squares on a fixed embedding
     6, 7       round the design to N_k pulls; pull, and receive rewards
     8          theta_k: f trained on the round's rewards from theta_0, alpha holding it there
     9          x goes when it trails the highest score f(x'; theta_k) by t_k = 2^-k/8 + 3 epsilon/8
    10      end
    output  the arm of highest score in S_{n+1}

"line 5" in a comment is that line. Lines 1, 2, 5, 9 and 10 do not ask where the scores come from: `NeuralRule`,
`initial_state`, `conclude`, `heuristic_claim`. docs/neural-guarantee.md has the proofs, and why none of them reaches a
trained network. torch is loaded by who makes a network, not by this file.
"""

from __future__ import annotations

import math
from dataclasses import field
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Embedding, Plan, Step
from surepick.core.records import FloatArray, IntArray, freeze, frozen, record
from surepick.core.values import check_choice
from surepick.errors import ContractError
from surepick.linalg.rows import equal_rows
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms, compared_with, designed, trace_row
from surepick.policies.dimension import best_found, bias, embedding_design, whole_pulls
from surepick.policies.model_checks import with_failed_checks
from surepick.policies.options import Check, at_least_zero, check_options, one_of, option, positive
from surepick.policies.paper.arm_elimination import FLOORS, rounded_counts

if TYPE_CHECKING:
    from surepick.embeddings.network import ArmNetwork, GradientSpectrum, Network
    from surepick.estimators.network_training import Trained

CONSTANTS = ("box", "paper", "proof", "derived")
WHY_HEURISTIC = {
    "box": "The constants are those of the paper's algorithm, which its own proof does not support",
    "paper": "The constants are those of the published runs, which no theorem supports: with many arms and rewards as "
    "noisy as their gaps the best arm is often thrown away",
    "proof": "The constants are what the paper's proof needs for least squares on an embedding of bounded error",
    "derived": "The constants are enough for least squares on a fixed embedding whose error is at most the declared "
    "one",
}
LEAST_VALUE = 1.0  # of the first design; two arms that are measured equally often have 4
ASSUMPTIONS = ("A network of this kind, trained on the measurements, predicts the mean reward of every candidate.",)
CAVEAT = (
    "Its counts do not come with a guarantee: the verdict will be heuristic. means-neural-rule takes the same counts "
    "without a network; certified-neural gives a certificate."
)


def _declared(misspecification: float, _: int) -> float:
    return misspecification


def _one_of_network(module: str, choices: str) -> Check:
    """A check by the choices of a module that loads torch, which is heavy and an extra."""
    return lambda name, value: check_choice(name, value, getattr(import_module(module), choices))


@record
class NeuralElimination:
    """Round k embeds the arms by the gradients of the network of round k - 1, measures by a design, and trains anew.

    The counts N_k, the threshold t_k and the number of rounds are at the top of this file.

    Args:
        problem: what is asked. The rule takes rewards to be of order 1, and no theorem keeps delta.
        features: X, shape (K, D), finite.
        network: its kind and start, theta_0.
        constants: "box", "paper", "proof" or "derived" (top of this file).
        error_tolerance: eps-bar, what the singular values beyond d_k may add up to.
        tolerance_scale: its unit: "paper", "published" or "relative" (`GradientSpectrum.dimension`).
        trainer: "gauss-newton", "gradient-descent" or "adamw" (`train`).
        regularization: alpha, in pulls; None: the most plausible one for the round's rewards
            (`plausible_regularization`). The published runs took 1 for Bernoulli rewards and 10 for noise of scale 1.
        slack: zeta, what rounding to whole pulls may cost, in (0, 1].
        floor: "support" or "published" (`rounded_counts`).
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
    tolerance_scale: str = option("relative", _one_of_network("surepick.embeddings.network", "SCALES"))
    trainer: str = option("gauss-newton", _one_of_network("surepick.estimators.network_training", "TRAINERS"))
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
        self._arms.check_size()
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
        return initial_neural_state(self.rule)  # line 1

    def ask(self, state: NeuralState) -> Plan:
        rule, k, active = self.rule, state.round, state.active
        arms = self._arms
        spectrum = arms.spectrum(self._trained(arms, state.seen).weights)  # line 3
        dim = max(self._dimension(spectrum), min(2, arms.num_distinct - 1, arms.num_parameters))  # line 3
        embedded = Embedding(spectrum.vectors_of(dim), rule.misspecification)  # line 3
        design = best_found(embedding_design, embedded, active, tolerance=self.tolerance)  # line 4
        total = rule.pulls(k, dim=dim, value=design.value)  # line 5
        counts = rounded_counts(self.floor, design, embedded, active, total, slack=self.slack)  # line 6
        return designed(k, counts, design, embedded)

    def tell(self, state: NeuralState, plan: Plan, seen: Observations) -> Step[NeuralState]:
        arms = self._arms
        scores = self._trained(arms, seen).scores  # line 8
        alarms = self._collapsed(plan, arms, state) if plan.round == 1 else ()
        return conclude_round(self.rule, state, plan, seen, scores, alarms=alarms)  # line 9

    def claim(self, state: NeuralState) -> Claim:
        scores = "here the scores are those of a trained network, whose error nothing bounds"
        return heuristic_claim(self.rule, state, ASSUMPTIONS, scores)

    @property
    def _arms(self) -> ArmNetwork:
        from surepick.embeddings.network import ArmNetwork  # noqa: PLC0415 (torch: heavy, and an extra)

        return ArmNetwork(self.features, self.network)

    def _trained(self, arms: ArmNetwork, seen: Observations) -> Trained:
        from surepick.estimators.network_training import plausible_regularization, train  # noqa: PLC0415 (torch)

        if seen.total == 0:
            return train(arms, seen)
        alpha = self.regularization or plausible_regularization(arms, seen, sigma=self.problem.sigma)
        return train(arms, seen, trainer=self.trainer, regularization=alpha, seed=self.network.seed)

    def _dimension(self, spectrum: GradientSpectrum) -> int:
        return spectrum.dimension(self.error_tolerance, self.tolerance_scale)

    def _collapsed(self, plan: Plan, arms: ArmNetwork, state: NeuralState) -> tuple[str, ...]:
        """Whether eps-bar left next to nothing of the arms: any difference would seem known after a few pulls."""
        wanted = self._dimension(arms.spectrum(self._trained(arms, state.seen).weights))
        value = plan.design_value or 0.0
        if arms.num_distinct <= 2 or (wanted > 1 and value >= LEAST_VALUE):
            return ()
        kept = f"{wanted} dimension{'s' if wanted > 1 else ''}"
        return (
            f"error_tolerance = {self.error_tolerance:g} leaves {kept} of {arms.num_distinct} distinct arms "
            f"(design value {value:.3g} in {plan.dim}): too large to tell them apart",
        )


@record
class NeuralRule:
    """The settings of the rule, checked; their meaning is at the top of this file, the floor is at `rounded_counts`."""

    problem: Problem
    slack: float = option(0.1, options.slack)
    constants: str = option("derived", one_of(*CONSTANTS))
    floor: str = option("support", one_of(*FLOORS))
    misspecification: float = option(0.0, at_least_zero("how far the means may be from the embedding."))

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def num_rounds(self) -> int:
        """n = max(1, ceil(log2(1/epsilon))).  Differs from the paper: base 2, and never 0."""
        return max(1, math.ceil(math.log2(1.0 / self.problem.epsilon)))

    def round_delta(self, round_number: int) -> float:
        """delta_k; all of them together are less than .21 delta."""
        return self.problem.delta / (8.0 * round_number**2)

    def threshold(self, round_number: int) -> float:
        """t_k, in reward units (line 9)."""
        return 2.0**-round_number / 8.0 + 3.0 * self.problem.epsilon / 8.0

    def pulls(self, round_number: int, *, dim: int, value: float) -> int:
        """N_k for d_k and tau_k (line 5); a ContractError where "derived" has no room for the misspecification."""
        k, slack = round_number, self.slack
        if self.constants == "derived":
            return self._derived(round_number, value)
        scaled = 4.0**k * (1.0 + slack) * math.log(self.problem.num_arms**2 / self.round_delta(k))
        scaled *= 256.0 * self.problem.sigma**2 if self.constants == "proof" else 1.0
        return whole_pulls(scaled * (dim if self.constants == "box" else value))

    def _derived(self, round_number: int, value: float) -> int:
        threshold, shift = self.threshold(round_number), bias(self.misspecification, value, self.slack)
        if shift >= threshold:
            raise ContractError(
                f"misspecification can move a difference of two arms by {shift:g}, and round {round_number} must "
                f"resolve {threshold:g}: no number of pulls would help. Raise epsilon, lower error_tolerance, or "
                "declare a smaller valid misspecification."
            )
        log_term = math.log((self.problem.num_arms - 1) / self.round_delta(round_number))
        numerator = 2.0 * self.problem.sigma**2 * (1.0 + self.slack) * value * log_term
        return whole_pulls(numerator / (threshold - shift) ** 2)


@frozen
class NeuralState:
    """Where an elimination by Algorithm 2's rule stands."""

    round: int  # k, the next round, from 1
    active: IntArray  # S_k, indices of the arms not ruled out
    seen: Observations  # what was told in the last round, from which the network's weights are recomputed
    pulls: int  # all that were received
    leader: int  # the active arm of highest score
    finished: str  # why it stopped: "" while it runs, "single", "rounds" or "given"
    alarms: tuple[str, ...] = ()  # what speaks against the embedding so far, in words


def initial_neural_state(rule: NeuralRule) -> NeuralState:
    """All arms active; finished at once where the answer needs no pull."""
    finished, _ = rule.problem.answer_without_pulls()
    num_arms = rule.problem.num_arms
    return NeuralState(1, np.arange(num_arms), Observations.nothing(num_arms), 0, 0, finished)


def conclude_round(
    rule: NeuralRule,
    state: NeuralState,
    plan: Plan,
    seen: Observations,
    scores: FloatArray,
    *,
    alarms: tuple[str, ...] = (),
) -> Step[NeuralState]:
    """Drop what trails, and end after the last round or when one arm is left (lines 9 and 10); a round of which nothing
    came is repeated. Differs from the paper: the answer is the survivor of highest score, not any."""
    active = state.active
    best = float(scores[active].max())
    leader, survivors = state.leader, active
    if seen.total > 0:
        leader = int(active[np.argmax(scores[active])])
        survivors = active[best - scores[active] < rule.threshold(plan.round)]
    finished = ""
    if len(survivors) == 1:
        finished = "single"
    elif plan.round >= rule.num_rounds and seen.total > 0:
        finished = "rounds"
    after = NeuralState(
        round=plan.round + (seen.total > 0 and not finished),
        active=survivors,
        seen=seen if seen.total > 0 else state.seen,
        pulls=state.pulls + seen.total,
        leader=leader,
        finished=finished,
        alarms=with_failed_checks(state.alarms, alarms),
    )
    threshold = rule.threshold(plan.round) if seen.total > 0 else math.inf
    deciding = compared_with(leader, active[active != leader], scores, np.full(len(scores), threshold), 0.0)
    return Step(after, trace_row(plan, after, pulls=seen.total, gap=None, alarms=alarms), deciding)


def heuristic_claim(rule: NeuralRule, state: NeuralState, assumptions: tuple[str, ...], scores: str) -> Claim:
    """What the state entitles to say, `scores` what they are: certain is only what needed no measurement."""
    reason, left = [], len(state.active)
    if state.finished and state.pulls > 0:
        reason = [
            f"{WHY_HEURISTIC[rule.constants]}; {scores}.",
            *(f"The data speak against the embedding: {alarm}." for alarm in state.alarms),
            "One arm is left." if left == 1 else f"{left} arms are left; this one has the highest score of them.",
        ]
    gap = rule.problem.answer_without_pulls()[1] if state.finished and state.pulls == 0 else None
    return Claim(state.leader, state.finished, state.pulls, gap, assumptions=assumptions, reason=" ".join(reason))
