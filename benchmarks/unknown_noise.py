"""What normal noise of unknown scale costs against noise of known scale, in measurements.

    OMP_NUM_THREADS=1 python benchmarks/unknown_noise.py bounds       four bounds, one arm against a known mean
    OMP_NUM_THREADS=1 python benchmarks/unknown_noise.py studies 40   whole studies, that many seeds
    OMP_NUM_THREADS=1 python benchmarks/unknown_noise.py features 6   whole studies with features

The bounds, each at delta .05 with all that it may spend:

* chi-square: a weight w costs w^2 V / 2, V the bound of `variance_bounds` after the batch;
* symmetric: it costs w^2 / 2 times the squared distance to the farthest mean that a self-normalised confidence sequence
  allows (de la Pena 1999);
* t: predictive likelihood over the largest likelihood under the hypothesis, with any scale (universal inference);
* repeats: ours, `NormalMgf`.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.estimators.noise_mgf import normal_mgf_after, variance_bounds
from surepick.policies.base import stopped

DELTA, SHARE, KAPPA = 0.05, 0.02, 0.7
GROWTH, FIRST, MOST = 0.2, 5, 10**6
RUNS, FIRST_SEED = 400, 730_000
METHODS = ("known", "repeats", "chi-square", "symmetric", "t")


class Past:
    """Rewards of many runs, added up: an arm is a run."""

    def __init__(self) -> None:
        self.counts, self.sums, self.squares = np.zeros(RUNS, int), np.zeros(RUNS), np.zeros(RUNS)

    @property
    def seen(self) -> Observations:
        return Observations(self.counts, self.sums, self.squares)


def radius(seen: Observations, failure: float) -> np.ndarray:
    """Half the width of the self-normalised confidence sequence of each mean, as if it were known up to the width."""
    n, variances = (
        np.maximum(seen.counts, 2),
        np.maximum(seen.squares / np.maximum(seen.counts, 1) - seen.means**2, 1e-12),
    )
    level = 2.0 * (math.log(1.0 / failure) + 0.5 * np.log(1.0 + n))
    room = np.maximum(1.0 - level / n, 1e-3)  # sum (r - h)^2 = n (v + d^2) is the intrinsic time of the process
    return np.sqrt(level * variances / n / room)


def pulls_needed(method: str, margin: float, seed: int) -> np.ndarray:
    """Pulls after which each run has evidence that h < margin, where h = 0, scale 1."""
    rng, past = np.random.default_rng([FIRST_SEED, seed]), Past()
    value, found, likelihood = np.zeros(RUNS), np.full(RUNS, MOST), np.zeros(RUNS)
    spent = 0.0 if method in {"known", "t"} else SHARE * DELTA if method != "symmetric" else 0.1 * DELTA
    if method == "chi-square":
        spent = 0.1 * DELTA
    threshold, total, first = -math.log(DELTA - spent), 0, np.zeros(RUNS)
    while total < MOST and np.any(found == MOST):
        n = max(FIRST if total == 0 else 1, math.ceil(GROWTH * total))
        rewards = rng.standard_normal((RUNS, n))
        sums, squares, seen = rewards.sum(axis=1), (rewards**2).sum(axis=1), past.seen
        past.counts, past.sums, past.squares = past.counts + n, past.sums + sums, past.squares + squares
        guess = np.ones(RUNS) if method == "known" else _own_variances(seen)
        batch, everybody = Observations(np.full(RUNS, n), sums, squares), np.arange(RUNS)
        bets = KAPPA * margin / guess
        if method == "known":
            value += bets * (n * margin - sums) - 0.5 * n * bets**2
        elif total == 0 and method != "t":
            pass
        elif method == "repeats":
            mgf = normal_mgf_after(seen, 2.0 * SHARE * DELTA).own  # all of it for this one arm
            bets = KAPPA * margin / mgf.noise_scales(margin) ** 2
            value += bets * (n * margin - sums) - mgf.total(bets, everybody, batch)
        elif method == "chi-square":
            before = variance_bounds(seen, spent)
            bets = KAPPA * margin / np.where(np.isfinite(before), before, 1e9)
            value += bets * (n * margin - sums) - 0.5 * n * bets**2 * variance_bounds(past.seen, spent)
        elif method == "symmetric":
            wide = radius(past.seen, spent)
            bets = KAPPA * margin / (guess + radius(seen, spent) ** 2)
            cost = squares - sums**2 / n + n * (np.abs(sums / n - past.seen.means) + wide) ** 2
            value += bets * (n * margin - sums) - 0.5 * bets**2 * cost
        if method == "t":
            whole = past.squares - 2.0 * margin * past.sums + past.counts * margin**2  # around the hypothesis
            if total > 0:
                centre = seen.means
                likelihood += (
                    -0.5 * n * np.log(2 * math.pi * guess)
                    - 0.5 * (squares - 2.0 * centre * sums + n * centre**2) / guess
                )
                worst = -0.5 * (total + n - FIRST) * (np.log(2 * math.pi * _after_first(whole, first, past)) + 1.0)
                value = np.where(past.seen.means < margin, likelihood - worst, -1.0)
            else:
                first = whole
        total += n
        found = np.where((found == MOST) & (value >= threshold), total, found)
    return found


def _after_first(whole: np.ndarray, first: np.ndarray, past: Past) -> np.ndarray:
    """Mean square around the hypothesis of the rewards after the first batch: the largest likelihood under it."""
    return np.maximum(whole - first, 1e-12) / np.maximum(past.counts - FIRST, 1)


def _own_variances(seen: Observations) -> np.ndarray:
    """Variances of runs that share nothing, drawn a little towards 1, the order of magnitude."""
    n = np.maximum(seen.counts, 1)
    within = np.maximum(seen.squares - seen.sums**2 / n, 0.0)
    return np.asarray((1.0 + within) / (1.0 + np.maximum(seen.counts - 1, 0)))


def bounds() -> None:
    """One arm against a known mean: pulls relative to a known scale."""
    print(f"{'margin / scale':>15} {'known':>8}" + "".join(f"{one:>12}" for one in METHODS[1:]))
    for margin in (2.0, 1.0, 0.5, 0.2, 0.1, 0.05):
        known = pulls_needed("known", margin, 0).mean()
        others = [pulls_needed(one, margin, 0).mean() / known for one in METHODS[1:]]
        print(f"{margin:>15g} {known:>8.0f}" + "".join(f"{one:>12.2f}" for one in others), flush=True)


def world_of(kind: str, num_arms: int, seed: int) -> sp.environments.Environment:
    """Arms in random order, epsilon .1. Scales .5, or variances from 1 to 100 around .5 squared."""
    rng = np.random.default_rng([FIRST_SEED, seed, num_arms])
    if kind.startswith("slippage"):
        means = np.append(0.0, np.full(num_arms - 1, -0.1))
    else:
        means = np.append(0.0, -0.1 - rng.exponential(1.0, num_arms - 1))
    scales = np.full(num_arms, 0.5)
    if "noisiest" in kind or "quietest" in kind:
        scales[1:] = rng.permutation(0.5 * 10.0 ** np.linspace(-0.5, 0.5, num_arms)[: num_arms - 1])
        scales[0] = 0.5 * 10.0 ** (0.5 if "noisiest" in kind else -0.5)
    order = rng.permutation(num_arms)
    noise = sp.SubGaussian(scales[order])
    return sp.environments.Environment(arms=sp.Arms(ids=range(num_arms)), means=means[order], noise=noise)


def study(
    world: sp.environments.Environment,
    noise: object,
    seed: int,
    name: str = "certified-independent",
    **options: float | str,
) -> tuple[int, bool]:
    """(pulls, whether the answer is right)."""
    policy = sp.make_policy(name, world.arms, epsilon=0.1, delta=DELTA, noise=noise, **options)
    rng, state = np.random.default_rng([FIRST_SEED, seed]), policy.init()
    while not stopped(policy, state):
        plan = policy.ask(state)
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
    return state.pulls, world.is_epsilon_best(policy.claim(state).leader, 0.1)


def studies(seeds: int) -> None:
    """Whole studies: pulls with scales unknown, relative to scales known."""
    print("| instance | K | known: mean (median) | unknown: mean (median) | of means | of medians | right |")
    print("|---|---|---|---|---|---|---|")
    for num_arms in (10, 100, 1000):
        for kind in ("slippage, equal", "slippage, best noisiest", "slippage, best quietest", "spread, equal"):
            begun, found = time.perf_counter(), {}
            for seed in range(seeds if num_arms < 1000 else max(seeds // 4, 2)):
                world = world_of(kind, num_arms, seed)
                for name, noise in (("known", world.noise), ("unknown", sp.Normal())):
                    found.setdefault(name, []).append(study(world, noise, seed, evidence="carried"))
            (known, _), (unknown, right) = (np.array(found[name], float).T for name in ("known", "unknown"))
            middle, other = np.median(known), np.median(unknown)
            print(
                f"| {kind} | {num_arms} | {known.mean():,.0f} ({middle:,.0f}) | {unknown.mean():,.0f} ({other:,.0f}) "
                f"| {unknown.mean() / known.mean():.2f} | {other / middle:.2f} | {right.sum():.0f}/{len(right)} |",
                f"{time.perf_counter() - begun:.0f} s",
                flush=True,
            )


FEATURED = {
    "Soare, d 5, scale .5": lambda seed: sp.environments.soare(5, 0.6, seed, sigma=0.5),
    "Soare, d 10": lambda seed: sp.environments.soare(10, 0.6, seed),
    "sphere, 200 arms, d 5": lambda seed: sp.environments.sphere(200, 5, seed),
    "sphere, 100 arms, d 10": lambda seed: sp.environments.sphere(100, 10, seed),
}


def scaled(world: sp.environments.Environment, seed: int) -> sp.environments.Environment:
    """The same arms in which variances go from 1 to 100, in random order, with the same geometric mean."""
    rng = np.random.default_rng([FIRST_SEED, seed, 9])
    scales = world.noise.sigma * 10.0 ** rng.permutation(np.linspace(-0.5, 0.5, world.num_arms))
    return sp.environments.Environment(arms=world.arms, means=world.means, noise=sp.SubGaussian(scales))


def features(seeds: int) -> None:
    """Whole studies of certified-linear: pulls with scales unknown, relative to scales known."""
    print("| instance | variances | known: mean (median) | unknown: mean (median) | of means | of medians | right |")
    print("|---|---|---|---|---|---|---|")
    for name, make in FEATURED.items():
        for kind in ("equal", "1 to 100"):
            found: dict[str, list[tuple[int, bool]]] = {"known": [], "unknown": []}
            for seed in range(seeds):
                world = make(seed) if kind == "equal" else scaled(make(seed), seed)
                for label, noise in (("known", world.noise), ("unknown", sp.Normal())):
                    found[label].append(study(world, noise, seed, "certified-linear", norm_bound=1.0))
            (known, _), (unknown, right) = (np.array(found[label], float).T for label in ("known", "unknown"))
            middle, other = np.median(known), np.median(unknown)
            print(
                f"| {name} | {kind} | {known.mean():,.0f} ({middle:,.0f}) | {unknown.mean():,.0f} ({other:,.0f}) "
                f"| {unknown.mean() / known.mean():.2f} | {other / middle:.2f} | {right.sum():.0f}/{len(right)} |",
                flush=True,
            )


if __name__ == "__main__":
    if "features" in sys.argv:
        features(next((int(one) for one in sys.argv[1:] if one.isdigit()), 6))
    elif "studies" in sys.argv:
        studies(next((int(one) for one in sys.argv[1:] if one.isdigit()), 40))
    else:
        bounds()
