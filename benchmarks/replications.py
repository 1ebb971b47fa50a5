"""Studies a second of processor time: one by one, and many at once.

    OMP_NUM_THREADS=1 python benchmarks/replications.py [--studies 10000] [--alone 60] [--repeats 3] [--only slippage]
        [--evidence mixtures]

certified-independent, carried evidence unless said, delta .05, epsilon .1. Both are timed in turn, `repeats` times, and
the best of each counts. The studies that were played one by one have the same numbers as those played at once, or the
script says so and fails.
"""

import argparse
import sys
import time
from collections.abc import Callable

import numpy as np

import surepick as sp

worlds = sp.environments
MEANS = 0.3 * np.random.default_rng(7).normal(size=40)
WORLDS = {
    "slippage, K 10": worlds.one_better(10, 0.1, 0, sigma=0.5),
    "normal means, K 10": worlds.one_better(10, 0.6, 0),
    "normal means, K 40": worlds.Environment(arms=sp.Arms(ids=range(40)), means=MEANS, noise=sp.SubGaussian(0.5)),
    "Bernoulli, K 10": worlds.Environment(arms=sp.Arms(ids=range(10)), means=0.5 + MEANS[:10], noise=sp.Bernoulli()),
}


def seconds(play: Callable[[], object]) -> tuple[float, object]:
    """(processor time, what was played)."""
    started = time.process_time()
    played = play()
    return time.process_time() - started, played


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=10_000)
    parser.add_argument("--alone", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--evidence", default="carried")
    given = parser.parse_args()
    print("| instance | rounds | one by one | at once | times | right |\n|---|---|---|---|---|---|")
    for name, world in WORLDS.items():
        if given.only not in name:
            continue
        asked = {"epsilon": 0.1, "delta": 0.05, "noise": world.noise, "evidence": given.evidence}
        policy = sp.make_policy("certified-independent", world.arms, **asked)

        def alone(policy=policy, world=world) -> list:
            return [sp.simulate(policy, world, seed=seed) for seed in range(given.alone)]

        def at_once(policy=policy, world=world):
            return sp.simulate_many(policy, world, seeds=range(given.studies))

        pairs = [(seconds(alone), seconds(at_once)) for _ in range(given.repeats)]
        (_, runs), (_, many) = pairs[0]
        slow, fast = given.alone / min(one[0] for one, _ in pairs), given.studies / min(two[0] for _, two in pairs)
        if [(run.arm, run.verdict, run.counts.tolist()) for run in runs] != [
            (arm, verdict, counts.tolist())
            for arm, verdict, counts, _ in zip(many.arms, many.verdicts, many.counts, runs, strict=False)
        ]:
            print(f"{name}: the numbers differ.")
            return 1
        right, rounds = np.count_nonzero(many.right), many.rounds.mean()
        print(
            f"| {name} | {rounds:.1f} | {slow:.0f} | {fast:.0f} | {fast / slow:.1f} | {right:,} of {given.studies:,} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
