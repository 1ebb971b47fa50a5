"""Own-stop pulls of the certified policies, from arms that are alike to epsilons far below the gap.

    OMP_NUM_THREADS=1 python benchmarks/certified.py [--seeds 100] [--first 700000] [--only soare,slippage]
                                                     [--mnist DIR] [--data DIR]

Delta .05. "pulls" are those that a user pays: the mean over fresh seeds until the own stop, and its standard error; of
the recorded tables the median. "must" is the most that it may be. Constants of the policies were chosen on other
instances and seeds (docs/decisions/0022). Answers are counted as right if they are epsilon-best; where all others are
worse by epsilon that is every answer, and "best" says how often it was the best one.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import surepick as sp

DELTA = 0.05
worlds = sp.environments
World = Callable[[int], sp.environments.Environment]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        make: seed -> environment.
        must: the most that the mean (the median) may be.
        norm_bound: of linear rewards; None: without features.
        epsilon: in reward units, or a share of the gap between the best two arms where `of_gap`.
        share: of the seeds that are run.
        median: the median is what counts.
    """

    make: World
    must: float
    norm_bound: float | None = None
    epsilon: float = 0.1
    of_gap: bool = False
    share: float = 1.0
    median: bool = False


def soare(dim: int, angle: float) -> World:
    return lambda seed: worlds.soare(dim, angle, seed, sigma=0.5)


def slippage(num_arms: int, sigma: float) -> World:
    return lambda seed: worlds.one_better(num_arms, 0.1, seed, sigma=sigma)


def recorded(path: Path, names: str, reward: str, sigma: float, **how: bool) -> World:
    return lambda _: worlds.table(
        path, names, reward, names, noise=sp.SubGaussian(sigma), standardize=True, intercept=True, **how
    )


def rows(mnist: str, data: Path) -> dict[str, Row]:
    """The instances."""
    clusters = worlds.two_clusters
    line: list[sp.environments.Environment] = []

    def queueing(_: int) -> sp.environments.Environment:
        if not line:
            line.append(worlds.production_line(50, sigma=2.5))
        return line[0]

    barrel, silver = data / "pvlab/Crossed_barrel_dataset.csv", data / "pvlab/AgNP_dataset.csv"
    colours = "QAgNO3(%),Qpva(%),Qtsc(%),Qseed(%),Qtot(uL/min)"
    return {
        "two clusters, K 250": Row(lambda seed: clusters(num_arms=250, dim=25, seed=seed), 60, 0.9),
        "two clusters, K 1000": Row(lambda seed: clusters(num_arms=1000, dim=25, seed=seed), 56, 0.9),
        "norm reward, K 200": Row(lambda seed: clusters(num_arms=200, dim=20, reward="norm", seed=seed), 56, 1.2),
        "perturbation 1e-3": Row(lambda seed: clusters(num_arms=250, dim=25, perturbation=1e-3, seed=seed), 61, 0.9),
        "soare d 10 angle .6": Row(lambda seed: worlds.soare(10, 0.6, seed), 310, 1.0),
        "sphere": Row(lambda seed: worlds.sphere(100, 10, seed), 3_750, 1.0),
        "digits": Row(worlds.digits, 16_500, 2.0),
        "mnist": Row(lambda seed: sp.bench.datasets.mnist(mnist, seed), 50_000, 2.0, share=0.2),
        "soare d 5 angle .1, gap": Row(soare(5, 0.1), 520, 1.0, 1.0, of_gap=True),
        "soare d 10 angle .1, gap": Row(soare(10, 0.1), 520, 1.0, 1.0, of_gap=True),
        "soare d 5 angle .1, gap/10": Row(soare(5, 0.1), 1_300, 1.0, 0.1, of_gap=True),
        "soare d 10 angle .1, gap/10": Row(soare(10, 0.1), 1_300, 1.0, 0.1, of_gap=True),
        "soare d 5 angle .1, gap/1000": Row(soare(5, 0.1), 1_300, 1.0, 1e-3, of_gap=True),
        "soare d 10 angle .1, gap/1000": Row(soare(10, 0.1), 1_300, 1.0, 1e-3, of_gap=True),
        "soare d 10 angle .01, gap": Row(soare(10, 0.01), 45_000, 1.0, 1.0, of_gap=True),
        "50 uniform arms, gap/1000": Row(lambda seed: worlds.sphere(50, 9, seed), 1_200, 1.0, 1e-3, of_gap=True),
        "10 normal arms, gap/1000": Row(lambda seed: worlds.one_better(10, 0.6, seed), 560, None, 1e-3, of_gap=True),
        "100 Bernoulli arms, gap/1000": Row(
            lambda seed: worlds.falling_means(seed=seed), 23_000, None, 1e-3, of_gap=True
        ),
        "slippage K 100": Row(slippage(100, 0.5), 28_000),
        "slippage K 500": Row(slippage(500, 0.5), 140_000),
        "slippage K 1000": Row(slippage(1000, 0.5), 300_000),
        "slippage K 2000, sigma 1": Row(slippage(2000, 1.0), 2_900_000, share=0.2),
        "production line, K 57624": Row(queueing, 1_800_000, share=0.05),
        "crossed barrel": Row(
            recorded(barrel, "n,theta,r,t", "toughness", 19.0), 3_500, None, 10.0, share=0.2, median=True
        ),
        "silver nanoparticles": Row(
            recorded(silver, colours, "loss", 0.21, minimize=True), 2_000, None, 0.1, share=0.2, median=True
        ),
    }


