"""Answers that a certificate takes on a finite set of test items: OMP_NUM_THREADS=1 python benchmarks/items.py

LiveCodeBench's tables, 37 models on 442 and 479 questions: `certified-items` (every model answers the same questions in
one random order) beside `certified-independent` (each pull is a random question). One seed is one order.

    python benchmarks/items.py --data FOLDER [--orders 100] [--independent 0] [--only testgen:.05]
"""

import argparse
import time
from pathlib import Path

import numpy as np

import surepick as sp
from surepick.items import Items
from surepick.policies.base import Problem
from surepick.policies.items import CertifiedItems
from surepick_bench.datasets.public import livecodebench

DELTA = 0.05
FIRST_SEED = 700_000  # constants were chosen on synthetic tables
LINES = {"testgen": (0.05, 0.02), "execution": (0.05, 0.02)}
ASKED = {("testgen", 0.05): 1700, ("testgen", 0.02): 1900, ("execution", 0.05): 4500, ("execution", 0.02): 5300}


def by_items(world: sp.environments.Environment, epsilon: float, seed: int) -> sp.simulation.Run:
    """A study of the items in one order."""
    problem = Problem(world.num_arms, epsilon, DELTA, world.noise, arms=world.arms)
    return sp.simulate(CertifiedItems(problem, Items(world.law.scores.shape[1]), seed), world)


def by_draws(world: sp.environments.Environment, epsilon: float, seed: int) -> sp.simulation.Run:
    """A study of random items."""
    policy = sp.make_policy("certified-independent", world.arms, epsilon=epsilon, delta=DELTA, noise=world.noise)
    return sp.simulate(policy, world, seed=seed)


def line(name: str, world: sp.environments.Environment, epsilon: float, seeds: range, play: object) -> str:
    """A row of the table."""
    started = time.process_time()
    runs = [play(world, epsilon, seed) for seed in seeds]
    seconds = (time.process_time() - started) / len(runs)
    pulls = np.array([run.pulls for run in runs])
    right = sum(run.success for run in runs)
    error = pulls.std(ddof=1) / np.sqrt(len(pulls)) if len(pulls) > 1 else np.nan
    return (
        f"| {name} | {epsilon:g} | {world.law.scores.size:,} | {pulls.mean():,.0f} +- {error:,.0f} | "
        f"{np.median(pulls):,.0f} | {pulls.max():,} | {np.mean([len(run.rounds) for run in runs]):.0f} | "
        f"{ASKED.get((world_task(name), epsilon), 0):,} | {right}/{len(runs)} | {seconds:.2f} |"
    )


def world_task(name: str) -> str:
    """The task of a row's name."""
    return name.split(",", maxsplit=1)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--orders", type=int, default=100)
    parser.add_argument("--independent", type=int, default=0, help="runs of certified-independent")
    parser.add_argument("--only", default="")
    chosen = parser.parse_args()
    print("| table | epsilon | whole table | answers | median | largest | plans | asked | right | seconds |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for task, epsilons in LINES.items():
        world = livecodebench(chosen.data, task)
        for epsilon in epsilons:
            if chosen.only not in ("", f"{task}:{epsilon:g}".replace("0.", ".")):
                continue
            seeds = range(FIRST_SEED, FIRST_SEED + chosen.orders)
            print(line(task, world, epsilon, seeds, by_items), flush=True)
            if chosen.independent:
                drawn = range(FIRST_SEED, FIRST_SEED + chosen.independent)
                print(line(f"{task}, random items", world, epsilon, drawn, by_draws), flush=True)


if __name__ == "__main__":
    main()
