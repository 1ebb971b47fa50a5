"""Which of 164 recipes makes the best silver nanoparticles? A lab that measures in batches.

A machine mixes silver nanoparticles from five flows, and a spectrometer says how far their colour is from the wanted
one: the loss, between 0 and 1, small is good. No two samples of one recipe come out alike, so one sample a recipe
decides nothing. The machine makes at most 96 samples a day.

Promised: the mean loss of the recipe that is named is at most 0.05 above the smallest of all 164; that is wrong with
probability at most 5 %. Assumed: each sample is an independent draw around the mean of its recipe, with a scale of at
most 0.21. (No recipe's recorded samples spread by more than 0.405, and half of a spread is always a valid scale.)

The samples were really made, 4 to 48 of each recipe, and are recorded in a public table (MIT licence):
datasets/AgNP_dataset.csv of https://github.com/PV-Lab/Benchmarking. "To make a sample" is here to draw one of those
that are recorded for its recipe. In your lab, `make_samples` is the machine.

    python docs/examples/recipes.py AgNP_dataset.csv
"""

import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import surepick as sp

SAMPLES_A_DAY = 96


def recorded_losses(path: str | Path) -> dict[str, list[float]]:
    """Recipe -> what was measured of it; a recipe is its five flows."""
    losses = defaultdict(list)
    for row in csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()):
        loss = float(row.pop("loss"))
        losses["/".join(f"{float(flow):g}" for flow in row.values())].append(loss)
    return dict(losses)


def make_samples(recipes: list[str], losses: dict[str, list[float]], rng: np.random.Generator) -> list[float]:
    """Stands for the machine and the spectrometer: one loss for each sample that is asked for."""
    return [float(rng.choice(losses[recipe])) for recipe in recipes]


def days(study: sp.Study) -> Iterator[sp.Batch]:
    """What to make each day, until no more samples are needed."""
    while (batch := study.lease(max_pulls=SAMPLES_A_DAY, worker="machine")) is not None:
        yield batch


def run(path: str | Path, *, seed: int = 0) -> sp.Study:
    """Day after day: ask what to make, make it, tell what came."""
    losses, rng = recorded_losses(path), np.random.default_rng(seed)
    arms = sp.Arms(ids=list(losses))
    policy = sp.make_policy("certified-independent", arms, epsilon=0.05, delta=0.05, noise=sp.SubGaussian(0.21))
    study = sp.Study(policy, minimize=True)
    for day, batch in enumerate(days(study), start=1):
        receipt = study.tell(batch, make_samples(batch.pulls(), losses, rng))  # under their keys: each counts once
        if receipt.closed:  # all that the plan asked for is in: now the study judges the results
            judged = study.trace[-1]
            print(f"day {day:2d}: {judged.total_pulls:5,} samples so far, recipes still possible: {len(judged.active)}")
    return study


def main(path: str) -> None:
    study = run(path)
    answer = study.certificate()
    means = {recipe: float(np.mean(losses)) for recipe, losses in recorded_losses(path).items()}
    print(f"\nThe recipe to take (flows of AgNO3/pva/tsc/seed in %, total in uL/min): {answer.best_arm}")
    print(f"{answer.verdict}: {answer.promise}")
    mean, smallest = means[answer.best_arm], min(means.values())
    print(f"Over all recorded samples its mean loss is {mean:.3f}; the smallest of all is {smallest:.3f}.")


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)
