"""Studies of a finite set of test items, played on tables of scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import surepick as sp
from surepick.core.observations import Answers, Observations
from surepick.core.plans import Plan, Step
from surepick.items import Items
from surepick.policies.base import Problem
from surepick.policies.items import CertifiedItems, ItemsState


def item_table(num_arms: int, num_items: int, *, seed: int, spread: float = 1.5, skill: float = 3.0) -> np.ndarray:
    """Scores of 0 and 1 of arms of evenly spread skill on items of different difficulty, shape (K, N)."""
    rng = np.random.default_rng(seed)
    ability = np.linspace(skill / 2, -skill / 2, num_arms)
    odds = ability[:, None] - rng.normal(0.0, spread, num_items)
    return (rng.random((num_arms, num_items)) < 1.0 / (1.0 + np.exp(-odds))).astype(float)


def certified_items(
    scores: np.ndarray, *, seed: int = 0, epsilon: float = 0.1, delta: float = 0.05, noise: Any = None, **options: Any
) -> CertifiedItems:
    """The policy for a table of these scores."""
    problem = Problem(len(scores), epsilon, delta, sp.Bounded(0.0, 1.0) if noise is None else noise)
    return CertifiedItems(problem, Items(scores.shape[1]), seed, **options)


def answered(policy: CertifiedItems, plan: Plan, scores: np.ndarray) -> Observations:
    """What a plan gives."""
    arms = np.repeat(np.arange(len(scores)), plan.counts)
    items = policy.order.order[plan.places]
    came = scores[arms, items]
    sums = np.bincount(arms, came, len(scores))
    return Observations(plan.counts, sums, None, Answers(arms, items, came))


@dataclass(frozen=True, slots=True)
class Turn:
    """One plan of a study."""

    state: ItemsState
    plan: Plan
    seen: Observations
    step: Step[ItemsState]

    @property
    def after(self) -> ItemsState:
        return self.step.state


def play(policy: CertifiedItems, scores: np.ndarray) -> list[Turn]:
    """The turns up to the end."""
    state, turns = policy.init(), list[Turn]()
    while not state.finished:
        plan = policy.ask(state)
        seen = answered(policy, plan, scores)
        turns.append(Turn(state, plan, seen, policy.tell(state, plan, seen)))
        state = turns[-1].after
    return turns


def study_of_items() -> sp.Study:
    """A small study of 3 arms and 24 items, up to its end."""
    scores, ids = item_table(3, 24, seed=2), ["a", "b", "c"]
    asked = {"epsilon": 0.2, "delta": 0.1, "noise": "bernoulli"}
    policy = sp.make_policy("certified-items", sp.Arms(ids=ids), **asked, items=24, seed=1, growth=1.0)
    return sp.simulate(policy, sp.environments.recorded_answers(scores, ids)).study
