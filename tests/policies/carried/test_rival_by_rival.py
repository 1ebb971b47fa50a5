"""Few rivals are measured themselves, where a design for all directions has more arms than that takes pulls."""

from dataclasses import replace

import numpy as np
import pytest
from kernel_studies import smooth_means, told

import surepick as sp
from surepick.core.plans import Embedding
from surepick.core.random_streams import stream
from surepick.estimators.running_processes import ArmVectors, VectorProcesses
from surepick.linalg.factorisations import whitened
from surepick.policies import tuning
from surepick.policies.carried import planning as predictions, vectors_rule
from surepick.policies.sequential import first_designs
from surepick.policies.sequential.state import OpenComparisons

ARMS, DIM, EPSILON, SIGMA = 400, 30, 0.2, 0.1


def study_of(evidence: str, seed: int = 0) -> tuple[sp.Study, np.ndarray]:
    """A study with little noise, and its means."""
    features = stream(seed, "arms").standard_normal((ARMS, DIM)) / np.sqrt(DIM)
    slope = stream(seed, "slope").standard_normal(DIM)
    arms = sp.Arms(features)
    policy = sp.make_policy(
        "certified-linear",
        arms,
        epsilon=EPSILON,
        delta=0.05,
        noise=sp.SubGaussian(SIGMA),
        norm_bound=1.5,
        evidence=evidence,
    )
    return sp.Study(arms, policy), features @ (slope / np.linalg.norm(slope))


def played(study: sp.Study, means: np.ndarray, seed: int = 0) -> list:
    """The plans of the whole study."""
    rng, plans = stream(seed, "noise"), []
    while (plan := study.ask()) is not None:
        told(study, plan, means, SIGMA, rng)
        plans.append(plan)
    return plans


def few_arms(plan) -> bool:
    return np.count_nonzero(plan.counts) < DIM


def test_late_batches_have_fewer_arms_than_directions():
    some = 0
    for seed in range(2):
        study, means = study_of("carried", seed)
        plans = played(study, means, seed)
        answer = study.certificate()
        assert answer.verdict == "certified"
        assert means[answer.arm] >= means.max() - EPSILON
        for plan in filter(few_arms, plans):
            assert plan.counts[plan.candidate] > 0
            assert plan.lower_bound == 0.0
            some += 1
    assert some > 0


def test_it_takes_fewer_pulls(monkeypatch):
    def total(seed: int) -> int:
        study, means = study_of("carried", seed)
        return sum(plan.total for plan in played(study, means, seed))

    now = [total(seed) for seed in range(2)]
    monkeypatch.setattr(vectors_rule, "rivals_only", lambda vectors, processes, goal: None)
    assert sum(now) < sum(total(seed) for seed in range(2))


def last_state():
    """(policy, state, plan) of a batch that measures rivals themselves, the first of some studies."""
    for seed in range(8):
        study, means = study_of("carried", seed)
        rng = stream(seed, "noise")
        while (plan := study.ask()) is not None:
            if plan.candidate is not None and few_arms(plan):
                return study.policy, study.state, plan
            told(study, plan, means, SIGMA, rng)
    pytest.fail("no such batch")


def test_processes_that_such_a_batch_cannot_match_start_anew():
    policy, state, plan = last_state()
    planner = policy._planner
    vectors, processes = planner.situation.vectors(plan.dim), planner.situation.moved(state, plan.dim).vectors
    guess = planner.situation.guess(processes, state.seen)
    goal = planner.goal_for(state, guess, plan.candidate)
    rest = vectors_rule.rivals_only(vectors, processes, goal)
    anew = vectors_rule.restarts(vectors, processes, goal, plan.counts.astype(float))
    assert rest is not None
    assert set(rest.restarts) <= set(anew)
    kept = np.setdiff1d(goal.rivals, anew)
    measured = vectors.white[plan.counts > 0]
    for arm in kept:  # what stays is seen by the batch
        flow = processes.flows[arm]
        inside = measured.T @ np.linalg.lstsq(measured.T, flow, rcond=None)[0]
        assert np.linalg.norm(flow - inside) <= 1e-5 * np.linalg.norm(flow)


def test_another_candidate_is_not_looked_at_where_it_cannot_take_less(monkeypatch):
    policy, state, plan = last_state()
    found = policy._planner
    guess = policy._planner.situation.guess(state.processes, state.seen)
    goal = found.goal_for(state, guess, plan.candidate)
    monkeypatch.setattr(predictions.Planner, "rest_of", lambda *_: pytest.fail("a plan was made"))
    vectors = policy._planner.situation.vectors(plan.dim)
    assert found._effort(state, goal, vectors_rule.least_effort(vectors, goal)) == np.inf


