"""Test items keep delta: on sets of 40 and 60 items, all other arms bad by just over epsilon; under hostile steering.

Counts are held against exact binomial bounds, and the last test shows that they would notice.
"""

import pytest
from bounds import failures_allowed, trials_to_notice
from budgets import STUDIES, few_and_all_studies
from hostile_items import TABLES, failed_where_silent, fooled, sorted_by_scores, wrong_answers

DELTAS = (0.05, 0.3)
RUNS = STUDIES


def some_and_all(share: int) -> pytest.MarkDecorator:
    """That share of the runs in the usual suite, all of them in the long one."""
    return pytest.mark.parametrize("share", [share, pytest.param(1, marks=pytest.mark.slow)])


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    print(f"\n{what}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@few_and_all_studies(11, RUNS)
@pytest.mark.parametrize("table", TABLES)
def test_studies_certify_a_bad_arm_seldom(table, delta, runs):
    assert_kept(table, wrong_answers(TABLES[table], runs, delta), runs, delta)


@pytest.mark.cases(2)
@some_and_all(100)
@pytest.mark.parametrize("table", TABLES)
def test_bad_candidates_only_another_after_each_item(table, share):
    wrong = fooled(TABLES[table], RUNS // share, *DELTAS)
    for delta in DELTAS:
        assert_kept(f"{table}, steered", wrong[delta], RUNS // share, delta)


@pytest.mark.parametrize("spoil", [sorted_by_scores, failed_where_silent])
def test_what_is_forbidden_is_noticed(spoil):
    runs = 50  # the milder is wrong in .63 of the runs
    assert trials_to_notice(0.05, 0.6) <= runs
    assert fooled(TABLES["slippage"], runs, 0.05, spoil=spoil)[0.05] > failures_allowed(runs, 0.05)
