"""Simulated studies: a policy fed with made-up rewards, around a guess or in the worst case."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from surepick.noise import Noise, scales
from surepick.policies import Policy
from surepick.policies.rounds import RoundSettings
from surepick.randomness import stream
from surepick.records import FloatArray, IntArray, Observations, Plan, RoundRecord

FEWEST_REHEARSALS, MOST_REHEARSALS = 8, 200
STANDARD_ERROR = 0.04
MOST_PLANS = 50_000


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """One simulated study.

    Args:
        rounds: (plan, trace row) of the last look of each round.
        plans: everything that was asked, in order.
        total: pulls.
        recommended: the arm at the end.
        verdict, reason: of the certificate.
        cut: why it was ended before the policy stopped, "" if it was not.
    """

    rounds: tuple[tuple[Plan, RoundRecord], ...]
    plans: tuple[Plan, ...]
    total: int
    recommended: int
    verdict: str
    reason: str
    cut: str


def rehearse(
    policy: Policy[Any], means: FloatArray, limit: int, *, most: int, seed: int, sign: float
) -> list[Rehearsal]:
    """Simulated studies until the mean of their pulls is known well enough."""
    start = policy.init()
    opening = () if policy.stopped(start) else (policy.ask(start),)
    runs: list[Rehearsal] = []
    while len(runs) < most:
        rng = stream(seed, "forecast", len(runs))
        runs.append(_fold(policy, limit, opening, _Rewards(means, policy.noise, sign, rng)))
        totals = np.array([run.total for run in runs], dtype=np.float64)
        if len(runs) >= FEWEST_REHEARSALS and totals.std(ddof=1) <= STANDARD_ERROR * totals.mean() * math.sqrt(
            len(runs)
        ):
            break
    return runs


@dataclass(frozen=True, slots=True)
class _Rewards:
    """Rewards around a guess of the means, in the user's sign; `sign` turns them into the policy's."""

    means: FloatArray
    noise: Noise
    sign: float
    rng: np.random.Generator

    def draw(self, counts: IntArray) -> Observations:
        if self.noise.support is not None:
            low, high = self.noise.support
            highs = self.rng.binomial(counts, np.clip((self.means - low) / (high - low), 0.0, 1.0))
            lows = counts - highs
            sums = self.sign * (lows * low + highs * high)
            return Observations(counts, sums, lows * low**2 + highs * high**2)
        sigma, n = scales(self.noise, len(counts)), counts.astype(np.float64)
        sums = self.sign * (n * self.means + sigma * np.sqrt(n) * self.rng.standard_normal(len(n)))
        spread = 2.0 * self.rng.standard_gamma(np.maximum(n - 1.0, 0.0) / 2.0)
        squares = np.divide(sums**2, n, out=np.zeros_like(sums), where=n > 0) + sigma**2 * spread
        return Observations(counts, sums, squares)


@dataclass(frozen=True, slots=True)
class _Equal:
    """Equal rewards without noise; where arms differ in noise, the noisiest leads by a hair."""

    scales: FloatArray

    def draw(self, counts: IntArray) -> Observations:
        if np.ptp(self.scales) == 0.0:
            return Observations(counts, np.zeros(len(counts)), np.zeros(len(counts)))
        means = 1e-9 * self.scales
        return Observations(counts, counts * means, counts * means**2)


def worst_case(policy: Policy[Any], limit: int) -> Rehearsal:
    settings = getattr(policy, "settings", None)
    equal = _Equal(scales(policy.noise, policy.num_arms))
    if not isinstance(settings, RoundSettings) or policy.stops != "own" or settings.stopping != "certified":
        return _fold(policy, limit, (), equal)
    enduring: Policy[Any] = replace(policy, stopping="rounds")  # type: ignore[type-var]
    run = _fold(enduring, limit, (), equal, settings)
    if run.cut or settings.accuracy(settings.num_rounds) > settings.epsilon:
        return run
    last = _fold(policy, limit, run.plans, equal)  # the same plans: only `tell` stops earlier
    return replace(run, verdict=last.verdict, reason=last.reason)


def _fold(
    policy: Policy[Any],
    limit: int,
    known: tuple[Plan, ...],
    rewards: _Rewards | _Equal,
    certain: RoundSettings | None = None,
) -> Rehearsal:
    """One study; with `certain` it ends after the look at which the promise of the rounds alone certifies."""
    state = policy.init()
    last: dict[int, tuple[Plan, RoundRecord]] = {}
    asked: list[Plan] = []
    total, cut, ended = 0, "", False
    for number in range(MOST_PLANS + 1):
        if ended or policy.stopped(state):
            break
        plan = known[number] if number < len(known) else policy.ask(state)
        if total + plan.total > limit or number == MOST_PLANS:
            cut = f"after {total:,} pulls, before it stopped by itself"
            break
        step = policy.tell(state, plan, rewards.draw(plan.counts))
        state, total = step.state, total + plan.total
        last[plan.round] = (plan, step.record)
        asked.append(plan)
        if certain is not None:
            ended = certain.accuracy(plan.round) * math.sqrt(plan.looks / plan.look) <= certain.epsilon
    answer = policy.certificate(state)
    return Rehearsal(
        rounds=tuple(last.values()),
        plans=tuple(asked),
        total=total,
        recommended=policy.recommend(state),
        verdict=answer.verdict,
        reason=answer.reason,
        cut=cut,
    )
