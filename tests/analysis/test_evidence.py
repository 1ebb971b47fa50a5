"""The e-values of finished tables: exact means on small laws, and the likelihood ratio beside its integral."""

import itertools
import math

import numpy as np
import pytest

from surepick.analysis import answers
from surepick.estimators.table_evidence import (
    BettingEvidence,
    RecordedRows,
    ScaleEvidence,
    StudentEvidence,
    StudentRatio,
    block_numbers,
)


def rows_of(table, **how):
    table = np.asarray(table, float)
    return RecordedRows(table.ravel(), np.full(len(table), table.shape[1]), **how)


@pytest.mark.parametrize("chances", [(0.5, 0.5), (0.3, 0.5)])
def test_the_mean_over_all_tables_is_at_most_one(chances):
    """Two candidates, five rows of 0 and 1 each: all tables are enumerated; the second is the better one."""
    best, pair = 0.0, 0.0
    for bits in itertools.product((0.0, 1.0), repeat=10):
        table = np.reshape(bits, (2, 5))
        chance = math.prod(p if bit else 1.0 - p for p, row in zip(chances, table, strict=True) for bit in row)
        evidence = BettingEvidence(rows_of(table, ordered=True), 0.05)
        best += chance * math.exp(evidence.log_best()[1])
        pair += chance * math.exp(evidence.log_pairs(3.0)[0, 1])
    assert best <= 1.0 + 1e-12
    assert pair <= 1.0 + 1e-12
    assert chances[0] < chances[1] or (best == pytest.approx(1.0) and pair == pytest.approx(1.0))


@pytest.mark.parametrize("number", [1, 2, 3, 7, 30])
def test_the_likelihood_ratio_is_that_of_students_t_rounded_down(number):
    from scipy import stats

    ratio, share = StudentRatio(number, 2.5), np.array([-0.7, -0.1, 0.0, 0.4, 0.9])
    if number == 1:  # the sign is all that is left
        share = np.array([-1.0, 1.0])
        exact = np.log(2.0 * stats.norm.cdf(2.5 * share))
    else:
        t = share * np.sqrt((number - 1) / (1.0 - share**2))
        exact = stats.nct.logpdf(t, number - 1, 2.5) - stats.t.logpdf(t, number - 1)
    logs = ratio.log(share * math.sqrt(number), np.ones(len(share)))
    assert np.all(logs <= exact)
    assert logs == pytest.approx(exact, abs=1e-5)
    assert np.all(np.diff(ratio.logs) > 0)


def test_student_evidence_does_not_see_units():
    table = np.random.default_rng(1).standard_normal((3, 12)) + np.array([[1.0], [0.0], [0.0]])
    one, other = (StudentEvidence(rows_of(scale * table + move), 0.05) for scale, move in ((1.0, 0.0), (1e6, 3e6)))
    assert one.log_best() == pytest.approx(other.log_best(), abs=1e-4)


def test_a_shortfall_can_only_add_evidence_and_the_gap_is_where_it_suffices():
    rng = np.random.default_rng(3)
    for evidence in (
        BettingEvidence(rows_of((rng.random((4, 60)) < 0.5).astype(float), shared=True), 0.1),
        StudentEvidence(rows_of(rng.standard_normal((4, 20))), 0.1),
    ):
        logs = [evidence.log_against(0, np.full(4, shortfall))[1:] for shortfall in (0.0, 0.1, 0.5, 1.0)]
        assert np.all(np.diff(logs, axis=0) >= 0)
        assert logs[0] == pytest.approx(evidence.log_best()[1:])
        gap = answers.certified_gap(evidence, 0, [1, 2, 3], 0.1, range_of_means=None)
        assert np.all(evidence.log_against(0, np.full(4, gap))[1:] >= np.log(10.0) - 1e-6)
        assert not np.all(evidence.log_against(0, np.full(4, 0.99 * gap))[1:] >= np.log(10.0))


def test_numbers_of_blocks_are_few_and_no_more_than_rows():
    counts = np.arange(3, 400)
    numbers = block_numbers(counts)
    assert np.all(numbers <= counts)
    assert np.all(numbers[counts >= 5] > counts[counts >= 5] / 1.4)
    assert len(np.unique(numbers)) < 30
    assert block_numbers(np.array([10**6, 10**6])).tolist() == [1024, 1024]


def test_blocks_have_all_rows_or_are_of_equal_size():
    rows = RecordedRows(np.arange(12.0), np.array([7, 5]), seed=3)
    assert rows.means.tolist() == [3.0, 9.0]
    for number in range(3):
        whole = rows.block_means(number, np.array([0, 1]), 3, equal=False)
        assert (whole @ [2, 2, 3])[0] == pytest.approx(21.0)  # parts of 2, 2 and 3 rows
        equal = rows.block_means(number, np.array([0]), 3, equal=True)
        assert equal.shape == (1, 3)
        assert len(set((2 * equal).ravel() % 1)) == 1
    assert not np.array_equal(rows.in_order(0), rows.in_order(1))


