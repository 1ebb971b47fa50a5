"""The elimination rule by transitivity and blocks is the rule for all pairs, also across blocks and for many arms."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.core.records import record
from surepick.estimators import LeastSquaresEstimate, least_squares
from surepick.policies.paper import pair_rule as rules
from surepick.policies.paper.arm_elimination import Comparison, compare

CLOSE = 1e-9  # relative: pairs that are this close to the border may go either way
ROWS = 400
SAMPLE = 40

seeds = st.integers(0, 2**32 - 1)


@record
class Lattice:
    """Arms on an integer grid with integer scores and the maximum norm: no rounding, hence exact ties everywhere."""

    scores: np.ndarray
    places: np.ndarray
    comparable: np.ndarray
    total: int = 1

    def distances(self, left, right):
        both = np.outer(self.comparable[left], self.comparable[right]) | (left[:, None] == right[None, :])
        return np.where(both, np.abs(self.places[left][:, None] - self.places[right][None]).max(axis=2), np.inf)


def lattice(rng: np.random.Generator, size: int, *, width: int, height: int) -> Lattice:
    comparable = rng.random(size) < rng.choice([0.8, 1.0])
    comparable[rng.integers(size)] = True
    scores = rng.integers(0, height, size) * 1.0
    return Lattice(scores, rng.integers(0, width, (size, 2)) * 1.0, comparable)


def all_pairs(estimate: Lattice, active: np.ndarray, offset: float, multiplier: float) -> Comparison:
    """The rule as it is stated: every arm against every other."""
    gone = np.zeros(len(active), bool)
    for top in range(0, len(active), ROWS):
        arms = active[top : top + ROWS]
        leads = estimate.scores[active][:, None] - estimate.scores[arms][None]
        gone[top : top + ROWS] = ((leads > 0) & (leads >= offset + multiplier * estimate.distances(active, arms))).any(
            0
        )
    ranked = active[estimate.comparable[active]]
    leader = int(ranked[np.argmax(estimate.scores[ranked])])
    others = active[active != leader]
    width = offset + multiplier * estimate.distances(others, np.array([leader]))[:, 0]
    short = (estimate.scores[others] - estimate.scores[leader] + width).max(initial=0.0)
    return Comparison(active[~gone], leader, float(short))


def fitted(rng: np.random.Generator, size: int, dim: int, *, copies: int = 1) -> LeastSquaresEstimate:
    """One batch of noisy pulls of some arms, of which `copies` are alike."""
    features = rng.standard_normal((size // copies, dim))[rng.permutation(size) % (size // copies)]
    counts = np.zeros(size, np.int64)
    counts[rng.choice(size, min(size, 40 * dim), replace=False)] = rng.integers(1, 20, min(size, 40 * dim))
    sums = counts * (features @ rng.standard_normal(dim)) + np.sqrt(counts) * rng.standard_normal(size)
    return least_squares(sp.Embedding(features, 0.0), sp.Observations(counts, sums))


def margins(
    estimate: LeastSquaresEstimate, rivals: np.ndarray, arm: int, offset: float, multiplier: float
) -> np.ndarray:
    """lead - width of each rival over one arm, by plain differences; -inf without a lead or a comparison."""
    leads = estimate.scores[rivals] - estimate.scores[arm]
    apart = np.sqrt(((estimate.coordinates[rivals] - estimate.coordinates[arm]) ** 2).sum(axis=1))
    usable = estimate.comparable[rivals] & estimate.comparable[arm] & (leads > 1e-12)
    return np.where(usable, leads - offset - multiplier * apart, -np.inf)


def check_some(estimate: LeastSquaresEstimate, found: Comparison, offset: float, multiplier: float) -> None:
    """Arms that went (drawn, or best) have a survivor that rules them out; survivors (drawn, or worst) have none."""
    rng, everybody = np.random.default_rng(0), np.arange(len(estimate.scores))
    border = CLOSE * (offset + float(np.abs(estimate.scores).max()))
    left = np.setdiff1d(everybody, found.survivors)
    best = left[np.argsort(-estimate.scores[left])][:SAMPLE]  # those that went by the least
    for arm in np.union1d(best, rng.permutation(left)[:SAMPLE]):
        assert margins(estimate, found.survivors, arm, offset, multiplier).max() >= -border
    worst = found.survivors[np.argsort(estimate.scores[found.survivors])][:SAMPLE]
    for arm in np.union1d(worst, rng.permutation(found.survivors)[:SAMPLE]):
        assert margins(estimate, everybody, arm, offset, multiplier).max() <= border
    apart = np.sqrt(((estimate.coordinates - estimate.coordinates[found.leader]) ** 2).sum(axis=1))
    short = estimate.scores - estimate.scores[found.leader] + offset + multiplier * apart
    assert found.gap == pytest.approx(max(0.0, np.delete(short, found.leader).max()), rel=1e-6, abs=border)


@settings(max_examples=budget(150))
@given(seeds, st.integers(1, 7), st.integers(0, 5), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from([0.5, 1.0, 3.0]))
def test_blocks_of_any_size_are_the_rule_for_all_pairs(seed, block, head, offset, multiplier):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 70))
    estimate = lattice(rng, size, width=int(rng.integers(1, 20)), height=int(rng.integers(1, 40)))
    active = np.sort(rng.choice(size, int(rng.integers(1, size + 1)), replace=False))
    if not estimate.comparable[active].any():
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "BLOCK", block)
        patch.setattr(rules, "HEAD", head)
        found = compare(estimate, active, offset=offset, multiplier=multiplier)
    stated = all_pairs(estimate, active, offset, multiplier)
    assert found.survivors.tolist() == stated.survivors.tolist()
    assert (found.leader, found.gap) == (stated.leader, stated.gap)


@pytest.mark.parametrize(
    ("block", "width", "height", "multiplier"), [(37, 400, 300, 1.0), (512, 4000, 3000, 3.0), (512, 30, 30, 0.5)]
)
def test_two_thousand_arms_are_compared_across_blocks(monkeypatch, block, width, height, multiplier):
    monkeypatch.setattr(rules, "BLOCK", block)
    rng = np.random.default_rng(width)
    estimate, everybody = lattice(rng, 2000, width=width, height=height), np.arange(2000)
    found = compare(estimate, everybody, offset=1.0, multiplier=multiplier)
    stated = all_pairs(estimate, everybody, 1.0, multiplier)
    assert found.survivors.tolist() == stated.survivors.tolist()
    assert (found.leader, found.gap) == (stated.leader, stated.gap)


@pytest.mark.parametrize(("copies", "multiplier"), [(1, 1.0), (5, 30.0)])
def test_two_thousand_estimates_are_compared_as_pairs(copies, multiplier):
    rng = np.random.default_rng(copies)
    estimate, everybody = fitted(rng, 2000, 6, copies=copies), np.arange(2000)
    found = compare(estimate, everybody, offset=0.05, multiplier=multiplier)
    border = CLOSE * float(np.abs(estimate.scores).max())
    best = np.array([margins(estimate, everybody, arm, 0.05, multiplier).max() for arm in everybody])
    survives = np.isin(everybody, found.survivors)
    assert survives[best < -border].all()
    assert not survives[best > border].any()
    assert 0 < survives.sum() < 2000


@settings(max_examples=budget(60))
@given(seeds, st.sampled_from([0.0, 0.05, 1.0]), st.sampled_from([1.0, 20.0, 60.0]), st.sampled_from([1, 4]))
def test_the_screen_passes_every_pair_that_meets_the_rule(seed, offset, share, copies):
    rng = np.random.default_rng(seed)
    estimate = fitted(rng, 4 * int(rng.integers(3, 40)), int(rng.integers(1, 5)), copies=copies)
    arms, multiplier = np.flatnonzero(estimate.comparable), share * float(rng.uniform(0.1, 1.0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "LEAST_SCREENED", 0)
        found = rules.screen_of(estimate, arms, offset=offset, multiplier=multiplier)
    leads = estimate.scores[arms][:, None] - estimate.scores[arms][None]
    kills = (leads > 0) & (leads >= offset + multiplier * estimate.distances(arms, arms))
    rows, columns = found.possible(arms, arms)
    assert np.isin(np.flatnonzero(kills.any(axis=1)), rows).all()
    assert np.isin(np.flatnonzero(kills.any(axis=0)), columns).all()


@pytest.mark.parametrize("multiplier", [30.0, 60.0, 200.0])
def test_the_screen_changes_no_comparison(multiplier, monkeypatch):
    estimate, everybody = fitted(np.random.default_rng(5), 6000, 8), np.arange(6000)
    found = compare(estimate, everybody, offset=0.02, multiplier=multiplier)
    monkeypatch.setattr(rules, "LEAST_SCREENED", 10**9)
    plain = compare(estimate, everybody, offset=0.02, multiplier=multiplier)
    assert found.survivors.tolist() == plain.survivors.tolist()
    assert (found.leader, found.gap) == (plain.leader, plain.gap)
    assert 0 < len(plain.survivors) < 6000


def test_a_screen_that_asks_for_too_much_is_noticed(monkeypatch):
    estimate, everybody = fitted(np.random.default_rng(5), 6000, 8), np.arange(6000)
    honest = rules.screen_of

    def strict(*given, **options):
        found = honest(*given, **options)
        return replace(found, above=found.above - 0.1 * np.abs(found.above).max())

    plain = compare(estimate, everybody, offset=0.02, multiplier=60.0)
    monkeypatch.setattr(rules, "screen_of", strict)
    assert compare(estimate, everybody, offset=0.02, multiplier=60.0).survivors.tolist() != plain.survivors.tolist()


@pytest.mark.parametrize(
    ("num_arms", "copies", "multiplier"),
    [(40_000, 5, 150.0), *(pytest.param(100_000, *each, marks=pytest.mark.slow) for each in ((1, 120.0), (5, 150.0)))],
)
def test_many_arms_by_samples_and_in_little_memory(num_arms, copies, multiplier):
    estimate = fitted(np.random.default_rng(7), num_arms, 20, copies=copies)
    tracemalloc.start()
    found = compare(estimate, np.arange(num_arms), offset=0.02, multiplier=multiplier)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 40 < len(found.survivors) < num_arms // 2
    assert peak < 250e6  # all pairs of 40,000 would take 13 GB, of 100,000 80
    check_some(estimate, found, 0.02, multiplier)


def test_a_rule_that_drops_or_keeps_a_twentieth_too_much_is_noticed():
    estimate, everybody = fitted(np.random.default_rng(3), 20_000, 8), np.arange(20_000)
    found = compare(estimate, everybody, offset=0.02, multiplier=80.0)
    check_some(estimate, found, 0.02, 80.0)
    rng, left = np.random.default_rng(1), np.setdiff1d(everybody, found.survivors)
    kept = found.survivors[rng.random(len(found.survivors)) > 0.05]
    more = np.union1d(found.survivors, left[rng.random(len(left)) < 0.05])
    for wrong in (replace(found, survivors=kept), replace(found, survivors=more), replace(found, gap=0.9 * found.gap)):
        with pytest.raises(AssertionError):
            check_some(estimate, wrong, 0.02, 80.0)
