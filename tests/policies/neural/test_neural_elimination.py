"""Algorithm 2's eliminations, its network and its verdicts."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from algorithm_two import USUAL, exact, means_rule, network, rule, told
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.embeddings.network import ArmNetwork
from surepick.estimators.network_training import plausible_regularization, train
from surepick.policies.base import stopped
from surepick.policies.paper.neural_elimination import CONSTANTS, WHY_HEURISTIC, conclude_round, initial_neural_state
from surepick.policies.verdict import certificate_of

# --- elimination and the end


def step(scores, *, active=None, round_number=1, counts=None, **changes):
    """`conclude` after a round in which the scores were reached, with 5 pulls of each arm unless told otherwise."""
    settings = rule(num_arms=len(scores), **changes)
    state = initial_neural_state(settings)
    before = np.arange(len(scores)) if active is None else np.array(active)
    state = type(state)(round_number, before, state.seen, 100, int(before[0]), "", state.alarms)
    pulled = np.full(len(scores), 5) if counts is None else np.array(counts)
    plan = sp.Plan(round=round_number, counts=np.full(len(scores), 5), dim=2, design_value=4.0, lower_bound=3.9)
    return conclude_round(settings, state, plan, Observations(pulled, pulled * 1.0), np.array(scores, np.float64))


def test_what_trails_by_the_threshold_goes_all_at_once():
    """At epsilon 1/6 the threshold t_1 = .125 is a binary fraction, and an arm that trails by exactly so much goes."""
    settings = {"epsilon": 1.0 / 6.0}
    assert rule(**settings).threshold(1) == 0.125
    done = step([0.5, 0.375, 0.376, 0.625, 0.0, 0.5], **settings)
    assert done.state.active.tolist() == [3]
    done = step([0.5, 0.375, 0.376, 0.4375, 0.0, 0.5], **settings)
    assert done.state.active.tolist() == [0, 2, 3, 5]
    assert (done.state.leader, done.state.round, done.state.finished) == (0, 2, "")
    assert (done.state.pulls, done.record.pulls, done.record.total_pulls) == (130, 30, 130)
    assert (done.record.leader, done.record.dim, done.record.design_value) == (0, 2, 4.0)
    assert np.array_equal(done.record.active, done.state.active)
    assert done.record.certified_gap is None


def test_only_active_arms_count():
    done = step([9.0, 0.5, 0.45, 0.1], active=[1, 2, 3])
    assert done.state.active.tolist() == [1, 2]
    assert done.state.leader == 1


def test_ties_stay_together():
    done = step([0.3, 0.3, 0.3])
    assert done.state.active.tolist() == [0, 1, 2]
    assert done.state.leader == 0


@pytest.mark.parametrize("round_number", [1, 3, 4])
def test_one_arm_left_ends_it(round_number):
    done = step([0.0, 1.0, 0.0], round_number=round_number)
    assert (done.state.finished, done.state.leader, done.state.active.tolist()) == ("single", 1, [1])
    assert done.state.round == round_number


def test_the_last_round_ends_it_with_the_highest_score():
    """Four rounds at epsilon .1, t_4 = .0453; the answer is the survivor of highest score, not any."""
    done = step([0.50, 0.52, 0.47, 0.51], round_number=4)
    assert (done.state.finished, done.state.leader) == ("rounds", 1)
    assert done.state.active.tolist() == [0, 1, 3]
    assert step([0.50, 0.52, 0.47, 0.51], round_number=3).state.finished == ""
    assert step([0.5, 0.6], round_number=1, epsilon=1.0).state.finished == "rounds"


def test_a_round_of_which_nothing_came_is_repeated():
    for round_number in (1, 4):
        done = step([0.0, 1.0, 0.0], round_number=round_number, counts=[0, 0, 0])
        assert (done.state.round, done.state.finished, done.state.pulls) == (round_number, "", 100)
        assert done.state.active.tolist() == [0, 1, 2]


def test_an_empty_round_leaves_the_leader_alone():
    """The network's leader would be that of the largest output at the start: of rounding errors."""
    policy = means_rule(4)
    state = told(policy, policy.init(), [0.85, 0.9, 0.1, 0.0])
    assert (state.leader, state.active.tolist()) == (1, [0, 1])
    assert policy.tell(state, policy.ask(state), Observations.nothing(4)).state.leader == 1


def test_the_network_trains_on_the_last_round_that_came():
    policy = network(np.eye(4), width=64)
    state = told(policy, policy.init(), [0.5, 0.45, 0.2, 0.1])
    again = policy.tell(state, policy.ask(state), Observations.nothing(4)).state
    assert again.seen == state.seen
    assert policy.ask(again) == policy.ask(state)


