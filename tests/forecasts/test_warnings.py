"""What a forecast warns of, and that good settings earn no warning."""

import numpy as np
import pytest
from forecast_cases import DELTA, linear, said, two_clusters

import surepick as sp
from surepick.forecasts import forecast
from surepick.forecasts.simulated_studies import NO_HELP
from surepick.policies.verdict import certificate_of

# policies that certify a candidate


def short_of_dimensions(dim, epsilon):
    """Six directions, of which `dim` are used by force."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 6)) * [1.0, 1.0, 0.3, 0.2, 0.1, 0.05]
    means = features @ [0.5, -0.3, 0.2, 0.1, 0.0, 0.0]
    settings = {"epsilon": epsilon, "delta": DELTA, "noise": "subgaussian:0.3", "norm_bound": 1.0}
    return means, sp.make_policy("certified-linear", sp.Arms(features), dim=dim, **settings)


@pytest.mark.parametrize("dim", [1, 2])
def test_a_study_that_misspecification_keeps_from_ending_is_told_and_soon(dim):
    means, policy = short_of_dimensions(dim, 0.1)
    assert 2 * policy.embedding.misspecification(dim) > policy.problem.epsilon
    for found in (forecast(policy), guess := forecast(policy, means)):
        assert not found.believable
        assert said(found, "It may never stop, and was ended")
        assert said(found, f"what {dim} dimensions leave out")
        assert said(found, "Raise epsilon")
        assert not said(found, "times as much")
        assert len(found.rounds) <= 32
    assert guess.rehearsals == 2


def test_the_certificate_says_itself_that_more_would_not_help():
    """The sentence that the forecast looks for is the policy's own."""
    _, policy = short_of_dimensions(2, 0.1)
    state = policy.init()
    for _ in range(4):
        plan = policy.ask(state)
        nothing = np.zeros(policy.problem.num_arms)
        state = policy.tell(state, plan, sp.Observations(plan.counts, nothing, nothing)).state
    assert NO_HELP in certificate_of(policy, state).reason


def test_misspecification_that_uses_epsilon_up_is_said():
    found = forecast(short_of_dimensions(5, 0.5)[1])
    assert said(found, "Misspecification uses 41% of epsilon, so it costs 2.9 times as much")
    assert found.believable


# warnings


def test_a_norm_bound_far_too_small_is_not_believable():
    environment = sp.environments.digits(0, per_digit=2)
    policy = linear(environment, epsilon=0.3, norm_bound=1e-6)
    for found in (forecast(policy), forecast(policy, environment.means)):
        assert said(found, "no two candidates differ by more than")
        assert {row.dim for row in found.rounds} == {20}  # nothing rests on it
    forced = forecast(linear(environment, epsilon=0.1, norm_bound=1e-6, dim=1), environment.means)
    assert not forced.believable
    assert said(forced, "more than the norm bound 1e-06")
    assert said(forced, "wrong in")
    assert said(forecast(linear(environment, epsilon=0.1, norm_bound=1e-6, dim=1)), "suspiciously little")


def test_full_rank_digits_compress_nothing():
    environment = sp.environments.digits(0)
    found = forecast(linear(environment, epsilon=0.1, norm_bound=2.0))
    assert said(found, "compresses nothing")
    assert said(found, "more measurements than uniform sampling")
    assert found.believable


def test_the_norm_that_a_guess_needs_is_told():
    environment = sp.environments.sphere(20, 4, 2)
    found = forecast(linear(environment, epsilon=0.5), environment.means)
    assert found.guess_norm == pytest.approx(1.0)  # theta is a unit vector
    assert not said(found, "more than the norm bound")
    unused = forecast(linear(environment, epsilon=0.5, norm_bound=0.9), environment.means)
    assert unused.rounds[0].misspecification == 0.0  # all directions are used: nothing rests on the norm
    assert unused.believable
    environment = sp.environments.two_clusters(num_arms=60, dim=6)
    small = forecast(linear(environment, epsilon=0.1, norm_bound=0.5), environment.means)
    assert said(small, "more than the norm bound 0.5")
    assert not small.believable


def test_a_guess_outside_the_embedding_is_told():
    environment = sp.environments.sphere(20, 4, 2)
    bent = np.abs(environment.means)
    found = forecast(linear(environment, epsilon=0.5, norm_bound=2.0), bent)
    assert said(found, "No reward of the declared kind comes closer")
    assert not found.believable


def test_good_settings_earn_no_warning_of_their_own():
    environment, policy = two_clusters()
    found = forecast(policy, environment.means)
    assert found.believable
    assert found.warnings == policy.traits.caveats


def test_misspecification_that_uses_the_accuracy_up_is_said():
    rough, smooth = (
        forecast(linear(sp.environments.two_clusters(num_arms=60, dim=6, perturbation=step), epsilon=0.1))
        for step in (3e-3, 1e-3)
    )
    assert rough.rounds[-1].bias > 0.3 * rough.rounds[-1].accuracy
    assert said(rough, "misspecification uses 42% of the accuracy, so that round costs 2.9 times as much")
    assert not said(smooth, "misspecification uses")
    assert rough.believable


# batches that do not suffice


def test_batches_that_are_too_few_are_told_and_how_often():
    environment = sp.environments.one_better(10, 0.3, 1)
    asked = {"epsilon": 0.1, "delta": DELTA, "noise": environment.noise}
    few = sp.make_policy("certified-independent", environment.arms, batch_size=20, max_batches=4, **asked)
    found = forecast(few, environment.means, rehearsals=8)
    assert not found.believable
    assert said(found, "In 8 of 8 simulated studies, the batches that are allowed end before anything is certified")
    assert said(forecast(few), "If all candidates are equal, the batches that are allowed end")
    assert forecast(few).believable
    enough = sp.make_policy("certified-independent", environment.arms, max_batches=30, **asked)
    assert not said(forecast(enough, environment.means, rehearsals=8), "batches that are allowed")
