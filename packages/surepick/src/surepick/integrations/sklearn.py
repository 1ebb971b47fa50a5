"""scikit-learn: a search over a grid that spends its fits on candidates that may still be the best.

What `RacingSearchCV` certifies is the mean test score over all random splits of the rows at hand, of which each round
draws new ones; candidates share them, and are compared split by split. Folds of one partition are dependent, so that
nothing can be certified from ten of them. `best_of_fitted` is about models that are fitted already, and one set of
rows.
"""

from __future__ import annotations

import copy
import hashlib
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.records import FloatArray
from surepick.errors import InvalidInput, MeasurementFailed
from surepick.find_best import find_best
from surepick.noise import USUAL_NOISE, Noise, known_scale, parse_noise
from surepick.policies.base import Policy
from surepick.policies.registry import USUAL_DELTA, make_policy
from surepick.studies.closed_loop import Result
from surepick.studies.opening import kept_study
from surepick.studies.study import Study
from surepick.text import quoted

try:
    import joblib
    from scipy.stats import rankdata
    from sklearn.base import is_classifier
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import (
        BaseShuffleSplit,
        KFold,
        ParameterGrid,
        ShuffleSplit,
        StratifiedKFold,
        StratifiedShuffleSplit,
        check_cv,
    )
    from sklearn.model_selection._search import BaseSearchCV, _yield_masked_array_for_each_param
    from sklearn.utils import check_random_state, indexable
    from sklearn.utils._param_validation import Interval
except ImportError as error:
    raise ImportError('scikit-learn is absent: pip install "surepick[sklearn]".') from error

SEVERAL_SPLITS = hasattr(BaseSearchCV, "_check_input_parameters")  # in one call; before version 1.9 each has its own
SPLIT = "split"  # what a block is called
DITHER = 0.2  # of epsilon: the standard deviation of what is added to a score that is told
FAILED = "fits failed"  # what scikit-learn says where all did
FIRST_SPLITS = 5  # of a grid with one candidate, of which nothing is asked
DEPENDENT = (
    "its folds are dependent, and nothing can be certified from them. Give a number k (each random split tests a k-th "
    "of the rows), or ShuffleSplit, StratifiedShuffleSplit, GroupShuffleSplit."
)
PROMISE = (
    "Means are over all random splits of these {:,} rows: nothing is promised about other rows, nor about the model "
    "that is fitted on all of them."
)


