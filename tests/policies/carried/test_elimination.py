"""Certified elimination with carried-on evidence: right answers, arms that are out for good, missing results."""

from itertools import pairwise

import numpy as np
import pytest
from budgets import few_and_all
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.policies.base import stopped

WORLDS = {
    "linear": (lambda seed: sp.environments.soare(5, 0.5, seed), "certified-linear", {"norm_bound": 1.0}),
    "independent": (lambda seed: sp.environments.one_better(8, 0.5, seed), "certified-independent", {}),
    "bounded": (lambda seed: sp.environments.falling_means(12, seed=seed), "certified-independent", {}),
    "compressed": (
        lambda seed: sp.environments.two_clusters(num_arms=60, dim=12, perturbation=1e-3, seed=seed),
        "certified-linear",
        {"norm_bound": 0.9},
    ),
}


def policy_for(kind: str, seed: int):
    make, name, options = WORLDS[kind]
    world = make(seed)
    noise = world.noise
    made = sp.make_policy(name, world.arms, epsilon=0.1, delta=0.05, noise=noise, evidence="carried", **options)
    return world, made


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", WORLDS)
def test_it_certifies_an_answer_that_is_good_enough(kind):
    for seed in range(2):
        world, policy = policy_for(kind, seed)
        run = sp.simulate(policy, world, seed=seed)
        assert run.verdict == "certified"
        assert run.success
        assert run.certificate.certified_gap <= 0.1


@of_each("kind", WORLDS)
def test_arms_that_are_out_stay_out_and_the_gap_of_a_leader_never_grows(kind):
    world, policy = policy_for(kind, 3)
    rounds = sp.simulate(policy, world, seed=3).rounds
    for before, after in pairwise(rounds):
        assert set(after.active) <= set(before.active)
        if before.leader == after.leader and before.certified_gap is not None:
            assert after.certified_gap <= before.certified_gap


@of_each("kind", WORLDS)
def test_a_first_batch_of_which_hardly_anything_came_is_gone_on_from(kind):
    world, policy = policy_for(kind, 4)
    state, number = policy.init(), 0
    while not policy.claim(state).finished:
        plan = policy.ask(state)
        assert plan.counts.sum() > 0
        came = np.array(plan.counts)
        if number == 0:
            came[np.flatnonzero(came)[1:]] = 0
        if number == 1:
            came[:] = 0
        seen = world.pull(came, stream(4, "rewards", number)) if came.any() else Observations.nothing(len(came))
        state = policy.tell(state, plan, seen).state
        number += 1
    assert world.is_epsilon_best(policy.claim(state).leader, 0.1)


def test_where_epsilon_is_far_below_the_gap_it_takes_far_fewer_pulls_than_a_look_at_every_direction():
    world = sp.environments.soare(5, 0.1, 0, sigma=0.5)
    epsilon = 0.1 * float(np.partition(world.gaps, 1)[1])
    asked = {"epsilon": epsilon, "delta": 0.05, "noise": world.noise, "norm_bound": 1.0}
    pulls = []
    for seed in range(2):
        policy = sp.make_policy("certified-linear", world.arms, evidence="carried", **asked)
        pulls.append(sp.simulate(policy, world, seed=seed).pulls)
    each_direction = 0.12 * 5 * (0.5 / epsilon) ** 2  # to well within epsilon
    assert 20 * np.mean(pulls) < each_direction


@pytest.mark.parametrize(("means", "epsilon"), [((6.1, 7.4, 6.8), 0.3), ((0.0, 0.2, 0.4, 0.5, 0.9), 0.2)])
@few_and_all("seeds", 8, 100)
def test_few_arms_never_go_on_for_ever(means, epsilon, seeds):
    """Shares of less than a pull, and flows that are left on former candidates, once did so in one run of a hundred."""
    means = np.array(means)
    arms = sp.Arms(ids=[str(arm) for arm in range(len(means))])
    policy = sp.make_policy("certified-independent", arms, epsilon=epsilon, delta=0.05, noise=sp.SubGaussian(0.5))
    spent = []
    for seed in range(seeds):
        rng, state = stream(seed, "few arms"), policy.init()
        while not policy.claim(state).finished and state.pulls < 1000:
            counts = policy.ask(state).counts
            sums = counts * means + 0.5 * np.sqrt(counts) * rng.normal(size=len(means))
            state = policy.tell(state, policy.ask(state), sp.Observations(counts, sums)).state
        spent.append(state.pulls)
    assert max(spent) < 500


@pytest.mark.parametrize("scale", [0.05, 0.1, 0.2])
def test_an_estimate_never_lies_below_what_is_proved_of_its_difference(scale):
    """Else the width would be negative: the pooled fit guesses a lead, the bound is that of one arm's process."""
    ids, below = tuple("abcdef"), 0
    features = np.random.default_rng(5).normal(size=(6, 2)) / 3
    means = np.array([0.91, 0.3, 0.52, 0.1, 0.45, 1 / 3])
    for seed in range(6):
        arms = sp.Arms(features, ids, costs=[0.1, 0.2, 0.7, 0.1, 1 / 3, 3.0])
        policy = sp.make_policy(
            "certified-linear", arms, norm_bound=3.0, epsilon=0.3, delta=0.05, noise="subgaussian:0.1"
        )
        state = policy.init()
        for _ in range(8):
            if stopped(policy, state):
                break
            plan = policy.ask(state)
            values = means + stream(seed, "draws", plan.round).normal(0.0, scale, 6)
            counts = plan.counts
            step = policy.tell(state, plan, Observations(counts, counts * values, counts * values**2))
            state, found = step.state, step.deciding(None)
            known = np.isfinite(found.widths)
            assert (found.widths[known] >= 0.0).all()
            np.testing.assert_allclose(found.margins[known], (found.leads - found.widths + found.allowed)[known])
            bounds = state.bounds_of(state.candidate if state.candidate >= 0 else state.leader)[found.arms]
            own = known & (found.allowed > 0.0)
            np.testing.assert_allclose((found.widths - found.leads)[own], bounds[own], atol=1e-12)
            below += np.count_nonzero(found.widths[known] == 0.0)
    assert below > 0
