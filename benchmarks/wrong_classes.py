"""How often is an answer wrong that was certified under a named class, where the class holds and where it does not?

    OMP_NUM_THREADS=1 python benchmarks/wrong_classes.py [--studies 100] [--first 950000] [--only "one arm off"]

A hundred arms, epsilon .1, sigma .5, the policy certified-readings until its own stop. "certified" counts studies that
were; "class false" those of them in which the function that was drawn is not in the class as the answer states it (its
norm is larger, or a mean is further off); "wrong" those whose answer is not within epsilon of the best; "wrong, class
true" those of the wrong ones in which the class holds, which are at most delta of all; "largest off" the most that
means may be off in the answers that were wrong, by their own reading, in units of epsilon.
"""

import argparse
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

import surepick as sp
from surepick.assumptions.reading import class_in_words
from surepick.assumptions.records import LEVEL, Linear, Near, Smooth, balls
from surepick.core.random_streams import stream

ARMS, DIM, EPSILON, DELTA, SIGMA = 100, 5, 0.1, 0.05, 0.5
CERTAINTY = 1e-6


@dataclass(frozen=True)
class Truth:
    """Features and means."""

    features: np.ndarray
    means: np.ndarray


def plane(rng: np.random.Generator) -> Truth:
    """Normal features of mean length 1, and a direction of length 1."""
    features = rng.normal(size=(ARMS, DIM))
    features /= np.linalg.norm(features, axis=1).mean()
    direction = rng.normal(size=DIM)
    return Truth(features, features @ (direction / np.linalg.norm(direction)))


def one_arm_off(rng: np.random.Generator) -> Truth:
    """The plane, and one arm of it that is better by 3 epsilon: of those that make it the best of all by 2 epsilon."""
    found = plane(rng)
    means = found.means.copy()
    near = np.flatnonzero(means >= means.max() - EPSILON)
    means[rng.choice(near)] += 3.0 * EPSILON
    return Truth(found.features, means)


def any_arm_off(rng: np.random.Generator) -> Truth:
    """The plane, and one arm of it, whichever, that is off by 3 epsilon."""
    found = plane(rng)
    means = found.means.copy()
    means[rng.integers(ARMS)] += 3.0 * EPSILON * rng.choice([-1.0, 1.0])
    return Truth(found.features, means)


def ten_bumps(rng: np.random.Generator) -> Truth:
    """The plane, and ten arms that are off by N(0, epsilon^2)."""
    found = plane(rng)
    means = found.means.copy()
    means[rng.choice(ARMS, 10, replace=False)] += EPSILON * rng.normal(size=10)
    return Truth(found.features, means)


def smooth(rng: np.random.Generator, width: float = 8.0, dim: int = 2) -> Truth:
    """Sums of eight Gaussian bumps on random points of the unit square, of range 1."""
    features, centres = rng.random((ARMS, dim)), rng.random((8, dim))
    squares = np.sum((features[:, None] - centres[None]) ** 2, axis=2)
    means = np.exp(-width * squares / dim) @ rng.normal(size=8)
    return Truth(features, means / np.ptp(means))


def rough(rng: np.random.Generator) -> Truth:
    """The same with bumps of a third of the width."""
    return smooth(rng, 72.0)


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    truth: Callable[[np.random.Generator], Truth]
    assume: str
    trust: str | float


ROWS = {
    "the class holds": Row(plane, "linear", "exact"),
    "the class holds, roughly": Row(plane, "linear", "roughly"),
    "one arm off, the best": Row(one_arm_off, "linear", "exact"),
    "one arm off, the best, roughly": Row(one_arm_off, "linear", "roughly"),
    "one arm off, the best, 3 epsilon": Row(one_arm_off, "linear", 3.0 * EPSILON),
    "one arm off, any": Row(any_arm_off, "linear", "exact"),
    "one arm off, any, roughly": Row(any_arm_off, "linear", "roughly"),
    "one arm off, any, 3 epsilon": Row(any_arm_off, "linear", 3.0 * EPSILON),
    "ten bumps": Row(ten_bumps, "linear", "exact"),
    "ten bumps, roughly": Row(ten_bumps, "linear", "roughly"),
    "smooth": Row(smooth, "smooth", "exact"),
    "smooth, roughly": Row(smooth, "smooth", "roughly"),
    "another length scale": Row(rough, "smooth:length=0.6", "exact"),
    "another length scale, roughly": Row(rough, "smooth:length=0.6", "roughly"),
}


