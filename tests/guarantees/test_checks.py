"""The checks of the embedding: silent when the declared bound holds, loud when it does not."""

import math

import numpy as np
import pytest
from bounds import failures_allowed

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding
from surepick.estimators import lack_of_fit, least_squares, norm_contradicted

LEVEL, TRIALS = 0.05, 500


def batch(rng, *, deviation=0.0, norm=1.0, sigma=1.0):
    """One batch on 12 arms in 3 dimensions: means of norm `norm`, off by up to `deviation`."""
    features = rng.normal(size=(12, 3))
    theta = rng.normal(size=3)
    means = features @ (norm * theta / np.linalg.norm(theta)) + deviation * rng.choice([-1.0, 1.0], 12)
    counts = rng.integers(1, 40, 12)
    sums = counts * means + sigma * np.sqrt(counts) * rng.normal(size=12)
    return features, Observations(counts, sums)


def misfits(*, deviation: float, declared: float) -> int:
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(TRIALS):
        features, seen = batch(rng, deviation=deviation)
        fitted = least_squares(Embedding(features, declared), seen)
        found += bool(lack_of_fit(fitted, seen, misspecification=declared, sigma=1.0, level=LEVEL))
    return found


def contradictions(*, norm: float) -> int:
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(TRIALS):
        features, seen = batch(rng, norm=norm)
        embedded = Embedding(features, 0.0)
        found += bool(norm_contradicted(embedded, seen, norm_bound=1.0, sigma=1.0, level=LEVEL))
    return found


@pytest.mark.parametrize("deviation", [0.0, 0.5])
def test_the_fit_is_not_doubted_when_the_misspecification_is_declared(deviation):
    assert misfits(deviation=deviation, declared=deviation) <= failures_allowed(TRIALS, LEVEL)


def test_the_fit_is_doubted_when_misspecification_was_not_declared():
    assert misfits(deviation=1.5, declared=0.0) > TRIALS / 2


def test_the_norm_is_not_doubted_when_it_holds_with_equality():
    assert contradictions(norm=1.0) <= failures_allowed(TRIALS, LEVEL)


def test_the_norm_is_doubted_when_it_is_too_small():
    assert contradictions(norm=4.0) > TRIALS / 2


def honest_instances():
    yield sp.environments.two_clusters(num_arms=60, dim=10, reward="linear", seed=1), {"norm_bound": 0.9}
    yield sp.environments.two_clusters(num_arms=60, dim=10, perturbation=1e-3, seed=2), {"norm_bound": 0.9}
    yield sp.environments.sphere(20, 3, 3), {"norm_bound": 1.0, "epsilon": 0.3}
    rng = np.random.default_rng(4)
    features = np.concatenate([rng.normal(size=(30, 2)), 0.02 * rng.normal(size=(30, 4))], axis=1)
    theta = rng.normal(size=6)
    means = features @ (theta / np.linalg.norm(theta))
    arms = sp.Arms(features)
    yield (
        sp.environments.Environment(arms=arms, means=means, noise=sp.SubGaussian(0.5)),
        {"norm_bound": 1.0, "epsilon": 0.5},
    )


def still_certified(runs_each: int, seed: int = 0) -> tuple[int, int]:
    """(runs, certified ones) on instances whose declared bound holds, with equality or nearly so."""
    runs = certified = 0
    for environment, options in honest_instances():
        settings = {"epsilon": 0.1, "delta": 0.05, "noise": environment.noise} | options
        policy = sp.make_policy("linear-embedding", environment.arms, **settings)
        for number in range(runs_each):
            run = sp.simulate(policy, environment, seed=seed + number)
            runs, certified = runs + 1, certified + (run.verdict == "certified")
    return runs, certified


def test_honest_studies_stay_certified():
    runs, certified = still_certified(4)
    assert runs - certified <= failures_allowed(runs, 0.001)


@pytest.mark.slow
def test_a_thousand_honest_studies_stay_certified():
    runs, certified = still_certified(250)
    print(f"\n{certified} of {runs} honest studies stayed certified")
    assert certified >= 0.995 * runs


def test_the_level_is_spent_over_rounds_looks_and_checks():
    from surepick.policies.model_checks import FALSE_ALARM, check_level

    spent = sum(2 * 8 * check_level(k, 8) for k in range(1, 100_000))
    assert spent <= FALSE_ALARM
    assert math.isclose(spent, FALSE_ALARM, rel_tol=1e-4)


def test_nothing_is_checked_or_reserved_where_every_list_of_means_is_representable():
    environment = sp.environments.digits(0)
    policy = sp.make_policy(
        "linear-embedding", environment.arms, epsilon=0.1, delta=0.05, noise=environment.noise, norm_bound=2.0
    )
    run = sp.simulate(policy, environment)
    assert {row.dim for row in run.rounds} == {60}
    assert run.verdict == "certified"
    assert any("every list of means is representable" in sentence for sentence in run.certificate.assumptions)
    assert not any("norm" in sentence for sentence in run.certificate.assumptions)


def test_reserved_pulls_are_few_and_spread():
    from surepick.policies.model_checks import check_pulls

    features = np.random.default_rng(0).normal(size=(100, 4))
    embedding = sp.LinearEmbedding(features, norm_bound=1.0)
    counts = np.zeros(100, np.int64)
    counts[:2] = 100
    extra = check_pulls(embedding, 2, counts, 0.05)
    assert extra.sum() == 10
    assert extra.max() == 1
    assert not extra[:2].any()
