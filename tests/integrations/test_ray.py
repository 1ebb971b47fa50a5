"""Finalists of Ray Tune are measured anew by two workers, trials race, and a killed program goes on."""

import functools
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from killed import Calls
from page_blocks import blocks

import surepick as sp

ray = pytest.importorskip("ray", reason="make integrations")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),  # those of its packages are not ours
    pytest.mark.slow,  # its processes take more than a test's budget to begin; `make integrations` runs all of them
]
ASKED = {"metric": "score", "mode": "max", "epsilon": 0.3, "noise": "subgaussian:0.1"}


def score(x: int) -> float:
    return 1.0 - (x - 2) ** 2 + np.random.default_rng().normal(0.0, 0.1)


def trained(config):
    return {"score": score(config["x"])}


def reported(config):
    from ray import tune

    tune.report(trained(config))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Two workers, on loopback."""
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        _node_ip_address="127.0.0.1",
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}},
    )
    yield tmp_path_factory.mktemp("ray")
    ray.shutdown()


@pytest.fixture(scope="module")
def results(cluster):
    """Of a search over four values; the worst was lucky."""
    from ray import tune

    def lucky(config):
        tune.report({"score": 5.0 if config["x"] == 0 else 1.0 - (config["x"] - 2) ** 2})

    space = {"x": tune.grid_search([0, 1, 2, 3]), "seed": 7}
    where = tune.RunConfig(verbose=0, storage_path=str(cluster), name="search")
    return tune.Tuner(lucky, param_space=space, run_config=where).fit()


def config_of(results, trial_id):
    (found,) = (one.config for one in results if one.metrics["trial_id"] == trial_id)
    return found


def test_the_best_trial_is_certified_by_tasks(results, sqlite_url, tmp_path):
    from surepick.integrations.ray import confirm

    found = confirm(results, trained, url=sqlite_url, name="last", top=3, **ASKED)
    assert config_of(results, found.best_arm)["x"] == 2
    assert found.verdict == "certified"
    assert "the scores of 4 candidates chose the finalists" in str(found)
    sp.write_certificate(sp.open_study(sqlite_url, "last"), tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_a_task_that_raises_loses_nothing_and_the_same_call_goes_on(results, sqlite_url, tmp_path):
    from surepick.integrations.ray import confirm

    calls = Calls(tmp_path / "calls")

    def broken(limit, config):
        if calls.note(config["seed"]) > limit:
            raise RuntimeError("out of memory")
        return score(config["x"])

    asked = {"url": sqlite_url, "name": "again", "top": 3, "seed": "seed", "n_jobs": 1, **ASKED}
    with pytest.raises(Exception, match="out of memory"):
        confirm(results, functools.partial(broken, 4), **asked)
    found = confirm(results, functools.partial(broken, 10**6), **asked)
    assert config_of(results, found.best_arm)["x"] == 2
    assert len(calls.lines) - found.pulls <= 2  # what had raised
    assert len(set(calls.lines)) == len(calls.lines)  # a seed of its own for each


PROGRAM = """
import os, pickle, signal, sys
import ray
from surepick.integrations.ray import confirm
from killed import Calls

folder, url, address = sys.argv[1:]
path = {"env_vars": {"PYTHONPATH": os.environ["PYTHONPATH"]}}
ray.init(address=address, log_to_driver=False, logging_level="ERROR", runtime_env=path)
calls, program = Calls(__import__("pathlib").Path(folder) / "calls"), os.getpid()

def trained(config):
    if calls.note(config["seed"]) == 5:
        os.kill(program, signal.SIGKILL)
    return {"score": 1.0 - (config["x"] - 2) ** 2}

