"""A batch through a wrong embedding, with needs, is still an e-value."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from budgets import budget
from evidence_cases import EPSILON, past
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding
from surepick.estimators import batch_evidence, e_values as evidence, noise_mgf_after, with_squares
from surepick.estimators.contrast_weights import ContrastWeights
from surepick.estimators.e_values import GENEROUS

# --- bets that are enough


@settings(max_examples=budget(100))
@given(st.integers(0, 10**6))
def test_bets_shrink_only_where_they_promise_more_than_is_wanted(seed):
    rng = np.random.default_rng(seed)
    bets, slack = rng.exponential(2.0, 30), rng.exponential(1.0, 30)
    costs = bets * slack * rng.uniform(0.0, 1.2, 30)
    costs[:3] = 0.0
    needs = rng.normal(1.0, 3.0, 30)
    plain, promised = evidence.enough(bets, slack, costs, None)
    assert np.array_equal(plain, bets)
    assert promised == pytest.approx(bets * slack - costs)
    shrunk, gains = evidence.enough(bets, slack, costs, needs)
    wanted = GENEROUS * np.maximum(needs, 0.0) + 1.0
    more = promised > wanted
    assert np.all(shrunk <= bets)
    assert np.array_equal(shrunk[~more], bets[~more])
    assert np.all(shrunk[more & (costs > 0)] < bets[more & (costs > 0)])
    assert gains[more & (costs > 0)] == pytest.approx(wanted[more & (costs > 0)])
    assert gains[~more] == pytest.approx(promised[~more])


# --- e-values


def outcomes(counts):
    return itertools.product(*(range(count + 1) for count in counts))


def expectation_of(embedded, counts, means, *, rival, centre, **given_to_gains) -> float:
    """E exp(gain of the rival) over all 0/1 outcomes of a batch."""
    total, noise = 0.0, sp.Bernoulli()
    for sums in outcomes(counts):
        chance = math.prod(
            math.comb(int(n), s) * h**s * (1 - h) ** (n - s) for n, s, h in zip(counts, sums, means, strict=True)
        )
        ones = np.array(sums, float)
        seen = with_squares(noise, Observations(counts, ones, ones))
        found = batch_evidence(embedded, seen, centre=centre, epsilon=EPSILON, **given_to_gains)
        total += chance * math.exp(found.gains[rival])
    return total


def least_favourable(embedded, counts, theta, *, rival, centre, **given_to_gains) -> np.ndarray:
    """Means at h_rival - h_centre = epsilon, with |eta| = gamma at every arm where it flatters the candidate most."""
    flows = []
    honest = ContrastWeights.bias

    def noted(contrast, rows, weights):
        flows.append((contrast.pulled, weights[rows == rival] * contrast.counts))
        return honest(contrast, rows, weights)

    nothing = Observations(counts, np.zeros(len(counts)), np.zeros(len(counts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ContrastWeights, "bias", noted)
        batch_evidence(embedded, nothing, centre=centre, epsilon=EPSILON, **given_to_gains)
    pulled, flow = flows[-1]
    slopes = np.zeros(len(counts))  # of the estimate of h_rival - h_centre less the truth, by eta
    slopes[pulled] = flow[0]
    slopes[rival] -= 1.0
    slopes[centre] += 1.0
    eta = -embedded.misspecification * np.where(slopes >= 0.0, 1.0, -1.0)
    line = embedded.features[:, 1]
    rise = (EPSILON - (eta[rival] - eta[centre])) / (line[rival] - line[centre])
    means = theta + rise * line + eta
    return means + 0.5 - (means.min() + means.max()) / 2.0


LARGEST_NORM = 30.0


@settings(max_examples=budget(100))
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.04, 0.1]), st.booleans())
def test_evidence_with_needs_has_expectation_at_most_one(seed, gamma, need):
    assert checked_expectation(seed, gamma, need=need) <= 1.0 + 1e-9


def checked_expectation(seed, gamma, *, need) -> float:
    """E exp(gain) for 0/1 rewards, h_j - h_c = epsilon exactly, |eta| = gamma; 1 where the means leave [0, 1]."""
    rng = np.random.default_rng(seed)
    num_arms = int(rng.integers(3, 6))
    features = np.column_stack([np.ones(num_arms), rng.standard_normal(num_arms)])
    embedded, pair = Embedding(features, gamma), {"rival": 0, "centre": 1}
    counts = rng.integers(0, 5 if num_arms == 3 else 4 if num_arms == 4 else 3, num_arms)
    noise_mgf = noise_mgf_after(sp.Bernoulli(), past(rng, num_arms))
    to_gains = {
        "margins": np.exp(rng.normal(-0.5, 1.0, num_arms)),
        "noise_mgf": noise_mgf,
        "noise_scales": noise_mgf.noise_scales(EPSILON),
        "norm_bound": LARGEST_NORM,
        "needs": rng.normal(2.0, 3.0, num_arms) if need else None,
    }
    if counts.sum() == 0:
        return 1.0
    means = least_favourable(embedded, counts, 0.0, **pair, **to_gains)
    slope = np.ptp(means) / np.ptp(features[:, 1])
    if means.min() < 0.0 or means.max() > 1.0 or slope > LARGEST_NORM / 10.0:
        return 1.0
    assert means[0] - means[1] == pytest.approx(EPSILON)
    return expectation_of(embedded, counts, means, **pair, **to_gains)


def test_the_enumeration_is_not_vacuous(monkeypatch):
    """Many of the cases above bet; and the saboteur, half the bias, is noticed in some of them."""
    cases = [(seed, 0.1) for seed in range(20)]
    honest = [checked_expectation(*case, need=False) for case in cases]
    assert sum(mean != 1.0 for mean in honest) >= 4
    whole = ContrastWeights.bias
    monkeypatch.setattr(ContrastWeights, "bias", lambda *given: 0.3 * whole(*given))
    spoilt = [checked_expectation(*case, need=False) for case in cases]
    print(f"\nlargest expectation {max(honest):.4f}, with 30 % of the bias {max(spoilt):.4f}")
    assert max(honest) <= 1.0 + 1e-9
    assert max(spoilt) > 1.001


def through(seed: int, *, num_arms: int = 12, dim: int = 3, gamma: float = 0.05):
    rng = np.random.default_rng(seed)
    features = np.column_stack([np.ones(num_arms), rng.standard_normal((num_arms, dim - 1))])
    counts = np.where(rng.uniform(size=num_arms) < 0.7, rng.integers(1, 30, num_arms), 0)
    counts[:5] += 1
    return Embedding(features, gamma), counts, rng.uniform(0.5, 1.5, num_arms), rng.uniform(0.5, 2.0, num_arms)


def test_rows_without_a_margin_gain_nothing():
    embedded, counts, scales, margins = through(3)
    margins[[0, 4, 7]] = [0.0, -1.0, 0.0]
    gains = batch_evidence(
        embedded,
        Observations(counts, counts * np.linspace(0.0, 1.0, 12)),
        centre=2,
        epsilon=EPSILON,
        margins=margins,
        noise_mgf=noise_mgf_after(sp.SubGaussian(0.2), Observations.nothing(12)),
        noise_scales=scales,
        norm_bound=2.0,
        needs=np.full(12, 3.0),
    ).gains
    assert gains[[0, 2, 4, 7]].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert np.any(gains != 0.0)
