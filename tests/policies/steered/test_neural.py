"""What certified-neural teaches its network, what it says, and that evidence goes on when the network learns anew."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from neural_studies import played, policy_of, smooth_world, told_some
from together import of_each

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Plan
from surepick.embeddings.network import ArmNetwork, Network
from surepick.estimators.network_training import plausible_regularization
from surepick.policies.steered.neural import HEURISTIC_LESSONS, UNDECLARED, in_whole_pulls
from surepick.policies.verdict import certificate_of

# --- words


def test_undeclared_misspecification_is_heuristic():
    world = smooth_world()
    policy = policy_of(world)
    states, _ = played(policy, world)
    answer = certificate_of(policy, states[-1])
    assert states[-1].finished == "certified"
    assert answer.verdict == "heuristic"
    assert UNDECLARED in answer.reason
    assert policy.traits.caveats
    assert "each off by at most 0.05" in answer.assumptions[0]


def test_a_declared_misspecification_is_an_assumption_with_its_number():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.0325)
    states, _ = played(policy, world)
    answer, state = certificate_of(policy, states[-1]), states[-1]
    assert answer.verdict == "certified"
    assert answer.assumptions[0].startswith(
        f"The means are linear in what the network learnt from the first {state.lesson.total:,} measurements and a "
        f"level, with a norm of at most {state.standing[0].norm:.4g} (the results suggest up to "
    )
    assert answer.assumptions[0].endswith("each off by at most 0.0325.")
    assert answer.certified_gap == max(one.gap for one in state.standing) <= 0.1
    assert policy.traits.caveats == ()


def test_a_declaration_that_the_batches_contradict_rings_an_alarm():
    world = smooth_world(num_arms=60)
    noisy = world.means + 0.2 * np.where(np.arange(60) % 2 == 0, 1.0, -1.0)
    world = sp.environments.Environment(arms=world.arms, means=noisy, noise=sp.SubGaussian(0.01))
    policy = policy_of(world, misspecification=0.0)
    state, rng = policy.init(), np.random.default_rng(1)
    for _ in range(2):
        plan = Plan(round=state.round, counts=np.full(60, 10))
        state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
    assert state.alarms
    assert certificate_of(policy, replace(state, finished="certified")).verdict != "certified"


def test_settings_of_the_certified_network_without_meaning_are_refused():
    world = smooth_world()
    for changes, message in (
        ({"misspecification": -0.1}, "misspecification is -0.1"),
        ({"misspecification": math.nan}, "misspecification is nan"),
        ({"dim": 0}, "dim is 0"),
        ({"vectors": "first-layer"}, "vectors is 'first-layer'"),
        ({"regularization": 0.0}, "regularization is 0.0"),
    ):
        with pytest.raises(sp.InvalidInput, match=message):
            policy_of(world, **changes)
    with pytest.raises(sp.InvalidInput, match="the arms have no features"):
        sp.make_policy("certified-neural", sp.Arms(ids=[*"abc"]), epsilon=0.1, delta=0.05, noise="bernoulli")


# --- what is learnt


def plausible(features, means, *, pulls: int = 20, sigma: float = 1.0) -> float:
    arms = ArmNetwork(features, Network(depth=2, width=256, architecture="standard"))
    counts = np.full(len(means), pulls)
    return plausible_regularization(arms, Observations(counts, counts * means), sigma=sigma)


def test_structure_is_trained_hard_and_noise_hardly():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((60, 3))
    signal = np.sin(features[:, 0]) + 0.5 * features[:, 1]
    noise = rng.standard_normal(60) / np.sqrt(20)
    clean, pure = plausible(features, signal - signal.mean()), plausible(features, noise)
    assert clean < 0.1 * pure
    assert clean == plausible(features, signal - signal.mean())
    assert plausible(features, 3.0 * (signal - signal.mean()), sigma=3.0) == pytest.approx(clean)  # no unit
    assert plausible(features, np.zeros(60)) > 0.0


def test_equal_means_are_no_reason_to_fail():
    assert math.isfinite(plausible(np.zeros((5, 2)), np.zeros(5)))


def test_what_is_learnt_is_a_function_of_the_past_and_the_seed():
    world = smooth_world()
    policy, seen = policy_of(world), told_some(world)
    first = policy.learn(seen)
    assert np.array_equal(first, policy_of(world).learn(seen))
    assert not np.array_equal(first, policy_of(world, seed=1).learn(seen))
    assert not np.array_equal(first, policy.learn(told_some(world, seed=1)))


@of_each("vectors", ["gradient", "last-layer"])
@of_each("pulls", [0, 3])
def test_the_vectors_are_orthogonal_of_mean_square_length_one_and_few(pulls, vectors):
    world = smooth_world()
    policy = policy_of(world, vectors=vectors)
    found = policy.learn(told_some(world, pulls) if pulls else Observations.nothing(40))
    assert 1 <= found.shape[1] <= 40 // 8
    assert np.mean(np.sum(found**2, axis=1)) == pytest.approx(1.0)
    gram = found.T @ found
    assert gram == pytest.approx(np.diag(np.diag(gram)), abs=1e-6)
    assert np.all(np.diff(np.diag(gram)) <= 1e-9)
    assert policy_of(world, vectors=vectors, dim=7).learn(Observations.nothing(40)).shape[1] == 7


@pytest.mark.parametrize("features", [np.zeros((6, 2)), np.ones((6, 2))])
def test_equal_features_teach_nothing_and_break_nothing(features):
    world = sp.environments.Environment(arms=sp.Arms(features), means=np.arange(6.0), noise=sp.SubGaussian(0.1))
    policy = policy_of(world, misspecification=5.0, epsilon=0.5)
    states, _ = played(policy, world, most=40)
    assert states[-1].finished == "certified"
    assert policy.claim(states[-1]).leader == 5


# --- evidence


def test_the_network_learns_anew_when_pulls_have_doubled_and_evidence_goes_on():
    world = smooth_world(sigma=0.2)
    policy = policy_of(world, misspecification=0.05)
    states, plans = played(policy, world)
    lessons = [state.lesson.total for state in states]
    for before, after in itertools.pairwise(states):
        if after.lesson is not before.lesson:
            assert after.lesson.total >= HEURISTIC_LESSONS * before.lesson.total
            assert after.lesson is after.seen
        assert len(after.told) >= len(before.told)
        assert after.told[: len(before.told)] == before.told  # nothing is weighed twice
    assert len(set(lessons)) >= 4
    assert len(states[-1].told) == sum(plan.candidate is not None for plan in plans)
    assert states[-1].told[0].batch.counts.sum() < states[-1].lesson.total  # from before the last lesson, and counts


def test_bets_are_functions_of_the_past_and_of_counts():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.05)
    states, plans = played(policy, world, most=3)
    assert states[-1].told
    for state, plan in zip(states[1:-1], plans[1:], strict=True):
        seen = world.pull(plan.counts, np.random.default_rng(5))
        one, two = (policy.bets(state, plan, each) for each in (seen, Observations(seen.counts, -3.0 * seen.sums)))
        assert np.array_equal(one.weights, two.weights)


def test_nothing_depends_on_what_is_remembered():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.03)
    states, plans = played(policy, world)
    states_anew, plans_anew = played(policy, world, forget=True)
    assert plans == plans_anew
    assert states == states_anew


def test_a_study_in_a_database_is_replayed_and_can_be_read_under_other_classes(sqlite_url, tmp_path):
    world, rng = smooth_world(num_arms=24), np.random.default_rng(4)
    study = sp.create_study(sqlite_url, "learnt", world.arms, policy_of(world, misspecification=0.05))
    study.run(lambda ids: [world.means[int(one)] + 0.05 * rng.normal() for one in ids], progress=False)
    again = sp.open_study(sqlite_url, "learnt")
    assert again.certificate() == study.certificate()
    assert again.state == study.state
    assert [str(one.assumption).partition(":")[0] for one in again.readings()] == ["linear", "smooth", "nothing"]
    sp.write_certificate(again, tmp_path / "learnt.json")
    verified = sp.verify_certificate(tmp_path / "learnt.json", assume=["smooth:length=2"])
    assert verified.readings[0].gap == again.read("smooth:length=2").gap


# --- where the network knows too little


def test_where_features_say_nothing_everybody_is_measured_and_then_the_arms_themselves():
    rng = np.random.default_rng(3)
    means = 0.6 * rng.random(60)
    world = sp.environments.Environment(
        arms=sp.Arms(rng.standard_normal((60, 8))), means=means, noise=sp.SubGaussian(0.05)
    )
    policy = policy_of(world, misspecification=0.3)
    states, plans = played(policy, world)
    looks = [plan for before, plan in zip(states, plans, strict=False) if plan.counts[before.seen.counts == 0].all()]
    assert looks
    assert states[-1].finished == "certified"
    assert means[states[-1].leader] >= means.max() - 0.1
    alone = sp.simulate(
        sp.make_policy("certified-independent", world.arms, epsilon=0.1, delta=0.05, noise=world.noise), world, seed=1
    )
    assert states[-1].pulls <= 2 * alone.pulls


def test_plans_are_of_the_fewest_arms_that_are_enough():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.05)
    states, _ = played(policy, world, most=2)
    steered = policy._steered(states[-1], states[-1].leader)
    wanted = policy._design(states[-1], states[-1].leader)[0]
    assert np.array_equal(wanted, np.round(wanted))
    assert steered.planned(wanted)[1].min() >= 0.0
    fewer = in_whole_pulls(steered, np.where(wanted > 0, wanted + 1.0, 0.0))
    assert np.count_nonzero(fewer) <= np.count_nonzero(wanted)
