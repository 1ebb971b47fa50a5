"""Rows in the order of time: equal times are drawn, whatever the order of the file, and times have one meaning."""

import numpy as np
import pandas as pd
import pytest

import surepick as sp
from surepick.analysis.columns import Columns
from surepick.analysis.table import judged_table


def tied(order=lambda table: table):
    """Rows of two equal candidates in two years, in an order of the file."""
    rng = np.random.default_rng(4)
    columns = {"model": np.repeat(["a", "b"], 60), "score": (rng.random(120) < 0.5).astype(float)}
    return order(pd.DataFrame(columns).assign(year=np.tile(np.repeat([2024, 2025], 30), 2)))


def test_rows_of_one_time_stand_in_an_order_that_is_drawn():
    one, other = (judged(tied(order), order="year") for order in (lambda table: table, best_first))
    first = one.rows(1).in_order(0)
    assert np.array_equal(first, other.of(one.ids).rows(1).in_order(0))
    assert not np.array_equal(first, one.rows(2).in_order(0))
    assert first[:30].sum() == tied().query("model == 'a' and year == 2024")["score"].sum()
    said = sp.analyze(tied(), id="model", reward="score", seed=1, order="year").assumptions[-1]
    assert "Rows of one time stand in an order that had nothing to do with values: given by whoever asked" in said


def best_first(table):
    return table.sort_values(["model", "score"], ascending=False)


@pytest.mark.parametrize("order", [{"order": "year"}, {}])
def test_the_order_of_the_file_says_nothing(order):
    files = [tied(), tied(lambda table: table.sort_values(["model", "score"]))]
    one, other = (sp.analyze(file, id="model", reward="score", seed=1, **order) for file in files)
    assert (one.evidence, one.results_sha256) == (other.evidence, other.results_sha256)


def test_items_of_one_time_stand_in_an_order_that_is_drawn():
    rng = np.random.default_rng(5)
    items = pd.DataFrame({"q": [f"q{i}" for i in range(40)], "a": rng.random(40), "b": rng.random(40)})
    items["day"] = ["2026-03-02"] * 20 + ["2026-03-10"] * 20
    asked = {"across": ["a", "b"], "item": "q", "order": "day", "seed": 1}
    found = sp.analyze(items, **asked)
    assert sp.analyze(items.sort_values("a"), **asked).evidence == found.evidence
    assert sp.analyze(items, **asked | {"seed": 2}).evidence != found.evidence


def judged(table, **named):
    columns = Columns(id="model", reward="score", **named)
    return judged_table(table, columns, None, None, noise=None, minimize=None)


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (["9:00", "10:00"], "as words 10:00 would come before 9:00"),
        (["9/2/2026", "10/2/2026"], "dates as 2026-03-01"),
        (["2026-03-01", "2026-03-01T09:00+01:00"], "time zone"),
        (["2026-03-01", "2026-03-01"], "says nothing of time"),
        ([3, 3], "says nothing of time"),
    ],
)
def test_times_without_an_order_are_refused(times, said):
    with pytest.raises(sp.InvalidInput, match=said):
        judged(tied().assign(when=np.resize(np.array(times, object), 120)), order="when")


def test_numbers_and_dates_are_in_their_own_order():
    table = tied()[:4].assign(model=["a", "b"] * 2, score=[0.1, 0.2, 0.3, 0.4])
    for times in (
        [10, 10, 9, 9],
        ["2026-03-01T10:00"] * 2 + ["2026-03-01T09:00"] * 2,
        pd.to_datetime(["2026-10-01"] * 2 + ["2026-09-30"] * 2),
    ):
        held = judged(table.assign(when=times), order="when")
        assert held.rows(1).in_order(0).tolist() == [0.3, 0.1, 0.4, 0.2]


def test_a_constant_time_of_items_is_refused_by_its_name():
    wide = pd.DataFrame({"q": ["x", "y"], "a": [0, 1], "b": [1, 0], "year": 2024})
    with pytest.raises(sp.InvalidInput, match="all rows have the same 'year'"):
        sp.analyze(wide, across=["a", "b"], item="q", order="year")
