"""Laws of the optimal design that hold whatever the arms."""

from __future__ import annotations

import math

import numpy as np
from budgets import budget
from hypothesis import assume, given, settings, strategies as st

from surepick.designs import allocate, design_value, round_design, solve_design

TOLERANCE = 5e-3
RANK = 1e-10  # products of matrices are deficient to rounding only, which a change of basis may magnify

seeds = st.integers(0, 2**32 - 1)


@st.composite
def arms(draw, most: int = 40) -> tuple[np.ndarray, np.random.Generator]:
    """Gaussian, integer (with ties and duplicates), nearly flat or rank-deficient arms, and a generator."""
    rng = np.random.default_rng(draw(seeds))
    num_arms, dim = draw(st.integers(2, most)), draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["gaussian", "grid", "flat", "deficient"]))
    features = rng.standard_normal((num_arms, dim))
    if kind == "grid":
        features = rng.integers(-2, 3, (num_arms, dim)) * 1.0
    elif kind == "flat":
        features[:, -1] *= 1e-6
    elif kind == "deficient":
        features = features[:, : (dim + 1) // 2] @ rng.standard_normal(((dim + 1) // 2, dim))
    return features, rng


def brackets_meet(one, other, scale: float = 1.0) -> bool:
    """Two designs of the same problem: neither lower bound exceeds the other's value (up to rounding)."""
    safe = 1 + 1e-6
    return one.lower_bound * scale <= other.value * safe and other.lower_bound <= one.value * scale * safe


@settings(max_examples=budget(60))
@given(arms())
def test_the_certificate_brackets_the_optimum(drawn):
    features, rng = drawn
    active = np.flatnonzero(rng.random(len(features)) < 0.6)
    assume(len(active))
    design = solve_design(features, active, tolerance=TOLERANCE, rank_tolerance=RANK)
    assert design.lower_bound <= design.value
    assert design.gap <= TOLERANCE
    assert design.value == design_value(features, design.weights, active, rank_tolerance=RANK)
    for _ in range(5):  # no other design is better than the lower bound
        other = rng.dirichlet(np.full(len(features), 0.5))
        assert design_value(features, other, active, rank_tolerance=RANK) >= design.lower_bound * (1 - 1e-9)


@settings(max_examples=budget(40))
@given(arms())
def test_the_basis_does_not_matter(drawn):
    features, rng = drawn
    dim = features.shape[1]
    change = np.linalg.qr(rng.standard_normal((dim, dim)))[0] * rng.uniform(0.2, 5.0, dim)
    one, other = (solve_design(x, tolerance=TOLERANCE, rank_tolerance=RANK) for x in (features, features @ change))
    assert one.rank == other.rank
    assert brackets_meet(one, other)


@settings(max_examples=budget(40))
@given(arms(), st.integers(-60, 60))
def test_scaling_all_features_by_a_power_of_two_changes_no_bit(drawn, exponent):
    features, _ = drawn
    assert solve_design(features, rank_tolerance=RANK) == solve_design(
        np.ldexp(features, exponent), rank_tolerance=RANK
    )


@settings(max_examples=budget(40))
@given(arms())
def test_the_order_of_the_arms_does_not_matter(drawn):
    features, rng = drawn
    order = rng.permutation(len(features))
    active = np.flatnonzero(rng.random(len(features)) < 0.7)
    assume(len(active))
    one = solve_design(features, active, tolerance=TOLERANCE, rank_tolerance=RANK)
    other = solve_design(features[order], np.isin(order, active), tolerance=TOLERANCE, rank_tolerance=RANK)
    assert brackets_meet(one, other)
    moved = design_value(features[order], one.weights[order], np.isin(order, active), rank_tolerance=RANK)
    np.testing.assert_allclose(moved, one.value, rtol=1e-6, atol=1e-20)


@settings(max_examples=budget(40))
@given(arms(), st.integers(1, 60))
def test_repeating_arms_does_not_matter(drawn, repeats):
    features, rng = drawn
    more = np.vstack([features, features[rng.integers(0, len(features), repeats)]])
    one, other = (
        solve_design(features, tolerance=TOLERANCE, rank_tolerance=RANK),
        solve_design(more, tolerance=TOLERANCE, rank_tolerance=RANK),
    )
    assert brackets_meet(one, other)
    assert np.count_nonzero(other.weights[len(features) :]) == 0


@settings(max_examples=budget(30))
@given(arms())
def test_redundant_columns_do_not_matter(drawn):
    features, rng = drawn
    copies = features[:, rng.integers(0, features.shape[1], 3)] * [2.0, -0.25, 0.0]
    wide = np.hstack([copies, features])
    one, other = (
        solve_design(features, tolerance=TOLERANCE, rank_tolerance=RANK),
        solve_design(wide, tolerance=TOLERANCE, rank_tolerance=RANK),
    )
    assert one.rank == other.rank
    assert brackets_meet(one, other)


@settings(max_examples=budget(40))
@given(arms())
def test_fewer_active_arms_are_never_dearer_and_more_arms_to_pull_never_worse(drawn):
    features, rng = drawn
    active = np.flatnonzero(rng.random(len(features)) < 0.7)
    assume(len(active) > 1)
    every, some = solve_design(features, rank_tolerance=RANK), solve_design(features, active, rank_tolerance=RANK)
    assert some.lower_bound <= every.value * (1 + 1e-9)
    alone = solve_design(features[active], rank_tolerance=RANK)
    assert some.lower_bound <= alone.value * (1 + 1e-6)


@settings(max_examples=budget(40))
@given(arms(), st.sampled_from([0.02, 0.1, 0.25]), st.integers(0, 300))
def test_the_rounding_promise(drawn, slack, total):
    features, _ = drawn
    design = solve_design(features, rank_tolerance=RANK)
    allocation = allocate(design, features, total, slack=slack, rank_tolerance=RANK)
    support = np.count_nonzero(design.weights)
    assert allocation.value <= (1 + slack) * design.value
    assert allocation.counts.sum() == allocation.total >= max(total, support)
    assert allocation.total <= max(total, math.ceil(support * (1 + slack) / slack))


@settings(max_examples=budget(100))
@given(st.lists(st.floats(1e-7, 1.0), min_size=1, max_size=40), st.integers(0, 5000))
def test_rounding_sums_to_the_total_and_measures_every_supported_arm(weights, extra):
    total = len(weights) + extra
    counts = round_design(weights, total)
    assert counts.sum() == total
    assert counts.min() >= 1
    shares = np.array(weights) / np.sum(weights)
    assert np.all(counts >= (total - len(weights)) * shares * (1 - 1e-9))
