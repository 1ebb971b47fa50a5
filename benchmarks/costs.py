"""What is saved by planning in money: OMP_NUM_THREADS=1 python benchmarks/costs.py [--runs 50] [--most 10 100]

Each study runs twice on the same instance with rewards from the same stream: planned with the costs of measurements,
and planned as if all cost alike. Both are paid at the true costs, until the answer is certified.

The costs are between 1 and `most`: "at random" log-uniform, "two prices" 1 or `most` by a coin, "good is dear" a power
of `most` that rises with the rank of the mean, "good is cheap" one that falls.
"""

import argparse
from collections.abc import Callable

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream
from surepick.policies.base import stopped

DELTA = 0.05
Made = tuple[sp.environments.Environment, str, dict[str, float]]  # (world, policy, its options)


def linear(world: sp.environments.Environment, epsilon: float) -> Made:
    """With features."""
    return world, "certified-linear", {"norm_bound": 1.0, "epsilon": epsilon}


def ten_means(seed: int) -> Made:
    """Without features."""
    means = stream(seed, "costs", "means").normal(0.0, 0.5, 10)
    world = sp.environments.Environment(arms=sp.Arms(ids=range(10)), means=means, noise=sp.SubGaussian(0.5))
    return world, "certified-independent", {"epsilon": 0.1}


WORLDS: dict[str, Callable[[int], Made]] = {
    "soare, d = 5": lambda seed: linear(sp.environments.soare(5, 0.5, seed), 0.1),
    "sphere, 40 arms, d = 5": lambda seed: linear(sp.environments.sphere(num_arms=40, dim=5, seed=seed), 0.2),
    "10 arms, no features": ten_means,
}


def prices(means: np.ndarray, most: float, seed: int) -> dict[str, np.ndarray]:
    """What a measurement of each arm costs, by pattern."""
    rng, rank = stream(seed, "costs", "prices"), np.argsort(np.argsort(means)) / (len(means) - 1)
    return {
        "at random": most ** rng.random(len(means)),
        "two prices": np.where(rng.random(len(means)) < 0.5, 1.0, most),
        "good is dear": most**rank,
        "good is cheap": most ** (1.0 - rank),
    }


def paid(made: Made, seed: int, costs: np.ndarray, *, known: bool) -> tuple[float, bool]:
    """(money until the policy stopped, whether its answer is epsilon-best)."""
    world, name, options = made
    arms = sp.Arms(world.arms.features, world.arms.ids, costs=costs if known else None)
    policy = sp.make_policy(name, arms, delta=DELTA, noise=world.noise, evidence="carried", **options)
    state, money, number = policy.init(), 0.0, 0
    while not stopped(policy, state):
        plan = policy.ask(state)
        money += float(plan.counts @ costs)
        state = policy.tell(state, plan, world.pull(plan.counts, stream(seed, "costs", number))).state
        number += 1
    return money, world.is_epsilon_best(policy.claim(state).leader, options["epsilon"])


def rows(name: str, most: float, runs: int) -> list[str]:
    """The lines of the table for one kind of instance."""
    found: dict[str, list[tuple[float, float, bool]]] = {}
    for seed in range(runs):
        made = WORLDS[name](seed)
        for pattern, costs in prices(made[0].means, most, seed).items():
            (with_costs, right), (without, _) = (paid(made, seed, costs, known=known) for known in (True, False))
            found.setdefault(pattern, []).append((with_costs, without, right))
    lines = []
    for pattern, each in found.items():
        mine, other, right = np.array(each, dtype=np.float64).T
        error = np.std(mine - other * mine.mean() / other.mean()) / other.mean() / np.sqrt(runs)  # of a ratio of means
        lines.append(
            f"| {name} | 1 to {most:g}, {pattern} | {mine.mean():,.0f} | {other.mean():,.0f} | "
            f"{mine.mean() / other.mean():.2f} (± {error:.2f}) | {runs - int(right.sum())} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--most", type=float, nargs="+", default=[10.0, 100.0])
    asked = parser.parse_args()
    print("| instance | costs | money, planned with costs | without | ratio | wrong |\n|---|---|---|---|---|---|")
    for name in WORLDS:
        for most in asked.most:
            print("\n".join(rows(name, most, asked.runs)), flush=True)


if __name__ == "__main__":
    main()
