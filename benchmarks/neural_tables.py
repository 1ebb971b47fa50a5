"""Own-stop pulls on real tables: a network's embedding beside a kernel, a linear embedding, and no features at all.

    OMP_NUM_THREADS=1 python benchmarks/neural_tables.py DIRECTORY [--runs 5] [--only photo_wf3] [--sigmas 0.1,0.3]

DIRECTORY holds the Olympus folders photo_wf3 and buchwald_a. Means are the recorded values moved and scaled onto
[0, 1], the best at 1, with normal noise; epsilon .1, delta .05. What has to be declared is taken from the known truth,
as nobody could who needs the answer, so that every claim that can be true is true and as tight as it can be:

    certified-linear   the norm of the best linear fit; false where the means are not linear ("misfit")
    certified-kernel   Gaussian; gamma by leave-one-out errors on the true means, from a grid; norm sqrt(h'G^-1 h). If
                       that one has no valid bound of epsilon/4 in K/2 dimensions, the gamma that has it in the fewest.
                       Not run if there is none: with a bound above epsilon it would never end, in K dimensions the
                       kernel saves nothing, and the design takes minutes
    certified-neural   1.05 times the misfit, in sup norm (linear programming), of the class under which a pilot study
                       of another seed ended; the pilot is run again with that bound declared, which is raised where its
                       class misses by more

"beyond": whether the last class missed the means by more than was declared.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.optimize import linprog

import surepick as sp
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray
from surepick.embeddings import GaussianKernel, KernelEmbedding
from surepick.policies.base import stopped
from surepick.policies.steered.neural import CertifiedNeural
from surepick.policies.verdict import certificate_of

EPSILON, DELTA = 0.1, 0.05
TABLES = ("photo_wf3", "buchwald_a")
GAMMAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
RIDGE = 1e-6  # of the unit diagonal of the gram matrix; it keeps the leave-one-out errors clear of rounding
SAFETY = 1.05
PILOT = 900_000
MOST_PULLS = 1_000_000


@dataclass(frozen=True)
class Told:
    """One study, and how far the embeddings of its batches of evidence miss the means: those used, and the others."""

    pulls: int
    right: bool
    verdict: str
    batches: int
    misfit: float  # of the last class of a network, by the true means
    seconds: float


@dataclass(frozen=True)
class KernelChoice:
    """A Gaussian kernel, and what the true means make of it.

    Args:
        gamma: of the kernel.
        error: root mean square of the leave-one-out errors.
        norm: sqrt(h'G^-1 h), and a thousandth.
        dim: the first d whose misspecification bound is at most epsilon/4; None: there is none.
    """

    gamma: float
    error: float
    norm: float
    dim: int | None


def environment_of(folder: Path, sigma: float) -> sp.environments.Environment:
    """The table as a truth on [0, 1] with the best arm at 1; large rewards are good."""
    recorded = sp.environments.table(folder, noise=sp.SubGaussian(sigma))
    means = -recorded.means if recorded.minimize else recorded.means
    means = (means - means.min()) / np.ptp(means)
    return sp.environments.Environment(arms=recorded.arms, means=means, noise=sp.SubGaussian(sigma))


def misfit(vectors: FloatArray, means: FloatArray) -> float:
    """min over w of max over arms |h - <z, w>|, by linear programming."""
    ones = np.ones((len(means), 1))
    answer = linprog(
        np.append(np.zeros(vectors.shape[1]), 1.0),
        A_ub=np.block([[vectors, -ones], [-vectors, -ones]]),
        b_ub=np.concatenate([means, -means]),
        bounds=[(None, None)] * vectors.shape[1] + [(0.0, None)],
        method="highs",
    )
    return float(answer.fun)


def kernels(features: FloatArray, means: FloatArray) -> list[KernelChoice]:
    """The grid: each gamma with its error, the norm of the means, and the dimension that this norm asks for."""
    found = []
    for gamma in GAMMAS:
        gram = GaussianKernel(gamma).gram(features, features)
        inverse = np.linalg.inv(gram + RIDGE * np.eye(len(means)))
        error = float(np.sqrt(np.mean((inverse @ (means - means.mean()) / np.diag(inverse)) ** 2)))
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, len(means) * np.finfo(np.float64).eps * values[-1])
        norm = 1.001 * float(np.sqrt(np.sum((vectors.T @ means) ** 2 / values)))
        embedding = KernelEmbedding(features, kernel=GaussianKernel(gamma), norm_bound=norm)
        bounds = np.array([embedding.misspecification(dim) for dim in range(1, embedding.max_dim + 1)])
        enough = bool((bounds <= EPSILON / 4.0).any())
        found.append(KernelChoice(gamma, error, norm, int(np.argmax(bounds <= EPSILON / 4.0)) + 1 if enough else None))
    return found


def study(policy, environment: sp.environments.Environment, seed: int) -> Told:
    """From the first ask to the policy's own stop."""
    state, pulls, batches, seconds = policy.init(), 0, 0, 0.0
    while not stopped(policy, state) and pulls < MOST_PULLS:
        started = time.perf_counter()
        plan = policy.ask(state)
        seen = environment.pull(plan.counts, stream(seed, "rewards", batches))
        after = policy.tell(state, plan, seen).state
        seconds += time.perf_counter() - started
        if plan.candidate is not None:
            batches += 1
        state, pulls = after, pulls + plan.total
    answer = certificate_of(policy, state)
    verdict = answer.verdict if stopped(policy, state) else "budget-exhausted"
    right = stopped(policy, state) and environment.is_epsilon_best(answer.arm, EPSILON)
    missed = 0.0
    if isinstance(policy, CertifiedNeural):
        levelled = np.column_stack([policy._features(state), np.ones(environment.num_arms)])
        missed = misfit(levelled, environment.means)
    return Told(pulls, right, verdict, batches, missed, seconds)


def made(name: str, environment: sp.environments.Environment, **options):
    return sp.make_policy(name, environment.arms, epsilon=EPSILON, delta=DELTA, noise=environment.noise, **options)


def declared(environment: sp.environments.Environment) -> tuple[float, str]:
    """g, and what the pilots saw."""
    first = study(made("certified-neural", environment), environment, PILOT)
    bound = SAFETY * first.misfit
    second = study(made("certified-neural", environment, misspecification=bound), environment, PILOT)
    words = (
        f"pilot, undeclared: {first.pulls:,} pulls in {first.batches} batches, misfit {first.misfit:.3f}; declared: "
        f"{second.pulls:,} pulls in {second.batches} batches, misfit {second.misfit:.3f}"
    )
    return max(bound, SAFETY * second.misfit), words


def rows(environment: sp.environments.Environment) -> Iterator[tuple[str, str, dict[str, float]]]:
    """(policy, what was declared, options)."""
    features, means = environment.arms.features, environment.means
    yield "certified-independent", "nothing", {}
    weights = np.linalg.lstsq(features, means, rcond=1e-9)[0]
    norm = float(np.linalg.norm(weights))
    missed = misfit(features, means)
    yield "certified-linear", f"norm {norm:.3g}; misfit {missed:.3f}", {"norm_bound": norm}
    grid = kernels(features, means)
    best = min(grid, key=lambda one: one.error)
    smallest = min((one for one in grid if one.dim is not None), key=lambda one: (one.dim, one.error), default=best)
    for one, why in ((best, "least error"), (smallest, "fewest dimensions")):
        print(f"  (kernel of {why}: gamma {one.gamma:g}, left out {one.error:.3f}, norm {one.norm:.3g}, d {one.dim})")
    if best.dim is not None and best.dim <= len(means) // 2:
        smallest = best
    if smallest.dim is not None and smallest.dim <= len(means) // 2:
        claim = f"gamma {smallest.gamma:g}, norm {smallest.norm:.3g}"
        yield "certified-kernel", claim, {"gamma": smallest.gamma, "norm_bound": smallest.norm}
    else:
        print("  certified-kernel       not run: no kernel of the grid compresses with a norm that is true", flush=True)
    bound, words = declared(environment)
    print(f"  ({words})", flush=True)
    yield "certified-neural", f"g {bound:.3f}", {"misspecification": bound}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default=",".join(TABLES))
    parser.add_argument("--sigmas", default="0.1,0.3")
    chosen = parser.parse_args()
    for table in chosen.only.split(","):
        for sigma in (float(text) for text in chosen.sigmas.split(",")):
            environment = environment_of(chosen.directory / table, sigma)
            print(
                f"\n{table}: {environment.num_arms} arms, {environment.arms.features.shape[1]} features, sigma {sigma}"
            )
            for name, claim, options in rows(environment):
                policy = made(name, environment, **options)
                studies = [study(policy, environment, seed) for seed in range(chosen.first, chosen.first + chosen.runs)]
                pulls = np.array([one.pulls for one in studies])
                beyond = sum(one.misfit > options.get("misspecification", 0.0) for one in studies)
                print(
                    f"  {name:22s} {pulls.mean():>9,.0f} +-{pulls.std() / np.sqrt(len(pulls)):>6,.0f}   right "
                    f"{sum(one.right for one in studies)}/{len(studies)}   certified "
                    f"{sum(one.verdict == 'certified' for one in studies)}/{len(studies)}   batches "
                    f"{sum(one.batches for one in studies)}   beyond {beyond}   "
                    f"{np.mean([one.seconds for one in studies]):6.1f} s   {claim}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
