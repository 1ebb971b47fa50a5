"""Worlds, policies and studies for the tests of certified-neural."""

from __future__ import annotations

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.policies.base import stopped
from surepick.policies.steered.neural import CertifiedNeural


def smooth_world(seed: int = 0, num_arms: int = 40, sigma: float = 0.05) -> sp.environments.Environment:
    features = np.random.default_rng(seed).standard_normal((num_arms, 2))
    means = 0.5 + 0.3 * np.tanh(features[:, 0])
    return sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(sigma))


def policy_of(world, **changes) -> CertifiedNeural:
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": world.noise, "width": 32} | changes
    return sp.make_policy("certified-neural", world.arms, **settings)


def told_some(world, pulls: int = 3, seed: int = 0) -> Observations:
    return world.pull(np.full(world.num_arms, pulls), np.random.default_rng(seed))


def played(policy, world, *, seed: int = 0, forget: bool = False, most: int = 1_000):
    """(states, plans) of a study; the memo emptied before every call if asked for."""
    rng, states, plans = np.random.default_rng([seed, 3]), [policy.init()], []
    while not stopped(policy, states[-1]) and len(plans) < most:
        if forget:
            policy._cache._kept.clear()
        plans.append(policy.ask(states[-1]))
        if forget:
            policy._cache._kept.clear()
        states.append(policy.tell(states[-1], plans[-1], world.pull(plans[-1].counts, rng)).state)
    return states, plans
