"""The leader that is shown while a certified study runs, beside the arm that it tests and Thompson sampling's leader.

    OMP_NUM_THREADS=1 python benchmarks/leader.py [--seeds 40] [--first 900000] [--only photo] [--data DIR]

Delta .05. "shown" is what `recommend` says after each batch, "tested" the batch's candidate (the one shown while there
is none). "best mean" is plain Thompson sampling's rule on the same data: the best posterior mean under a flat prior
without features, and under theta ~ N(0, C^2 I) with them. "Thompson" is Thompson sampling under that prior by itself,
one pull at a time.

A leader settles after the pulls from which it stays within epsilon of the best arm until the certificate; Thompson
sampling is followed as long. Regret is the mean over seeds of the gap of the leader at a number of pulls, in units of
epsilon; before the first batch is judged it is that of an arm taken blindly. Rewards of Thompson sampling are drawn
anew, from the same environment.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.policies.base import stopped

DELTA = 0.05
GAMMA = 5.0  # of the kernel of the hills
AT = (100, 300, 1_000, 3_000)
RULES = ("shown", "tested", "best mean", "Thompson")
worlds = sp.environments
Leaders = list[tuple[int, int]]  # (pulls, leader from then on)


@dataclass(frozen=True)
class Instance:
    """One instance.

    Args:
        make: seed -> environment.
        epsilon: in reward units.
        policy: its name.
        options: of the policy.
        vectors: environment -> what Thompson sampling takes for features, shape (K, d); None: it uses none.
    """

    make: Callable[[int], sp.environments.Environment]
    epsilon: float
    policy: str = "certified-independent"
    options: dict[str, Any] = field(default_factory=dict)
    vectors: Callable[[sp.environments.Environment], np.ndarray] | None = None


def hills(seed: int) -> sp.environments.Environment:
    """A function of norm 1 in the space of a Gaussian kernel, on 15 x 15 places of the unit square."""
    places = np.stack(np.meshgrid(*[np.linspace(0.0, 1.0, 15)] * 2), axis=-1).reshape(-1, 2)
    basis = kernel_vectors(places)
    theta = stream(seed, "hills").standard_normal(basis.shape[1])
    means = basis @ (theta / np.linalg.norm(theta))
    return worlds.Environment(arms=sp.Arms(places), means=means, noise=sp.SubGaussian(0.25))


def kernel_vectors(places: np.ndarray) -> np.ndarray:
    """psi with <psi(x), psi(y)> = exp(-GAMMA ||x - y||^2), but for a millionth."""
    squared = np.sum((places[:, None] - places[None]) ** 2, axis=2)
    values, vectors = np.linalg.eigh(np.exp(-GAMMA * squared))
    kept = values > 1e-6 * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def instances(data: Path) -> dict[str, Instance]:
    solar = worlds.table_with_added_noise(data / "olympus/photo_wf3", sigma=0.1)
    barrel, names = data / "pvlab/Crossed_barrel_dataset.csv", "n,theta,r,t"
    barrels = worlds.table(barrel, names, "toughness", names, noise=sp.SubGaussian(19.0))
    return {
        "photo_wf3": Instance(lambda _: solar, 0.05),
        "crossed barrel": Instance(lambda _: barrels, 10.0),
        "sphere": Instance(
            lambda seed: worlds.sphere(100, 10, seed),
            0.1,
            "certified-linear",
            {"norm_bound": 1.0},
            lambda world: world.arms.features,
        ),
        "hills": Instance(
            hills,
            0.1,
            "certified-kernel",
            {"kernel": f"gaussian:{GAMMA}", "norm_bound": 1.0},
            lambda world: kernel_vectors(world.arms.features),
        ),
    }


class Posterior:
    """Of the means: a flat prior without features, theta ~ N(0, C^2 I) with them."""

    def __init__(self, seen: Observations, sigma: float, vectors: np.ndarray | None, norm: float) -> None:
        self.sigma, self.vectors = sigma, vectors
        self.counts, self.sums = seen.counts.astype(float), np.array(seen.sums)
        if vectors is not None:
            self.precision = np.eye(vectors.shape[1]) / norm**2 + vectors.T * self.counts @ vectors / sigma**2
            self.weighted = vectors.T @ self.sums / sigma**2

    def add(self, arm: int, reward: float) -> None:
        self.counts[arm] += 1.0
        self.sums[arm] += reward
        if self.vectors is not None:
            vector = self.vectors[arm]
            self.precision += np.outer(vector, vector) / self.sigma**2
            self.weighted += vector * reward / self.sigma**2

    def means(self) -> np.ndarray:
        if self.vectors is not None:
            return self.vectors @ np.linalg.solve(self.precision, self.weighted)
        return np.where(self.counts > 0, self.sums / np.maximum(self.counts, 1.0), -np.inf)

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        """Means drawn from it; an arm without pulls is drawn as infinite."""
        if self.vectors is None:
            errors = self.sigma / np.sqrt(np.maximum(self.counts, 1.0)) * rng.standard_normal(len(self.counts))
            return np.where(self.counts > 0, self.means() + errors, np.inf)
        factor = np.linalg.cholesky(self.precision)
        draw = np.linalg.solve(factor.T, np.linalg.solve(factor, self.weighted) + rng.standard_normal(len(factor)))
        return self.vectors @ draw


def followed(instance: Instance, world: sp.environments.Environment, seed: int) -> dict[str, Leaders]:
    """The leaders of a certified study after each batch, by rule."""
    policy: Any = sp.make_policy(
        instance.policy,
        world.arms,
        epsilon=instance.epsilon,
        delta=DELTA,
        noise=world.noise,
        evidence="carried",
        **instance.options,
    )
    state, paths, number = policy.init(), {rule: list[tuple[int, int]]() for rule in RULES[:3]}, 0
    while not stopped(policy, state):
        plan = policy.ask(state)
        seen = world.pull(plan.counts, stream(seed, "rewards", number))
        state, number = policy.tell(state, plan, seen).state, number + 1
        tested = state.leader if plan.candidate is None else plan.candidate
        best = int(np.argmax(posterior(instance, world, state.seen).means()))
        for rule, leader in zip(RULES, (state.leader, tested, best), strict=False):
            paths[rule].append((state.pulls, leader))
    return paths


def posterior(instance: Instance, world: sp.environments.Environment, seen: Observations) -> Posterior:
    vectors = None if instance.vectors is None else instance.vectors(world)
    return Posterior(seen, world.noise.sigma, vectors, instance.options.get("norm_bound", 1.0))


def thompson(instance: Instance, world: sp.environments.Environment, seed: int, pulls: int) -> Leaders:
    """The leaders of Thompson sampling, after each pull; arms without pulls come first, in an order of chance."""
    rng, rewards = stream(seed, "thompson"), stream(seed, "thompson's rewards")
    known, path = posterior(instance, world, Observations.nothing(world.num_arms)), list[tuple[int, int]]()
    first = rng.permutation(world.num_arms).tolist() if instance.vectors is None else []
    for pull in range(1, pulls + 1):
        arm = first[pull - 1] if pull <= len(first) else int(np.argmax(known.drawn(rng)))
        counts = np.zeros(world.num_arms, np.int64)
        counts[arm] = 1
        known.add(arm, float(world.pull(counts, rewards).sums[arm]))
        path.append((pull, int(np.argmax(known.means()))))
    return path


def settles(path: Leaders, gaps: np.ndarray, epsilon: float) -> float:
    """The pulls from which the leader is always within epsilon of the best one."""
    since = float("inf")
    for pulls, leader in path:
        if gaps[leader] > epsilon:
            since = float("inf")
        elif since == float("inf"):
            since = pulls
    return since


def regret_at(path: Leaders, gaps: np.ndarray, pulls: int) -> float:
    """The gap of the leader after so many pulls."""
    led = [leader for until, leader in path if until <= pulls]
    return float(gaps[led[-1]] if led else gaps.mean())


def lines(name: str, instance: Instance, seeds: range) -> Iterator[str]:
    """A line for each rule."""
    settled = {rule: list[float]() for rule in RULES}
    regrets = {rule: list[list[float]]() for rule in RULES}
    ends, right = list[int](), 0
    for seed in seeds:
        world = instance.make(seed)
        paths = followed(instance, world, seed)
        ends.append(paths["shown"][-1][0])
        right += bool(world.gaps[paths["shown"][-1][1]] <= instance.epsilon)
        paths["Thompson"] = thompson(instance, world, seed, ends[-1])
        for rule, path in paths.items():
            settled[rule].append(settles(path, world.gaps, instance.epsilon))
            regrets[rule].append([regret_at(path, world.gaps, pulls) / instance.epsilon for pulls in AT])
    yield f"{name}: {right} of {len(ends)} answers right, certified after {np.median(ends):,.0f} pulls (median)"
    for rule in RULES:
        middle, late = (np.quantile(settled[rule], level, method="higher") for level in (0.5, 0.95))
        means = "".join(f"{one:>9.3f}" for one in np.mean(regrets[rule], axis=0))
        yield f"    {rule:10s}{middle:>10,.0f}{late:>10,.0f}{means}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--first", type=int, default=900_000)
    parser.add_argument("--only", default="", help="instances whose name holds this")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    chosen = parser.parse_args()
    print(f"{'':14s}{'settles: median, 95 %':>20s}   regret / epsilon at" + "".join(f"{at:>8,d}" for at in AT))
    for name, instance in instances(chosen.data).items():
        if chosen.only in name:
            for line in lines(name, instance, range(chosen.first, chosen.first + chosen.seeds)):
                print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
