"""A study that is only simulated keeps no log: plans, trace and certificate are those of a study that keeps one."""

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.core.random_streams import stream
from surepick.core.records import to_json
from surepick.environments import Environment
from surepick.environments.rewards import NormalRewards
from surepick.studies.rehearsal import Rehearsal

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3], [0.2, -0.8]])
MEANS = FEATURES @ np.array([0.9, 0.2])
CASES = {
    "certified-independent": {},
    "certified-linear": {"norm_bound": 2.0},
    "linear-embedding": {"norm_bound": 2.0},
    "lucb": {},
    "sequential-halving": {"budget": 60},
}


def subject(name, noise="subgaussian:0.3", *, minimize=False, **options):
    """(environment, policy) of a small study."""
    arms = sp.Arms(FEATURES, [f"arm{arm}" for arm in range(5)], costs=options.pop("costs", None))
    policy = sp.make_policy(name, arms, epsilon=options.pop("epsilon", 0.3), delta=0.1, noise=noise, **options)
    law = NormalRewards(MEANS, np.full(5, 0.3))
    return Environment(arms=arms, means=MEANS, noise=policy.problem.noise, minimize=minimize, law=law), policy


def with_log(policy, environment, seed, most):
    """The same loop with a `Study`."""
    study = sp.Study(environment.arms, policy, minimize=environment.minimize)
    while (batch := study.ask()) is not None and batch.number <= most:
        drawn = environment.pull(batch.counts, stream(seed, "rewards", batch.number - 1))
        study.tell_simulated(batch, drawn, drawn=True)
    return study


@pytest.mark.cases(5)
@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_plans_trace_and_certificate_are_those_of_a_study_with_a_log(name, minimize):
    environment, policy = subject(name, minimize=minimize, **CASES[name])
    run = sp.simulate(policy, environment, seed=3)
    assert isinstance(run.played, Rehearsal)
    kept = with_log(policy, environment, 3, np.inf)
    assert to_json(run.certificate) == to_json(kept.certificate())
    assert [to_json(row) for row in run.rounds] == [to_json(row) for row in kept.trace]
    again = run.study
    assert [to_json(one.plan) for one in again.log.plans()] == [to_json(one.plan) for one in kept.log.plans()]
    assert to_json(again.certificate()) == to_json(run.certificate)


@of_each(
    ("name", "options"),
    [
        ("certified-independent", {"noise": "normal"}),
        ("certified-independent", {"costs": [1.0, 2.0, 0.5, 1.0, 3.0], "batch_cost": 5.0}),
        ("certified-independent", {"question": "top", "m": 2}),
        ("certified-linear", {"norm_bound": 2.0, "noise": "normal"}),
    ],
)
def test_so_they_are_with_other_noise_costs_and_questions(name, options):
    environment, policy = subject(name, **options)
    run = sp.simulate(policy, environment, seed=1)
    assert to_json(run.certificate) == to_json(with_log(policy, environment, 1, np.inf).certificate())


def test_a_study_that_ends_by_its_budget_has_the_plan_that_would_have_passed_it():
    environment, policy = subject("lucb")
    run = sp.simulate(policy, environment, seed=0, max_pulls=20)
    assert (run.ended_by, run.verdict) == ("pulls", "budget-exhausted")
    study = run.study
    assert sum(row.pulls for row in study.trace) == run.pulls <= 20
    assert study.ask().number == len(run.rounds) + 1


def test_repeats_that_contradict_the_declared_noise_are_said():
    environment, policy = subject("certified-independent", noise="subgaussian:0.05", epsilon=0.01)
    said = sp.simulate(policy, environment, seed=0).certificate
    assert said.verdict == "heuristic"
    assert "speak against the declared noise" in said.reason


def test_what_totals_cannot_be_is_refused():
    environment, policy = subject("lucb")
    study = Rehearsal(environment.arms, policy, minimize=False)
    study.ask()
    seen = environment.pull(study.missing, stream(0, "rewards", 0))
    with pytest.raises(sp.InvalidInput, match="draws a plan whole"):
        study.tell_simulated(type(seen)(seen.counts + 1, seen.sums, seen.squares))
    beyond = type(seen)(seen.counts, seen.sums * 1e60, seen.squares)
    with pytest.raises(sp.InvalidInput, match="beyond 1e"):
        study.tell_simulated(beyond)
    study.tell_simulated(seen)
    with pytest.raises(sp.OutOfTurn):
        study.tell_simulated(seen)


def test_the_certificate_does_not_depend_on_who_looks_on():
    """One mean far from all others: nobody typed it."""
    means = np.array([100.0, 100.3, 100.6, 100.9, 101.2, 10.0])
    arms = sp.Arms(ids=range(6))
    environment = Environment(arms=arms, means=means, noise=sp.SubGaussian(0.5))
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.1, noise=environment.noise)
    alone, seen = sp.simulate(policy, environment), sp.simulate(policy, environment, on_plan=lambda *_: None)
    assert to_json(alone.certificate) == to_json(seen.certificate) == to_json(alone.study.certificate())


def test_what_a_study_refuses_is_refused():
    arms = sp.Arms(ids=range(3))
    noise = sp.SubGaussian(0.5)
    asked = {"question": "above", "threshold": 0.5}
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.1, noise=noise, **asked)
    environment = Environment(arms=arms, means=[0.0, 1.0, -1.0], noise=noise, minimize=True)
    with pytest.raises(sp.InvalidInput, match="large ones are good"):
        sp.simulate(policy, environment)
