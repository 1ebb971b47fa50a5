"""The best arm of those that keep some bounds: who is named, what is told, and what it costs."""

import numpy as np
import pytest
from constrained_studies import RewardsBeside
from refusals import refused
from together import of_each

import surepick as sp
from surepick.core.observations import Observations, Quantity
from surepick.environments.environment import Environment
from surepick.environments.rewards import NormalRewards
from surepick.policies.verdict import certificate_of
from surepick.simulation import simulate

NOISY = "heat<=0,tolerance=0.3,noise=subgaussian:0.5"


def world(seed=0, num_arms=12, features=None, heat=None):
    """Normal rewards with sd 1 and one normal quantity with sd .5 beside each."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=num_arms) if features is None else features @ rng.normal(size=features.shape[1])
    own = rng.normal(size=num_arms) if heat is None else heat
    law = RewardsBeside(NormalRewards(means, np.ones(num_arms)), (NormalRewards(own, np.full(num_arms, 0.5)),))
    arms = sp.Arms(np.empty((num_arms, 0)) if features is None else features, range(num_arms))
    return Environment(arms=arms, means=means, noise=sp.SubGaussian(1.0), law=law)


def policy(env, constraints=NOISY, name="certified-independent", **options):
    asked = {"epsilon": 0.4, "delta": 0.05, "noise": "subgaussian:1", "constraints": constraints}
    return sp.make_policy(name, env.arms, **asked, **options)


@pytest.mark.cases(5)
@pytest.mark.parametrize("constraint", [NOISY, NOISY.replace("<=0", ">=0.2"), NOISY.replace("<=0", "<=-5")])
@pytest.mark.parametrize("seed", range(3))
def test_the_answer_is_right_and_certified(seed, constraint):
    env = world(seed)
    run = simulate(policy(env, constraint), env, seed=seed, max_pulls=20_000)
    assert run.verdict == "certified"
    assert run.success
    assert len(run.certificate.lists.inside) == (0 if "-5" in constraint else 1)
    assert not run.certificate.lists.undecided


def test_batches_have_the_size_that_is_asked_and_are_as_few():
    env = world(1)
    run = simulate(policy(env, batch_size=30), env, seed=1, max_pulls=50_000)
    assert (run.verdict, run.success) == ("certified", True)
    assert {row.total_pulls % 30 for row in run.rounds} == {0}
    few = simulate(policy(env, max_batches=3), env, seed=1, max_pulls=50_000)
    assert len(few.rounds) <= 3


def test_with_features_the_rewards_share_what_they_tell():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(40, 3))
    env = world(4, 40, features / np.linalg.norm(features, axis=1)[:, None])
    linear = policy(env, name="certified-linear", norm_bound=float(np.abs(env.means).max()) + 3.0)
    with_features, without = (simulate(one, env, max_pulls=50_000) for one in (linear, policy(env)))
    assert with_features.success
    assert without.success
    assert any("norm" in line for line in with_features.certificate.assumptions)


def test_a_bound_that_all_keep_costs_little():
    env = world(5, heat=np.full(12, -3.0))
    bounded = simulate(policy(env), env).pulls
    free = simulate(sp.make_policy("certified-independent", env.arms, epsilon=0.4, delta=0.05, noise=env.noise), env)
    assert bounded <= 3 * free.pulls


def told(policy_, rewards, heats):
    """The state after one batch in which each arm that was asked has these means."""
    state = policy_.init()
    plan = policy_.ask(state)
    counts = plan.counts
    rewards, heats = np.array(rewards), np.array(heats, float)
    there = np.where(np.isnan(heats), 0, counts)
    known = np.nan_to_num(heats)
    beside = Quantity(there, there * known, there * known**2)
    seen = Observations(counts, counts * rewards, counts * rewards**2, quantities=(beside,))
    return policy_.tell(state, plan, seen).state


def test_a_quantity_without_noise_is_known_after_one_measurement():
    exact = policy(world(num_arms=3), "heat<=0")
    state = told(exact, [3.0, 2.0, 1.0], [0.5, 0.0, -1.0])
    assert state.leader == 1
    assert certificate_of(exact, told(exact, [3.0, 2.0, 1.0], [0.5, 0.1, 1.0])).verdict == "certified"
    assert certificate_of(exact, told(exact, [3.0, 2.0, 1.0], [0.5, 0.1, 1.0])).lists.inside == ()


def test_a_quantity_that_was_said_to_have_no_noise_and_has_some_is_noticed():
    env = world(heat=np.full(12, -1.0))
    run = simulate(policy(env, "heat<=0"), env, max_pulls=5_000)
    assert run.verdict == "heuristic"
    assert "which was said to have no noise: declare it, e.g. heat<=0,tolerance" in run.certificate.reason


def test_values_that_are_missing_are_told_in_the_assumptions():
    exact = policy(world(num_arms=3), "heat<=0")
    sentences = certificate_of(exact, told(exact, [3.0, 2.0, 1.0], [np.nan, 0.0, -1.0])).assumptions
    assert "Whether heat was measured does not depend on its value, nor on the reward." in sentences
    assert "A measurement of heat has no noise." in sentences


def test_two_bounds_both_count():
    rng = np.random.default_rng(8)
    means, hot, dear = rng.normal(size=(3, 10))
    ones = np.ones(10)
    law = RewardsBeside(NormalRewards(means, ones), (NormalRewards(hot, 0.5 * ones), NormalRewards(dear, 0.5 * ones)))
    env = Environment(arms=sp.Arms(ids=range(10)), means=means, noise=sp.SubGaussian(1.0), law=law)
    both = [NOISY.replace("<=0", "<=0.5"), NOISY.replace("heat<=0", "cost<=0.5")]
    run = simulate(policy(env, both), env, max_pulls=50_000)
    assert run.success
    assert "heat at most 0.5 and cost at most 0.5" in run.certificate.lists.first


def test_small_rewards_may_be_good():
    env = world(9)
    turned = Environment(arms=env.arms, means=env.means, noise=env.noise, minimize=True, law=env.law)
    run = simulate(policy(turned), turned, max_pulls=50_000)
    assert run.success


def test_other_policies_do_not_answer_it():
    env = world()
    refused(lambda: policy(env, name="lucb"), "constraints")


@of_each(
    "asked",
    [
        {"question": "above", "threshold": 0.0},
        {"question": "top", "m": 2},
        {"question": "all-good"},
        {"constraints": NOISY},
    ],
)
@of_each("noise", ["normal", "subgaussian:1"])
def test_a_policy_is_made_again_of_its_spec(asked, noise):
    arms = sp.Arms(ids=range(5))
    made = sp.make_policy("certified-independent", arms, epsilon=0.4, delta=0.05, noise=noise, **asked)
    again = sp.make_policy(arms=arms, **made.spec)
    assert again == made
    assert again.spec == made.spec
