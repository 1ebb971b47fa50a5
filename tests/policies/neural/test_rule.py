"""Algorithm 2's counts, thresholds and rounds by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from algorithm_two import USUAL, network, rule
from together import of_each

import surepick as sp
from surepick.policies.paper.neural_elimination import CONSTANTS


def test_the_error_probabilities_by_hand():
    assert [rule().round_delta(k) for k in (1, 2, 3)] == pytest.approx([0.05 / 8, 0.05 / 32, 0.05 / 72])


@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-6])
def test_all_rounds_together_spend_less_than_a_quarter(delta):
    spent = sum(rule(delta=delta).round_delta(k) for k in range(1, 10_001))
    assert 0.2 * delta < spent < 0.21 * delta
    assert spent + delta / 8.0 / 10_000 < 0.21 * delta  # the tail: sum of 1/k^2 beyond n is at most 1/n


def test_the_thresholds_by_hand():
    """2^-k/8 + 3 epsilon/8."""
    assert [rule().threshold(k) for k in (1, 2, 4)] == pytest.approx([0.1, 0.06875, 0.0453125])
    assert rule(epsilon=0.4).threshold(1) == pytest.approx(0.0625 + 0.15)


@of_each(("epsilon", "rounds"), [(0.1, 4), (0.125, 3), (0.12, 4), (0.5, 1), (0.51, 1), (1.0, 1), (3.0, 1), (1e-3, 10)])
def test_the_number_of_rounds(epsilon, rounds):
    assert rule(epsilon=epsilon).num_rounds == rounds


LOG = math.log(250**2 / (0.05 / 8))  # of K^2 / delta_1


@of_each(
    ("constants", "noise", "expected"),
    [
        ("box", sp.SubGaussian(1.0), 4 * 1.1 * 7 * LOG),  # d = 7
        ("box", sp.Bernoulli(), 4 * 1.1 * 7 * LOG),
        ("paper", sp.SubGaussian(1.0), 4 * 1.1 * 4.0 * LOG),  # tau = 4
        ("paper", sp.SubGaussian(3.0), 4 * 1.1 * 4.0 * LOG),
        ("proof", sp.SubGaussian(1.0), 256 * 4 * 1.1 * 4.0 * LOG),
        ("proof", sp.Bernoulli(), 64 * 4 * 1.1 * 4.0 * LOG),
        ("derived", sp.SubGaussian(1.0), 2 * 1.1 * 4.0 * math.log(249 / (0.05 / 8)) / 0.1**2),
        ("derived", sp.Bernoulli(), 0.5 * 1.1 * 4.0 * math.log(249 / (0.05 / 8)) / 0.1**2),
    ],
)
def test_the_counts_of_round_1(constants, noise, expected):
    """K = 250, epsilon .1, delta .05, slack .1."""
    assert rule(constants=constants, noise=noise).pulls(1, dim=7, value=4.0) == math.ceil(expected)


@of_each(("constants", "pulls"), [("box", 497), ("paper", 284), ("proof", 72_622), ("derived", 9_322)])
def test_the_same_in_figures(constants, pulls):
    """284 is what the paper's figure shows for 250 arms."""
    assert rule(constants=constants).pulls(1, dim=7, value=4.0) == pulls


def test_the_counts_of_round_3():
    """64 times as many as 4^0, delta_3 = delta/72, threshold 1/64 + .0375."""
    log = math.log(250**2 * 72 / 0.05)
    assert rule().pulls(3, dim=2, value=4.0) == math.ceil(64 * 1.1 * 4.0 * log)
    derived = 2 * 1.1 * 4.0 * math.log(249 * 72 / 0.05) / (1 / 64 + 0.0375) ** 2
    assert rule(constants="derived").pulls(3, dim=2, value=4.0) == math.ceil(derived)