def test_the_bias_of_a_candidate_and_its_rival_alone_is_none():
    policy, state, plan = last_state()
    planner, processes = policy._planner, state.vectors
    vectors = planner.situation.vectors(plan.dim)
    biased = replace(vectors, embedded=Embedding(vectors.embedded.features, 0.01))
    guess = planner.situation.guess(processes, state.seen)
    goal = planner.goal_for(state, guess, plan.candidate)
    one = replace(goal, rivals=goal.rivals[:1], margins=goal.margins[:1])
    counts = np.zeros(ARMS, np.int64)
    counts[[goal.candidate, goal.rivals[0]]] = 3
    alone, others = (
        vectors_rule.account_of(
            biased,
            processes,
            one,
            vectors_rule.Information.of(vectors_rule.Pulls.of(vectors.white, pulls, goal.noise_scales)),
        )
        for pulls in (counts, np.ones(ARMS, np.int64))
    )
    assert alone.bias[0] <= 1e-9 < 0.02 < others.bias[0]


def test_many_directions_and_arms_are_dear():
    features = np.zeros((tuning.HEURISTIC_MANY + 1, tuning.MANY_DIRECTIONS))
    assert first_designs.is_expensive(Embedding(features, 0.0))
    assert not first_designs.is_expensive(Embedding(features[1:], 0.0))
    assert first_designs.tolerance_of(Embedding(features, 0.0), 0.05) == first_designs.HEURISTIC_ROUGH


@pytest.mark.parametrize(("seeds", "num_arms"), [(1, 120), pytest.param(4, ARMS, marks=pytest.mark.slow)])
def test_a_batch_of_rivals_has_no_pulls_that_check_the_fit(seeds, num_arms):
    """With more arms than directions a difference would be fitted: with a bias that two arms alone have not."""
    some = 0
    for seed in range(seeds):
        places = stream(seed, "places").uniform(size=(num_arms, 4))
        arms = sp.Arms(places)
        centres, weights = stream(seed, "centres").uniform(size=(9, 4)), stream(seed, "weights").standard_normal(9)
        means = smooth_means("gaussian:.5", places, centres, weights)
        policy = sp.make_policy(
            "certified-kernel",
            arms,
            epsilon=EPSILON,
            delta=0.05,
            noise=sp.SubGaussian(SIGMA),
            norm_bound=1.0,
            kernel="gaussian:.5",
            evidence="carried",
        )
        study, rng = sp.Study(arms, policy), stream(seed, "noise")
        while (plan := study.ask()) is not None:
            counts = plan.counts
            if plan.candidate is not None and np.count_nonzero(counts) < plan.dim and plan.lower_bound == 0.0:
                assert counts[plan.candidate] > 0
                assert set(np.flatnonzero(counts)) <= {plan.candidate, *study.state.active}
                some += 1
            told(study, plan, means, SIGMA, rng)
        answer = study.certificate()
        assert answer.verdict == "certified"
        assert means[answer.arm] >= means.max() - EPSILON
    assert some > 0


def test_many_arms_of_few_directions_are_known_as_such(monkeypatch):
    """Copies of the candidate are many arms, and see no direction more than it."""
    features = stream(3, "arms").standard_normal((40, 6))
    features[1:8] = features[0]
    means, rng = features @ (np.ones(6) / np.sqrt(6.0)) / 3.0, stream(3, "noise")
    policy = sp.make_policy(
        "certified-linear", sp.Arms(features), epsilon=0.1, delta=0.05, noise=sp.SubGaussian(0.5), norm_bound=1.0
    )
    study = sp.Study(sp.Arms(features), policy)
    while (plan := study.ask()) is not None and not (study.state.vectors is not None and study.state.vectors.begun):
        counts = plan.counts
        study.tell_totals(study.ids, counts, counts * means + 0.5 * np.sqrt(counts) * rng.standard_normal(40))
    planner, state = policy._planner, study.state
    vectors = planner.situation.vectors(state.dim)
    goal = planner.goal_for(state, planner.situation.guess(state.vectors, state.seen), 0)
    rivals = goal.rivals[np.linalg.norm(vectors.white[goal.rivals] - vectors.white[0], axis=1) > 1e-6]
    goal = replace(goal, rivals=rivals[:1], margins=goal.margins[:1])
    pulls = np.zeros(40)
    pulls[[*range(8), rivals[0]]] = 1.0
    nobody = (np.zeros(1, bool), None, None, None)
    monkeypatch.setattr(vectors_rule, "fresh_starts", lambda *_: nobody)  # because of what it would cost
    assert len(vectors_rule.restarts(vectors, state.vectors, goal, pulls)) == 1
    assert len(vectors_rule.restarts(vectors, state.vectors, goal, pulls, whole=False)) == 0


def test_pulls_that_see_a_part_of_a_rival_would_take_for_ever():
    features = np.eye(4)
    white = whitened(features).basis
    vectors = ArmVectors.of(Embedding(features, 0.0), white, 1.0)
    processes = VectorProcesses.started(vectors, 0.0)
    goal = OpenComparisons(0, np.array([3]), np.array([0.5]), 0.5, 3.0, np.zeros(4), np.full(4, 0.3))
    two, all_four = np.array([0.5, 0.5, 0.0, 0.0]), np.full(4, 0.25)
    assert vectors_rule.pulls_by_direction(vectors, processes, goal, two) == np.inf
    assert vectors_rule.pulls_by_direction(vectors, processes, goal, all_four) < np.inf
    seen = vectors_rule.Information.of(vectors_rule.Pulls.of(white, two, goal.noise_scales))
    assert not seen.whole
    assert list(seen.misses(white)) == [False, False, True, True]
