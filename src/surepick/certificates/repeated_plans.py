"""Plans of a certificate that are computed again: how many, and whether they come out equal."""

from __future__ import annotations

from typing import Any

from surepick.core.diff import first_difference
from surepick.core.json import encode
from surepick.core.plan import Plan
from surepick.policies.base import Policy, stopped
from surepick.studies.replay import Closed

QUICK_PLANS = 50
LARGEST_QUICK_DESIGN = 30_000


class Repeated:
    """Plans computed again while a study is replayed.

    Args:
        policy: asks.
        most: how many plans, from the first.
    """

    def __init__(self, policy: Policy[Any], most: int) -> None:
        self.most = most
        self.equal = 0
        self._policy = policy

    def watch(self, look: Closed, state: Any) -> None:
        """Count the plan if all before it and it itself come out equal."""
        if look.number == self.equal + 1 <= self.most and not stopped(self._policy, state):
            self.equal += not plan_difference(look.plan, self._policy.ask(state))


def plan_difference(stored: Plan, again: Plan) -> str:
    """Where two plans differ, "" where they agree: numbers within 1e-9, all else exactly."""
    return first_difference(encode(stored), encode(again)).lstrip(".")


def quick_plans(policy: Policy[Any], number: int) -> int:
    """How many of so many plans can be computed again in a few seconds: all, the first 50, or none.

    None where the arms times the dimensions in which a design may be searched exceed LARGEST_QUICK_DESIGN, since one
    search may take seconds there; all where nothing is designed.
    """
    embedding, features = policy.traits.embedding, policy.traits.features
    size = 0 if features is None else int(features.size)
    if embedding is not None:
        size = 0 if embedding.traits.family == "independent" else int(policy.problem.num_arms * embedding.max_dim)
    if size == 0:
        return number
    return min(number, QUICK_PLANS) if size <= LARGEST_QUICK_DESIGN else 0
