"""Two to ten candidates: mixtures over comparators and margins beside carried evidence, on the same seeds.

    python benchmarks/few_candidates.py [--studies 200] [--rows slippage A/B] [--first-seed 700000]

Each row is an instance, an epsilon and a noise; both policies play it until they stop by themselves, delta .05. Printed
are means with standard errors, standard deviation over mean, the largest study, batches, and wrong answers.
"""

import argparse
from collections.abc import Iterator

import numpy as np

import surepick as sp
from surepick.simulation import Replications

DELTA = 0.05
TEN = np.random.default_rng(1)  # of the instance of ten normal means, not of its studies


def slippage(num_arms: int, best: float, rest: float) -> list[float]:
    return [best, *[rest] * (num_arms - 1)]


def instances() -> Iterator[tuple[str, list[float], float, sp.noise.Noise, sp.noise.Noise]]:
    """(name, means, epsilon, what rewards are drawn from, what is declared of them)."""
    half, ones, three = sp.SubGaussian(0.5), sp.Bernoulli(), sp.SubGaussian(3.0)
    for number in (2, 3, 5, 10):
        yield f"slippage {number}", slippage(number, 0.1001, 0.0), 0.1, half, half
    for high, low in ((0.06, 0.05), (0.11, 0.10), (0.33, 0.30)):
        yield f"A/B {high:.2f}/{low:.2f}", [high, low], (high - low) / 1000.0, ones, ones
    yield "three .12 .11 .10", [0.12, 0.11, 0.10], 1e-5, ones, ones
    yield "five .75 to .25", [0.75, 0.625, 0.5, 0.375, 0.25], 0.0625, ones, ones
    means = np.concatenate([[0.5], TEN.uniform(-0.5, 0.0, 9)])
    gap, one = float(means[0] - means[1:].max()), sp.SubGaussian(1.0)
    yield "ten normal, gap/2", means.tolist(), gap / 2.0, one, one
    yield "ten normal, gap/1000", means.tolist(), gap / 1000.0, one, one
    for high, low in ((0.95, 0.90), (0.98, 0.95)):
        for name, declared in (("0/1", ones), ("bounded", sp.Bounded(0.0, 1.0))):
            yield f"{high:.2f}, nine {low:.2f}, {name}", slippage(10, high, low), 0.4 * (high - low), ones, declared
    for number in (2, 6, 10):
        yield f"equal {number}", [0.0] * number, 5.0, three, three


def played(evidence: str, row: tuple[list[float], float, sp.noise.Noise, sp.noise.Noise], seeds: range) -> Replications:
    """All studies of one evidence."""
    means, epsilon, drawn, declared = row
    world = sp.environments.Environment(arms=sp.Arms(ids=range(len(means))), means=means, noise=drawn)
    asked = {"epsilon": epsilon, "delta": DELTA, "noise": declared, "evidence": evidence}
    return sp.simulate_many(sp.make_policy("certified-independent", world.arms, **asked), world, seeds=seeds)


def described(found: Replications) -> str:
    pulls = found.pulls
    error = pulls.std(ddof=1) / np.sqrt(len(pulls))
    return (
        f"{pulls.mean():9,.0f} ±{error:6,.0f} {pulls.std(ddof=1) / pulls.mean():5.2f} {pulls.max():9,d} "
        f"{found.rounds.mean():6.0f} {np.count_nonzero(~found.right):3d}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=700_000)
    parser.add_argument("--rows", nargs="*", default=[""], help="beginnings of their names")
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.studies)
    head = "     mean   error  sd/m   largest batches wrong"
    print(f"{'':24s} mixtures{head[8:]} |  carried{head[8:]} | ratio")
    for name, *row in instances():
        if not name.startswith(tuple(chosen.rows)):
            continue
        new, old = (played(evidence, tuple(row), seeds) for evidence in ("mixtures", "carried"))
        ratio = new.pulls.mean() / old.pulls.mean()
        print(f"{name:24s} {described(new)} | {described(old)} | {ratio:5.2f}", flush=True)


if __name__ == "__main__":
    main()
