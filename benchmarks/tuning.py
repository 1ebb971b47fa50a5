"""Is the kernel that a pilot chooses any good, and what becomes of a certificate that believes the estimated norm?

    OMP_NUM_THREADS=1 python benchmarks/tuning.py [--case smooth-1d] [--runs 40] [--data ../shared/data]

For each case and run: a pilot on random candidates, `choose_kernel`, then one study of certified-kernel with the gamma
chosen and the norm estimated (the pilot's pulls are extra and not reused). Printed:

    chosen, best   gamma of the pilot, and gamma of least leave-one-out error on the true means (median of the runs)
    error          leave-one-out error on the true means with the one and with the other, in reward units (median)
    norm           the estimate over the true norm sqrt(h'G^-1 h) for the gamma chosen (smallest, median, largest)
    below          runs whose estimate is smaller than the true norm, for the gamma chosen
    wrong          runs that stop with a candidate worse than the best by more than epsilon, those of them whose verdict
                   is certified, and those given up at --max-pulls
    pulls          median of certified-kernel's studies, and of three of certified-independent's, without the pilot's
"""

import argparse
import math
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray
from surepick.embeddings import GaussianKernel
from surepick.tuning.kernel import choose_kernel
from surepick_bench.theory.neural import reward_norm

GRID = np.geomspace(1e-3, 1e3, 25)  # times one over the mean squared distance
NUGGET = 1e-3  # variance of the noise that leave-one-out may assume on the true means, which have none


def smooth(seed: int, num_arms: int, dim: int, gamma: float) -> sp.environments.Environment:
    """A function with six kernel bumps, largest value 1, on random points of the unit cube."""
    rng = stream(seed, "smooth", dim)
    features, centres = rng.random((num_arms, dim)), rng.random((6, dim))
    means = GaussianKernel(gamma).gram(features, centres) @ rng.normal(size=6)
    return sp.environments.Environment(
        arms=sp.Arms(features), means=means / np.abs(means).max(), noise=sp.SubGaussian(0.1)
    )


def needle(seed: int) -> sp.environments.Environment:
    """The smooth function of one variable, but for one candidate that is better than all others by .5."""
    world = smooth(seed, 100, 1, 20.0)
    means = np.array(world.means)
    means[stream(seed, "needle").integers(100)] = means.max() + 0.5
    return sp.environments.Environment(arms=world.arms, means=means, noise=world.noise)


def photo(seed: int, data: Path) -> sp.environments.Environment:
    """200 candidates of photo_wf3: degradation of solar cells, scaled onto [0, 1] so that large is good, noise .1."""
    table = sp.environments.table(data / "olympus" / "photo_wf3", noise=sp.SubGaussian(1.0), standardize=True)
    means = -table.means if table.minimize else table.means
    taken = stream(seed, "photo").choice(table.num_arms, 200, replace=False)
    means = (means[taken] - means[taken].min()) / np.ptp(means[taken])
    arms = sp.Arms(table.arms.features[taken])
    return sp.environments.Environment(arms=arms, means=means, noise=sp.SubGaussian(0.1))


CASES = {  # pulls of the pilot, candidates it measures
    "smooth-1d": (200, 50),
    "smooth-2d": (200, 50),
    "needle": (200, 50),
    "two-clusters": (1000, 50),
    "digits": (1200, 60),
    "photo_wf3": (400, 100),
}


def environment_of(name: str, seed: int, data: Path) -> sp.environments.Environment:
    match name:
        case "smooth-1d":
            return smooth(seed, 100, 1, 20.0)
        case "smooth-2d":
            return smooth(seed, 200, 2, 8.0)
        case "needle":
            return needle(seed)
        case "two-clusters":
            return sp.environments.two_clusters(num_arms=250, dim=20, reward="norm", seed=seed)
        case "digits":
            return sp.environments.digits(seed)
    return photo(seed, data)


