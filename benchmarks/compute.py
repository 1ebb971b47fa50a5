"""What surepick itself takes, in processor seconds, the best of several: kernels on many candidates, a round with many,
opening a stored study, the first look at files.

    OMP_NUM_THREADS=1 python benchmarks/compute.py [kernels] [rounds] [opening] [look]
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import surepick as sp


def seconds(work, times=3):
    """The least processor time of several runs."""
    found = []
    for _ in range(times):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def plain(number):
    """Candidates without features."""
    return sp.Arms(np.zeros((number, 0)), [f"c{arm}" for arm in range(number)])


def kernels():
    for number in (500, 1_000, 2_000, 4_000, 5_000, 20_000):
        arms = sp.Arms(np.random.default_rng(3).uniform(-1.0, 1.0, (number, 3)))
        asked = {"epsilon": 0.1, "delta": 0.05, "noise": "subgaussian:0.3", "kernel": "gaussian:1", "norm_bound": 1.0}
        made = sp.make_policy("certified-kernel", arms, **asked).traits.embedding
        took = seconds(lambda arms=arms, asked=asked: sp.make_policy("certified-kernel", arms, **asked), 2)
        left = ", ".join(f"{made.misspecification(min(dim, made.max_dim)):.2g}" for dim in (50, 100, 200))
        print(f"kernels: K = {number:,}: {took:.2f} s, {made.max_dim} directions; left at 50, 100, 200: {left}")


def rounds():
    for number, most in ((10, 60), (1_000, 40), (10_000, 30)):
        best = None
        for _ in range(3):
            random = np.random.default_rng(0)
            truth = random.uniform(0.0, 1.0, number)
            truth[0] = 1.2
            asked = {"epsilon": 0.1, "delta": 0.05, "noise": "subgaussian:0.5", "evidence": "carried"}
            study = sp.Study(sp.make_policy("certified-independent", plain(number), **asked))
            took = []
            while not study.stopped and len(took) < most:
                began = time.process_time()
                batch = study.ask()
                spent = time.process_time() - began
                arms = np.repeat(np.arange(number), batch.counts)
                rewards = truth[arms] + 0.5 * random.standard_normal(len(arms))
                began = time.process_time()
                study.tell(batch, rewards)
                took.append(spent + time.process_time() - began)
            best = took if best is None else np.minimum(best, took)
        print(f"rounds: K = {number:,}: {1e3 * np.mean(best):.1f} ms a round of {len(best)}")


def opening():
    with tempfile.TemporaryDirectory() as folder:
        url, truth, random = f"sqlite:///{folder}/a.db", np.linspace(0.0, 0.05, 10), np.random.default_rng(0)
        asked = {"epsilon": 0.01, "delta": 0.05, "noise": "subgaussian:1", "batch_size": 50, "evidence": "carried"}
        study = sp.create_study(url, "a", sp.make_policy("certified-independent", plain(10), **asked))
        for _ in range(200):
            batch = study.ask()
            arms = np.repeat(np.arange(10), batch.counts)
            study.tell(batch, truth[arms] + random.standard_normal(len(arms)))
        print(f"opening: {seconds(lambda: sp.open_study(url, 'a')):.2f} s for 200 rounds of 50 results")
        opened = sp.open_study(url, "a")
        print(f"opening: {seconds(opened.certificate, 1):.2f} s until it has its first certificate")


def look():
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npy"
        np.save(file, np.random.default_rng(0).standard_normal((1_000_000, 20), dtype=np.float32))
        rows = sp.read_arms(file, blocks=True)

        def reading():
            for block in rows.blocks():
                block.read()

        def looked():
            asked = {"epsilon": 0.1, "delta": 0.05, "noise": "subgaussian:0.5", "norm_bound": 1.0}
            sp.make_policy("certified-linear", rows, **asked)

        read, found = seconds(reading, 5), seconds(looked, 5)
        print(f"look: {found:.3f} s, reading 10^6 rows of 20 numbers {read:.3f} s: {found / read:.1f} times")


if __name__ == "__main__":
    parts = {one.__name__: one for one in (kernels, rounds, opening, look)}
    for name in sys.argv[1:] or parts:
        parts[name]()
