"""More than ten candidates without features: what studies take on average, and the dearest of them.

    python benchmarks/many_candidates.py [--studies 100] [--rows "40 of" slippage] [--first-seed 700000]

Each row is an instance and an epsilon, played by `certified-independent` until it stops by itself, delta .05. Printed
are the mean with its standard error, the median, the dearest study, its ratio to the median, batches, wrong answers.
"""

import argparse
from collections.abc import Iterator

import numpy as np

import surepick as sp
from surepick.core.records import FloatArray
from surepick.noise import Noise

DELTA = 0.05


def instances() -> Iterator[tuple[str, FloatArray, float, Noise]]:
    """(name, means, epsilon, noise)."""
    ones, half, one = sp.Bernoulli(), sp.SubGaussian(0.5), sp.SubGaussian(1.0)
    for number in (40, 100):
        means = np.concatenate([[0.6], np.linspace(0.5, 0.2, number - 1)])
        yield f"{number} of 0 and 1, gap/1000", means, 1e-4, ones
        yield f"{number} of 0 and 1, gap/2", means, 0.05, ones
    for number in (20, 100, 1000):
        yield f"slippage {number}", np.concatenate([[0.1001], np.zeros(number - 1)]), 0.1, half
    spread = np.random.default_rng(2).uniform(-0.5, 0.0, 29)
    yield "30 normal, gap/1000", np.concatenate([[0.5], spread]), (0.5 - float(spread.max())) / 1000.0, one
    yield "20 equal", np.zeros(20), 5.0, sp.SubGaussian(3.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=700_000)
    parser.add_argument("--rows", nargs="*", default=[""], help="beginnings of their names")
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.studies)
    print(f"{'':26s}    mean   error   median   largest  / median  batches wrong")
    for name, means, epsilon, noise in instances():
        if not name.startswith(tuple(chosen.rows)):
            continue
        world = sp.environments.Environment(arms=sp.Arms(ids=range(len(means))), means=means, noise=noise)
        policy = sp.make_policy("certified-independent", world.arms, epsilon=epsilon, delta=DELTA, noise=noise)
        found = sp.simulate_many(policy, world, seeds=seeds)
        pulls, middle = found.pulls, float(np.median(found.pulls))
        error = pulls.std(ddof=1) / np.sqrt(len(pulls))
        print(
            f"{name:26s} {pulls.mean():7,.0f} ±{error:6,.0f} {middle:8,.0f} {pulls.max():9,d}"
            f" {pulls.max() / middle:9.1f} {found.rounds.mean():8.0f} {np.count_nonzero(~found.right):5d}",
            flush=True,
        )


if __name__ == "__main__":
    main()
