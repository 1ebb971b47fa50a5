"""New measurements of a study that begins with the rows of a finished table, beside one from nothing.

    OMP_NUM_THREADS=1 python benchmarks/continued_tables.py [--studies 100]

Both are asked for the same, by fresh draws. The first is offered the rows that are left before each round.
"""

import argparse

import numpy as np

import surepick as sp
from surepick.analysis.continued import told
from surepick.analysis.table import FinishedTable

INSTANCES = {  # means, rows of each candidate, noise, epsilon
    "5, normal, known scale": (np.linspace(1.0, 0.2, 5), 20, sp.SubGaussian(0.5), 0.1),
    "6, normal, scale unknown": (np.linspace(1.0, 0.0, 6), 15, sp.Normal(), 0.1),
    "12, normal, known scale": (np.linspace(1.0, 0.0, 12), 20, sp.SubGaussian(0.5), 0.1),
    "4, right or wrong": (np.array([0.5, 0.4, 0.35, 0.2]), 100, sp.Bernoulli(), 0.05),
    "10, right or wrong": (np.linspace(0.6, 0.2, 10), 100, sp.Bernoulli(), 0.05),
}


def drawn(rng: np.random.Generator, means: np.ndarray, noise: object) -> np.ndarray:
    """A measurement at each of the means."""
    if isinstance(noise, sp.Bernoulli):
        return (rng.random(len(means)) < means).astype(float)
    return means + 0.5 * rng.standard_normal(len(means))


def play(name: str, seed: int, *, with_table: bool) -> tuple[int, int, bool]:
    """(rows of the table that were used, new measurements, whether the answer is good enough)."""
    means, rows, noise, epsilon = INSTANCES[name]
    rng, number = np.random.default_rng([seed, int(with_table)]), len(means)
    ids, counts = tuple(map(str, range(number))), np.full(number, rows)
    held = FinishedTable("drawn", ids, drawn(rng, np.repeat(means, rows), noise), counts, None, noise, False, False)
    policy = sp.make_policy("certified-independent", sp.Arms(ids=ids), epsilon=epsilon, delta=0.05, noise=noise)
    study, used, new = sp.Study(policy), 0, 0
    while not study.stopped:
        if with_table:
            used = told(study, held, seed, "table")
        if study.ask() is None:
            break
        arms = np.repeat(np.arange(number), np.maximum(study.missing, 0))
        study.tell([ids[arm] for arm in arms], drawn(rng, means[arms], noise), accept_unusual="unasked")
        new += len(arms)
    return used, new, bool(means.max() - means[ids.index(study.recommend())] <= epsilon)


def main() -> None:
    """Print a line an instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=100)
    studies = parser.parse_args().studies
    print("| candidates | rows in the table | of these used | new measurements | from nothing | wrong |")
    print("|---|---|---|---|---|---|")
    for name, (means, rows, _, _) in INSTANCES.items():
        with_table, without = (
            np.array([play(name, seed, with_table=each) for seed in range(studies)]) for each in (True, False)
        )
        error = [one[:, 1].std(ddof=1) / np.sqrt(studies) for one in (with_table, without)]
        shown = [
            f"{one[:, 1].mean():,.0f} +- {each:.0f}" for one, each in zip((with_table, without), error, strict=True)
        ]
        wrong = f"{int((with_table[:, 2] == 0).sum())} and {int((without[:, 2] == 0).sum())} of {studies}"
        print(f"| {name} | {rows * len(means):,} | {with_table[:, 0].mean():,.0f} | {' | '.join(shown)} | {wrong} |")


if __name__ == "__main__":
    main()
