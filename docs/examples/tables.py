"""Candidates, plans and results as data frames: the same study with pandas and with polars.

A bakery has 24 doughs, flour and resting time in a data frame, and scores from a taster in another. What it passes on:

- candidates: a data frame with an id and features becomes `sp.Arms`;
- what to measure next: a plan becomes a data frame, a row a candidate;
- results: two columns of a data frame, ids and scores, are told;
- what happened: a row for each judged batch;
- a study in a database (with polars): the file that `surepick export` writes is read back.

Promised: the mean score of the dough that is named is at most 0.3 below the largest; that is wrong with probability at
most 5 %. Assumed: scores scatter by at most 1 around their means, and the means are a linear function of the features
(share of wheat, hours of rest / 24, and 1), with a coefficient vector of norm at most 10.

    python docs/examples/tables.py                        # needs pandas, polars and surepick[studies]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl

import surepick as sp

FEATURES = ["wheat", "rest", "one"]
DOUGHS = {
    "dough": [f"{wheat} % wheat, {hours} h" for wheat in (0, 20, 40, 60, 80, 100) for hours in (6, 12, 18, 24)],
    "wheat": np.repeat([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], 4),
    "rest": np.tile([0.25, 0.5, 0.75, 1.0], 6),
    "one": np.ones(24),
}


def taste(doughs: list[str], rng: np.random.Generator) -> list[float]:
    """Stands for the taster; the truth is hidden in real life."""
    truth = dict(zip(DOUGHS["dough"], 5.0 + 1.5 * DOUGHS["wheat"] + 2.0 * DOUGHS["rest"], strict=True))
    return [truth[dough] + rng.normal(0.0, 1.0) for dough in doughs]


def linear_policy(arms: sp.Arms) -> sp.Policy:
    return sp.make_policy("certified-linear", arms, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(1.0), norm_bound=10.0)


def trace_rows(study: sp.Study) -> list[dict[str, object]]:
    """A row for each judged batch, ready for a data frame of either library."""
    return [
        {"round": row.round, "pulls": row.total_pulls, "possible": len(row.active), "leader": study.ids[row.leader]}
        for row in study.trace
    ]


def run(seed: int = 0) -> sp.Study:
    """In memory, with pandas."""
    doughs, rng = pd.DataFrame(DOUGHS), np.random.default_rng(seed)
    arms = sp.Arms(doughs[FEATURES], ids=doughs["dough"], columns=FEATURES)
    study = sp.Study(linear_policy(arms))
    while (batch := study.ask()) is not None:
        todo = pd.DataFrame(batch.table(), columns=["dough", "times"])
        results = todo.loc[todo.index.repeat(todo["times"]), ["dough"]]  # a row a measurement
        results["score"] = taste(results["dough"].to_list(), rng)
        study.tell(results["dough"], results["score"])
    print("pandas, in memory:")
    print(pd.DataFrame(trace_rows(study)).to_string(index=False))
    return study


def run_durable(folder: Path, seed: int = 0) -> sp.Study:
    """In a database, with polars."""
    doughs, rng = pl.DataFrame(DOUGHS), np.random.default_rng(seed)
    arms = sp.Arms(doughs.select(FEATURES), ids=doughs["dough"], columns=FEATURES)
    url = f"sqlite:///{folder / 'bakery.db'}"
    study = sp.create_study(url, "doughs", linear_policy(arms))
    while (batch := study.ask()) is not None:
        todo = pl.DataFrame(batch.table(), schema=["dough", "times"], orient="row")
        results = todo.select(pl.col("dough").repeat_by("times").explode())
        results = results.with_columns(score=pl.Series(taste(results["dough"].to_list(), rng)))
        study.tell(results["dough"], results["score"])
    print("\npolars, in a database:")
    print(pl.DataFrame(trace_rows(study)))
    command = [sys.executable, "-m", "surepick", "export", url, "doughs", "--out", str(folder / "results.csv")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # surepick export URL doughs --out results.csv
    exported = pl.read_csv(folder / "results.csv")
    best = exported.group_by("id").agg(pl.len().alias("pulls"), (pl.sum("sum") / pl.sum("pulls")).alias("mean"))
    print("\nexported, the most measured:")
    print(best.sort("pulls", "id", descending=[True, False]).head(3))
    return study


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for study in (run(), run_durable(Path(folder))):
            answer = study.certificate()
            print(f"\n{answer.best_arm}, {answer.verdict} after {answer.pulls} measurements. {answer.promise}")


if __name__ == "__main__":
    main()
