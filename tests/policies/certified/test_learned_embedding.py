"""What the network is told, what it learns, and what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from neural_studies import played, policy_of, smooth_world, told_some

import surepick as sp
from surepick.core.observations import Observations
from surepick.embeddings.network import ArmNetwork, Network
from surepick.estimators.network_training import left_out, plausible_regularization, train
from surepick.policies.certified.neural import learn


def small_task(seed: int = 0, num_arms: int = 14) -> tuple[np.ndarray, Observations]:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_arms, 3))
    counts = rng.integers(0, 20, num_arms)
    counts[:3] = [0, 5, 1]
    noise = np.sqrt(counts) * rng.standard_normal(num_arms)
    return features, Observations(counts, counts * np.sin(features[:, 0]) + noise)


@pytest.mark.cases(2)
@pytest.mark.parametrize("architecture", ["standard", "published"])
@pytest.mark.parametrize("alpha", [0.3, 30.0])
def test_left_out_is_what_is_said_without_the_arm(architecture, alpha):
    """Each arm really left out of the least squares in the gradients at theta, around theta_0."""
    features, seen = small_task()
    arms = ArmNetwork(features, Network(depth=2, width=16, architecture=architecture))
    theta = train(arms, seen, regularization=alpha).weights
    found = left_out(arms, theta, seen, regularization=alpha)
    jacobian, outputs = arms.gradients(theta).numpy(), arms.outputs(theta).numpy()
    tangent = outputs - jacobian @ (theta - arms.start).numpy()  # at theta_0 + v: tangent + jacobian v
    for arm in range(14):
        if seen.counts[arm] == 0:
            assert found[arm] == outputs[arm]
            continue
        others = np.flatnonzero((seen.counts > 0) & (np.arange(14) != arm))
        kernel = jacobian[others] @ jacobian[others].T
        ridge = alpha * arms.penalty * np.diag(1.0 / seen.counts[others])
        shares = np.linalg.solve(kernel + ridge, seen.means[others] - tangent[others])
        expected = tangent[arm] + jacobian[arm] @ jacobian[others].T @ shares
        assert found[arm] == pytest.approx(expected, rel=1e-6, abs=1e-8)


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


def test_what_is_learnt_is_a_function_of_the_past():
    world = smooth_world()
    policy, seen = policy_of(world), told_some(world)
    first, again, other = learn(policy, seen), learn(policy_of(world), seen), learn(policy_of(world, seed=1), seen)
    for name in ("vectors", "scores", "errors"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
        assert not np.array_equal(getattr(first, name), getattr(other, name))
    assert first.doubt == again.doubt
    later = learn(policy, told_some(world, seed=1))
    assert not np.array_equal(first.vectors, later.vectors)


@pytest.mark.parametrize("vectors", ["gradient", "last-layer"])
@pytest.mark.parametrize("pulls", [0, 3])
def test_the_vectors_are_orthonormal_and_hold_the_constant_and_the_network(pulls, vectors):
    world = smooth_world()
    policy = policy_of(world, vectors=vectors)
    seen = told_some(world, pulls) if pulls else Observations.nothing(40)
    basis = learn(policy, seen).vectors
    assert basis.shape[1] <= 40 // 8 + 2
    assert basis.T @ basis == pytest.approx(40.0 * np.eye(basis.shape[1]), abs=1e-8)
    assert basis @ (basis.T @ np.ones(40)) / 40.0 == pytest.approx(np.ones(40), abs=1e-9)


def test_too_few_arms_for_an_embedding():
    world = smooth_world(num_arms=7)
    policy = policy_of(world, misspecification=0.01)
    assert learn(policy, told_some(world)).vectors is None
    run = sp.simulate(policy, world)
    assert {row.dim for row in run.rounds} == {7}
    assert run.verdict == "certified"
    assert policy.traits.assumptions[0] not in run.certificate.assumptions
    assert learn(policy_of(world, dim=5), told_some(world)).vectors is None
    assert learn(policy_of(world, dim=4), told_some(world)).vectors.shape[1] < 7


def test_nothing_depends_on_what_is_remembered():
    world = smooth_world()
    policy = policy_of(world, misspecification=0.03)
    states, plans = played(policy, world)
    states_anew, plans_anew = played(policy, world, forget=True)
    assert plans == plans_anew
    assert states == states_anew
    assert any(plan.dim < 40 and plan.candidate is not None for plan in plans)
    policy._cache._kept.clear()
    assert policy.ask(states[1]) == policy.ask(states[1]) == plans[1]
