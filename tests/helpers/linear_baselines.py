"""The four linear baselines, instances for them, and studies on these."""

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.base import Problem, stopped
from surepick_bench.policies.xy import fixed_design_multiplier

SEEDS = range(5)


def make(name, features, **changes):
    usual = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(0.5)}
    usual |= {"norm_bound": 2.0} if name.startswith("lin") else {}
    return sp.make_policy(name, sp.Arms(features), **(usual | changes))


def drawn(seed, num_arms=7, dim=3):
    """Features, and what 40 pulls spread at random brought."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(num_arms, dim))
    counts = np.bincount(rng.integers(num_arms, size=40), minlength=num_arms)
    return features, Observations(counts, counts * rng.normal(size=num_arms))


def multiplier(constants, *, sigma=1.0, pulls, look, num_arms, delta):
    asked = Problem(num_arms, 0.1, delta, sp.SubGaussian(sigma))
    return fixed_design_multiplier(constants, asked, pulls=pulls, look=look)


def played(policy, means, *, most=400):
    """The states of a study whose rewards are the means."""
    states = [policy.init()]
    while not stopped(policy, states[-1]) and len(states) < most:
        plan = policy.ask(states[-1])
        states.append(policy.tell(states[-1], plan, Observations(plan.counts, plan.counts * means)).state)
    return states


def played_once(policy, seen):
    """The state after one batch that brought `seen`."""
    state = policy.init()
    return policy.tell(state, policy.ask(state), seen).state
