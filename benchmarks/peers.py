"""The linear peers on the instances of their own papers, and beside the default policy.

    OMP_NUM_THREADS=1 python benchmarks/peers.py [--seeds 10] [--only lingape,own-stop] [--pull-by-pull]

First table: XY-static, XY-adaptive and LinGapE on the instance of Soare et al. (2014), with theta = 2 e1, angle .01,
sigma 1 and delta .05; LinGame on that of Degenne et al. (2020), with theta = e1, d = 2 and angle .1. Rewards are
normal. "beside" is what the batches are compared with: for LinGapE a plain loop over single pulls that shares no code
with the policy; for LinGame the policy with batches of one pull; for XY-static the number of pulls at which its widths
equal the gap. --pull-by-pull runs the loops, which takes a quarter of an hour. Second
table: pulls until the own stop, epsilon .1, delta .05.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable

import numpy as np

import surepick as sp
from surepick.policies.base import Problem
from surepick_bench.policies.xy import fixed_design_multiplier

MAX_PULLS = 1_000_000
ONE_PULL = 1e-9  # growth
UNTIL_ONE_IS_LEFT = 1e-9  # epsilon


def near_best(dim: int, angle: float, length: float) -> sp.environments.Environment:
    """Unit vectors and cos(angle) e1 + sin(angle) e2, theta = length e1, sigma 1."""
    features = np.vstack([np.eye(dim), np.zeros(dim)])
    features[dim, :2] = math.cos(angle), math.sin(angle)
    return sp.environments.Environment(arms=sp.Arms(features), means=length * features[:, 0], noise=sp.SubGaussian(1.0))


def lingape_by_single_pulls(environment, *, epsilon: float, delta: float, norm: float, rng) -> int:
    """Pulls of LinGapE, one at a time, greedy, with the radius of the dimension and regularisation 1."""
    features, means = environment.arms.features, environment.means
    num_arms, dim = features.shape
    inverse = np.linalg.inv(np.eye(dim) + features.T @ features)
    total, pulls = features.T @ (means + rng.standard_normal(num_arms)), num_arms
    while True:
        scores = features @ (inverse @ total)
        leader = int(np.argmax(scores))
        away = features - features[leader]
        width = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", away, inverse, away), 0.0))
        radius = math.sqrt(dim * math.log(num_arms**2 * (1 + pulls) / delta)) + norm
        upper = scores - scores[leader] + radius * width
        upper[leader] = -np.inf
        rival = int(np.argmax(upper))
        if upper[rival] <= epsilon:
            return pulls
        moved = features @ inverse
        shrinks = (moved @ away[rival]) ** 2 / (1.0 + np.einsum("ij,ij->i", moved, features))
        arm = int(np.argmax(shrinks))
        inverse -= np.outer(moved[arm], moved[arm]) / (1.0 + moved[arm] @ features[arm])
        total += features[arm] * (means[arm] + rng.standard_normal())
        pulls += 1


def static_pulls(environment, *, delta: float) -> float:
    """Pulls at which the width of XY-static for the closest pair equals its gap, under the optimal design."""
    features = environment.arms.features
    weights = sp.solve_design(features).weights
    best, second = np.argsort(-environment.means)[:2]
    away = features[best] - features[second]
    value = away @ np.linalg.solve(features.T @ (features * weights[:, None]), away)
    gap, pulls = environment.means[best] - environment.means[second], 1.0
    asked = Problem(len(features), gap, delta, environment.noise)
    for _ in range(100):
        multiplier = fixed_design_multiplier("paper", asked, pulls=int(pulls), look=1)
        pulls = multiplier**2 * value / gap**2
    return float(pulls)


def own_stops(policy, environment, seeds: range) -> tuple[float, float, int, float]:
    """(mean pulls, its standard error, wrong answers, seconds a run)."""
    started = time.perf_counter()
    runs = [sp.simulate(policy, environment, seed=seed, max_pulls=10**12) for seed in seeds]
    pulls = [run.pulls for run in runs]
    wrong = sum(run.true_gap > 0 for run in runs)
    seconds = (time.perf_counter() - started) / len(runs)
    return float(np.mean(pulls)), float(np.std(pulls)) / math.sqrt(len(pulls)), wrong, seconds


def paper_row(label: str, policy, environment, seeds: range, beside: Callable[[], float] | None) -> None:
    mean, error, wrong, seconds = own_stops(policy, environment, seeds)
    other = "" if beside is None else f"{(known := beside()):>12,.0f} {mean / known:>6.2f}"
    sys.stdout.write(f"{label:32s}{mean:>12,.0f} +-{error:>10,.0f} {wrong:>6} {seconds:>8.2f} {other}\n")
    sys.stdout.flush()


def papers(words: list[str], seeds: range, *, pull_by_pull: bool) -> None:
    """The first table."""
    sys.stdout.write(f"{'':32s}{'pulls':>12s} {'':>12s} {'wrong':>6s} {'seconds':>8s} {'beside':>12s} {'ratio':>6s}\n")
    for dim in (2, 5, 10):
        world = near_best(dim, 0.01, 2.0)
        usual = {"arms": world.arms, "delta": 0.05, "noise": world.noise}
        gap = 2.0 * (1.0 - math.cos(0.01))

        def single(world=world, gap=gap) -> float:
            return float(
                np.mean(
                    [
                        lingape_by_single_pulls(
                            world, epsilon=gap, delta=0.05, norm=2.0, rng=np.random.default_rng(seed)
                        )
                        for seed in seeds
                    ]
                )
            )

        rows = {
            "xy-static": ({"epsilon": UNTIL_ONE_IS_LEFT}, lambda world=world: static_pulls(world, delta=0.05)),
            "xy-adaptive": ({"epsilon": UNTIL_ONE_IS_LEFT}, None),
            "lingape": ({"epsilon": gap, "norm_bound": 2.0}, single if pull_by_pull else None),
        }
        for name, (options, beside) in rows.items():
            if wanted(name, words):
                policy = sp.make_policy(name, **usual, **options, **sp.paper_settings(name))
                paper_row(f"{name}, Soare, d = {dim}", policy, world, seeds, beside)
    world = near_best(2, 0.1, 1.0)
    for delta in (0.1, 0.01, 0.0001):
        if wanted("lingame", words):
            usual = {"arms": world.arms, "epsilon": UNTIL_ONE_IS_LEFT, "delta": delta, "noise": world.noise}
            usual |= sp.paper_settings("lingame")
            singly = sp.make_policy("lingame", **usual, growth=ONE_PULL)
            beside = (lambda singly=singly: own_stops(singly, world, seeds)[0]) if pull_by_pull else None
            paper_row(f"lingame, delta = {delta:g}", sp.make_policy("lingame", **usual), world, seeds, beside)


def side_by_side(seeds: range) -> None:
    """The second table."""
    instances = {
        "sphere(100, 10)": (lambda seed: sp.environments.sphere(100, 10, seed), 1.0),
        "soare(10, .6)": (lambda seed: sp.environments.soare(10, 0.6, seed), 1.0),
        "digits": (sp.environments.digits, 2.0),
    }
    for label, (make, norm) in instances.items():
        for name in ("xy-static", "xy-adaptive", "lingape", "lingame", "rage", "certified-linear"):
            runs = []
            for seed in seeds:
                world = make(seed)
                options = {"norm_bound": norm} if "lin" in name else {}
                policy = sp.make_policy(name, world.arms, epsilon=0.1, delta=0.05, noise=world.noise, **options)
                runs.append(sp.simulate(policy, world, seed=seed, max_pulls=MAX_PULLS))
            pulls = ", ".join(
                f"{run.pulls:,}" if run.verdict != "budget-exhausted" else f"> {run.pulls:,}" for run in runs
            )
            right, seconds = sum(run.success for run in runs), np.mean([run.seconds for run in runs])
            sys.stdout.write(f"{label:18s}{name:18s}{right}/{len(runs)} right {seconds:>7.2f} s   {pulls}\n")
            sys.stdout.flush()


def wanted(name: str, words: list[str]) -> bool:
    return not words or any(word in name for word in words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", default="", help="policies whose name holds one of these words, or own-stop")
    parser.add_argument("--pull-by-pull", action="store_true")
    chosen = parser.parse_args()
    words = [word for word in chosen.only.split(",") if word]
    papers(words, range(chosen.seeds), pull_by_pull=chosen.pull_by_pull)
    if wanted("own-stop", words):
        side_by_side(range(3))


if __name__ == "__main__":
    main()