def test_what_is_proved_is_what_every_set_that_may_be_true_allows():
    """All sets that have one opposite of each pair at least are gone through."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        logs = rng.normal(2.0, 3.0, (3, 3))
        np.fill_diagonal(logs, -np.inf)
        pairs = [(c, j) for c in range(3) for j in range(3) if c != j]
        possible = []
        for size in range(3, 7):
            for held in itertools.combinations(pairs, size):
                whole = all((c, j) in held or (j, c) in held for c, j in pairs)
                if whole and np.mean([math.exp(logs[pair]) for pair in held]) < 20.0:
                    possible.append(set(held))
        exact = {pair for pair in pairs if not any(pair in held for held in possible)}
        found = {tuple(pair) for pair in np.argwhere(answers.proved(logs, 0.05)).tolist()}
        assert found <= exact


def test_the_first_of_a_tier_is_better_than_all_below():
    means, better = np.array([0.5, 0.9, 0.1, 0.8]), np.zeros((4, 4), bool)
    better[1, [0, 2]] = better[3, 2] = True
    assert [tier.tolist() for tier in answers.tiers(means, better)] == [[1, 3], [0, 2]]
    better[0, 2] = True
    assert [tier.tolist() for tier in answers.tiers(means, better)] == [[1, 3], [0], [2]]
    better[1, 2] = False  # the last one may be as good as the first: one tier has all
    assert [tier.tolist() for tier in answers.tiers(means, better)] == [[1, 3, 0, 2]]


def test_rows_of_totals_have_them_and_are_spread_evenly():
    counts = np.array([1, 2, 5, 40])
    rewards = np.random.default_rng(4).normal(3.0, 2.0, counts.sum())
    rows, starts = RecordedRows(rewards, counts, seed=2, redrawn=True), np.cumsum(counts) - counts
    drawn = np.array([rows.in_order(number) for number in range(400)])
    for power in (1, 2):
        held = np.add.reduceat(drawn**power, starts, axis=1)
        assert held == pytest.approx(np.broadcast_to(np.add.reduceat(rewards**power, starts), held.shape))
    assert rows.block_means(0, np.array([0, 1]), 1, equal=False)[0] == pytest.approx(rewards[0])
    middle = drawn[:, 3:8]  # a row of five lies as far to both sides of their mean, and none stands out
    assert np.abs(middle.mean(axis=0) - rewards[3:8].mean()).max() < 6.0 * rewards[3:8].std() / 20.0
    assert middle.var(axis=0) == pytest.approx(np.full(5, rewards[3:8].var()), rel=0.4)


def test_a_declared_scale_is_the_exact_mean_of_a_normal_law():
    """Of normal means E_{c,j} has mean 1 at equal candidates, by integration; the mean over rivals is that of E_j."""
    scale, counts = 2.0, np.array([3, 4, 5])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    chance = weights / weights.sum()
    total = 0.0
    for first, p in zip(nodes, chance, strict=True):
        for second, q in zip(nodes, chance, strict=True):
            means = np.array([scale * first / math.sqrt(3), scale * second / 2.0, 0.0])
            evidence = ScaleEvidence(RecordedRows(np.repeat(means, counts), counts), scale, 0.3)
            total += p * q * math.exp(evidence.log_pairs(1.0)[0, 1])
    assert total == pytest.approx(1.0, abs=1e-6)
    pairs = evidence.log_pairs(evidence.target)
    assert np.exp(evidence.log_best()) == pytest.approx(np.exp(pairs).sum(axis=0) / 2.0)
    assert evidence.log_against(1, np.zeros(3))[[0, 2]] == pytest.approx(evidence.log_best()[[0, 2]])
    assert np.all(evidence.log_against(1, np.full(3, 0.5))[[0, 2]] > evidence.log_best()[[0, 2]])
    focus = evidence.log_pairs(1.0, 1)
    assert np.isfinite(focus).sum() == 4


def gap_and_evidence(rewards, counts, **how):
    evidence = StudentEvidence(RecordedRows(rewards, counts, seed=1, **how), 0.05)
    gap = answers.certified_gap(evidence, 0, range(1, len(counts)), 0.05, range_of_means=None)
    return np.array([gap, *evidence.log_best()])


@pytest.mark.parametrize("how", [{"shared": True}, {}])
@pytest.mark.parametrize("level", [1e6, 1e9, -1e9])
def test_a_level_that_all_rewards_have_costs_no_digits(how, level):
    counts = np.full(3, 20)
    rewards = np.random.default_rng(8).standard_normal(60).round(3)
    levels = np.tile(level * np.linspace(0.5, 1.5, 20).round(), 3) if how else level
    found, plain = (gap_and_evidence(one, counts, **how) for one in (rewards + levels, rewards))
    assert found == pytest.approx(plain, abs=1e-6)


def test_a_candidate_far_away_costs_the_others_no_digits():
    rewards = np.random.default_rng(8).standard_normal((3, 20)).round(3)
    near, far = (rewards + np.array([[0.0], [0.0], [one]]) for one in (-10.0, -1e9))
    for how in ({"shared": True}, {}):
        one, other = (StudentEvidence(rows_of(table, **how), 0.05).log_pairs(3.0)[:2, :2] for table in (near, far))
        assert one == pytest.approx(other, abs=1e-6)


def test_sums_that_contradict_their_squares_say_nothing():
    ratio = StudentRatio(9, 2.0)
    assert ratio.log(np.array([9.1, -9.1, np.nan, 8.9]), np.full(4, 9.0)).tolist()[:3] == [-np.inf] * 3
    assert np.isfinite(ratio.log(np.array([8.9, 9.0]), np.full(2, 9.0))).all()