def line(row: Row, seeds: range) -> str:
    """Pulls, what they must not exceed, right answers, seconds."""
    pulls, seconds, right, best, batches = [], [], 0, 0, []
    for seed in seeds:
        world = row.make(seed)
        epsilon = row.epsilon * float(np.partition(world.gaps, 1)[1]) if row.of_gap else row.epsilon
        options = {} if row.norm_bound is None else {"norm_bound": row.norm_bound}
        name = "certified-independent" if row.norm_bound is None else "certified-linear"
        started = time.perf_counter()
        policy = sp.make_policy(
            name, world.arms, epsilon=epsilon, delta=DELTA, noise=world.noise, evidence="carried", **options
        )
        run = sp.simulate(policy, world, seed=seed, max_pulls=2_000_000_000)
        seconds.append(time.perf_counter() - started)
        pulls.append(run.pulls)
        batches.append(len(run.rounds))
        right += run.success and run.verdict == "certified"
        best += bool(world.gaps[run.arm] == 0.0)
    middle = float(np.median(pulls) if row.median else np.mean(pulls))
    error = float(np.std(pulls)) / math.sqrt(len(pulls))
    met = "met" if middle <= row.must else "MISSED"
    return (
        f"{middle:>12,.0f} +-{error:>9,.0f} {np.median(pulls):>12,.0f} {max(pulls):>12,} {row.must:>11,.0f} {met:>7s} "
        f"{right:>4d}/{len(pulls):<4d}{best:>5d} {np.mean(batches):>6.1f} {np.median(seconds):>8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=700_000)
    parser.add_argument("--only", default="", help="instances whose name holds one of these words")
    parser.add_argument("--mnist", default="../shared/data/mnist")
    parser.add_argument("--data", default="../shared/data")
    chosen = parser.parse_args()
    words = [word for word in chosen.only.split(",") if word]
    print(
        f"{chosen.seeds} seeds from {chosen.first}\n{'':30s}{'pulls':>12s} {'':>11s} "
        f"{'median':>12s} {'largest':>12s} {'must':>11s} {'':>7s} {'right':>9s}{'best':>5s} {'rounds':>6s} "
        f"{'seconds':>8s}"
    )
    for name, row in rows(chosen.mnist, Path(chosen.data)).items():
        if words and not any(word in name for word in words):
            continue
        seeds = range(chosen.first, chosen.first + max(1, round(chosen.seeds * row.share)))
        print(f"{name:30s}{line(row, seeds)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
