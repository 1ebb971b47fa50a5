"""Evidence that a mean is not above a number: its expectation under the hypothesis is at most 1, by enumeration."""

import itertools
import math

import numpy as np
import pytest
from budgets import budget
from evidence_cases import EPSILON, past
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import IndependentArms
from surepick.estimators import NoiseMgf, batch_evidence, noise_mgf_after, with_squares
from surepick.estimators.e_values import GENEROUS, number_evidence


def expectations(counts, means, bounds, *, margins, told, sign=1.0, needs=None, squared=True) -> np.ndarray:
    """E exp(gain) of each arm over all 0/1 outcomes of its pulls, told with their sign or negated."""
    noise_mgf, noise = noise_mgf_after(sp.Bernoulli(), told), sp.Bernoulli()
    scales, totals = noise_mgf.noise_scales(EPSILON), np.zeros(len(counts))
    for arm, (count, mean) in enumerate(zip(counts, means, strict=True)):
        for ones in range(count + 1):
            sums = np.where(np.arange(len(counts)) == arm, float(ones), 0.0)
            seen = with_squares(noise, Observations(counts, sign * sums, sums if squared else None))
            gains = number_evidence(seen, float(bounds[arm]), margins, noise_mgf, scales, needs)
            totals[arm] += math.comb(count, ones) * mean**ones * (1.0 - mean) ** (count - ones) * math.exp(gains[arm])
    return totals


def case(seed: int):
    """Counts, means that are at the bounds or above, and guesses of all kinds."""
    rng = np.random.default_rng(seed)
    num_arms = int(rng.integers(1, 4))
    means = rng.uniform(size=num_arms)
    bounds = means - rng.choice([0.0, 0.0, 0.1], num_arms)
    given_to = {
        "margins": np.exp(rng.normal(-1.0, 1.0, num_arms)) * (rng.random(num_arms) < 0.9),
        "told": past(rng, num_arms),
        "needs": rng.normal(2.0, 3.0, num_arms) if rng.random() < 0.5 else None,
        "squared": bool(rng.random() < 0.5),
    }
    return rng.integers(0, 12, num_arms), means, bounds, given_to


@settings(max_examples=budget(150))
@given(st.integers(0, 10**6))
def test_against_a_true_hypothesis_its_expectation_is_at_most_one(seed):
    counts, means, bounds, given_to = case(seed)
    assert np.all(expectations(counts, means, bounds, **given_to) <= 1.0 + 1e-9)


@settings(max_examples=budget(100))
@given(st.integers(0, 10**6))
def test_the_same_of_negated_rewards(seed):
    """As for "its mean is below a number": -h is above -bound."""
    counts, means, bounds, given_to = case(seed)
    told = given_to["told"]
    given_to["told"] = Observations(told.counts, -told.sums, told.squares)
    above = -(2.0 * means - bounds)  # -h is at these, or above
    assert np.all(expectations(counts, means, above, sign=-1.0, **given_to) <= 1.0 + 1e-9)


def test_the_enumeration_is_not_vacuous(monkeypatch):
    """Most cases bet, and a tenth of the allowance is noticed in many of them."""
    honest = [expectations(*case(seed)[:3], **case(seed)[3]) for seed in range(80)]
    assert sum(np.any(means != 1.0) for means in honest) >= 40
    whole = NoiseMgf.total
    monkeypatch.setattr(NoiseMgf, "total", lambda *given_to: 0.1 * whole(*given_to))
    spoilt = [expectations(*case(seed)[:3], **case(seed)[3]) for seed in range(80)]
    print(f"\nlargest {max(each.max() for each in honest):.4f}, spoilt {max(each.max() for each in spoilt):.4f}")
    assert sum(np.any(means > 1.001) for means in spoilt) >= 10


# --- normal rewards

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)