# --- the network's settings


def test_the_regularisation_in_force_is_the_most_plausible_one_unless_given():
    arms, seen = np.eye(3), Observations(np.array([4, 5, 6]), np.array([4.0, 1.0, -3.0]), None)
    noise = sp.SubGaussian(0.5)
    free, fixed = network(arms, noise=noise), network(arms, noise=noise, regularization=0.3)
    built = ArmNetwork(arms, free.network)
    plausible = plausible_regularization(built, seen, sigma=0.5)
    for policy, alpha in ((free, plausible), (fixed, 0.3)):
        plan = policy.ask(policy.init())
        state = policy.tell(policy.init(), plan, seen).state
        assert state.leader == int(np.argmax(train(built, seen, regularization=alpha).scores))
        assert np.array_equal(policy._trained(built, seen).scores, train(built, seen, regularization=alpha).scores)


def test_the_published_floor_is_two_pulls_an_arm_over_the_slack():
    features = np.random.default_rng(0).standard_normal((20, 6))
    few = {"constants": "paper", "noise": sp.Bernoulli(), "epsilon": 0.9}
    for slack in (0.1, 0.5):
        plan = network(features, floor="published", slack=slack, error_tolerance=0.05, **few).ask(
            initial_neural_state(rule(num_arms=20))
        )
        support = np.count_nonzero(plan.counts)
        assert plan.total >= 2 * support / slack
        needed = rule(num_arms=20, slack=slack, **few).pulls(1, dim=plan.dim, value=plan.design_value)
        assert plan.total == max(needed, math.ceil(2 * support / slack))


def test_the_plan_is_the_rule_on_the_networks_own_design():
    features = np.random.default_rng(0).standard_normal((30, 3))
    policy = network(features, constants="box", inputs="normalized")
    plan = policy.ask(policy.init())
    assert plan.design_value == pytest.approx(plan.lower_bound, rel=0.02)
    assert plan.total == policy.rule.pulls(1, dim=plan.dim, value=plan.design_value)
    assert network(features, constants="box", inputs="normalized", gap_bound=3.0).ask(policy.init()) == plan


def test_dropped_arms_are_not_compared_any_more():
    """Round 2 designs for the survivors only, in the dimension of all arms."""
    features = np.random.default_rng(1).standard_normal((12, 8))
    policy = network(features, width=64)
    state = policy.init()
    first = policy.ask(state)
    state = told(policy, state, np.where(np.arange(12) < 3, 0.9, 0.0))
    assert set(state.active.tolist()) <= {0, 1, 2}
    assert len(state.active) > 1
    second = policy.ask(state)
    assert second.design_value < first.design_value
    assert second.dim > 3


# --- certificates


def finished(policy, means):
    state = policy.init()
    while not stopped(policy, state):
        state = told(policy, state, means)
    return certificate_of(policy, state)


MAKERS = {
    "network": lambda **changes: network(np.eye(4), **changes),
    "means": lambda **changes: means_rule(4, **changes),
}


@of_each("constants", CONSTANTS)
@of_each("kind", MAKERS)
def test_the_verdict_is_heuristic_and_the_reason_names_the_constants(kind, constants):
    policy = MAKERS[kind](constants=constants)
    assert certificate_of(policy, policy.init()).verdict == "not-yet"
    answer = finished(policy, [0.9, 0.2, 0.1, 0.0])
    assert (answer.arm, answer.verdict, answer.certified_gap) == (0, "heuristic", None)
    assert answer.reason.startswith(f"{WHY_HEURISTIC[constants]}; ")
    word = {"box": "of the paper's algorithm", "paper": "of the published runs", "proof": "paper's proof"}
    assert word.get(constants, "fixed embedding whose error is at most the declared one") in answer.reason
    scores = {
        "network": "trained network, whose error nothing bounds",
        "means": "plain means, and the policy is a control",
    }
    assert scores[kind] in answer.reason
    assert answer.reason.endswith("One arm is left.")
    assert "speak against" not in answer.reason


@pytest.mark.parametrize("kind", MAKERS)
def test_an_unfinished_study_says_so(kind):
    policy = MAKERS[kind]()
    state = told(policy, policy.init(), [0.9, 0.88, 0.1, 0.0])
    answer = certificate_of(policy, state)
    assert (answer.verdict, answer.certified_gap, answer.pulls) == ("not-yet", None, state.pulls)
    assert "more are needed" in answer.reason