results = pickle.load(open(f"{folder}/results", "rb"))
asked = {"metric": "score", "mode": "max", "epsilon": 0.3, "noise": "subgaussian:0.1", "top": 3, "seed": "seed"}
confirm(results, trained, url=url, n_jobs=1, **asked)
"""


def test_a_killed_program_goes_on(results, cluster, sqlite_url, tmp_path):
    from surepick.integrations.ray import confirm

    (tmp_path / "results").write_bytes(pickle.dumps(results))
    (tmp_path / "program.py").write_text(PROGRAM)
    words = [sys.executable, tmp_path / "program.py", tmp_path, sqlite_url, ray.get_runtime_context().gcs_address]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert done.returncode == -signal.SIGKILL
    kept = sp.open_study(sqlite_url, "best").progress().told
    assert 4 <= kept <= 5  # what the fifth call returned may have come before its signal
    calls = Calls(tmp_path / "calls")
    before = len(calls.lines)

    def trained_again(config):
        calls.note(config["seed"])
        return trained(config)

    found = confirm(results, trained_again, top=3, seed="seed", url=sqlite_url, n_jobs=2, **ASKED)
    assert config_of(results, found.best_arm)["x"] == 2
    assert len(calls.lines) - before == found.pulls - kept
    sp.write_certificate(found.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_one_that_reports_is_measured_by_a_tuner(results, cluster):
    from ray import tune

    from surepick.integrations.ray import confirm

    where = tune.RunConfig(verbose=0, storage_path=str(cluster))
    found = confirm(results, reported, tuner=True, run_config=where, top=2, **{**ASKED, "epsilon": 1.0})
    assert config_of(results, found.best_arm)["x"] == 2
    with pytest.raises(sp.InvalidInput, match="measured by tuner=True"):
        confirm(results, lambda config: None, top=2, **ASKED)


def test_what_chooses_no_finalist_is_refused(results):
    from surepick.integrations.ray import confirm

    with pytest.raises(sp.InvalidInput, match="no trial has the metric 'loss'"):
        confirm(results, trained, **{**ASKED, "metric": "loss"})
    with pytest.raises(sp.InvalidInput, match="mode is 'maximize'"):
        confirm(results, trained, **{**ASKED, "mode": "maximize"})


@pytest.fixture(scope="module")
def race(cluster, tmp_path_factory):
    """Trials that raced, their stopper, and where it kept their reports; Ray's threads end with the cluster."""
    from ray import tune

    from surepick.integrations.ray import CertifiedStopper

    def races(config):
        while True:
            tune.report(trained(config))

    url = f"sqlite:///{tmp_path_factory.mktemp('race') / 'studies.db'}"
    stopper = CertifiedStopper(num_trials=4, url=url, name="race", **ASKED)
    where = tune.RunConfig(verbose=0, storage_path=str(cluster), name="race", stop=stopper)
    space = {"x": tune.grid_search([0, 1, 2, 3])}
    return tune.Tuner(tune.with_resources(races, {"cpu": 0.5}), param_space=space, run_config=where).fit(), stopper, url


@pytest.mark.usefixtures("sqlite_url")  # closes what is opened
def test_trials_race_until_one_is_certified(race, tmp_path):
    found, stopper, url = race
    assert config_of(found, stopper.best_trial)["x"] == 2
    assert stopper.certificate().verdict == "certified"
    assert sp.open_study(url, "race").stopped
    sp.write_certificate(stopper.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


# --- the stopper, report by report


def stopper_of(**changed):
    from surepick.integrations.ray import CertifiedStopper

    return CertifiedStopper(**{"num_trials": 3, **ASKED, **changed})


def test_reports_before_they_are_asked_for_wait():
    stopper = stopper_of()
    for _ in range(5):
        assert not stopper("a", {"score": 1.0})
    with pytest.raises(sp.OutOfTurn, match="1 of 3 trials have reported"):
        stopper.certificate()
    assert not stopper("b", {"score": 0.0})
    assert not stopper.stop_all()
    stopper("c", {"score": 0.5})
    assert stopper.study.ids == ("a", "b", "c")
    assert stopper.study.progress().judged <= 1  # b and c have one report each


def test_a_trial_that_is_ruled_out_stops():
    stopper, rng, out = stopper_of(), np.random.default_rng(0), set()
    for _ in range(200):
        for trial, mean in (("a", 1.0), ("b", -3.0), ("c", 0.9)):
            if trial not in out and not stopper.stop_all() and stopper(trial, {"score": mean + rng.normal(0.0, 0.1)}):
                out.add(trial)
    assert stopper.stop_all()
    assert stopper.best_trial in ("a", "c")


def test_what_has_no_metric_is_refused():
    with pytest.raises(sp.InvalidInput, match="no 'score'"):
        stopper_of()("a", {"loss": 1.0})
    with pytest.raises(sp.InvalidInput, match="mode"):
        stopper_of(mode="most")


def test_the_page_s_program(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (program,) = (one for one in blocks("docs/adapters.md") if one.language == "python" and "import ray" in one.text)
    names = {}
    exec(compile(re.sub(r"(?m)^ray\.init\(.*\n", "", program.text), "docs/adapters.md", "exec"), names)
    assert names["found"].verdict == "certified"
