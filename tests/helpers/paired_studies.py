"""Pairs within blocks on known truths: how often an arm that is worse than epsilon seems good enough."""

from collections.abc import Iterator

import numpy as np
from bounds import counted
from quick_leaders import quick_leaders

import surepick as sp
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Plan
from surepick.policies.base import stopped

GAP = 1.002  # just over epsilon = 1


def policy_of(num_arms: int, kind: str, *, delta: float, epsilon: float = 1.0, **options):
    """Of blocks, which may be off by any amount, or of streams, which share random numbers."""
    arms = sp.Arms(ids=range(num_arms))
    asked = {"epsilon": epsilon, "delta": delta, "noise": sp.Normal(), kind: "block", **options}
    return sp.make_policy("certified-independent", arms, **asked)


def seen_of(rewards: np.ndarray) -> Observations:
    """From a table with a row a block and a column an arm, NaN where nothing was measured."""
    blocks, arms = np.nonzero(np.isfinite(rewards))
    values, num_arms = rewards[blocks, arms], rewards.shape[1]
    return Observations(
        np.bincount(arms, minlength=num_arms).astype(np.int64),
        np.bincount(arms, values, minlength=num_arms),
        np.bincount(arms, values**2, minlength=num_arms),
        blocks=BlockTotals(blocks, arms, np.ones(len(arms), np.int64), values),
    )


def where(policy, plan: Plan) -> np.ndarray:
    """Which arms each block of the plan has, as the policy deals them."""
    blocking, arms = policy.traits.blocks, np.repeat(np.arange(len(plan.counts)), plan.counts)
    table = np.zeros((blocking.number_for(plan.counts), len(plan.counts)), bool)
    table[blocking.dealt(plan.counts), arms] = True
    return table


def drawn(rng: np.random.Generator, asked: np.ndarray, means, root, effects=0.0) -> np.ndarray:
    """Normal rewards with the covariance root root' in each block, NaN where nothing is asked."""
    noise = rng.standard_normal(asked.shape) @ np.asarray(root).T
    shift = np.broadcast_to(effects, len(asked))
    return np.where(asked, means + noise + shift[:, None], np.nan)


def alike(scales, correlation: float) -> np.ndarray:
    """A root of the covariance of arms that go together with one correlation."""
    spread = np.asarray(scales, float)
    size = len(spread)
    return np.linalg.cholesky(
        np.outer(spread, spread) * (correlation + (1.0 - correlation) * np.eye(size)) + 1e-12 * np.eye(size)
    )


def played(policy, means, root, *, seed: int, effects=lambda rng, blocks: 0.0):
    """(plans, states, the last one included) of a study until the policy stops."""
    rng, choice, state = np.random.default_rng([seed, 40]), np.random.default_rng([seed, 41]), policy.init()
    plans, states = [], [state]
    while not stopped(policy, state):
        plan = policy.ask(state)
        asked = where(policy, plan)
        rewards = drawn(rng, asked, means, root, effects(choice, len(asked)))
        state = policy.tell(state, plan, seen_of(rewards)).state
        plans.append(plan)
        states.append(state)
    return plans, states


@counted()
def wrong_answers(kind: str, runs: int, delta: float, *, best: str) -> Iterator[bool]:
    """Studies of a best arm and four worse by just over epsilon = 1 that end with another one.

    Standard deviations go from .2 to 2 and correlations are .8; in blocks an effect ten times as large is added to
    every other one.
    """
    scales = 0.2 * 10.0 ** np.linspace(0.0, 1.0, 5)
    root = alike(scales[::-1] if best == "noisiest" else scales, 0.8)
    policy, means = policy_of(5, kind, delta=delta), np.append(0.0, np.full(4, -GAP))
    for seed in range(runs):
        effects = (lambda rng, blocks: 20.0 * rng.standard_normal(blocks)) if kind == "blocks" else (lambda *_: 0.0)
        _, states = played(policy, means, root, seed=seed, effects=effects)
        yield bool(policy.claim(states[-1]).leader != 0)


@quick_leaders
def settled_wrongly(kind: str, rivals: int, delta: float, *, repeats: int, scale: float, looks: int) -> int:
    """Rivals, all better than the candidate by just over epsilon = 1, that a study believes not to be.

    The candidate itself hardly varies, so that each rival's process is a trial of its own. The effect of a block of
    blocks is a function of its number: large, and unlike for the blocks of one batch.
    """
    policy = policy_of(rivals + 1, kind, delta=delta)
    rng, state, asked = np.random.default_rng([repeats, 42]), policy.init(), np.ones((repeats, rivals + 1), bool)
    means = np.append(0.0, np.full(rivals, GAP))
    for look in range(looks):
        rewards = means + scale * rng.standard_normal(asked.shape)
        rewards[:, 0] = 1e-4 * rng.standard_normal(repeats)
        if kind == "blocks":
            rewards += 30.0 * ((np.arange(repeats) + look) % 3)[:, None]
        given = {"predicted_pulls": float(asked.sum()), "candidate": 0} if look else {}
        plan = Plan(round=state.round, counts=asked.sum(axis=0), **given)
        state = policy.tell(state, plan, seen_of(rewards)).state
    return int(np.sum(state.bounds_of(0)[1:] <= 1.0))


@counted()
def settled_pairs(
    kind: str, runs: int, delta: float, *, correlation: float, blocks: int, looks: int, more: int
) -> Iterator[bool]:
    """Studies of two arms, the rival better by just over epsilon = 1, in which the candidate is believed good enough.

    Args:
        correlation: of the two in a block.
        blocks: of a batch that have both; more: that have the candidate alone.
    """
    root = alike([1.0, 1.5], correlation)
    policy, means = policy_of(2, kind, delta=delta), np.array([0.0, GAP])
    both = np.concatenate([np.ones((blocks, 2), bool), np.tile([True, False], (more, 1))])
    for seed in range(runs):
        rng, state = np.random.default_rng([seed, 43]), policy.init()
        for look in range(looks):
            asked = np.ones((5, 2), bool) if look == 0 else both
            given = {"predicted_pulls": float(asked.sum()), "candidate": 0} if look else {}
            plan = Plan(round=state.round, counts=asked.sum(axis=0), **given)
            state = policy.tell(state, plan, seen_of(drawn(rng, asked, means, root))).state
        yield bool(state.bounds_of(0)[1] <= 1.0)