def pilot(environment: sp.environments.Environment, pulls: int, candidates: int, seed: int) -> Observations:
    rng = stream(seed, "tuning")
    counts = np.zeros(environment.num_arms, np.int64)
    counts[rng.choice(environment.num_arms, candidates, replace=False)] = pulls // candidates
    return environment.pull(counts, rng)


def left_out(features: FloatArray, means: FloatArray, gamma: float) -> float:
    """Root mean square of what leaving one candidate out and predicting it misses, on the true means."""
    inverse = np.linalg.inv(GaussianKernel(gamma).gram(features, features) + NUGGET * np.eye(len(means)))
    return math.sqrt(np.mean((inverse @ means / np.diag(inverse)) ** 2))


def true_best(features: FloatArray, means: FloatArray) -> tuple[float, float]:
    """(gamma of least error on a grid, that error)."""
    squared = np.sum((features[:, None, :] - features[None, :, :]) ** 2, axis=2)
    gammas = GRID / np.mean(squared[squared > 0])
    errors = [left_out(features, means, gamma) for gamma in gammas]
    return float(gammas[int(np.argmin(errors))]), min(errors)


def one(name: str, seed: int, data: Path, epsilon: float, max_pulls: int) -> dict[str, float]:
    environment = environment_of(name, seed, data)
    features, means = environment.arms.features, environment.means
    choice = choose_kernel(features, pilot(environment, *CASES[name], seed), environment.noise)
    gram = GaussianKernel(choice.gamma).gram(features, features)
    best, least = true_best(features, means)
    policy = sp.make_policy(
        "certified-kernel",
        environment.arms,
        epsilon=epsilon,
        delta=0.05,
        noise=environment.noise,
        gamma=choice.gamma,
        norm_bound=choice.norm_estimate,
    )
    run = sp.simulate(policy, environment, seed=seed, max_pulls=max_pulls)
    stopped = run.verdict in ("certified", "heuristic")
    return {
        "chosen": choice.gamma,
        "best": best,
        "error": left_out(features, means, choice.gamma),
        "least": least,
        "norm": choice.norm_estimate / reward_norm(gram, means, range_tolerance=1.0),
        "silent": choice.silent,
        "wrong": stopped and not run.success,
        "wrongly certified": run.verdict == "certified" and not run.success,
        "given up": not stopped,
        "pulls": run.pulls,
    }


def without_features(name: str, data: Path, epsilon: float, max_pulls: int) -> float:
    pulls = []
    for seed in range(3):
        environment = environment_of(name, seed, data)
        policy = sp.make_policy(
            "certified-independent", environment.arms, epsilon=epsilon, delta=0.05, noise=environment.noise
        )
        pulls.append(sp.simulate(policy, environment, seed=seed, max_pulls=max_pulls).pulls)
    return float(np.median(pulls))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, action="append", help="several are possible; none: all")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--epsilon", type=float, default=0.1)
    parser.add_argument("--max-pulls", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    chosen = parser.parse_args()
    for name in chosen.case or CASES:
        rows = [one(name, seed, chosen.data, chosen.epsilon, chosen.max_pulls) for seed in range(chosen.runs)]
        found = {key: np.array([row[key] for row in rows], np.float64) for key in rows[0]}
        norm = " ".join(f"{value:.3g}" for value in np.quantile(found["norm"], [0.0, 0.5, 1.0]))
        print(
            f"{name}: chosen {np.median(found['chosen']):.3g}, best {np.median(found['best']):.3g}; error "
            f"{np.median(found['error']):.2g} and {np.median(found['least']):.2g}; norm {norm}, below "
            f"{np.sum(found['norm'] < 1)}; silent {found['silent'].sum():.0f}; wrong {found['wrong'].sum():.0f} "
            f"({found['wrongly certified'].sum():.0f} with the verdict certified), given "
            f"up {found['given up'].sum():.0f} of {chosen.runs}; pulls {np.median(found['pulls']):,.0f}, "
            f"certified-independent {without_features(name, chosen.data, chosen.epsilon, chosen.max_pulls):,.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
