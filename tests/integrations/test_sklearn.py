"""RacingSearchCV is a search of scikit-learn, and certifies what it names; a kill loses one round of fits at most."""

import pickle
import warnings

import numpy as np
import pytest
from bounds import counted, failures_allowed
from killed import Calls, killed
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupShuffleSplit, KFold, ShuffleSplit, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import surepick as sp
from surepick.integrations import sklearn as sklearn_search
from surepick.integrations.sklearn import RacingSearchCV, best_of_fitted

X, Y = make_classification(120, 5, flip_y=0.1, class_sep=0.7, random_state=0)
NEIGHBORS = {"n_neighbors": [1, 3, 9, 60]}


class Drawn(ClassifierMixin, BaseEstimator):
    """A classifier whose score on a split is drawn: a mean, what the split adds for all, and noise of its own."""

    def __init__(self, mean=0.5, noise=0.02, broken=False, calls=None) -> None:
        self.mean, self.noise, self.broken, self.calls = mean, noise, broken, calls

    def fit(self, X, y):
        if self.calls is not None:
            self.calls.note(self.mean)
        self.classes_ = np.unique(y)
        self.split_ = int(np.asarray(X)[:, 0] @ np.arange(1.0, len(X) + 1.0) * 1e6) % 2**32
        if self.broken is True or (self.broken == "sometimes" and self.split_ % 4 == 0):
            raise ValueError("it cannot be fitted")
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def score(self, X, y):
        shared = np.random.default_rng(self.split_).normal(0.0, 0.05)
        own = np.random.default_rng([self.split_, int(1e6 * self.mean)]).normal(0.0, self.noise)
        return self.mean + shared + own


def race(means, **options):
    asked = {"epsilon": 0.02, "random_state": 0, "cv": 5, **options}
    return RacingSearchCV(Drawn(), {"mean": list(means)}, **asked).fit(X, Y)


# --- it is a search of scikit-learn


