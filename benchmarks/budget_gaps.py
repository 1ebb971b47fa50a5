"""What a budget shows: the certified gap after N measurements beside that of a uniform plan, and simple regret.

    python benchmarks/budget_gaps.py [--studies 100] [--rows ten three] [--first-seed 500000]

Uniform is N/K measurements of each candidate and a bound that holds for them: the leader's largest
mean_j - mean_c + s sqrt(2 log((K - 1)/delta) (1/n_j + 1/n_c)) over the others, at least 0. Regret is how much worse the
recommended candidate is in truth, beside that of Successive Rejects (Audibert et al. 2010) and Sequential Halving
(Karnin et al. 2013), which prove nothing. delta = .05.
"""

import argparse
import math
from collections.abc import Iterator

import numpy as np

import surepick as sp
from surepick.noise import Noise, Normal

DELTA, SCALE = 0.05, 0.5
EACH = (6, 12, 24, 48, 96)  # measurements of a candidate in the uniform plan
Drawn = np.ndarray


def instances() -> Iterator[tuple[str, Drawn, Noise, Noise]]:
    """(name, means, what rewards are drawn from, what is declared of them)."""
    half, ones, unknown = sp.SubGaussian(SCALE), sp.Bernoulli(), Normal()
    for name, number in (("three", 3), ("ten", 10), ("thirty", 30), ("hundred", 100)):
        yield f"{name}, 1 to 0", np.linspace(1.0, 0.0, number), half, half
    yield "ten, one better by .3", np.array([0.3, *[0.0] * 9]), half, half
    yield "ten alike", np.zeros(10), half, half
    yield "ten rates, .5 to .05", np.linspace(0.5, 0.05, 10), ones, ones
    yield "ten, 1 to 0, scale unknown", np.linspace(1.0, 0.0, 10), half, unknown


def drawn(means: Drawn, counts: Drawn, noise: Noise, rng: np.random.Generator) -> Drawn:
    """Mean of so many measurements of each candidate."""
    if isinstance(noise, sp.Bernoulli):
        return np.asarray(rng.binomial(counts, means) / counts)
    return np.asarray(means + SCALE / np.sqrt(counts) * rng.standard_normal(len(means)))


def uniform_gap(means: Drawn, budget: int, noise: Noise, rng: np.random.Generator) -> float:
    number = len(means)
    counts = budget // number + (np.arange(number) < budget % number)
    seen = drawn(means, counts, noise, rng)
    leader = int(np.argmax(seen))
    widths = SCALE * np.sqrt(2.0 * math.log((number - 1) / DELTA) * (1.0 / counts + 1.0 / counts[leader]))
    return float(max(0.0, np.delete(seen - seen[leader] + widths, leader).max()))


def by_phases(means: Drawn, ends: list[int], kept: list[int], noise: Noise, rng: np.random.Generator) -> int:
    """The arm that is left when after each phase, with so many pulls of each in all, so many are kept."""
    arms, sums, counts = np.arange(len(means)), np.zeros(len(means)), np.zeros(len(means))
    for end, number in zip(ends, kept, strict=True):
        more = np.maximum(end - counts[arms], 0).astype(np.int64)
        there = arms[more > 0]
        sums[there] += more[more > 0] * drawn(means[there], more[more > 0], noise, rng)
        counts[arms] += more
        order = np.argsort(-sums[arms] / np.maximum(counts[arms], 1), kind="stable")
        arms = arms[order[:number]]
    return int(arms[0])


def rejects(means: Drawn, budget: int, noise: Noise, rng: np.random.Generator) -> int:
    number = len(means)
    share = 0.5 + sum(1.0 / each for each in range(2, number + 1))
    ends = [math.ceil((budget - number) / share / (number + 1 - phase)) for phase in range(1, number)]
    return by_phases(means, ends, list(range(number - 1, 0, -1)), noise, rng)


def halving(means: Drawn, budget: int, noise: Noise, rng: np.random.Generator) -> int:
    number, phases, ends, kept, each = len(means), math.ceil(math.log2(len(means))), [], [], 0
    while number > 1:
        each += max(budget // (number * phases), 1)
        number = math.ceil(number / 2)
        ends.append(each)
        kept.append(number)
    return by_phases(means, ends, kept, noise, rng)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first-seed", type=int, default=500_000)
    parser.add_argument("--rows", nargs="*", default=[""], help="beginnings of their names")
    chosen = parser.parse_args()
    seeds = range(chosen.first_seed, chosen.first_seed + chosen.studies)
    print(f"{'':27s}     N  uniform  certified         ratio  none wrong  regret   rejects  halving")
    for name, means, truth, declared in instances():
        if not name.startswith(tuple(chosen.rows)):
            continue
        world = sp.environments.Environment(arms=sp.Arms(ids=range(len(means))), means=means, noise=truth)
        for each in EACH:
            budget = each * len(means)
            policy = sp.make_policy("certified-independent", world.arms, delta=DELTA, noise=declared, budget=budget)
            found = sp.simulate_many(policy, world, seeds=seeds)
            gaps, regret = found.certified_gaps, world.gaps[found.arms]
            rng = np.random.default_rng(chosen.first_seed)
            plain = np.mean([uniform_gap(means, budget, truth, rng) for _ in seeds for _ in range(10)])
            others = [
                np.mean([world.gaps[rule(means, budget, truth, rng)] for _ in seeds for _ in range(10)])
                for rule in (rejects, halving)
            ]
            error = gaps.std(ddof=1) / math.sqrt(len(gaps))
            print(
                f"{name:27s} {budget:5,d}  {plain:7.3f}  {gaps.mean():6.3f} ±{error:.3f}"
                f"  {gaps.mean() / max(plain, 1e-9):8.2f}  {np.count_nonzero(~np.isfinite(gaps)):4d} "
                f"{np.count_nonzero(regret > gaps):5d}  {regret.mean():6.4f}"
                f"   {others[0]:6.4f}   {others[1]:6.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
