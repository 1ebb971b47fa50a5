"""Seconds that each round of a certified study with a kernel takes, for many candidates.

    python benchmarks/kernel_rounds.py [--arms 100000] [--kernel gaussian:.25] [--epsilon .3] [--sigma .1] [--seeds 1]
        [--rounds 1000]

Candidates uniform in five dimensions; the mean is a combination of thirty kernel functions with norm 1 in the kernel's
space, noise Gaussian with sigma; certified-kernel with norm bound 1, delta .05. Printed for each round: seconds of ask
and of tell, measurements, candidates measured, directions, and the gap that the design proves; then of each study:
rounds, measurements, the verdict, by how much the answer is worse than the best one, and seconds, also of processor
time. BLAS is on one thread; passes over all candidates use the processors that there are (SUREPICK_THREADS=1: one).
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream
from surepick.embeddings.kernel import parse_kernel
from surepick.embeddings.kernel_functions import Kernel
from surepick.linalg.rows import one_thread

COLUMNS, CENTRES, DELTA, NORM_BOUND = 5, 30, 0.05, 1.0
HEAD = f"{'round':>6} {'ask s':>8} {'tell s':>8} {'pulls':>8} {'on':>8} {'directions':>11} {'gap':>7}"


def means_of(places: np.ndarray, kernel: Kernel, seed: int) -> np.ndarray:
    """A function of norm 1 in the kernel's space, at the candidates."""
    rng = stream(seed, "kernel_rounds", "truth")
    centres, weights = rng.uniform(size=(CENTRES, COLUMNS)), rng.standard_normal(CENTRES)
    return kernel.gram(places, centres) @ weights / np.sqrt(weights @ kernel.gram(centres, centres) @ weights)


def study(given: argparse.Namespace, seed: int) -> None:
    """One study, to its end or for so many rounds."""
    places = stream(0, "kernel_rounds", given.arms).uniform(size=(given.arms, COLUMNS))
    arms, noise = sp.Arms(places), sp.SubGaussian(given.sigma)
    means, began = means_of(places, parse_kernel(given.kernel), seed), time.perf_counter()
    policy = sp.make_policy(
        "certified-kernel",
        arms,
        epsilon=given.epsilon,
        delta=DELTA,
        noise=noise,
        norm_bound=NORM_BOUND,
        kernel=given.kernel,
    )
    played, rng = sp.Study(arms, policy), stream(seed, "kernel_rounds", "noise")
    print(f"seed {seed}: the policy took {time.perf_counter() - began:.1f} s\n{HEAD}", flush=True)
    pulls, rounds, spent, processors = 0, 0, 0.0, time.process_time()
    while rounds < given.rounds:
        start = time.perf_counter()
        plan = played.ask()
        asked = time.perf_counter() - start
        if plan is None:
            break
        counts = plan.counts
        sums = counts * means + given.sigma * np.sqrt(counts) * rng.standard_normal(given.arms)
        start = time.perf_counter()
        played.tell_totals(played.ids, counts, sums)
        told = time.perf_counter() - start
        pulls, rounds, spent = pulls + plan.total, rounds + 1, spent + asked + told
        gap = (
            "" if not (plan.design_value and plan.lower_bound) else f"{plan.design_value / plan.lower_bound - 1.0:.1%}"
        )
        line = f"{rounds:>6} {asked:>8.1f} {told:>8.1f} {plan.total:>8,} {np.count_nonzero(counts):>8,}"
        print(f"{line} {plan.dim or 0:>11} {gap:>7}", flush=True)
    processors = time.process_time() - processors
    answer = played.certificate()
    worse = float(means.max() - means[answer.arm])
    print(
        f"{rounds} rounds, {pulls:,} measurements, {answer.verdict}, {worse:.3f} worse than the best, {spent:.1f} s "
        f"({processors:.1f} s of processor time)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arms", default=100_000, type=int)
    parser.add_argument("--kernel", default="gaussian:.25")
    parser.add_argument("--epsilon", default=0.3, type=float)
    parser.add_argument("--sigma", default=0.1, type=float)
    parser.add_argument("--seeds", default=1, type=int)
    parser.add_argument("--rounds", default=1000, type=int)
    given = parser.parse_args()
    with one_thread():
        for seed in range(given.seeds):
            study(given, seed)


if __name__ == "__main__":
    main()
