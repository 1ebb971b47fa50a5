"""All outcomes of a few batches in blocks whose effects follow what was seen: what a process is worth on average."""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from block_studies import seen_of

from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.policies.sequential import state as rest


def few_in_blocks(rng: np.random.Generator, num_arms: int) -> np.ndarray:
    """Four pulls in two blocks, with a row a block and a column an arm."""
    table = np.zeros((2, num_arms), np.int64)
    np.add.at(table, (rng.integers(0, 2, 4), rng.integers(0, num_arms, 4)), 1)
    return table


def effects_of(past: float, block: int) -> float:
    """What an adversary adds: large, and by what was seen so far."""
    return 7.0 * math.copysign(1.0, math.sin(37.0 * past + block)) * (1.0 + (past > 0.5))


def outcomes(
    counts: np.ndarray, past: float, means: np.ndarray, sigmas: np.ndarray
) -> Iterator[tuple[float, Observations, float]]:
    """(probability, what is seen, the past with it): rewards are mean +- sigma, and effects follow what came before."""
    pulls = [(block, arm) for block, arm in zip(*np.nonzero(counts), strict=True) for _ in range(counts[block, arm])]
    for signs in itertools.product((-1.0, 1.0), repeat=len(pulls)):
        sums, so_far = np.zeros(counts.shape), past
        for block in range(len(counts)):
            effect, noise = effects_of(so_far, block), 0.0
            for (place, arm), sign in zip(pulls, signs, strict=True):
                if place == block:
                    sums[block, arm] += means[arm] + effect + sign * sigmas[arm]
                    noise += sign * sigmas[arm]
            so_far += noise
        yield 0.5 ** len(pulls), seen_of(counts, sums), so_far


def excess(
    policy, means: np.ndarray, sigmas: np.ndarray, *, seed: int, batches: int, log_martingales: Callable
) -> tuple[float, float]:
    """(the largest E M_j over the arms, less the weight of its first start, or 1 where some start anew; how much log
    M_j varies).

    Args:
        log_martingales: state -> log M_j of each arm, which takes the means.
    """
    num_arms = len(means)
    rng, opening = np.random.default_rng([seed, 7]), policy.ask(policy.init())
    first = np.ones((1, num_arms), np.int64)
    begun = policy.tell(policy.init(), opening, next(outcomes(first, 0.0, means, sigmas))[1]).state
    ends = [(1.0, begun, float(rng.normal()))]
    for batch in range(batches):
        grown = []
        for place, (chance, state, past) in enumerate(ends):
            choice = np.random.default_rng([seed, batch, place])
            counts = few_in_blocks(choice, num_arms)
            more = float(counts.sum()) * choice.choice([1.0, 4.0])
            plan = Plan(
                round=state.round,
                counts=counts.sum(axis=0),
                dim=opening.dim,
                candidate=int(choice.integers(num_arms)),
                predicted_pulls=more,
            )
            for share, seen, after in outcomes(counts, past, means, sigmas):
                grown.append((chance * share, policy.tell(state, plan, seen).state, after))
        ends = grown
    assert abs(sum(chance for chance, _, _ in ends) - 1.0) < 1e-9
    values = np.array([log_martingales(state) for _, state, _ in ends])
    found = np.array([chance for chance, _, _ in ends]) @ np.exp(values)
    starts = np.array([(state.vectors or state.means).starts for _, state, _ in ends])
    most = 1.0 if starts.max() > 1 else math.exp(float(rest.start_weights(np.ones(1, np.int64))[0]))
    return float(found.max()) - most, float(np.std(values, axis=0).max())