class RacingSearchCV(BaseSearchCV):  # type: ignore[misc, unused-ignore]  # of no known type
    """A search over a grid that stops when its best candidate is certified, with the attributes of `GridSearchCV`.

        search = RacingSearchCV(SVC(), {"C": [0.1, 1, 10]}, epsilon=0.01).fit(X, y)
        search.best_params_, search.certificate_.verdict

    Promised: over all random splits of the rows at hand the mean score of `best_params_` is at most epsilon below the
    largest of the grid; that is wrong with probability at most delta. Not promised: anything about other rows than
    these, or about the model that is refitted on all of them. Assumed, with the usual `noise`: the scores of a split
    are jointly normal, alike from split to split; splits are drawn independently, so that given the rows they are
    independent. Scores of few test rows are only nearly normal, and candidates that fit the same model have the same
    score on each split, which shows no scale: so the study is told each score plus a normal number of its own, of mean
    0 and standard deviation epsilon / 5. `cv_results_` has the scores without.

    Each round draws new splits, for the best candidate so far and for those that may still be better; the first one has
    five for each candidate. One whose fit fails (a score of NaN) is left out: the study begins anew without it, with
    the scores that are there.

    Args:
        estimator, scoring, n_jobs, refit, verbose, pre_dispatch, error_score, return_train_score: as in `GridSearchCV`;
            of several metrics `refit` names the one that is certified. A callable `refit` chooses what it likes, and
            the certificate stays what it is.
        param_grid: as in `GridSearchCV`.
        epsilon: how much worse than the best the answer may be, in the unit of the score, > 0.
        delta: the probability that it is worse, in (0, 1).
        cv: a number k: each split tests a random k-th of the rows, of a classifier in the proportions of its classes;
            None: 5; or ShuffleSplit, StratifiedShuffleSplit or GroupShuffleSplit, whose `n_splits` and `random_state`
            do not count. Splitters into folds are refused.
        noise: what is assumed of a score: "normal", or what `find_best` knows ("bounded:0:1": scores in [0, 1] have no
            other assumption, and take many more splits).
        max_fits: no round is begun that would bring the fits above it; None: 20 times what fitting all candidates
            equally often takes. A search that it ends warns (`ConvergenceWarning`), and names the best so far.
        random_state: from which splits are drawn; None: by the operating system.
        url, name: as in `find_best`: the scores are kept there, so that after a kill `fit` goes on. Rows, estimator,
            grid and cv are part of the name there: another search is another study.

    Attributes:
        best_index_, best_params_, best_score_, best_estimator_, cv_results_, n_splits_, refit_time_, scorer_, ...: as
            in `GridSearchCV`. `best_score_` and `mean_test_score` are means over the splits that a candidate had,
            `cv_results_["n_splits"]` of them; where it had none, `split7_test_score` is NaN.
        certificate_: the answer and what it rests on; its ids are numbers and parameters of candidates.
        n_fits_: fits of this call, without the last one on all rows.
        promise_: what is promised and what is not, in a sentence.
        study_: for `write_certificate` and `write_report`; it is not pickled.

    Raises InvalidInput for folds, for several metrics without one to certify, for epsilon and delta without a meaning.
    """

    _parameter_constraints: dict[str, Any] = {  # noqa: RUF012 (as scikit-learn has it)
        **BaseSearchCV._parameter_constraints,
        "param_grid": [dict, list],
        "epsilon": [Interval(Real, 0, None, closed="neither")],
        "delta": [Interval(Real, 0, 1, closed="neither")],
        "noise": [str, Noise],
        "max_fits": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "url": [str, None],
        "name": [str],
    }

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float,
        delta: float = USUAL_DELTA,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
        noise: Any = USUAL_NOISE,
        max_fits: int | None = None,
        random_state: Any = None,
        url: str | None = None,
        name: str = "search",
    ) -> None:
        super().__init__(
            estimator=estimator,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.param_grid, self.epsilon, self.delta = param_grid, epsilon, delta
        self.noise, self.max_fits, self.random_state = noise, max_fits, random_state
        self.url, self.name = url, name

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "study_"}

    def fit(self, X: Any, y: Any = None, **params: Any) -> RacingSearchCV:
        """Search, and fit the best candidate on all rows, as `GridSearchCV.fit`."""
        self._validate_params()
        searching = copy.copy(self)  # whose cv draws one split at a time; the settings stay as they were given
        searching.cv = _random_splits(self.cv, y, classifier=is_classifier(self.estimator))
        X, y = indexable(X, y)
        searching._fits = _Fits(searching, X, y)
        super(RacingSearchCV, searching).fit(X, y, **params)
        found = {name: value for name, value in vars(searching).items() if name not in ("cv", "_fits")}
        self.__dict__.update(found, n_splits_=len(searching._fits.splits))
        return self

    def _run_search(self, evaluate_candidates: Callable[..., Any]) -> None:
        """Fit what the study asks for, until it has stopped."""
        fits = self._fits
        fits.evaluate = evaluate_candidates
        study, found = self._certified(fits)
        if not fits.made:  # of one candidate nothing is asked, and a finished study asks for nothing
            number = FIRST_SPLITS if len(study.ids) == 1 else 1
            fits([found.best_arm] * number, [f"{place}" for place in range(1, number + 1)])
        self.study_, self.certificate_, self._best_place = study, found.certificate, fits.places[found.best_arm]
        self.promise_ = f"{found.certificate.promise} {PROMISE.format(fits.num_rows)}"
        self.n_fits_ = fits.made
        if found.ended_by != "policy":
            warnings.warn(f"The search ended without a certificate: {found.certificate.reason}", ConvergenceWarning, 2)

    def _certified(self, fits: _Fits) -> tuple[Study, Result]:
        """The study of all candidates, or, as soon as one cannot be fitted, another one without it.

        That begins anew, with the scores that are there already: what it asks depends on its own results alone.
        """
        while True:
            left = [place for place in range(len(fits.params)) if place not in fits.failed]
            arms = fits.arms.only(np.array(left))
            policy = _policy(arms, self.noise, epsilon=self.epsilon, delta=self.delta)
            without = "".join(f", without {place}" for place in sorted(fits.failed))
            study, known = kept_study(self.url, f"{self.name} {fits.digest}{without}", arms, policy)
            fits.seed = fits.seed or study.study_id
            if known:
                fits.remember(study)
            try:
                return study, study.run(fits, max_pulls=self.max_fits, unusual="accept", progress=False)
            except MeasurementFailed:
                if len(left) == len(fits.params) - len(fits.failed):
                    raise

    def _format_results(self, candidate_params: Any, n_splits: int, out: Any, more_results: Any = None) -> Any:  # noqa: ARG002
        return self._fits.told(out)

    def _select_best_index(self, refit: Any, refit_metric: str, results: Any) -> int:
        """The candidate that is named by the certificate."""
        if callable(refit):
            chosen: int = super()._select_best_index(refit, refit_metric, results)
            return chosen
        named: int = self._best_place
        return named