def of_normal(sigma: float, counts, bound: float, margins, *, shift: float = 0.0, needs=None) -> np.ndarray:
    """E exp(gain) of arms whose means are the bound plus a shift, by quadrature."""
    noise_mgf = noise_mgf_after(sp.SubGaussian(sigma), Observations.nothing(len(counts)))
    total = np.zeros(len(counts))
    for node, weight in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
        sums = counts * (bound + shift) + sigma * np.sqrt(counts) * node
        gains = number_evidence(Observations(counts, sums), bound, margins, noise_mgf, noise_mgf.scales, needs)
        total += weight * np.exp(gains)
    return total


def test_at_the_bound_the_expectation_is_one_and_above_it_less():
    counts, margins = np.array([1, 4, 25, 400, 7]), np.array([0.3, 0.5, 0.2, 0.01, 0.0])
    assert of_normal(1.3, counts, -2.0, margins) == pytest.approx(1.0, abs=1e-6)
    assert np.all(of_normal(1.3, counts, -2.0, margins, shift=0.1)[:4] < 1.0)
    assert of_normal(1.3, counts, -2.0, margins, needs=np.full(5, 0.5)) == pytest.approx(1.0, abs=1e-6)


def test_arms_without_a_pull_or_a_margin_gain_nothing():
    noise_mgf = noise_mgf_after(sp.SubGaussian(1.0), Observations.nothing(4))
    seen = Observations(np.array([0, 3, 3, 3]), np.array([0.0, -9.0, -9.0, -9.0]))
    gains = number_evidence(seen, 0.0, np.array([1.0, 0.0, -1.0, 1.0]), noise_mgf, noise_mgf.scales)
    assert gains[:3].tolist() == [0.0, 0.0, 0.0]
    assert gains[3] > 0.0
    nothing = number_evidence(Observations.nothing(4), 0.0, np.ones(4), noise_mgf, noise_mgf.scales)
    assert nothing.tolist() == [0.0] * 4


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_it_is_that_of_a_difference_to_an_arm_that_is_known_exactly(sigma):
    """The oracle: a centre with next to no noise, whose mean is the number."""
    counts, means, number = np.array([10**6, 3, 8, 20]), np.array([0.7, 0.1, 0.9, 0.6]), 0.7
    margins, noise = np.array([0.0, 0.8, 0.3, 0.5]), sp.SubGaussian((1e-9, *[sigma] * 3))
    noise_mgf = noise_mgf_after(noise, Observations.nothing(4))
    seen, arms = Observations(counts, counts * means), IndependentArms(4)
    pair = batch_evidence(
        arms, seen, centre=0, epsilon=0.2, margins=margins, noise_mgf=noise_mgf, noise_scales=noise_mgf.scales,
        norm_bound=None,
    ).gains  # fmt: skip
    alone = number_evidence(seen, number + 0.2, margins, noise_mgf, noise_mgf.scales)
    assert alone[1:] == pytest.approx(pair[1:], rel=1e-6)
    assert np.any(alone[1:] != 0.0)


def test_bets_shrink_where_little_evidence_is_needed():
    noise_mgf = noise_mgf_after(sp.SubGaussian(1.0), Observations.nothing(1))
    counts, margins = np.array([100]), np.array([2.0])
    seen = Observations(counts, counts * -2.0)
    usual, least = (
        number_evidence(seen, 0.0, margins, noise_mgf, noise_mgf.scales, needs)[0] for needs in (None, np.array([1.0]))
    )
    assert least == pytest.approx(GENEROUS * 1.0 + 1.0)
    assert usual > 2.0 * least


def test_no_reward_of_another_arm_matters():
    rng = np.random.default_rng(63)
    noise_mgf, counts, margins = (
        noise_mgf_after(sp.SubGaussian(1.0), Observations.nothing(5)),
        np.full(5, 4),
        np.ones(5),
    )
    first, second = (rng.standard_normal(5) for _ in range(2))
    for arm, sums in itertools.product(range(5), (first, second)):
        mixed = np.where(np.arange(5) == arm, first, sums)
        gains = number_evidence(Observations(counts, mixed), 0.3, margins, noise_mgf, noise_mgf.scales)
        whole = number_evidence(Observations(counts, first), 0.3, margins, noise_mgf, noise_mgf.scales)
        assert gains[arm] == whole[arm]
