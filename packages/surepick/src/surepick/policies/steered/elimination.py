"""Certified elimination under a class of means that is named without a number: measure so that its reading is strong.

The evidence contains no assumption about the means (docs/certified-elimination.md, lines 38 to 43). So it is carried on
as it is, and after each batch it is read under the named class with the norm that results suggest, and a margin.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.assumptions.likely_norm import noise_scale, with_likely_norm
from surepick.assumptions.reading import Question, class_in_words, compared, largest_of
from surepick.assumptions.records import LEVEL, Assumption, Linear, Near, Smooth, balls, mapped, settled
from surepick.assumptions.texts import parse_assumption
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.core.records import BoolArray, FloatArray, IntArray, freeze, record
from surepick.core.values import not_negative
from surepick.embeddings.kernel_functions import GaussianKernel
from surepick.errors import InvalidInput
from surepick.estimators.flows import ArmFlows, BatchWeights, FlowLedger, Told, Weighed, flows_of
from surepick.estimators.goodness_of_fit import with_least_squares
from surepick.policies import tuning
from surepick.policies.base import Claim, Traits, check_arms, threshold_of
from surepick.policies.sequential.engine import SequentialTest
from surepick.policies.sequential.state import SequentialState, start_weights
from surepick.policies.steered.weights import Fit, Steered, design_for, fitted, opening, spread_pulls
from surepick.text import quoted

HEURISTIC_OPENING = 12  # pulls
HEURISTIC_OPENING_NOISE = 1.0  # variance of a result in units of that of the means, as the opening sees it
HEURISTIC_WHOLE = 0.2  # of what was spent: where no more is left, it is measured at once
HEURISTIC_PART = 0.2  # of what is left, or was spent: a batch before the last has no more
HEURISTIC_LEAST_PART = 0.04  # of what was spent: no batch has less
HEURISTIC_MORE_PULLS = 8  # pulls more than that
HEURISTIC_NATS_WORSE = (4.0, 2.5)  # of log likelihood, than the best, that a class may be; where pulls are many
HEURISTIC_PULLS_AN_ARM = 4  # pulls an arm, all together
DIRECTIONS = 100  # of a kernel, that are steered for; readings have all
HEURISTIC_LENGTHS = (0.35, 0.7, 1.4, 2.8)  # of kernels, in units of the median distance of two arms


def kernels(found: Smooth, features: FloatArray) -> list[Assumption]:
    """The class with Gaussian kernels of several lengths, the widest first."""
    usual = found.of(features)
    assert isinstance(usual, GaussianKernel)
    return [replace(found, kernel=_with_length(usual.gamma / factor**2)) for factor in HEURISTIC_LENGTHS]


def _with_length(gamma: float) -> GaussianKernel:
    """A kernel of about this gamma, with a length of three digits."""
    return GaussianKernel(0.5 / float(f"{(0.5 / gamma) ** 0.5:.3g}") ** 2)


@record
class Standing:
    """What the evidence says of the leader under the named class."""

    number: int  # of the class
    norm: float  # under which it was read
    suggested: float | None  # the norm that the results suggest
    gap: float  # infinite: nothing is known
    open_rivals: IntArray  # neither within epsilon of the leader nor beaten, ascending
    beaten: BoolArray  # the arms that are not the best, (K,)

    def __post_init__(self) -> None:
        freeze(self, open_rivals=np.int64, beaten=np.bool_)

    @property
    def refuted(self) -> bool:
        """No arm could be the best: the class is not what it seems, but for delta."""
        return bool(self.beaten.all())


@record
class PlacedBet:
    """What processes bet on a batch, and what came of it."""

    batch: BatchWeights
    starts: IntArray  # number of each process's last start, (K,)
    log_values: FloatArray  # L of each arm's process with log p_k, after the batch, (K,)
    means: FloatArray  # mean reward of each arm in the batch, (K,)

    def __post_init__(self) -> None:
        freeze(self, starts=np.int64, log_values=np.float64, means=np.float64)

    def weighed(self, threshold: float) -> Weighed:
        """The same as readings take it."""
        return Weighed(self.batch, self.starts, self.log_values, threshold)


@record
class SteeredState(SequentialState):
    """A `SequentialState` with what was bet, from which everything is read."""

    told: tuple[PlacedBet, ...] = ()
    leaders: tuple[int, ...] = ()  # candidates and leaders so far
    standing: tuple[Standing, ...] = ()  # under each class that the results do not speak against, the widest first


@record
class CertifiedReadings(SequentialTest):
    """Certify one candidate under a class of mean functions of which only the name is given.

        D = u F_j - 1{c} + 1{j},    U_j = lack u + C |D|_K + gamma |D|_1,    u >= 0
        recommend c when every U_j is at most epsilon, or j is not the best, under the class with norm C up to gamma

    C is 1.5 times the largest norm that the results do not speak against; it is a guess, which the answer names as an
    assumption. All else holds with probability 1 - delta, whatever norms are read, and whenever.

    Args:
        problem: what is asked; the noise has a known scale.
        features: of the arms, shape (K, D).
        assume: "linear" or "smooth", or a text of an assumption (docs/assumptions.md): "linear:level=no".
        trust: how far the mean of a candidate may be off what the class says, in reward units; "roughly": epsilon;
            "exact": 0.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: docs/certified-elimination.md, lines 38 to 43; ours.
    """

    features: FloatArray
    assume: str = "linear"
    trust: str | float = "roughly"

    def __post_init__(self) -> None:
        check_arms(self.problem, len(self.features))
        _ = self.gamma, self.named

    @property
    def gamma(self) -> float:
        """How far means may be off the class, in reward units."""
        if isinstance(self.trust, str):
            if self.trust not in ("roughly", "exact"):
                raise InvalidInput(f"trust is {quoted(self.trust)}; write 'roughly', 'exact' or a number.")
            return float(self.problem.epsilon) if self.trust == "roughly" else 0.0
        return not_negative("trust", self.trust, "how far means may be off the class, in reward units.")

    @property
    def named(self) -> tuple[Assumption, ...]:
        """The classes that the name stands for, up to `gamma`, the widest first."""

        def form() -> tuple[Assumption, ...]:
            return tuple(Near(one, self.gamma) if self.gamma > 0.0 else one for one in self._classes())

        return self._cache.last("named", None, form)

    def _classes(self) -> list[Assumption]:
        """The same without what means may be off them."""
        found = parse_assumption(self.assume)
        if not isinstance(found, Linear | Smooth):
            words = "write linear or smooth, perhaps with options, or auto."
            raise InvalidInput(f"assume is {quoted(self.assume)}; {words}")
        if isinstance(found, Smooth) and found.kernel is None:
            return kernels(found, self.features)
        return [settled(found, self.features)]

    @property
    def traits(self) -> Traits:
        return Traits(
            uses_features=True,
            certifies="candidate",
            judges_parts=True,
            corrects=True,
            weigh=self.weigh,
            assumed=self.named,
            until=self.until,
        )

    def init(self) -> SteeredState:
        start = SequentialTest.init(self)
        nothing = replace(start.seen, squares=np.zeros(self.problem.num_arms))
        return SteeredState(start.round, nothing, start.lists, start.beaten, start.finished)

    def ask(self, state: SteeredState) -> Plan:
        if state.seen.total == 0:
            counts = opening(self._coordinates(state, 0), HEURISTIC_OPENING, HEURISTIC_OPENING_NOISE)
            return Plan(state.round, counts)
        (wanted, steered), spent = self._design(state, state.leader), state.pulls
        total = float(wanted.sum())
        size = math.ceil(total)
        if total > max(HEURISTIC_OPENING, HEURISTIC_WHOLE * spent):
            size = math.ceil(min(self._part * total, self._part * spent + HEURISTIC_MORE_PULLS))
        weights, evidence = steered.planned(wanted)
        size = max(size, math.ceil(HEURISTIC_LEAST_PART * spent))
        counts = spread_pulls(wanted, size, weights[int(np.argmin(evidence))])
        return Plan(state.round, counts, predicted_pulls=max(total, 1.0), candidate=state.leader)

    def bets(self, state: SteeredState, plan: Plan, seen: Observations) -> BatchWeights | None:
        """None in the opening."""
        if not state.standing or plan.candidate is None or seen.total == 0:
            return None
        (wanted, steered), asked = self._design(state, plan.candidate), plan.counts
        rest = np.maximum(wanted - asked, 0.0)
        left = max(float(wanted.sum()) - plan.total, 0.0)
        rest *= left / max(float(rest.sum()), 1e-300) if left > 0.0 else 0.0
        weights, _ = steered.planned(np.asarray(asked + rest, np.float64))
        measured = np.flatnonzero(seen.counts)
        return BatchWeights(steered.rivals, measured, seen.counts[measured], weights[:, measured])

    def update(self, state: SteeredState, plan: Plan, bets: BatchWeights | None, seen: Observations) -> dict[str, Any]:
        placed = self._placed(state, plan, bets, seen)
        return {} if placed is None else {"told": (*state.told, placed)}

    def weigh(self, state: SteeredState, plan: Plan, seen: Observations) -> Weighed | None:
        """What `tell` makes of a batch, with the weights of its pulls; None where it has none."""
        placed = self._placed(state, plan, self.bets(state, plan, seen), seen)
        return None if placed is None else placed.weighed(threshold_of(self.problem))

    def _placed(
        self, state: SteeredState, plan: Plan, bets: BatchWeights | None, seen: Observations
    ) -> PlacedBet | None:
        if bets is None or plan.candidate is None:
            return None
        scales = self.problem.scales[bets.measured]
        before, held = self._starts(state)
        starts, values = np.array(before), np.array(held)
        anew = self._design(state, plan.candidate)[1].anew
        starts[anew] += 1
        values[anew] = start_weights(starts[anew])
        values[bets.arms] += bets.weights @ seen.sums[bets.measured]
        values[bets.arms] -= 0.5 * (bets.weights**2 @ (bets.counts * scales**2))
        return PlacedBet(bets, starts, values, seen.means)

    def _starts(self, state: SteeredState) -> tuple[IntArray, FloatArray]:
        """(number of the last start of each process, its L with log p_k), both of shape (K,)."""
        if state.told:
            return state.told[-1].starts, state.told[-1].log_values
        first = np.ones(self.problem.num_arms, np.int64)
        return first, start_weights(first)

    def _alive(self, state: SteeredState) -> list[int]:
        """The classes that the results do not speak against, the widest first."""
        found = np.array([one.log_likelihood for one in self._fits(state)])
        return np.flatnonzero(found >= found.max() - self._nats_worse(state.seen)).tolist()

    def _nats_worse(self, seen: Observations) -> float:
        """How much worse than the best a class may fit, in log likelihood."""
        return HEURISTIC_NATS_WORSE[seen.total >= HEURISTIC_PULLS_AN_ARM * self.problem.num_arms]

    def decide(self, state: SteeredState, after: SteeredState, plan: Plan) -> SteeredState:
        fits, problem, alive = self._fits(after), self.problem, self._alive(after)
        best = max(alive, key=lambda one: fits[one].log_likelihood)
        former = () if plan.candidate is None else (plan.candidate,)
        tried = []
        for leader in dict.fromkeys((*former, int(np.argmax(fits[best].means)))):
            leaders = (*state.leaders, *former, leader)
            held = tuple(self._read(after, leaders, one, whole=False) for one in alive)
            tried.append(replace(after, leader=leader, leaders=leaders, standing=held))
        after = min(tried, key=lambda one: max(each.gap for each in one.standing))
        gap = max(one.gap for one in after.standing)
        if gap <= problem.epsilon:
            held = tuple(self._read(after, after.leaders, one, whole=True) for one in alive)
            after = replace(after, standing=held)
        elif len(tried) > 1:
            kept, other = (float(self._design(one, one.leader)[0].sum()) for one in tried)
            after = tried[other < tuning.HEURISTIC_SWITCH * kept]
        finished = "certified" if gap <= problem.epsilon else ""
        finished = "budget" if any(one.refuted for one in after.standing) else finished
        beaten = np.all([one.beaten for one in after.standing], axis=0)
        return replace(after, beaten=beaten, finished=finished)

    def failed_checks(self, state: SteeredState, plan: Plan, seen: Observations) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    def claim(self, state: SteeredState) -> Claim:
        found = SequentialTest.claim(self, state)
        refuted = [one for one in state.standing if one.refuted]
        if not refuted:
            return found
        words = self._in_words(state, self.read_under(refuted[0]), "")
        return replace(found, reason=f"If {words}: then no candidate could be the best, so this is false.")

    def _without_effects(self, state: SteeredState, plan: Plan, seen: Observations) -> Observations:  # noqa: ARG002
        """As readings see it: of totals, the least that sums of squares can be."""
        return with_least_squares(seen)

    def _read(self, state: SteeredState, leaders: tuple[int, ...], number: int, *, whole: bool) -> Standing:
        """The reading of the study under a class; not whole: of what processes hold now alone, which says no more."""
        problem, seen, known, features = self.problem, state.seen, self.named[number], self._features(state)
        sigma = noise_scale(seen, problem.sigma)
        filled = with_likely_norm(known, features, seen, sigma, problem.epsilon)
        candidate, witnesses = compared(leaders, seen)
        question = Question(features, candidate, witnesses, problem.epsilon, None)
        threshold = threshold_of(problem)
        past = [ArmFlows.nothing(problem.num_arms, 0, threshold)]
        if state.told and whole:
            pulled, batches = np.flatnonzero(seen.counts), state.round - 1
            told = [Told(one.weighed(threshold), one.means) for one in state.told]
            past = list(flows_of(told, problem.num_arms, pulled, self._costing, batches=batches))
        elif state.told:
            past.append(self._held(state))
        found = largest_of(question, filled.assumption, past, edges=False, quick=not whole)
        still_open = ~(found.beaten | (found.bounds <= problem.epsilon))
        still_open[candidate] = False
        gap, rivals = found.gap(candidate), np.flatnonzero(still_open)
        norm = balls(filled.assumption)[0].norm
        assert norm is not None
        return Standing(number, norm, filled.suggested, gap, rivals, found.beaten)

    def until(self, state: SteeredState, off: float) -> float:
        """Pulls after which the answer is predicted to stand with means off by so much, a little too few."""
        other = replace(self, trust=off)
        held = tuple(other._read(state, state.leaders, one.number, whole=False) for one in state.standing)
        if max((one.gap for one in held), default=np.inf) <= self.problem.epsilon:
            return 0.0
        return float(other._design(replace(state, standing=held), state.leader)[0].sum())

    def read_under(self, standing: Standing) -> Assumption:
        """The class that a standing is about, with its norm."""

        def normed(one: Assumption) -> Assumption:
            return replace(one, norm=standing.norm) if isinstance(one, Linear | Smooth) else one

        return mapped(self.named[standing.number], normed)

    def _held(self, state: SteeredState) -> ArmFlows:
        """What the process of each arm that ever bet holds now."""

        def form() -> ArmFlows:
            pulled = np.flatnonzero(state.seen.counts)
            ledger, threshold = (
                FlowLedger(self.problem.num_arms, pulled, len(state.told), self._costing),
                threshold_of(self.problem),
            )
            rows = np.empty(0, np.int64)
            for each in state.told:
                rows = np.union1d(rows, ledger.add(each.weighed(threshold), each.means))
            return ledger.held(threshold, rows)

        return self._cache.of("held", state.told, None, form)

    @property
    def _costing(self) -> FloatArray | None:
        return self.problem.scales if self.problem.noise.support is None else None

    @property
    def _part(self) -> float:
        """Of what is left, or was spent: a batch before the last has no more."""
        return HEURISTIC_PART

    def _features(self, _: SteeredState) -> FloatArray:
        """Of the arms, as the classes of this state see them, (K, D)."""
        return self.features

    def _coordinates(self, state: SteeredState, number: int) -> FloatArray:
        """Z of all arms in a class, with the level."""
        features = self._features(state)

        def form() -> FloatArray:
            ball = balls(self.named[number])[0]
            found = ball.coordinates(features)
            if isinstance(ball, Smooth):
                found = found[:, :DIRECTIONS]
            return np.column_stack([found, np.full(len(found), LEVEL)]) if ball.level else found

        return self._cache.of("coordinates", features, number, form)

    def _fits(self, state: SteeredState) -> list[Fit]:
        """The most likely means in each class."""

        def form() -> list[Fit]:
            sigma, size = self._guessed_noise(state.seen)
            return [
                fitted(self._coordinates(state, number), state.seen, sigma, self.gamma, size)
                for number in range(len(self.named))
            ]

        return self._cache.of("fits", state.seen, None, form)

    def _left_out(self, state: SteeredState, number: int) -> FloatArray:
        """Squared lengths of what the coordinates leave out of each arm, (K,)."""
        features = self._features(state)

        def form() -> FloatArray:
            ball = balls(self.named[number])[0]
            if not isinstance(ball, Smooth):
                return np.zeros(len(features))
            z = self._coordinates(state, number)[:, : -1 if ball.level else None]
            whole = ball.of(features).diagonal(features)
            return np.asarray(np.maximum(whole - np.sum(z**2, axis=1), 0.0))

        return self._cache.of("left out", features, number, form)

    def _guessed_noise(self, seen: Observations) -> tuple[FloatArray, float]:
        """(scales of the noise, (K,), the size of what is looked for), in reward units."""
        sigma = noise_scale(seen, self.problem.sigma) / self.problem.sigma * self.problem.scales
        return sigma, max(float(sigma.max()), self.problem.epsilon)

    def _steered(self, state: SteeredState, candidate: int) -> Steered:
        """The widest of the classes under which rivals are open, and these rivals."""
        problem, num_arms = self.problem, self.problem.num_arms
        known = next((one for one in state.standing if len(one.open_rivals)), state.standing[0])
        rivals = known.open_rivals
        if candidate != state.leader or len(rivals) == 0:
            rivals = np.delete(np.arange(num_arms), candidate)
        flows, (starts, values) = np.zeros((num_arms, num_arms)), self._starts(state)
        if state.told:
            held = self._held(state)
            flows[np.ix_(held.arms, held.pulled)] = held.flows  # of an arm's starts the last counts
        threshold = threshold_of(problem)
        z, fits = self._coordinates(state, known.number), self._fits(state)
        fit = fits[max((one.number for one in state.standing), key=lambda one: fits[one].log_likelihood)]
        return Steered(
            coordinates=z,
            left_out=self._left_out(state, known.number),
            norm=known.norm,
            off=self.gamma,
            scales=problem.scales,
            epsilon=problem.epsilon,
            candidate=candidate,
            rivals=rivals,
            flows=flows[rivals],
            lack=threshold - values[rivals],
            lack_anew=threshold - start_weights(starts[rivals] + 1),
            means=fit.means,
            margins=fit.margins(candidate, rivals, problem.epsilon),
        )

    def _design(self, state: SteeredState, candidate: int) -> tuple[FloatArray, Steered]:
        """The pulls that are still to come, whole or not, (K,), and what they serve; some processes start anew."""

        def form() -> tuple[FloatArray, Steered]:
            steered = self._steered(state, candidate)
            wanted = self._wanted(steered)
            renewed = steered.renewed(wanted)
            return (wanted, steered) if renewed is steered else (self._wanted(renewed), renewed)

        return self._cache.of("design", state.seen, (state.standing, candidate), form)

    def _wanted(self, steered: Steered) -> FloatArray:
        """Pulls, whole or not, after which every open rival is predicted to be out, (K,)."""
        return design_for(steered)

    def _in_words(self, _: SteeredState, assumption: Assumption, data: str) -> str:
        """What is said of the means, as a clause."""
        return class_in_words(assumption, data)

    def _gap(self, state: SteeredState) -> float | None:
        _, given = self.problem.answer_without_pulls()
        if state.finished == "single" or not state.standing:
            return 0.0 if state.finished == "single" else given
        found = min(max(one.gap for one in state.standing), np.inf if given is None else given)
        return found if np.isfinite(found) else None

    def _answer(self, state: SteeredState) -> dict[str, Any]:
        said = []
        for one in state.standing:
            data = "" if one.suggested is None else f" (the results suggest up to {one.suggested:.3g})"
            said.append(self._in_words(state, self.read_under(one), data))
        words = "; or ".join(said)
        unseen, num_arms = int(np.count_nonzero(state.seen.counts == 0)), self.problem.num_arms
        told = [f"{words[0].upper()}{words[1:]}."] if words else []
        if words and unseen:
            told.append(f"{unseen:,} of {num_arms:,} candidates were not measured: nothing would show that one is off.")
        return {"assumptions": tuple(told)}
