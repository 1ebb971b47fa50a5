"""Batches in blocks, with effects that somebody chooses, for policies whose weights sum to 0 within each block."""

from collections.abc import Callable, Iterator

import numpy as np
from bounds import counted
from quick_leaders import quick_leaders

import surepick as sp
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Plan
from surepick.policies.base import stopped
from surepick.policies.carried.block_rule import BlockEquations, equations

GAP = 1.002  # just over epsilon = 1
Effects = Callable[[np.random.Generator, np.ndarray], np.ndarray]  # pulls of (block, arm) -> effect of each block


def totals_of(counts: np.ndarray, sums: np.ndarray) -> BlockTotals:
    """From tables with a row a block and a column an arm."""
    blocks, arms = np.nonzero(counts)
    return BlockTotals(blocks, arms, counts[blocks, arms], sums[blocks, arms])


def seen_of(counts: np.ndarray, sums: np.ndarray) -> Observations:
    return Observations(counts.sum(axis=0), sums.sum(axis=0), blocks=totals_of(counts, sums))


def dealt(policy, plan: Plan) -> np.ndarray:
    """The plan's pulls as the policy deals them, with a row a block and a column an arm."""
    blocking, num_arms = policy.traits.blocks, len(plan.counts)
    table = np.zeros((blocking.number_for(plan.counts), num_arms), np.int64)
    np.add.at(table, (blocking.dealt(plan.counts), np.repeat(np.arange(num_arms), plan.counts)), 1)
    return table


