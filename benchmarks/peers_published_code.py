"""XY-static and XY-adaptive beside the rules of the code with which Fiez et al. (2019) ran them.

    OMP_NUM_THREADS=1 python benchmarks/peers_published_code.py [--runs 20] [--smoke]

The instance is that of Soare et al. (2014), theta = 2 e1 with sigma 1, which is `soare` with sigma .5; delta .05. The
published rules are two loops here that share no code with the policies, but for the design of XY-static, which the
code finds by Frank-Wolfe and we by our solver. Theirs end when one arm is left; ours then, or at a thousandth of the
gap.
"""

import argparse
import math
from collections.abc import Callable, Iterator

import numpy as np

import surepick as sp

DELTA = 0.05
SHRINKAGE = 0.1  # alpha of XY-adaptive
BASE = 1.35  # of the batch sizes of XY-static
INSTANCES = ((5, 0.1), (10, 0.1), (5, 0.3))  # (dimension, angle)
PHASES = {"stopping": "phases"}
SHORTER = {"shrinkage": math.sqrt(SHRINKAGE)}
OURS = (
    ("xy-static", {}),
    ("xy-static", {"constants": "sub-gaussian"}),
    ("xy-static", {"constants": "published-code"}),
    ("xy-adaptive", PHASES),
    ("xy-adaptive", PHASES | {"constants": "sub-gaussian"}),
    ("xy-adaptive", PHASES | {"constants": "published-code"}),
    ("xy-adaptive", PHASES | SHORTER | {"constants": "published-code"}),
    ("xy-adaptive", SHORTER | {"constants": "published-code"}),
)
Loop = Callable[[sp.environments.Environment, np.random.Generator], tuple[int, int]]


def published_static(world: sp.environments.Environment, rng: np.random.Generator) -> tuple[int, int]:
    """(pulls, arm): batches of ceil(1.35^k) pulls drawn from the design, k = 1, 3, 5, ..."""
    features, sigma, number = world.arms.features, float(np.max(world.noise.sigma)), 1
    weights = sp.solve_design(features).weights
    counts, sums = np.zeros(len(features)), np.zeros(len(features))
    pulls = features.shape[1]
    while True:
        batch = rng.multinomial(math.ceil(BASE**number), weights / weights.sum())
        counts += batch
        sums += batch * world.means + sigma * np.sqrt(batch) * rng.standard_normal(len(features))
        pulls += int(batch.sum())
        matrix = features.T @ (counts[:, None] * features)
        if np.linalg.matrix_rank(matrix) == features.shape[1]:
            inverse = np.linalg.inv(matrix)
            scores = features @ inverse @ features.T @ sums
            leader = int(np.argmax(scores))
            away = np.delete(features[leader] - features, leader, axis=0)
            lead = np.delete(scores[leader] - scores, leader)
            log_events = math.log(2.0 * number**2 * len(features) ** 2 / DELTA)
            if np.all(lead > sigma * np.sqrt(2.0 * log_events * np.einsum("ij,jk,ik->i", away, inverse, away))):
                return pulls, leader
        number += 2


def published_adaptive(world: sp.environments.Environment, rng: np.random.Generator) -> tuple[int, int]:
    """(pulls, arm): greedy phases from the identity matrix; one ends when value / pulls fell to a tenth."""
    features, sigma = world.arms.features, float(np.max(world.noise.sigma))
    num_arms, dim = features.shape
    left, pulls, phase, before = list(range(num_arms)), 0, 1, 1.0 / (dim * (dim + 1) + 1)
    value = 1.0
    while len(left) > 1:
        pairs = np.array([features[a] - features[b] for a in left for b in left if a != b])
        inverse, moments, own = np.eye(dim), np.zeros(dim), dim
        while value / own >= SHRINKAGE * before:
            arm, value = _greedy(features, pairs, inverse, rng)
            row = features[arm]
            moments += row * (world.means[arm] + sigma * rng.standard_normal())
            moved = inverse @ row
            inverse -= np.outer(moved, moved) / (1.0 + row @ moved)
            own += 1
        before, pulls = value / own, pulls + own
        scores = features @ inverse @ moments
        scale = sigma * math.sqrt(2.0 * math.log(2.0 * math.pi**2 * num_arms**2 * phase**2 / (6.0 * DELTA)))
        for arm in list(left):
            away = features[left] - features[arm]
            width = scale * np.sqrt(np.einsum("ij,jk,ik->i", away, inverse, away))
            ahead = [scores[rival] - scores[arm] >= far for rival, far in zip(left, width, strict=True) if rival != arm]
            if any(ahead):
                left.remove(arm)
        phase += 1
    return pulls, left[0]


def _greedy(features, pairs, inverse, rng: np.random.Generator) -> tuple[int, float]:
    """(the arm whose pull leaves the smallest largest ||y||^2, that value); ties at random."""
    moved = features @ inverse
    lengths = np.einsum("ij,jk,ik->i", pairs, inverse, pairs)
    after = lengths - (moved @ pairs.T) ** 2 / (1.0 + np.einsum("ij,ij->i", moved, features))[:, None]
    worst = after.max(axis=1)
    arm = int(rng.choice(np.flatnonzero(worst - worst.min() < 1e-20)))
    return arm, float(worst[arm])


def theirs(loop: Loop, dim: int, angle: float, runs: int) -> tuple[float, int]:
    """(mean pulls, right answers)."""
    found = []
    for seed in range(runs):
        world = sp.environments.soare(dim, angle, seed, sigma=0.5)
        pulls, arm = loop(world, np.random.default_rng(seed))
        found.append((pulls, arm == world.best))
    return float(np.mean([pulls for pulls, _ in found])), sum(right for _, right in found)


def ours(name: str, options: dict, dim: int, angle: float, runs: int) -> tuple[float, int]:
    """(mean pulls, right answers)."""
    epsilon = 1e-9 if "stopping" in options else (1.0 - math.cos(angle)) / 1000.0
    found = []
    for seed in range(runs):
        world = sp.environments.soare(dim, angle, seed, sigma=0.5)
        policy = sp.make_policy(name, world.arms, epsilon=epsilon, delta=DELTA, noise=world.noise, **options)
        found.append(sp.simulate(policy, world, seed=seed, max_pulls=10**9))
    return float(np.mean([run.pulls for run in found])), sum(run.success for run in found)


def table(instances, runs: int) -> Iterator[str]:
    loops = {"xy-static": published_static, "xy-adaptive": published_adaptive}
    for dim, angle in instances:
        known = {}
        for name, loop in loops.items():
            known[name], right = theirs(loop, dim, angle, runs)
            yield f"d = {dim}, w = {angle}   published {name}: {known[name]:,.0f}, {right} of {runs} right"
        for name, options in OURS:
            pulls, right = ours(name, options, dim, angle, runs)
            said = ", ".join(
                f"{option}={value:.4g}" if option == "shrinkage" else f"{option}={value}"
                for option, value in options.items()
            )
            yield f"  {name} {said}: {pulls:,.0f} ({pulls / known[name]:.2f}), {right} of {runs} right"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--smoke", action="store_true", help="one easy instance, one run: shows that it works")
    chosen = parser.parse_args(arguments)
    for line in table(((3, 0.6),) if chosen.smoke else INSTANCES, 1 if chosen.smoke else chosen.runs):
        print(line, flush=True)


if __name__ == "__main__":
    main()