@parametrize_with_checks(
    [
        RacingSearchCV(one, grid, epsilon=10.0, cv=2, error_score="raise", max_fits=16)
        for one, grid in [(Ridge(), {"alpha": [0.1, 1.0]}), (LogisticRegression(), {"C": [0.1, 1.0]})]
    ],
    expected_failed_checks=lambda search: (  # as of GridSearchCV, in scikit-learn's own tests
        {"check_supervised_y_2d": "no warning"} if isinstance(search.estimator, Ridge) else {}
    ),
)
def test_scikit_learn_s_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_it_has_what_a_grid_search_has():
    search = RacingSearchCV(KNeighborsClassifier(), NEIGHBORS, epsilon=0.05, cv=5, random_state=1).fit(X, Y)
    assert search.best_params_ == search.cv_results_["params"][search.best_index_]
    assert search.best_estimator_.n_neighbors == search.best_params_["n_neighbors"]
    assert search.score(X, Y) == search.best_estimator_.score(X, Y)
    assert search.predict(X[:3]).shape == (3,)
    scores = np.array([search.cv_results_[f"split{place}_test_score"] for place in range(search.n_splits_)]).T
    assert np.isfinite(scores).sum() == search.cv_results_["n_splits"].sum() == search.n_fits_
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], np.nanmean(scores, axis=1))
    assert search.best_score_ == search.cv_results_["mean_test_score"][search.best_index_]
    assert set(search.cv_results_) >= {"mean_fit_time", "std_test_score", "rank_test_score", "param_n_neighbors"}
    again = clone(search).fit(X, Y)
    assert again.best_params_ == search.best_params_
    np.testing.assert_array_equal(again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    assert pickle.loads(pickle.dumps(search)).certificate_.verdict == search.certificate_.verdict


def test_candidates_share_their_splits():
    """Two that are the same model have the same score on each split."""
    search = RacingSearchCV(KNeighborsClassifier(), {"n_neighbors": [3], "leaf_size": [10, 30]}, epsilon=0.05, cv=5)
    search.fit(X, Y)
    assert search.certificate_.verdict == "certified"
    both = [search.cv_results_[f"split{place}_test_score"] for place in range(search.n_splits_)]
    shared = [pair for pair in both if np.isfinite(pair).all()]
    assert len(shared) >= 5
    assert all(pair[0] == pair[1] for pair in shared)


def test_of_several_metrics_one_is_certified():
    scoring = {"right": "accuracy", "loss": "neg_log_loss"}
    asked = {"epsilon": 0.05, "cv": 5, "scoring": scoring, "random_state": 0, "return_train_score": True}
    search = RacingSearchCV(KNeighborsClassifier(), NEIGHBORS, refit="right", **asked).fit(X, Y)
    assert search.best_score_ == search.cv_results_["mean_test_right"][search.best_index_]
    assert np.isfinite(search.cv_results_["mean_test_loss"]).all()
    assert (search.cv_results_["mean_train_right"][0], search.multimetric_) == (1.0, True)
    with pytest.raises(sp.InvalidInput, match="refit is False, and the scores are right, loss"):
        RacingSearchCV(KNeighborsClassifier(), NEIGHBORS, refit=False, **asked).fit(X, Y)


def test_a_callable_refit_chooses_what_it_likes():
    search = race([0.5, 0.9], refit=lambda results: 0)
    assert (search.best_index_, search.certificate_.arm) == (0, 1)


# --- what it promises


def test_far_candidates_have_few_fits():
    search = race([0.3, 0.4, 0.5, 0.85, 0.9])
    assert search.best_params_ == {"mean": 0.9}
    counts = search.cv_results_["n_splits"]
    assert (counts[:3] <= counts[3:].min()).all()
    assert search.certificate_.certified_gap <= 0.02
    assert "nothing is promised about other rows" in search.promise_


@counted(0.05)
def wrong_answers(runs):
    """Whether a search certifies a candidate that is worse than the best by more than epsilon."""
    for seed in range(runs):
        search = RacingSearchCV(Drawn(noise=0.03), {"mean": [0.5, 0.521]}, epsilon=0.02, random_state=seed, refit=False)
        search.fit(X, Y)
        yield search.certificate_.verdict == "certified" and search.best_index_ == 0


def test_it_is_wrong_in_at_most_delta():
    assert wrong_answers(40) <= failures_allowed(40, 0.05)


def test_that_would_notice_splits_that_are_not_drawn_anew(monkeypatch):
    """The saboteur: all splits of a search are one."""
    drawn = sklearn_search._Fits._seed

    def one_split(self, split, candidate=""):
        return drawn(self, split if candidate != "" else "one", candidate)

    monkeypatch.setattr(sklearn_search._Fits, "_seed", one_split)
    assert wrong_answers(100) > failures_allowed(100, 0.05)


def test_one_candidate_has_nothing_to_certify():
    search = race([0.5])
    assert (search.n_fits_, search.best_params_, search.certificate_.verdict) == (5, {"mean": 0.5}, "certified")


def test_a_search_that_is_ended_says_so():
    with pytest.warns(ConvergenceWarning, match="without a certificate"):
        search = race([0.5, 0.501], epsilon=0.001, max_fits=30)
    assert search.certificate_.verdict == "budget-exhausted"
    assert search.n_fits_ <= 30


def test_a_candidate_that_cannot_be_fitted_is_left_out():
    grid = [{"mean": [0.5, 0.9]}, {"broken": [True]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = RacingSearchCV(Drawn(), grid, epsilon=0.02, cv=5, random_state=0).fit(X, Y)
    assert search.best_params_ == {"mean": 0.9}
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1, 3]
    assert search.cv_results_["n_splits"][2] == 0
    assert search.study_.ids == ("0: {'mean': 0.5}", "1: {'mean': 0.9}")
    with pytest.raises(ValueError, match=r"All the [15] fits failed"):
        RacingSearchCV(Drawn(), {"broken": [True]}, epsilon=0.02, cv=5).fit(X, Y)


@pytest.mark.parametrize("seed", range(4))
def test_one_that_fails_late_is_left_out(seed):
    """Also where it is fitted alone; the others go on with what they have."""
    grid = [{"mean": [0.5, 0.89]}, {"mean": [0.9], "broken": ["sometimes"]}]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = RacingSearchCV(Drawn(), grid, epsilon=0.005, cv=5, random_state=seed).fit(X, Y)
    assert search.best_params_ == {"mean": 0.89}
    assert len(search.study_.ids) == 2
    assert search.certificate_.verdict == "certified"


@pytest.mark.parametrize("cv", [KFold(5), StratifiedKFold(5), [(np.arange(60), np.arange(60, 120))]])
def test_folds_are_refused(cv):
    with pytest.raises(sp.InvalidInput, match="folds are dependent"):
        race([0.5, 0.9], cv=cv)


def test_other_random_splits_are_taken():
    groups = np.repeat(np.arange(24), 5)
    asked = {"epsilon": 0.05, "random_state": 0}
    search = RacingSearchCV(KNeighborsClassifier(), NEIGHBORS, cv=GroupShuffleSplit(test_size=0.2), **asked)
    assert search.fit(X, Y, groups=groups).certificate_.verdict == "certified"
    assert race([0.5, 0.9], cv=ShuffleSplit(test_size=0.3)).best_params_ == {"mean": 0.9}


def test_a_declared_range_takes_blocks():
    search = race([0.1, 0.9], noise="bounded:-1:2", epsilon=0.3)
    assert search.certificate_.verdict == "certified"
    assert search.study_.policy.traits.blocks.name == "split"


# --- it goes on


def kept(url, calls):
    return RacingSearchCV(
        Drawn(calls=calls), {"mean": [0.5, 0.88, 0.9]}, epsilon=0.02, cv=5, random_state=3, url=url, refit=False
    ).fit(X, Y)


def test_a_killed_one_goes_on_and_its_certificate_verifies(tmp_path, sqlite_url):
    calls = Calls(tmp_path / "calls", deadly=25)  # after the first round
    killed(kept, sqlite_url, calls)
    calls.deadly = None
    search = kept(sqlite_url, calls)
    whole = race([0.5, 0.88, 0.9], random_state=3, refit=False)
    assert search.best_params_ == whole.best_params_
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], whole.cv_results_["mean_test_score"])
    assert search.n_fits_ == whole.n_fits_ - 15  # the first round is not fitted again
    sp.write_certificate(search.study_, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds
    once_more = kept(sqlite_url, calls)
    assert (once_more.n_fits_, once_more.best_params_) == (1, search.best_params_)
    assert len(sp.list_studies(sqlite_url)) == 1


def test_other_rows_are_another_study(sqlite_url):
    for rows in (X, X[:, :4]):
        RacingSearchCV(KNeighborsClassifier(), NEIGHBORS, epsilon=0.1, cv=5, url=sqlite_url, random_state=0).fit(
            rows, Y
        )
    assert len(sp.list_studies(sqlite_url)) == 2


# --- fitted models


def test_the_best_of_fitted_models_on_these_rows(tmp_path):
    rows, truth = make_classification(1000, 5, flip_y=0.05, random_state=1)
    fitted = {f"{k} neighbors": KNeighborsClassifier(k).fit(rows[:300], truth[:300]) for k in (1, 9, 290)}
    found = best_of_fitted(fitted, rows[300:], truth[300:], epsilon=0.02, delta=0.01, seed=1)
    shares = {name: model.score(rows[300:], truth[300:]) for name, model in fitted.items()}
    assert found.verdict == "certified"
    assert shares[found.best_arm] >= max(shares.values()) - 0.02
    assert found.pulls < 3 * 700
    sp.write_certificate(found.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_a_score_of_their_own_is_taken():
    class Constant:
        def __init__(self, value):
            self.value = value

        def predict(self, rows):
            return np.full(len(rows), self.value)

    truth = np.linspace(0.0, 1.0, 200)
    models = {"low": Constant(0.0), "middle": Constant(0.5)}
    near = best_of_fitted(models, truth[:, None], truth, epsilon=0.05, score=lambda t, p: 1.0 - np.abs(t - p), seed=1)
    assert near.best_arm == "middle"
