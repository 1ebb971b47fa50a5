"""The theorem on Algorithm 2 in numbers: the norm of the rewards and the choice of the parameters."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tangent_kernels import random_gram, unit_rows
from together import of_each

import surepick as sp
from surepick_bench.theory.neural import proof_parameters, reward_norm, rounding_floor, theorem_parameters
from surepick_bench.theory.spectra import neural_gram, spectrum_effective_dimension

SMALL = {"reward_norm": 2.0, "epsilon": 0.25, "delta": 0.08, "slack": 0.25, "depth": 2, "width": 10}


# --- the norm of the rewards


def test_the_norm_of_rewards():
    assert reward_norm(np.eye(3), [1.0, 2.0, 2.0]) == pytest.approx(3.0)
    assert reward_norm(4 * np.eye(2), [3.0, 4.0]) == pytest.approx(2.5)
    assert reward_norm(np.eye(2), [0.0, 0.0]) == 0.0
    assert reward_norm(np.ones((2, 2)), [1.0, 1.0]) == pytest.approx(1.0)
    assert reward_norm(np.ones((2, 2)), [1.0, 0.9]) == math.inf
    assert reward_norm(np.ones((2, 2)), [1.0, 1.0 + 1e-6], range_tolerance=1e-5) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_norm_of_rewards_against_an_explicit_inverse(seed):
    gram = random_gram(6, 6, seed) + 0.1 * np.eye(6)
    means = np.random.default_rng(seed + 100).standard_normal(6)
    assert reward_norm(gram, means) == pytest.approx(math.sqrt(means @ np.linalg.inv(gram) @ means))
    weights = np.random.default_rng(seed).standard_normal(6)
    low = random_gram(6, 3, seed)
    assert reward_norm(low, low @ weights) == pytest.approx(math.sqrt(weights @ low @ weights))
    assert reward_norm(low, means) == math.inf


def test_the_norm_is_at_most_the_remark_s_bound():
    gram = neural_gram(unit_rows((12, 5)))
    means = np.random.default_rng(3).uniform(-1, 1, 12)
    assert reward_norm(gram, means) <= math.sqrt(12 / np.linalg.eigvalsh(gram)[0])


def test_means_that_do_not_fit():
    with pytest.raises(sp.InvalidInput, match="means have shape"):
        reward_norm(np.eye(3), [1.0, 2.0])
    with pytest.raises(sp.InvalidInput, match="give a gram matrix"):
        reward_norm([1.0, 2.0], [1.0, 2.0])


# --- the parameters


def test_rounding_floors():
    assert rounding_floor(1, 0.25) == 16
    assert rounding_floor(2, 0.25) == 32
    assert rounding_floor(2000, 0.1) == 180 * 2000 * 100  # the other procedure is cheaper


def test_the_printed_choice_by_hand():
    """K = 2, S = 2: log(K^2)/S = log(4)/2; log(K^2/delta_2) = log(4/.0025); E = min(first, second, third)."""
    found = theorem_parameters([1.5, 0.5], **SMALL)
    alpha = math.log(4.0) / 2.0
    assert found.regularisation == pytest.approx(alpha) == pytest.approx(0.693147, rel=1e-6)
    first, second = alpha**2 / (32**2 * 2), 0.0625 / (1.25 * 2 * 2)
    third = 0.25**7 * alpha**3 / (1.25**3 * 2**3 * math.log(1600.0) ** 3 * 4)
    assert found.truncation**2 == pytest.approx(min(first, second, third)) == pytest.approx(third)
    assert (found.effective_dimension, found.tail, found.source) == (2, 0.0, "published")
    assert [one.delta for one in found.rounds] == [pytest.approx(0.01), pytest.approx(0.0025)]
    assert [one.pulls for one in found.rounds] == [60, 296]  # 4 * 2.5 * log(400) = 59.9, 16 * 2.5 * log(1600) = 295.1
    assert found.pulls == 356
    one = found.rounds[0]
    assert one.step_size == pytest.approx(1.0 / (10 * alpha + 60 * 10 * 2))
    assert one.printed_steps == pytest.approx(math.log(0.0625 * alpha / 120) / (one.step_size * 20))
    assert one.printed_steps < 0
    width = 2**6 * 2**16 * math.log(4 * 2 / 0.08) / found.truncation**8
    assert found.log10_least_width == pytest.approx(math.log10(width))


def test_the_proof_s_choice_by_hand():
    """alpha = (3 - 2 sqrt 2) log(400) / 4; A = 2 because the tail .5 beyond 1 is far above eps-bar^2/4."""
    found = proof_parameters([1.5, 0.5], **SMALL)
    alpha = (3 - 2 * math.sqrt(2)) * math.log(400.0) / 4
    assert found.regularisation == pytest.approx(alpha)
    pulls = [1024 * 4 * 1.25 * 2 * math.log(400.0), 1024 * 16 * 1.25 * 2 * math.log(1600.0)]
    assert [one.pulls for one in found.rounds] == [math.ceil(number) for number in pulls]
    last, constant = found.rounds[-1].pulls, 1 / 16
    bounds = [
        0.0625 / (4096 * 1.25 * 2 * 4),
        alpha**2 / (4 * last**2 * 2),
        0.25 * alpha**3 / (96 * constant * last**3 * 4),
    ]
    assert found.truncation**2 == pytest.approx(min(bounds)) == pytest.approx(bounds[2])
    assert found.unmet == ()
    ideal = proof_parameters([1.5, 0.5], constant_2=math.inf, **SMALL)
    assert ideal.truncation**2 == pytest.approx(bounds[0])
    assert ideal.unmet == ()
    assert [one.steps for one in ideal.rounds] == [0, 0]


def test_what_the_printed_choice_violates():
    found = theorem_parameters([1.5, 0.5], **SMALL)
    what = [sentence.split(",")[0].split(":")[0] for sentence in found.unmet]
    assert what == ["noise", "alpha", "gradient descent", "cutting the embedding off"]
    noise = 2 * math.sqrt(1.25 * 2 / 60) * (math.sqrt(2 * math.log(400.0)) + math.sqrt(2 * found.regularisation) * 2)
    assert f"{noise:.3g}, and the proof allows 2^-k/8 = 0.0625" in found.unmet[0]
    close = theorem_parameters([1.0, 1.0], reward_norm=1.4, epsilon=0.99, delta=0.05, slack=0.1, depth=2, width=9)
    assert any(sentence.startswith("misspecification") for sentence in close.unmet)


@of_each("seed", range(25))
def test_the_proof_s_choice_meets_every_inequality_and_the_printed_one_never_does(seed):
    rng = np.random.default_rng(seed)
    values = 10.0 ** rng.uniform(-16, 1, int(rng.integers(2, 40)))
    setting = {
        "reward_norm": float(10.0 ** rng.uniform(-1, 1.5)),
        "epsilon": float(10.0 ** rng.uniform(-2.5, -0.05)),
        "delta": float(rng.uniform(0.001, 0.9)),
        "slack": float(rng.choice([0.05, 0.25, 1.0])),
        "depth": int(rng.integers(2, 6)),
        "width": 1000,
    }
    for constant in (0.01, 1.0, math.inf):
        found = proof_parameters(values, sigma=float(rng.choice([0.1, 1.0, 3.0])), constant_2=constant, **setting)
        assert found.unmet == ()
        assert sum(one.delta for one in found.rounds) <= 0.21 * setting["delta"]
        assert found.tail <= found.truncation**2 / (2 * len(values))
    assert any(sentence.startswith("noise") for sentence in theorem_parameters(values, **setting).unmet)


@pytest.mark.cases(5)
@pytest.mark.parametrize("seed", range(10))
def test_the_truncation_is_the_largest_that_satisfies_the_fixed_point(seed):
    """By brute force over eps-bar, for the idealised network: eps-bar^2 d_eff(eps-bar^2/(2K)) <= constant."""
    rng = np.random.default_rng(seed)
    values = np.sort(10.0 ** rng.uniform(-9, -4, 12))[::-1]
    found = proof_parameters(values, constant_2=math.inf, **SMALL)
    constant = 0.0625 / (4096 * 1.25 * 4)

    def allowed(squared):
        return squared * spectrum_effective_dimension(values, squared / 24) <= constant * (1 + 1e-12)

    grid = found.truncation**2 * 10.0 ** np.linspace(-3, 3, 4001)
    assert allowed(found.truncation**2)
    assert not any(allowed(squared) for squared in grid if squared > found.truncation**2 * (1 + 1e-9))
    assert found.effective_dimension == spectrum_effective_dimension(values, found.truncation**2 / 24)


def test_the_dimension_can_be_below_the_number_of_arms():
    values = [5.0, 1.0, *[1e-60] * 8]
    for found in (theorem_parameters(values, **SMALL), proof_parameters(values, **SMALL)):
        assert found.effective_dimension == 2
        assert found.tail == pytest.approx(8e-60)


def test_the_steps_are_just_enough():
    found = proof_parameters([1.5, 0.5], **SMALL)
    for one in found.rounds:
        rate = 1 - one.step_size * 10 * found.regularisation
        start = math.sqrt(one.pulls * 2 / found.regularisation)
        allowed = 0.25  # epsilon / (16 C) with C = 1/16
        assert rate ** (one.steps / 2) * start <= allowed < rate ** ((one.steps - 1) / 2) * start
        assert one.steps * found.regularisation / 2 == pytest.approx(abs(one.printed_steps), rel=1e-3)  # L = 2


def test_the_width_changes_only_the_step_size():
    narrow, wide = (theorem_parameters([1.5, 0.5], **SMALL | {"width": m}) for m in (10, 1000))
    assert narrow.rounds[0].step_size == pytest.approx(100 * wide.rounds[0].step_size)
    assert narrow.rounds[0].steps == wide.rounds[0].steps
    assert narrow.truncation == wide.truncation


def test_noise_costs_its_square():
    pulls = [proof_parameters([1.0, 1.0], sigma=sigma, **SMALL).rounds[-1].pulls for sigma in (1.0, 3.0)]
    assert pulls[1] == pytest.approx(9 * pulls[0], rel=1e-5)


def test_a_better_answer_costs_more_and_never_fewer_dimensions():
    values = 10.0 ** np.linspace(0, -30, 20)
    for choice in (theorem_parameters, proof_parameters):
        chosen = [choice(values, **SMALL | {"epsilon": epsilon}) for epsilon in (0.9, 0.5, 0.2, 0.05, 0.01)]
        assert all(a.pulls <= b.pulls for a, b in itertools.pairwise(chosen))
        assert all(a.effective_dimension <= b.effective_dimension for a, b in itertools.pairwise(chosen))
        assert chosen[0].effective_dimension < chosen[-1].effective_dimension
        assert chosen[0].pulls < chosen[-1].pulls


def test_a_large_epsilon_has_one_round_in_the_proof_and_none_in_print():
    assert len(proof_parameters([1.0, 1.0], **SMALL | {"epsilon": 3.0}).rounds) == 1
    with pytest.raises(sp.InvalidInput, match="is then 0, no round"):
        theorem_parameters([1.0, 1.0], **SMALL | {"epsilon": 1.0})


@of_each("choice", [theorem_parameters, proof_parameters])
@of_each(
    ("setting", "message"),
    [
        ({"reward_norm": math.inf}, "reward_norm is inf"),
        ({"reward_norm": 0.0}, "reward_norm is 0"),
        ({"epsilon": 0.0}, "epsilon is 0"),
        ({"delta": 1.0}, "delta is 1"),
        ({"slack": 0.0}, "slack is 0"),
        ({"depth": 1}, "depth is 1"),
        ({"width": 0}, "width is 0"),
        ({"constant_1": -1.0}, "constant_1 is -1"),
        ({"constant_1": 1e9}, "steps of 1 or more"),
        ({"constant_2": 0.0}, "constant_2 is 0"),
        ({"constant_2": math.nan}, "constant_2 is nan"),
    ],
)
def test_settings_without_a_meaning(choice, setting, message):
    with pytest.raises(sp.InvalidInput, match=message):
        choice([1.5, 0.5], **SMALL | setting)


def test_other_settings_without_a_meaning():
    with pytest.raises(sp.InvalidInput, match="the number of arms is 1"):
        theorem_parameters([1.0], **SMALL)
    with pytest.raises(sp.InvalidInput, match="constant_2 is inf"):
        theorem_parameters([1.0, 1.0], constant_2=math.inf, **SMALL)
    with pytest.raises(sp.InvalidInput, match="sigma is -1"):
        proof_parameters([1.0, 1.0], sigma=-1, **SMALL)
