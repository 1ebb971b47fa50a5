"""Who may still be the best, of tables that exist, beside Hsu's multiple comparisons with the best (MCB).

    OMP_NUM_THREADS=1 python benchmarks/finished_tables.py --data FOLDER [--seeds 5]

FOLDER has LiveCodeBench's tables, the silver nanoparticles and the Open Bandit sample. MCB excludes a candidate if
another one leads by more than the critical value of Dunnett's test, with one variance for all ("pooled") or one for
each difference ("own"), both by simulation. It holds for normal rewards, and for one look.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

import surepick as sp

DELTA, DRAWS = 0.05, 4_000


def mcb_of_items(scores: np.ndarray) -> tuple[int, int]:
    """How many candidates MCB leaves, of scores (K, N): with a pooled variance, and with own ones."""
    number, items = scores.shape
    means, rng = scores.mean(axis=1), np.random.default_rng(0)
    rest = scores - scores.mean(axis=0) - means[:, None] + scores.mean()
    pooled = np.full((number, number), 2.0 * (rest**2).sum() / ((number - 1) * (items - 1)) / items)
    covariance = np.cov(scores) / items
    own = np.diag(covariance)[:, None] + np.diag(covariance) - 2.0 * covariance
    normal = rng.standard_normal((DRAWS, number))
    drawn = normal @ np.linalg.cholesky(covariance + 1e-15 * np.eye(number)).T
    return left(means, pooled, normal * np.sqrt(pooled[0, 0] / 2.0), pooled), left(means, own, drawn, own)


def mcb_of_repeats(rows: list[np.ndarray]) -> tuple[int, int]:
    """The same of independent repeats."""
    counts, means = np.array([len(one) for one in rows]), np.array([one.mean() for one in rows])
    squares, rng = np.array([((one - one.mean()) ** 2).sum() for one in rows]), np.random.default_rng(0)
    free = counts - 1
    variance = squares.sum() / free.sum() / counts
    normal = rng.standard_normal((DRAWS, len(rows)))
    factor = np.sqrt(rng.chisquare(free.sum(), (DRAWS, 1)) / free.sum())
    pooled = left(
        means, variance[:, None] + variance, normal * np.sqrt(variance) / factor, variance[:, None] + variance
    )
    mine = np.maximum(squares / free / counts, 1e-30)
    seen = mine * rng.chisquare(free, (DRAWS, len(rows))) / free
    return pooled, left(means, mine[:, None] + mine, normal * np.sqrt(mine), seen)


def left(means: np.ndarray, variances: np.ndarray, drawn: np.ndarray, of_draws: np.ndarray) -> int:
    """How many stay: variances of differences (K, K); draws of means, and the variances that each draw has."""
    count = 0
    for arm in range(len(means)):
        others = np.arange(len(means)) != arm
        scale = of_draws[arm] if of_draws.shape == variances.shape else of_draws + of_draws[:, [arm]]
        leads = ((drawn - drawn[:, [arm]]) / np.sqrt(np.maximum(scale, 1e-30)))[:, others].max(axis=1)
        lead = ((means - means[arm]) / np.sqrt(np.maximum(variances[arm], 1e-30)))[others].max()
        count += bool(lead <= np.quantile(leads, 1.0 - DELTA))
    return count


def tables(data: Path) -> dict[str, tuple[pd.DataFrame, dict, tuple[int, int]]]:
    """name -> (the table, how it is analyzed, what MCB leaves)."""
    found = {}
    for task in ("testgen", "execution"):
        scores = pd.read_csv(data / "livecodebench" / f"{task}.csv.gz").drop(columns=["question_id"])
        scores.iloc[:, 1:] /= 100.0
        asked = {"across": "all", "item": "item"}
        found[task] = (scores, asked, mcb_of_items(scores.iloc[:, 1:].to_numpy().T))
    silver = pd.read_csv(data / "pvlab" / "AgNP_dataset.csv")
    silver["id"] = silver.groupby(list(silver.columns[:-1]), sort=False).ngroup().map("r{}".format)
    for small in (False, True):
        rows = [one["loss"].to_numpy() * (-1.0 if small else 1.0) for _, one in silver.groupby("id", sort=False)]
        asked = {"id": "id", "reward": "loss", "noise": sp.Normal(), "minimize": small}
        found[f"silver, {'small' if small else 'large'} is good"] = (
            silver[["id", "loss"]],
            asked,
            mcb_of_repeats(rows),
        )
    for logged in ("random", "bts"):
        clicks = pd.read_csv(data / "obd" / logged / "men" / "men.csv.gz")
        clicks["id"] = clicks["item_id"].map("item {}".format)
        rows = [one["click"].to_numpy(float) for _, one in clicks.groupby("id")]
        found[f"clicks, {logged}"] = (
            clicks[["id", "click"]],
            {"id": "id", "reward": "click", "noise": sp.Bernoulli()},
            mcb_of_repeats(rows),
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    print("| table | candidates | rows | may be the best, by seed | MCB pooled, own | tiers | processor seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, (table, asked, mcb) in tables(given.data).items():
        started = time.process_time()
        all_found = [sp.analyze(table, **asked, delta=DELTA, seed=seed) for seed in range(given.seeds)]
        seconds = (time.process_time() - started) / given.seeds
        sizes = ", ".join(str(len(one.possible)) for one in all_found)
        first = all_found[0]
        print(
            f"| {name} | {len(first.ids)} | {sum(first.counts):,} | {sizes} | {mcb[0]}, {mcb[1]} | "
            f"{len(first.tiers or ())} | {seconds:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