class _Fits:
    """The fits of a search: (candidate, split) pairs, made through scikit-learn, and the table of their scores."""

    def __init__(self, search: RacingSearchCV, X: Any, y: Any) -> None:
        self.search = search
        self.params = list(ParameterGrid(search.param_grid))
        self.arms = Arms(ids=[f"{place}: {_plain(one)}" for place, one in enumerate(self.params)])
        self.places = {name: place for place, name in enumerate(self.arms.ids)}
        self.num_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        self.dither = 0.0 if known_scale(_assumed(search.noise)) else DITHER * search.epsilon
        state = search.random_state
        self.seed = "" if state is None else str(check_random_state(state).randint(np.iinfo(np.int32).max))
        parts = (
            X,
            y,
            _plain(search.estimator),
            self.arms.ids,
            _plain(search.cv),
            str(search.scoring),
            str(search.refit),
        )
        self.digest = "" if search.url is None else joblib.hash((*parts, self.seed))[:12]
        self.evaluate: Callable[..., Any] | None = None
        self.splits: dict[str, int] = {}  # name -> its place, in the order of the first fits
        self.pairs: list[tuple[int, str]] = []  # (candidate, split) of each row of scikit-learn's results
        self.out: list[dict[str, Any]] = []  # these rows
        self.before: dict[tuple[int, str], float] = {}  # scores that another call has stored
        self.scores: dict[tuple[int, str], float] = {}  # all that are known
        self.failed: set[int] = set()
        self.results: dict[str, Any] = {}

    @property
    def made(self) -> int:
        """Fits of this call."""
        return len(self.out)

    def __call__(self, ids: Sequence[str], splits: Sequence[str]) -> list[float]:
        """The scores of candidates on splits; NaN of those that failed once."""
        asked = [(self.places[name], split) for name, split in zip(ids, splits, strict=True)]
        wanted: dict[int, list[str]] = {}
        for place, split in asked:
            if place not in self.failed and (place, split) not in self.scores:
                wanted.setdefault(place, []).append(split)
        alike: dict[tuple[str, ...], list[int]] = {}  # candidates with the same splits are fitted in one call
        for place, names in wanted.items():
            alike.setdefault(tuple(names), []).append(place)
        for shared, places in alike.items():
            for some in [shared] if SEVERAL_SPLITS else [(one,) for one in shared]:
                self._fit(places, some)
        self.failed |= {place for (place, _), score in self.scores.items() if not np.isfinite(score)}
        return [np.nan if pair[0] in self.failed else self.scores[pair] + self._own(*pair) for pair in asked]

    def _fit(self, places: Sequence[int], splits: Sequence[str]) -> None:
        """Fit candidates on splits, each on each."""
        for one in splits:
            self.splits.setdefault(one, len(self.splits))
        first, pairs = self.made, [(place, one) for place in places for one in splits]
        self.pairs += pairs
        self.search.n_splits_ = len(splits)
        cv = _Splits(self.search.cv, [self._seed(one) for one in splits])
        try:
            if self.evaluate is not None:
                self.evaluate([self.params[place] for place in places], cv=cv)
        except ValueError as error:
            if FAILED not in str(error) or not any(map(math.isfinite, self.scores.values())):
                raise
            del self.pairs[first:]  # these candidates alone were fitted, and scikit-learn takes them for all
            self.failed.update(places)
            return
        self.scores |= {pair: self._score(row) for pair, row in zip(pairs, self.out[first:], strict=True)}

    def told(self, out: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Take all rows so far from scikit-learn; the table of them as `cv_results_` has it."""
        self.out = list(out)
        self.results.clear()
        self.results.update(self._table())
        return self.results

    def remember(self, study: Study) -> None:
        """Take the scores that an earlier call has stored into the table."""
        if study.elsewhere is not None:
            return
        place_of = [self.places[name] for name in study.ids]
        for planned in study.log.plans():
            for rows in study.log.results(planned.number):
                for arm, block, score in zip(rows.arms.tolist(), rows.blocks or (), rows.sums.tolist(), strict=True):
                    pair = place_of[arm], block
                    self.before[pair] = self.scores[pair] = score - self._own(*pair)
                    self.splits.setdefault(block, len(self.splits))

    def _seed(self, split: str, candidate: int | str = "") -> int:
        """From which a split is drawn: of the search and its name alone."""
        return int.from_bytes(hashlib.sha256(f"{self.seed} {split} {candidate}".encode()).digest()[:4], "little")

    def _own(self, candidate: int, split: str) -> float:
        """What is added to a score that is told."""
        return self.dither * float(np.random.default_rng(self._seed(split, candidate)).standard_normal())

    def _score(self, row: Mapping[str, Any]) -> float:
        """The score that is certified."""
        scores, refit = row["test_scores"], self.search.refit
        if not isinstance(scores, dict):
            return float(scores)
        if not isinstance(refit, str) or refit not in scores:
            raise InvalidInput(
                f"refit is {quoted(refit)}, and the scores are {', '.join(scores)}: say which of them is certified, "
                f"refit={quoted(next(iter(scores)))}."
            )
        return float(scores[refit])

    def _table(self) -> dict[str, Any]:
        """The results by candidate; where a candidate had no fit on a split there is NaN."""
        found: dict[str, Any] = {}
        for kind in ("fit_time", "score_time"):
            found |= _spread(kind, self._filled([row[kind] for row in self.out]))
        found |= dict(_yield_masked_array_for_each_param(self.params))
        found["params"] = self.params
        for kind in ["test", "train"][: 1 + self.search.return_train_score]:
            rows = [row[f"{kind}_scores"] for row in self.out]
            several = bool(rows) and isinstance(rows[0], dict)
            for metric in rows[0] if several else ["score"]:
                scores = self._filled([row[metric] for row in rows] if several else rows)
                if kind == "test" and metric == (self.search.refit if several else metric):
                    for (place, split), score in self.before.items():
                        scores[place, self.splits[split]] = score
                found |= {f"split{place}_{kind}_{metric}": column for place, column in enumerate(scores.T)}
                found |= _spread(f"{kind}_{metric}", scores)
                if kind == "test":
                    means = found[f"mean_test_{metric}"]
                    last = np.where(np.isfinite(means), -means, np.inf)
                    found[f"rank_test_{metric}"] = rankdata(last, method="min").astype(np.int32)
                    found["n_splits"] = np.isfinite(scores).sum(axis=1)
        return found

    def _filled(self, values: Sequence[float]) -> FloatArray:
        """Values of the rows in a table of candidates and splits."""
        table = np.full((len(self.params), len(self.splits)), np.nan)
        for (place, split), value in zip(self.pairs, values, strict=False):
            table[place, self.splits[split]] = value
        return table


class _Splits:
    """One random split for each of some seeds."""

    def __init__(self, cv: Any, seeds: Sequence[int]) -> None:
        self.cv, self.seeds = cv, seeds

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Any]:
        for seed in self.seeds:
            one = copy.copy(self.cv)
            one.random_state = seed
            yield from one.split(X, y, groups)


def best_of_fitted(
    models: Mapping[str, Any],
    X: Any,
    y: Any,
    *,
    epsilon: float,
    score: Callable[[Any, Any], ArrayLike] | None = None,
    **options: Any,
) -> Result:
    """Which of several fitted models is the best on these rows, from as few predictions as possible.

    Rows are test items in a drawn order, which no model was fitted on. What is certified is the mean score on all of
    these rows, of these models as they are fitted: nothing about other rows, nor about fitting them again.

    Args:
        models: name -> what has `predict`.
        X, y: n rows, and what is true of them.
        epsilon: how much worse than the best the answer may be, in the unit of the score.
        score: (truth, predictions) of m rows -> m scores in [0, 1]; None: 1 where they are equal.
        options: the others of `find_best`: delta, noise, url, ...

    Returns:
        As `find_best`; `best_arm` is a name.

    Raises:
        InvalidInput: as `find_best`.
    """
    truth = np.asarray(y)
    chosen = _equal if score is None else score

    def answers(names: Sequence[str], rows: Sequence[int]) -> list[float]:
        asked, found = np.asarray(rows), np.empty(len(rows))
        for name in dict.fromkeys(names):
            mine = np.flatnonzero([one == name for one in names])
            some = asked[mine]
            part = X.iloc[some] if hasattr(X, "iloc") else X[some]
            found[mine] = np.asarray(chosen(truth[some], models[name].predict(part)), np.float64)
        return found.tolist()

    asked: dict[str, Any] = {"noise": "bernoulli" if score is None else "bounded:0:1", **options}
    items = list(range(len(truth)))
    return find_best(list(models), answers, epsilon=epsilon, items=items, **asked)


def _equal(truth: Any, predicted: Any) -> Any:
    return np.asarray(truth) == np.asarray(predicted)


def _policy(arms: Arms, noise: Any, *, epsilon: float, delta: float) -> Policy[Any]:
    """That of candidates which share splits, each at most once in one."""
    assumed = _assumed(noise)
    shared = {"blocks": SPLIT, "once_a_block": True} if known_scale(assumed) else {"streams": SPLIT}
    return make_policy("certified-independent", arms, epsilon=epsilon, delta=delta, noise=assumed, **shared)


def _assumed(noise: Any) -> Noise:
    return parse_noise(noise) if isinstance(noise, str) else noise


def _random_splits(cv: Any, y: Any, *, classifier: bool) -> Any:
    """The splitter that draws independent random splits."""
    if isinstance(cv, BaseShuffleSplit):
        drawn = copy.copy(cv)
        drawn.n_splits = 1
        return drawn
    if cv is not None and not isinstance(cv, Integral):
        raise InvalidInput(f"cv is {quoted(cv)}: {DEPENDENT}")
    folds = check_cv(cv, y, classifier=classifier)
    kinds: dict[type, type] = {KFold: ShuffleSplit, StratifiedKFold: StratifiedShuffleSplit}
    return kinds[type(folds)](1, test_size=1 / folds.get_n_splits())


def _plain(thing: Any) -> str:
    """A text of it that is the same in the next process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(thing))


def _spread(name: str, table: FloatArray) -> dict[str, FloatArray]:
    """Mean and standard deviation of each row, without what is missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a candidate whose fits all failed
        return {f"mean_{name}": np.nanmean(table, axis=1), f"std_{name}": np.nanstd(table, axis=1)}
