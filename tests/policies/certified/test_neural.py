"""The verdicts and the tests of candidates of certified-neural."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from neural_studies import played, policy_of, smooth_world, told_some

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, Plan
from surepick.noise import failure_probability
from surepick.policies.certified import neural as neural_steering
from surepick.policies.certified.elimination import weight_of
from surepick.policies.certified.neural import HEDGES, UNDECLARED, learn
from surepick.policies.verdict import certificate_of

# --- words


def test_undeclared_misspecification_is_heuristic_where_the_network_was_used():
    world = smooth_world(num_arms=80)
    policy = policy_of(world)
    states, _ = played(policy, world)
    answer = certificate_of(policy, states[-1])
    assert states[-1].compressed
    assert answer.verdict == "heuristic"
    assert UNDECLARED in answer.reason
    assert policy.traits.caveats
    assert "about as wrong as the measurements suggest" in " ".join(answer.assumptions)


def test_undeclared_misspecification_is_certified_where_it_was_not(monkeypatch):
    monkeypatch.setattr(neural_steering, "HEURISTIC_ADVANTAGE", 0.0)
    world = smooth_world()
    policy = policy_of(world)
    states, plans = played(policy, world)
    answer = certificate_of(policy, states[-1])
    assert not states[-1].compressed
    assert all(plan.dim == 40 for plan in plans if plan.candidate is not None)
    assert answer.verdict == "certified"
    assert UNDECLARED not in answer.reason
    assert not any("network" in sentence for sentence in answer.assumptions)


def test_a_declared_misspecification_is_an_assumption_with_its_number():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.0325)
    states, plans = played(policy, world)
    answer = certificate_of(policy, states[-1])
    assert states[-1].compressed
    assert answer.verdict == "certified"
    assert any("within 0.0325 of the mean reward of every candidate" in sentence for sentence in answer.assumptions)
    assert {plan.misspecification for plan in plans} <= {0.0325, 0.0}
    assert policy.traits.caveats == ()


def test_a_declaration_that_the_batches_contradict_rings_an_alarm():
    world = smooth_world(num_arms=60)
    noisy = world.means + 0.2 * np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    world = sp.environments.Environment(arms=world.arms, means=noisy, noise=sp.SubGaussian(0.01))
    policy = policy_of(world, misspecification=0.0)
    state, learnt = policy.init(), told_some(world)
    state = policy.tell(state, Plan(round=1, counts=learnt.counts, dim=60, design_value=0.0), learnt).state
    plan = Plan(round=2, counts=np.full(60, 50), dim=5, predicted_pulls=0.0, candidate=state.leader)
    after = policy.tell(state, plan, world.pull(plan.counts, np.random.default_rng(1))).state
    assert after.alarms
    assert certificate_of(policy, after).verdict != "certified"


@pytest.mark.parametrize(
    ("noise", "bound"),
    [(sp.Bernoulli(), 1.0), (sp.Bounded(-3.0, 2.0), 3.0), (sp.Bounded(1.0, 4.0), 4.0), (sp.SubGaussian(0.5), 5e5)],
)
def test_the_size_of_the_means_is_bounded_by_the_range_or_a_million_scales(noise, bound):
    world = smooth_world()
    policy = policy_of(world, noise=noise, misspecification=0.25)
    assert policy.size_bound == bound
    assert policy.norm_bound_of(Embedding(np.eye(40), 0.25)) == pytest.approx(bound + 0.25, rel=2e-6)
    assert policy.norm_bound_of(Embedding(np.eye(40), 0.25)) > bound + 0.25
    assert policy.traits.assumptions[1].startswith(f"No candidate's mean reward is farther than {bound:g} from ")
    assert failure_probability(policy.problem.noise, policy.problem.delta) == 0.0


def test_settings_of_the_certified_network_without_meaning_are_refused():
    world = smooth_world()
    for changes, message in (
        ({"misspecification": -0.1}, "misspecification is -0.1"),
        ({"misspecification": math.nan}, "misspecification is nan"),
        ({"dim": 0}, "dim is 0"),
        ({"vectors": "first-layer"}, "vectors is 'first-layer'"),
        ({"regularization": 0.0}, "regularization is 0.0"),
        ({"largest_batch": 0}, "largest_batch is 0"),
        ({"reserve": -0.5}, "reserve is -0.5"),
        ({"tolerance": 0.0}, "tolerance is 0.0"),
    ):
        with pytest.raises(sp.InvalidInput, match=message):
            policy_of(world, **changes)
    with pytest.raises(sp.InvalidInput, match="the arms have no features"):
        sp.make_policy("certified-neural", sp.Arms(ids=[*"abc"]), epsilon=0.1, delta=0.05, noise="bernoulli")


# --- epochs


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(3))
def test_hedges_open_with_the_first_candidate_and_weights_stay_below_one(seed):
    world = smooth_world(seed, sigma=0.2)
    policy = policy_of(world, misspecification=0.05)
    states, plans = played(policy, world, seed=seed)
    opened = [len(after.collected) - len(before.collected) for before, after in itertools.pairwise(states)]
    first = next(number for number, count in enumerate(opened) if count)
    assert 1 <= opened[first] <= 1 + HEDGES
    assert all(count <= 1 for count in opened[first + 1 :])
    assert states[first + 1].collected[0].name == str(plans[first].candidate)
    assert len({epoch.name for epoch in states[-1].collected}) == len(states[-1].collected)
    assert math.fsum(map(weight_of, range(len(states[-1].collected)))) < 1.0
    near = learn(policy, states[first].seen).scores
    for epoch in states[first + 1].collected:
        assert near[int(epoch.name)] >= near[plans[first].candidate] - policy.problem.epsilon


def test_searches_are_evidence_for_nobody():
    """No plan without a candidate moves an epoch: none is open before the last search."""
    searches = 0
    for seed in range(2):
        world = smooth_world(seed, sigma=0.1)
        states, plans = played(policy_of(world, misspecification=0.05), world, seed=seed)
        for before, plan, after in zip(states[:-1], plans, states[1:], strict=True):
            if plan.candidate is None:
                assert before.collected == after.collected == ()
                assert not after.compressed
                searches += before.round > 1
    assert searches > 0


def test_an_epoch_starts_at_its_weight_and_only_its_own_batches_count():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.05)
    states, plans = played(policy, world)
    first = next(number for number, state in enumerate(states) if state.collected)
    nothing = policy.tell(states[first - 1], plans[first - 1], Observations.nothing(40)).state
    for number, epoch in enumerate(nothing.collected):
        assert epoch.values == pytest.approx(math.log(weight_of(number)))
    assert nothing.collected[0].name == str(plans[first - 1].candidate)
    assert weight_of(0) == 0.5
