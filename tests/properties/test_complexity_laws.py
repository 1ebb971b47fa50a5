"""Laws of the complexity measures that hold on every instance."""

from __future__ import annotations

import math

import numpy as np
from budgets import budget
from hypothesis import given, settings, strategies as st

from surepick.core.plans import Embedding, IndependentArms
from surepick.policies.dimension import embedding_design, worst_gap
from surepick_bench.theory.complexity import (
    achievable_gap,
    critical_round,
    hardness,
    least_critical_round,
    linear_hardness,
    linear_part,
    relaxation_bound,
)
from surepick_bench.theory.upper_bounds import upper_bound_fixed

SAFE = 1 + 1e-6


@st.composite
def instances(draw) -> tuple[Embedding, np.ndarray, np.random.Generator]:
    """Arms (some repeated), means with gaps up to 1 that are linear up to a misspecification, and a generator."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_arms, dim = draw(st.integers(2, 25)), draw(st.integers(1, 5))
    gamma = draw(st.sampled_from([0.0, 1e-3, 0.02, 0.2]))
    features = rng.standard_normal((num_arms, dim))
    if draw(st.booleans()):
        features[num_arms // 2 :] = features[: num_arms - num_arms // 2]
    means = features @ rng.standard_normal(dim)
    means /= max(np.ptp(means), 1e-9)
    return Embedding(features, gamma), means + gamma * rng.uniform(-1, 1, num_arms), rng


@settings(max_examples=budget(60))
@given(instances(), st.sampled_from([0.0, 0.1, 1.0]))
def test_g_is_at_most_four_times_the_dimension(drawn, slack):
    embedded, _, rng = drawn
    active = np.flatnonzero(rng.random(embedded.num_arms) < 0.7)
    for chosen in (None, active if len(active) else None):
        design = embedding_design(embedded, chosen)
        assert (1 + slack) * design.lower_bound <= 4 * (1 + slack) * embedded.dim * SAFE  # g(d, zeta) <= 4 (1 + zeta) d
        assert design.value <= 4 * embedded.dim * 1.01 * SAFE


@settings(max_examples=budget(50))
@given(instances(), st.floats(0.01, 1.0), st.floats(1.0, 5.0))
def test_rho_star_falls_with_epsilon_and_at_most_with_its_square(drawn, epsilon, factor):
    embedded, means, _ = drawn
    fine, coarse = hardness(embedded, means, epsilon), hardness(embedded, means, factor * epsilon)
    assert coarse.lower_bound <= fine.value * SAFE
    assert fine.lower_bound <= factor**2 * coarse.value * SAFE


@settings(max_examples=budget(50))
@given(instances(), st.floats(0.01, 1.0))
def test_rho_star_lies_between_its_design_values(drawn, epsilon):
    """tau(X) / (4 max(largest gap, epsilon)^2) <= rho* <= tau(X) / max(smallest gap, epsilon)^2."""
    embedded, means, _ = drawn
    found, whole = hardness(embedded, means, epsilon), embedding_design(embedded)
    gaps = np.delete(means.max() - means, int(means.argmax()))
    assert found.lower_bound <= whole.value / max(gaps.min(), epsilon) ** 2 * SAFE
    assert whole.lower_bound / (4 * max(gaps.max(), epsilon) ** 2) <= found.value * SAFE


@settings(max_examples=budget(60))
@given(instances(), st.floats(1.0, 4.0))
def test_proposition_1(drawn, factor):
    embedded, means, _ = drawn
    error = float(np.abs(means - linear_part(embedded, means)).max())
    epsilon = factor * max(error, 1e-3)
    bound = relaxation_bound(embedded, means, epsilon)
    assert hardness(embedded, means, epsilon).lower_bound <= bound * SAFE
    assert linear_hardness(embedded, means, epsilon).lower_bound <= 9 * hardness(embedded, means, epsilon).value * SAFE


@settings(max_examples=budget(50))
@given(instances(), st.sampled_from([2.0, 3.7]))
def test_proposition_2(drawn, gap_bound):
    embedded, means, _ = drawn
    value, gamma = embedding_design(embedded).value, embedded.misspecification
    number = critical_round(embedded, means, gap_bound=gap_bound)
    if gamma == 0.0:
        assert math.isinf(number)
        return
    # the values of two designs differ by their tolerance
    assert number >= least_critical_round(gamma, 1.01 * value, 0.1, gap_bound=gap_bound)
    if number > 0:
        assert achievable_gap(number, gap_bound=gap_bound) <= worst_gap(gamma, 1.01 * value, 0.1)


@settings(max_examples=budget(40))
@given(instances(), st.floats(0.05, 1.0))
def test_the_bound_covers_the_rounds_that_it_bounds(drawn, epsilon):
    """n rounds of 8 sigma^2 (1 + zeta) tau(S_k) L_k / t_k^2 pulls: what the proof starts from."""
    embedded, means, _ = drawn
    bound = upper_bound_fixed(embedded, means, delta=0.05, sigma=1.0, epsilon=epsilon)
    gaps, total = means.max() - means, 0.0
    for k in range(1, int(bound.num_rounds) + 1):
        active = np.flatnonzero(gaps < 4 * 2.0**-k) if k > 1 else np.arange(len(gaps))
        log_term = math.log(max(len(active) - 1, 1) * k * (k + 1) / 0.05)
        total += 8 * 1.1 * embedding_design(embedded, active).value * log_term * 4.0**k
    assert total <= bound.pulls * SAFE


@settings(max_examples=budget(30))
@given(instances(), st.floats(0.05, 1.0))
def test_structure_never_makes_an_instance_harder(drawn, epsilon):
    """The features of K arms are linear images of K unit vectors, and so are their differences."""
    embedded, means, _ = drawn
    free = hardness(IndependentArms(embedded.num_arms), means, epsilon)
    assert hardness(embedded, means, epsilon).lower_bound <= free.value * SAFE
