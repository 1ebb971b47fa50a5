"""RacingSearchCV beside GridSearchCV and HalvingGridSearchCV, on ten tables of scikit-learn.

Each candidate of a table is fitted on many random splits, once; a repetition of a search draws its splits from these,
so that it needs no fit. A candidate's true mean is that over all of them. For each table:

    fits      of a search, as a share of those of GridSearchCV with 10 splits
    rows      that were fitted on, as a share of those of GridSearchCV
    regret    how much worse than the best candidate the named one is, in points (.01 of accuracy or of R squared)
    bad       repetitions in which it is worse by more than epsilon; of these certified: at most delta of all may be
    certified the share of repetitions that end with a certificate

GridSearchCV names the candidate with the best mean over 10 random splits, or over the 10 folds of 5 random partitions.
HalvingGridSearchCV is scikit-learn's own, run with 10 folds and 5 seeds; it fits on fewer rows first.

    nice -n 15 python benchmarks/racing_search.py --repetitions 500 --epsilons 0.02
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn import datasets
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    HalvingGridSearchCV,
    KFold,
    ParameterGrid,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import surepick as sp
from surepick.integrations.sklearn import DITHER, _policy as policy_of

FOLDS, HALVINGS, PARTITIONS, DELTA = 10, 5, 5, 0.05
MACHINE = {"svc__C": [0.01, 0.1, 1, 10, 100], "svc__gamma": [0.0001, 0.001, 0.01, 0.1, 1]}
REGRESSOR = {"svr__C": [0.01, 0.1, 1, 10, 100], "svr__gamma": [0.0001, 0.001, 0.01, 0.1, 1]}
TREE = {"max_depth": [1, 2, 3, 4, 6, 10], "min_samples_leaf": [1, 3, 10, 30]}
NEIGHBORS = {"n_neighbors": [1, 2, 3, 5, 7, 10, 15, 25, 40, 60], "p": [1, 2]}


def tables():
    """Name -> (X, y, estimator, grid)."""
    svc, svr = make_pipeline(StandardScaler(), SVC()), make_pipeline(StandardScaler(), SVR())
    tree, neighbors = DecisionTreeClassifier(random_state=0), KNeighborsClassifier()
    digits = datasets.load_digits(return_X_y=True)
    made = {"random_state": 0}
    return {
        "iris": (*datasets.load_iris(return_X_y=True), svc, MACHINE),
        "wine": (*datasets.load_wine(return_X_y=True), neighbors, NEIGHBORS),
        "breast cancer": (*datasets.load_breast_cancer(return_X_y=True), svc, MACHINE),
        "digits (400 rows)": (digits[0][:400], digits[1][:400], neighbors, NEIGHBORS),
        "diabetes": (*datasets.load_diabetes(return_X_y=True), svr, REGRESSOR),
        "classification": (*datasets.make_classification(400, 20, n_informative=5, flip_y=0.1, **made), svc, MACHINE),
        "moons": (*datasets.make_moons(400, noise=0.3, **made), tree, TREE),
        "hastie": (*datasets.make_hastie_10_2(400, **made), svc, MACHINE),
        "friedman1": (*datasets.make_friedman1(400, noise=1.0, **made), DecisionTreeRegressor(random_state=0), TREE),
        "quantiles": (*datasets.make_gaussian_quantiles(n_samples=400, n_classes=3, **made), neighbors, NEIGHBORS),
    }


def scores_on(splits, X, y, estimator, grid):
    """Scores of all candidates on all splits, shape (K, S)."""
    found = np.empty((len(ParameterGrid(grid)), len(splits)))
    for place, params in enumerate(ParameterGrid(grid)):
        model = clone(estimator).set_params(**params)
        for number, (train, test) in enumerate(splits):
            found[place, number] = model.fit(X[train], y[train]).score(X[test], y[test])
    return found


def raced(pool, rng, *, epsilon, max_fits, noise):
    """(the candidate that a search names, fits, verdict), by the policy and with the dither of RacingSearchCV."""
    arms = sp.Arms(ids=[str(place) for place in range(len(pool))])
    policy, columns = policy_of(arms, noise, epsilon=epsilon, delta=DELTA), {}

    def measure(ids, splits):
        for one in dict.fromkeys(splits):
            columns.setdefault(one, rng.integers(pool.shape[1]))
        scores = pool[[int(one) for one in ids], [columns[one] for one in splits]]
        return scores + DITHER * epsilon * rng.standard_normal(len(ids))

    found = sp.Study(policy).run(measure, max_pulls=max_fits, unusual="accept", progress=False)
    return int(found.best_arm), found.pulls, found.verdict


def halved(X, y, estimator, grid, classifier):
    """(the candidate that HalvingGridSearchCV names, fits, rows that it fitted on) for some seeds."""
    for seed in range(HALVINGS):
        kind = StratifiedKFold if classifier else KFold
        cv = kind(FOLDS, shuffle=True, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = HalvingGridSearchCV(clone(estimator), grid, cv=cv, random_state=seed, refit=False).fit(X, y)
        named = list(ParameterGrid(grid)).index(search.best_params_)
        rows = [n * c for n, c in zip(search.n_candidates_, search.n_resources_, strict=True)]
        yield named, FOLDS * sum(search.n_candidates_), FOLDS * sum(rows)


def pools_of(file, num_splits):
    """Name -> (scores on random splits, on folds, what halving named, rows), taken from a file or computed."""
    kept = {}
    if file and Path(file).exists():
        kept = dict(np.load(file))
    for name, (X, y, estimator, grid) in tables().items():
        classifier = len(np.unique(y)) <= 10
        if name not in kept:
            draw = (StratifiedShuffleSplit if classifier else ShuffleSplit)(num_splits, test_size=0.1, random_state=0)
            kind = StratifiedKFold if classifier else KFold
            folds = [kind(FOLDS, shuffle=True, random_state=seed).split(X, y) for seed in range(PARTITIONS)]
            kept[name] = scores_on(list(draw.split(X, y)), X, y, estimator, grid)
            kept[f"{name}, folds"] = scores_on([one for each in folds for one in each], X, y, estimator, grid)
            kept[f"{name}, halved"] = np.array(list(halved(X, y, estimator, grid, classifier)))
            if file:
                np.savez(file, **kept)
        yield name, kept[name], kept[f"{name}, folds"], kept[f"{name}, halved"], len(X)


def report(lines, epsilon, told):
    """The table for one epsilon, and the sums over all."""
    print(f"\nepsilon {epsilon:g}\n")
    print("| table | search | fits | rows | regret, points | bad | of these certified | certified |")
    print("|---|---|---|---|---|---|---|---|")
    for name, pool, folds, halving, num_rows in lines:
        means, whole = pool.mean(axis=1), FOLDS * len(pool)
        rng = np.random.default_rng(1)

        def say(search, named, fits, rows, verdicts=None, means=means, name=name):
            short = means.max() - means[np.asarray(named)]
            bad = short > epsilon + 1e-12
            sure = None if verdicts is None else np.array([one == "certified" for one in verdicts])
            known = " | | |" if sure is None else f" | {(bad & sure).sum()} | {sure.mean():.2f} |"
            print(
                f"| {name} | {search} | {np.mean(fits):.2f} | {np.mean(rows):.2f} | {100 * short.mean():.2f} | "
                f"{bad.sum()} of {len(bad)}{known}",
                flush=True,
            )

        ten = [pool[:, rng.integers(pool.shape[1], size=FOLDS)].mean(axis=1).argmax() for _ in range(told.repetitions)]
        say("GridSearchCV, 10 splits", ten, 1.0, 1.0)
        say("GridSearchCV, 10 folds", folds.reshape(len(pool), -1, FOLDS).mean(axis=2).argmax(axis=0), 1.0, 1.0)
        fitted = whole * num_rows * (FOLDS - 1) / FOLDS
        say("HalvingGridSearchCV", halving[:, 0], halving[:, 1] / whole, halving[:, 2] * (FOLDS - 1) / FOLDS / fitted)
        for share in told.shares:
            most = None if share is None else int(share * whole)
            runs = [raced(pool, rng, epsilon=epsilon, max_fits=most, noise=told.noise) for _ in range(told.repetitions)]
            named, fits, verdicts = zip(*runs, strict=True)
            spent = np.array(fits) / whole
            words = "RacingSearchCV" if share is None else f"RacingSearchCV, max_fits {share:g}"
            say(words, named, spent, spent, verdicts)


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--repetitions", type=int, default=500)
    asked.add_argument("--splits", type=int, default=200)
    asked.add_argument("--epsilons", type=float, nargs="+", default=[0.02])
    asked.add_argument("--shares", type=lambda text: None if text == "none" else float(text), nargs="+", default=[None])
    asked.add_argument("--noise", default="normal")
    asked.add_argument("--tables", nargs="+", help="these tables only")
    asked.add_argument("--keep", help="keep the scores in this file, or take them from it")
    told = asked.parse_args()
    started = time.process_time()
    lines = [line for line in pools_of(told.keep, told.splits) if not told.tables or line[0] in told.tables]
    print(f"Scores of all candidates: {time.process_time() - started:.0f} s of processor time.", flush=True)
    for epsilon in told.epsilons:
        report(lines, epsilon, told)
    print(f"\n{time.process_time() - started:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
