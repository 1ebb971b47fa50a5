"""What batches say against a row: never more than a fair bet pays, if the row is the best; and much, if it is not."""

import itertools

import numpy as np
import pytest
from block_functions import written
from subset_studies import biased, circle, simplex

from surepick.chunks.moments import directions, moments
from surepick.chunks.passes import Passes
from surepick.policies.subset.evidence import RowBet, Rule, left, left_of

RNG = np.random.default_rng(11)
ROWS = RNG.standard_normal((5, 2))
ROUNDING = 1e-12


def outcomes(theta, counts, centre, guess, *, bias=None):
    """(probability, bet) of every outcome of rewards of +-1/2 with these means."""
    means = ROWS @ theta + (0.0 if bias is None else bias)
    pulls = np.repeat(np.arange(5), counts)
    for signs in itertools.product((-0.5, 0.5), repeat=len(pulls)):
        rewards = np.array(signs)
        weight = np.prod(0.5 + 2.0 * rewards * means[pulls])
        sums = np.bincount(pulls, rewards, 5)
        yield weight, RowBet.of(centre, guess, ROWS, np.array(counts), sums, 0.5)


def expected(rule, theta, counts, centre, guess, row, **more):
    """E exp(gain) over all outcomes."""
    total = 0.0
    for weight, bet in outcomes(theta, counts, centre, guess, **more):
        gains, _ = rule.gains(bet, row[None])
        total += weight * np.exp(gains[0])
    return total


@pytest.mark.cases(10)
@pytest.mark.parametrize("seed", range(30))
def test_no_bet_pays_where_the_row_is_as_good_as_the_candidate(seed):
    rng = np.random.default_rng(seed)
    theta, counts = rng.uniform(-0.2, 0.2, 2), rng.integers(1, 3, 5)
    centre, row = ROWS[0], ROWS[int(rng.integers(1, 5))]
    row = row + theta * max(0.0, (centre - row) @ theta + 1e-12) / (theta @ theta)  # at least as good
    guess = rng.standard_normal(2) * rng.uniform(0, 3)
    rule = Rule(3.0, 0.0, 1.0, 0.0, 10.0)
    assert expected(rule, theta, counts, centre, guess, row) <= 1.0 + ROUNDING


@pytest.mark.cases(6)
@pytest.mark.parametrize("seed", range(15))
def test_no_bet_pays_where_means_are_off_by_their_bound(seed):
    rng = np.random.default_rng(seed)
    theta, counts, gamma = rng.uniform(-0.1, 0.1, 2), rng.integers(1, 3, 5), 0.05
    bias = gamma * rng.choice([-1.0, 1.0], 5)
    centre, row = ROWS[0], ROWS[3]
    shortfall = (centre - row) @ theta + 2.0 * gamma  # the candidate's mean may be 2 gamma higher by bias
    row = row + theta * max(0.0, shortfall) / (theta @ theta)
    rule = Rule(3.0, 0.0, 1.0, gamma, 10.0)
    guess = 3.0 * (centre - row)
    assert expected(rule, theta, counts, centre, guess, row, bias=bias) <= 1.0 + ROUNDING


def test_the_bound_would_notice_a_bias_that_is_not_declared():
    theta, gamma = np.array([0.02, 0.0]), 0.05
    centre, row = ROWS[0], ROWS[0] + np.array([1e-9, 0.5])
    slope = np.linalg.pinv(ROWS).T @ (centre - row)
    bias = gamma * np.sign(slope)
    found = [
        expected(Rule(3.0, 0.0, 1.0, bound, 10.0), theta, [2] * 5, centre, 0.4 * (centre - row), row, bias=bias)
        for bound in (gamma, 0.0)
    ]
    assert found[0] <= 1.0 + ROUNDING < found[1]


def test_the_bound_would_notice_bets_that_look_at_the_batch():
    theta, centre, row = np.array([0.1, 0.0]), ROWS[0], ROWS[0] + np.array([0.0, 1.0])
    rule, total = Rule(3.0, 0.0, 1.0, 0.0, 10.0), 0.0
    for weight, bet in outcomes(theta, [2] * 5, centre, np.zeros(2)):
        peeking = RowBet(centre, 3.0 * bet.slope, bet.slope, bet.factor, bet.weight, bet.mismatch, bet.excess)
        total += weight * np.exp(rule.gains(peeking, row[None])[0][0])
    assert total > 1.0 + ROUNDING


def test_a_batch_that_misses_a_direction_says_nothing():
    line = np.outer(np.arange(1.0, 4.0), [1.0, 2.0])
    assert RowBet.of(line[0], np.zeros(2), line, np.ones(3, np.int64), np.zeros(3), 1.0) is None


def test_processes_are_what_the_formula_says():
    bets = circle(12, 0.3).told(0.05, 0, 6).bets
    rows = circle(12, 0.3).features
    rule = Rule(2.0, 0.0, 1.0, 0.0, 1.0)
    total, beaten = np.zeros(12), np.zeros(12, bool)
    for bet in bets:
        inverse = bet.factor @ bet.factor.T
        for row in range(12):
            towards = bet.centre - rows[row]
            size = towards @ inverse @ towards
            tau = 0.7 * max(towards @ bet.guess - 0.5 * np.sqrt(size), 0.0) / size if size > 0 else 0.0
            total[row] += tau * towards @ bet.slope - tau**2 * size / 2
        beaten |= total >= 2.0
    assert np.array_equal(rule.rejected(bets, rows), beaten)
    assert 0 < np.count_nonzero(beaten) < 12


def test_evidence_is_never_taken_back():
    """A row that was beaten after some batches stays so after more."""
    bets, rows = simplex(8).told(0.05, 3).bets, np.eye(8)
    before = np.zeros(8, bool)
    for number in range(len(bets) + 1):
        now = Rule(0.5, 0.0, 1.0, 0.0, 1.0).rejected(bets[:number], rows)
        assert (now | ~before).all()
        before = now


def test_files_and_memory_leave_the_same_rows(tmp_path):
    features = RNG.standard_normal((3000, 2)).astype(np.float32)
    rows = written(tmp_path, features, [1000, 2000])
    passes = Passes(rows)
    where = directions(passes, moments(passes))
    bets, guess = circle(12, 0.3).told(0.05, 0, 6).bets, np.array([1.0, 0.2])
    rule = Rule(2.0, 0.0, 1.0, 0.0, 10.0)
    found = left(passes, where, rule, bets, guess, most=3000)
    known = left_of(np.arange(3000), features.astype(np.float64), rule, bets, guess)
    assert 0 < found.number < 3000
    assert np.array_equal(found.rows, known.rows)
    assert np.array_equal(found.best.rows, known.best.rows)
    few = left(passes, where, rule, bets, guess, most=found.number - 1)
    assert few.rows is None
    assert few.number == found.number


def test_bias_that_is_declared_costs_evidence():
    hostile = biased(10, 0.05)
    bets, rows = hostile.told(0.05, 0, 6).bets, hostile.features
    free, held = (Rule(3.0, 0.0, 1.0, gamma, 1.0) for gamma in (0.0, 0.05))
    assert np.count_nonzero(held.rejected(bets, rows)) <= np.count_nonzero(free.rejected(bets, rows))


def test_what_is_played_in_tests_is_what_the_policy_does():
    """The error rates are measured on selections without passes; their bets are the policy's, bit by bit."""
    for hostile in (simplex(5), circle(12, 0.3), biased(12, 0.05)):
        for seed in range(5):
            assert hostile.played(hostile.policy(0.05), seed) == hostile.told(0.05, seed).bets
