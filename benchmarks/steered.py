"""What a class of means saves of which the user gives the name alone: own-stop pulls of certified-readings.

    OMP_NUM_THREADS=1 python benchmarks/steered.py [--seeds 20] [--first 900000] [--only soare,sphere]

The recorded tables are read from ../shared/data.

Delta .05, epsilon .1. "pulls" are the mean over fresh seeds until the own stop, with its standard error; "share" is
that of what certified-independent takes on the same seeds; "right" counts certified answers within epsilon of the best.
"must" is the most that the pulls may be, or their share. Constants of the policy were chosen on other seeds.
"""

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream

EPSILON, DELTA, SIGMA = 0.1, 0.05, 0.5
worlds = sp.environments
World = Callable[[int], sp.environments.Environment]


def linear(num_arms: int, dim: int, bumps: int = 0) -> World:
    """Normal features of mean length 1, a direction of length 1, and a few means that are off by N(0, epsilon^2)."""

    def make(seed: int) -> sp.environments.Environment:
        rng = stream(seed, "linear", num_arms, dim)
        features = rng.normal(size=(num_arms, dim))
        features /= np.linalg.norm(features, axis=1).mean()
        direction = rng.normal(size=dim)
        means = features @ (direction / np.linalg.norm(direction))
        means[rng.choice(num_arms, bumps, replace=False)] += EPSILON * rng.normal(size=bumps)
        return sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(SIGMA))

    return make


def smooth(num_arms: int, dim: int) -> World:
    """Sums of eight Gaussian bumps on random points of the unit cube, of range 1."""

    def make(seed: int) -> sp.environments.Environment:
        rng = stream(seed, "smooth", num_arms, dim)
        features, centres = rng.random((num_arms, dim)), rng.random((8, dim))
        squares = np.sum((features[:, None] - centres[None]) ** 2, axis=2)
        means = np.exp(-8.0 * squares / dim) @ rng.normal(size=8)
        return sp.environments.Environment(
            arms=sp.Arms(features), means=means / np.ptp(means), noise=sp.SubGaussian(SIGMA)
        )

    return make


def useless(seed: int) -> sp.environments.Environment:
    """Normal means that have nothing to do with the features."""
    rng = stream(seed, "useless")
    features, means = rng.normal(size=(100, 3)), 0.3 * rng.normal(size=100)
    return sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(SIGMA))


@dataclass(frozen=True)
class Row:
    """One line of the table: the world, what is named, and the most that pulls may be, as a number or as a share."""

    make: World
    assume: str
    trust: str | float = "exact"
    must: float | None = None
    share: float | None = None
    epsilon: float = EPSILON


def clusters(seed: int) -> sp.environments.Environment:
    return worlds.two_clusters(num_arms=250, dim=25, seed=seed)


@cache
def recorded(path: str, *columns: str, sigma: float, minimize: bool | None = None) -> sp.environments.Environment:
    """Measurements of chemists that were recorded with repeats; each pull draws one of them."""
    return worlds.table(DATA / path, *columns, noise=sp.SubGaussian(sigma), minimize=minimize, standardize=True)


def barrel(_: int) -> sp.environments.Environment:
    names = "n,theta,r,t"
    return recorded("pvlab/Crossed_barrel_dataset.csv", names, "toughness", names, sigma=19.0)


def silver(_: int) -> sp.environments.Environment:
    return recorded("pvlab/AgNP_dataset.csv", COLOURS, "loss", COLOURS, sigma=0.21, minimize=True)


def photo(_: int) -> sp.environments.Environment:
    return recorded("olympus/photo_wf3", sigma=0.1)


DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
COLOURS = "QAgNO3(%),Qpva(%),Qtsc(%),Qseed(%),Qtot(uL/min)"
ROWS = {
    "soare d 10 angle .6": Row(lambda seed: worlds.soare(10, 0.6, seed), "linear", must=340),
    "sphere 100 x 10": Row(lambda seed: worlds.sphere(100, 10, seed), "linear", must=4_100),
    "two clusters 250 x 25": Row(clusters, "linear", must=62),
    "linear K 200 d 5, roughly": Row(linear(200, 5), "linear", "roughly", share=0.42),
    "ten bumps, K 200 d 6, roughly": Row(linear(200, 6, 10), "linear", "roughly", share=0.5),
    "two clusters, roughly": Row(clusters, "linear", "roughly", share=0.5),
    "smooth K 200 d 2": Row(smooth(200, 2), "smooth", share=0.75),
    "smooth K 300 d 3": Row(smooth(300, 3), "smooth", share=0.4),
    "smooth K 300 d 4": Row(smooth(300, 4), "smooth", share=0.7),
    "smooth K 200 d 3, roughly": Row(smooth(200, 3), "smooth", "roughly", share=0.68),
    "auto, smooth K 200 d 2": Row(smooth(200, 2), "auto", share=0.8),
    "auto, smooth K 300 d 3": Row(smooth(300, 3), "auto", share=0.5),
    "auto, smooth K 300 d 4": Row(smooth(300, 4), "auto", share=0.8),
    "auto, useless features": Row(useless, "auto", share=1.15),
    "auto, crossed barrel": Row(barrel, "auto", share=1.15, epsilon=10.0),
    "auto, silver nanoparticles": Row(silver, "auto", share=1.15, epsilon=0.1),
    "auto, photo_wf3": Row(photo, "auto", share=1.15, epsilon=0.2),
}


def played(
    name: str, seed: int, make: World, epsilon: float = EPSILON, **options: str | float
) -> tuple[int, bool, float]:
    """(pulls, whether the answer is certified and within epsilon, seconds)."""
    world, started = make(seed), time.perf_counter()
    policy = sp.make_policy(name, world.arms, epsilon=epsilon, delta=DELTA, noise=world.noise, **options)
    run = sp.simulate(policy, world, seed=seed, max_pulls=2_000_000)
    return run.pulls, bool(run.success and run.verdict == "certified"), time.perf_counter() - started


@cache
def independent(make: World, seed: int, epsilon: float) -> int:
    """What is paid where nothing is assumed."""
    return played("certified-independent", seed, make, epsilon)[0]


def line(name: str, row: Row, seeds: range) -> str:
    """A line of the table."""
    named = {"assume": row.assume, "trust": row.trust}
    found = [played("certified-readings", seed, row.make, row.epsilon, **named) for seed in seeds]
    pulls = np.array([one[0] for one in found])
    usual = np.array([independent(row.make, seed, row.epsilon) for seed in seeds])
    mean, share = float(pulls.mean()), float(pulls.mean() / usual.mean())
    must = "" if row.must is None else f"{row.must:,.0f}"
    must = must if row.share is None else f"{row.share:g}"
    met = (row.must is None or mean <= row.must) and (row.share is None or share <= row.share)
    said = "" if not must else "met" if met else "MISSED"
    right, seconds = sum(one[1] for one in found), float(np.median([one[2] for one in found]))
    return (
        f"| {name} | {row.assume} | {row.trust} | {mean:,.0f} ± {pulls.std() / math.sqrt(len(pulls)):,.0f} "
        f"| {usual.mean():,.0f} | {share:.2g} | {must} | {said} | {right} of {len(pulls)} | {seconds:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=900_000)
    parser.add_argument("--only", default="", help="names that begin so, with commas")
    asked = parser.parse_args()
    wanted = tuple(asked.only.split(","))
    print("| instance | assume | trust | pulls | independent | share | must | | right | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, row in ROWS.items():
        if name.startswith(wanted):
            print(line(name, row, range(asked.first, asked.first + asked.seeds)), flush=True)


if __name__ == "__main__":
    main()
