"""Designs and pulls where many rows are near copies of few, beside exact copies of the same rows.

    OMP_NUM_THREADS=1 python benchmarks/near_copies.py [--part designs|pulls] [--seeds 20] [--first 7000]

Each entry of a copy is off by a share of it, normal with standard deviation "jitter". Designs are at 1 %: the median
ratio of the processor's time to that of exact copies, the largest gap, and the median ratio of the arms with weight.
Pulls are those until the own stop.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import surepick as sp
from surepick.core.plans import Design
from surepick.core.records import FloatArray
from surepick.designs import solve_design, solve_star_design
from surepick.environments import Environment
from surepick.errors import NotConverged

JITTERS = (1e-2, 1e-4, 1e-6, 1e-8, 1e-12)
SHAPES = ((40, 50, 8), (40, 100, 10), (48, 40, 20), (24, 200, 3), (30, 100, 5), (50, 4, 12))  # places, copies, d
STUDY, SIGMA, EPSILON = (20, 10, 5), 0.5, 0.2
TOLERANCE = 0.01
OPTIONS: dict[str, dict[str, float]] = {"certified-linear": {"norm_bound": 1.0}, "rage": {}}


def places(kind: str, number: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Distinct rows of a kind, (number, dim)."""
    if kind == "gaussian":
        return rng.standard_normal((number, dim))
    if kind == "cauchy":
        return rng.standard_cauchy((number, dim))
    if kind == "student":
        return rng.standard_t(2, (number, dim))
    if kind == "binary":
        return rng.integers(0, 2, (number, dim)) * 1.0
    return np.cos(np.arange(dim) * rng.uniform(0.0, np.pi, (number, 1)))


def copies(rows: FloatArray, each: int, jitter: float, rng: np.random.Generator) -> FloatArray:
    """Each row several times, every entry off by a share of it."""
    many = np.repeat(rows, each, axis=0)
    return many * (1.0 + jitter * rng.standard_normal(many.shape))


def star(features: FloatArray) -> Design:
    return solve_star_design(features, 0, np.ones(len(features)), tolerance=TOLERANCE)


def timed(solve: Callable[[FloatArray], Design], features: FloatArray) -> tuple[float, Design]:
    """(seconds, the design; the best one where it missed the tolerance)."""
    begin = time.process_time()
    try:
        design = solve(features)
    except NotConverged as unfinished:
        design = unfinished.best
    return time.process_time() - begin, design


def design_lines(seeds: range) -> Iterator[str]:
    """A line for each kind and shape: the ratio of the times, the largest gap and the most arms."""
    for kind in ("gaussian", "cauchy", "student", "binary", "cosine"):
        for number, each, dim in SHAPES:
            for name, solve in (("pairs", lambda x: solve_design(x, tolerance=TOLERANCE)), ("star", star)):
                parts = []
                for jitter in JITTERS:
                    ratios, gaps, arms = [], [], []
                    for seed in seeds:
                        rng = np.random.default_rng(seed)
                        rows = places(kind, number, dim, rng)
                        exact, like = timed(solve, copies(rows, each, 0.0, rng))
                        seconds, design = timed(solve, copies(rows, each, jitter, rng))
                        ratios.append(seconds / exact)
                        gaps.append(design.gap)
                        arms.append(np.count_nonzero(design.weights) / np.count_nonzero(like.weights))
                    parts.append(f"{jitter:.0e}: {np.median(ratios):4.1f} x, {max(gaps):6.2%}, {np.median(arms):.2f}")
                yield f"{kind:9s} {number} x {each:3d}, d {dim:2d}, {name:5s} " + " | ".join(parts)


def study(name: str, seed: int, jitter: float) -> int:
    """The pulls of a study until its own stop."""
    number, each, dim = STUDY
    rng = np.random.default_rng(seed)
    rows, theta = places("gaussian", number, dim, rng), rng.standard_normal(dim)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    arms = sp.Arms(copies(rows, each, jitter, rng))
    options: dict[str, Any] = {"epsilon": EPSILON, "delta": 0.05, "noise": sp.SubGaussian(SIGMA), **OPTIONS[name]}
    means = arms.features @ (theta / np.linalg.norm(theta))
    return sp.simulate(
        sp.make_policy(name, arms, **options),
        Environment(arms=arms, means=means, noise=sp.SubGaussian(SIGMA)),
        seed=seed,
    ).pulls


def pull_lines(seeds: range) -> Iterator[str]:
    """A line for each policy and jitter: the mean, its standard error, and the ratio of the means."""
    for name in OPTIONS:
        exact = np.array([study(name, seed, 0.0) for seed in seeds])
        yield f"{name:16s} exact copies {exact.mean():8.1f} +- {exact.std() / len(seeds) ** 0.5:.1f}"
        for jitter in JITTERS:
            pulls = np.array([study(name, seed, jitter) for seed in seeds])
            error = pulls.std() / len(seeds) ** 0.5
            yield f"{name:16s} {jitter:.0e} {pulls.mean():8.1f} +- {error:.1f}: {pulls.mean() / exact.mean():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("designs", "pulls"))
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=7000)
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.seeds)
    solve_design(np.random.default_rng(0).standard_normal((50, 5)))  # first call: imports
    for part, lines in (("designs", design_lines), ("pulls", pull_lines)):
        if chosen.part in (None, part):
            for line in lines(seeds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