@pytest.mark.parametrize("kind", MAKERS)
def test_several_arms_left_are_counted(kind):
    answer = finished(MAKERS[kind](constants="paper"), [0.9, 0.89, 0.1, 0.0])
    assert answer.arm == 0
    assert answer.reason.endswith("2 arms are left; this one has the highest score of them.")


@pytest.mark.parametrize("kind", MAKERS)
def test_only_what_needed_no_pull_is_certified(kind):
    policy = MAKERS[kind](gap_bound=0.05)
    answer = certificate_of(policy, policy.init())
    assert (answer.verdict, answer.pulls, answer.certified_gap) == ("certified", 0, 0.05)
    assert "every arm is epsilon-best" in answer.reason


def test_the_caveats_promise_nothing():
    for policy in (network(np.eye(3)), means_rule(3)):
        assert "the verdict will be heuristic" in policy.traits.caveats[0]
        assert len(policy.traits.caveats) == 1
    assert network(np.eye(3)).traits.assumptions == (
        "A network of this kind, trained on the measurements, predicts the mean reward of every candidate.",
    )
    assert means_rule(3).traits.assumptions == ()


# --- ways to a wrong arm


def test_an_error_tolerance_far_too_large_rings_the_alarm():
    """Ten arms on one degree of the unit circle, for which one dimension would do: two are kept all the same."""
    angles = np.linspace(0.0, 0.02, 10)
    environment = sp.environments.Environment(
        arms=sp.Arms(np.column_stack([np.cos(angles), np.sin(angles)])),
        means=np.linspace(0.0, 0.9, 10)[::-1],
        noise=sp.SubGaussian(1.0),
    )
    policy = network(environment.arms.features, error_tolerance=0.9)
    run = sp.simulate(policy, environment)
    sentence = "error_tolerance = 0.9 leaves 1 dimension of 10 distinct arms (design value 4 in 2): too large to tell"
    assert run.rounds[0].dim == 2
    assert run.rounds[0].design_value == pytest.approx(4.0, rel=0.02)
    assert run.verdict == "heuristic"
    assert f"The data speak against the embedding: {sentence} them apart" in run.certificate.reason
    assert [len(row.alarms) for row in run.rounds] == [1] + [0] * (len(run.rounds) - 1)
    assert run.rounds[0].alarms[0].startswith(sentence)
    silent = sp.simulate(network(environment.arms.features, error_tolerance=1e-6, constants="paper"), environment)
    assert silent.rounds[0].dim > 1
    assert not any(row.alarms for row in silent.rounds)
    assert "speak against" not in silent.certificate.reason


def test_the_published_tolerance_asks_for_too_little_in_many_dimensions():
    """First weights of size 1/sqrt(D), a tolerance that grows with p: of two clusters in D = 100 it leaves one vector.
    Two are kept, and the alarm rings all the same."""
    environment = sp.environments.two_clusters(num_arms=200, dim=100, reward="norm", seed=0)
    settings = USUAL | sp.paper_settings("neural-embedding")
    policy = sp.make_policy("neural-embedding", environment.arms, **settings)
    run = sp.simulate(policy, environment)
    assert run.rounds[0].dim == 2
    assert re.search(
        r"error_tolerance = 0.0001 leaves 1 dimension of 200 distinct arms .*: too large", run.certificate.reason
    )


def test_two_distinct_arms_need_one_dimension():
    run_of = network(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), error_tolerance=0.9)
    plan = run_of.ask(run_of.init())
    assert plan.dim == 1
    assert not run_of.tell(run_of.init(), plan, exact(plan, [0.9, 0.1, 0.9])).record.alarms


@pytest.mark.parametrize("architecture", ["symmetric", "published"])
def test_arms_with_equal_features_stay_together_and_the_caveat_says_so(architecture):
    features = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    policy = network(features, architecture=architecture)
    assert policy.traits.caveats[1:] == ("3 arms have the features of another: no network tells them apart.",)
    state = policy.init()
    while not stopped(policy, state):
        state = told(policy, state, [0.9, 0.5, 0.1, 0.7, 0.0])
        assert state.active.tolist() == [0, 1, 3]
    assert state.finished == "rounds"
    assert certificate_of(policy, state).reason.endswith("3 arms are left; this one has the highest score of them.")


def test_equal_arms_only_are_one_point():
    policy = network(np.ones((3, 2)))
    plan = policy.ask(policy.init())
    assert (plan.dim, plan.design_value, plan.total) == (1, 0.0, 1)
    assert finished(policy, [0.5, 0.5, 0.5]).reason.endswith("3 arms are left; this one has the highest score of them.")
