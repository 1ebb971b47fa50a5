"""Bias-robust weights estimate what least squares does, with less bias and noise together."""

from __future__ import annotations

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings
from hypothesis import strategies as st

from surepick.estimators.contrast_weights import bias_robust_weights


def batch_problem(seed: int, *, rows: int = 3, arms: int = 9, dim: int = 3):
    """Flows of weighted least squares for a few pairs, and everything that `bias_robust_weights` wants."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((arms, dim))
    counts, scales = rng.integers(1, 40, arms), rng.uniform(0.3, 2.0, arms)
    pairs = [rng.choice(arms, 2, replace=False) for _ in range(rows)]
    targets = np.zeros((rows, arms))
    for row, (rival, centre) in enumerate(pairs):
        targets[row, rival], targets[row, centre] = 1.0, -1.0
    shares = counts / scales**2
    matrix = (points * shares[:, None]).T @ points
    flows = (targets @ points) @ np.linalg.solve(matrix, points.T) * shares
    return flows, targets, points, counts, scales, rng.uniform(0.05, 2.0, rows)


@settings(max_examples=budget(40))
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.05, 1.0, 30.0]))
def test_bias_robust_weights_estimate_every_linear_function_as_before(seed, gamma):
    flows, targets, points, counts, scales, slack = batch_problem(seed)
    steady = bias_robust_weights(flows, targets, points, counts, scales, slack, misspecification=gamma)
    assert steady @ points == pytest.approx(flows @ points, abs=1e-9)
    assert steady @ points == pytest.approx(targets @ points, abs=1e-8)


@settings(max_examples=budget(60))
@given(st.integers(0, 10**6), st.sampled_from([1e-3, 0.05, 1.0, 30.0]))
def test_bias_robust_weights_have_no_more_bias_and_noise_together_than_least_squares(seed, gamma):
    """gamma sum |f - target| + room sqrt(D/D_ls) is at most that of least squares, gamma sum |f_ls - target| + room.

    The iteration lowers a smoothed bound whose price of noise changes at each step, so a thousandth may be missing.
    """
    flows, targets, points, counts, scales, slack = batch_problem(seed)
    steady = bias_robust_weights(flows, targets, points, counts, scales, slack, misspecification=gamma)
    noise = [(each**2) @ (scales**2 / counts) for each in (flows, steady)]
    bias = [gamma * np.abs(each - targets).sum(axis=1) for each in (flows, steady)]
    least, found = bias[0] + slack, bias[1] + slack * np.sqrt(noise[1] / noise[0])
    slack = gamma * 1e-3 * points.shape[0]  # LEAST_FLOW for each arm
    assert np.all(found <= least * (1.0 + 1e-3) + slack)
    assert np.all(noise[1] >= noise[0] * (1.0 - 1e-9))  # least squares has the least noise


def test_a_large_misspecification_moves_weight_to_the_arms_themselves():
    flows, targets, points, counts, scales, slack = batch_problem(1)
    steady = bias_robust_weights(flows, targets, points, counts, scales, slack, misspecification=100.0)
    assert np.abs(steady - targets).sum(axis=1) == pytest.approx(np.zeros(3), abs=0.05)
    tiny = bias_robust_weights(flows, targets, points, counts, scales, slack, misspecification=1e-9)
    assert tiny == pytest.approx(flows, abs=1e-4)


def test_bias_robust_weights_are_finite_for_duplicates_and_pairs_that_are_one_point():
    points = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    counts, scales = np.array([5, 3, 2, 9, 1]), np.ones(5)
    targets = np.array([[1.0, -1.0, 0.0, 0.0, 0.0], [-1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0, -1.0]])
    matrix = (points * counts[:, None]).T @ points
    flows = (targets @ points) @ np.linalg.solve(matrix, points.T) * counts
    assert not flows[0].any()
    steady = bias_robust_weights(flows, targets, points, counts, scales, np.full(3, 0.1), misspecification=0.05)
    assert np.all(np.isfinite(steady))
    assert steady @ points == pytest.approx(flows @ points, abs=1e-9)
