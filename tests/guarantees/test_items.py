"""Test items keep delta: on sets of 40 and 60 items, all other arms bad by just over epsilon; under hostile steering.

Counts are held against exact binomial bounds, and the last test shows that they would notice.
"""

import pytest
from bounds import failures_allowed
from hostile_items import TABLES, failed_where_silent, fooled, sorted_by_scores, wrong_answers

DELTAS = pytest.mark.parametrize("delta", [0.05, 0.3])
SOME_AND_ALL = pytest.mark.parametrize("share", [100, pytest.param(1, marks=pytest.mark.slow)])
RUNS = 5000


def assert_kept(what: str, wrong: int, runs: int, delta: float) -> None:
    print(f"\n{what}, delta {delta:g}: {wrong} wrong of {runs}, {failures_allowed(runs, delta)} allowed")
    assert wrong <= failures_allowed(runs, delta)


@SOME_AND_ALL
@DELTAS
@pytest.mark.parametrize("table", TABLES)
def test_studies_certify_a_bad_arm_seldom(table, delta, share):
    assert_kept(table, wrong_answers(TABLES[table], RUNS // share, delta), RUNS // share, delta)


@SOME_AND_ALL
@DELTAS
@pytest.mark.parametrize("table", TABLES)
def test_bad_candidates_only_another_after_each_item(table, delta, share):
    assert_kept(f"{table}, steered", fooled(TABLES[table], RUNS // share, delta), RUNS // share, delta)


@pytest.mark.parametrize("spoil", [sorted_by_scores, failed_where_silent])
def test_what_is_forbidden_is_noticed(spoil):
    runs = 200
    assert fooled(TABLES["slippage"], runs, 0.05, spoil=spoil) > failures_allowed(runs, 0.05)
