"""LinGame: what nature answers, the regret of the learner, and the tracking of its weights."""

import numpy as np
import pytest
from linear_baselines import SEEDS, drawn
from together import of_each

import surepick as sp
from surepick_bench.policies.lingame import Learner, hedged, nearest_contradiction, taught, tracked


@of_each("seed", SEEDS)
def test_nature_answers_with_the_closest_contradiction(seed):
    features, _ = drawn(seed)
    theta = np.random.default_rng(seed + 100).normal(size=3)
    weights = np.random.default_rng(seed + 200).dirichlet(np.ones(7))
    scores, matrix = features @ theta, features.T @ np.diag(weights) @ features
    answer = nearest_contradiction(features, scores, weights, epsilon=0.1)
    change = np.linalg.lstsq(features, answer, rcond=None)[0]  # theta - lambda
    leader = int(np.argmax(scores))
    assert np.max((features - features[leader]) @ (theta - change)) == pytest.approx(0.1, abs=1e-3)
    inverse = np.linalg.inv(matrix)
    costs = [
        (scores[leader] - scores[arm] + 0.1) ** 2 / ((x - features[leader]) @ inverse @ (x - features[leader]))
        for arm, x in enumerate(features)
        if arm != leader
    ]
    assert change @ matrix @ change == pytest.approx(min(costs), rel=1e-3)


def test_nature_has_no_answer_where_all_arms_are_equal():
    assert not nearest_contradiction(np.ones((3, 1)), np.ones(3), np.full(3, 1 / 3), epsilon=0.1).any()
    assert not nearest_contradiction(np.ones((3, 0)), np.zeros(3), np.full(3, 1 / 3), epsilon=0.1).any()


@pytest.mark.cases(3)
@pytest.mark.parametrize("seed", range(1, 6))
def test_the_game_keeps_its_regret_bound(seed):
    """f(average weights) >= max f - 2 mixability / turns: AdaHedge's regret against nature's best answers."""
    turns = 2000
    features = np.random.default_rng(seed).normal(size=(7, 3))
    scores = features @ np.random.default_rng(seed + 1).normal(size=3)
    leader, learner = int(np.argmax(scores)), Learner(np.zeros(7), np.zeros(7), 0.0)
    for _ in range(turns):
        weights = hedged(learner)
        assert weights.sum() == pytest.approx(1.0)
        gains = nearest_contradiction(features, scores, weights, epsilon=0.1) ** 2
        learner = taught(learner, weights, -gains, 1)
    scales = scores[leader] - scores + 0.1
    best = 1.0 / sp.designs.solve_star_design(features, leader, scales).value
    inverse = np.linalg.inv(features.T @ np.diag(learner.weights / turns) @ features)
    away = (features - features[leader]) / scales[:, None]
    reached = 1.0 / np.max(np.einsum("ij,jk,ik->i", away, inverse, away))
    assert reached >= best - 2.0 * learner.mixability / turns - 1e-4 * best
    assert reached >= 0.9 * best  # what the bound comes to on these instances


def test_a_single_loss_moves_the_learner_away():
    learner = taught(Learner(np.zeros(2), np.zeros(2), 0.0), np.array([0.5, 0.5]), np.array([1.0, 0.0]), 1)
    assert learner.mixability == pytest.approx(0.5)
    assert hedged(learner)[1] > 0.5
    assert learner.weights.tolist() == [0.5, 0.5]


@of_each("seed", SEEDS)
def test_tracking_asks_for_exactly_the_batch_and_for_what_lags(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(20, size=6)
    weights = rng.dirichlet(np.ones(6)) * (counts.sum() + 13)
    pulls = tracked(weights, counts, 13)
    assert pulls.sum() == 13
    assert not pulls[weights <= counts].any()
    assert tracked(np.zeros(4), np.zeros(4, np.int64), 2).sum() == 2