def holds(truth: Truth, stated: Near | Linear | Smooth) -> bool:
    """Whether the means are in a class: by a function of it found by ridge regression, whose misses are at most gamma.

    The ridge runs over many strengths, and the one of least norm that is near enough is taken, so that the answer errs
    towards "it does not hold".
    """
    gamma = stated.gamma if isinstance(stated, Near) else 0.0
    inner = balls(stated)[0]
    norm = inner.norm
    if isinstance(inner, Linear):
        gram = truth.features @ truth.features.T
    else:
        gram = inner.of(truth.features).gram(truth.features, truth.features)
    gram = gram + (LEVEL**2 if inner.level else 0.0)
    values, vectors = np.linalg.eigh(gram)
    values = np.maximum(values, 0.0)
    along = vectors.T @ truth.means
    for strength in np.geomspace(1e-12, 1e3, 61) * values[-1]:
        shrunk = along * values / (values + strength)
        missed = float(np.abs(vectors @ shrunk - truth.means).max())
        size = float(np.sqrt(np.sum(along**2 * values / (values + strength) ** 2)))
        if missed <= gamma + 1e-6 * EPSILON and size <= norm:
            return True
    return False


@dataclass(frozen=True)
class Outcome:
    """What came of a study."""

    certified: bool
    wrong: bool
    true: bool  # one of the classes that the answer names holds
    off: float  # the most that means may be off, by its reading, in units of epsilon
    pulls: int


def played(row: Row, seed: int) -> Outcome:
    """One study to its own stop."""
    truth = row.truth(stream(seed, "wrong classes", row.truth.__name__))
    world = sp.environments.Environment(arms=sp.Arms(truth.features), means=truth.means, noise=sp.SubGaussian(SIGMA))
    policy = sp.make_policy(
        "certified-readings",
        world.arms,
        epsilon=EPSILON,
        delta=DELTA,
        noise=world.noise,
        assume=row.assume,
        trust=row.trust,
    )
    run = sp.simulate(policy, world, seed=seed, max_pulls=200_000)
    certified = run.verdict == "certified"
    said = re.sub(r" \(the results suggest up to [^)]*\)", "", " ".join(run.certificate.assumptions).lower())
    readings = [run.study.read(one) for one in policy.named] if certified else []
    stated = [one for one in readings if class_in_words(one.assumption, "").lower() in said]
    true = any(holds(truth, one.assumption) for one in stated)
    off = max((one.largest_misspecification or 0.0 for one in stated), default=0.0) / EPSILON
    return Outcome(certified, certified and not run.success, true, off, run.pulls)


def line(name: str, row: Row, seeds: range) -> str:
    """A line of the table."""
    found = [played(row, seed) for seed in seeds]
    certified = [one for one in found if one.certified]
    wrong = [one for one in certified if one.wrong]
    within = sum(one.true for one in wrong)
    allowed = int(binom.isf(CERTAINTY, len(found), DELTA))
    largest = max((one.off for one in wrong), default=0.0)
    trust = row.trust if isinstance(row.trust, str) else f"{row.trust:g}"
    return (
        f"| {name} | {row.assume} | {trust} | {np.mean([one.pulls for one in found]):,.0f} | {len(certified)} of "
        f"{len(found)} | {sum(not one.true for one in certified)} | {len(wrong)} | {within} (at most {allowed}) "
        f"| {f'{largest:.2g}' if wrong else '-'} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=100)
    parser.add_argument("--first", type=int, default=950_000)
    parser.add_argument("--only", default="", help="names that begin so")
    asked = parser.parse_args()
    print("| truth | assume | trust | pulls | certified | class false | wrong | wrong, class true | largest off |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, row in ROWS.items():
        if name.startswith(asked.only):
            print(line(name, row, range(asked.first, asked.first + asked.studies)), flush=True)


if __name__ == "__main__":
    main()
