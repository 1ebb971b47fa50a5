"""The answers of many studies that steer themselves, at once where the policy can: the same ones, and much sooner."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import surepick as sp
from surepick.core.records import rows_of
from surepick.policies.base import Policy, stopped


def answers(policy: Policy[Any], world: sp.environments.Environment, rngs: Sequence[np.random.Generator]) -> list[int]:
    """The arm that each study ends with, a study for each source of randomness."""
    rule = policy.traits.together
    if rule is None:
        return [answer(policy, world, rng) for rng in rngs]
    at, rows, planned, found = np.arange(len(rngs)), None, rule.first(len(rngs)), np.full(len(rngs), -1)
    while len(at):
        rows = rule.tell(rows, planned, world.law.draw_many(planned.counts, [rngs[study] for study in at]))
        found[at] = rows.leader
        going = np.flatnonzero(~rows.finished)
        at, rows = at[going], rows_of(rows, going)
        planned = rule.ask(rows)
    return found.tolist()


def answer(policy: Policy[Any], world: sp.environments.Environment, rng: np.random.Generator) -> int:
    """The arm that one study ends with."""
    state = policy.init()
    while not stopped(policy, state):
        plan = policy.ask(state)
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
    return policy.claim(state).leader
