"""A budget: a finite gap after every round, no measurement beyond it, an answer with or without a tolerance."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.random_streams import stream
from surepick.errors import InvalidInput
from surepick.noise import Normal
from surepick.policies.mixture_rules import MixtureRules
from surepick.policies.mixtures import MixtureElimination

HALF = sp.SubGaussian(0.5)
NOISES = {"drawn": (HALF, HALF), "0 and 1": (sp.Bernoulli(), sp.Bernoulli()), "scale unknown": (HALF, Normal())}


def world(number: int = 10, noise=HALF, best: float = 0.9) -> sp.environments.Environment:
    return sp.environments.Environment(
        arms=sp.Arms(ids=range(number)), means=np.linspace(best, 0.1, number), noise=noise
    )


def policy_for(environment, declared=HALF, budget: int = 120, **asked):
    asked = {"delta": 0.05, "noise": declared, "budget": budget, **asked}
    return sp.make_policy("certified-independent", environment.arms, **asked)


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("number", [2, 10, 40])
def test_every_round_has_a_gap_and_none_is_beyond_the_budget(name, number):
    truth, declared = NOISES[name]
    environment, budget = world(number, truth), 9 * number + 1
    for seed in range(3):
        run = sp.simulate(policy_for(environment, declared, budget), environment, seed=seed)
        assert all(row.certified_gap is not None for row in run.rounds)
        assert run.pulls <= budget
        assert run.pulls == budget or run.certificate.certified_gap == 0.0
        assert run.verdict == "certified"
        assert run.certificate.epsilon == run.certificate.certified_gap


def test_with_a_tolerance_it_ends_once_that_is_shown_and_says_so_if_it_is_not():
    environment = world(3)
    early = sp.simulate(policy_for(environment, budget=600, epsilon=0.3), environment, seed=0)
    assert (early.verdict, early.ended_by) == ("certified", "policy")
    assert early.pulls < 600
    alike = world(3, best=0.15)
    late = sp.simulate(policy_for(alike, budget=20, epsilon=0.01), alike, seed=0)
    assert (late.verdict, late.pulls) == ("budget-exhausted", 20)
    assert late.certificate.certified_gap > 0.01
    assert "proved to be within" in late.certificate.promise


def test_a_budget_that_is_plenty_changes_nothing_but_the_end():
    environment = world(4)
    asked = {"epsilon": 0.1, "delta": 0.05, "noise": HALF}
    plain = sp.simulate(sp.make_policy("certified-independent", environment.arms, **asked), environment, seed=1)
    held = sp.simulate(policy_for(environment, budget=1_000_000, epsilon=0.1), environment, seed=1)
    assert (plain.pulls, plain.certificate.certified_gap) == (held.pulls, held.certificate.certified_gap)


@pytest.mark.parametrize("name", NOISES)
def test_many_studies_at_once_are_the_same(name):
    truth, declared = NOISES[name]
    environment = world(6, truth)
    policy = policy_for(environment, declared, 100)
    many = sp.simulate_many(policy, environment, seeds=range(4))
    for seed in range(4):
        run = sp.simulate(policy, environment, seed=seed)
        assert many.counts[seed].tolist() == run.counts.tolist()
        assert many.certified_gaps[seed] == run.certificate.certified_gap
        assert (many.verdicts[seed], many.right[seed]) == (run.verdict, run.right)


def test_a_stored_study_goes_on_where_it_was(sqlite_url):
    environment, rng = world(5), np.random.default_rng(0)
    study = sp.create_study(sqlite_url, "one", environment.arms, "certified-independent", noise=HALF, budget=40)
    while (batch := sp.open_study(sqlite_url, "one").ask()) is not None:
        arms = np.repeat(np.arange(5), batch.counts)
        study.tell([str(arm) for arm in arms], rng.normal(environment.means[arms], 0.5))
        study = sp.open_study(sqlite_url, "one")
    assert study.certificate().pulls == 40
    assert study.policy.spec == policy_for(environment, budget=40).spec
    assert sp.make_policy(arms=environment.arms, **study.policy.spec) == study.policy


def test_whoever_is_withdrawn_costs_nothing_more():
    environment, study = world(6), None
    study = sp.Study(environment.arms, policy_for(environment, budget=60))
    batch = study.ask()
    rng = stream(0, "rewards", 0)
    while batch is not None:
        arms = np.repeat(np.arange(6), batch.counts)
        study.tell([str(arm) for arm in arms], rng.normal(environment.means[arms], 0.5))
        if len(study.trace) == 1:
            study.withdraw(["0"], "independent-of-value")
        batch = study.ask()
    answer = study.certificate()
    assert answer.best_arm != "0"
    assert answer.pulls <= 60
    assert answer.certified_gap is not None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"budget": 5}, "budget is below their number"),
        ({"budget": 100, "question": "top", "m": 2}, "budget"),
        ({"budget": 100.5}, "whole number"),
        ({"budget": None}, "epsilon is not given"),
        ({"any_gap": True, "epsilon": 0.1, "budget": None}, "any_gap"),
    ],
)
def test_what_has_no_meaning_is_refused(asked, words):
    environment = world(10)
    with pytest.raises(InvalidInput, match=words):
        policy_for(environment, **asked)


def test_the_rest_of_a_budget_is_for_rivals_that_matter():
    """Far behind: its bound is below what the others can reach, so that measuring it lowers nothing."""
    environment = sp.environments.Environment(arms=sp.Arms(ids=range(4)), means=[1.0, 0.9, 0.8, -9.0], noise=HALF)
    run = sp.simulate(policy_for(environment, budget=80), environment, seed=0)
    assert run.counts[3] == 2
    assert isinstance(run.study.policy, MixtureElimination)


def test_the_margin_is_what_a_uniform_plan_tells_apart():
    policy = policy_for(world(10), budget=240)
    rules = MixtureRules(policy.problem, None, 240)
    assert rules.aims_at_budget
    expected = np.sqrt(2.0 * np.log(9 / 0.05) * 2.0 * 10 / 240)
    assert rules.margin_of_budget == pytest.approx(expected)


def test_the_gap_at_other_error_probabilities():
    """Larger where less may go wrong; at delta what the certificate says, but for smaller bounds of earlier rounds."""
    environment = world(6)
    for declared in (HALF, Normal()):
        study = sp.simulate(policy_for(environment, declared, 90), environment, seed=2).study
        gaps = [study.gap_at(delta) for delta in (0.001, 0.01, 0.05, 0.2, 0.5)]
        assert gaps == sorted(gaps, reverse=True)
        assert gaps[2] >= study.certificate().certified_gap
    with pytest.raises(InvalidInput, match="delta"):
        study.gap_at(1.5)
    plain = sp.make_policy("lucb", environment.arms, epsilon=0.1, delta=0.05, noise=HALF)
    assert sp.Study(environment.arms, plain).gap_at(0.1) is None
    assert sp.Study(environment.arms, policy_for(environment)).gap_at(0.1) is None


@pytest.mark.parametrize("name", NOISES)
def test_a_certificate_is_computed_again_from_its_file(name, tmp_path):
    truth, declared = NOISES[name]
    environment = world(5, truth)
    policy = policy_for(environment, declared, 40)
    assert sp.make_policy(arms=environment.arms, **policy.spec) == policy
    study = sp.simulate(policy, environment, seed=3).study
    sp.write_certificate(study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


@pytest.mark.parametrize(
    "sizes", [{"max_batches": 3}, {"batch_cost": 1000.0}, {"batch_size": 20}, {"largest_batch": 12}, {"batch_size": 39}]
)
@pytest.mark.parametrize("declared", [HALF, Normal()])
def test_no_size_of_batches_passes_the_budget(sizes, declared):
    environment = world(10)
    run = sp.simulate(policy_for(environment, declared, 60, **sizes), environment, seed=0)
    assert 20 <= run.pulls <= 60
    assert run.certificate.certified_gap is not None


def test_a_batch_beyond_the_budget_is_refused():
    with pytest.raises(InvalidInput, match="batch_size is above budget"):
        policy_for(world(10), budget=60, batch_size=61)


def test_where_no_scale_is_known_everybody_is_measured_twice_at_first():
    environment = world(10)
    run = sp.simulate(policy_for(environment, Normal(), 20), environment, seed=0)
    assert run.counts.tolist() == [2] * 10
    assert run.certificate.certified_gap is not None
    with pytest.raises(InvalidInput, match="twice their number"):
        policy_for(environment, Normal(), 19)


def test_equal_results_say_nothing_of_how_results_vary():
    """Also as totals of large numbers, whose sums of squares lose digits."""
    arms = sp.Arms(ids=[*"abcd"])
    study = sp.Study(sp.make_policy("certified-independent", arms, delta=0.05, noise="normal", budget=40))
    while (batch := study.ask()) is not None:
        counts = batch.counts
        study.tell_totals([*"abcd"], counts, 1000.1 * counts, 1000.1**2 * counts)
    assert study.certificate().verdict == "budget-exhausted"
    assert study.certificate().certified_gap is None


def test_repeats_that_grow_apart_are_noticed():
    environment, rng = world(4, best=0.1), np.random.default_rng(0)
    study = sp.Study(environment.arms, policy_for(environment, Normal(), 200))
    while (batch := study.ask()) is not None:
        arms = np.repeat(np.arange(4), batch.counts)
        scale = 0.01 if len(study.trace) < 4 else 5.0
        study.tell([str(arm) for arm in arms], rng.normal(environment.means[arms], scale), accept_unusual=True)
    assert study.certificate().verdict == "heuristic"


def test_a_pilot_that_may_fail_has_no_gap_below_that():
    environment = world(4)
    pilot = sp.PilotGaussian(0.6, 0.02, 20)
    study = sp.simulate(policy_for(environment, pilot, 60, delta=0.2), environment, seed=0).study
    assert study.gap_at(0.01) is None
    assert study.gap_at(0.1) is not None


def test_a_list_of_studies_says_that_no_tolerance_was_asked_for(sqlite_url):
    environment = world(5)
    sp.create_study(sqlite_url, "one", environment.arms, "certified-independent", noise=HALF, budget=40)
    sp.create_study(sqlite_url, "two", environment.arms, "certified-independent", noise=HALF, budget=40, epsilon=0.1)
    assert {one.name: one.epsilon for one in sp.list_studies(sqlite_url)} == {"one": 0.0, "two": 0.1}
