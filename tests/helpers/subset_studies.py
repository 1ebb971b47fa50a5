"""Selections from lists on which the best candidate has rivals that are as good: it is lost as often as can be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surepick.chunks.moments import Directions
from surepick.chunks.passes import Passes
from surepick.chunks.sources import rows_of
from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.designs.long_lists import SparseDesign
from surepick.noise import SubGaussian
from surepick.policies.base import Problem
from surepick.policies.subset.evidence import FirstPass, RowBet, Rule, SubsetRules
from surepick.policies.subset.selection import SubsetSelection, SubsetState


@dataclass(frozen=True)
class Hostile:
    """A short list in which row 0 is the best, and others are as good by a hair.

    Args:
        features: shape (K, r).
        theta: shape (r,).
        bias: what the means have beside the linear part, shape (K,).
        gamma: the bound on it that is declared.
        sigma: of normal noise.
        slack: the shortfall that is tolerated.
    """

    features: np.ndarray
    theta: np.ndarray
    bias: np.ndarray
    gamma: float = 0.0
    sigma: float = 1.0
    slack: float = 0.0

    @property
    def means(self) -> np.ndarray:
        return self.features @ self.theta + self.bias

    def policy(self, delta: float) -> SubsetSelection:
        """A selection that measures all rows alike, and whose list is never short enough."""
        passes = Passes(rows_of(self.features))
        number, rank = self.features.shape
        where = Directions(None, self.gamma, self.features.T @ self.features / number, 10.0)
        everybody = np.arange(number)
        weights = np.full(number, 1.0 / number)
        design = SparseDesign(everybody, self.features, weights, float(rank))
        arms = Arms(self.features)
        rules = SubsetRules(delta, f"subgaussian:{self.sigma}", 1.0, 1, self.slack, None)
        problem = Problem(number, 1.0, delta, SubGaussian(self.sigma), arms=arms)
        look = FirstPass("0" * 64, (number,), where, design, arms)
        return SubsetSelection(problem, passes, look, rules)

    def drawn(self, counts: np.ndarray, rng: np.random.Generator) -> Observations:
        """Normal rewards."""
        noise = self.sigma * np.sqrt(counts) * rng.standard_normal(len(counts))
        return Observations(counts, counts * self.means + noise)

    def told(self, delta: float, seed: int, batches: int = 9) -> SubsetState:
        """Where a selection of so many batches comes to."""
        policy, rng = self.policy(delta), np.random.default_rng(seed)
        state = policy.init()
        for _ in range(batches):
            plan = policy.ask(state)
            state = policy.tell(state, plan, self.drawn(plan.counts, rng)).state
        return state

    def played(self, policy: SubsetSelection, seed: int, batches: int = 9) -> tuple[RowBet, ...]:
        """The bets of the same selection, by what `tell` does to them, without its passes."""
        rng, everything, bets = np.random.default_rng(seed), Observations.nothing(len(self.features)), []
        plans, leader = _plans(policy, batches), -1
        for counts in plans:
            seen = self.drawn(counts, rng)
            if leader >= 0:
                centre, guess = self.features[leader], policy._guess(everything)
                bet = RowBet.of(centre, guess, self.features, seen.counts, seen.sums, self.sigma)
                bets += [] if bet is None else [bet]
            everything = everything.plus(seen)
            kept = np.flatnonzero(~policy.rule.rejected(bets, self.features))
            scores = self.features @ policy._guess(everything)
            leader = int(kept[np.argmax(scores[kept])]) if len(kept) else leader
        return tuple(bets)

    def loses(self, policy: SubsetSelection, rule: Rule, seed: int) -> bool:
        """Whether the best one is ever beaten in a selection of nine batches, and never was a candidate itself."""
        bets = self.played(policy, seed)
        tested = any(np.array_equal(bet.centre, self.features[0]) for bet in bets)
        return not tested and bool(rule.rejected(bets, self.features[:1])[0])


def _plans(policy: SubsetSelection, batches: int) -> list[np.ndarray]:
    """The counts of the batches, which depend on nothing that was told."""
    state, found = policy.init(), []
    for _ in range(batches):
        counts = policy.ask(state).counts
        found.append(counts)
        state = replace(state, round=state.round + 1, batches=(*state.batches, Observations(counts, 0.0 * counts)))
    return found


def circle(number: int, close: float) -> Hostile:
    """Rows on a circle; the best two are symmetric about theta, all others worse."""
    angles = np.concatenate([[close, -close], np.linspace(0.5, 2 * np.pi - 0.5, number - 2)])
    features = np.column_stack([np.cos(angles), np.sin(angles)])
    return Hostile(features, np.array([1.0, 0.0]), np.zeros(number))


def simplex(number: int) -> Hostile:
    """Rows that share nothing, all as good."""
    return Hostile(np.eye(number), np.full(number, 0.3), np.zeros(number))


def biased(number: int, gamma: float) -> Hostile:
    """All as good; what the linear part misses hides the best one as well as it can."""
    rng = np.random.default_rng(number)
    features = rng.standard_normal((number, 2))
    features /= np.linalg.norm(features, axis=1)[:, None]
    bias = np.full(number, -gamma)
    bias[0] = gamma
    features[0] = [1.0, 0.0]
    features[1:, 0] = np.minimum(features[1:, 0], 1.0 - 2.0 * gamma)
    return Hostile(features, np.array([1.0, 0.0]), bias, gamma)


def tolerated(slack: float) -> Hostile:
    """The best one is better than all others by just over the slack."""
    features = np.eye(4)
    return Hostile(features, np.array([0.4, *([0.4 - slack - 1e-9] * 3)]), np.zeros(4), slack=slack)
