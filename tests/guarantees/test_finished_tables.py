"""Error rates of `analyze` on tables at the border: each answer is wrong with probability at most delta."""

import numpy as np
import pytest
from border_tables import ANSWERS, BORDERS, as_table, errors
from bounds import failures_allowed

from surepick.analysis import answers
from surepick.analysis.continued import told
from surepick.core.arms import Arms
from surepick.estimators import table_evidence
from surepick.estimators.table_evidence import BettingEvidence, RecordedRows, StudentEvidence
from surepick.noise import SubGaussian
from surepick.policies.registry import make_policy
from surepick.studies.study import Study

DELTA = 0.1
TABLES = {  # 13,000 in all, most of those that are drawn fast
    "right or wrong": 1000,
    "in time": 1000,
    "clicks": 1000,
    "skewed": 1000,
    "weights": 2000,
    "timed tasks": 4000,
    "totals": 2000,
    "declared": 1000,
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    """Any number of orders and of halvings is valid; few leave more to chance."""
    monkeypatch.setattr(table_evidence, "MOST_ORDERS", 2)
    monkeypatch.setattr(answers, "HALVINGS", 8)


def check(border, tables, first):
    wrong = errors(border, tables, delta=DELTA, first=first)
    print(border, dict(zip(ANSWERS, (wrong / tables).round(4).tolist(), strict=True)))
    assert np.all(wrong <= failures_allowed(tables, DELTA)), wrong


@pytest.mark.parametrize(
    ("border", "tables"), [("in time", 25), ("weights", 25), ("timed tasks", 100), ("totals", 25), ("declared", 100)]
)
def test_few_tables_at_the_border(border, tables):
    check(border, tables, first=1_000_000)


@pytest.mark.slow
@pytest.mark.parametrize("border", BORDERS)
def test_many_tables_at_the_border(border):
    check(border, TABLES[border], first=0)


# --- the saboteurs: each looks at values where it must not


def excluded(evidence_of, tables, *, arms=300, items=500):
    """In how many tables of equal candidates the first is refuted."""
    rng = np.random.default_rng(7)
    rewards = ((rng.random((arms, items)) < 0.5).astype(float) for _ in range(tables))
    return sum(bool(evidence_of(table) >= np.log(1.0 / DELTA)) for table in rewards)


def evidence_against_first(rewards, **how):
    rows = RecordedRows(rewards.ravel(), np.full(len(rewards), rewards.shape[1]), **how)
    return BettingEvidence(rows, DELTA).log_best()[0]


def honest(rewards):
    return evidence_against_first(rewards[:2])


def leader_of_all_data(rewards):
    """Bets from the start on the candidate that turned out to lead."""
    return evidence_against_first(rewards[[0, int(np.argmax(rewards.mean(axis=1)))]], shared=True)


def order_by_values(rewards):
    """Large ones of both candidates meet, so that they hardly differ, and bets are large."""
    return evidence_against_first(np.sort(rewards[:2], axis=1), ordered=True)


@pytest.mark.parametrize("saboteur", [leader_of_all_data, order_by_values])
def test_evidence_that_looked_at_values_is_noticed(saboteur):
    wrong = excluded(saboteur, 100)
    print(saboteur.__name__, wrong, "of 100")
    assert wrong > failures_allowed(100, DELTA)


def test_the_same_tables_are_judged_rightly():
    assert excluded(honest, 100, arms=2) <= failures_allowed(100, DELTA)


def rejected_pairs(spread_of, tables=150):
    """In how many tables two equal candidates, known by totals of 8 and 9 measurements, are told apart."""
    rng, wrong = np.random.default_rng(11), 0
    for seed in range(tables):
        parts = [rng.normal(0.0, scale, number) for scale, number in ((1.0, 8), (3.0, 9))]
        held = [one.mean() + spread_of(one) * np.resize([1.0, -1.0], len(one)) for one in parts]
        rows = RecordedRows(np.concatenate(held), np.array([8, 9]), seed=seed, redrawn=True)
        logs = StudentEvidence(rows, DELTA).log_pairs(np.log(1.0 / DELTA))
        wrong += bool(logs[0, 1] >= np.log(1.0 / DELTA))
    return wrong


def test_totals_with_too_small_a_spread_are_noticed():
    assert rejected_pairs(np.std) <= failures_allowed(150, DELTA)
    assert rejected_pairs(lambda rows: 0.2 * np.std(rows)) > failures_allowed(150, DELTA)


def wrong_certificates(studies, order):
    """How many studies of three candidates, of which the first is 0.3 better, begin with a table and end wrongly."""
    wrong = 0
    for seed in range(studies):
        rng = np.random.default_rng([seed, 13])
        means = np.array([0.3, 0.0, 0.0])
        rows = order(means[:, None] + 0.5 * rng.standard_normal((3, 15)))
        held = as_table(rows.ravel(), np.full(3, 15), SubGaussian(0.5), ordered=order is not as_measured)
        policy = make_policy(
            "certified-independent", Arms(ids=held.ids), epsilon=0.29, delta=DELTA, noise=SubGaussian(0.5)
        )
        study = Study(policy)
        told(study, held, seed, "table")
        while (batch := study.ask()) is not None:
            counts = np.maximum(study.missing, 0)
            ids = [name for name, number in zip(batch.ids, counts, strict=True) for _ in range(number)]
            rewards = [means[int(name)] + 0.5 * rng.standard_normal() for name in ids]
            study.tell(ids, rewards, accept_unusual="unasked")
        wrong += study.recommend() != "0"
    return wrong


def as_measured(rows):
    return rows


def best_last(rows):
    """Small ones of the best candidate come first, and large ones of the others."""
    return np.stack([np.sort(rows[0]), *-np.sort(-rows[1:], axis=1)])


def test_studies_that_go_on_with_tables_are_wrong_as_seldom_as_others():
    assert wrong_certificates(60, as_measured) <= failures_allowed(60, DELTA)


def test_rows_in_an_order_by_values_are_noticed():
    assert wrong_certificates(30, best_last) > failures_allowed(30, DELTA)


def claims_of_equal_candidates(tables, tiers_of):
    """In how many tables of 100 equal candidates, with 60 rows each, tiers claim anything: all of it is wrong."""
    wrong, counts = 0, np.full(100, 60)
    for seed in range(tables):
        rewards = (np.random.default_rng([seed, 14]).random((100, 60)) < 0.5).astype(float)
        evidence = BettingEvidence(RecordedRows(rewards.ravel(), counts, shared=True, ordered=True), DELTA)
        wrong += len(tiers_of(rewards.mean(axis=1), evidence.log_pairs(np.log(1.0 / DELTA)))) > 1
    return wrong


def by_share(means, logs):
    return answers.tiers_of_share(means, logs, DELTA)


def each_pair_alone(means, logs):
    return answers.tiers(means, logs >= np.log(1.0 / DELTA))


def test_tiers_of_a_share_claim_seldom_what_is_all_wrong():
    assert claims_of_equal_candidates(40, by_share) <= failures_allowed(40, DELTA)
    assert claims_of_equal_candidates(40, each_pair_alone) > failures_allowed(40, DELTA)
