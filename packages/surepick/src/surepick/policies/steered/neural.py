"""Certified elimination under a class of means that a network learns: linear in its gradients, up to what is declared.

A class may depend on all results, so one that was learnt may be read (docs/certified-elimination.md, line 38); what
processes bet on a batch may not depend on it. So the network is trained on what was told before, and evidence is never
thrown away: the flows of all batches are read under the class that was learnt last (docs/neural-guarantee.md, part 5).
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.assumptions.reading import class_in_words
from surepick.assumptions.records import LEVEL, Assumption, Linear, Near
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, Plan
from surepick.core.records import FloatArray, freeze, record
from surepick.embeddings.network import ArmNetwork, Network
from surepick.estimators import estimate
from surepick.estimators.network_training import plausible_regularization, train
from surepick.linalg.factorisations import thin_svd
from surepick.policies import options
from surepick.policies.base import Traits, check_arms, delta_for_test
from surepick.policies.model_checks import FITTED, misfit, why_heuristic
from surepick.policies.options import at_least_zero, check_options, one_of, option, whole
from surepick.policies.steered.elimination import CertifiedReadings, SteeredState
from surepick.policies.steered.weights import Fit, Steered, design_for, fitted

VECTORS = ("gradient", "last-layer")
ENERGY_LEFT = 1e-3  # of the squares of the gradients; the usual dimension leaves out at most this
LEAST_DIRECTION = 1e-6  # of the largest singular value; below it is rounding
HEURISTIC_LARGEST_SHARE = 8  # arms for each dimension, at least; with fewer the features save little
HEURISTIC_LESSONS = 2.0  # times the pulls of the last lesson: then the network learns anew
HEURISTIC_PART_LEARNT = 0.3  # as HEURISTIC_PART: the class changes meanwhile, so that batches are few
HEURISTIC_UNDECLARED = 0.5  # of epsilon: how far means may be off the class where nobody said it
HEURISTIC_NATS_BETTER = 4.0  # of log likelihood, by which arms that share nothing must be likelier than the class
HEURISTIC_LOOK_PULLS = 0.24  # times s^2 / epsilon^2: pulls of each arm where the network knows too little
PATIENCE = 2  # rounds before that is said
ROUNDED_AWAY = 0.25  # of a pull: plans have whole ones
UNDECLARED = (
    "No bound on how far means are off what the network learns was declared (misspecification=...), so half of epsilon "
    "was assumed: nothing guarantees it."
)


@record
class NeuralState(SteeredState):
    """A `SteeredState` with what the network was taught."""

    lesson: Observations | None = None  # everything that was told before the network learnt last


@record
class CertifiedNeural(CertifiedReadings):
    """Certify one candidate under "means are nearly linear in what the network has learnt".

        Z = (e_1 u_1, ..., e_d u_d), of mean square length 1,     G = U diag(e) V' the gradients of the trained network
        D = u F_j - 1{c} + 1{j},    U_j = lack u + C sqrt(|Z'D|^2 + (100 u sum F_j)^2) + gamma |D|_1,    u >= 0
        recommend c when every U_j is at most epsilon, or j is not the best, under the class with norm C up to gamma

    The network learns anew each time that the pulls have doubled. The Z of before a batch steers what is measured and
    bet, the last one is read; C is 1.5 times the norm that results suggest. Where arms that share nothing are much
    likelier than the class, and a look at everybody costs less than what is predicted, all arms are measured.

    Args:
        problem: what is asked; the noise has a known scale.
        features: X, shape (K, D), finite.
        network: its kind and start.
        misspecification: gamma, in reward units: how far the mean of an arm may be off a linear function of the last Z.
            None: not known; half of epsilon is assumed, and the verdict is heuristic.
        dim: d; None: what leaves out 1/1000 of the squared gradients, at most K/8.
        vectors: "gradient"; or "last-layer": G has the outputs of the last hidden layer.
        regularization: alpha of the training, in pulls; None: the most plausible one (`plausible_regularization`).

    Raises:
        InvalidInput: a setting has no meaning, or the arms have no features.

    Source: docs/certified-elimination.md, lines 38 to 43; ours.
    """

    assume: str = field(default="linear", init=False, compare=False, repr=False)
    trust: str | float = field(default="exact", init=False, compare=False, repr=False)
    network: Network = field(default_factory=Network)
    misspecification: float | None = option(None, at_least_zero("how far means may be off what the network learns."))
    dim: int | None = option(None, whole("directions of the network that are kept."))
    vectors: str = option("gradient", one_of(*VECTORS))
    regularization: float | None = option(None, options.regularization)

    def __post_init__(self) -> None:
        freeze(self, features=np.float64)
        check_arms(self.problem, len(self.features))
        ArmNetwork(self.features, self.network).check_size()
        check_options(self)
        delta_for_test(self.problem)

    @property
    def gamma(self) -> float:
        """How far means may be off the class, in reward units."""
        return HEURISTIC_UNDECLARED * self.problem.epsilon if self.misspecification is None else self.misspecification

    @property
    def named(self) -> tuple[Assumption, ...]:
        """The class, of what the network learnt, up to `gamma`."""
        return (Near(Linear(), self.gamma) if self.gamma > 0.0 else Linear(),)

    @property
    def traits(self) -> Traits:
        undeclared = self.misspecification is None
        return Traits(
            uses_features=True,
            certifies="candidate",
            checks=() if undeclared else (FITTED,),
            caveats=(UNDECLARED.replace("was ", "is "),) if undeclared else (),
            features=self.features,
            network_depth=self.network.depth,
            judges_parts=True,
            corrects=True,
            weigh=self.weigh,
        )

    def init(self) -> NeuralState:
        start = CertifiedReadings.init(self)
        return NeuralState(start.round, start.seen, start.lists, start.beaten, start.finished, lesson=start.seen)

    def ask(self, state: SteeredState) -> Plan:
        unseen = state.seen.counts == 0
        if state.round > PATIENCE and unseen.any() and self._knows_too_little(state):
            ratio = self.problem.sigma / self.problem.epsilon
            counts = np.where(unseen, max(1, math.ceil(HEURISTIC_LOOK_PULLS * ratio**2)), 0)
            predicted = float(self._design(state, state.leader)[0].sum())
            if predicted > counts.sum():
                return Plan(state.round, counts, predicted_pulls=predicted, candidate=state.leader)
        return CertifiedReadings.ask(self, state)

    def decide(self, state: SteeredState, after: SteeredState, plan: Plan) -> SteeredState:
        assert isinstance(after, NeuralState)
        if after.lesson is None or after.seen.total >= HEURISTIC_LESSONS * after.lesson.total:
            after = replace(after, lesson=after.seen)
        return CertifiedReadings.decide(self, state, after, plan)

    def failed_checks(self, state: SteeredState, plan: Plan, seen: Observations) -> tuple[str, ...]:
        if self.misspecification is None or seen.total == 0:
            return ()
        vectors = np.column_stack([np.ones(len(self.features)), self._features(state)])
        fit = estimate(Embedding(vectors, self.misspecification), seen)
        return misfit(replace(plan, misspecification=self.misspecification), seen, fit, self.problem)

    def learn(self, seen: Observations) -> FloatArray:
        """Z, (K, d), from these results and the seed alone."""
        arms = ArmNetwork(self.features, self.network)
        weights = arms.start
        if seen.total > 0:
            offset = float(seen.sums.sum()) / seen.total
            centred = Observations(seen.counts, seen.sums - offset * seen.counts)
            alpha = self.regularization or plausible_regularization(arms, centred, sigma=self.problem.sigma)
            weights = train(arms, centred, regularization=alpha).weights
        if self.vectors == "gradient":
            spectrum = arms.spectrum(weights)
            left, values = spectrum.vectors, spectrum.values
        else:
            left, values, _ = thin_svd(arms.last_layer(weights))
        tails = np.append(np.cumsum((values**2)[::-1])[::-1], 0.0)
        usual = min(int(np.argmax(tails <= ENERGY_LEFT * tails[0])), arms.num_arms // HEURISTIC_LARGEST_SHARE)
        kept = values[: self.dim or max(usual, 1)]
        kept = kept[: max(int(np.count_nonzero(kept > LEAST_DIRECTION * values[0])), 1)]
        vectors = left[:, : len(kept)] * kept
        length = math.sqrt(float(np.mean(np.sum(vectors**2, axis=1))))
        return np.asarray(vectors / (length or 1.0))

    def _features(self, state: SteeredState) -> FloatArray:
        """Z of the last lesson."""
        assert isinstance(state, NeuralState)
        lesson = state.seen if state.lesson is None else state.lesson
        return self._cache.last("learnt", lesson, lambda: self.learn(lesson), most=2)

    @property
    def _part(self) -> float:
        return HEURISTIC_PART_LEARNT

    def _wanted(self, steered: Steered) -> FloatArray:
        return in_whole_pulls(steered, design_for(steered))

    def _fits(self, state: SteeredState) -> list[Fit]:
        """The most likely means in the class, or of arms that share nothing where these are much likelier."""
        fit, alone = self._both_fits(state)
        return [alone if self._knows_too_little(state) else fit]

    def _knows_too_little(self, state: SteeredState) -> bool:
        fit, alone = self._both_fits(state)
        return alone.log_likelihood > fit.log_likelihood + HEURISTIC_NATS_BETTER

    def _both_fits(self, state: SteeredState) -> tuple[Fit, Fit]:
        """In the class, and of arms that share nothing but a level."""

        def form() -> tuple[Fit, Fit]:
            problem, seen = self.problem, state.seen
            (sigma, size), level = self._guessed_noise(seen), np.full((problem.num_arms, 1), LEVEL)
            spread = max(float(np.ptp(seen.means[seen.counts > 0])), problem.epsilon)
            return CertifiedReadings._fits(self, state)[0], fitted(level, seen, sigma, spread, size)

        return self._cache.of("both", state.seen, None, form)

    def _in_words(self, state: SteeredState, assumption: Assumption, data: str) -> str:
        assert isinstance(state, NeuralState)
        pulls = 0 if state.lesson is None else state.lesson.total
        learnt = f"what the network learnt from the first {pulls:,} measurements"
        return class_in_words(assumption, data).replace("the features", learnt)

    def _answer(self, state: SteeredState) -> dict[str, Any]:
        unbacked = UNDECLARED if self.misspecification is None else ""
        return CertifiedReadings._answer(self, state) | {"why_heuristic": why_heuristic(state.alarms, unbacked)}


def in_whole_pulls(steered: Steered, wanted: FloatArray) -> FloatArray:
    """Whole pulls of the fewest arms, those of which most is wanted, that are predicted to be enough; shape (K,)."""
    order = np.argsort(-wanted, kind="stable")
    whole_pulls = np.maximum(np.ceil(wanted - ROUNDED_AWAY), 1.0)

    def of(number: int) -> FloatArray:
        found = np.zeros(len(wanted))
        found[order[:number]] = whole_pulls[order[:number]]
        return found

    def enough(number: int) -> bool:
        return bool(steered.planned(of(number))[1].min() >= 0.0)

    low, high = 0, 1
    while high < len(order) and not enough(high):
        low, high = high, 2 * high
    high = min(high, len(order))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return of(high) if enough(high) else np.maximum(of(high), wanted)
