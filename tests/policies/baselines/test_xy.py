"""XY-static and XY-adaptive: their counts, their phases and their greedy pulls."""

import math
from itertools import pairwise

import numpy as np
from linear_baselines import SEEDS, drawn, make, played, played_once
from together import of_each

import surepick as sp
from surepick.designs import design_value
from surepick.policies.verdict import certificate_of


def test_the_static_counts_depend_on_the_number_of_pulls_alone():
    features = np.random.default_rng(0).normal(size=(8, 3))
    policy = make("xy-static", features)
    one, other = (played(policy, features @ theta) for theta in (np.array([1.0, 0, 0]), np.array([0, 0.2, -0.3])))
    for left, right in zip(one, other, strict=False):
        assert np.array_equal(left.seen.counts, right.seen.counts)
    weights = one[-1].seen.counts / one[-1].pulls
    assert design_value(features, weights) <= 1.1 * sp.solve_design(features).value


def test_phases_get_more_exact_and_drop_arms():
    features = np.vstack([np.eye(3), [[0.95, 0.1, 0.0]]])
    policy = make("xy-adaptive", features, epsilon=0.001, stopping="phases")
    states = played(policy, features @ np.array([1.0, 0.0, 0.5]), most=2000)
    reached = [states[0].reached] + [late.reached for _, late in pairwise(states) if late.opened is None]
    assert len(reached) >= 3
    assert all(late <= 0.1 * early * (1 + 1e-9) for early, late in pairwise(reached))
    assert [len(state.active) for state in states][-1] == 1
    assert certificate_of(policy, states[-1]).verdict == "certified"
    assert all(state.seen.total == 0 for state in states if state.opened is None)  # each phase starts afresh


@of_each("seed", SEEDS)
def test_the_greedy_pull_leaves_the_smallest_width(seed):
    features, seen = drawn(seed)
    policy = make("lingape", features, growth=1e-9)
    state = played_once(policy, seen)
    inverse = np.linalg.inv(np.eye(3) + features.T @ np.diag(seen.counts) @ features)
    scores = features @ inverse @ features.T @ seen.sums
    leader = int(np.argmax(scores))
    log_growth = -np.linalg.slogdet(inverse)[1]
    multiplier = 0.5 * math.sqrt(2 * math.log(49 / 0.05) + log_growth) + 2.0
    upper = [
        scores[arm]
        - scores[leader]
        + multiplier * math.sqrt((features[arm] - features[leader]) @ inverse @ (features[arm] - features[leader]))
        if arm != leader
        else -math.inf
        for arm in range(7)
    ]
    away = features[leader] - features[int(np.argmax(upper))]
    widths = [away @ np.linalg.inv(np.linalg.inv(inverse) + np.outer(x, x)) @ away for x in features]
    assert np.flatnonzero(policy.ask(state).counts).tolist() == [int(np.argmin(widths))]


def test_phases_end_when_only_equal_features_are_left():
    features = np.vstack([np.eye(3), np.eye(3)[:1]])
    policy = make("xy-adaptive", features, stopping="phases")
    end = played(policy, features[:, 0])[-1]
    answer = certificate_of(policy, end)
    assert (answer.verdict, answer.certified_gap, end.active.tolist()) == ("certified", 0.0, [0, 3])
    alike = make("xy-adaptive", np.ones((3, 2)), stopping="phases")
    assert certificate_of(alike, played(alike, np.zeros(3))[-1]).certified_gap == 0.0
