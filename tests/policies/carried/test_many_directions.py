"""Many directions: one design a round, and predictions that count what misspecification has taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from budgets import few_and_all
from kernel_studies import smooth_means, told

import surepick as sp
from surepick.core.random_streams import stream
from surepick.designs import star
from surepick.policies import tuning
from surepick.policies.carried import vectors_rule

ARMS, EPSILON, SIGMA = 400, 0.4, 0.3


def study_of(
    seed: int, evidence: str, kernel: str = "gaussian:.25", num_arms: int = ARMS
) -> tuple[sp.Study, np.ndarray]:
    """A study with a kernel, and its means: a function of norm 1."""
    rng = stream(seed, "many directions")
    places, centres, weights = rng.uniform(size=(num_arms, 5)), rng.uniform(size=(20, 5)), rng.standard_normal(20)
    means = smooth_means(kernel, places, centres, weights)
    arms = sp.Arms(places)
    policy = sp.make_policy(
        "certified-kernel",
        arms,
        epsilon=EPSILON,
        delta=0.05,
        noise=sp.SubGaussian(SIGMA),
        norm_bound=1.0,
        kernel=kernel,
        evidence=evidence,
    )
    return sp.Study(arms, policy), means


@pytest.fixture
def all_dear(monkeypatch):
    """As if 50 arms were many."""
    monkeypatch.setattr(tuning, "HEURISTIC_MANY", 50)


@pytest.mark.usefixtures("all_dear")
@pytest.mark.parametrize("kernel", ["gaussian:.25", pytest.param("gaussian:.5", marks=pytest.mark.slow)])
@few_and_all("seeds", 1, 3)
def test_at_most_one_design_in_many_directions_is_solved_a_round(kernel, seeds, monkeypatch):
    solved, usual, most = [], star.solved, 0

    def counted(problem, **options):
        solved.append(problem.rank)
        return usual(problem, **options)

    monkeypatch.setattr(star, "solved", counted)
    for seed in range(seeds):
        study, means = study_of(seed, "carried", kernel)
        rng, rounds, most_rounds = stream(seed, "noise"), 0, 4 * seeds
        while (plan := study.ask()) is not None and rounds < most_rounds:
            many = sum(rank >= tuning.MANY_DIRECTIONS for rank in solved)
            assert many <= 1, (rounds, solved)
            most, rounds = max(most, many), rounds + 1
            solved.clear()
            told(study, plan, means, SIGMA, rng)
    assert most == 1


@pytest.mark.parametrize(("seeds", "num_arms"), [(1, 100), pytest.param(3, ARMS, marks=pytest.mark.slow)])
def test_needs_count_what_misspecification_has_taken(seeds, num_arms):
    """An open rival whose flow is matched lacks evidence: else its bound would have rejected it."""
    counted, forgotten = [], []
    for seed in range(seeds):
        study, means = study_of(seed, "carried", num_arms=num_arms)
        rng = stream(seed, "noise")
        while (plan := study.ask()) is not None:
            if plan.candidate is not None and study.state.vectors is not None and study.state.vectors.begun:
                counted.extend(matched_needs(study, plan))
                forgotten.extend(matched_needs(study, plan, misspecification=0.0))
            told(study, plan, means, SIGMA, rng)
    assert len(counted) > 50
    assert min(counted) >= -1e-6
    assert min(forgotten) < -0.1


def matched_needs(study: sp.Study, plan: sp.Plan, **changed: float) -> list[float]:
    """What rivals lack whose flows are along their differences."""
    planner, state = study.policy._planner, study.state
    vectors, processes = planner.situation.vectors(plan.dim), planner.situation.moved(state, plan.dim).vectors
    guess = planner.situation.guess(processes, state.seen)
    goal = planner.goal_for(state, guess, plan.candidate)
    sight = vectors_rule.Information.of(vectors_rule.Pulls.of(vectors.white, state.seen.counts, goal.noise_scales))
    vectors = replace(vectors, embedded=replace(vectors.embedded, **changed))
    account = vectors_rule.account_of(vectors, processes, goal, sight)
    lengths = np.linalg.norm(processes.flows[goal.rivals], axis=1)
    matched = (np.linalg.norm(account.left, axis=1) <= 1e-9 * lengths) & (lengths > 0.0)
    return list(account.needs[matched])
