"""Weights that are nowhere written out: what is said of them is what exact arithmetic says, or on the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.plans import Embedding
from surepick.estimators import batch_evidence, contrast_weights, e_values as evidence, noise_mgf_after
from surepick.estimators.contrast_weights import ContrastWeights, ImplicitWeights

NORM_BOUND, GAMMA, EPSILON = 3.0, 0.05, 0.4
CASES = st.tuples(st.integers(0, 10**6), st.sampled_from((1e-12, 1e-3, 1.0, 1e6)), st.booleans())


def batch(seed, scale, cancelling):
    """A batch by hand: coordinates and W as they are stored, whatever they are."""
    rng = np.random.default_rng(seed)
    num_arms, depth, width, dim = 7, int(rng.integers(1, 5)), int(rng.integers(2, 6)), 3
    pulled = np.sort(rng.choice(num_arms, width, replace=False))
    own = rng.standard_normal((depth, width))
    coordinates = scale * rng.standard_normal((num_arms, depth))
    if cancelling and depth > 1:  # large products whose sums are small
        own[-1] = own[0] * (1.0 + 1e-6 * rng.standard_normal(width))
        coordinates[:, -1] = -coordinates[:, 0]
    features = rng.standard_normal((num_arms, dim))
    counts = rng.integers(1, 4, width)
    scales = rng.uniform(0.5, 2.0, width)
    centre = int(rng.integers(num_arms))
    contrast = ContrastWeights(
        Embedding(features, GAMMA),
        pulled,
        counts,
        centre,
        scales,
        NORM_BOUND,
        coordinates,
        own,
        np.linalg.norm(features[pulled], axis=1),
    )
    sums = counts * rng.standard_normal(width)
    rows = np.delete(np.arange(num_arms), centre)
    return contrast, sums, scales, rows


def exactly(numbers):
    return [Fraction(float(number)) for number in numbers]


def in_exact_arithmetic(contrast, sums, scales, row):
    """(beta, xhat, sum n u^2 s^2, u) of one rival: the first from a square root, the others exact."""
    towards = exactly(contrast.coordinates[row] - contrast.coordinates[contrast.centre])
    weights = [sum(q * w for q, w in zip(towards, exactly(column), strict=True)) for column in contrast.own.T]
    counts, features = [int(n) for n in contrast.counts], contrast.embedded.features
    flows = [n * u for n, u in zip(counts, weights, strict=True)]
    missed = 0.0
    for column in features.T:
        told = sum(f * z for f, z in zip(flows, exactly(column[contrast.pulled]), strict=True))
        missed += float(Fraction(float(column[row])) - Fraction(float(column[contrast.centre])) - told) ** 2
    apart = sum(abs(f - (arm == row) + (arm == contrast.centre)) for f, arm in zip(flows, contrast.pulled, strict=True))
    apart += (row not in contrast.pulled) + (contrast.centre not in contrast.pulled)
    beta = NORM_BOUND * math.sqrt(missed) + GAMMA * float(apart)
    drawn = sum(u * s for u, s in zip(weights, exactly(sums), strict=True))
    squares = sum(n * u**2 * s**2 for n, u, s in zip(counts, weights, exactly(scales), strict=True))
    return beta, drawn, squares, weights


def short_of_exact(case):
    """By how much the bias is short of the exact one, relative, and all else is checked."""
    contrast, sums, scales, rows = batch(*case)
    found, short = ImplicitWeights.of(contrast, sums, scales).sums(rows), 0.0
    for at, row in enumerate(rows):
        beta, drawn, squares, weights = in_exact_arithmetic(contrast, sums, scales, row)
        short = max(short, 1.0 - float(found.bias[at]) / beta)
        assert abs(Fraction(float(found.drawn[at])) - drawn) <= Fraction(float(found.rounding[at]))
        assert Fraction(float(found.squares[at])) >= squares
        assert bool(found.none[at]) <= (not any(weights))
    return short


@settings(max_examples=budget(300))
@given(CASES)
def test_no_sum_is_short_of_exact_arithmetic(case):
    assert short_of_exact(case) <= 1e-15


@settings(max_examples=budget(100))
@given(st.tuples(st.integers(0, 10**6), st.sampled_from((1e-3, 1.0)), st.just(False)))
def test_what_rounding_adds_is_little(case):
    contrast, sums, scales, rows = batch(*case)
    found = ImplicitWeights.of(contrast, sums, scales).sums(rows)
    for at, row in enumerate(rows):
        beta, drawn, squares, _ = in_exact_arithmetic(contrast, sums, scales, row)
        assert found.bias[at] <= beta * (1.0 + 1e-8) + 1e-12
        assert found.rounding[at] <= 1e-10 * (1.0 + float(abs(drawn)))
        assert found.squares[at] <= float(squares) * (1.0 + 1e-6) + 1e-10


def test_exact_arithmetic_tells_a_bound_that_forgets_rounding(monkeypatch):
    monkeypatch.setattr(contrast_weights, "EPS", 0.0)
    monkeypatch.setattr(contrast_weights, "ROUNDED_UP", 1.0)
    failed = 0
    for seed in range(50):
        try:
            failed += short_of_exact((seed, 1.0, True)) > 1e-15
        except AssertionError:
            failed += 1
    assert failed > 10


# --- as evidence


def study(seed, num_arms=40, depth=4, width=15, scale=0.2):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((num_arms, depth))
    theta = rng.standard_normal(depth)
    theta *= NORM_BOUND / np.linalg.norm(theta)
    counts = np.zeros(num_arms, np.int64)
    counts[rng.choice(num_arms, width, replace=False)] = rng.integers(1, 5, width)
    means = features @ theta + GAMMA * rng.choice((-1.0, 1.0), num_arms)
    noise = sp.SubGaussian(scale)
    nothing = Observations(np.zeros(num_arms, np.int64), np.zeros(num_arms))
    mgf = noise_mgf_after(noise, nothing)
    given_to = {
        "centre": int(np.argsort(means)[num_arms // 3]),
        "epsilon": EPSILON,
        "margins": np.full(num_arms, EPSILON),
        "noise_mgf": mgf,
        "noise_scales": mgf.scales,
        "norm_bound": NORM_BOUND,
    }
    seen = Observations(counts, counts * means + scale * np.sqrt(counts) * rng.standard_normal(num_arms))
    return Embedding(features, GAMMA), seen, means, given_to


def briefly(monkeypatch, *args, **given_to):
    with monkeypatch.context() as patch:
        patch.setattr(evidence, "BLOCK_ENTRIES", 0)
        return batch_evidence(*args, **given_to)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("needs", [None, 2.0])
def test_evidence_is_that_of_written_weights_but_for_what_rounding_takes(seed, needs, monkeypatch):
    embedded, seen, _, given_to = study(seed)
    needs = None if needs is None else np.full(len(seen.counts), needs)
    written = batch_evidence(embedded, seen, needs=needs, **given_to)
    unwritten = briefly(monkeypatch, embedded, seen, needs=needs, **given_to)
    assert np.count_nonzero(written.bets) > 10
    for one, other in ((written.gains, unwritten.gains), (written.bets, unwritten.bets)):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    assert not np.array_equal(written.gains, unwritten.gains)


def log_expectations(embedded, seen, means, found, given_to):
    """log E exp(gain) of each rival over normal noise: gains are linear in the sums."""
    drawn = np.zeros(len(means))
    for arm in np.flatnonzero(seen.counts):  # the slope of t xhat in each arm's sum
        sums = np.zeros(len(means))
        sums[arm] = 1.0
        slope = found(Observations(seen.counts, sums)).drawn
        drawn += 0.5 * seen.counts[arm] * (slope * given_to["noise_mgf"].scales[arm]) ** 2
    return found(Observations(seen.counts, seen.counts * means)).gains + drawn


@pytest.mark.parametrize("seed", range(10))
def test_the_expectation_is_at_most_one_where_the_rival_is_better_by_more_than_epsilon(seed, monkeypatch):
    embedded, seen, means, given_to = study(seed)
    better = np.flatnonzero(means - means[given_to["centre"]] > EPSILON)
    assert len(better)

    def found(batch):
        return briefly(monkeypatch, embedded, batch, **given_to)

    logs = log_expectations(embedded, seen, means, found, given_to)[better]
    assert logs.max() <= 0.0


def test_the_expectation_tells_evidence_without_bias(monkeypatch):
    def found(batch):
        return briefly(monkeypatch, embedded, batch, **given_to)

    monkeypatch.setattr(ImplicitWeights, "_l1_deviation", lambda self, rows, towards, size: np.zeros(len(rows)))
    worst = -np.inf
    for seed in range(10):
        embedded, seen, means, given_to = study(seed, scale=0.02)
        better = means - means[given_to["centre"]]
        just = (better > EPSILON) & (better < EPSILON + 2.0 * GAMMA)
        if just.any():
            worst = max(worst, log_expectations(embedded, seen, means, found, given_to)[just].max())
    assert worst > 0.1


def test_few_weights_are_written_and_so_are_those_of_rewards_in_a_range(monkeypatch):
    def refuse(*_):
        raise AssertionError

    embedded, seen, _, given_to = study(0)
    monkeypatch.setattr(ImplicitWeights, "of", refuse)
    batch_evidence(embedded, seen, **given_to)
    nothing = Observations(np.zeros_like(seen.counts), np.zeros(len(seen.counts)))
    given_to |= {"noise_mgf": noise_mgf_after(sp.Bounded(-30.0, 30.0), nothing)}
    squares = Observations(seen.counts, seen.sums, seen.sums**2)
    briefly(monkeypatch, embedded, squares, **given_to)