def shuffled(rng: np.random.Generator, plan: Plan, size: int) -> np.ndarray:
    """The plan's pulls in blocks of that size, whoever comes: some lack the candidate."""
    pulls = rng.permutation(np.repeat(np.arange(len(plan.counts)), plan.counts))
    table = np.zeros((-(-len(pulls) // size), len(plan.counts)), np.int64)
    np.add.at(table, (np.arange(len(pulls)) // size, pulls), 1)
    return table


def drawn(rng: np.random.Generator, counts: np.ndarray, means: np.ndarray, sigma: float) -> np.ndarray:
    """Normal rewards without effects, added up."""
    return counts * means + sigma * np.sqrt(counts) * rng.standard_normal(counts.shape)


def played(policy, means: np.ndarray, sigma: float, *, seed: int, effects: Effects, size: int | None = None):
    """(plans, states, the last one included) of a study until the policy stops.

    Args:
        effects: of the blocks of a batch.
        size: of blocks into which pulls go in any order; None: as the policy deals them.
    """
    rng, choice, state = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2]), policy.init()
    plans, states = [], [state]
    while not stopped(policy, state):
        plan = policy.ask(state)
        counts = dealt(policy, plan) if size is None else shuffled(rng, plan, size)
        sums = drawn(rng, counts, means, sigma) + counts * effects(choice, counts)[:, None]
        state = policy.tell(state, plan, seen_of(counts, sums)).state
        plans.append(plan)
        states.append(state)
    return plans, states


def study_in_blocks() -> sp.Study:
    """A finished study of five arms in blocks of four, each block off by a large amount."""
    arms, means = sp.Arms(ids=list("abcde")), np.array([0.0, 1.0, 0.4, 0.1, 0.2])
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": "subgaussian:0.5", "blocks": "day", "block_size": 4}
    study, rng = sp.Study(sp.make_policy("certified-independent", arms, **asked)), np.random.default_rng(5)

    def measure(ids: list[str]) -> np.ndarray:
        at = [arms.ids.index(name) for name in ids]
        return means[at] + rng.normal(0.0, 10.0) + 0.5 * rng.standard_normal(len(ids))

    study.run(measure, progress=False)
    return study


def against_the_best(rng: np.random.Generator, counts: np.ndarray) -> np.ndarray:
    """Effects of 10 that make arm 0, the best one, look bad where blocks have much of it, and good where little."""
    share = counts[:, 0] / np.maximum(counts.sum(axis=1), 1)
    return np.where(share > share.mean(), -10.0, 10.0) + rng.normal(0.0, 1.0, len(counts))


@counted()
def wrong_answers(runs: int, delta: float, **options) -> Iterator[bool]:
    """Studies of a best arm among four equals, all worse by just over epsilon = 1, that end with another one."""
    means = np.append(0.0, np.full(4, -GAP))
    arms = sp.Arms(ids=range(5))
    asked = {"epsilon": 1.0, "delta": delta, "noise": sp.SubGaussian(0.5), "blocks": "day"}
    policy = sp.make_policy("certified-independent", arms, **asked, **options)
    for seed in range(runs):
        _, states = played(policy, means, 0.5, seed=seed, effects=against_the_best, size=4)
        yield bool(policy.claim(states[-1]).leader != 0)


@quick_leaders
def settled_wrongly(rivals: int, delta: float, *, looks: int = 60, in_a_block: int = 25, told: float = 2.0) -> int:
    """Rivals, all better than the candidate by just over epsilon = 1, that a study believes not to be.

    Arm 0 is known exactly, so that each rival's process is a trial of its own. An effect is a function of the block's
    number and of how rivals stand so far: it is large and positive where they look good.
    """
    noise = sp.SubGaussian((1e-9, *[told] * rivals))
    asked = {"epsilon": 1.0, "delta": delta, "noise": noise, "blocks": "plate", "control": "0"}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=range(rivals + 1)), **asked)
    rng, state, means = np.random.default_rng([4, 1]), policy.init(), np.append(0.0, np.full(rivals, GAP))
    number, looked = -(-rivals // in_a_block), np.zeros(rivals)
    for look in range(looks):
        order, counts = rng.permutation(rivals), np.zeros((number, rivals + 1), np.int64)
        counts[np.arange(rivals) // in_a_block, 1 + order] = 1
        counts[:, 0] = 1000 + np.arange(number)
        sums = np.zeros(counts.shape)
        at = counts[:, 1:] > 0
        sums[:, 1:][at] = (GAP + 2.0 * rng.standard_normal(at.shape))[at]
        sums[:, 0] = 0.0
        standing = np.array([looked[row].sum() for row in at])
        effects = 10.0 * np.sign(standing) + 3.0 * np.arange(number) % 7
        looked += (sums[:, 1:] - GAP * at).sum(axis=0)
        given = {"predicted_pulls": float(counts.sum()), "candidate": 0} if look else {}
        plan = Plan(round=state.round, counts=counts.sum(axis=0), dim=len(means), **given)
        state = policy.tell(state, plan, seen_of(counts, sums + counts * effects[:, None])).state
    return int(np.sum(state.bounds_of(0)[1:] <= 1.0))


def unbalanced(seen: BlockTotals, *others) -> BlockEquations:
    """The saboteur: the batch as if it were one block."""
    counts = np.bincount(seen.arms, seen.counts).astype(np.int64)
    sums = np.bincount(seen.arms, seen.sums)
    return equations(BlockTotals.one(counts, sums), *others)


# --- with features


LINE = np.column_stack([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], [0.0, -1.0, -0.5, 0.2, 0.6, 1.0]])
IN_PLANE = np.array([[1.0, 0.0], [0.6, 0.8], [0.6, -0.8]])  # a rival, and two arms that tell of it


def of_features(features: np.ndarray, **options) -> sp.Policy:
    """Certified-linear on arms with these vectors, in blocks."""
    return sp.make_policy("certified-linear", sp.Arms(features, ids=range(len(features))), blocks="day", **options)


@counted()
def wrong_answers_on_features(runs: int, delta: float) -> Iterator[bool]:
    """As `wrong_answers`, where the means are linear: five arms that differ in what does not count are all bad."""
    noise, means = sp.SubGaussian(0.5), LINE @ [GAP, 0.0]
    policy = of_features(LINE, epsilon=1.0, delta=delta, noise=noise, norm_bound=4.0)
    for seed in range(runs):
        _, states = played(policy, means, 0.5, seed=seed, effects=against_the_best, size=4)
        yield bool(policy.claim(states[-1]).leader != 0)


def settled_wrongly_on_features(
    trials: int, delta: float, *, groups: int = 50, looks: int = 40, in_a_block: int = 25, told: float = 2.0
) -> int:
    """As `settled_wrongly`, each trial in a plane of its own, in which two other arms tell of the rival too."""
    assert trials % groups == 0
    features, at = np.zeros((1 + 3 * groups, 2 * groups)), np.arange(groups)
    for arm, vector in enumerate(IN_PLANE):
        features[1 + 3 * at + arm, 2 * at], features[1 + 3 * at + arm, 2 * at + 1] = vector
    theta = np.tile([GAP, 0.0], groups)
    noise = sp.SubGaussian((1e-4, *[told] * (3 * groups)))
    asked = {"epsilon": 1.0, "delta": delta, "noise": noise, "norm_bound": 1.1 * float(np.linalg.norm(theta))}
    policy, rivals, wrong = of_features(features, **asked), 1 + 3 * at, 0
    for trial in range(trials // groups):
        states = _looks(policy, features @ theta, rivals, looks, in_a_block, np.random.default_rng([trial, 4]))
        wrong += int(np.sum(states[-1].bounds_of(0)[rivals] <= 1.0))
    return wrong


def _looks(policy, means: np.ndarray, rivals: np.ndarray, looks: int, in_a_block: int, rng: np.random.Generator):
    """States of a study whose effects are large and positive in blocks with rivals that look good so far."""
    states, num_arms = [policy.init()], len(means)
    number, looked = -(-(num_arms - 1) // in_a_block), np.zeros(num_arms)
    for look in range(looks):
        order, counts = rng.permutation(num_arms - 1), np.zeros((number, num_arms), np.int64)
        counts[np.arange(num_arms - 1) // in_a_block, 1 + order] = 1
        counts[:, 0] = 1000 + np.arange(number)
        sums = drawn(rng, counts, means, 2.0)
        sums[:, 0] = 0.0
        standing = np.array([looked[rivals][row[rivals] > 0].sum() for row in counts])
        effects = 10.0 * np.sign(standing) + 3.0 * np.arange(number) % 7
        looked += (sums - counts * means).sum(axis=0)
        given = {"predicted_pulls": float(counts.sum()), "candidate": 0} if look else {}
        plan = Plan(round=states[-1].round, counts=counts.sum(axis=0), dim=policy.traits.embedding.max_dim, **given)
        states.append(policy.tell(states[-1], plan, seen_of(counts, sums + counts * effects[:, None])).state)
    return states


def as_one_block(seen: Observations) -> BlockTotals:
    """The saboteur: the batch as if it were one block."""
    return BlockTotals.one(seen.counts, seen.sums)
