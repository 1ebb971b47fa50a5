"""An embedding whose bias eats much of epsilon is read: it ends where carried evidence does not, and keeps delta."""

from __future__ import annotations

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice
from certified_studies import HIDING, GivenVectors

import surepick as sp
from surepick.assumptions.records import Near
from surepick.core.plans import Plan
from surepick.policies.steered.embedded import CertifiedEmbedding

DELTA = 0.1
FEW = trials_to_notice(DELTA, 0.9)


def biased(seed: int = 2):
    """(an environment linear in falling directions, the options that keep five of eight of them)."""
    rng = np.random.default_rng(seed)
    features, theta = rng.normal(size=(60, 8)) * np.arange(1, 9) ** -1.0, rng.normal(size=8)
    means = features @ theta / np.linalg.norm(theta)
    world = sp.environments.Environment(arms=sp.Arms(features), means=means, noise=sp.SubGaussian(0.5))
    return world, {"epsilon": 0.2, "delta": 0.05, "noise": world.noise, "norm_bound": 1.0, "dim": 5}


def test_it_ends_where_carried_evidence_has_no_room():
    world, options = biased()
    policy = sp.make_policy("certified-linear", world.arms, **options)
    assert type(policy) is CertifiedEmbedding
    found = sp.simulate(policy, world, seed=0)
    assert (found.verdict, found.right) == ("certified", True)
    assert set(policy.traits.assumptions) <= set(found.certificate.assumptions)
    carried = sp.make_policy("certified-linear", world.arms, evidence="carried", **options)
    assert sp.simulate(carried, world, seed=0, max_pulls=3 * found.pulls).verdict != "certified"


def test_it_is_replayed_and_reads_like_its_class():
    world, options = biased()
    policy, rng = sp.make_policy("certified-linear", world.arms, **options), np.random.default_rng(1)
    study = sp.Study(policy)
    study.run(lambda ids: [world.means[int(one)] + 0.5 * rng.normal() for one in ids], progress=False)
    class_read = policy.read_under(study.state.standing[0])
    assert isinstance(class_read, Near)
    assert class_read.gamma == policy.gamma > 0.2
    assert study.state.standing[0].norm == 1.0


def test_an_embedding_without_a_norm_bound_or_vectors_is_refused():
    problem = sp.Problem(4, 1.0, 0.1, sp.SubGaussian(1.0))
    for embedding in (sp.IndependentEmbedding(4), GivenVectors(HIDING, 0.1, norm_bound=None)):
        with pytest.raises(sp.InvalidInput, match="vectors and a norm bound"):
            CertifiedEmbedding(problem, embedding=embedding)


# --- the best arm hidden by misspecification at its bound


def hidden(gamma: float, sigma: float):
    """No batch pulls the best arm, and the features, wrong by gamma at every arm, make it look worse than it is."""
    theta = np.array([(2.0 * gamma - 1.02) / 0.7, 0.0])
    means = HIDING @ theta + gamma * np.array([-1.0, -1.0, 1.0, -1.0])
    return sp.environments.Environment(arms=sp.Arms(HIDING), means=means, noise=sp.SubGaussian(sigma))


def fooled(runs: int, gamma: float, declared: float) -> int:
    """Studies that are certified for an arm that is not epsilon-best."""
    world, wrong = hidden(gamma, 0.3), 0
    embedding = GivenVectors(HIDING, declared, norm_bound=2.0)
    policy = CertifiedEmbedding(sp.Problem(4, 1.0, DELTA, world.noise), embedding=embedding)
    for seed in range(runs):
        rng, state = np.random.default_rng([seed, 9]), policy.init()
        for _ in range(4):
            candidate = None if state.round == 1 else 0
            plan = Plan(round=state.round, counts=np.array([8, 8, 0, 0]), candidate=candidate)
            state = policy.tell(state, plan, world.pull(plan.counts, rng)).state
            if state.finished:
                break
        wrong += state.finished == "certified" and not world.is_epsilon_best(state.leader, 1.0)
    return wrong


def test_a_bias_at_its_bound_keeps_delta_and_one_that_is_left_out_is_noticed():
    honest, omitted = fooled(FEW, 0.75, 0.75), fooled(FEW, 0.75, 0.0)
    print(f"\n{honest} honest and {omitted} without the bias of {FEW}; {failures_allowed(FEW, DELTA)} allowed")
    assert honest <= failures_allowed(FEW, DELTA) < omitted
