"""Whether the features say anything, by the results: what `assume="auto"` asks before it steers by them.

A class fits while its log marginal likelihood is near that of the best of all, means that share nothing included. A
study begins as `certified-independent` does. It steers by features once means that share nothing fit worse than some
class, and only where that is predicted to save measurements: so useless features cost next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.assumptions.records import LEVEL, Assumption, Linear, Smooth
from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import FloatArray, IntArray, record
from surepick.embeddings.base import IndependentEmbedding
from surepick.estimators.flows import Weighed
from surepick.estimators.goodness_of_fit import with_least_squares
from surepick.estimators.running_processes import MeanProcesses
from surepick.policies.base import Claim, Problem, Spec, Traits
from surepick.policies.carried.elimination import CarriedElimination
from surepick.policies.sequential.state import SequentialState, start_weights
from surepick.policies.steered.elimination import (
    HEURISTIC_NATS_WORSE,
    HEURISTIC_PULLS_AN_ARM,
    CertifiedReadings,
    PlacedBet,
    SteeredState,
    kernels,
)
from surepick.policies.steered.weights import SCALES

HEURISTIC_FITS = 2.0  # times HEURISTIC_NATS_WORSE, for classes: with few results a plane fits everything
LEAST_LOOKS = 2  # before features steer: with one result a candidate no prediction is worth anything
HEURISTIC_LEFT = 1.0  # of the pulls so far: where less is to come without features, they would save little
HEURISTIC_WORTH = 1.0  # of what no structure is predicted to take: the most that features may be predicted to
HEURISTIC_DEAR = 1.5  # ... after which they are not used any more


@record
class AllClasses(CertifiedReadings):
    """`CertifiedReadings` under each class that the results do not speak against, of all that have a name."""

    assume: str = field(default="", init=False, compare=False, repr=False)

    def _classes(self) -> list[Assumption]:
        return [*kernels(Smooth(), self.features), Linear(), Linear(level=False)]

    def _alive(self, state: SteeredState) -> list[int]:
        return self.fitting(state)[0]

    def fitting(self, state: SteeredState) -> tuple[list[int], str]:
        """(the classes that fit, the widest first; whether means that share nothing "fit" too, or "alone", or "")."""
        found, seen = np.array([one.log_likelihood for one in self._fits(state)]), state.seen
        apart, slack = apart_log_likelihood(seen, *self._guessed_noise(seen)), self._nats_worse(seen)
        best = max(float(found.max()), apart)
        alive = np.flatnonzero(found >= best - HEURISTIC_FITS * slack).tolist()
        return alive or [0], "" if apart < best - slack else "fit" if alive else "alone"


@record
class ChosenState:
    """Where a study stands in which results choose whether features are used."""

    steered: SteeredState  # all results, and what is bet on them that features may read
    apart: SequentialState | None  # the same study where features are not used; None: they are
    most_pulls: float | None = None  # after which they are not used any more; None: no such number is chosen

    @property
    def _used(self) -> SequentialState:
        return self.steered if self.apart is None else self.apart

    @property
    def active(self) -> IntArray:
        """The arms that are still asked about, ascending."""
        return self._used.active

    @property
    def leader(self) -> int:
        """The arm that would be recommended now."""
        return self._used.leader

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.steered.pulls


@record
class CertifiedByChoice:
    """Certify one candidate under each class that the results do not speak against, or without features.

    The study is that of `certified-independent` until results say that features help, from then on that of
    `CertifiedReadings` under all classes that fit; and again the former, its processes anew at their price (line 13),
    where means that share nothing fit after all, or features turn out dear. Evidence of the first part is carried on.

    Args:
        problem: what is asked; the noise has a known scale.
        features: of the arms, shape (K, D).
        assume: "auto".
        trust: as of `CertifiedReadings`.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: docs/certified-elimination.md, lines 13 and 38 to 43; ours.
    """

    problem: Problem
    features: FloatArray
    assume: str = "auto"
    trust: str | float = "roughly"
    by_features: AllClasses = field(init=False, compare=False, repr=False)
    plain: CarriedElimination = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_features", AllClasses(self.problem, self.features, self.trust))
        plain = CarriedElimination(self.problem, IndependentEmbedding(self.problem.num_arms))
        object.__setattr__(self, "plain", plain)

    @property
    def traits(self) -> Traits:
        return Traits(uses_features=True, certifies="candidate", judges_parts=True, corrects=True, weigh=self.weigh)

    def init(self) -> ChosenState:
        return ChosenState(self.by_features.init(), self.plain.init())

    def ask(self, state: ChosenState) -> Plan:
        return self.by_features.ask(state.steered) if state.apart is None else self.plain.ask(state.apart)

    def weigh(self, state: ChosenState, plan: Plan, seen: Observations) -> Weighed | None:
        """What `tell` makes of a batch, with the weights of its pulls; None where it has none."""
        if state.apart is None:
            return self.by_features.weigh(state.steered, plan, seen)
        return self.plain.weigh(state.apart, plan, seen)

    def claim(self, state: ChosenState) -> Claim:
        return self.by_features.claim(state.steered) if state.apart is None else self.plain.claim(state.apart)

    def tell(self, state: ChosenState, plan: Plan, seen: Observations) -> Step[Any]:
        if state.apart is not None:
            return self._told_apart(state, state.apart, plan, seen)
        step = self.by_features.tell(state.steered, plan, seen)
        after = replace(state, steered=step.state)
        apart = self._given_up(after)
        if apart is None:
            return replace(step, state=after)
        nothing = replace(step.state, told=(), standing=(), beaten=apart.beaten)
        after = replace(after, steered=nothing, apart=apart)
        return Step(after, self.plain._step(apart, plan, seen).record, None)

    def _told_apart(self, state: ChosenState, apart: SequentialState, plan: Plan, seen: Observations) -> Step[Any]:
        weighed, step = self.plain.weigh(apart, plan, seen), self.plain.tell(apart, plan, seen)
        told: tuple[PlacedBet, ...] = ()
        if weighed is not None and plan.candidate is None and not weighed.level:  # in its opening
            placed = PlacedBet(weighed.batch, weighed.starts, weighed.log_values, seen.means)
            told = (*state.steered.told, placed)
        pooled = state.steered.seen.plus(with_least_squares(seen))
        known = replace(state.steered, round=step.state.round, seen=pooled, told=told, beaten=step.state.beaten)
        after = replace(state, steered=known, apart=step.state)
        steered = self._begun(known, step.state) if told and not step.state.finished else None
        if steered is None:
            return replace(step, state=after)
        return Step(steered, self.by_features._step(steered.steered, plan, seen).record, None)

    def _begun(self, known: SteeredState, apart: SequentialState) -> ChosenState | None:
        """The state from which features steer; None while they say too little, or would save little."""
        policy, most = self.by_features, self._predicted(apart)
        fits, (alive, shares_nothing) = policy._fits(known), policy.fitting(known)
        if shares_nothing or len(known.told) < LEAST_LOOKS or most < HEURISTIC_LEFT * known.pulls:
            return None
        best = max(alive, key=lambda one: fits[one].log_likelihood)
        if fits[0].log_likelihood > fits[best].log_likelihood - min(HEURISTIC_NATS_WORSE):
            return None  # the widest class is next to none: it may stop to fit soon
        leader = int(np.argmax(fits[best].means))
        leaders = (*known.leaders, leader)
        held = tuple(policy._read(known, leaders, one, whole=False) for one in alive)
        steered = replace(known, leader=leader, leaders=leaders, standing=held)
        likely = replace(steered, standing=tuple(one for one in held if one.number == best))  # wider ones die out
        worth = float(policy._design(likely, leader)[0].sum()) <= HEURISTIC_WORTH * most
        return ChosenState(steered, None, known.pulls + most) if worth else None

    def _given_up(self, state: ChosenState) -> SequentialState | None:
        """The study from where features are not used any more; None while they are."""
        policy, after, problem = self.by_features, state.steered, self.problem
        shares_nothing = policy.fitting(after)[1]
        stands = max(one.gap for one in after.standing) <= problem.epsilon
        doubted = shares_nothing == "alone" or (shares_nothing != "" and stands)
        if stands and not doubted:
            return None
        apart = fallen_back(self.plain, after.round, after.seen, policy._starts(after)[0] + 1)
        if not doubted and after.pulls >= HEURISTIC_PULLS_AN_ARM * problem.num_arms:
            wanted = float(policy._design(after, after.leader)[0].sum())
            doubted = wanted > HEURISTIC_DEAR * self._predicted(apart)
        doubted |= state.most_pulls is not None and after.pulls > state.most_pulls
        return apart if doubted else None

    def _predicted(self, apart: SequentialState) -> float:
        """Pulls that certifying the leader is predicted to take without features; infinite while nothing is told."""
        if not apart.begun:
            return math.inf
        planner = self.plain._planner
        return planner.rest(apart, planner.situation.guess(apart.processes, apart.seen)).num_pulls


def apart_log_likelihood(seen: Observations, sigma: FloatArray, size: float) -> float:
    """The largest log marginal likelihood of means that share a level alone: h ~ N(b, tau^2), b ~ N(0, (100 tau)^2).

    Args: as of `fitted`.
    """
    measured = np.flatnonzero(seen.counts)
    means, noise = seen.means[measured], sigma[measured] ** 2 / seen.counts[measured]
    scales = (SCALES * max(float(np.ptp(means)), size))[:, None] ** 2
    variances = noise + scales
    precision, level = np.sum(1.0 / variances, axis=1), LEVEL**2 * scales[:, 0]
    towards, grown = np.sum(means / variances, axis=1), 1.0 + level * precision
    fit = np.sum(means**2 / variances + np.log(variances), axis=1) + np.log(grown)
    return float(-0.5 * np.min(fit - level * towards**2 / grown))


def fallen_back(plain: CarriedElimination, round_number: int, seen: Observations, starts: IntArray) -> SequentialState:
    """A study without features that knows these results and has no evidence: all processes start anew (line 13)."""
    state: SequentialState = plain.init()
    fresh = MeanProcesses(start_weights(starts), starts, np.zeros(len(starts)), ())
    whole = Observations(seen.counts, seen.sums)
    return replace(state, round=round_number, seen=whole, means=fresh, dim=len(starts))
