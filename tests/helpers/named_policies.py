"""A small policy of every name in the registry."""

import numpy as np

import surepick as sp
from surepick.policies.base import Policy

OPTIONS = {
    "certified-linear": {"norm_bound": 2.0},
    "certified-kernel": {"norm_bound": 4.0, "gamma": 0.5},
    "linear-embedding": {"norm_bound": 2.0},
    "fixed-linear": {"norm_bound": 2.0},
    "kernel-embedding": {"norm_bound": 4.0, "gamma": 0.5},
    "fixed-kernel": {"norm_bound": 4.0, "gamma": 0.5},
    "neural-embedding": {"width": 16},
    "certified-neural": {"width": 16, "misspecification": 0.1},
    "sequential-halving": {"budget": 1000},
    "lingape": {"norm_bound": 2.0},
    "lingame": {"norm_bound": 2.0},
}
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]])
MEANS = FEATURES @ np.array([0.9, 0.2])
NAMES = sp.policy_names()


def make(name: str, arms: sp.Arms, **changes) -> Policy:
    settings = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(0.5)} | OPTIONS.get(name, {}) | changes
    return sp.make_policy(name, arms, **settings)
