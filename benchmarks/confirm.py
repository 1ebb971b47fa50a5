"""The last round of noisy searches: OMP_NUM_THREADS=1 python benchmarks/confirm.py [--seeds 40]

Each search tries settings of a model once each, and its ten best scores are the finalists. Then somebody names one: by
the score of the search, by the mean of ten new results each, or by `confirm`, which is `find_best` on the finalists. A
miss is a finalist that is worse than the best finalist by more than epsilon.

Below that what a preference takes: studies of few candidates, of which the second is the cheapest.
"""

import argparse
import warnings
from collections.abc import Callable

import numpy as np

import surepick as sp
from surepick.core.random_streams import stream

EPSILON, DELTA, FINALISTS, REPEATS = 0.05, 0.05, 10, 10
Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]  # means -> a result of each


def surface(settings: np.ndarray) -> np.ndarray:
    """The mean result of settings in the unit square, (n, 2): one hill, and a ridge beside it."""
    x, y = settings.T
    return 0.9 - 1.2 * (x - 0.6) ** 2 - 0.8 * (y - 0.3) ** 2 + 0.05 * np.sin(9.0 * x)


def scattered(means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A standard deviation of .1."""
    return rng.normal(means, 0.1)


def very_scattered(means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One of .2."""
    return rng.normal(means, 0.2)


def share_of_100(means: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Right answers of 100."""
    return rng.binomial(100, np.clip(means, 0.0, 1.0)) / 100.0


def at_random(draw: Draw, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """(means, scores) of 200 settings."""
    means = surface(rng.random((200, 2)))
    return means, draw(means, rng)


def climbing(draw: Draw, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same of 200 settings, of which each after the first 20 is near one of the five best so far."""
    settings = [rng.random(2) for _ in range(20)]
    scores = list(draw(surface(np.array(settings)), rng))
    while len(settings) < 200:
        near = settings[rng.choice(np.argsort(scores)[-5:])]
        settings.append(np.clip(near + rng.normal(0.0, 0.1, 2), 0.0, 1.0))
        scores.append(float(draw(surface(settings[-1][None]), rng)[0]))
    return surface(np.array(settings)), np.array(scores)


SEARCHES = {
    "at random, sd .1": (at_random, scattered, "normal"),
    "climbing, sd .2": (climbing, very_scattered, "normal"),
    "climbing, 100 test cases": (climbing, share_of_100, "bounded:0:1"),
}


def answers(name: str, seed: int) -> dict[str, tuple[float, int]]:
    """way -> (how much worse than the best finalist its answer is, new results)."""
    search, draw, noise = SEARCHES[name]
    means, scores = search(draw, stream(seed, "confirm", "search"))
    best = np.sort(np.argsort(-scores, kind="stable")[:FINALISTS])
    top, rng = means[best], stream(seed, "confirm", "repeats")
    repeated = np.array([draw(top, rng) for _ in range(REPEATS)])
    found = {
        "best score": (scores[best], 0),
        "10 x 10": (repeated.mean(axis=0), repeated.size),
        "10 x 10 and the score": ((repeated.sum(axis=0) + scores[best]) / (REPEATS + 1), repeated.size),
    }
    shown = {way: (float(top.max() - top[np.argmax(values)]), number) for way, (values, number) in found.items()}
    asked = {"epsilon": EPSILON, "delta": DELTA, "noise": noise, "max_pulls": np.inf}
    ways = {
        "confirm": lambda measure: sp.confirm(range(len(means)), measure, scores=scores, top=FINALISTS, **asked),
        "find_best": lambda measure: sp.find_best(best.tolist(), measure, **asked),
    }
    for way, run in ways.items():
        new = stream(seed, "confirm", "new")
        answer = run(lambda ids, new=new: draw(means[list(ids)], new))
        shown[way] = (float(top.max() - means[answer.best_arm]), answer.pulls)
    return shown


def preference(gaps: tuple[float, ...], seed: int, *, preferred: bool) -> tuple[bool, int]:
    """(whether the second candidate is named, the cheapest of those that are near; measurements)."""
    rng, means = stream(seed, "confirm", "preference"), -np.array(gaps)
    prefer = [3.0, 2.0, *[1.0] * (len(gaps) - 2)] if preferred else None
    found = sp.find_best(
        range(len(gaps)),
        lambda ids: rng.normal(means[list(ids)], 0.1),
        epsilon=EPSILON,
        delta=DELTA,
        noise="subgaussian:0.1",
        prefer=prefer,
    )
    return found.best_arm == 1, found.pulls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=40)
    seeds = range(parser.parse_args().seeds)
    warnings.simplefilter("ignore", UserWarning)
    print(f"epsilon {EPSILON}, delta {DELTA}, {FINALISTS} finalists of 200, {len(seeds)} searches each\n")
    print("| search | way | misses of epsilon | mean shortfall | new results |\n|---|---|---|---|---|")
    for name in SEARCHES:
        each = [answers(name, seed) for seed in seeds]
        for way in each[0]:
            shortfalls, numbers = np.array([one[way] for one in each]).T
            missed = int(np.count_nonzero(shortfalls > EPSILON))
            print(f"| {name} | {way} | {missed} | {shortfalls.mean():.4f} | {numbers.mean():.0f} |")
    print("\n| candidates | the second is worse by | named without, with a preference | measurements without, with |")
    print("|---|---|---|---|")
    for number, gap in ((3, 0.0), (3, 0.01), (3, 0.02), (3, 0.04), (3, 0.1), (10, 0.01), (10, 0.1)):
        gaps = (0.0, gap, *[0.15] * (number - 2))
        usual, chosen = (
            np.array([preference(gaps, seed, preferred=preferred) for seed in seeds], float).mean(axis=0)
            for preferred in (False, True)
        )
        print(f"| {number} | {gap:g} | {usual[0]:.2f}, {chosen[0]:.2f} | {usual[1]:.0f}, {chosen[1]:.0f} |")


if __name__ == "__main__":
    main()
