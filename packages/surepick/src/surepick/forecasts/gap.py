"""Which gap a budget can show, before anything is measured: the policy, played on typical means."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.records import FloatArray, record
from surepick.environments import Environment
from surepick.errors import InvalidInput
from surepick.forecasts.forecast import noise_to_draw
from surepick.noise import Noise, largest_scale
from surepick.policies.base import Policy
from surepick.simulation import simulate_many

STUDIES = 40
INNER = (0.1, 0.9)  # quantiles of the gaps that are shown
ALIKE, SPREAD, ONE, GUESS = "all are alike", "they spread evenly", "one stands out", "your guess is right"


@record
class GapRow:
    """What simulated studies of one kind of means came to.

    Args:
        kind: the means, in words.
        low, typical, high: certified gap in reward units: of nine of ten studies at least, of half, of one in ten at
            least; infinite: unknown.
        pulls: mean measurements; fewer than the budget where studies end before.
        right: the share of studies that name the best candidate; 1 where all are alike.
    """

    kind: str
    low: float
    typical: float
    high: float
    pulls: float
    right: float


@record
class GapForecast:
    """The gap to expect of a budget.

    Args:
        budget: N.
        uniform: the gap that N/K measurements of each would show if all were alike, by a bound that holds for them;
            sqrt(4 K s^2 log((K - 1)/delta) / N), in reward units.
        rows: typical means, the hardest first.
    """

    budget: int
    num_arms: int
    delta: float
    uniform: float
    rows: tuple[GapRow, ...]

    def __str__(self) -> str:
        lines = [
            f"{self.budget:,} measurements of {self.num_arms:,} candidates: the answer is proved, at delta "
            f"{self.delta:g}, to be worse than the best by at most"
        ]
        for row in self.rows:
            early = f", {row.pulls:,.0f} measurements" if row.pulls < 0.98 * self.budget else ""
            lines.append(f"  {row.low:.3g} to {row.high:.3g}, typically {row.typical:.3g}{early}: if {row.kind}")
        lines.append(f"  (about {self.uniform:.3g} if each were measured equally often, and all are alike)")
        return "\n".join(lines)


def forecast_gap(
    policy: Policy[Any],
    means: ArrayLike | None = None,
    *,
    minimize: bool = False,
    assume_scale: ArrayLike | None = None,
    studies: int = STUDIES,
    seed: int = 0,
) -> GapForecast:
    """The certified gap that a policy with a budget comes to, as a range over typical means.

    Played are candidates that are all alike; that spread evenly, from 0 to twice what a uniform plan tells apart; and
    of which one stands out by that much. With a guess of the means these are played instead.

    Args:
        policy: `make_policy("certified-independent", arms, budget=N, ...)`.
        means: a guess of the mean rewards, shape (K,), in the user's sign and unit.
        minimize: small rewards are good; matters for a guess only.
        assume_scale: where nobody knows the scale of the noise, a guess of it, to make rewards up.
        studies: simulated studies of each kind.
        seed: decides the simulated rewards.

    Raises:
        InvalidInput: the policy has no budget, the guess is not K numbers in the range of the noise, or the scale is
            unknown and not guessed.
    """
    budget, problem = policy.traits.budget, policy.problem
    if budget is None:
        raise InvalidInput("the policy has no budget: make it with budget=N, the measurements in all.")
    drawn = noise_to_draw(problem.noise, assume_scale, problem.num_arms)
    number, scale = problem.num_arms, largest_scale(drawn)
    uniform = scale * math.sqrt(4.0 * number * math.log(max(number - 1, 1) / problem.delta) / budget)
    kinds = _typical(number, uniform, drawn) if means is None else {GUESS: np.asarray(means, np.float64)}
    rows = [_row(policy, kind, one, drawn, range(seed, seed + studies), minimize) for kind, one in kinds.items()]
    return GapForecast(budget, number, problem.delta, uniform, tuple(rows))


def _typical(number: int, unit: float, noise: Noise) -> dict[str, FloatArray]:
    """Means of each kind, in the range of the noise."""
    spread, one = np.linspace(2.0 * unit, 0.0, number), np.zeros(number)
    one[0] = unit
    kinds = {ALIKE: np.zeros(number), SPREAD: spread, ONE: one}
    if noise.support is None:
        return kinds
    low, high = noise.support
    middle, most = 0.5 * (low + high), 0.8 * (high - low)
    return {kind: middle + (means - 0.5 * means.max()) * min(1.0, most / unit / 2.0) for kind, means in kinds.items()}


def _row(policy: Policy[Any], kind: str, means: FloatArray, noise: Noise, seeds: range, minimize: bool) -> GapRow:
    arms = policy.problem.arms or Arms(ids=range(len(means)))
    world = Environment(arms=arms, means=means, noise=noise, minimize=minimize)
    found = simulate_many(policy, world, seeds=seeds)
    low, typical, high = np.quantile(found.certified_gaps, [INNER[0], 0.5, INNER[1]], method="nearest")
    right = float(np.mean(world.gaps[found.arms] == 0.0))
    return GapRow(kind, float(low), float(typical), float(high), float(found.pulls.mean()), right)
