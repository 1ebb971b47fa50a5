"""Studies of four arms with each kind of policy, and their rewards."""

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream

IDS = ("a", "b", "c", "d")


FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]])


MEANS = FEATURES @ np.array([0.9, 0.2])


OPTIONS = {"linear-embedding": {"norm_bound": 2.0}, "action-elimination": {"growth": 0.3}, "rage": {}}


def make_study(name="linear-embedding", *, noise=None, epsilon=0.3, minimize=False, log=None, **changes) -> sp.Study:
    arms = sp.Arms(FEATURES, IDS)
    noise = sp.SubGaussian(0.5) if noise is None else noise
    policy = sp.make_policy(name, arms, epsilon=epsilon, delta=0.05, noise=noise, **(OPTIONS[name] | changes))
    return sp.Study(arms, policy, minimize=minimize, log=log)


def rewards_of(plan, number, sign=1.0):
    """(ids, rewards) of every pull that the plan asks for; a function of the number of the plan."""
    ids = [name for name, pulls in plan.table() for _ in range(pulls)]
    noise = stream(7, "rewards", number).normal(0.0, 0.5, len(ids))
    return ids, sign * (np.array([MEANS[IDS.index(name)] for name in ids]) + noise)


def finish(study, sign=1.0, parts=1, shuffle=None):
    """Tell every plan to the end, in so many parts and in the order of the generator."""
    number = 0
    while (plan := study.ask()) is not None:
        ids, rewards = rewards_of(plan, number, sign)
        order = np.arange(len(ids)) if shuffle is None else shuffle.permutation(len(ids))
        for part in np.array_split(order, parts):
            study.tell([ids[row] for row in part], rewards[part])
        number += 1
    return study


class Listener:
    """A policy that remembers what it was told."""

    def __init__(self, policy):
        self.policy = policy
        self.heard = []

    def __getattr__(self, attribute):
        return getattr(self.policy, attribute)

    def tell(self, state, plan, seen):
        self.heard.append(seen)
        return self.policy.tell(state, plan, seen)