def test_misspecification_counts_for_derived_alone():
    gamma = 0.01
    shift = gamma * (2.0 + math.sqrt(1.1 * 4.0))
    expected = 2 * 1.1 * 4.0 * math.log(249 / (0.05 / 8)) / (0.1 - shift) ** 2
    assert rule(constants="derived", misspecification=gamma).pulls(1, dim=7, value=4.0) == math.ceil(expected)
    for constants in ("box", "paper", "proof"):
        with_error = rule(constants=constants, misspecification=gamma)
        assert with_error.pulls(1, dim=7, value=4.0) == rule(constants=constants).pulls(1, dim=7, value=4.0)


@pytest.mark.parametrize("gamma", [0.0245, 0.05, 1.0])
def test_misspecification_that_leaves_no_room_breaks_the_contract(gamma):
    """b_1 = 4.0976 gamma reaches t_1 = .1 at gamma = .0244; later thresholds are smaller."""
    with pytest.raises(
        sp.errors.ContractError, match=r"can move a difference of two arms by .*, and round 1 must resolve 0.1"
    ):
        rule(constants="derived", misspecification=gamma).pulls(1, dim=7, value=4.0)
    with pytest.raises(sp.errors.ContractError, match=r"round 4 must resolve 0\.0453"):
        rule(constants="derived", misspecification=0.0243).pulls(4, dim=7, value=4.0)
    assert rule(constants="derived", misspecification=0.0243).pulls(1, dim=7, value=4.0) > 10**7


@of_each("constants", CONSTANTS)
def test_at_least_one_pull_and_not_more_than_anybody_has(constants):
    assert rule(constants=constants).pulls(1, dim=1, value=0.0) == (71 if constants == "box" else 1)
    with pytest.raises(sp.errors.ContractError, match="this round would need"):
        rule(constants=constants).pulls(1, dim=10**16, value=1e16)


@of_each(
    ("changes", "message"),
    [
        ({"constants": "own"}, "constants is 'own'; choose one of 'box', 'paper', 'proof', 'derived'"),
        ({"floor": "low"}, "floor is 'low'; choose one of"),
        ({"misspecification": -0.1}, "misspecification is -0.1; it must be finite and not negative"),
        ({"misspecification": math.nan}, "misspecification is nan"),
        ({"slack": 0.0}, r"slack is 0.0; it must lie in \(0, 1\]"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"delta": 1.0}, "delta is 1.0"),
        ({"gap_bound": -1.0}, "gap_bound is -1.0"),
        ({"noise": sp.SubGaussian((1.0, 2.0))}, "2 scales for 250 arms"),
    ],
)
def test_settings_without_meaning_are_refused(changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        rule(**changes)


@of_each(
    ("changes", "message"),
    [
        ({"error_tolerance": 0.0}, "error_tolerance is 0.0; it must be positive"),
        ({"error_tolerance": math.nan}, "error_tolerance is nan"),
        ({"tolerance_scale": "mine"}, "tolerance_scale is 'mine'; choose one of 'paper', 'published', 'relative'"),
        ({"trainer": "sgd"}, "trainer is 'sgd'; choose one of"),
        ({"regularization": 0.0}, "regularization is 0.0; it must be positive"),
        ({"tolerance": 0.0}, "tolerance is 0.0; it must be positive"),
        ({"schedule": "convergent"}, "neural-embedding has no option 'schedule'; it knows architecture, constants, "),
        ({"union": "all"}, "neural-embedding has no option 'union'; it knows architecture, constants, "),
        ({"width": 15}, "width is 15; two equal halves need an even number"),
        ({"architecture": "round"}, "architecture is 'round'"),
    ],
)
def test_settings_of_the_network_without_meaning_are_refused(changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        network(np.eye(3), **changes)


def test_a_network_needs_features():
    with pytest.raises(sp.InvalidInput, match="the arms have no features, and a network needs some"):
        sp.make_policy("neural-embedding", sp.Arms(ids=["a", "b"]), **USUAL)
