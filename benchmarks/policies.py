"""Own-stop pulls of the certified policies, beside two references that know the means.

    OMP_NUM_THREADS=1 python benchmarks/policies.py [--seeds 100] [--first 300000] [--only sphere,soare] [--mnist DIR]

Epsilon .1, delta .05. "pulls" is what a user pays: the mean over fresh seeds until the own stop (MNIST: a fifth
of the seeds). "must" is the most that the mean may be. The references are surepick.complexity's:

    reference = 2 sigma^2 rho* log(1/(2.4 delta))        rho* for accuracy max(gap, epsilon)
    pac       = 2 sigma^2 H log(1/delta)                 H = min over epsilon-best i, designs, of
                                                             max over j of ||x_i - x_j||^2 / (h_i - h_j + epsilon)^2

both in the dimension of the policy's first batch. Constants of the policy were chosen on other instances
(docs/decisions/0008); seeds from 300,000 on were never looked at for that.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import surepick as sp
from surepick.complexity import hardness, pac_complexity, reference_pulls
from surepick.records import Embedding, IndependentArms

EPSILON, DELTA = 0.1, 0.05
MNIST = "../shared/data/mnist"


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    make: Callable[[int], sp.environments.Environment]
    norm_bound: float
    must: int
    share: float = 1.0


def rows(mnist: str) -> dict[str, Row]:
    """The environments, each with the most pulls that the default policy may take on average."""
    clusters, sphere = sp.environments.two_clusters, sp.environments.sphere
    return {
        "two clusters, K 250": Row(lambda seed: clusters(num_arms=250, dim=25, seed=seed), 0.9, 75),
        "two clusters, K 1000": Row(lambda seed: clusters(num_arms=1000, dim=25, seed=seed), 0.9, 75),
        "norm reward, K 200": Row(lambda seed: clusters(num_arms=200, dim=20, reward="norm", seed=seed), 1.2, 85),
        "perturbation 1e-3": Row(lambda seed: clusters(num_arms=250, dim=25, perturbation=1e-3, seed=seed), 0.9, 80),
        "sphere": Row(lambda seed: sphere(100, 10, seed), 1.0, 7_200),
        "soare": Row(lambda seed: sp.environments.soare(10, 0.6, seed), 1.0, 420),
        "digits": Row(sp.environments.digits, 2.0, 23_000),
        "mnist": Row(lambda seed: sp.environments.mnist(mnist, seed), 2.0, 75_000, 0.2),
    }


def first_embedding(policy) -> Embedding | IndependentArms:
    """The embedding of the policy's first batch."""
    return policy.embedded(policy.ask(policy.init()).dim)


def references(policy, environment) -> tuple[float, float]:
    """(reference, pac), in pulls."""
    sigma, embedded = float(np.max(environment.noise.sigma)), first_embedding(policy)
    rho = hardness(embedded, environment.means, EPSILON)
    asked = reference_pulls(rho.value, sigma=sigma, delta=DELTA)
    found = pac_complexity(embedded, environment.means, EPSILON, sigma=sigma)
    return asked, found.value * math.log(1.0 / DELTA)


def measured(row: Row, name: str, seeds: range) -> str:
    """One line: pulls, the two references and ratios, wrong answers, seconds."""
    pulls, seconds, wrong, uncertified, known = [], [], 0, 0, []
    for seed in seeds:
        environment = row.make(seed)
        started = time.perf_counter()
        options = {} if name == "certified-independent" else {"norm_bound": row.norm_bound}
        policy = sp.make_policy(
            name, environment.arms, epsilon=EPSILON, delta=DELTA, noise=environment.noise, **options
        )
        run = sp.simulate(policy, environment, seed=seed)
        seconds.append(time.perf_counter() - started)
        pulls.append(run.pulls)
        wrong += not run.success
        uncertified += run.verdict != "certified"
        if len(known) < 20:
            known.append(references(policy, environment))
    asked, pac = np.mean(known, axis=0)
    mean, error = np.mean(pulls), np.std(pulls) / math.sqrt(len(pulls))
    some = np.array(pulls[: len(known)]).mean()
    return (
        f"{mean:>9,.0f} +-{error:>6,.0f} {np.median(pulls):>9,.0f} {row.must:>8,} {asked:>8,.0f} {some / asked:>6.1f} "
        f"{pac:>8,.0f} {some / pac:>6.1f} {wrong:>6} {uncertified:>12} {np.median(seconds):>8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=300_000)
    parser.add_argument("--only", default="", help="environments whose name holds one of these words")
    parser.add_argument("--policy", default="certified-linear")
    parser.add_argument("--mnist", default=MNIST)
    chosen = parser.parse_args()
    print(
        f"{chosen.policy}, {chosen.seeds} seeds from {chosen.first}\n{'':22s}{'pulls':>9s} {'':>8s} {'median':>9s} "
        f"{'must':>8s} {'refer.':>8s} {'ratio':>6s} {'pac':>8s} {'ratio':>6s} {'wrong':>6s} {'uncertified':>12s} "
        f"{'seconds':>8s}"
    )
    words = [word for word in chosen.only.split(",") if word]
    for label, row in rows(chosen.mnist).items():
        if words and not any(word in label for word in words):
            continue
        seeds = range(chosen.first, chosen.first + max(1, round(chosen.seeds * row.share)))
        try:
            line = measured(row, chosen.policy, seeds)
        except sp.DatasetMissing as missing:
            line = f" skipped: {missing}"
        print(f"{label:22s}{line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
