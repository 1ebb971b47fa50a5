"""Simulated studies: a policy fed with made-up rewards, around a guess or in the worst case."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.observations import BlockTotals, Observations, Quantity
from surepick.core.plan import Blocking, Plan
from surepick.core.random_streams import stream
from surepick.core.step import RoundRecord
from surepick.noise import Noise, known_scale, scales
from surepick.policies.base import Policy, Problem, Rounds, spec_of, stopped
from surepick.policies.parts import OF_BLOCKS, PAIRED
from surepick.policies.prices import Prices
from surepick.policies.registry import built_policy
from surepick.policies.verdict import certificate_of
from surepick.questions import Constraint, constraints_of, number_of
from surepick.studies.replay import Closed, replay

FEWEST_STUDIES, MOST_STUDIES = 8, 200
STANDARD_ERROR = 0.06
EQUAL_STUDIES = 8
MOST_PLANS = 50_000
HALFWAY = 0.5  # of a tolerance: there it is hardest to tell whether a bound is kept
FIRST_DOUBT = 16  # the plan before which a simulated study first asks the certificate whether more pulls would help
NO_HELP = "More of them may not help: "  # in the reason of such a certificate, and why follows


@dataclass(slots=True)
class Effort:
    """What simulating may take: rounds, all studies of a forecast together, and seconds of processor time.

    Where rounds are what ends it, the forecast is the same on every machine.

    Args:
        rounds: that are left.
        seconds: of processor time of this thread.
    """

    rounds: float = math.inf
    seconds: float = math.inf
    over: str = ""
    _began: float = field(default_factory=time.thread_time)

    def spend(self) -> bool:
        """Take one round; False, and `over` says why, if nothing is left."""
        if self.rounds < 1:
            self.over = self.over or "the rounds that a forecast simulates were over"
        elif time.thread_time() - self._began > self.seconds:
            self.over = self.over or f"the {self.seconds:g} s that a forecast takes were over"
        self.rounds -= 1
        return not self.over


@dataclass(frozen=True, slots=True)
class Limit:
    """What a simulated study may spend.

    Args:
        pulls: measurements.
        cost: money.
        prices: of the measurements; None: nothing has a cost.
        effort: what simulating itself may take.
    """

    pulls: int
    cost: float = math.inf
    prices: Prices | None = None
    effort: Effort = field(default_factory=Effort)

    def cost_of(self, plan: Plan) -> float:
        """Money for a plan, 0 without costs."""
        if self.prices is None:
            return 0.0
        return float(plan.counts @ self.prices.each(len(plan.counts))) + self.prices.batch


@dataclass(frozen=True, slots=True)
class SimulatedStudy:
    """One simulated study.

    Args:
        rounds: (plan, trace row) of the last look of each round.
        plans: everything that was asked, in order.
        total: pulls.
        cost: money for them, 0 without costs.
        recommended: the arm at the end.
        verdict, reason: of the certificate.
        cut: why it was ended before the policy stopped, "" if it was not.
        hopeless: why more pulls would not have helped where it was ended, "" if they might.
    """

    rounds: tuple[tuple[Plan, RoundRecord], ...]
    plans: tuple[Plan, ...]
    total: int
    cost: float
    recommended: int
    verdict: str
    reason: str
    cut: str
    hopeless: str = ""


def simulate_studies(
    policy: Policy[Any], means: FloatArray, noise: Noise, limit: Limit, *, most: int, seed: int, sign: float
) -> list[SimulatedStudy]:
    """Simulated studies until the mean of their pulls is known well enough, or until two seemed endless.

    Args:
        noise: what rewards are drawn with: what the policy assumes, or a guess where it assumes no scale.
    """
    start = policy.init()
    opening = () if stopped(policy, start) else (policy.ask(start),)
    runs: list[SimulatedStudy] = []
    while len(runs) < most:
        rng = stream(seed, "forecast", len(runs))
        runs.append(_simulated(policy, limit, opening, _Rewards(means, noise, sign, rng)))
        if sum(bool(run.hopeless) for run in runs) == 2 or limit.effort.over:
            break
        totals = np.array([run.total for run in runs], dtype=np.float64)
        if len(runs) >= FEWEST_STUDIES and totals.std(ddof=1) <= STANDARD_ERROR * totals.mean() * math.sqrt(len(runs)):
            break
    return runs


@dataclass(frozen=True, slots=True)
class _Rewards:
    """Rewards around a guess of the means, in the user's sign; `sign` turns them into the policy's.

    What constraints are on lies at the bounds, or beyond them by a share of the tolerance.
    """

    means: FloatArray
    noise: Noise
    sign: float
    rng: np.random.Generator
    beyond: float = 0.0

    def beside(self, constraints: tuple[Constraint, ...], counts: IntArray) -> tuple[Quantity, ...]:
        """Totals of what constraints are on."""
        found = []
        for one in constraints:
            level = np.full(len(counts), _beyond(one, self.beyond))
            if one.noise is None:
                found.append(Quantity(counts, counts * level, counts * level**2, np.zeros(len(counts))))
                continue
            seen = _Rewards(level, one.noise, 1.0, self.rng).draw(counts)
            squares = np.zeros(len(counts)) if seen.squares is None else seen.squares
            found.append(Quantity(counts, seen.sums, squares, seen.within))
        return tuple(found)

    def draw(self, counts: IntArray) -> Observations:
        if self.noise.support is not None:
            low, high = self.noise.support
            highs = self.rng.binomial(counts, np.clip((self.means - low) / (high - low), 0.0, 1.0))
            lows = counts - highs
            sums = self.sign * (lows * low + highs * high)
            within = (high - low) ** 2 * (lows * (highs / np.maximum(counts, 1)))
            return Observations(counts, sums, lows * low**2 + highs * high**2, within=within)
        sigma, n = scales(self.noise, len(counts)), counts.astype(np.float64)
        sums = self.sign * (n * self.means + sigma * np.sqrt(n) * self.rng.standard_normal(len(n)))
        spread = 2.0 * self.rng.standard_gamma(np.maximum(n - 1.0, 0.0) / 2.0)
        squares = np.divide(sums**2, n, out=np.zeros_like(sums), where=n > 0) + sigma**2 * spread
        return Observations(counts, sums, squares, within=sigma**2 * spread)


@dataclass(frozen=True, slots=True)
class _Equal:
    """Equal rewards without noise; where arms differ in noise, the noisiest leads by a hair."""

    scales: FloatArray
    level: float = 0.0

    def beside(self, constraints: tuple[Constraint, ...], counts: IntArray) -> tuple[Quantity, ...]:
        """Totals of what constraints are on: halfway into the tolerances, without noise."""
        levels = [np.full(len(counts), _beyond(one, HALFWAY)) for one in constraints]
        nothing = np.zeros(len(counts))
        return tuple(Quantity(counts, counts * level, counts * level**2, nothing) for level in levels)

    def draw(self, counts: IntArray) -> Observations:
        uneven = np.ptp(self.scales) > 0.0
        means = self.level + (1e-9 * self.scales if uneven else np.zeros(len(counts)))
        return Observations(counts, counts * means, counts * means**2, within=np.zeros(len(counts)))


def _beyond(constraint: Constraint, share: float) -> float:
    """The bound, and beyond it a share of the tolerance."""
    further = share * constraint.tolerance if constraint.noise is not None else 0.0
    return constraint.bound + (further if constraint.at_most else -further)


def _dealt(rewards: _Rewards | _Equal, blocking: Blocking, counts: IntArray) -> Observations:
    """Rewards of blocks that have no effect, the pulls dealt as a study proposes it."""
    table = np.zeros((blocking.number_for(counts), len(counts)), np.int64)
    np.add.at(table, (blocking.dealt(counts), np.repeat(np.arange(len(counts)), counts)), 1)
    parts = [rewards.draw(row) for row in table]
    blocks, arms = np.nonzero(table)
    sums = np.array([part.sums for part in parts])
    squares = np.sum([part.squares for part in parts if part.squares is not None], axis=0)
    return Observations(
        counts, sums.sum(axis=0), squares, blocks=BlockTotals(blocks, arms, table[blocks, arms], sums[blocks, arms])
    )


def unblocked(policy: Policy[Any]) -> Policy[Any] | None:
    """The policy as it would be if its measurements were independent; None where they are."""
    if policy.traits.blocks is None:
        return None
    spec, arms = spec_of(policy), policy.problem.arms
    if spec is None or arms is None:
        return None
    kept = {option: value for option, value in spec.items() if option not in OF_BLOCKS}
    if kept.get("evidence") == PAIRED:
        del kept["evidence"]
    return built_policy(arms=arms, **kept)


def worst_case(policy: Policy[Any], noise: Noise, limit: Limit, *, seed: int = 0) -> SimulatedStudy:
    """The most expensive study that we know of: the rounds in full, or a study of equal arms.

    Args:
        noise: as in `simulate_studies`.
    """
    if not known_scale(policy.problem.noise):  # without noise there would be no scale to find
        start = policy.init()
        opening = () if stopped(policy, start) else (policy.ask(start),)
        return _dearest(_studies_of_equals(policy, noise, limit, opening, seed))
    planned = policy.traits.rounds
    equal = _Equal(scales(policy.problem.noise, policy.problem.num_arms), _level(policy.problem))
    if not policy.traits.narrows:
        return _most_expensive_of_equals(policy, limit, _simulated(policy, limit, (), equal), seed)
    if planned is None or policy.traits.stops != "own" or planned.stopping != "certified":
        return _simulated(policy, limit, (), equal)
    enduring: Policy[Any] = replace(policy, stopping="rounds")  # type: ignore[type-var]
    run = _simulated(enduring, limit, (), equal, planned)
    if run.cut or planned.accuracy(planned.num_rounds) > planned.epsilon:
        return run
    last = _simulated(policy, limit, run.plans, equal)  # the same plans: only `tell` stops earlier
    return replace(run, verdict=last.verdict, reason=last.reason)


def _level(problem: Problem) -> float:
    """Where equal arms are hardest to judge: at the threshold, if there is one."""
    return number_of(problem) or 0.0


def _most_expensive_of_equals(policy: Policy[Any], limit: Limit, quiet: SimulatedStudy, seed: int) -> SimulatedStudy:
    """The most expensive of some studies of equal arms with noise. Without noise, a policy that bets on the data wins
    all its bets, and one that estimates the variance finds none.

    Args:
        quiet: the study without noise. It says what the verdict would be: rewards in the middle of their range need not
            be of the declared kind, so an alarm about them means nothing.
    """
    if quiet.cut or quiet.hopeless:
        return quiet
    most_expensive = _dearest(_studies_of_equals(policy, policy.problem.noise, limit, quiet.plans[:1], seed))
    if "budget-exhausted" in (most_expensive.verdict, quiet.verdict):
        return most_expensive
    return replace(most_expensive, verdict=quiet.verdict, reason=quiet.reason)


def _studies_of_equals(
    policy: Policy[Any], noise: Noise, limit: Limit, opening: tuple[Plan, ...], seed: int
) -> list[SimulatedStudy]:
    """Studies of equal arms with noise, all with the same first plan; one where there is none."""
    middle = 0.0 if noise.support is None else 0.5 * sum(noise.support)
    means = np.full(policy.problem.num_arms, _level(policy.problem) or middle)
    runs: list[SimulatedStudy] = []
    for number in range(EQUAL_STUDIES if opening else 1):
        rng = stream(seed, "forecast", "equal", number)
        runs.append(_simulated(policy, limit, opening, _Rewards(means, noise, 1.0, rng, HALFWAY)))
        if limit.effort.over:
            break
    return runs


def _dearest(runs: list[SimulatedStudy]) -> SimulatedStudy:
    return max(runs, key=lambda run: (bool(run.cut or run.hopeless), run.cost, run.total))


class _Simulation:
    """The closed plans of one study whose rewards are made up, as `replay` wants them.

    Args:
        policy: asks.
        limit: what may be spent.
        known: what it asks first, if that is known.
        rewards: give the results.
        certain: the study ends after the look at which the promise of these rounds alone certifies.
    """

    def __init__(
        self,
        policy: Policy[Any],
        limit: Limit,
        known: tuple[Plan, ...],
        rewards: _Rewards | _Equal,
        certain: Rounds | None = None,
    ) -> None:
        self._policy = policy
        self._limit = limit
        self._known = known
        self._rewards = rewards
        self._certain = certain
        self._doubted = False
        self.plans: list[Plan] = []
        self.total = 0
        self.cost = 0.0
        self.cut = self.hopeless = ""

    def next_plan(self, state: Any) -> Closed | None:
        """What the policy asks in that state, measured; None at the end of the study."""
        number = len(self.plans)
        if stopped(self._policy, state) or self._promise_kept() or self._beyond_help(state, number):
            return None
        plan = self._known[number] if number < len(self._known) else self._policy.ask(state)
        due = self.cost + self._limit.cost_of(plan)
        if self.total + plan.total > self._limit.pulls or due > self._limit.cost or number == MOST_PLANS:
            self.cut = f"after {self.total:,} pulls, before it stopped by itself"
            return None
        if not self._limit.effort.spend():
            self.cut = f"after {self.total:,} pulls, when {self._limit.effort.over}"
            return None
        self.plans.append(plan)
        self.total += plan.total
        self.cost = due
        blocking = self._policy.traits.blocks
        drawn = self._rewards.draw(plan.counts) if blocking is None else _dealt(self._rewards, blocking, plan.counts)
        if constraints := constraints_of(self._policy.problem.question):
            drawn = replace(drawn, quantities=self._rewards.beside(constraints, plan.counts))
        return Closed(number + 1, plan, drawn)

    def _promise_kept(self) -> bool:
        if self._certain is None or not self.plans:
            return False
        last, rounds = self.plans[-1], self._certain
        return rounds.accuracy(last.round) * math.sqrt(last.looks / last.look) <= rounds.epsilon

    def _beyond_help(self, state: Any, number: int) -> bool:
        """Whether the certificate said twice that more pulls would not help."""
        if number < FIRST_DOUBT or number.bit_count() != 1:  # 16, 32, 64, ...: seldom, as it costs as much as a plan
            return False
        _, _, why = certificate_of(self._policy, state).reason.partition(NO_HELP)
        if why and self._doubted:
            self.hopeless = why
        self._doubted = bool(why)
        return self.hopeless != ""


def _simulated(
    policy: Policy[Any],
    limit: Limit,
    known: tuple[Plan, ...],
    rewards: _Rewards | _Equal,
    certain: Rounds | None = None,
) -> SimulatedStudy:
    """One study, from its start to its end; the arguments are those of `_Simulation`."""
    study = _Simulation(policy, limit, known, rewards, certain)
    state, last = policy.init(), {}
    for judged in replay(policy, study.next_plan, state=state):
        state = judged.step.state
        last[judged.closed.plan.round] = (judged.closed.plan, judged.step.record)
    answer = certificate_of(policy, state)
    return SimulatedStudy(
        rounds=tuple(last.values()),
        plans=tuple(study.plans),
        total=study.total,
        cost=study.cost,
        recommended=answer.arm,
        verdict=answer.verdict,
        reason=answer.reason,
        cut=study.cut,
        hopeless=study.hopeless,
    )
