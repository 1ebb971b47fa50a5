"""The elimination rule and the epsilon-stop, against the rule written out for all pairs."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.records import record
from surepick.estimators import arm_means, least_squares
from surepick.policies.paper import pair_rule as rules
from surepick.policies.paper.arm_elimination import compare


@record
class Points:
    """Arms on a line with given scores: distances are exact, so that ties are exact too."""

    scores: np.ndarray
    places: np.ndarray
    comparable: np.ndarray
    total: int = 1

    def distances(self, left, right):
        both = np.outer(self.comparable[left], self.comparable[right]) | (left[:, None] == right[None, :])
        return np.where(both, np.abs(self.places[left][:, None] - self.places[right][None, :]), np.inf)


def points(scores, places, comparable=None):
    scores, places = np.asarray(scores, float), np.asarray(places, float)
    return Points(scores, places, np.ones(len(scores), bool) if comparable is None else np.asarray(comparable, bool))


def brute_force(estimate, active, offset, multiplier):
    """Survivors and gap of the rule as it is stated, one pair at a time."""

    def width(a, b):
        return offset + multiplier * estimate.distances(np.array([a]), np.array([b]))[0, 0]

    def ruled_out(x):
        return any(
            estimate.scores[rival] > estimate.scores[x]
            and estimate.scores[rival] - estimate.scores[x] >= width(rival, x)
            for rival in active
            if rival != x and estimate.comparable[rival] and estimate.comparable[x]
        )

    survivors = [x for x in active if not ruled_out(x)]
    ranked = [x for x in active if estimate.comparable[x]]
    leader = min(ranked, key=lambda x: (-estimate.scores[x], x))
    gaps = [estimate.scores[x] - estimate.scores[leader] + width(x, leader) for x in active if x != leader]
    return survivors, leader, max([0.0, *gaps])


def agrees(estimate, active, offset, multiplier):
    found = compare(estimate, active, offset=offset, multiplier=multiplier)
    survivors, leader, gap = brute_force(estimate, active, offset, multiplier)
    assert found.survivors.tolist() == survivors
    assert found.leader == leader
    assert found.gap == pytest.approx(gap, rel=1e-9, abs=1e-9)
    return found


@pytest.fixture(params=["usual", "small"])
def blocks(request, monkeypatch):
    if request.param == "small":
        monkeypatch.setattr(rules, "BLOCK", 3)
        monkeypatch.setattr(rules, "HEAD", 2)


@pytest.mark.cases(6)
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("first", range(0, 300, 50))
def test_ties_and_all_as_the_rule_for_all_pairs(first):
    """Whole numbers: leads equal to widths, equal scores and equal places are common."""
    ruled_out = 0
    for seed in range(first, first + 50):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(1, 40))
        comparable = rng.random(size) < rng.choice([0.6, 1.0])
        comparable[rng.integers(size)] = True
        estimate = points(rng.integers(0, 9, size), rng.integers(0, 9, size), comparable)
        active = np.sort(rng.choice(size, int(rng.integers(1, size + 1)), replace=False))
        if not comparable[active].any():
            continue
        found = agrees(estimate, active, float(rng.integers(0, 3)), float(rng.choice([0.5, 1.0, 2.0])))
        ruled_out += len(active) - len(found.survivors)
    assert ruled_out > 50


@pytest.mark.cases(40)
@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("seed", range(60))
def test_least_squares_estimates_as_the_rule_for_all_pairs(seed):
    rng = np.random.default_rng(seed)
    size, dim = int(rng.integers(2, 30)), int(rng.integers(1, 4))
    features = rng.normal(size=(size, dim))
    counts = rng.integers(1, 30, size)
    seen = sp.Observations(counts, counts * (features @ rng.normal(size=dim)) + np.sqrt(counts) * rng.normal(size=size))
    estimate = least_squares(sp.Embedding(features, 0.0), seen)
    agrees(estimate, np.arange(size), float(rng.choice([0.0, 0.1])), float(rng.choice([0.5, 2.0])))


def test_an_arm_goes_when_its_shortfall_reaches_the_width():
    estimate = points([5.0, 3.0, 3.0], [0.0, 2.0, 2.5])
    found = compare(estimate, np.arange(3), offset=0.0, multiplier=1.0)
    assert found.survivors.tolist() == [0, 2]  # lead 2 >= width 2 rules out arm 1; 2 < 2.5 spares arm 2
    assert found.leader == 0
    assert found.gap == 0.5


def test_the_offset_counts_in_every_width():
    estimate = points([5.0, 3.0], [0.0, 1.0])
    assert compare(estimate, np.arange(2), offset=1.0, multiplier=1.0).survivors.tolist() == [0]
    assert compare(estimate, np.arange(2), offset=1.01, multiplier=1.0).survivors.tolist() == [0, 1]
    assert compare(estimate, np.arange(2), offset=1.5, multiplier=1.0).gap == pytest.approx(0.5)


def test_an_arm_may_be_ruled_out_by_one_that_is_not_the_leader():
    estimate = points([10.0, 9.0, 2.0], [0.0, 50.0, 51.0])
    assert compare(estimate, np.arange(3), offset=0.0, multiplier=1.0).survivors.tolist() == [0, 1]


def test_equal_arms_never_rule_out_each_other():
    """At zero width the paper's rule, with >= and x' = x, would leave nobody."""
    estimate = points([1.0, 1.0, 1.0, 0.5], [0.0, 0.0, 0.0, 0.0])
    found = compare(estimate, np.arange(4), offset=0.0, multiplier=1.0)
    assert found.survivors.tolist() == [0, 1, 2]
    assert (found.leader, found.gap) == (0, 0.0)


def test_scores_closer_than_their_rounding_are_equal():
    estimate = points([1.0, 1.0 + 4e-16], [0.0, 0.0])
    assert compare(estimate, np.arange(2), offset=0.0, multiplier=0.0).survivors.tolist() == [0, 1]


def test_arms_that_cannot_be_compared_survive_and_make_the_gap_infinite():
    estimate = arm_means(sp.Observations([100, 0, 100], [100.0, 0.0, 0.0]))
    found = compare(estimate, np.arange(3), offset=0.0, multiplier=1.0)
    assert found.survivors.tolist() == [0, 1]
    assert found.leader == 0
    assert found.gap == np.inf
    without = compare(estimate, np.array([0, 2]), offset=0.0, multiplier=1.0)
    assert (without.survivors.tolist(), without.gap) == ([0], 0.0)


def test_when_nothing_can_be_compared_all_stay():
    estimate = arm_means(sp.Observations.nothing(3))
    found = compare(estimate, np.arange(3), offset=0.0, multiplier=1.0)
    assert (found.survivors.tolist(), found.gap) == ([0, 1, 2], np.inf)
    alone = compare(estimate, np.array([1]), offset=0.0, multiplier=1.0)
    assert (alone.survivors.tolist(), alone.leader, alone.gap) == ([1], 1, 0.0)


def test_arms_that_are_not_active_rule_out_nobody():
    estimate = points([9.0, 3.0, 1.0], [0.0, 0.0, 10.0])
    found = compare(estimate, np.array([1, 2]), offset=0.0, multiplier=1.0)
    assert (found.survivors.tolist(), found.leader, found.gap) == ([1, 2], 1, 8.0)


def test_the_lower_index_leads_among_equals():
    assert compare(points([1.0, 2.0, 2.0], [0, 0, 0]), np.arange(3), offset=9.0, multiplier=0.0).leader == 1
