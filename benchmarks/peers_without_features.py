"""LUCB1 and sequential halving beside published numbers.

    python benchmarks/peers_without_features.py [--runs 4000]

Sequential halving: share of wrong answers on instances for which a later paper tabulates it (its own has curves only);
the best arm is put at a random place, so that ties favour nobody. LUCB1: pulls on an instance of its own family, and
beside them action elimination and certified-independent.
"""

import argparse
import math
from collections.abc import Iterator

import numpy as np

import surepick as sp

PUBLISHED = [  # instance, K, budget, percent wrong: Wang, Tzeng & Proutiere (2023), tables 2 and 4, 40,000 runs
    ("one group", 10, 6_400, 19.64),
    ("one group", 10, 8_000, 14.46),
    ("one group", 20, 16_000, 17.94),
    ("one group", 40, 40_000, 16.12),
    ("linear", 10, 3_200, 4.97),
    ("linear", 20, 10_000, 9.70),
    ("linear", 40, 25_000, 17.92),
]
MEANS = {
    "one group": lambda num_arms: np.where(np.arange(num_arms) == 0, 0.5, 0.45),
    "linear": lambda num_arms: 0.75 - np.arange(num_arms) / (2 * num_arms),
}


def halving(instance: str, num_arms: int, budget: int, runs: int) -> tuple[int, int]:
    """(wrong answers, runs)."""
    means = MEANS[instance](num_arms)
    arms = sp.Arms(np.eye(num_arms))
    policy = sp.make_policy(
        "sequential-halving", arms, budget=budget, epsilon=1e-9, delta=0.05, noise=sp.Bernoulli(), gap_bound=1.0
    )
    wrong = 0
    for seed in range(runs):
        shuffled = np.random.default_rng(seed).permutation(means)
        world = sp.environments.Environment(arms=arms, means=shuffled, noise=sp.Bernoulli())
        wrong += not sp.simulate(policy, world, seed=seed).success
    return wrong, runs


def lucb(runs: int) -> Iterator[tuple[str, float, int]]:
    """(policy, mean pulls, wrong answers) on 15 Bernoulli arms, 1/2 and 1/2 - a/40, epsilon .04, delta .1."""
    means = 0.5 - np.arange(1, 16) / 40.0
    means[0] = 0.5
    arms = sp.Arms(np.eye(15))
    world = sp.environments.Environment(arms=arms, means=means, noise=sp.Bernoulli())
    for name, options in (
        ("lucb", sp.paper_settings("lucb")),
        ("lucb", {}),
        ("action-elimination", {}),
        ("certified-independent", {}),
    ):
        policy = sp.make_policy(name, arms, epsilon=0.04, delta=0.1, noise=sp.Bernoulli(), **options)
        done = [sp.simulate(policy, world, seed=seed) for seed in range(runs)]
        label = " ".join([name, *(f"{key}={value:g}" for key, value in options.items())])
        yield label, float(np.mean([run.pulls for run in done])), sum(not run.success for run in done)
    gaps = np.maximum(means[0] - means, 0.02)  # of the paper's H^(epsilon/2): gaps of at least epsilon / 2
    gaps[0] = max(means[0] - means[1], 0.02)
    hardness = float(np.sum(1.0 / gaps**2))
    print(f"H^(epsilon/2) ln(H^(epsilon/2) / delta) = {hardness * math.log(hardness / 0.1):,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4000, help="of sequential halving on each instance")
    parser.add_argument("--studies", type=int, default=10, help="of LUCB1 and the policies beside it")
    chosen = parser.parse_args()
    print("sequential halving   K   budget  published %   ours %   ratio")
    for instance, num_arms, budget, published in PUBLISHED:
        wrong, runs = halving(instance, num_arms, budget, chosen.runs)
        ours = 100.0 * wrong / runs
        print(f"{instance:15s} {num_arms:6d} {budget:8,d} {published:12.2f} {ours:8.2f} {ours / published:7.2f}")
    for label, pulls, wrong in lucb(chosen.studies):
        print(f"{label:25s} {pulls:10,.0f} pulls, {wrong} of {chosen.studies} wrong")


if __name__ == "__main__":
    main()
