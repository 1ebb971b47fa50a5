"""Laws of the elimination rule: nobody good is lost, and nothing depends on names or units."""

import numpy as np
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.estimators import least_squares
from surepick.policies.paper.arm_elimination import compare

cases = settings(max_examples=budget(100))
seeds = st.integers(0, 2**32 - 1)


def batch(seed):
    rng = np.random.default_rng(seed)
    size, dim = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    features = rng.normal(size=(size, dim))[rng.integers(0, size, size)]  # some arms coincide
    counts = rng.integers(0, 9, size)
    counts[rng.integers(size)] += 1
    theta = rng.normal(size=dim)
    sums = counts * (features @ theta) + np.sqrt(counts) * rng.normal(size=size)
    return features, sp.Observations(counts, sums), theta, rng


def fit(features, seen):
    return least_squares(sp.Embedding(features, 0.0), seen)


@cases
@given(seeds, st.floats(0, 2), st.floats(1e-3, 3))
def test_the_set_never_empties_and_keeps_the_leader(seed, offset, multiplier):
    features, seen, _, _ = batch(seed)
    found = compare(fit(features, seen), np.arange(len(features)), offset=offset, multiplier=multiplier)
    assert found.leader in found.survivors
    assert found.gap >= 0
    assert np.all(np.diff(found.survivors) > 0)


@cases
@given(seeds, st.floats(1e-3, 3), st.floats(1, 3))
def test_wider_widths_keep_more_arms_and_promise_less(seed, multiplier, factor):
    features, seen, _, _ = batch(seed)
    everybody = np.arange(len(features))
    narrow, wide = (
        compare(fit(features, seen), everybody, offset=0.0, multiplier=each)
        for each in (multiplier, factor * multiplier)
    )
    assert set(narrow.survivors) <= set(wide.survivors)
    assert narrow.gap <= wide.gap


@cases
@given(seeds, st.sampled_from([2.0**-20, 0.5, 2.0**30]))
def test_the_unit_of_the_rewards_does_not_matter(seed, unit):
    features, seen, _, _ = batch(seed)
    everybody = np.arange(len(features))
    scaled = sp.Observations(seen.counts, unit * seen.sums)
    one = compare(fit(features, seen), everybody, offset=0.1, multiplier=0.7)
    other = compare(fit(features, scaled), everybody, offset=0.1 * unit, multiplier=0.7 * unit)
    assert one.survivors.tolist() == other.survivors.tolist()
    assert one.leader == other.leader
    assert other.gap == unit * one.gap


@cases
@given(seeds)
def test_the_truth_is_safe_whenever_the_widths_hold(seed):
    """The proof's event: no arm is overestimated against the best beyond the width. Then the best stays, and the
    leader falls short by at most the gap."""
    features, seen, theta, rng = batch(seed)
    everybody = np.arange(len(features))
    estimate, means = fit(features, seen), features @ theta
    best, multiplier = int(np.argmax(means)), float(rng.choice([0.3, 1.0, 2.0]))
    error = (estimate.scores - estimate.scores[best]) - (means - means[best])
    widths = multiplier * estimate.distances(everybody, np.array([best]))[:, 0]
    if np.any(error > widths + 1e-9):
        return
    found = compare(estimate, everybody, offset=1e-9, multiplier=multiplier)
    assert best in found.survivors
    assert means[best] - means[found.leader] <= found.gap + 1e-9


@cases
@given(seeds)
def test_permuting_the_arms_permutes_the_survivors(seed):
    features, seen, _, rng = batch(seed)
    order = rng.permutation(len(features))
    shuffled = sp.Observations(seen.counts[order], seen.sums[order])
    everybody = np.arange(len(features))
    plain = compare(least_squares(sp.Embedding(features, 0.0), seen, reference=int(order[0])), everybody,
                    offset=0.05, multiplier=1.0)  # fmt: skip
    turned = compare(fit(features[order], shuffled), everybody, offset=0.05, multiplier=1.0)
    assert sorted(order[turned.survivors].tolist()) == plain.survivors.tolist()
    assert np.isclose(turned.gap, plain.gap, rtol=1e-6, atol=1e-6) or turned.gap == plain.gap
