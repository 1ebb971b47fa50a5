"""Finalists of an Optuna study are measured anew: the verdict is in the study, and a kill loses one call."""

import math

import numpy as np
import pytest
from killed import Calls, killed

import surepick as sp

pytestmark = pytest.mark.filterwarnings("ignore")  # those of its packages are not ours
ASKED = {"epsilon": 0.1, "noise": "subgaussian:0.1"}
PLACES = {0: 0.0, 1: 0.3, 2: 1.0, 3: 0.6, 4: 0.2}  # x -> the mean


@pytest.fixture(scope="module")
def optuna():
    found = pytest.importorskip("optuna", reason='pip install "surepick[optuna]"')
    found.logging.set_verbosity(found.logging.WARNING)
    return found


class Objective:
    """Mean and normal noise; what it was called with is kept."""

    def __init__(self, sign: float = 1.0, seed: int = 0) -> None:
        self.sign, self.rng, self.numbers = sign, np.random.default_rng(seed), []

    def __call__(self, trial) -> float:
        self.numbers.append(trial.number)
        x = trial.suggest_int("x", 0, 4)
        return self.sign * (PLACES[x] + self.rng.normal(0.0, 0.1))


def searched(optuna, objective, trials: int = 30, **options):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), **options)
    study.optimize(objective, n_trials=trials)
    return study


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_best_finalist_is_named_and_the_study_says_so(optuna, tmp_path, direction):
    from surepick.integrations.optuna import confirm

    objective = Objective(1.0 if direction == "maximize" else -1.0)
    study = searched(optuna, objective, direction=direction)
    before = len(study.trials)
    found = confirm(study, objective, top=3, **ASKED)
    assert study.trials[found.best_arm].params == {"x": 2}
    assert len(study.trials) == before  # the search does not learn from it
    said = study.user_attrs
    assert (said["surepick_best_trial"], said["surepick_verdict"]) == (found.best_arm, "certified")
    assert "What is promised is about 3 finalists" in said["surepick_promise"]
    assert said["surepick_certified_gap"] <= 0.1
    pulls = said["surepick_pulls"]
    assert sum(pulls.values()) == found.pulls == len(objective.numbers) - before
    assert said["surepick_means"][str(found.best_arm)] == pytest.approx(objective.sign, abs=0.2)
    new = objective.numbers[before:]
    assert len(set(new)) == len(new)  # a seed of its own for each
    sp.write_certificate(found.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_of_equal_parameters_the_best_trial_stands_for_all(optuna):
    from surepick.integrations.optuna import confirm

    study = searched(optuna, Objective(), direction="maximize")
    found = confirm(study, Objective(seed=1), **ASKED)
    assert len(study.trials) == 30
    assert "the scores of 5 candidates chose the finalists" in str(found)


def test_what_has_no_best_trial_is_refused(optuna):
    from surepick.integrations.optuna import confirm

    with pytest.raises(sp.InvalidInput, match="no finished trial"):
        confirm(optuna.create_study(), Objective(), **ASKED)
    with pytest.raises(sp.InvalidInput, match="2 objectives"):
        confirm(optuna.create_study(directions=["minimize", "maximize"]), Objective(), **ASKED)


def test_a_finalist_that_is_pruned_is_left_out(optuna):
    from surepick.integrations.optuna import confirm

    study, objective = searched(optuna, Objective(), direction="maximize"), Objective()

    def pruned(trial):
        if trial.suggest_int("x", 0, 4) == 2:
            raise optuna.TrialPruned
        return objective(trial)

    found = confirm(study, pruned, top=3, **ASKED)
    assert study.trials[found.best_arm].params == {"x": 3}
    assert "left out" in found.certificate.reason


def counted_confirm(optuna_file, url, calls: Calls):
    import optuna

    from surepick.integrations.optuna import confirm

    study = optuna.load_study(study_name="search", storage=f"sqlite:///{optuna_file}")
    rng = np.random.default_rng(len(calls.lines))

    def objective(trial):
        calls.note(trial.number)
        return PLACES[trial.suggest_int("x", 0, 4)] + rng.normal(0.0, 0.1)

    return confirm(study, objective, top=3, url=url, **ASKED)


def test_a_killed_one_goes_on_and_loses_one_measurement(optuna, tmp_path, sqlite_url):
    file = tmp_path / "optuna.db"
    searched(optuna, Objective(), direction="maximize", study_name="search", storage=f"sqlite:///{file}")
    calls = Calls(tmp_path / "calls", deadly=4)
    killed(counted_confirm, file, sqlite_url, calls)
    assert len(calls.lines) == 4
    calls.deadly = None
    found = counted_confirm(file, sqlite_url, calls)
    assert found.verdict == "certified"
    assert len(calls.lines) == found.pulls + 1
    assert counted_confirm(file, sqlite_url, calls).best_arm == found.best_arm
    assert len(calls.lines) == found.pulls + 1  # nothing is asked again
    sp.write_certificate(sp.open_study(sqlite_url, "search"), tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


# --- a search that ends


def test_a_search_ends_once_its_best_trial_is_certified(optuna):
    from surepick.integrations.optuna import CertifiedBest

    objective = Objective()
    ends = CertifiedBest(objective, every=10, top=3, **ASKED)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=200, callbacks=[ends])
    assert len(study.trials) in (10, 20, 30)
    assert study.trials[ends.result.best_arm].params == {"x": 2}
    look = study.user_attrs["surepick_look"]
    assert not look["open"]
    assert ends.result.certificate.delta == pytest.approx(0.05 / (look["number"] * (look["number"] + 1)))


def test_a_lucky_best_trial_does_not_end_it(optuna):
    """The first look names another trial than the search, and the second one names that again."""
    from surepick.integrations.optuna import CertifiedBest

    def objective(trial):
        x = trial.suggest_int("x", 0, 4)
        lucky = x == 0 and isinstance(trial, optuna.Trial)
        return 5.0 if lucky else PLACES[x]

    ends = CertifiedBest(objective, every=10, top=3, **ASKED)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.enqueue_trial({"x": 0})
    study.optimize(objective, n_trials=200, callbacks=[ends])
    assert study.best_trial.params == {"x": 0}
    assert study.trials[ends.result.best_arm].params == {"x": 2}
    assert (len(study.trials), study.user_attrs["surepick_look"]["number"]) == (20, 2)


def test_a_look_without_a_certificate_does_not_end_it(optuna):
    from surepick.integrations.optuna import CertifiedBest

    ends = CertifiedBest(Objective(seed=1), every=10, top=3, max_pulls=0, **ASKED)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(Objective(), n_trials=25, callbacks=[ends])
    assert len(study.trials) == 25
    assert study.user_attrs["surepick_look"]["number"] == 2


def test_an_open_look_goes_on_with_its_finalists(optuna):
    """The program ended in a look; more trials came before it went on."""
    from surepick.integrations.optuna import CertifiedBest

    def broken(trial):
        raise KeyboardInterrupt

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(KeyboardInterrupt):
        study.optimize(Objective(), n_trials=20, callbacks=[CertifiedBest(broken, every=10, top=3, **ASKED)])
    begun = study.user_attrs["surepick_look"]
    assert begun["open"]
    ends = CertifiedBest(Objective(seed=1), every=10, top=3, **ASKED)
    study.optimize(Objective(seed=2), n_trials=1, callbacks=[ends])
    assert study.user_attrs["surepick_look"]["finalists"] == begun["finalists"]
    assert not study.user_attrs["surepick_look"]["open"]
    assert math.isfinite(ends.result.certificate.certified_gap)
