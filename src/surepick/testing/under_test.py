"""A policy that is tested, and the small studies that it plays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.environments import Environment
from surepick.noise import SubGaussian
from surepick.policies.base import Policy, Problem, stopped

Maker = Callable[[Arms, Problem], Policy[Any]]

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]])
MEANS = FEATURES @ np.array([0.9, 0.2])
NUM_ARMS = len(FEATURES)
SIGMA = 0.5
DELTA = 0.05
EPSILON = 0.1
PLANS_BEFORE_AN_END = 12  # of a policy that never stops by itself
MOST_PLANS = 5000


class ProtocolBroken(AssertionError):
    """A policy breaks what every policy must keep; the message says what, and why it matters."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One plan of a study: what was asked in a state, what came, and what it led to."""

    state: Any
    plan: Plan
    seen: Observations
    step: Step[Any]


def easy_environment(*, sigma: float = SIGMA) -> Environment:
    """Four arms with two features, whose means (.9, .2, .66, -.3) are linear in them, and normal noise."""
    return Environment(arms=Arms(FEATURES), means=MEANS, noise=SubGaussian(sigma))


def noiseless(plan: Plan, means: ArrayLike = MEANS) -> Observations:
    """What a plan gives where every reward is its mean.

    Args:
        plan: of K arms.
        means: shape (K,).
    """
    truth: FloatArray = np.asarray(means, dtype=np.float64)
    return Observations(plan.counts, plan.counts * truth, plan.counts * truth**2)


def play(policy: Policy[Any], means: ArrayLike = MEANS, *, most: int = MOST_PLANS) -> list[Turn]:
    """The turns of a study without noise, up to the policy's own stop; 12 of one that never stops by itself.

    Args:
        policy: for K arms.
        means: shape (K,).
        most: plans.

    Raises:
        ProtocolBroken: it does not stop.
    """
    state, turns = policy.init(), list[Turn]()
    while not stopped(policy, state):
        if policy.traits.stops == "never" and len(turns) == PLANS_BEFORE_AN_END:
            return turns
        must(len(turns) < most, f"It did not stop within {most} plans of rewards without noise.")
        plan = policy.ask(state)
        seen = noiseless(plan, means)
        step = policy.tell(state, plan, seen)
        turns.append(Turn(state, plan, seen, step))
        state = step.state
    return turns


@dataclass(frozen=True)
class PolicyUnderTest:
    """A policy, and one study of it without noise that all checks share.

    Args:
        make: (arms, problem) -> the policy for them. Called with one to four arms and with different problems, and must
            give an equal policy for equal arguments.
    """

    make: Maker
    _turns: dict[str, list[Turn]] = field(default_factory=dict, repr=False, compare=False)

    def policy(self, features: ArrayLike = FEATURES, **changes: Any) -> Policy[Any]:
        """The policy for these arms.

        Args:
            features: shape (K, D).
            changes: of the problem, whose epsilon is .1, delta .05 and noise sub-Gaussian of scale .5.
        """
        arms = Arms(features)
        asked = {"epsilon": EPSILON, "delta": DELTA, "noise": SubGaussian(SIGMA), **changes}
        return self.make(arms, Problem(arms.num_arms, **asked))

    @property
    def turns(self) -> list[Turn]:
        """Of four arms, without noise, up to its end."""
        if "easy" not in self._turns:
            self._turns["easy"] = play(self.policy())
        turns = self._turns["easy"]
        must(turns, "It asks for nothing: its first claim has finished.")
        return turns

    @property
    def some_turns(self) -> list[Turn]:
        """The first turns and the last."""
        return self.turns if len(self.turns) <= 8 else [*self.turns[:6], *self.turns[-2:]]

    @property
    def states(self) -> list[Any]:
        """The state in the beginning, and after some of its turns."""
        return [self.policy().init(), *(turn.step.state for turn in self.some_turns)]


def must(holds: object, sentence: str) -> None:
    """Raise `ProtocolBroken` with that sentence unless it holds."""
    if not holds:
        raise ProtocolBroken(sentence)
